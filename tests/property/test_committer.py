"""The committer under any interleaving: what it records is what one judge would accept, one decision after the other.

Two committers hear news at their own pace, plans are made on snapshots old and new, and both die, freeze, lose the
lease or the broker's answer at any call. The model is the ledger's order: each accepted plan is judged once more on the
state that its committer had heard of with all decisions before it folded in from the stream, not from anybody's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from actors.broker.bus import DECISIONS, EVENTS, START, BrokerUnreachable
from actors.broker.ledger import Busy, Lease, Record, Recorded, RecordOutcome
from actors.broker.memory_bus import MemoryBus
from actors.broker.memory_ledger import MemoryLedger
from actors.columns.name_directory import Additions, Directory
from actors.commit.committer import Committer, TimeLimits
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings, TelemetrySettings
from actors.contracts import CommitResult, Offer, SnapshotUpdate
from actors.fleets.fleet_tasks import RUNNING
from actors.fleets.simulated import SimulatedFleet
from actors.ingestion.interpreter import Interpreter
from actors.ingestion.loop import IngestLoop
from actors.observability.telemetry import start as start_telemetry
from actors.protocol.bodies import PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import Message, Outgoing, decode_decisions, pack
from actors.search.dispatcher import Dispatcher
from actors.search.searcher import Searcher
from pipeline.actions.backoff import Backoff
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.plan import Plan
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge
from tests.chaos.memory_ports import Died, FaultyBus, FaultyLedger, Injector
from tests.chaos.schedule import Fault, Kind
from tests.support.assembly import Clock, gang, rack_cluster
from tests.support.depth import sampled

LIMITS = TimeLimits(lease_ttl_s=5.0, eviction_deadline_s=6.0)
TELEMETRY = start_telemetry(TelemetrySettings(sample_ratio=0.0), "test")
POLICY = replace(load_profile("default"), reservation_ttl_s=20.0)
STRUCK = st.none() | st.builds(
    Fault,
    kind=st.sampled_from([Kind.KILL, Kind.UNREACHABLE, Kind.FREEZE]),
    turn=st.just(0),
    role=st.just("committer"),
    step=st.sampled_from(
        ["record before", "record after"] * 2
        + ["withdraw before", "withdraw after", "recover before", "acquire after", "renew before", "renew after"]
    ),
    skip=st.integers(0, 1),
)  # fmt: skip
SEAT = st.integers(0, 1)


@dataclass(frozen=True, slots=True)
class Heard:
    """SnapshotUpdate, the names that go with it, and the state behind it as bytes."""

    news: SnapshotUpdate
    names: Additions
    state: bytes


_PLANNED: dict[tuple[bytes, float], list[Offer]] = {}


def planned(heard: Heard, clock: Clock) -> list[Offer]:
    """The offers of a cycle. They follow from the state and the time, so they are made once for all examples."""
    key = blake2b(heard.state, digest_size=16).digest(), clock.now
    if key not in _PLANNED:
        made: list[Offer] = []

        def collect(offers: Sequence[Offer]) -> list[CommitResult]:
            made.extend(offers)
            return [CommitResult(offer.plan_id, "unready") for offer in offers]

        search = Searcher(POLICY, TELEMETRY)
        Dispatcher(POLICY, search, search, collect, TELEMETRY, now_s=clock, backoff=Backoff(seed=1)).cycle(heard.news)
        _PLANNED[key] = made
    return _PLANNED[key]


@dataclass(slots=True)
class Seat:
    """A committer's process, and the last news that it heard of."""

    name: str
    committer: Committer
    directory: Directory
    heard: int = -1
    starts: int = 0
    frozen: bool = False


class Watched:
    """The ledger; whoever records a plan there is checked against the model."""

    def __init__(self, ledger: MemoryLedger, check: Callable[[str, Recorded], None]) -> None:
        self._ledger, self._check = ledger, check

    def acquire(self, owner: str, ttl_ms: int) -> Lease | Busy:
        return self._ledger.acquire(owner, ttl_ms)

    def renew(self, lease: Lease, ttl_ms: int, recorded: int = 0) -> bool:
        return self._ledger.renew(lease, ttl_ms, recorded)

    def release(self, lease: Lease) -> bool:
        return self._ledger.release(lease)

    def forget(self, lease: Lease, *, keep: int) -> int:
        return self._ledger.forget(lease, keep=keep)

    def commit(self, lease: Lease, records: Sequence[Record]) -> list[RecordOutcome]:
        outcomes = self._ledger.commit(lease, records)
        for record, outcome in zip(records, outcomes, strict=False):
            if isinstance(outcome, Recorded) and outcome.entry is not None:
                self._check(record.key, outcome)
        return outcomes


class Interleaved(RuleBasedStateMachine):
    """A fleet of four nodes that is full, gangs that arrive, and two committers."""

    committer_class = Committer

    def __init__(self) -> None:
        super().__init__()
        cluster = rack_cluster(racks=1, nodes=4, devices=4)
        cluster["podgroups"] = [gang(f"low{at}", 1, 2, nodes=[f"n{at // 2}"]) for at in range(8)]
        self.clock = Clock()
        self.bus = MemoryBus("test", self.clock)
        self.ledger = MemoryLedger(self.bus, self.clock)
        self.injector = Injector(self._meanwhile, self.clock)
        self.fleet = SimulatedFleet(cluster, seed=1, grace_s=(1.0, 9.0))
        self.ingest = IngestLoop(Settings(fleet="test", checkpoint_every_s=1e6), self.bus, TELEMETRY, now_s=self.clock)
        self.heard: list[Heard] = []
        self.plans: dict[str, Plan] = {}
        self.offers: list[Offer] = []
        self.verdicts: dict[str, tuple[str, int]] = {}
        self.serial, self.obeyed = 0, START
        self.seats = [self._seat(name) for name in ("first", "second")]
        self.list_fleet()
        self.fold()
        for priority, queue in ((2, "a"), (5, "a"), (3, "b")):
            self.arrive(2, 4 if queue == "a" else 2, priority, queue)
        for seat in (0, 1):
            self.hear(seat, 9)
        self.lead(0, None)

    # -- processes ---------------------------------------------------------------------------------------------

    def _seat(self, name: str, starts: int = 0) -> Seat:
        directory, seat = Directory(), Seat.__new__(Seat)
        watched = Watched(self.ledger, lambda key, outcome: self._check(seat, key, outcome))
        committer = self.committer_class(
            FaultyLedger(watched, self.injector, name), FaultyBus(self.bus, self.injector, "committer", name), POLICY,
            directory, TELEMETRY, owner=f"{name}-{starts}", now_s=self.clock, limits=LIMITS,
        )  # fmt: skip
        seat.__init__(name, committer, directory, starts=starts)  # type: ignore[misc]
        return seat

    def _at(self, at: int, fault: Fault | None, do: Callable[[Committer], Any]) -> Any:
        """Let a committer do something while a fault waits for it; None if it does not live to tell."""
        seat = self.seats[at]
        self.clock.now += 0.001
        if seat.frozen:
            return None
        if fault is not None:
            self.injector.arm(fault)
        try:
            return do(seat.committer)
        except Died:
            self.seats[at] = self._seat(seat.name, seat.starts + 1)
        except BrokerUnreachable:
            pass  # a call fails, and its process goes on
        finally:
            if fault is not None:
                self.injector.disarm()
        return None

    def _meanwhile(self, _fault: Fault, process: str) -> None:
        """One is frozen; the other takes over and judges what there is."""
        at = 0 if process == "first" else 1
        self.seats[at].frozen = True
        self.injector.disarm()
        self.clock.now += LIMITS.lease_ttl_s
        self.lead(1 - at, None)
        self.fold()
        self.hear(1 - at, 99)
        self._ask(1 - at, self.offers[-2:], None)
        self.seats[at].frozen = False

    # -- what happens ------------------------------------------------------------------------------------------

    def say(self, events: list[Outgoing]) -> None:
        for entry in pack(events):
            self.bus.publish(EVENTS, entry)

    @rule(tasks=st.integers(1, 2), gpu=st.sampled_from([2, 4]), priority=st.integers(1, 9), queue=st.sampled_from("ab"))
    def arrive(self, tasks: int, gpu: int, priority: int, queue: str) -> None:
        self.serial += 1
        self.say(self.fleet.submit(gang(f"gang{self.serial}", tasks, gpu, queue=queue, priority=priority), None))
        self.fold()

    def fold(self) -> None:
        self.clock.now += 0.001
        while (told := self.ingest.turn(block_ms=0)) is not None:
            state = b"".join(self.ingest.ingestor.folding.interpreter.encode())
            self.heard.append(Heard(SnapshotUpdate(self.ingest.snapshot, told), self.ingest.additions(None), state))

    @rule(at=SEAT, steps=st.integers(1, 3))
    def hear(self, at: int, steps: int) -> None:
        seat = self.seats[at]
        if seat.heard < 0:  # who starts is told the newest
            seat.heard = max(-1, len(self.heard) - 2)
        for heard in self.heard[seat.heard + 1 : seat.heard + 1 + steps]:
            seat.heard += 1
            assert seat.directory.take(heard.names)
            seat.committer.hear(heard.news.snapshot)

    @rule(back=st.integers(0, 3))
    def plan(self, back: int) -> None:
        """Somebody plans on one of the last snapshots."""
        offers = planned(self.heard[max(0, len(self.heard) - 1 - back)], self.clock)
        self.offers += [offer for offer in offers if offer.plan_id not in self.plans]
        self.plans |= {offer.plan_id: offer.plan for offer in offers}

    @rule(
        back=st.integers(0, 3), some=st.lists(st.integers(-9, -1), min_size=2, max_size=5), fault=STRUCK,
        hears=st.booleans(),
    )  # fmt: skip
    def offer(self, back: int, some: list[int], fault: Fault | None, hears: bool) -> None:
        """Plans are made and offered, new ones and old ones; who got no answer asks again."""
        self.plan(back)
        asked = [self.offers[max(one, -len(self.offers))] for one in some if self.offers]
        for at in (0, 1):
            if not self._ask(at, asked, fault):
                self._ask(at, asked, None)
            if hears:
                self.hear(at, 1)
                self._ask(at, asked[::-1], None)

    def _ask(self, at: int, asked: list[Offer], fault: Fault | None) -> bool:
        answers = self._at(at, fault, lambda committer: committer.commit(asked))
        for answer in answers or ():
            if answer.verdict != "unready":
                said = answer.verdict, answer.sequence
                assert self.verdicts.setdefault(answer.plan_id, said) == said, "a retry got another verdict"
        return answers is not None

    @rule(at=SEAT, fault=STRUCK)
    def lead(self, at: int, fault: Fault | None) -> None:
        self._at(at, fault, lambda committer: committer.lead() and committer.tend())

    @rule(seconds=st.sampled_from([0.0, 0.5, 2.0, 6.0]), ends=st.integers(0, 20), listed=st.booleans())
    def live(self, seconds: float, ends: int, listed: bool) -> None:
        """The fleet obeys, time passes, now and then a task ends by itself, and everything is told anew."""
        self.clock.now += 0.001
        for entry in self.bus.follow(DECISIONS, self.obeyed, count=1_000):
            self.obeyed = entry.id
            for message in decode_decisions(entry):
                assert isinstance(message, Message)
                self.say(self.fleet.obey(message, self.clock.now))
        self.clock.now += seconds
        self.say(self.fleet.step(self.clock.now))
        running = [task for task in self.fleet._tasks.values() if task.status == RUNNING]
        if ends < len(running):
            self.say([self.fleet._end(running[ends], "Failed", replaced=True)])
        if listed and ends % 5 == 0:
            self.list_fleet()

    def list_fleet(self) -> None:
        self.say(self.fleet.listing(f"list-{self.clock.now}"))

    # -- the model ---------------------------------------------------------------------------------------------

    def _recorded(self) -> list[Message]:
        entries = self.bus.follow(DECISIONS, START, count=10_000)
        said = [one for entry in entries for one in decode_decisions(entry)]
        assert all(isinstance(one, Message) for one in said)
        return [one for one in said if isinstance(one, Message) and one.kind != "resync_requested"]

    def _check(self, seat: Seat, key: str, outcome: Recorded) -> None:
        """What was just recorded is what the judge accepts after all that was recorded before."""
        *before, last = [one for one in self._recorded() if one.revision <= outcome.revision]
        revisions = [one.revision for one in (*before, last)]
        assert revisions == sorted(set(revisions)), "decisions are not numbered in order"
        self._victims_are_nobody_elses(before, last)
        plan = self.plans.get(key)
        if plan is None:  # a withdrawal, a substitute, a claim
            return
        assert isinstance(last.body, PlanCommitted)
        assert key not in {one.uid for one in before}, "a plan was recorded twice"
        model = Interpreter.decode(self.heard[seat.heard].state)
        for one in before:
            model.take(one)
        model.flush()
        assert model.snapshot.decided == max((one.revision for one in before), default=0)
        verdict = judge(plan, model.snapshot, POLICY, self.clock())
        assert isinstance(verdict, Accepted), f"recorded as {outcome.revision}, and the model says {verdict}"
        names, made = model.state.names, verdict.statement
        assert [one.task for one in last.body.evictions] == [names.tasks[row] for row in made.evictions]
        assert [(one.task, one.node) for one in last.body.nominations] == [
            (names.tasks[task], names.nodes[node] if node != NONE else None)
            for task, node in zip(made.nominated, made.nominated_node, strict=True)
        ]
        assert [one.task for one in last.body.bindings] == [names.tasks[row] for row in made.bound]

    def _victims_are_nobody_elses(self, before: list[Message], last: Message) -> None:
        standing: dict[tuple[str, int], str] = {}
        for one in (*before, last):
            gone = one.body.plan_id if isinstance(one.body, PlanWithdrawn) else getattr(one.body, "replaces", None)
            standing = {victim: plan for victim, plan in standing.items() if plan != gone}
            for victim in one.body.evictions if isinstance(one.body, PlanCommitted) else ():
                assert (victim.task, victim.incarnation) not in standing, "two plans that stand share a victim"
                standing[victim.task, victim.incarnation] = one.uid


class UnrecoveredCommitter(Committer):
    """Takes the lease and goes on as if nobody had decided anything before."""

    def _begin(self, lease: Lease) -> None:
        self._state.forget()
        self._recorded = lease.recorded
        self._book.last = 0


class CarelessCommitter(Committer):
    """Forgets what it promised as soon as it hears anything, whether or not that contains it."""

    def hear(self, snapshot: Snapshot) -> None:
        super().hear(snapshot)
        self._state.forget()


LONG = settings(max_examples=sampled(25), stateful_step_count=40, suppress_health_check=list(HealthCheck))


def test_any_interleaving_is_a_serial_order() -> None:
    run_state_machine_as_test(Interleaved, settings=LONG)


@pytest.mark.parametrize(("wrong", "steps", "known"), [(UnrecoveredCommitter, 40, 1), (CarelessCommitter, 15, 22)])
def test_a_committer_that_forgets_is_caught(wrong: type[Committer], steps: int, known: int) -> None:
    """As many runs as it takes, which are few from the known seed on.

    How long they should be to find it soon depends on what is forgotten.
    """
    machine = seed(known)(type("Wrong", (Interleaved,), {"committer_class": wrong}))
    once = settings(
        LONG, max_examples=1_000, stateful_step_count=steps, phases=[Phase.generate], report_multiple_bugs=False
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=once)
