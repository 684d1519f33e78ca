"""Spreads batches over searchers that may be slow, stall, die or join; each of these costs at most one retry.

A searcher that does not answer in the time that its share should take, or has died, is left out until it answers again,
and its share goes to another searcher, once. So a stalled searcher is waited for once, not in every later cycle. The
time of a share is learned from the answers: the most seconds that a cell took lately. Backup requests that bound the
time of the slowest are from Dean and Barroso, "The Tail at Scale" (2013); so is leaving the slow one out until a probe
returns.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from actors.contracts import Batch, Searched, dealt
from actors.observability.traces import EVENT_LATE, EVENT_LOST
from pipeline.cluster.snapshot import Snapshot

log = logging.getLogger(__name__)

#: A share goes to at most this many searchers: the first and one more.
_TRIES = 2
#: This part of the pace learned so far remains after another answer.
_MEMORY = 0.9

#: Notes an event, and the searcher that it happened to.
Note: TypeAlias = Callable[[str, str], object]
#: Something asked of a searcher that has not been answered yet.
Call: TypeAlias = Hashable


class SearcherPool(Protocol):
    """The searchers, by name, as calls that begin now and end at some time."""

    def ask(self, searcher: str, snapshot: Snapshot, batches: Sequence[Batch]) -> Call:
        """Have some batches searched."""
        ...

    def probe(self, searcher: str) -> Call:
        """A call that returns once the searcher is there and has nothing else to do."""
        ...

    def ended(self, calls: Sequence[Call], limit_s: float) -> Collection[Call]:
        """The calls that ended, well or not, as soon as there is one, or after ``limit_s``."""
        ...

    def answer(self, call: Call) -> Sequence[Searched] | None:
        """The result of a call that ended; None if its searcher was lost. For a probe, an empty sequence."""
        ...

    def replace(self, searcher: str) -> None:
        """End a searcher that does not come back by itself; another one takes its name."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait for a share, in seconds.

    Attributes
    ----------
    least_s, most_s
        Lower and upper limit; `most_s` is used as long as the pace is not known.
    slack
        Factor on the time that the share should take.
    replace_s
        A searcher that was left out for this long is ended and replaced.
    """

    least_s: float = 1.0
    most_s: float = 20.0
    slack: float = 8.0
    replace_s: float = 60.0


@dataclass(slots=True)
class _Asked:
    """A call in progress: the searcher, the number of its share, the start, and whether it is late."""

    searcher: str
    share: int
    since_s: float
    late: bool = False


@dataclass(slots=True)
class _Round:
    """One search: shares by number, calls in progress, and idle searchers."""

    shares: list[list[int]]
    cells: list[int]
    idle: list[str]
    asked: dict[Call, _Asked] = field(default_factory=dict)
    found: dict[int, Sequence[Searched]] = field(default_factory=dict)
    tries: dict[int, int] = field(default_factory=dict)

    def open(self) -> list[int]:
        """Shares that no searcher works on in time."""
        worked_on = {one.share for one in self.asked.values() if not one.late}
        return [share for share in range(len(self.shares)) if share not in self.found and share not in worked_on]

    @property
    def hopeful(self) -> bool:
        """Whether a searcher that is not late still works on a share that has no answer."""
        return any(not one.late and one.share not in self.found for one in self.asked.values())


def _unnoted(event: str, searcher: str) -> None:
    """For a caller that notes nothing."""


class Scatter:
    """Implements `contracts.Searchers` elsewhere. Searches one at a time; `enlist` comes from any thread.

    Parameters
    ----------
    note
        Called in the thread that searches, when a searcher is lost or late.
    """

    def __init__(
        self,
        pool: SearcherPool,
        limits: Limits | None = None,
        now_s: Callable[[], float] = time.monotonic,
        *,
        note: Note = _unnoted,
    ) -> None:
        self._pool, self._limits, self._now_s = pool, limits if limits is not None else Limits(), now_s
        self._note = note
        self._lock = threading.Lock()
        self._present: list[str] = []
        self._out: dict[str, tuple[Call, float]] = {}
        self._pace_s: float | None = None

    def enlist(self, names: Iterable[str]) -> None:
        """Set the searchers. A new one gets shares once it answers; one that is not listed gets none any more."""
        with self._lock:
            wanted = set(names)
            self._present = [name for name in self._present if name in wanted]
            self._out = {name: out for name, out in self._out.items() if name in wanted}
            for name in sorted(wanted - self._out.keys() - set(self._present)):
                self._leave_out(name, self._pool.probe(name))

    def search(self, snapshot: Snapshot, batches: Sequence[Batch]) -> list[Searched]:
        """See the port."""
        answers = [Searched(batch.preemptor, None) for batch in batches]
        with self._lock:
            self._welcome()
            if not self._present:
                log.warning("no searcher answers; %d batches wait", len(batches))
                return answers
            shares = [share for share in dealt(batches, len(self._present)) if share]
            cells = [sum(batches[position].cells for position in share) for share in shares]
            at_work = _Round(shares, cells, list(self._present))
            self._work(at_work, snapshot, batches)
            for call, one in at_work.asked.items():
                self._leave_out(one.searcher, call)
        for number, found in at_work.found.items():
            for position, answer in zip(shares[number], found, strict=True):
                answers[position] = answer
        return answers

    # -- searchers --------------------------------------------------------------------------------------------

    def _leave_out(self, searcher: str, call: Call) -> None:
        if searcher in self._present:
            self._present.remove(searcher)
        self._out[searcher] = (call, self._now_s())

    def _welcome(self) -> None:
        """Use searchers again that have answered; if there is none, wait a little for one."""
        waiting = {call: searcher for searcher, (call, _) in self._out.items()}
        if not waiting:
            return
        limit_s = 0.0 if self._present else self._limits.least_s
        for call in self._pool.ended(list(waiting), limit_s):
            searcher = waiting[call]
            if self._pool.answer(call) is not None:
                del self._out[searcher]
                self._present.append(searcher)
            else:
                self._out[searcher] = (self._pool.probe(searcher), self._out[searcher][1])
        self._present.sort()
        for searcher, (_, since_s) in list(self._out.items()):
            if self._now_s() - since_s > self._limits.replace_s:
                log.warning("%s has not answered for %.0f s; it is replaced", searcher, self._now_s() - since_s)
                self._pool.replace(searcher)
                self._leave_out(searcher, self._pool.probe(searcher))

    # -- one search --------------------------------------------------------------------------------------------

    def _work(self, at_work: _Round, snapshot: Snapshot, batches: Sequence[Batch]) -> None:
        """Run until every share has an answer, or no searcher can give one in time."""
        while len(at_work.found) < len(at_work.shares):
            for share in at_work.open():
                if at_work.idle and at_work.tries.get(share, 0) < _TRIES:
                    at_work.tries[share] = at_work.tries.get(share, 0) + 1
                    searcher = at_work.idle.pop(0)
                    call = self._pool.ask(searcher, snapshot, [batches[at] for at in at_work.shares[share]])
                    at_work.asked[call] = _Asked(searcher, share, self._now_s())
            if not at_work.hopeful:
                return
            for call in self._pool.ended(list(at_work.asked), self._first_limit_s(at_work)):
                self._answered(at_work, call)
            self._look_at_the_clock(at_work)

    def _answered(self, at_work: _Round, call: Call) -> None:
        one = at_work.asked.pop(call)
        found = self._pool.answer(call)
        if found is None:
            log.warning("%s was lost; its share goes to another", one.searcher)
            self._note(EVENT_LOST, one.searcher)
            self._leave_out(one.searcher, self._pool.probe(one.searcher))
            return
        at_work.found.setdefault(one.share, found)
        at_work.idle.append(one.searcher)
        pace_s = (self._now_s() - one.since_s) / max(1, at_work.cells[one.share])
        self._pace_s = pace_s if self._pace_s is None else max(pace_s, _MEMORY * self._pace_s)

    def _limit_s(self, cells: int) -> float:
        """How long a share of this much work may take."""
        most_s = self._limits.most_s
        expected_s = most_s if self._pace_s is None else self._limits.slack * self._pace_s * cells
        return min(most_s, max(self._limits.least_s, expected_s))

    def _first_limit_s(self, at_work: _Round) -> float:
        """Seconds until the first of them is late."""
        ends = [one.since_s + self._limit_s(at_work.cells[one.share]) for one in at_work.asked.values() if not one.late]
        return max(0.0, min(ends) - self._now_s())

    def _look_at_the_clock(self, at_work: _Round) -> None:
        now_s = self._now_s()
        for one in at_work.asked.values():
            if not one.late and now_s - one.since_s >= self._limit_s(at_work.cells[one.share]):
                one.late = True
                log.warning("%s is late; its share goes to another, and it is left out until it answers", one.searcher)
                self._note(EVENT_LATE, one.searcher)
