"""Fleets whose tasks ask for many different amounts: what makes no difference to any of them decides nothing.

More seeds by

    python -m tests.property.test_many_shapes 0 1000
"""

import random
import sys
from typing import Any

import pytest

from pipeline.solvers.scenarios.moves import rough_kinds
from tests.support.depth import sampled
from tests.support.fair_shares import GPU, file, group, queue
from tests.support.seeds import compare
from tests.support.simulating import simulate

SEEDS = range(sampled(40))


def fragmented(seed: int, profile: str, wider: int = 1) -> dict[str, Any]:
    """Nodes on which podgroups of several sizes have left room here and there, and a gang that needs nodes cleared."""
    draw = random.Random(seed)
    size, many = draw.choice([8, 16]), draw.randint(3, 6) * wider
    left, fill, groups = [size] * many, draw.uniform(0.6, 0.95), list[dict[str, Any]]()
    while sum(left) > (1 - fill) * size * many and len(groups) < 40 * wider:
        gpus, nodes = draw.choice([1, 2, 3, 4]), list[int]()
        for _ in range(draw.choice([1, 2, 3, 6])):
            open_to = [at for at, free in enumerate(left) if free >= gpus]
            if open_to:
                nodes.append(draw.choice(open_to))
                left[nodes[-1]] -= gpus
        said = {"created": -float(len(groups)), "min_available": max(len(nodes) // draw.choice([1, 2]), 1)}
        one = group(f"g{len(groups)}", draw.choice("ab"), running=len(nodes), gpus=gpus, **said)
        for task, node in zip(one["tasks"], nodes, strict=True):
            task["node"] = f"n{node}"
        groups += [one] if nodes else []
    asks = draw.choice([1, 2, 3])
    groups.append(group("new", "a", waiting=asks, gpus=size // draw.choice([1, 2]), min_available=asks, priority=100))
    queues = [queue("a", size * many // 2), queue("b", size * many // 2)]
    document = file(queues, groups, actions=["reclaim", "consolidation", "preempt"], profile=profile)
    if profile != "kai":
        document["policy"]["actions"] = ["preempt"]
    allocatable = {"cpu": 900, "memory": "900G", "pods": 900, GPU: size}
    return document | {"nodes": [{"name": f"n{at}", "allocatable": allocatable} for at in range(many)]}


def differing(document: dict[str, Any], seed: int) -> dict[str, Any]:
    """The same where each task that runs asks for another amount of memory, of which there is enough everywhere."""
    draw = random.Random(seed)
    for podgroup in document["podgroups"][:-1]:
        for task in podgroup["tasks"]:
            task["request"] = task["request"] | {"memory": f"{draw.randint(500, 1_000)}M"}
    return document


def defect_of(seed: int) -> str | None:
    """What is wrong for one fleet under `kai`; None if nothing is."""
    plain = simulate(fragmented(seed, "kai", wider=8))["cycles"]
    varied = simulate(differing(fragmented(seed, "kai", wider=8), seed))["cycles"]
    return None if plain == varied else "other amounts of what is plentiful make other decisions"


def test_no_other_move_is_made_where_tasks_ask_for_other_amounts_of_what_is_plentiful() -> None:
    wrong = {seed: found for seed in SEEDS if (found := defect_of(seed))}
    assert not wrong


def test_where_all_kinds_are_one_rough_one_the_same_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    fleets = [fragmented(seed, "kai") for seed in SEEDS]
    expected = [simulate(one)["cycles"] for one in fleets]
    assert any(cycle["evictions"] for (cycle,) in expected)
    monkeypatch.setattr(rough_kinds, "MOST", 1)
    assert [simulate(one)["cycles"] for one in fleets] == expected


if __name__ == "__main__":
    sys.exit(compare(defect_of, int(sys.argv[1]), int(sys.argv[2])))
