"""The ingestor: reads events and our own decisions, folds them, keeps checkpoints. It decides nothing.

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
from collections.abc import Callable, Iterable, Mapping, Sequence

from actors.broker import checkpoints
from actors.broker.bus import DECISIONS, EVENTS, Bus, Entry, id_order
from actors.documents.safe_msgpack import WIRE_LIMITS, WireLimits, whole_number
from actors.documents.state_limits import STATE_LIMITS, StateLimits
from actors.ingestion.by_kind.decision_events import pass_over
from actors.ingestion.checkpointing import Checkpointing, Packs, at_once
from actors.ingestion.fleet_counts import (
    entry_again,
    part_again,
    writer_of,
    wrong_with_entry,
    wrong_with_list,
    wrong_with_writer,
)
from actors.ingestion.group_notes import GROUP, GroupNotes
from actors.ingestion.interpreter import Interpreter
from actors.ingestion.known.other_writers import OtherWriters
from actors.ingestion.known.row_names import RowNames
from actors.ingestion.known.state import SCHEMA, LiveState
from actors.ingestion.list_requests import ListRequests
from actors.ingestion.ordered_reading import OrderedReading
from actors.ingestion.pace import Pace
from actors.protocol.bodies import ResyncRequested
from actors.protocol.envelopes import Message, RefusedMessage, decode_decisions, decode_events
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE
from pipeline.errors import StateRefused

log = logging.getLogger(__name__)

#: Rows of what is gone stay until a list numbers all rows anew. A list is asked for when such rows are more than the
#: others, and more than this number.
SPARE_ROWS = 200_000
#: At most this many trace contexts of events are kept for the next cycle's links.
_LINKS = 64
#: No clocks differ by more than this many seconds: an entry that is further ahead has an id that its writer chose.
AHEAD_S = 86_400.0
_LOST = "the broker has lost what was read of events or decisions"


class Ingestor:
    """One fleet's state owner. Not for several threads at once.

    Parameters
    ----------
    consumer
        This process's name in the group: unlike any other's.
    now_s
        The clock, in seconds since the epoch, to refuse ids that lie ahead. Messages carry their times.
    elapsed_s
        A clock that is never set, in seconds, for pacing; None: ``now_s``.
    limits, most
        Limits of an entry, and of the state.
    buried
        Called with the stream, and the number of its messages that were refused for the first time.
    packs
        Compresses checkpoints.
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
        self._bus, self._now_s, self._limits, self._buried = bus, now_s, limits, buried
        self._elapsed_s = elapsed_s or now_s
        self._pace = pace if pace is not None else Pace()
        self._most = most
        self._interpreter = Interpreter(most=most)
        self._reading = OrderedReading(bus, self._pace.entries, self._pace.read_bytes)
        self._checkpoints = Checkpointing(bus, self._pace, self._elapsed_s, packs)
        self._leads, self._whole = True, False
        self._gaps = False  # entries are missing from what was read, and no list has made up for them yet
        self._notes = GroupNotes(bus, consumer, self._pace.entries, self._elapsed_s)
        self.overtaken = False
        """Entries were lost before they were read: the state stays wrong; begin with the newest checkpoint."""
        self.lost = False
        """Whether the broker has lost what was read here, or what was not read yet: its newest checkpoint, and what
        comes after it, may be of another state."""
        self._links: list[Mapping[str, str]] = []
        self._others = OtherWriters()
        self._requests = ListRequests(bus, consumer, self._elapsed_s)
        self._lost_after: int | None = None
        self._asked_epoch = -1

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
        return self._interpreter.snapshot

    @property
    def state(self) -> LiveState:
        """The newest state, with what its columns leave out."""
        return self._interpreter.state

    @property
    def names(self) -> RowNames:
        """What the rows of the newest state are called."""
        return self.state.names

    @property
    def writers(self) -> int:
        """How many processes have written events for the fleet lately; there should be one."""
        return 1 + self._others.count(self._elapsed_s())

    @property
    def trace_links(self) -> tuple[Mapping[str, str], ...]:
        """Trace contexts of the entries folded since this was last asked, each once, the newest few."""
        links, self._links = tuple(self._links), []
        return links

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
        found = checkpoints.newest(self._bus, schema=SCHEMA)
        if found is not None:
            manifest, state = found
            try:
                decoded = Interpreter.decode(state, self._most)
                if recorded is not None and decoded.snapshot.decided > recorded:
                    raise StateRefused(f"expected no decision behind {recorded}, found {decoded.snapshot.decided}")
            except StateRefused as refusal:
                log.warning("checkpoint %s cannot be read: %s", manifest.entry, refusal)
            else:
                self._interpreter = decoded
                self._reading.begin_at(manifest.covers)
                self._checkpoints.follow(manifest)
                log.info("recovered from checkpoint %s, revision %d", manifest.entry, self.snapshot.revision)
        if recorded is not None and not self.state.listed:
            pass_over(self.state, recorded)
        if lost_after is not None and self.list_revision <= lost_after:
            self._lost_after = lost_after
            self._ask_for_list(_LOST)  # first of all: if this process ends, the next one reads it
        gaps = list(self._reading.gaps())
        self._whole, self._gaps = not gaps, bool(gaps)
        while self._turn():
            pass
        self._whole = True
        if gaps:
            self.state.listed = False  # nothing may be decided on what is left
            self._ask_for_list(f"entries are missing from {' and '.join(gaps)}")
        elif self.state.holes:
            self._ask_for_list(f"{self.state.holes} entries of the fleet never came")
        elif self.state.unheard:
            self._ask_for_list(f"{self.state.unheard} entries of another writer were refused")
        elif self._interpreter.listing:
            self._requests.coming(self.list_revision)
        elif not self.state.listed:
            self._ask_for_list("nothing is known yet" if self._lost_after is None else _LOST)

    # -- reading and folding -----------------------------------------------------------------------------------

    def poll(self, block_ms: int = 0) -> bool:
        """Fold new entries, waiting up to ``block_ms`` milliseconds for an event; whether the state has changed."""
        log, many = self.state.log, self.state.log.count
        self._turn(block_ms)
        if not self.state.listed and not self._requests.open:  # another reader has asked
            self._requests.coming(self.list_revision)
        self._end_checkpoint()
        self._note()
        self._requests.repeat(self.list_revision, self._reading.at[EVENTS], self._lost_after)
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
        refused = self._fold(entries)
        for stream in (EVENTS, DECISIONS):
            letters = [one.letter() for one in refused if one.stream == stream]
            new = self._bus.bury(letters) if letters else 0
            if new:
                for letter in letters:
                    log.warning("refused %s %s: %s", letter.stream, letter.entry, letter.reason)
            if new and self._buried is not None:
                self._buried(stream, new)
        self._notes.folded(entries)
        self._note()
        self._checkpoints.count(entries)
        if self._leads and self._checkpoints.due:
            self._begin_checkpoint()
            self._end_checkpoint()
        return True

    def _fold(self, entries: Sequence[Entry]) -> list[RefusedMessage]:
        refused: list[RefusedMessage] = []
        for entry in entries:
            messages, again = self._messages(entry)
            for one in messages:
                if isinstance(one, RefusedMessage):
                    refused.append(one)
                else:
                    self._take(one, again)
            self._reading.at[entry.stream] = entry.id
            if entry.carrier:
                self._links = [*self._links, entry.carrier][-_LINKS:]
        self._interpreter.flush()
        refused += self._interpreter.refused(self._gaps)
        if self._gaps and self._whole and self.state.listed:
            self._gaps = False
            refused += self._interpreter.made_up()
        self._requests.answered(self.list_revision, enough=self.state.whole and not self.state.unheard)
        if self.state.listed:
            self._lost_after = None
        return refused

    def _messages(self, entry: Entry) -> tuple[Iterable[Message | RefusedMessage], bool]:
        """What an entry says, and whether it came before.

        A connector must not choose ids: one that lies ahead would move all later ones.
        """
        if entry.stream == DECISIONS:
            return decode_decisions(entry), False
        ahead_s = id_order(entry.id)[0] / 1_000 - self._now_s()
        if ahead_s > AHEAD_S:
            reason = f"entry: expected an id that the broker has chosen, found one {ahead_s:.0f} s ahead of its time"
            return [RefusedMessage(reason, b"", EVENTS, entry.id)], self._sent_again(entry)
        said = decode_events(entry, self._limits)
        refused = self._of_another(entry, said)
        return ([refused], False) if refused is not None else (said, self._sent_again(entry))

    def _of_another(self, entry: Entry, said: Sequence[Message | RefusedMessage]) -> RefusedMessage | None:
        """The entry, refused, if a second process writes for the fleet. Whichever is right, a list is to come."""
        writer, known = writer_of(entry), self.state.writer
        reason = wrong_with_writer(self._interpreter, writer, said)
        if known not in ("", writer) and writer and not self._requests.open:
            self._requests.coming(self.list_revision)
        if reason is None:
            return None
        self._others.heard(writer, self._elapsed_s())
        return RefusedMessage(reason, entry.fields.get("batch", b""), EVENTS, entry.id)

    def _sent_again(self, entry: Entry) -> bool:
        """Whether an entry came before, by the fleet's number if it has one; a list is asked for if one is missing."""
        number = whole_number(entry.fields.get("sequence", b""))
        if number is None:
            return False
        again = entry_again(self._interpreter, number)
        self._ask_for_list(wrong_with_entry(self._interpreter, number))
        return again

    def _take(self, message: Message, again: bool) -> None:
        if message.kind == "fleet_listed":
            if self._requests.open:
                self._requests.coming(self.list_revision)
            again = again or part_again(self._interpreter, message)
            if not again:
                self._ask_for_list(wrong_with_list(self._interpreter, message))
        elif isinstance(message.body, ResyncRequested):
            self._hear_of_loss(message.body.lost_after)
        self._interpreter.take(message, again=again)

    def _hear_of_loss(self, lost_after: int | None) -> None:
        """A reader has noticed that the broker lost what it had read; this one may have begun with what is left."""
        self._interpreter.flush()
        if lost_after is not None and self.list_revision <= lost_after:
            self.state.listed, self._lost_after = False, lost_after

    def _ask_for_list(self, reason: str | None) -> None:
        if reason is not None:
            self._requests.ask(reason, self.list_revision, self._reading.at[EVENTS], self._lost_after)

    @property
    def list_revision(self) -> int:
        """Revision of the newest list that was taken; -1 before there was one."""
        return self.state.documents.revisions.get("fleet", -1)

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
        if not self._interpreter.listing and self.state.listed:
            encoded = self._interpreter.encode()
            self._checkpoints.begin(encoded, self._reading.at, self.state.decisions.entries())

    def _end_checkpoint(self, *, waits: bool = False) -> None:
        """Write the checkpoint that is under way if it is compressed, or wait for that."""
        covers = self._checkpoints.written(waits=waits)
        if covers is not None:
            self._notes.forget(covers[EVENTS])
            self._ask_for_fewer_rows()

    def _ask_for_fewer_rows(self) -> None:
        """If most rows are of what is gone, ask for a list, once an epoch: it has rows only for what is there."""
        tasks, groups, epoch = self.snapshot.tasks, self.snapshot.podgroups, self.snapshot.epoch
        rows, there = len(tasks) + len(groups), int((tasks.status != GONE).sum() + groups.alive.sum())
        if epoch != self._asked_epoch and rows - there > max(SPARE_ROWS, there):
            self._asked_epoch = epoch
            self._ask_for_list(f"of {rows} rows {rows - there} are of what is gone")
