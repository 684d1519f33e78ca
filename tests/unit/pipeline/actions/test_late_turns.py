"""A cycle decides all that it can, so that the next one evicts nothing on a state in which nothing happened.

A podgroup that was held back, or whose promise a plan took, has a turn after all others; one that grows takes room that
earlier evictions left over.
"""

from typing import Any

import pytest

from actors.cli.simulate import Case, open_case
from pipeline.cluster.arrays import NONE
from pipeline.cycle import Cycle, cycle
from tests.support import small_clusters
from tests.support.small_clusters import REST, world


def job(
    name: str, queue: str, sizes: list[int], priority: int, *, least: int, on: str = "", **of_each: Any
) -> dict[str, Any]:
    return small_clusters.job(name, sizes, priority, on or None, queue=queue, min_available=least, of_each=of_each)


def twice(
    profile: str, nodes: dict[str, int], deserved: dict[str, int], podgroups: list[dict[str, Any]]
) -> tuple[Case, Cycle, Cycle]:
    """A cycle, and another one on the state that it leaves."""
    has, rest = {name: {"gpu": many} for name, many in nodes.items()}, REST if profile == "kai" else {}
    queues = {name: {"deserved": {"gpu": many, **rest}} for name, many in deserved.items()}
    case = open_case(world(has, queues, podgroups, profile=profile))
    first = cycle(case.snapshot, case.policy, case.now)
    return case, first, cycle(first.snapshot, case.policy, case.now)


def evicted(case: Case, done: Cycle) -> list[tuple[str, list[str]]]:
    """By podgroup for which a plan evicts, in order, the tasks that go."""
    plans = [made for made in done.statements if len(made.evictions)]
    names = [[case.names.tasks[row].split("/")[1] for row in made.evictions.tolist()] for made in plans]
    return [(case.names.podgroups[made.preemptor].split("/")[1], some) for made, some in zip(plans, names, strict=True)]


def has_places(case: Case, done: Cycle, *podgroups: str) -> bool:
    """Whether all tasks of some podgroups run or are promised a node."""
    tasks = done.snapshot.tasks
    mine = [at for at, name in enumerate(case.names.tasks) if name.split("/")[1].rsplit("-", 1)[0] in podgroups]
    return bool(((tasks.node[mine] != NONE) | (tasks.nominated[mine] != NONE)).all())


def test_podgroups_that_grow_take_what_evictions_left_over_in_their_turn() -> None:
    """Each victim frees room for two; `b` once waited for room behind `a`, and evicted in the next cycle."""
    low = [job("low0", "q", [4, 4], 1, least=1, on="y"), job("low1", "q", [4], 1, least=1, on="x")]
    new = [job(name, "q", [2, 2], 5, least=1) for name in "abc"]
    case, first, second = twice("kai", {"x": 8, "y": 8}, {"q": 16}, [*low, *new])
    assert sorted(task for _, some in evicted(case, first) for task in some) == ["low0-1", "low1-0"]
    assert has_places(case, first, "a", "b", "c")
    assert evicted(case, second) == []


def test_a_podgroup_that_is_held_back_has_a_turn_after_all_others() -> None:
    """`held` would start in the idle room that `due` reclaims with more; it then takes less important work."""
    running = [job("off", "rich", [1, 1], 1, least=2, on="x"), job("low", "rich", [2, 2], 1, least=2, on="x")]
    new = [job("held", "rich", [1], 2, least=1), job("due", "poor", [1, 1, 1], 0, least=3)]
    case, first, second = twice("default", {"x": 7}, {"rich": 4, "poor": 3}, [*running, *new])
    assert evicted(case, first) == [("due", ["off-0", "off-1"]), ("held", ["low-0", "low-1"])]
    assert has_places(case, first, "held", "due")
    assert evicted(case, second) == []


def test_a_podgroup_whose_promise_a_plan_takes_has_a_turn_after_that() -> None:
    """`high` takes the promise of `mid` with one task; `mid` then takes another one's room."""
    ending = job("gone", "q", [1], 1, least=1, on="x", status="Terminating", gone_when_evicted=True)
    running = [ending, job("low", "q", [1], 0, least=1, on="x"), job("less", "q", [1], 1, least=1, on="y")]
    new = [job("mid", "q", [1], 2, least=1), job("high", "q", [1, 1], 5, least=2)]
    case, first, second = twice("default", {"x": 2, "y": 1}, {"q": 3}, [*running, *new])
    assert evicted(case, first) == [("high", ["low-0"]), ("mid", ["less-0"])]
    assert has_places(case, first, "mid", "high")
    assert evicted(case, second) == []


def test_what_starts_only_in_the_room_of_a_start_that_is_held_back_is_held_back_too() -> None:
    """`low` would start a task that `high` takes; without it `other` would start there, and `high` find no room."""
    low = job("low", "q", [1, 1], 0, least=1, on="x")
    low["tasks"][1] = {"name": "low-1", "request": {"gpu": 1}}
    busy, other = job("busy", "p", [2], 1, least=1, on="y"), job("other", "p", [2], 1, least=1)
    podgroups = [low, busy, other, job("high", "q", [3], 1, least=1)]
    case, first, second = twice("default", {"x": 3, "y": 2}, {"q": 3, "p": 2}, podgroups)
    assert evicted(case, first) == [("high", ["low-0"])]
    assert has_places(case, first, "high", "busy")
    assert evicted(case, second) == []


@pytest.mark.parametrize("profile", ["default", "kai", "koordinator"])
def test_a_podgroup_whose_promise_a_plan_takes_comes_before_less_important_ones(profile: str) -> None:
    """`high` takes the promise of `mid`; `less` then evicted for two nodes, and `mid` took one of them."""
    ending = job("gone", "q", [3], 1, least=1, on="x", status="Terminating", gone_when_evicted=True)
    mid = job("mid", "q", [3], 5, least=1, nominated_node="x")
    running = [ending, job("low0", "q", [3], 1, least=1, on="y"), job("low1", "q", [1], 1, least=1, on="z")]
    new = [mid, job("less", "q", [3, 1], 2, least=2), job("high", "q", [2], 9, least=1)]
    case, first, second = twice(profile, {"x": 3, "y": 3, "z": 1}, {"q": 7}, [*running, *new])
    assert evicted(case, first) == [("mid", ["low0-0"])]
    assert has_places(case, first, "mid", "high")
    assert evicted(case, second) == []
