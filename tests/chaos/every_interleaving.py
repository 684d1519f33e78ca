"""All interleavings in the small: two committers, one ledger, one ingestor and three plans, and what may go wrong.

The product's own code runs between its calls to the broker, and every order of those calls is walked, each state once.
A call that is not answered yet suspends its operation; once there is an answer, the operation is run again from its
beginning with the answers that it had. A fault may strike at any call: lost before it took effect or after, doubled,
its caller dead, or the power of the broker's machine gone.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

from actors.broker.bus import EVENTS, BrokerUnreachable, Entry, id_order
from actors.commit.committer import Committer, TimeLimits
from tests.chaos.small_system import CLOCK, Broker, Calls, Given, Suspended, given, plain

TTL_S = 5.0
LIMITS = TimeLimits(lease_ttl_s=TTL_S, eviction_deadline_s=TTL_S)
#: What may become of a call, besides being answered.
FAULTS = ("is lost", "is not answered", "is doubled", "finds its caller dead", "leaves its caller dead")
#: Id, verdict and sequence of a plan.
Told = tuple[str, str, int]


@dataclass(frozen=True)
class Process:
    """One committer between two calls: as it was when its operation began, and the answers that this one had."""

    name: str
    committer: Committer
    starts: int = 0
    heard: int = -1
    doing: tuple[str, int] | None = None
    begun_at: float = 0.0
    answers: tuple[tuple[float, Any], ...] = ()
    asked: Suspended | None = None

    @cached_property
    def key(self) -> str:
        """What distinguishes it."""
        made = self.committer
        lease, book, state = made._lease, made._book, made._state
        return repr((
            self.starts, self.heard, self.doing, self.begun_at, [(at, plain(said)) for at, said in self.answers],
            lease.held, lease._good_until,
            made._writer.recorded, book.last, tuple(book._reservations), tuple(book.overdue),
            tuple(one.made.seq for one in state._outstanding), state.snapshot is None,
        ))  # fmt: skip


@dataclass(frozen=True)
class World:
    """A state of everything."""

    broker: Broker
    processes: tuple[Process, ...]
    now: float
    faults: int
    expiries: int
    offers: tuple[int, ...]
    folded: tuple[Entry, ...] = ()
    told: frozenset[Told] = frozenset()

    def key(self) -> bytes:
        """What distinguishes it, in few bytes."""
        said = (
            self.broker.key, tuple(one.key for one in self.processes), self.now, self.faults, self.expiries,
            self.offers, len(self.folded), sorted(self.told),
        )  # fmt: skip
        return blake2b(repr(said).encode(), digest_size=16).digest()


@dataclass
class Walk:
    """Every state that can be reached, each once.

    Parameters
    ----------
    faults
        How many strike on one way, at most.
    expiries
        How often a lease's time passes.
    asks
        How often each of the two cycles' plans is offered.
    """

    faults: int = 1
    expiries: int = 1
    asks: int = 1
    broker_class: type[Broker] = Broker
    given: Given = field(default_factory=given)
    states: int = 0
    broken: list[str] = field(default_factory=list)
    #: What was worked out: by a process, which stands beside it so that its id is its own, and what it met.
    _known: dict[tuple[Any, ...], tuple[Process, Process, frozenset[Told]]] = field(default_factory=dict)
    _starts: dict[tuple[str, int], Process] = field(default_factory=dict)

    def run(self, most: float = math.inf) -> Walk:
        """Walk; no more states than ``most``, and no further than the first that is broken."""
        CLOCK.now = self.given.now
        broker = self.broker_class()
        broker.bus._log(EVENTS).last = id_order(self.given.events[-1].id)
        first = World(
            broker, tuple(self._started(name, 0) for name in "ab"), CLOCK.now, self.faults, self.expiries,
            tuple(self.asks for _ in self.given.offers),
        )  # fmt: skip
        if not first.broker.syncs:
            first.broker.synced = self.broker_class()
        seen, open_ = {first.key()}, [(first, ("begins",))]
        while open_ and len(seen) < most and not self.broken:
            world, way = open_.pop()
            for step, after in self._steps(world):
                key = after.key()
                if key not in seen:
                    seen.add(key)
                    self.broken += [f"{one}: {'; '.join((*way, step))}" for one in self._wrong(after)]
                    open_.append((after, (*way, step)))
        self.states = len(seen)
        return self

    # -- what can happen -----------------------------------------------------------------------------------------

    def _steps(self, world: World) -> Iterator[tuple[str, World]]:
        for at, process in enumerate(world.processes):
            if process.asked is not None:
                yield from self._answered(world, at, process, process.asked)
            else:
                yield from self._begun(world, at, process)
        decisions = world.broker.decisions
        if len(world.folded) < len(decisions):
            read = decisions[: len(world.folded) + 1]
            yield "the ingestor folds a decision", replace(world, folded=read, broker=world.broker.copied().answering())
        if world.expiries:
            later = world.now + TTL_S + 1.0
            yield "time passes", replace(world, now=later, expiries=world.expiries - 1)
        if world.faults and world.broker.synced is not None:
            yield "the power is lost", self._without_power(world)

    def _begun(self, world: World, at: int, process: Process) -> Iterator[tuple[str, World]]:
        name = process.name
        yield f"{name} leads", self._doing(world, at, process, "lead")
        if process.committer._book.reservations and process.committer.leads:
            yield f"{name} tends", self._doing(world, at, process, "tend")
        for cycle, left in enumerate(world.offers):
            if left and process.committer.leads:
                offers = tuple(one - (which == cycle) for which, one in enumerate(world.offers))
                yield (
                    f"{name} is asked {cycle}",
                    self._doing(replace(world, offers=offers), at, process, "commit", cycle),
                )
        if process.heard != len(world.folded):
            yield f"{name} hears", _with(world, at, self._hearing(process, world.folded))

    def _answered(self, world: World, at: int, process: Process, asked: Suspended) -> Iterator[tuple[str, World]]:
        said = f"{process.name}'s {asked.name}"
        CLOCK.now = world.now
        broker = world.broker.copied()
        answer = broker.call(asked)
        done = replace(world, broker=broker.copied().answering())
        yield f"{said} is answered", self._going_on(done, at, process, answer)
        if not world.faults:
            return
        unsure, dead = BrokerUnreachable("walked"), self._started(process.name, process.starts + 1)
        less = replace(world, faults=world.faults - 1)
        unsynced = broker.copied()
        unsynced.synced = world.broker.synced or world.broker
        yield f"{said} {FAULTS[0]}", self._going_on(less, at, process, unsure)
        yield f"{said} {FAULTS[1]}", self._going_on(replace(less, broker=unsynced), at, process, unsure)
        twice = broker.copied()
        again = twice.call(asked)
        yield f"{said} {FAULTS[2]}", self._going_on(replace(less, broker=twice.answering()), at, process, again)
        yield f"{said} {FAULTS[3]}", _with(less, at, dead)
        yield f"{said} {FAULTS[4]}", _with(replace(less, broker=unsynced), at, dead)

    def _doing(self, world: World, at: int, process: Process, what: str, cycle: int = 0) -> World:
        """An operation as far as its first call, or to its end."""
        key = id(process), world.now, what, cycle
        return self._gone_on(world, at, key, process, doing=(what, cycle), begun_at=world.now)

    def _going_on(self, world: World, at: int, process: Process, answer: Any) -> World:
        """An operation that has its answer, as far as its next call, or to its end."""
        key = id(process), world.now, plain(answer)
        answers = (*process.answers, (world.now, answer))
        return self._gone_on(world, at, key, process, answers=answers, asked=None)

    def _gone_on(self, world: World, at: int, key: tuple[Any, ...], process: Process, **changed: Any) -> World:
        """What a process does next follows from itself alone; the same one is met in many states of the rest."""
        if key not in self._known:
            self._known[key] = (process, *self._done(replace(process, **changed)))
        _, after, told = self._known[key]
        return replace(world, processes=_among(world, at, after), told=world.told | told)

    def _done(self, process: Process) -> tuple[Process, frozenset[Told]]:
        """A process after the next part of its operation, and what it told the dispatcher."""
        assert process.doing is not None
        what, cycle = process.doing
        committer, told = cloned(process.committer, Calls(process.answers)), frozenset[Told]()
        CLOCK.now = process.begun_at
        try:
            if what == "commit":
                results = committer.commit(self.given.offers[cycle])
                told |= {(one.plan_id, one.verdict, one.sequence) for one in results if one.verdict != "unready"}
            else:
                getattr(committer, what)()
        except Suspended as asked:
            return replace(process, asked=asked), told
        except BrokerUnreachable:
            pass  # the process goes on, and knows that it does not know
        return replace(process, committer=committer, doing=None, begun_at=0.0, answers=(), asked=None), told

    def _hearing(self, process: Process, folded: tuple[Entry, ...]) -> Process:
        """A process that has heard of the newest state."""
        snapshot = self.given.state_after(folded)
        key = id(process), id(snapshot)
        if key not in self._known:
            hears = replace(process, committer=cloned(process.committer, Calls(())), heard=len(folded))
            hears.committer.hear(snapshot)
            self._known[key] = process, hears, frozenset()
        return self._known[key][1]

    def _started(self, name: str, starts: int) -> Process:
        if (name, starts) not in self._starts:
            self._starts[name, starts] = self._new(name, starts)
        return self._starts[name, starts]

    def _new(self, name: str, starts: int) -> Process:
        given = self.given
        committer = Committer(
            Calls(()), Calls(()), given.policy, given.directory, given.telemetry, owner=f"{name}-{starts}",
            now_s=CLOCK, limits=LIMITS,
        )  # type: ignore[arg-type] # it has every method that is called  # fmt: skip
        committer._writer._forget_at = math.inf
        return Process(name, committer, starts)

    def _without_power(self, world: World) -> World:
        """What was not synced is gone, and no call is answered."""
        synced = world.broker.synced
        assert synced is not None
        after = replace(world, broker=synced.copied(), faults=world.faults - 1)
        for at, process in enumerate(world.processes):
            if process.asked is not None:
                after = self._going_on(after, at, process, BrokerUnreachable("the power was lost"))
        return after

    # -- what must hold ------------------------------------------------------------------------------------------

    def _wrong(self, world: World) -> Iterator[str]:
        decisions = world.broker.decisions
        yield from self.given.broken_by(decisions)
        recorded = world.broker.ledger._recorded
        verdicts: dict[str, tuple[str, int]] = {}
        for plan_id, verdict, sequence in sorted(world.told):
            if verdicts.setdefault(plan_id, (verdict, sequence)) != (verdict, sequence):
                yield f"{plan_id} was answered {verdicts[plan_id]} and {verdict, sequence}"
            if verdict == "accepted" and (plan_id not in recorded or recorded[plan_id].revision != sequence):
                yield f"{plan_id} was confirmed as {sequence} and is not recorded"


def _with(world: World, at: int, process: Process) -> World:
    return replace(world, processes=_among(world, at, process))


def _among(world: World, at: int, process: Process) -> tuple[Process, ...]:
    return (*world.processes[:at], process, *world.processes[at + 1 :])


def cloned(committer: Committer, calls: Calls) -> Committer:
    """A committer in the same state, which asks ``calls``."""
    made = copy.copy(committer)
    made._bus = calls  # type: ignore[assignment] # it has every method that is called
    made._lease, made._state, made._book = map(copy.copy, (made._lease, made._state, made._book))
    made._writer = copy.copy(made._writer)
    made._writer._keeper, made._writer._state = made._lease, made._state
    made._writer._ledger = made._lease._ledger = calls  # type: ignore[assignment]
    made._state._overlay = copy.copy(made._state._overlay)
    made._book._reservations, made._book.overdue = dict(made._book._reservations), dict(made._book.overdue)
    made._book.claims = copy.copy(made._book.claims)
    made._book.claims._refusals = dict(made._book.claims._refusals)
    made._book.claims._active = dict(made._book.claims._active)
    return made
