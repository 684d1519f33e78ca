"""The ingestor: reads events and our own decisions, has them folded, keeps checkpoints. It decides nothing.

**Order.** Everything is folded in the one order of both streams (see ``ordered_reading``), whether as it arrives or
after a restart; thus replaying the streams rebuilds the same state.

**Durability.** A start is a recovery: the newest checkpoint, then the entries after it. So an entry is acknowledged
when a checkpoint covers it, not sooner (see ``checkpointing``).

**Several readers.** Entries are read by position; the group only says how far the leader is. A standby, or a frozen
reader that comes back, therefore takes nothing from another. An ingestor that does not lead only folds: it
writes no checkpoint, acknowledges nothing and trims nothing. The leader may trim entries that it has not read; then it
begins anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from actors.broker import checkpoints
from actors.broker.bus import DECISIONS, EVENTS, Bus
from actors.documents.safe_msgpack import WIRE_LIMITS, WireLimits
from actors.documents.state_limits import STATE_LIMITS, StateLimits
from actors.ingestion.by_kind.decision_events import pass_over
from actors.ingestion.checkpointing import Checkpointing, Packs, at_once
from actors.ingestion.entry_fold import EntryFold
from actors.ingestion.group_notes import GROUP, GroupNotes
from actors.ingestion.interpreter import Interpreter
from actors.ingestion.known.state import SCHEMA, LiveState
from actors.ingestion.list_requests import ListRequests
from actors.ingestion.ordered_reading import OrderedReading
from actors.ingestion.pace import Pace
from actors.protocol.envelopes import RefusedMessage
from pipeline.cluster.snapshot import Snapshot
from pipeline.errors import StateRefused

log = logging.getLogger(__name__)


class Ingestor:
    """One fleet's state owner. Not for several threads at once.

    Parameters
    ----------
    consumer
        This process's name in the group: unlike any other's.
    now_s, limits, most
        See `EntryFold`.
    elapsed_s
        A clock that is never set, in seconds, for pacing; None: ``now_s``.
    buried
        Called with the stream, and the number of its messages that were refused for the first time.
    packs
        Compresses checkpoints.

    Attributes
    ----------
    folding
        What was read so far, folded.
    overtaken
        Entries were lost before they were read: the state stays wrong; begin with the newest checkpoint.
    lost
        Whether the broker has lost what was read here, or what was not read yet: its newest checkpoint, and what
        comes after it, may be of another state.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        consumer: str,
        now_s: Callable[[], float],
        elapsed_s: Callable[[], float] | None = None,
        pace: Pace | None = None,
        limits: WireLimits = WIRE_LIMITS,
        most: StateLimits = STATE_LIMITS,
        buried: Callable[[str, int], object] | None = None,
        packs: Packs = at_once,
    ) -> None:
        elapsed_s = elapsed_s or now_s
        self._bus, self._buried, self._most = bus, buried, most
        pace = pace or Pace()
        self._reading = OrderedReading(bus, pace.entries, pace.read_bytes)
        self._checkpoints = Checkpointing(bus, pace, elapsed_s, packs)
        self._notes = GroupNotes(bus, consumer, pace.entries, elapsed_s)
        requests = ListRequests(bus, consumer, elapsed_s)
        self.folding = EntryFold(requests, self._reading.at, now_s=now_s, elapsed_s=elapsed_s, limits=limits, most=most)
        self._leads, self._whole = True, False
        self.overtaken = self.lost = False

    @property
    def leads(self) -> bool:
        """Whether this service leads, and so writes checkpoints."""
        return self._leads

    @leads.setter
    def leads(self, leads: bool) -> None:
        if leads != self._leads:  # the one before wrote one not long ago, or the next one will
            self._checkpoints.begin_anew()
            self._notes.new_to_lead = leads
        self._leads = leads

    @property
    def behind(self) -> bool:
        """Whether there was more to read than one turn takes."""
        return self._reading.behind

    @property
    def snapshot(self) -> Snapshot:
        """The newest state; without nodes until the fleet was listed."""
        return self.folding.state.snapshot

    @property
    def state(self) -> LiveState:
        """The newest state, with what its columns leave out."""
        return self.folding.state

    # -- starting ----------------------------------------------------------------------------------------------

    def start(self, recorded: int | None = None, lost_after: int | None = None) -> None:
        """Recover, and ask for a full list if what is left does not make a state.

        Parameters
        ----------
        recorded
            The ledger's last record, if the broker lost later ones; no checkpoint that contains these counts.
        lost_after
            Revision of the newest list before the broker lost what was read; only a newer one, or one that comes behind
            the request, says how the fleet is.
        """
        self._bus.join(EVENTS, GROUP)
        self._recover(recorded)
        if recorded is not None and not self.state.listed:
            pass_over(self.state, recorded)
        if lost_after is not None:
            self.folding.ask_after_loss(lost_after)
        gaps = list(self._reading.gaps())
        self._whole, self.folding.gaps = not gaps, bool(gaps)
        self.catch_up()
        self._whole = True
        self.folding.ask_for_what_is_missing(gaps)

    def _recover(self, recorded: int | None) -> None:
        """Begin with the newest checkpoint, if it can be read and contains nothing behind ``recorded``."""
        found = checkpoints.newest(self._bus, schema=SCHEMA)
        if found is None:
            return
        manifest, state = found
        try:
            decoded = Interpreter.decode(state, self._most)
            if recorded is not None and decoded.snapshot.decided > recorded:
                raise StateRefused(f"expected no decision behind {recorded}, found {decoded.snapshot.decided}")
        except StateRefused as refusal:
            log.warning("checkpoint %s cannot be read: %s", manifest.entry, refusal)
            return
        self.folding.interpreter = decoded
        self._reading.begin_at(manifest.covers)
        self._checkpoints.follow(manifest)
        log.info("recovered from checkpoint %s, revision %d", manifest.entry, self.snapshot.revision)

    # -- reading -----------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Fold what the streams hold now. What comes meanwhile is left: it may come faster than it is folded."""
        ends = self._reading.ends()
        while not self._reading.has_reached(ends) and self._turn():
            pass

    def poll(self, block_ms: int = 0) -> bool:
        """Fold new entries, waiting up to ``block_ms`` milliseconds for an event; whether the state has changed."""
        log, many = self.state.log, self.state.log.count
        self._turn(block_ms)
        self.folding.repeat_request()
        self._end_checkpoint()
        self._note()
        return self.state.log is not log or log.count != many

    def look_for_loss(self) -> None:
        """Notice that the broker has lost what was read already, such as one that begins anew with an empty memory.

        Or what came since the last time and was not read, because it was trimmed or deleted by hand.
        """
        skipped = self._reading.skipped()
        if skipped or (self.state.listed and self._reading.missed()):
            self.overtaken, self.lost = True, skipped or self._reading.lost()

    def _turn(self, block_ms: int = 0) -> bool:
        """Fold new entries; returns whether there were any."""
        entries = self._reading.next(block_ms)
        if not entries:
            return False
        # If entries are known to be missing, a list was asked for.
        if not self._leads and self._whole and self._reading.missed():
            self.overtaken, self.lost = True, self._reading.lost()
            return False
        self._bury(self.folding.fold(entries))
        self._notes.folded(entries)
        self._note()
        self._checkpoints.count(entries)
        if self._leads and self._checkpoints.due:
            self._begin_checkpoint()
            self._end_checkpoint()
        return True

    def _bury(self, refused: Sequence[RefusedMessage]) -> None:
        """Write what was refused to the stream of dead letters; what is there already is not said again."""
        for stream in (EVENTS, DECISIONS):
            letters = [one.letter() for one in refused if one.stream == stream]
            new = self._bus.bury(letters) if letters else 0
            if new:
                for letter in letters:
                    log.warning("refused %s %s: %s", letter.stream, letter.entry, letter.reason)
            if new and self._buried is not None:
                self._buried(stream, new)

    # -- durability --------------------------------------------------------------------------------------------

    def _note(self) -> None:
        if self._leads:
            self._notes.note()

    def checkpoint(self) -> None:
        """Write the state, and wait for that.

        It does nothing while a list is being sent, or before there was one: a recovery must read a list whole.
        """
        self._end_checkpoint(waits=True)
        self._begin_checkpoint()
        self._end_checkpoint(waits=True)

    def _begin_checkpoint(self) -> None:
        if not self.folding.interpreter.listing and self.state.listed:
            encoded = self.folding.interpreter.encode()
            self._checkpoints.begin(encoded, self._reading.at, self.state.decisions.entries())

    def _end_checkpoint(self, *, waits: bool = False) -> None:
        """Write the checkpoint that is under way if it is compressed, or wait for that."""
        covers = self._checkpoints.finish(waits=waits)
        if covers is not None:
            self._notes.forget(covers[EVENTS])
            self.folding.ask_for_fewer_rows()
