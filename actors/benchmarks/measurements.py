"""What ``clearway bench`` measures: one function a budget, on the generated fleet."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec, GeneratedFleet, generate
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.checkpoint import decode, encode
from pipeline.cluster.tables import SUCCEEDED
from pipeline.cluster.updates.events import CURRENT, EVICTED, Changes, TaskNews
from pipeline.cluster.updates.fold import fold
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan
from pipeline.placement.need import need_of
from pipeline.plugins.extension_points import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of, propose, search_of
from pipeline.solvers.bundles.selection import Selection, select

#: Runs of a figure that takes milliseconds, and of one that takes much longer.
RUNS, FEW = 50, 10
_WARM_UP = 3
_PATIENCE_MS = 20_000.0
#: Random domains that are also solved exactly.
_INSTANCES = 330


class NotAvailable(Exception):
    """The figure cannot be measured, and why."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement.

    Attributes
    ----------
    p50_ms, p99_ms
        None where the figure is not a time.
    runs
        How many runs it comes from.
    also
        Figures of its own, by name.
    """

    p50_ms: float | None
    p99_ms: float | None
    runs: int
    also: Mapping[str, float | int | str] = field(default_factory=dict)


def timed(work: Callable[[], object], runs: int = RUNS, **also: float | str) -> Figure:
    """Median and 99th percentile of ``runs`` runs, after some that warm up; fewer, but ``FEW``, of what is slow."""
    for _ in range(_WARM_UP):
        work()
    spent: list[float] = []
    while len(spent) < FEW or (len(spent) < runs and sum(spent) < _PATIENCE_MS):
        begin = time.perf_counter()
        work()
        spent.append((time.perf_counter() - begin) * 1e3)
    return Figure(_digits(np.median(spent)), _digits(np.percentile(spent, 99)), len(spent), also)


def _digits(value: float | np.floating[Any]) -> float:
    return float(f"{value:.4g}")


@lru_cache(maxsize=4)
def _fleet(nodes: int, gang: GangSpec, purpose: Purpose = Purpose.PREEMPT) -> GeneratedFleet:
    """A fleet of one queue for preempt, of many for reclaim."""
    return generate(nodes, gang, queues=0) if purpose is Purpose.PREEMPT else generate(nodes, gang)


def attempt_on(fleet: GeneratedFleet, purpose: Purpose = Purpose.PREEMPT) -> Attempt:
    """The fleet's gang makes room, under the default profile, in any domain."""
    return Attempt(
        snapshot=fleet.snapshot,
        policy=load_profile("default"),
        purpose=purpose,
        podgroups=(fleet.gang,),
        domains=None,
        now=NOW,
    )


# -- decisions -----------------------------------------------------------------------------------------------------


def _decide(nodes: int, gang: GangSpec, runs: int = RUNS) -> Figure:
    """A whole decision to preempt, on a known snapshot.

    ``fresh_p50_ms``: on one of which nothing was derived yet; ``reclaim_p50_ms``: from 32 other queues.
    """
    attempt = attempt_on(_fleet(nodes, gang))
    made = propose(attempt)
    if isinstance(made, NoPlan):
        raise NotAvailable(f"the generated fleet has no plan for its gang: {made.explanation.reason}")
    fresh = timed(lambda: propose(replace(attempt, snapshot=replace(attempt.snapshot))), FEW)
    figure = timed(lambda: propose(attempt), runs)
    reclaiming = attempt_on(_fleet(nodes, gang, Purpose.RECLAIM), Purpose.RECLAIM)
    reclaim = timed(lambda: propose(reclaiming), FEW)
    also = {
        "threads": 1,
        "tasks": len(attempt.snapshot.tasks),
        "domains": len(made.explanation.tried),
        "victims": made.price.victims,
        "gangs_broken": made.price.gangs_broken,
        "fresh_p50_ms": fresh.p50_ms or 0.0,
        "reclaim_p50_ms": reclaim.p50_ms or 0.0,
    }
    return replace(figure, also=also)


def _polished() -> Figure:
    raise NotAvailable("selections are given back, not polished")


def _optimality() -> Figure:
    """Price of the victims over the proven least, field by field, in sum over random domains.

    ``gangs_ratio`` counts all instances, ``lost_work_ratio`` those in which gangs and priority are the least possible.
    """
    try:
        from actors.benchmarks.optimality import compare
    except ImportError as missing:
        raise NotAvailable(f"the exact solver needs {missing.name}, a development dependency") from missing
    found = [comparison for seed in range(_INSTANCES) if (comparison := compare(seed)) is not None]
    pairs = [(one.chosen, one.best) for one in found if one.best is not None]
    level = [(mine, best) for mine, best in pairs if (mine.gangs, mine.priority) == (best.gangs, best.priority)]
    also = {
        "instances": len(pairs),
        "unsolved": len(found) - len(pairs),
        "gangs_ratio": _digits(sum(mine.gangs for mine, _ in pairs) / max(sum(best.gangs for _, best in pairs), 1)),
        "same_rank": len(level),
        "lost_work_ratio": _digits(
            sum(mine.work for mine, _ in level) / max(sum(best.work for _, best in level), 1e-9)
        ),
    }
    return Figure(None, None, len(pairs), also)


def _growth() -> Figure:
    """Exponent of the time of a decision in the number of tasks, by least squares over three sizes."""
    points = []
    for nodes in (10_000, 50_000, 200_000):
        figure = _decide(nodes, GangSpec(), FEW)
        points.append((float(figure.also["tasks"]), figure.p50_ms or np.nan))
    tasks, spent = np.log(np.array(points, np.float64)).T
    exponent = np.cov(tasks, spent)[0, 1] / np.var(tasks, ddof=1)
    return Figure(None, None, 3 * FEW, {"exponent": _digits(exponent), "nodes": "10000, 50000, 200000"})


def _domain(level: str, gang: GangSpec) -> Figure:
    """Select, give back and place in one domain of a level: the first that takes the gang."""
    attempt = attempt_on(_fleet(10_000, gang))
    snapshot, host = attempt.snapshot, host_of(attempt)
    need = need_of(snapshot, attempt.podgroups)
    preemptor = Preemptor(attempt.podgroups, need.total, attempt.purpose)
    search = search_of(attempt, host, need, host.allowed(need.shapes), preemptor)
    topology = snapshot.topology
    for domain in topology.at_level(snapshot.vocabulary.levels.index(level)):
        found = select(search, int(domain))
        if isinstance(found, Selection):
            nodes = int(topology.stop[domain] - topology.start[domain])
            return timed(partial(select, search, int(domain)), RUNS, nodes=nodes, victims=found.price.victims)
    raise NotAvailable(f"no {level} of the generated fleet takes its gang")


# -- state ---------------------------------------------------------------------------------------------------------


def _fold_10k() -> Figure:
    """10,000 events on a million tasks, half of them ends and half evictions, from columns to a new snapshot."""
    snapshot = _fleet(100_000, GangSpec()).snapshot
    rows = np.random.default_rng(1).permutation(np.flatnonzero(snapshot.tasks.node != NONE))[:10_000]
    half = len(rows) // 2
    news = TaskNews(
        row=frozen(rows, np.int64),
        status=frozen([SUCCEEDED] * half + [EVICTED] * (len(rows) - half), np.uint8),
        node=frozen(np.full(len(rows), NONE), np.int32),
        card=frozen(np.full(len(rows), NONE), np.int32),
        incarnation=frozen(np.full(len(rows), CURRENT), np.int64),
        revision=frozen(snapshot.tasks.revision[rows] + 1, np.int64),
        at=frozen(np.full(len(rows), NOW), np.float64),
    )
    return timed(lambda: fold(snapshot, Changes(tasks=news)), RUNS, tasks=len(snapshot.tasks), events=len(rows))


def _snapshot_1m() -> Figure:
    """A snapshot of a million tasks to bytes; ``decode_p50_ms`` is the way back."""
    snapshot = _fleet(100_000, GangSpec()).snapshot
    data = encode(snapshot)
    back = timed(lambda: decode(data))
    also = {
        "tasks": len(snapshot.tasks),
        "bytes": len(data),
        "decode_p50_ms": back.p50_ms or 0.0,
        "decode_p99_ms": back.p99_ms or 0.0,
    }
    return replace(timed(lambda: encode(snapshot)), also=also)


# -- processes -----------------------------------------------------------------------------------------------------


def _commit_100() -> Figure:
    """A decision of 100 operations recorded in an embedded broker: packed, sent, written, answered."""
    from actors.broker.embedded_broker import EmbeddedBroker
    from actors.broker.ledger import Lease, Record, Recorded
    from actors.broker.redis_client import RedisClient
    from actors.broker.redis_ledger import RedisLedger
    from actors.protocol.envelopes import Outgoing, pack_decision

    with EmbeddedBroker() as broker:
        link = RedisClient(broker.url)
        ledger = RedisLedger(link, "bench")
        lease = ledger.acquire("bench", 600_000)
        if not isinstance(lease, Lease):
            raise NotAvailable(f"the broker's lease is held by {lease.owner}")
        made = 0

        def commit() -> None:
            nonlocal made
            made += 1
            key = f"plan-{made}"
            body = {
                "plan_id": key,
                "epoch": 1,
                "action": "reclaim",
                "evictions": [{"task": f"default/victim-{n}", "incarnation": 1} for n in range(50)],
                "nominations": [{"task": f"default/gang-{n}", "node": f"node-{n}"} for n in range(50)],
            }
            packed = pack_decision(Outgoing("plan_committed", key, made, body))
            record = Record(key, lease.epoch, b"accepted", packed)
            outcome = ledger.commit(record)
            if not isinstance(outcome, Recorded):
                raise NotAvailable(f"the broker answered {outcome}")

        figure = timed(commit, 4 * RUNS, operations=100)
        link.close()
    return figure


def _cold_start() -> Figure:
    """A new process from its start to its first decision, compiled code cached, on 1,000 nodes."""
    code = "from actors import measurements; measurements.first_decision()"
    folder = Path(__file__).resolve().parents[2]

    def start() -> None:
        subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, stdout=subprocess.DEVNULL)

    return timed(start, FEW)


def first_decision() -> None:
    """Decide once on a small fleet, as a process that has just started does."""
    propose(attempt_on(generate(1_000, GangSpec())))


def _contention() -> Figure:
    """Gangs that starve at once: how many get their room a second, and the share of plans refused, by searchers."""
    from actors.benchmarks.contention import EPISODES, NODES, compared
    from actors.broker.embedded_broker import EmbeddedBroker
    from actors.broker.redis_bus import RedisBus
    from actors.broker.redis_client import RedisClient
    from actors.broker.redis_ledger import RedisLedger

    with EmbeddedBroker() as broker:
        link = RedisClient(broker.url)
        found = compared(load_profile("default"), lambda name: (RedisLedger(link, name), RedisBus(link, name)))
        link.close()
    return Figure(None, None, len(found) * EPISODES, {"nodes": NODES, **found})


MEASUREMENTS: dict[str, Callable[[], Figure]] = {
    "decide_10k": lambda: _decide(10_000, GangSpec()),
    "decide_10k_polished": _polished,
    "decide_100k": lambda: _decide(100_000, GangSpec()),
    "decide_200k": lambda: _decide(200_000, GangSpec()),
    "decide_pod_100k": lambda: _decide(100_000, GangSpec(128, 8, "pod")),
    "domain_128": lambda: _domain("block", GangSpec()),
    "domain_1024": lambda: _domain("pod", GangSpec(1024, 1, "pod")),
    "fold_10k": _fold_10k,
    "snapshot_1m": _snapshot_1m,
    "growth": _growth,
    "optimality": _optimality,
    "commit_100": _commit_100,
    "contention": _contention,
    "cold_start": _cold_start,
}
