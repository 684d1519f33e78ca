"""When a checkpoint is due, and how one is made: encoded at once, compressed elsewhere, written when that is done.

To compress a million tasks takes half a second. News must not wait for that, so it is folded meanwhile; the checkpoint
covers what was folded when it began.

Two checkpoints are kept, and only entries that the older one covers are trimmed: if the newer one is damaged, the older
one leads to the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from actors.broker import checkpoints
from actors.broker.bus import DECISIONS, EVENTS, Bus, Entry, id_order
from actors.broker.checkpoints import CheckpointManifest, PackedState, packed
from actors.ingestion.group_notes import GROUP
from actors.ingestion.known.state import SCHEMA
from actors.ingestion.ordered_reading import size
from actors.ingestion.pace import Pace

State = Sequence[bytes | memoryview]
#: Compresses an encoded state (``checkpoints.packed``), here or in another thread.
Packs = Callable[[State], "Future[PackedState]"]


def at_once(state: State) -> Future[PackedState]:
    """Compress a state while the caller waits."""
    done = Future[PackedState]()
    done.set_result(packed(state))
    return done


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A checkpoint that is being compressed: what it covers, and entries of decisions that it needs."""

    state: Future[PackedState]
    covers: Mapping[str, str]
    needed: Sequence[str]


class Checkpointing:
    """Counts what came since the last checkpoint, and makes the next. Not for several threads at once."""

    def __init__(self, bus: Bus, pace: Pace, elapsed_s: Callable[[], float], packs: Packs) -> None:
        self._bus, self._pace, self._elapsed_s, self._packs = bus, pace, elapsed_s, packs
        self._before: CheckpointManifest | None = None
        self._under_way: _UnderWay | None = None
        self._entries, self._bytes, self._begun_at = 0, 0, elapsed_s()

    def follow(self, before: CheckpointManifest) -> None:
        """The next one comes after this one, which a recovery has read."""
        self._before = before

    def count(self, entries: Sequence[Entry]) -> None:
        """Entries were folded."""
        self._entries += len(entries)
        self._bytes += size(entries)

    @property
    def due(self) -> bool:
        """Whether it is time for the next one, and none is under way."""
        pace = self._pace
        much = self._entries >= pace.checkpoint_every_entries or self._bytes >= pace.checkpoint_every_bytes
        late = self._elapsed_s() - self._begun_at >= pace.checkpoint_every_s
        return self._under_way is None and (much or late)

    def begin_anew(self) -> None:
        """Count from now on; one that is under way is not written."""
        self._under_way = None
        self._entries, self._bytes, self._begun_at = 0, 0, self._elapsed_s()

    def begin(self, state: State, covers: Mapping[str, str], needed: Iterable[str]) -> None:
        """Begin one of a state that is encoded.

        ``covers``: by stream, the last entry that is folded. ``needed``: entries of decisions that still promise
        something; the next committer reads them.
        """
        self.begin_anew()
        self._under_way = _UnderWay(self._packs(state), dict(covers), tuple(needed))

    def finish(self, *, waits: bool = False) -> Mapping[str, str] | None:
        """Write the one that is under way if it is compressed, or wait for that; returns what it covers, else None.

        What it covers is acknowledged, and what the one before covers is trimmed.
        """
        one = self._under_way
        if one is None or not (waits or one.state.done()):
            return None
        before = self._before
        self._before = checkpoints.save(self._bus, one.state.result(), schema=SCHEMA, covers=one.covers, before=before)
        self._under_way = None  # where the broker was away, it is written at a later turn
        self._bus.cover(EVENTS, GROUP, upto=one.covers[EVENTS])
        if before is not None:
            self._bus.trim(EVENTS, covered=before.covers[EVENTS])
            covered = min([before.covers[DECISIONS], *one.needed], key=id_order)
            self._bus.trim(DECISIONS, covered=covered)
        return one.covers
