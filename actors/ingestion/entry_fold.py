"""Entries of both streams, folded one after the other; where they show that news is missing, a list is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from actors.broker.bus import DECISIONS, EVENTS, Entry, id_order
from actors.documents.safe_msgpack import WIRE_LIMITS, WireLimits, whole_number
from actors.documents.state_limits import STATE_LIMITS, StateLimits
from actors.ingestion.fleet_counts import (
    entry_again,
    part_again,
    writer_of,
    wrong_with_entry,
    wrong_with_list,
    wrong_with_writer,
)
from actors.ingestion.interpreter import Interpreter
from actors.ingestion.known.other_writers import OtherWriters
from actors.ingestion.known.state import LiveState
from actors.ingestion.list_requests import ListRequests
from actors.protocol.bodies import ResyncRequested
from actors.protocol.envelopes import Message, RefusedMessage, decode_decisions, decode_events
from pipeline.cluster.tables import GONE

#: Rows of what is gone stay until a list numbers all rows anew. A list is asked for when such rows are more than the
#: others, and more than this number.
SPARE_ROWS = 200_000
#: At most this many trace contexts of events are kept for the next cycle's links.
_LINKS = 64
#: No clocks differ by more than this many seconds: an entry that is further ahead has an id that its writer chose.
AHEAD_S = 86_400.0
_LOST = "the broker has lost what was read of events or decisions"


class EntryFold:
    """What entries make of the state, and the list that the fleet owes. Not for several threads at once.

    Parameters
    ----------
    requests
        Asks for lists.
    at
        By stream, the last entry that is folded; it is kept up to date here.
    now_s
        The clock, in seconds since the epoch, to refuse ids that lie ahead. Messages carry their times.
    elapsed_s
        A clock that is never set, in seconds.
    limits, most
        Limits of an entry, and of the state.

    Attributes
    ----------
    interpreter
        Holds the state.
    gaps
        Whether entries are missing from what was read, and no list has made up for them yet.
    """

    def __init__(
        self,
        requests: ListRequests,
        at: dict[str, str],
        *,
        now_s: Callable[[], float],
        elapsed_s: Callable[[], float],
        limits: WireLimits = WIRE_LIMITS,
        most: StateLimits = STATE_LIMITS,
    ) -> None:
        self._requests, self._at, self._now_s, self._elapsed_s = requests, at, now_s, elapsed_s
        self._limits = limits
        self.interpreter = Interpreter(most=most)
        self.gaps = self._list_ends_gaps = False
        self._links: list[Mapping[str, str]] = []
        self._others = OtherWriters()
        self._lost_after: int | None = None
        self._asked_epoch = -1

    @property
    def state(self) -> LiveState:
        """The newest state, with what its columns leave out."""
        return self.interpreter.state

    @property
    def list_revision(self) -> int:
        """Revision of the newest list that was taken; -1 before there was one."""
        return self.state.documents.revisions.get("fleet", -1)

    @property
    def writers(self) -> int:
        """How many processes have written events for the fleet lately; there should be one."""
        return 1 + self._others.count(self._elapsed_s())

    @property
    def trace_links(self) -> tuple[Mapping[str, str], ...]:
        """Trace contexts of the entries folded since this was last asked, each once, the newest few."""
        links, self._links = tuple(self._links), []
        return links

    # -- folding -----------------------------------------------------------------------------------------------

    def fold(self, entries: Sequence[Entry]) -> list[RefusedMessage]:
        """Fold entries; returns what they say that is refused."""
        refused: list[RefusedMessage] = []
        for entry in entries:
            messages, again = self._messages(entry)
            for one in messages:
                if isinstance(one, RefusedMessage):
                    refused.append(one)
                else:
                    self._take(one, again)
            self._at[entry.stream] = entry.id
            if entry.carrier:
                self._links = [*self._links, entry.carrier][-_LINKS:]
        self.interpreter.flush()
        refused += self.interpreter.refused(self.gaps)
        if self._list_ends_gaps and self.state.listed:
            self.gaps = self._list_ends_gaps = False
            refused += self.interpreter.made_up()
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
        reason = wrong_with_writer(self.interpreter, writer, said)
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
        again = entry_again(self.interpreter, number)
        self._ask(wrong_with_entry(self.interpreter, number))
        return again

    def _take(self, message: Message, again: bool) -> None:
        if message.kind == "fleet_listed":
            if self._requests.open:
                self._requests.coming(self.list_revision)
            again = again or part_again(self.interpreter, message)
            if not again:
                self._ask(wrong_with_list(self.interpreter, message))
        elif isinstance(message.body, ResyncRequested):
            self._hear_of_loss(message.body.lost_after)
        self.interpreter.take(message, again=again)

    def _hear_of_loss(self, lost_after: int | None) -> None:
        """A reader has noticed that the broker lost what it had read; this one may have begun with what is left."""
        self.interpreter.flush()
        if lost_after is not None and self.list_revision <= lost_after:
            self.state.listed, self._lost_after = False, lost_after

    # -- asking for lists --------------------------------------------------------------------------------------

    def _ask(self, reason: str | None) -> None:
        if reason is not None:
            self._requests.ask(reason, self.list_revision, self._at[EVENTS], self._lost_after)

    def repeat_request(self) -> None:
        """Ask again for the list that is owed, if time is over."""
        if not self.state.listed and not self._requests.open:  # another reader has asked
            self._requests.coming(self.list_revision)
        self._requests.repeat(self.list_revision, self._at[EVENTS], self._lost_after)

    def ask_after_loss(self, lost_after: int) -> None:
        """Ask, if the state is none that was listed behind revision ``lost_after``: the broker has lost what was read.

        This comes first of all, so that the next process reads it if this one ends.
        """
        if self.list_revision <= lost_after:
            self._lost_after = lost_after
            self._ask(_LOST)

    def ask_for_what_is_missing(self, gaps: Sequence[str]) -> None:
        """Ask, if what a start found makes no state; ``gaps``: streams with entries that were trimmed unread."""
        state = self.state
        if gaps:
            self._list_ends_gaps = True
            state.listed = False  # nothing may be decided on what is left
            self._ask(f"entries are missing from {' and '.join(gaps)}")
        elif state.holes:
            self._ask(f"{state.holes} entries of the fleet never came")
        elif state.unheard:
            self._ask(f"{state.unheard} entries of another writer were refused")
        elif self.interpreter.listing:
            self._requests.coming(self.list_revision)
        elif not state.listed:
            self._ask("nothing is known yet" if self._lost_after is None else _LOST)

    def ask_for_fewer_rows(self) -> None:
        """If most rows are of what is gone, ask for a list, once an epoch: it has rows only for what is there."""
        snapshot = self.state.snapshot
        tasks, groups, epoch = snapshot.tasks, snapshot.podgroups, snapshot.epoch
        rows, there = len(tasks) + len(groups), int((tasks.status != GONE).sum() + groups.alive.sum())
        if epoch != self._asked_epoch and rows - there > max(SPARE_ROWS, there):
            self._asked_epoch = epoch
            self._ask(f"of {rows} rows {rows - there} are of what is gone")
