"""Several gangs that starve at once: what a cycle decides holds plan by plan, and no two plans are about one task.

A few of one rank lose no more in sum than one after the other, whether they ask for the same or not, anywhere or in a
rack each. More seeds by

    python -m tests.property.test_several_gangs 0 2000
"""

import random
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest

from actors.cli.simulate import Case, open_case
from pipeline.cycle import Cycle, cycle
from pipeline.decision.price import Price, lost_work, price_of
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.policy import Purpose
from tests.support.dealt_in_turn import defect_in, served
from tests.support.depth import sampled
from tests.support.seeds import compare
from tests.support.small_clusters import REST, podgroup, world

GPU, NOW = "nvidia.com/gpu", 1_000_000.0
#: Under `default` it is compared with one after the other as well.
OTHERS = ("kai", "volcano", "koordinator")
PURPOSES = (Purpose.PREEMPT, Purpose.RECLAIM)


def crowded(
    seed: int, profile: str = "default", purpose: Purpose = Purpose.PREEMPT, *, alike: bool = False, racks: int = 0
) -> dict[str, Any]:
    """Three to eight full nodes of eight devices, and two to four gangs of one rank that wait; or gangs alike.

    With ``racks`` the nodes lie in that many, and each gang needs one.
    """
    rng, reclaims = random.Random(seed), purpose is Purpose.RECLAIM
    nodes = {f"n{at}": 8 for at in range(rng.randint(3, 8))}
    left, whole, podgroups = dict(nodes), 8 * len(nodes), list[dict[str, Any]]()
    for at in range(60):
        size, many = rng.choice([1, 1, 2, 4, 8]), rng.randint(1, 4)
        places = []
        while len(places) < many and (fitting := [name for name in left if left[name] >= size]):
            places.append(rng.choice(fitting))
            left[places[-1]] -= size
        if places:
            queue = rng.choice("acd" if reclaims else "a")
            podgroups.append(_podgroup(f"low{at}", queue, rng.randint(0, 2), places, size))
            podgroups[-1] |= {"min_available": rng.randint(1, len(places)) if rng.random() < 0.3 else len(places)}
            podgroups[-1] |= {"started": NOW - 3600 * rng.expovariate(1 / 4)}
    asked = [(rng.randint(1, max(2, len(nodes) // 2)), rng.choice([1, 2, 4, 8])) for _ in range(rng.randint(2, 4))]
    for at, (many, size) in enumerate(asked[:1] * len(asked) if alike else asked):
        podgroups.append(_podgroup(f"high{at}", "b" if reclaims else "a", 9, [None] * many, size))
        podgroups[-1] |= {"topology": {"required": "rack"}} if racks else {}
    rest = REST if profile == "kai" else {}
    shares = {"a": whole // 8, "c": whole // 8, "d": whole // 8, "b": whole // 2} if reclaims else {"a": whole}
    queues = {name: {"deserved": {GPU: share, **rest}} for name, share in shares.items()}
    policy = {"profile": profile} | ({"actions": [purpose.value]} if profile in ("default", "kai") else {})
    domains = [{"name": f"r{at}", "level": "rack", "nodes": [*nodes][at::racks]} for at in range(racks)]
    made = world({name: {GPU: many} for name, many in nodes.items()}, queues, podgroups, now=NOW, **policy)
    return made | {"topology": {"levels": ["rack"], "domains": domains}}


def _podgroup(name: str, queue: str, priority: int, places: list[str | None], size: int) -> dict[str, Any]:
    said = {"queue": queue, "priority": priority, "min_available": len(places)}
    return podgroup(name, [{GPU: size}] * len(places), places, phase="Running" if places[0] else "Inqueue", **said)


def in_sum(case: Case, done: Cycle) -> Price:
    """The price of all victims of a cycle."""
    gone = np.concatenate([np.zeros(0, np.int64), *(plan.statement.evictions for plan in done.plans)])
    placed = np.concatenate([np.zeros(0, np.int64), *(plan.statement.placed for plan in done.plans)])
    requested = case.snapshot.shapes.request[case.snapshot.tasks.shape[placed]].sum(axis=0)
    rank = None
    if any(plan.statement.purpose is Purpose.RECLAIM for plan in done.plans):
        host = Host(Context(case.snapshot, case.policy, case.now))
        rank = host.price_rank(Purpose.RECLAIM, len(case.snapshot.podgroups) - 1)
    return price_of(case.snapshot, np.sort(gone), requested, lost_work(case.snapshot, case.now), rank, 0)


def defect_of(seed: int) -> str | None:
    """What is wrong with what is decided for one cluster, under any profile; None if nothing is."""
    for purpose in PURPOSES:
        for profile in OTHERS:
            case = open_case(crowded(seed, profile, purpose))
            found = defect_in(case, cycle(case.snapshot, case.policy, case.now))
            if found:
                return f"{profile} {purpose.value}: {found}"
        for alike, racks in product((False, True), (0, 2, 3)):
            case = open_case(crowded(seed, purpose=purpose, alike=alike, racks=racks))
            together, alone = served(case)
            found = worse_than_in_turn(case, together, alone) or defect_in(case, together)
            if found:
                return f"{purpose.value}, {racks} racks: {found}"
    return None


def worse_than_in_turn(case: Case, together: Cycle, alone: Cycle) -> str | None:
    """What a cycle decides worse than one after the other; None for nothing."""
    mine, first = ([plan.statement.preemptor for plan in one.plans] for one in (together, alone))
    left_out, instead = set(first) - set(mine), set(mine) - set(first)
    if left_out and min(left_out) < min(instead, default=len(case.snapshot.podgroups)):  # the first come first
        return f"plans for {mine}, for {first} one after the other"
    if mine == first and in_sum(case, alone) < in_sum(case, together):
        return f"{in_sum(case, together)}, {in_sum(case, alone)} one after the other"
    return None


@pytest.mark.parametrize("seed", [*range(sampled(40)), 820012])
def test_each_plan_holds_after_those_before_it_and_in_sum_no_more_is_lost_than_one_after_the_other(seed: int) -> None:
    """In the last one a plan takes the new place of a task that an earlier one moves, and the rest of its podgroup."""
    assert defect_of(seed) is None


@pytest.mark.parametrize("racks", [0, 3])
def test_in_some_of_the_clusters_less_is_lost_in_sum(racks: int) -> None:
    cases = (open_case(crowded(seed, racks=racks)) for seed in range(20))
    assert any(in_sum(case, one) < in_sum(case, other) for case in cases for one, other in [served(case)])


def test_a_podgroup_that_is_the_cheapest_for_one_gang_is_spared_where_that_is_cheaper_in_sum() -> None:
    """With the same racks; the price was 4.17 while no podgroup was spared."""
    case = open_case(crowded(3003, purpose=Purpose.RECLAIM, racks=3))
    assert in_sum(case, cycle(case.snapshot, case.policy, case.now)).broken == ((0, 3.837939),)


if __name__ == "__main__":
    sys.exit(compare(defect_of, int(sys.argv[1]), int(sys.argv[2])))
