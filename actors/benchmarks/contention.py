"""Many gangs starve at once: how many get their room each second, and how many plans are refused, by searchers.

The roles are the real ones in this process, and the ledger is in a real broker; only time is modelled. Computing in a
role takes its processor time. Searchers compute side by side, so a search takes as long as that of the busiest one and
a message there and back. The committer works beside the dispatcher: a commit takes the time that it really takes, and
a message; then every process must learn of it. Meanwhile tasks end or start over, so a plan is judged on a fleet that
has changed since its snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np

from actors.broker.bus import Bus
from actors.broker.ledger import Ledger
from actors.columns.name_directory import Additions, Directory
from actors.commit.committer import Committer, TimeLimits
from actors.configuration.settings import TelemetrySettings
from actors.contracts import Batch, CommitResult, Offer, Searched, SnapshotUpdate, dealt
from actors.fleets.generated import NOW, GangSpec, GeneratedFleet, generate
from actors.fleets.prompt import news_of
from actors.observability.telemetry import Telemetry, start
from actors.search.dispatcher import Dispatcher
from actors.search.offers_ahead import Call, OffersAhead
from actors.search.searcher import Searcher
from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, frozen
from pipeline.cluster.orders import dense_rank
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING, SUCCEEDED
from pipeline.cluster.updates.events import Changes
from pipeline.cluster.updates.fold import fold
from pipeline.decision.overlay import outstanding
from pipeline.policy import Policy

#: The fleet, and what each gang needs: 64 devices in one rack of about 128.
NODES, GANG = 2_000, GangSpec(64, 1, "rack")
#: Numbers of gangs that starve at once, numbers of searchers, and how often each pair is run.
GANGS, SEARCHERS, EPISODES = (1, 2, 8, 64), (2, 8, 64), 5
#: A message to a searcher or to the committer, and back; Ray's median for a call.
CALL_S = 0.0012
#: From a decision to a snapshot that contains it: it is read, folded and told, and the dispatcher waits for more news.
NEWS_S = 0.015
#: Mean life of a task in seconds. Half of the tasks that end free their room; the others start over in place.
LIFE_S = 600.0
#: An episode that is not over by then has failed (modelled seconds).
_LIMIT_S = 60.0


class ModelledTime:
    """A clock that advances by the processor time of what was computed, or by a modelled time in its place."""

    def __init__(self) -> None:
        self.now, self._mark = NOW, time.process_time()

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now

    def spend(self) -> None:
        """Advance by the processor time that was used since the last call."""
        self.skip(time.process_time() - self._mark)

    def skip(self, seconds: float) -> None:
        """Advance by ``seconds`` instead of the processor time that was used since the last call."""
        self.now, self._mark = self.now + seconds, time.process_time()


class ModelledSearchers:
    """Implements `contracts.Searchers`: each searcher gets its share, and derives its own totals from the snapshot."""

    def __init__(self, inner: Searcher, count: int, clock: ModelledTime) -> None:
        self._inner, self._count, self._clock = inner, count, clock

    def search(self, snapshot: Snapshot, batches: Sequence[Batch]) -> list[Searched]:
        """See the port."""
        self._clock.spend()
        found, spent = [], [0.0]
        for share in dealt(batches, self._count):
            begun = time.process_time()
            found += self._inner.search(_received(snapshot), [batches[at] for at in share]) if share else []
            spent.append(time.process_time() - begun)
        self._clock.skip(CALL_S + max(spent))
        return found


def _received(snapshot: Snapshot) -> Snapshot:
    """The snapshot as a searcher gets it: totals and index travel with it, and nothing else that follows from it."""
    return replace(snapshot).following(snapshot, NO_ROWS)


@dataclass(frozen=True, slots=True)
class Contended:
    """The result of an episode.

    Attributes
    ----------
    placed
        Gangs that were given their room; all of them unless time ran out.
    refused
        Plans that were judged and refused.
    took_s
        Modelled seconds until the last one was placed.
    """

    gangs: int
    placed: int
    refused: int
    cycles: int
    took_s: float


class _World:
    """The fleet: its current state, and how it changes with time."""

    def __init__(self, snapshot: Snapshot, first_gang: int, seed: int, clock: ModelledTime) -> None:
        self.snapshot, self._clock, self._moved_at = snapshot, clock, clock.now
        self._mine = snapshot.tasks.podgroup >= first_gang
        self._draw = np.random.default_rng(seed)

    @property
    def waiting(self) -> Bools:
        """bool[K]: the tasks of the gangs that have no room yet."""
        return np.asarray(self.snapshot.tasks.nominated[self._mine] == NONE)

    def move(self) -> Snapshot:
        """Let tasks end or start over for the time since the last call; the new state."""
        tasks = self.snapshot.tasks
        running = np.flatnonzero((tasks.status == RUNNING) & ~self._mine)
        many = self._draw.poisson(len(running) * (self._clock.now - self._moved_at) / LIFE_S)
        rows = self._draw.choice(running, min(many, len(running)), replace=False)
        again, self._moved_at = self._draw.random(len(rows)) < 0.5, self._clock.now  # noqa: PLR2004 - half and half
        status, node = np.where(again, RUNNING, SUCCEEDED), np.where(again, tasks.node[rows], NONE)
        news = news_of(self.snapshot, rows, status, node, np.full(len(rows), NONE), self._clock.now)
        news = replace(news, incarnation=frozen(tasks.incarnation[rows] + again, np.int64))
        self.snapshot = fold(self.snapshot, Changes(tasks=news))
        self.snapshot.packed()  # a snapshot is published with its totals and its index; that time is in NEWS_S
        self._clock.skip(0.0)
        return self.snapshot

    def decide(self, answers: Sequence[CommitResult]) -> None:
        """Carry out what was committed."""
        for one in answers:
            if one.statement is not None:
                made = outstanding(one.statement, self.snapshot, one.sequence, self._clock.now).made
                self.snapshot = fold(self.snapshot, Changes(decided=made))


class _ModelledCommitter:
    """Implements `offers_ahead.CommitterCalls`: the committer works beside the dispatcher, on a fleet that moves."""

    def __init__(self, committer: Committer, world: _World, clock: ModelledTime) -> None:
        self._committer, self._world, self._clock = committer, world, clock
        self._last: list[CommitResult] = []
        self.answered: list[CommitResult] = []

    def begin(self, offers: Sequence[Offer]) -> Call:
        """See the port; a call is the time at which it ends."""
        self._clock.spend()
        self._committer.hear(self._world.move())
        begun = time.perf_counter()
        self._last = self._committer.commit(offers)
        ends = self._clock.now + CALL_S + time.perf_counter() - begun
        self._world.decide(self._last)
        self._clock.skip(0.0)
        self.answered += self._last
        return ends

    def ended(self, call: Call) -> bool:
        """See the port."""
        self._clock.spend()
        return self._clock.now >= cast("float", call)

    def answers(self, call: Call) -> list[CommitResult]:
        """See the port."""
        self._clock.spend()
        self._clock.skip(max(0.0, cast("float", call) - self._clock.now))
        return self._last


def episode(
    fleet: GeneratedFleet,
    gangs: int,
    searchers: int,
    *,
    policy: Policy,
    ledger: Ledger,
    bus: Bus,
    telemetry: Telemetry,
    seed: int = 0,
) -> Contended:
    """Let the gangs of a `contended` fleet starve at once, until all have room.

    Parameters
    ----------
    searchers
        How many searchers compute side by side.
    ledger, bus
        The ports of a fleet that has no decision yet.
    """
    clock = ModelledTime()
    world = _World(fleet.snapshot, fleet.gang, seed, clock)
    committer = Committer(
        ledger, bus, policy, named(fleet.snapshot), telemetry,
        owner=f"bench-{gangs}-{searchers}-{seed}", now_s=clock, limits=TimeLimits(lease_ttl_s=3600.0),
    )  # fmt: skip
    committer.lead()
    calls = _ModelledCommitter(committer, world, clock)
    offers = OffersAhead(calls)
    inner = Searcher(policy, telemetry)
    dispatcher = Dispatcher(
        policy, inner, ModelledSearchers(inner, searchers, clock), offers, telemetry, now_s=clock, ahead=offers.ahead
    )
    begun, cycles = clock.now, 0
    while world.waiting.any() and clock.now < begun + _LIMIT_S:
        snapshot = world.move()
        dispatcher.cycle(SnapshotUpdate(snapshot))
        clock.spend()
        clock.skip(NEWS_S)
        cycles += 1
    committer.resign()
    placed = gangs - int(np.ceil(world.waiting.sum() * gangs / len(world.waiting)))
    refused = sum(answer.verdict in ("stale", "conflict") for answer in calls.answered)
    return Contended(gangs, placed, refused, cycles, clock.now - begun - NEWS_S)


def compared(policy: Policy, ports: Callable[[str], tuple[Ledger, Bus]]) -> dict[str, str]:
    """For each pair of numbers of gangs and searchers: gangs placed per second (median), plans refused, cycles.

    Parameters
    ----------
    ports
        Makes ledger and bus for a name of a fleet; every episode has its own fleet.
    """
    telemetry, told = start(TelemetrySettings(), "bench"), {}
    for gangs in GANGS:
        fleet = contended(NODES, gangs, GANG)
        for searchers in SEARCHERS:
            found = []
            for seed in range(EPISODES + 1):
                ledger, bus = ports(f"contention-{gangs}-{searchers}-{seed}")
                found.append(
                    episode(
                        fleet, gangs, searchers,
                        policy=policy, ledger=ledger, bus=bus, telemetry=telemetry, seed=seed,
                    )
                )  # fmt: skip
            told[f"gangs {gangs}, searchers {searchers}"] = _summed(found[1:])  # the first one warms up
    return told


def _summed(found: Sequence[Contended]) -> str:
    rate = np.median([one.placed / one.took_s for one in found])
    refused, placed = sum(one.refused for one in found), sum(one.placed for one in found)
    cycles = sum(one.cycles for one in found) / len(found)
    return f"{rate:.0f}/s, {refused / max(1, refused + placed):.1%} refused, {cycles:.1f} cycles"


def contended(nodes: int, gangs: int, gang: GangSpec) -> GeneratedFleet:
    """A generated fleet of one queue in which ``gangs`` gangs wait; its ``gang`` is the row of the first of them."""
    fleet = generate(nodes, replace(gang, tasks=gang.tasks * gangs), queues=0)
    snapshot, first = fleet.snapshot, fleet.gang
    groups, tasks = snapshot.podgroups, snapshot.tasks
    columns: dict[str, Any] = {}
    for field in fields(groups):
        column = getattr(groups, field.name)
        columns[field.name] = frozen(np.concatenate([column, np.repeat(column[-1:], gangs - 1, axis=0)]), column.dtype)
    minimum, owner = columns["min_available"].copy(), tasks.podgroup.copy()
    minimum[first:] = gang.tasks
    mine = np.flatnonzero(owner == first)
    owner[mine] += np.arange(len(mine)) // gang.tasks
    columns["min_available"] = frozen(minimum, np.int32)
    columns["order"] = frozen(dense_rank(columns["created"], np.arange(len(minimum))), np.int64)
    many = replace(
        snapshot, podgroups=replace(groups, **columns), tasks=replace(tasks, podgroup=frozen(owner, np.int32))
    )
    return GeneratedFleet(many, first)


def named(snapshot: Snapshot) -> Directory:
    """Generated names for all rows of a snapshot."""

    def called(what: str, many: int) -> tuple[str, ...]:
        return tuple(f"{what}-{row}" for row in range(many))

    directory = Directory()
    tasks, podgroups = called("bench/task", len(snapshot.tasks)), called("bench/gang", len(snapshot.podgroups))
    nodes, domains = called("node", len(snapshot.nodes)), called("domain", len(snapshot.topology))
    queues = called("queue", len(snapshot.queues))
    directory.take(Additions(snapshot.epoch, NONE, 0, tasks, 0, podgroups, nodes, queues, domains))
    return directory
