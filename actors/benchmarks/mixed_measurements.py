"""Benchmarks of decisions in which more than resources matter, over the same decision without; and of many kinds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from actors.benchmarks.figures import FEW, RUNS, WARM_UP, Figure, NotAvailable, attempt_on, digits, generated_fleet
from actors.benchmarks.peers import decided, opened, told_again
from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec, GeneratedFleet
from actors.fleets.mixed import MIXED, with_amounts
from actors.fleets.starving import DEVICES, starving
from pipeline.cluster.updates.fold import fold
from pipeline.cycle import cycle
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan
from pipeline.policy import Purpose
from pipeline.propose import propose
from pipeline.records import replace

#: Seconds after which a row with a few runs gets no further run.
_LIMIT_S = 10.0
_LEAST_RUNS = 5
#: Nodes on which hundreds of podgroups starve, of how many kinds, and how many tasks elastic ones can do without.
_NODES, _KINDS, _SPARE = 100, 20, 3
#: What a gang has together.
_COMBINED = (
    ("subgroup_shapes",), ("subgroup_shapes", "cards"), ("subgroup_shapes", "affinity"), ("shapes", "cards"),
    ("subgroups", "cards"), ("subgroups", "affinity"),
)  # fmt: skip


def _mixed(name: str) -> Figure:
    """A decision of `decide_10k` where the gang has what the row names; ratios to the plain decision in between.

    ``fleet_ratio``: where something in the fleet has it, and the gang does not. ``reclaim_ratio``: the gang reclaims.
    """
    plain, reclaiming = generated_fleet(10_000, GangSpec()), generated_fleet(10_000, GangSpec(), Purpose.RECLAIM)
    attempts = {
        "plain": attempt_on(plain),
        "fleet": attempt_on(MIXED[name](plain, gang=False)),
        "gang": attempt_on(MIXED[name](plain, gang=True)),
        "reclaim_plain": attempt_on(reclaiming, Purpose.RECLAIM),
        "reclaim": attempt_on(MIXED[name](reclaiming, gang=True), Purpose.RECLAIM),
    }
    spent = _in_turn(attempts)
    p50 = {one: float(np.median(times)) for one, times in spent.items()}
    also = {
        "plain_p50_ms": digits(p50["plain"]),
        "fleet_ratio": digits(p50["fleet"] / p50["plain"]),
        "gang_ratio": digits(p50["gang"] / p50["plain"]),
        "reclaim_p50_ms": digits(p50["reclaim"]),
        "reclaim_ratio": digits(p50["reclaim"] / p50["reclaim_plain"]),
    }
    return Figure(digits(p50["gang"]), digits(np.percentile(spent["gang"], 99)), len(spent["gang"]), also)


def _in_turn(attempts: Mapping[str, Attempt]) -> Mapping[str, list[float]]:
    """Milliseconds of each decision; all of them are made once in each run.

    Raises
    ------
    NotAvailable
        If one of them finds no plan.
    """
    for name, attempt in attempts.items():
        made = propose(attempt)
        if isinstance(made, NoPlan):
            raise NotAvailable(f"{name}: the fleet has no plan for its gang: {made.explanation.reason}")
    spent: dict[str, list[float]] = {name: [] for name in attempts}
    begin = time.perf_counter()
    for run in range(WARM_UP + RUNS):
        if run >= WARM_UP + _LEAST_RUNS and time.perf_counter() - begin > _LIMIT_S:
            break
        for name, attempt in attempts.items():
            before = time.perf_counter()
            propose(attempt)
            spent[name].append((time.perf_counter() - before) * 1e3)
    return {name: times[WARM_UP:] for name, times in spent.items()}


def _combined(profile: str) -> Figure:
    """Decisions of a profile on 1,000 nodes where the gang has several of these things, over the plain decision.

    ``preempt_ratio``, ``reclaim_ratio``: the largest. Under `koordinator` the gang reclaims only if it is plain.
    """
    also, least, policy = dict[str, float | str](), RUNS, load_profile(profile)
    for purpose in (Purpose.PREEMPT, Purpose.RECLAIM)[: 1 if profile == "koordinator" else 2]:
        fleet = generated_fleet(1_000, GangSpec(), purpose)
        fleets = {"plain": fleet, **{" ".join(names): _with(fleet, names) for names in _COMBINED}}
        spent = _in_turn({name: replace(attempt_on(one, purpose), policy=policy) for name, one in fleets.items()})
        p50 = {name: float(np.median(times)) for name, times in spent.items()}
        ratios = {f"{purpose.value} {name}": digits(p50[name] / p50["plain"]) for name in p50 if name != "plain"}
        also |= {f"{purpose.value}_plain_p50_ms": digits(p50["plain"]), **ratios}
        also[f"{purpose.value}_ratio"] = max(ratios.values())
        least = min(least, len(spent["plain"]))
    return Figure(None, None, least, also)


def _waiting(profile: str) -> Figure:
    """A cycle in which 800 podgroups of many kinds starve, and its events.

    Beside it microseconds for each podgroup, of those of one kind, with a launcher, that can do without most of their
    tasks, and of many kinds that are refused, and how many get a plan.
    """
    fleets = {
        "one_kind": starving(_NODES, kinds=1),
        "kinds": starving(_NODES, kinds=_KINDS),
        "launcher": starving(_NODES, kinds=1, launcher=True),
        "elastic": starving(_NODES, kinds=1, spare=_SPARE),
        "refused": starving(_NODES, kinds=_KINDS, refused=True),
    }
    spent, also = dict[str, list[float]](), dict[str, float | str]()
    for name, fleet in fleets.items():
        case = opened(fleet, {"profile": profile, "actions": [Purpose.RECLAIM.value]})
        done, spent[name] = decided(case, time.perf_counter, FEW)
        each = np.median(spent[name]) * 1e3 / (_NODES * DEVICES)
        also |= {f"{name}_each_us": digits(each), f"{name}_plans": len(done.plans)}
    mine = spent["kinds"]
    return Figure(digits(np.median(mine)), digits(np.percentile(mine, 99)), len(mine), also)


def _with(fleet: GeneratedFleet, names: Sequence[str]) -> GeneratedFleet:
    for name in names:
        fleet = MIXED[name](fleet, gang=True)
    return fleet


def _varied() -> Figure:
    """Cycles of two profiles where tasks ask for thousands of different amounts, over those with a few of them.

    Each is of a snapshot that was just folded. ``shapes_1k_ratio``, ``shapes_5k_ratio``: the larger one.
    """
    plain, also, least = generated_fleet(10_000, GangSpec()), dict[str, float | str](), RUNS
    shapes = {"plain": plain, "shapes_1k": with_amounts(plain, 1_000), "shapes_5k": with_amounts(plain, 5_000)}
    for profile in ("default", "kai"):
        policy, spent = load_profile(profile), {name: list[float]() for name in shapes}
        begin = time.perf_counter()
        for run in range(WARM_UP + RUNS):
            if run >= WARM_UP + _LEAST_RUNS and time.perf_counter() - begin > _LIMIT_S:
                break
            for name, fleet in shapes.items():
                snapshot = fold(fleet.snapshot, told_again(fleet.snapshot))
                before = time.perf_counter()
                cycle(snapshot, policy, NOW)
                spent[name].append((time.perf_counter() - before) * 1e3)
        p50 = {name: float(np.median(times[WARM_UP:])) for name, times in spent.items()}
        also |= {f"{profile}_plain_p50_ms": digits(p50["plain"])}
        for name in ("shapes_1k", "shapes_5k"):
            ratio = digits(p50[name] / p50["plain"])
            also |= {f"{profile}_{name}_ratio": ratio, f"{name}_ratio": max(ratio, float(also.get(f"{name}_ratio", 0)))}
        least = min(least, len(spent["plain"]) - WARM_UP)
    return Figure(None, None, least, also)


MIXED_MEASUREMENTS: dict[str, Callable[[], Figure]] = {
    **{f"{name}_10k": partial(_mixed, name) for name in MIXED},
    "varied_10k": _varied,
    **{f"waiting_{profile}_800": partial(_waiting, profile) for profile in ("default", "kai")},
    **{f"combined_{profile}_1k": partial(_combined, profile) for profile in ("default", "kai", "koordinator")},
}
