"""The ingestor: reads what happened and what we decided, folds it, keeps checkpoints. It decides nothing.

**Order.** Both streams get their ids from one broker's clock, so the two together have one order: by id, an event
before a decision of the same millisecond. Everything is folded in that order, whether as it arrives or after a restart;
thus replaying the streams rebuilds the same state.

**Durability.** A start is a recovery: the newest checkpoint, then the entries after it. So an entry is acknowledged
when a checkpoint covers it, not sooner. Two checkpoints are kept, and entries are trimmed that the older one covers: if
the newer is harmed, the older leads to the same state.

**Several readers.** Entries are read by position; the group only says how far who leads is. A standby, or a frozen
reader that comes back, therefore takes nothing from another. Who does not lead folds and leaves nothing behind: no
checkpoint, no acknowledgement, no trimming. The leader's trimming may overtake it; then it has to begin anew.

**Bounds.** A turn reads a bounded number of entries and about so many bytes of either stream, however long they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from actors.broker import checkpoints
from actors.broker.bus import DECISIONS, EVENTS, START, Bus, Entry, has_gap, id_order
from actors.broker.checkpoints import Manifest
from actors.documents.safe_msgpack import WIRE_LIMITS, WireLimits, whole_number
from actors.ingestion.interpreter import SCHEMA, Interpreter, as_sent
from actors.ingestion.register import Register
from actors.protocol.bodies import DECISION_KINDS, ResyncRequested
from actors.protocol.envelopes import Outgoing, Refused, decode_decisions, decode_events, pack_decision
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE
from pipeline.errors import StateRefused

log = logging.getLogger(__name__)

GROUP = "ingestor"
#: Read at once before the size of entries is known.
_FIRST_READ = 8
#: Rows of what is gone stay where they are until a list numbers all anew. One is asked for when they are more than the
#: others, and more than these.
SPARE_ROWS = 200_000
#: So many trace contexts of events are kept between two looks at them: a link more tells nobody anything.
_LINKS = 64


@dataclass(frozen=True, slots=True)
class Pace:
    """How much at once, and how often a checkpoint.

    Attributes
    ----------
    entries
        Read at once from a stream, at most.
    read_bytes
        About so many bytes at once, as far as the sizes of the entries before tell; a single entry may be larger.
    checkpoint_every_s
        Seconds between checkpoints while news comes.
    checkpoint_every_entries
        Or so many entries, whichever is first: it bounds what a recovery has to read.
    checkpoint_every_bytes
        Or so many bytes of them: with it, what the broker has to hold.
    """

    entries: int = 500
    read_bytes: int = 8 << 20
    checkpoint_every_s: float = 30.0
    checkpoint_every_entries: int = 20_000
    checkpoint_every_bytes: int = 256 << 20


class Ingestor:
    """One fleet's state owner. Not for several threads at once.

    Parameters
    ----------
    consumer
        This process's name in the group: unlike any other's.
    now_s
        The clock, in seconds since the epoch; for pacing only, since news brings its own times.
    buried
        Told of the stream, and how many of its messages were refused for the first time.
    settle
        Called between new decisions and the events before them; returns once the broker's clock has left the
        millisecond of the last decision, in which events may still come. Not needed where nobody else writes meanwhile.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        consumer: str,
        now_s: Callable[[], float],
        pace: Pace | None = None,
        limits: WireLimits = WIRE_LIMITS,
        buried: Callable[[str, int], object] | None = None,
        settle: Callable[[], object] | None = None,
    ) -> None:
        self._settle = settle
        self._bus, self._consumer, self._now_s, self._limits, self._buried = bus, consumer, now_s, limits, buried
        self._pace = pace if pace is not None else Pace()
        self._state = Interpreter()
        self._at = {EVENTS: START, DECISIONS: START}
        self._before: Manifest | None = None
        self._held: dict[str, list[Entry]] = {EVENTS: [], DECISIONS: []}
        self._count = dict.fromkeys(self._at, min(_FIRST_READ, self._pace.entries))
        self._leads, self._whole = True, False
        self.overtaken = False
        """Entries were trimmed before they were read: the state stays wrong; begin with the newest checkpoint."""
        self._links: list[Mapping[str, str]] = []
        self._asked_for_list, self._asked_epoch = False, -1
        self._full = dict.fromkeys(self._at, False)
        self._entries_since, self._bytes_since, self._saved_at = 0, 0, now_s()

    @property
    def leads(self) -> bool:
        """Whether checkpoints are ours to write."""
        return self._leads

    @leads.setter
    def leads(self, leads: bool) -> None:
        if leads and not self._leads:  # the one before wrote one not long ago
            self._entries_since, self._bytes_since, self._saved_at = 0, 0, self._now_s()
        self._leads = leads

    @property
    def behind(self) -> bool:
        """Whether there was more to read than one turn takes."""
        return any(self._full.values()) or any(self._held.values())

    @property
    def snapshot(self) -> Snapshot:
        """The newest state; without nodes until the fleet was listed."""
        return self._state.snapshot

    @property
    def names(self) -> Register:
        """What the rows of the newest state are called."""
        return self._state.names

    @property
    def trace_links(self) -> tuple[Mapping[str, str], ...]:
        """Trace contexts of the entries folded since this was last asked, each once, the newest few."""
        links, self._links = tuple(self._links), []
        return links

    # -- starting ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover, and ask for a full list where what is left does not make a state."""
        self._bus.join(EVENTS, GROUP)
        found = checkpoints.newest(self._bus, schema=SCHEMA)
        if found is not None:
            manifest, state = found
            try:
                self._state = Interpreter.decode(state)
            except StateRefused as refusal:
                log.warning("checkpoint %s cannot be read: %s", manifest.entry, refusal)
            else:
                self._at.update(manifest.covers)
                self._before = manifest
                log.info("recovered from checkpoint %s, revision %d", manifest.entry, self.snapshot.revision)
        gaps = [stream for stream, at in self._at.items() if has_gap(self._bus.bounds(stream), at)]
        self._whole = not gaps
        while self._turn():
            pass
        self._whole = True
        if gaps:
            self._state.names.listed = False  # nothing is to be decided on what is left
            self._ask_for_list(f"entries are missing from {' and '.join(gaps)}")
        elif not self._state.names.listed and not self._state.listing:
            self._ask_for_list("nothing is known yet")

    # -- reading and folding -----------------------------------------------------------------------------------

    def poll(self, block_ms: int = 0) -> bool:
        """Fold what has come, waiting up to ``block_ms`` for an event; whether the state is another one than before."""
        before = self.snapshot
        self._turn(block_ms)
        return self.snapshot is not before

    def _turn(self, block_ms: int = 0) -> bool:
        """Fold what has come; whether anything had."""
        events, decisions = self._arrived(block_ms)
        if not events and not decisions:
            return False
        if not self._leads and self._missed():
            self.overtaken = True
            return False
        refused = self._fold(sorted([*events, *decisions], key=_order))
        for stream in (EVENTS, DECISIONS):
            letters = [one.letter() for one in refused if one.stream == stream]
            new = self._bus.bury(letters) if letters else 0
            if new and self._buried is not None:
                self._buried(stream, new)
        self._note(events)
        self._entries_since += len(events) + len(decisions)
        self._bytes_since += _size(events) + _size(decisions)
        if self._leads and self._checkpoint_due():
            self.checkpoint()
        return True

    def _missed(self) -> bool:
        """Whether entries that we did not read yet were trimmed. Not where it is known and a list was asked for."""
        return self._whole and any(
            at != START and has_gap(self._bus.bounds(stream), at) for stream, at in self._at.items()
        )

    def _arrived(self, block_ms: int) -> tuple[list[Entry], list[Entry]]:
        """Entries of both streams up to a point before which neither can bring any more.

        Decisions are read after events, so without any there is none before the last event. With some, that point is
        the last of them, if events reach it before they are too many for one turn, else the last event. What lies
        beyond it is held for the next time.
        """
        events, decisions = self._held[EVENTS], self._held[DECISIONS]
        if not events:
            events = self._read(EVENTS, self._at[EVENTS], 0 if decisions else block_ms)
        if not decisions:
            decisions = self._read(DECISIONS, self._at[DECISIONS])
            if decisions and self._settle is not None:
                self._settle()
        if not decisions:
            self._held[EVENTS] = []
            return events, decisions
        horizon, enough = _order(decisions[-1]), 2 * self._pace.entries
        while not events or _order(events[-1]) < horizon:
            if len(events) >= enough or _size(events) >= 2 * self._pace.read_bytes:
                horizon = _order(events[-1])
                break
            more = self._read(EVENTS, events[-1].id if events else self._at[EVENTS])
            if not more:
                break
            events = [*events, *more]
        for stream, entries in ((EVENTS, events), (DECISIONS, decisions)):
            self._held[stream] = [entry for entry in entries if _order(entry) > horizon]
        return events[: len(events) - len(self._held[EVENTS])], decisions[: len(decisions) - len(self._held[DECISIONS])]

    def _read(self, stream: str, after: str, block_ms: int = 0) -> list[Entry]:
        """The next entries, as many as are about ``read_bytes`` if they are like those before."""
        entries = self._bus.follow(stream, after, count=self._count[stream], block_ms=block_ms)
        self._full[stream] = len(entries) == self._count[stream]
        if entries:
            fit = self._pace.read_bytes * len(entries) // max(1, _size(entries))
            self._count[stream] = max(1, min(self._pace.entries, fit))
        return entries

    def _fold(self, entries: Sequence[Entry]) -> list[Refused]:
        refused: list[Refused] = []
        for entry in entries:
            if entry.stream == EVENTS:
                self._watch(entry)
            read = decode_events(entry, self._limits) if entry.stream == EVENTS else decode_decisions(entry)
            for one in read:
                if isinstance(one, Refused):
                    refused.append(one)
                else:
                    self._state.take(one)
            self._at[entry.stream] = entry.id
            if entry.carrier:
                self._links = [*self._links, entry.carrier][-_LINKS:]
        self._state.settle()
        for message, reason in self._state.refused():
            stream = DECISIONS if message.kind in DECISION_KINDS else EVENTS
            refused.append(Refused(reason, as_sent(message), stream, message.entry, message.index))
        if self._state.names.listed:
            self._asked_for_list = False
        return refused

    def _watch(self, entry: Entry) -> None:
        """Notice a hole in the numbers that a fleet may give its entries."""
        number, names = whole_number(entry.fields.get("sequence", b"")), self._state.names
        if number is None:
            return
        if names.sequence and number > names.sequence + 1:
            self._ask_for_list(f"entries {names.sequence + 1} to {number - 1} of the fleet never came")
        names.sequence = max(names.sequence, number)

    def _ask_for_list(self, reason: str) -> None:
        """Ask the fleet for everything there is; once, until it answers."""
        if self._asked_for_list:
            return
        log.warning("asking for a full list: %s", reason)
        asked = Outgoing("resync_requested", self._consumer, 0, ResyncRequested(reason=reason))
        self._bus.publish(DECISIONS, pack_decision(asked), insist=True)
        self._asked_for_list = True

    # -- durability --------------------------------------------------------------------------------------------

    def _note(self, events: Sequence[Entry]) -> None:
        """Let the group follow: what it hands out stays unacknowledged until a checkpoint covers it."""
        if events and self._leads:
            self._bus.read(EVENTS, GROUP, self._consumer, count=len(events))

    def _checkpoint_due(self) -> bool:
        pace = self._pace
        much = self._entries_since >= pace.checkpoint_every_entries or self._bytes_since >= pace.checkpoint_every_bytes
        return much or self._now_s() - self._saved_at >= pace.checkpoint_every_s

    def checkpoint(self) -> None:
        """Write the state down, acknowledge what it contains, and let go of what nobody needs any more.

        Not while a list is being told, and not before there was one: a recovery must read a list whole. Trimmed is what
        the checkpoint before this one covers.
        """
        if self._state.listing or not self._state.names.listed:
            return
        before, covers = self._before, dict(self._at)
        self._before = checkpoints.save(self._bus, self._state.encode(), schema=SCHEMA, covers=covers, before=before)
        self._bus.cover(EVENTS, GROUP, upto=covers[EVENTS])
        self._entries_since, self._bytes_since, self._saved_at = 0, 0, self._now_s()
        if before is not None:
            self._bus.trim(EVENTS, covered=before.covers[EVENTS])
            # A decision that still promises something is read again by whoever takes over the committer.
            standing = self._state.names.standing_entries()
            self._bus.trim(DECISIONS, covered=min([before.covers[DECISIONS], *standing], key=id_order))
        self._ask_for_fewer_rows()

    def _ask_for_fewer_rows(self) -> None:
        """Once an epoch: a list has rows for what is there and for nothing else."""
        tasks, groups, epoch = self.snapshot.tasks, self.snapshot.podgroups, self.snapshot.epoch
        rows, there = len(tasks) + len(groups), int((tasks.status != GONE).sum() + groups.alive.sum())
        if epoch != self._asked_epoch and rows - there > max(SPARE_ROWS, there):
            self._asked_epoch = epoch
            self._ask_for_list(f"of {rows} rows {rows - there} are of what is gone")


def _order(entry: Entry) -> tuple[int, int, int]:
    """Where an entry stands among those of both streams."""
    ms, sequence = id_order(entry.id)
    return ms, int(entry.stream == DECISIONS), sequence


def _size(entries: Sequence[Entry]) -> int:
    return sum(len(value) for entry in entries for value in entry.fields.values())
