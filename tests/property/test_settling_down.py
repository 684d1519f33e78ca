"""Under profile `kai` a small cluster settles, and nothing is decided after that.

Within two cycles: what `allocate` would start for others to take is held back, and so is room that evictions left over
and a victim could take back. A victim that takes room from others in its turn needs a third cycle.
"""

import random
from typing import Any

import pytest

from actors.cli.simulate import simulate
from tests.support.depth import sampled

SETTLED, QUIET = 2, 5


def small_cluster(draw: random.Random) -> dict[str, Any]:
    """Two queues on up to three nodes, filled at random with podgroups of which some are elastic; two more wait."""
    nodes = {f"n{at}": draw.choice([2, 4]) for at in range(draw.choice([1, 2, 3]))}
    whole, left, groups = sum(nodes.values()), dict(nodes), []
    for at in range(draw.choice([2, 4, 6])):
        many, each = draw.choice([1, 2, 3]), draw.choice([1, 2])
        places = []
        while len(places) < many and (fitting := [name for name in left if left[name] >= each]):
            places.append(draw.choice(fitting))
            left[places[-1]] -= each
        if places:
            groups.append(podgroup(f"low{at}", draw, len(places), each, places, draw.choice([50, 60])))
    groups += [
        podgroup(f"new{at}", draw, draw.choice([1, 2]), draw.choice([1, 2]), None, draw.choice([60, 75]))
        for at in range(2)
    ]
    share = draw.randint(0, whole)
    deserved = {"a": share, "b": whole - share}
    return {
        "version": 1, "now": 1_700_000_000.0, "policy": {"profile": "kai"},
        "nodes": [
            {"name": name, "allocatable": {"cpu": 64, "memory": "64Gi", "gpu": many, "pods": 64}}
            for name, many in nodes.items()
        ],
        "queues": [{"name": "root", "deserved": {"gpu": whole}}] + [
            {"name": name, "parent": "root", "deserved": {"cpu": "unlimited", "memory": "unlimited", "gpu": many}}
            for name, many in deserved.items()
        ],
        "podgroups": groups,
    }  # fmt: skip


def podgroup(
    name: str, draw: random.Random, many: int, each: int, places: list[str] | None, priority: int
) -> dict[str, Any]:
    tasks = [{"name": f"{name}-{at}", "request": {"gpu": each}} for at in range(many)]
    for task, place in zip(tasks, places or [], strict=False):
        task |= {"status": "Running", "node": place}
    return {
        "name": name, "queue": draw.choice("ab"), "priority": priority, "min_available": draw.randint(1, many),
        "phase": "Running" if places else "Inqueue", "created": float(draw.randint(0, 9)), "tasks": tasks,
        **({"started": 1_699_990_000.0} if places else {}),
    }  # fmt: skip


#: Here a gang was once promised room that it lost again: to a promise of lower priority, or to a victim's queue.
TAKEN_AGAIN = (197, 198, 551, 674, 839)


@pytest.mark.parametrize("seed", [*range(sampled(60)), *TAKEN_AGAIN])
def test_a_cluster_settles_and_nothing_is_taken_after_that(seed: int) -> None:
    result = simulate(small_cluster(random.Random(seed)), cycles=SETTLED + QUIET)
    assert result["error"] is None
    late = result["cycles"][SETTLED:]
    assert [cycle["evictions"] for cycle in late] == [[]] * QUIET
    assert [cycle["bindings"] for cycle in late] == [[]] * QUIET
    started = {one["task"] for cycle in result["cycles"] for one in cycle["bindings"]}
    ended = [one["task"] for cycle in result["cycles"][1:] for one in cycle["evictions"]]
    assert not started & set(ended)
