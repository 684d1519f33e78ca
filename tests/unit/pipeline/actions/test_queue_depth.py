"""How many podgroups of a queue have a turn in one action: the first by order, whatever the order in the file."""

import random
from typing import Any

import pytest

from tests.support.small_clusters import REST, named, played, podgroup, world


def group(name: str, of: str, priority: int, node: str | None = None) -> dict[str, Any]:
    said = {"queue": of, "priority": priority, "preemptible": True, "phase": "Inqueue"}
    return podgroup(name, [{"cpu": 1, "gpu": 1}], node, **said)


def simulated(action: str, depth: int, groups: list[dict[str, Any]], gpus: int) -> dict[str, Any]:
    queues = {name: {"deserved": {**REST, "gpu": "unlimited"}} for name in "ab"}
    policy = {"profile": "kai", "actions": [action], "action_arguments": {action: {"queue_depth": depth}}}
    return played(world({"n": {"cpu": 99, "gpu": gpus}}, queues, groups, **policy))[0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("depth", [1, 2, 0])
def test_allocate_gives_turns_to_the_first_of_each_queue(seed: int, depth: int) -> None:
    groups = [group(f"{of}{at}", of, 50 + at) for of in "ab" for at in range(3)]
    random.Random(seed).shuffle(groups)
    bound = set(named(simulated("allocate", depth, groups, 9)["bindings"]))
    turns = range(3 - depth if depth else 0, 3)
    assert bound == {f"{of}{at}-0" for of in "ab" for at in turns}


@pytest.mark.parametrize("seed", range(5))
def test_an_action_that_makes_room_does_so_too(seed: int) -> None:
    waiting = [group(f"{of}{at}", of, 60 + at) for of in "ab" for at in range(3)]
    groups = [*waiting, *(group(f"{of}-low{at}", of, 10, "n") for of in "ab" for at in range(3))]
    random.Random(seed).shuffle(groups)
    cycle = simulated("preempt", 2, groups, 6)
    assert set(named(cycle["nominations"])) == {"a1-0", "a2-0", "b1-0", "b2-0"}
    assert len(cycle["evictions"]) == 4
