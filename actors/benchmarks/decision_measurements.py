"""Benchmarks of decisions: one gang on one fleet, in all domains or in one."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np

from actors.benchmarks.figures import (
    FEW,
    RUNS,
    WARM_UP,
    Figure,
    NotAvailable,
    attempt_on,
    digits,
    generated_fleet,
    timed,
)
from actors.benchmarks.state_measurements import ends_of
from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec
from actors.processes.bound import end_with_parent
from pipeline.cluster.arrays import NONE, with_rows
from pipeline.cluster.tables import RUNNING, SUCCEEDED
from pipeline.cluster.updates.events import Changes
from pipeline.cluster.updates.fold import fold
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan
from pipeline.decision.statement import Statement
from pipeline.placement.layout.by_score.gang_allocation import allocate_by_score
from pipeline.placement.need import need_of
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.policy import Purpose
from pipeline.propose import host_of, propose
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.selection import select
from pipeline.solvers.bundles.solver import search_of
from pipeline.solvers.gather.allocation import allocate_by_gathering as gather

#: Number of random instances that are also solved exactly, by how many processes, and how many each takes at once.
_INSTANCES, _PROCESSES, _AT_ONCE = 600, 2, 10
#: A ratio up to this counts as equal to the least.
_NEAR = 1.02
#: Events between one decision and the next.
_NEWS = 1_000
#: Part of the tasks that have ended where a gang is placed in room that is there.
_ENDED = 0.6


def _decide(nodes: int, gang: GangSpec, runs: int = RUNS) -> Figure:
    """A whole decision to preempt on a snapshot seen before; ``reclaim_p50_ms``: to reclaim from 32 queues.

    ``unpolished``: the same where the profile says ``polish = false``.
    """
    attempt = attempt_on(generated_fleet(nodes, gang))
    made = propose(attempt)
    if isinstance(made, NoPlan):
        raise NotAvailable(f"the generated fleet has no plan for its gang: {made.explanation.reason}")
    reclaiming = attempt_on(generated_fleet(nodes, gang, Purpose.RECLAIM), Purpose.RECLAIM)
    figure, reclaim = timed(partial(propose, attempt), runs), timed(partial(propose, reclaiming), FEW)
    less = timed(partial(propose, unpolished(attempt)), runs)
    less_reclaim = timed(partial(propose, unpolished(reclaiming)), FEW)
    also = {
        "threads": 2,
        "tasks": len(attempt.snapshot.tasks),
        "domains": len(made.explanation.tried),
        "victims": made.price.victims,
        "gangs_broken": made.price.gangs_broken,
        "reclaim_p50_ms": reclaim.p50_ms or 0.0,
        "unpolished_p50_ms": less.p50_ms or 0.0,
        "unpolished_p99_ms": less.p99_ms or 0.0,
        "unpolished_reclaim_p50_ms": less_reclaim.p50_ms or 0.0,
    }
    return replace(figure, also=also)


def _refused(nodes: int, gang: GangSpec) -> Figure:
    """A whole decision about a gang that no domain can hold, whatever is evicted: with what stands in its way."""
    attempt = attempt_on(generated_fleet(nodes, gang))
    made = propose(attempt)
    if not isinstance(made, NoPlan):
        raise NotAvailable(f"the generated fleet has a plan for its gang, in domain {made.domain}")
    figure, also = timed(partial(propose, attempt), RUNS), {"obstacles": len(made.explanation.obstacles)}
    return replace(figure, also=also)


def unpolished(attempt: Attempt) -> Attempt:
    """The attempt under a policy that does not polish victims."""
    return replace(attempt, policy=replace(attempt.policy, polish=False))


def _fresh(nodes: int) -> Figure:
    """A decision on a snapshot that has just folded 1,000 events and was published, over one on a snapshot seen before.

    ``sent_ratio``: the same for a snapshot that came from another process. Each is timed right after another decision:
    what folding and copying do to the caches of code and to those of other columns would count for the first alone.
    """
    attempt = attempt_on(generated_fleet(nodes, GangSpec()))
    base = attempt.snapshot
    propose(attempt)
    rows = np.random.default_rng(1).permutation(np.flatnonzero(base.tasks.node != NONE))[: _NEWS * RUNS]
    spent = []
    for some in rows.reshape(RUNS, -1):
        folded = fold(base, Changes(tasks=ends_of(base, some))).packed().opened()
        sent = copy.deepcopy(folded)  # the parts that travel to another process, in memory of their own
        propose(attempt)
        spent.append([_spent(replace(attempt, snapshot=one)) for one in (folded, folded, sent)])
    fresh, seen, moved = np.median(np.array(spent[WARM_UP:]), axis=0)
    also = {"seen_p50_ms": digits(seen), "fresh_ratio": digits(fresh / seen), "sent_ratio": digits(moved / seen)}
    return Figure(digits(fresh), digits(np.percentile([one for one, *_ in spent[WARM_UP:]], 99)), len(spent), also)


def _spent(attempt: Attempt) -> float:
    begin = time.perf_counter()
    propose(attempt)
    return (time.perf_counter() - begin) * 1e3


def _optimality() -> Figure:
    """Price of the victims over the proven least: ratio of the sums over random fleets of five kinds, and spread."""
    try:
        from actors.benchmarks.optimality import KINDS, compare
    except ImportError as missing:
        raise NotAvailable(f"the exact solver needs {missing.name}, a development dependency") from missing
    with ProcessPoolExecutor(_PROCESSES, get_context("spawn"), initializer=end_with_parent) as pool:
        compared = pool.map(compare, range(_INSTANCES), chunksize=_AT_ONCE)
        found = [comparison for comparison in compared if comparison is not None]
    proved = [(one, one.least) for one in found if one.least is not None]
    ratios = [one.chosen / least if least else 1.0 + one.chosen for one, least in proved]
    sums = {
        kind: sum(one.chosen for one, _ in proved if one.kind == kind)
        / max(sum(least for one, least in proved if one.kind == kind), 1e-9)
        for kind in KINDS
    }
    also = {
        "instances": len(proved),
        "unsolved": len(found) - len(proved),
        "unfair": sum(not one.fair for one in found),
        "sum_ratio": digits(sum(one.chosen for one, _ in proved) / max(sum(least for _, least in proved), 1e-9)),
        "mean_ratio": digits(np.mean(ratios)),
        "p95_ratio": digits(np.percentile(ratios, 95)),
        "worst_ratio": digits(max(ratios)),
        "within_2_percent": digits(
            np.mean([one.fair and ratio <= _NEAR for (one, _), ratio in zip(proved, ratios, strict=True)])
        ),
        **{f"sum_ratio {kind}": digits(ratio) for kind, ratio in sums.items()},
    }
    return Figure(None, None, len(proved), also)


def _growth() -> Figure:
    """Exponent of the time of a decision in the number of tasks, by least squares over three sizes."""
    measured = {nodes: _decide(nodes, GangSpec(), FEW) for nodes in (10_000, 50_000, 200_000)}
    points = [(float(one.also["tasks"]), one.p50_ms or np.nan) for one in measured.values()]
    tasks, spent = np.log(np.array(points, np.float64)).T
    exponent = np.cov(tasks, spent)[0, 1] / np.var(tasks, ddof=1)
    told = {f"tasks_{nodes}": one.also["tasks"] for nodes, one in measured.items()}
    told |= {f"p50_ms_{nodes}": one.p50_ms or np.nan for nodes, one in measured.items()}
    return Figure(None, None, len(measured) * FEW, {"exponent": digits(exponent), **told})


def _domain(level: str, gang: GangSpec) -> Figure:
    """Select, reprieve and place in one domain of a level, the first that can take the gang; polished, and not."""
    attempt = attempt_on(generated_fleet(10_000, gang))
    snapshot, host = attempt.snapshot, host_of(attempt)
    need = need_of(snapshot, attempt.podgroups)
    search, rough = search_of(attempt, host, need), search_of(unpolished(attempt), host, need)
    topology = snapshot.topology
    for domain in topology.at_level(snapshot.vocabulary.levels.index(level)):
        found = select(search, int(domain))
        if isinstance(found, Selection):
            nodes = int(topology.stop[domain] - topology.start[domain])
            less = timed(partial(select, rough, int(domain)), RUNS).p50_ms or 0.0
            also = {"nodes": nodes, "victims": found.price.victims, "unpolished_p50_ms": less}
            return replace(timed(partial(select, search, int(domain)), RUNS), also=also)
    raise NotAvailable(f"no {level} of the generated fleet takes its gang")


def _place(nodes: int, gang: GangSpec, profile: str, ended: float, place: Callable[..., Statement | None]) -> Figure:
    """Place the gang that waits, under a profile, after a part of the fleet's tasks have ended."""
    fleet = generated_fleet(nodes, gang)
    tasks = fleet.snapshot.tasks
    runs = np.flatnonzero(tasks.status == RUNNING)
    gone = runs[np.random.default_rng(1).random(len(runs)) < ended]
    snapshot = replace(fleet.snapshot, tasks=replace(tasks, status=with_rows(tasks.status, gone, SUCCEEDED)))
    placed = partial(place, Host(Context(snapshot, load_profile(profile), NOW)), (fleet.gang,), "allocate")
    if (made := placed()) is None:
        raise NotAvailable(f"no {gang.level} of the generated fleet takes its gang")
    return timed(placed, RUNS, nodes=nodes, tasks=len(made.bound))


DECISION_MEASUREMENTS: dict[str, Callable[[], Figure]] = {
    "decide_10k": lambda: _decide(10_000, GangSpec()),
    "decide_100k": lambda: _decide(100_000, GangSpec()),
    "decide_200k": lambda: _decide(200_000, GangSpec()),
    "refused_10k": lambda: _refused(10_000, GangSpec(512, 8, "rack")),
    "decide_pod_100k": lambda: _decide(100_000, GangSpec(128, 8, "pod")),
    "domain_128": lambda: _domain("block", GangSpec()),
    "domain_1024": lambda: _domain("pod", GangSpec(1024, 1, "pod")),
    "allocate_10k": lambda: _place(10_000, GangSpec(), "default", _ENDED, allocate_by_score),
    "gather_100k": lambda: _place(100_000, GangSpec(1024, 1, "pod"), "koordinator", 1.0, gather),
    "fresh_10k": lambda: _fresh(10_000),
    "fresh_100k": lambda: _fresh(100_000),
    "growth": _growth,
    "optimality": _optimality,
}
