"""Every role in one thread, on streams in memory and a clock that is moved, while a schedule's faults strike.

Two committers stand side by side, each a process of its own that may die, freeze and thaw; one holds the lease. Who is
frozen stays where it is, in the middle of a call, while `meanwhile` lets all others go on.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from actors.broker.bus import EVENTS, BrokerUnreachable, id_order
from actors.broker.checkpoints import newest
from actors.broker.memory_ledger import MemoryLedger
from actors.columns.name_directory import Directory
from actors.commit.committer import TimeLimits
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings, TelemetrySettings
from actors.contracts import CommitResult, Offer, SnapshotUpdate
from actors.fleets.simulated import SimulatedFleet
from actors.ingestion.known.state import SCHEMA
from actors.ingestion.loop import IngestLoop, Named
from actors.observability.telemetry import start as start_telemetry
from actors.search.batched_search import Spread
from actors.search.dispatcher import Dispatcher
from actors.search.loop import AGAIN_S, FOLDED_WITHIN_S
from actors.search.searcher import Searcher
from pipeline.actions.backoff import Backoff
from pipeline.cluster.snapshot import Snapshot
from pipeline.policy import Policy
from tests.chaos.decision_checks import Decided
from tests.chaos.exported_again import Exports
from tests.chaos.memory_decided import CycleRuns, NotingCommitter
from tests.chaos.memory_faults import BEFALL
from tests.chaos.memory_fleet import Connector, arriving, first_cluster, kept_apart, together
from tests.chaos.memory_ports import Died, FaultyBus, FaultyLedger, FaultySearch, Injector, KeptBus, MachineClock
from tests.chaos.schedule import Fault, Kind, Schedule
from tests.support.assembly import Clock
from tests.support.encoded import encoded
from tests.support.following import Follower

#: A victim that takes longer is given up.
LIMITS = TimeLimits(lease_ttl_s=5.0, eviction_deadline_s=12.0)
_ARRIVALS = 0.3
#: Of so many snapshots it is remembered what they were.
SNAPSHOTS = 4
#: How likely offers that were held back arrive at a turn.
_ARRIVE = 0.15
_TRIES = 3
#: At every eighth state it is compared what a committer has by news alone.
_COMPARED = 8
#: Without spans: nobody reads them here, and they would take a tenth of the time.
_TELEMETRY = start_telemetry(TelemetrySettings(sample_ratio=0.0), "chaos")
_POLICY = replace(load_profile("default"), reservation_ttl_s=25.0)
#: Tasks move, and what is left of a gang is cleared while a schedule lasts.
KAI = replace(load_profile("kai"), reservation_ttl_s=25.0, stale_grace_s=4.0)
#: Gangs that gather, and some that start only with another.
KOORDINATOR = replace(load_profile("koordinator"), reservation_ttl_s=25.0)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the world is built of; a test puts a broken part in its place, to see that it is noticed."""

    ledger: Callable[[KeptBus, Callable[[], float]], Any] = MemoryLedger
    committer: type[NotingCommitter] = NotingCommitter
    dispatcher: type[Dispatcher] = Dispatcher
    bus: type[KeptBus] = KeptBus
    policy: Policy = _POLICY


@dataclass(slots=True)
class Seat:
    """A place where a committer runs: one process after the other."""

    name: str
    committer: NotingCommitter
    directory: Directory
    starts: int = 0
    frozen: bool = False
    behind: int = 0
    said: Named | None = None
    follower: Follower = field(default_factory=lambda: Follower(_COMPARED))


@dataclass(slots=True)
class Noted:
    """What was answered: every verdict by plan, and what the dispatcher was told was accepted; and what was decided."""

    verdicts: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    accepted: dict[str, int] = field(default_factory=dict)
    snapshots: list[tuple[Snapshot, bytes]] = field(default_factory=list)
    together: set[str] = field(default_factory=set)
    decided: list[Decided] = field(default_factory=list)
    cycles: CycleRuns = field(default_factory=CycleRuns)


class World:
    """One run of a schedule."""

    def __init__(self, schedule: Schedule, parts: Parts | None = None) -> None:
        self.schedule, self.parts = schedule, parts if parts is not None else Parts()
        self.draw = random.Random(schedule.seed * 2 + 1)
        self.draw_snapshots = random.Random(schedule.seed)
        self.apart = random.Random(f"{schedule.seed} apart")
        self.exports = Exports(random.Random(f"{schedule.seed} exported"))
        self.clock, self.policy = Clock(), self.parts.policy
        self.broker_clock = MachineClock(self.clock)
        #: Of the machines of both services; the first has the ingestor and the dispatcher that are played.
        self.hosts = {name: MachineClock(self.clock) for name in ("first", "second")}
        self.jumps = random.Random(f"{schedule.seed} jumps")
        self.bus = self.parts.bus("chaos", self.broker_clock)
        self.ledger = self.parts.ledger(self.bus, self.broker_clock)
        self.injector = Injector(self._meanwhile, self.clock)
        gathers = self.policy.profile == KOORDINATOR.profile
        #: Under elastic quota a gang may wait while there is room; without quotas it may not.
        self.bounded = not gathers or bool(schedule.seed % 2)
        fleet = SimulatedFleet(
            first_cluster(self.draw, schedule.racks, quotas=self.bounded), seed=schedule.seed, grace_s=(1.0, 4.0)
        )
        self.connector = Connector(fleet, self.bus, self.clock, self.draw)
        self.settings = Settings(
            fleet="chaos", entries_per_read=schedule.entries_per_read, checkpoint_every_s=schedule.checkpoint_every_s
        )
        self.noted, self.lost, self.copy, self.restored = Noted(), set[str](), dict[str, Any](), False
        self.offered: list[Offer] = []
        self._offers: list[Offer] = []
        self.news: SnapshotUpdate | None = None
        self.ingest: IngestLoop | None = None
        self.ingestor_away = self.losing_answers = self.dispatcher_behind = self._serial = 0
        self._held: list[Offer] = []
        self.holding, self.standing, self._nested = 0, 0, False
        self.seats = [self._seat("first"), self._seat("second")]
        self.dispatcher, self._sequence = self._new_dispatcher(), 0
        self.connector.list_fleet()

    # -- processes that start ----------------------------------------------------------------------------------

    def _seat(self, name: str) -> Seat:
        directory = Directory()
        return Seat(name, self._new_committer(name, 0, directory), directory)

    def _new_committer(self, name: str, starts: int, directory: Directory) -> NotingCommitter:
        made = self.parts.committer(
            FaultyLedger(self.ledger, self.injector, name), FaultyBus(self.bus, self.injector, "committer", name),
            self.policy, directory, _TELEMETRY, owner=f"{name}-{starts}",
            now_s=self.hosts[name], elapsed_s=self.clock, limits=LIMITS,
        )  # fmt: skip
        made.noted = self.noted.decided
        return made

    def _restart(self, seat: Seat) -> None:
        seat.starts, seat.directory, seat.follower = seat.starts + 1, Directory(), Follower(_COMPARED)
        seat.committer = self._new_committer(seat.name, seat.starts, seat.directory)

    def _new_dispatcher(self) -> Dispatcher:
        self.search = FaultySearch(Searcher(self.policy, _TELEMETRY), self.injector)
        self._sequence, self._cycled, self._again_at = 0, -1, math.inf
        self._cycled_ahead_s = self.hosts["first"].ahead_s
        return self.parts.dispatcher(
            self.policy, self.search, self.search, self.commit, _TELEMETRY,
            now_s=self.hosts["first"], backoff=Backoff(seed=self.schedule.seed), spread=Spread(domains=2),
        )  # fmt: skip

    def _start_ingestor(self) -> None:
        found = newest(self.bus, schema=SCHEMA)
        covered = found[0].covers[EVENTS] if found is not None else "0-0"
        there = {entry.id for entry in self.bus.follow(EVENTS, covered, count=100_000)}
        self.lost |= {
            entry.id
            for entry in self.bus.history.get(EVENTS, ())
            if id_order(entry.id) > id_order(covered) and entry.id not in there
        }
        bus = FaultyBus(self.bus, self.injector, "ingestor")
        self.ingest = IngestLoop(
            self.settings, bus, _TELEMETRY, now_s=self.hosts["first"], elapsed_s=self.clock,
            consumer=lambda: f"ingestor-{self.injector.serial()}",
        )  # fmt: skip
        for seat in self.seats:
            seat.said = None

    # -- one turn ----------------------------------------------------------------------------------------------

    def turn(self, seconds: float = 1.0, *, dispatch: bool = True) -> None:
        """Everybody once."""
        self._ingest()
        for seat in self.seats:
            self._at(seat, lambda committer: committer.lead() and committer.tend())
        if dispatch:
            self._cycle()
        if self._held and self.draw.random() < _ARRIVE:
            self._ask(self._held)
            self._held = []
        self.tick()
        if not self.injector.refuses():
            self.connector.turn()
        self.noted.together |= set(together(self.connector.fleet))
        if self.ingest is not None:
            self.exports.note(self.ingest.ingestor.state, self.clock.now)
        self.clock.now += seconds
        self.standing = max(0, self.standing - 1)

    def tick(self) -> None:
        """A moment passes, unless all roles act in the same one."""
        if not self.standing:
            self.clock.now += 0.001

    def _ingest(self) -> None:
        self.tick()
        if self.ingestor_away:
            self.ingestor_away -= 1
            return
        try:
            if self.ingest is None:
                self._start_ingestor()
            assert self.ingest is not None
            last = None
            while (told := self.ingest.turn(block_ms=0)) is not None and self.ingest.snapshot is not last:
                last = self.ingest.snapshot
                self._tell(SnapshotUpdate(last, told))
            if self.ingest.unlisted:
                for seat in self.seats:
                    if not seat.frozen:
                        seat.committer.unlisted()
        except (Died, BrokerUnreachable):  # its loop fails, its process ends
            self.ingest = None

    def _tell(self, news: SnapshotUpdate) -> None:
        assert self.ingest is not None
        if len(self.noted.snapshots) < SNAPSHOTS and self.draw_snapshots.random() < 0.2:
            self.noted.snapshots.append((news.snapshot, encoded(news.snapshot)))
        for seat in self.seats:
            if seat.frozen or seat.behind:
                seat.behind = max(0, seat.behind - 1)
                continue
            known = seat.directory.take(self.ingest.additions(seat.said))
            seat.said = self.ingest.named() if known else None
            if known:
                behind = seat.committer.lost_behind
                seat.committer.hear(seat.follower.take(self.ingest.ingestor.state))
                self.ingest.lost_behind(behind)
        if self.dispatcher_behind:
            self.dispatcher_behind -= 1
        else:
            self.news = news

    def _at(self, seat: Seat, do: Callable[[NotingCommitter], Any]) -> Any:
        """Let a committer do something; None where it froze before, or does not live to tell."""
        self.tick()
        if seat.frozen:
            return None
        try:
            return do(seat.committer)
        except Died:
            self._restart(seat)
        except BrokerUnreachable:
            if self.draw.random() < 0.5:  # the loop's process ends, a call's goes on
                self._restart(seat)
        return None

    def _cycle(self) -> None:
        """A cycle where the dispatcher's loop would run one: after news, or when it is time (see `CycleLoop`)."""
        news = self.news
        if news is None or (news.snapshot.decided < self._sequence and self.clock.now < self._again_at):
            return
        if self._cycled == news.snapshot.revision and not self.due():
            return
        now, backoff, losing = self.hosts["first"](), self.dispatcher._backoff, self.search.losing
        if now < self.dispatcher._cycled_at:
            backoff = backoff.kept(())
        offers = self._offers = list[Offer]()
        try:
            done = self.dispatcher.cycle(news)
        except (Died, BrokerUnreachable):
            self.dispatcher = self._new_dispatcher()
            return
        if self.search.losing == losing:
            self.noted.cycles.note(news, now, backoff, offers)
        self._cycled, self._sequence = news.snapshot.revision, done.sequence
        self._cycled_ahead_s = self.hosts["first"].ahead_s
        pause_s = FOLDED_WITHIN_S if done.sequence else AGAIN_S if done.again else math.inf
        self._again_at = self.clock.now + pause_s

    def due(self, within_s: float = 0.0) -> bool:
        """Whether it is time for a cycle without news."""
        at = self.dispatcher.next_at(self.news.snapshot) if self.news is not None else None
        timer = math.inf if at is None else at - self._cycled_ahead_s  # the wait began with the clock as it was then
        return min(self._again_at, timer) <= self.clock.now + within_s

    # -- offers and answers ------------------------------------------------------------------------------------

    def commit(self, offers: Sequence[Offer]) -> list[CommitResult]:
        """The dispatcher's way to the committer: asked again until there is an answer."""
        self._offers += offers
        self.injector.reach("dispatcher", "commit before")
        answers = [CommitResult(offer.plan_id, "unready") for offer in offers]
        if self.holding:
            self.holding -= 1
            self._held += offers
            return answers
        self.offered = [*self.offered, *offers][-40:]
        for _ in range(_TRIES):
            said = self._ask(offers)
            if said is not None and self.losing_answers:
                self.losing_answers -= 1
            elif said is not None:
                answers = said
                break
        self.injector.reach("dispatcher", "commit after")
        for answer in answers:
            if answer.accepted:
                self.noted.accepted[answer.plan_id] = answer.sequence
        return answers

    def _ask(self, offers: Sequence[Offer]) -> list[CommitResult] | None:
        """Answers of the first seat that judges; None if nobody does."""
        for seat in self.seats:
            answers = self.ask_at(seat, offers)
            if answers is not None and any(answer.verdict != "unready" for answer in answers):
                return answers
        return None

    def ask_at(self, seat: Seat, offers: Sequence[Offer]) -> list[CommitResult] | None:
        def ask(committer: NotingCommitter) -> list[CommitResult]:
            self.injector.reach("committer", "commit asked", seat.name)
            answers = committer.commit(offers)
            for answer in answers:
                if answer.verdict != "unready":
                    self.noted.verdicts.setdefault(answer.plan_id, []).append((answer.verdict, answer.sequence))
            self.injector.reach("committer", "commit answered", seat.name)
            return answers

        answers: list[CommitResult] | None = self._at(seat, ask)
        return answers

    # -- faults ------------------------------------------------------------------------------------------------

    def _meanwhile(self, fault: Fault, process: str) -> None:
        """A process is slow, or frozen until somebody else has taken over and decided things."""
        if fault.kind is Kind.PAUSE or self._nested:
            self.clock.now += fault.lasts * 2.0
            return
        (seat,) = [one for one in self.seats if one.name == process]
        self._nested, seat.frozen = True, True
        busy = fault.step.startswith(("commit", "record"))  # the dispatcher waits for the answer, and asks again
        pending = self.offered[-6:]
        self.clock.now += LIMITS.lease_ttl_s
        for _ in range(2 + fault.lasts):
            self.turn(dispatch=not busy)
            self._ingest()  # the history cannot tell what a committer had not heard of from what it ignored
            if busy and fault.lasts % 2:
                self._ask(pending)
            elif busy:
                self._other_dispatcher()
        self._nested, seat.frozen = False, False

    def _other_dispatcher(self) -> None:
        """The dispatcher was started anew while its predecessor waited."""
        held = self.dispatcher, self.search, self._sequence, self._cycled, self._again_at
        self.dispatcher = self._new_dispatcher()
        self._cycle()
        self.dispatcher, self.search, self._sequence, self._cycled, self._again_at = held

    def begin(self, fault: Fault) -> None:
        """A fault's turn has come."""
        self.injector.struck[fault.kind.name] += 1
        if fault.step:
            self.injector.arm(fault)
        else:
            BEFALL[fault.kind](self, fault)

    def promised(self) -> set[str]:
        """Podgroups that a decision holds room for."""
        owners = {task: one.podgroup for task, one in self.connector.fleet._tasks.items()}
        return {
            owners[task]
            for seat in self.seats
            for held in seat.committer.reservations
            for task in held.tasks
            if task in owners
        }

    # -- the whole run -----------------------------------------------------------------------------------------

    def play(self) -> None:
        """All turns of the schedule."""
        for turn in range(self.schedule.turns):
            for fault in self.schedule.at(turn):
                self.begin(fault)
            if self.draw.random() < _ARRIVALS:
                self._serial += 1
                runs_s = self.draw.choice((3.0, 8.0, None))
                gathers = self.policy.profile == KOORDINATOR.profile
                for one in arriving(self.draw, self._serial, gathers=gathers):
                    whole = kept_apart(one) if self.apart.random() < self.schedule.apart else one
                    self.connector.say(self.connector.fleet.submit(whole, runs_s))
            self.turn()
