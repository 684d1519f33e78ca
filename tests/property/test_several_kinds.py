"""Many podgroups of a few kinds that take turns: kind by kind each gets a plan that holds after those before it.

More seeds by

    python -m tests.property.test_several_kinds 0 2000
"""

import random
import sys
from typing import Any

import pytest

from actors.cli.simulate import open_case
from pipeline.policy import Purpose
from tests.support.dealt_in_turn import defect_in, served
from tests.support.depth import sampled
from tests.support.seeds import compare
from tests.support.small_clusters import REST, podgroup, world

GPU, NOW = "nvidia.com/gpu", 1_000_000.0
WAYS = [(profile, purpose) for profile in ("default", "kai") for purpose in (Purpose.PREEMPT, Purpose.RECLAIM)]


def mixed(seed: int, profile: str, purpose: Purpose) -> dict[str, Any]:
    """Full nodes of eight devices, and podgroups of two to four kinds in any order; some have a small task."""
    rng, reclaims = random.Random(seed), purpose is Purpose.RECLAIM
    nodes = {f"n{at}": 8 for at in range(rng.randint(4, 30))}
    left, whole, podgroups = dict(nodes), 8 * len(nodes), list[dict[str, Any]]()
    while any(left.values()):
        size, places = rng.choice([1, 1, 2, 4, 8]), list[str | None]()
        for _ in range(rng.randint(1, 4)):
            if fitting := [name for name in left if left[name] >= size]:
                places.append(rng.choice(fitting))
                left[str(places[-1])] -= size
        if places:
            minimum = rng.randint(1, len(places)) if rng.random() < 0.3 else len(places)
            said = {"priority": rng.randint(0, 2), "started": NOW - 3600 * rng.expovariate(1 / 4)}
            queue, name = rng.choice("acd") if reclaims else "a", f"low{len(podgroups)}"
            said |= {"queue": queue, "phase": "Running", "min_available": minimum}
            podgroups.append(podgroup(name, [{GPU: size}] * len(places), places, **said))
    kinds = [
        [rng.choice([1, 1, 2, 4, 8])] * rng.choice([1, 1, 1, 2, 3]) + [1] * (rng.random() < 0.3)
        for _ in range(rng.randint(2, 4))
    ]
    for at in range(rng.randint(2 * len(kinds), 12 * len(kinds))):
        sizes = rng.choice(kinds)
        said = {"queue": "b" if reclaims else "a", "priority": 9, "phase": "Inqueue", "min_available": len(sizes)}
        podgroups.append(podgroup(f"high{at:02}", [{GPU: size} for size in sizes], **said))
    shares = {"a": whole // 8, "c": whole // 8, "d": whole // 8, "b": whole // 2} if reclaims else {"a": whole}
    rest = REST if profile == "kai" else {}
    queues = {name: {"deserved": {GPU: share, **rest}} for name, share in shares.items()}
    has = {name: {GPU: many} for name, many in nodes.items()}
    return world(has, queues, podgroups, now=NOW, profile=profile, actions=[purpose.value])


def defect_of(seed: int) -> str | None:
    """What is wrong with what is decided for one cluster, and not one after the other; None if nothing is."""
    for profile, purpose in WAYS:
        case = open_case(mixed(seed, profile, purpose))
        together, alone = served(case)
        found = defect_in(case, together)
        if found and defect_in(case, alone) is None:
            return f"{profile} {purpose.value}: {found}"
    return None


@pytest.mark.parametrize("seed", range(sampled(60)))
def test_each_plan_holds_after_those_before_it(seed: int) -> None:
    assert defect_of(seed) is None


@pytest.mark.parametrize(("profile", "purpose"), WAYS)
def test_no_more_podgroups_break_in_sum_than_one_after_the_other(profile: str, purpose: Purpose) -> None:
    """Where the same podgroups get a plan."""
    together, alone = 0, 0
    for seed in range(20):
        some, others = (done.plans for done in served(open_case(mixed(seed, profile, purpose))))
        if {one.statement.preemptor for one in some} == {one.statement.preemptor for one in others}:
            together += sum(plan.price.gangs_broken for plan in some)
            alone += sum(plan.price.gangs_broken for plan in others)
    assert 0 < together < alone


if __name__ == "__main__":
    sys.exit(compare(defect_of, int(sys.argv[1]), int(sys.argv[2])))
