"""Where more tasks wait than the minimum needs, what fits and costs least makes it up."""

from typing import Any

import numpy as np
import pytest

from pipeline.placement.compositions import asks_less, compositions
from pipeline.placement.need import need_of, need_of_all
from pipeline.policy import Purpose
from pipeline.solvers.bundles import solver
from tests.support import small_clusters
from tests.support.brute_force import attempt_of
from tests.support.small_clusters import played, podgroup, told


def task(name: str, cpu: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "request": {"cpu": cpu}, **more}


def world(nodes: dict[str, int], *podgroups: dict[str, Any]) -> dict[str, Any]:
    made = small_clusters.world({name: {"cpu": cpu} for name, cpu in nodes.items()}, {"q": {}}, podgroups, now=1000.0)
    return made | {"nodes": [node | {"labels": {"name": node["name"]}} for node in made["nodes"]]}


def victim(name: str, node: str, priority: int = 0, cpu: int = 1) -> dict[str, Any]:
    return podgroup(name, [{"cpu": cpu}], node, priority=priority, min_available=1)


def gang(minimum: int, tasks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"name": "hi", "queue": "q", "priority": 100, "min_available": minimum, "tasks": tasks, **more}


def outcome(cluster: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The victims, and the tasks that were placed, by name."""
    one = told(played(cluster)[0])
    return one["evictions"], sorted([*one["bindings"], *one["nominations"]])


def parts(*names: str, of: int) -> dict[str, Any]:
    return {"min_subgroups": of, "subgroups": [{"name": name, "min_available": 1} for name in names]}


def test_subgroups_that_fit_nowhere_are_done_without() -> None:
    tasks = [task(name, 9 if name in "ab" else 1, subgroup=name) for name in "abcd"]
    assert outcome(world({"n": 2}, gang(2, tasks, **parts(*"abcd", of=2)))) == ([], ["c", "d"])


def test_no_subgroup_is_done_without_that_is_needed() -> None:
    tasks = [task(name, 9 if name == "a" else 1, subgroup=name) for name in "abc"]
    assert outcome(world({"n": 2}, gang(3, tasks, **parts(*"abc", of=3)))) == ([], [])


@pytest.mark.parametrize(("first", "second", "searches"), [(50, 1, 2), (1, 50, 1)])
def test_the_cheaper_subgroup_makes_up_the_minimum(
    first: int, second: int, searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would cost a task of some priority; what begins with a higher one by its bound is not searched for."""
    tasks, asked, made = [task(name, subgroup=name, node_selector={"name": name}) for name in "xy"], [], solver.best_of
    monkeypatch.setattr(solver, "best_of", lambda *given: asked.append(given) or made(*given))
    victims = victim("v", "x", first), victim("w", "y", second)
    cluster = world({"x": 1, "y": 1}, *victims, gang(1, tasks, **parts("x", "y", of=1)))
    assert outcome(cluster) == ((["v-0"], ["x"]) if first < second else (["w-0"], ["y"]))
    assert len(asked) == searches


@pytest.mark.parametrize("wide", [0, 1])
def test_an_elastic_gang_takes_as_many_of_each_shape_as_there_is_room_for(wide: int) -> None:
    """Two of four tasks of one shape fit and two of the other; either shape alone is too little."""
    tasks = [task(f"{name}-{at}", node_selector={"name": name}) for name in ("x", "y") for at in range(4)]
    cluster = world(
        {"x": 2, "y": 2}, *(victim(f"v{at}", node) for at, node in enumerate("xxyy")), gang(4 - wide, tasks)
    )
    victims, placed = outcome(cluster)
    assert (len(victims), len(placed)) == (4 - wide, 4 - wide)


def test_of_many_ways_a_few_are_tried() -> None:
    """Each leaves out a task that an earlier one takes."""
    tasks = [task(f"t{at}", 1 + at) for at in range(9)]
    snapshot = attempt_of(world({"x": 1}, gang(2, tasks) | {"name": "waits"}), Purpose.PREEMPT).snapshot
    ways = [tuple(one.tasks.tolist()) for one in compositions(snapshot, need_of(snapshot, (0,), surplus=False))]
    assert (len(ways), len(set(ways))) == (8, 8)


@pytest.mark.parametrize("profile", ["default", "volcano"])
def test_work_lost_for_small_tasks_and_for_large_ones_is_compared_in_one_unit(profile: str) -> None:
    """Room for a and b costs 4 cores, as many as they ask for; room for a and c only 3, though they ask for 2."""
    tasks = [task("a"), task("b", 3), task("c")]
    cluster = world({"x": 3, "y": 4}, victim("v", "x", cpu=3), victim("w", "y", cpu=4), gang(2, tasks))
    assert outcome(cluster | {"policy": {"profile": profile}}) == (["v-0"], ["a", "c"])


def test_tasks_of_equal_shape_leave_no_choice() -> None:
    cluster = world({"x": 2}, victim("v", "x"), victim("w", "x"), gang(1, [task(f"t{at}") for at in range(3)]))
    victims, placed = outcome(cluster)
    assert (len(victims), placed) == (1, ["t0"])


@pytest.mark.parametrize(("cpu", "taken"), [(2, (["v-0"], ["a"])), (1, (["v-0"], ["b"]))])
def test_a_way_that_asks_for_more_is_taken_only_where_it_costs_no_more(cpu: int, taken: tuple[list[str], ...]) -> None:
    """One task is needed, and the first asks for more; without the victim there is room for neither."""
    cluster = world({"x": cpu}, victim("v", "x", cpu=cpu), gang(1, [task("a", 2), task("b")]))
    assert outcome(cluster) == taken


@pytest.mark.parametrize(
    ("one", "other", "less"),
    [
        ((1, 1), (2, 1), True), ((2, 1), (1, 1), False), ((1, 1), (1, 1), False), ((1, 1, 1), (3, 1), False),
        ((2, 2), (3, 1), False), ((2, 1), (3, 2), True), ((1,), (3, 1), True),
    ],
)  # fmt: skip
def test_what_asks_for_less_has_a_task_at_least_as_large_for_each_of_its_own(
    one: tuple[int, ...], other: tuple[int, ...], less: bool
) -> None:
    tasks = [task(f"t{at}", cpu) for at, cpu in enumerate((*one, *other))]
    snapshot = attempt_of(world({"x": 1}, gang(1, tasks) | {"name": "waits"}), Purpose.PREEMPT).snapshot
    rows, none = np.arange(len(tasks)), np.ones((9, 1), bool)
    needs = [need_of_all(need_of(snapshot, (0,), among=some)) for some in (rows[: len(one)], rows[len(one) :])]
    assert asks_less(snapshot, *needs, lambda shapes: none[: len(shapes)]) is less
