"""Gangs that need a rack each are served in another order where less is lost in sum, or more of them are served."""

from typing import Any

import pytest

from actors.cli.simulate import Case, open_case
from pipeline.cycle import Cycle, cycle
from tests.support.small_clusters import podgroup, racks, world

GPU, NOW = "nvidia.com/gpu", 1_000_000.0


def running(name: str, node: str, size: int, hours: float) -> dict[str, Any]:
    return podgroup(name, [{GPU: size}], node, phase="Running", started=NOW - 3600 * hours)


def waiting(name: str, tasks: int, size: int, queue: str = "q") -> dict[str, Any]:
    said = {"queue": queue, "priority": 9, "min_available": tasks, "phase": "Inqueue"}
    return podgroup(name, [{GPU: size}] * tasks, topology={"required": "rack"}, **said)


def opened(nodes: dict[str, int], queues: dict[str, int], groups: list[dict[str, Any]], **policy: Any) -> Case:
    """Nodes with their devices, each in a rack of its own, and queues with what they deserve."""
    has = {name: {GPU: many} for name, many in nodes.items()}
    due = {name: {"deserved": {GPU: many}} for name, many in queues.items()}
    return open_case(world(has, due, groups, now=NOW, **policy) | {"topology": racks(nodes)})


def case_of(gangs: list[dict[str, Any]], *, dear: int, profile: str = "default") -> Case:
    """A rack ``cheap`` of 8 devices, whose work has run for an hour, and a rack of ``dear`` devices, for ten hours.

    The gangs came in their order.
    """
    gangs = [one | {"created": at} for at, one in enumerate(gangs)]
    work = [running(f"c{at}", "cheap", 1, 1.0) for at in range(8)]
    work += [running(f"d{at}", "dear", 2, 10.0) for at in range(dear // 2)]
    nodes = {"cheap": 8, "dear": dear}
    return opened(nodes, {"q": 8 + dear}, [*work, *gangs], profile=profile, actions=["preempt"])


def decided(case: Case) -> tuple[Cycle, list[tuple[int, int, int]]]:
    """The cycle, and for each plan its podgroup (counted from the first that waits), its node and its victims."""
    done, work = cycle(case.snapshot, case.policy, case.now), int((case.snapshot.counts.running > 0).sum())
    made = [plan.statement for plan in done.plans]
    return done, [(one.preemptor - work, int(one.nominated_node[0]), len(one.evictions)) for one in made]


def test_a_small_gang_leaves_the_cheap_rack_to_a_large_one_that_comes_after_it() -> None:
    _, plans = decided(case_of([waiting("small", 2, 1), waiting("large", 4, 2)], dear=8))
    assert plans == [(0, 1, 1), (1, 0, 8)]


def test_a_small_gang_leaves_the_only_rack_to_a_large_one_that_fits_nowhere_else() -> None:
    done, plans = decided(case_of([waiting("small", 2, 1), waiting("large", 4, 2)], dear=4))
    assert plans == [(0, 1, 1), (1, 0, 8)]
    assert done.unplaced == ()


def test_each_takes_the_cheapest_where_that_is_cheapest_in_sum() -> None:
    _, plans = decided(case_of([waiting("large", 4, 2), waiting("small", 2, 1)], dear=8))
    assert plans == [(0, 0, 8), (1, 1, 1)]


def test_the_gangs_before_and_after_one_that_fits_nowhere_lose_least_in_sum() -> None:
    gangs = [waiting("small", 2, 1), waiting("vast", 9, 2), waiting("large", 4, 2)]
    done, plans = decided(case_of(gangs, dear=8))
    assert plans == [(0, 1, 1), (2, 0, 8)]
    assert [one.gang_group[0] for one in done.unplaced] == [done.starving[1][0]]


def test_the_gang_that_holds_most_comes_first_however_few_tasks_it_has() -> None:
    """Each has a rack if `large` comes first and `many` last; in the order of their tasks `medium` finds none."""
    nodes = {"first": (8, 1.0), "second": (6, 10.0), "third": (4, 100.0)}
    work = [running(f"on-{node}", node, size, hours) for node, (size, hours) in nodes.items()]
    gangs = [waiting("large", 2, 4), waiting("many", 4, 1), waiting("medium", 1, 6)]
    gangs = [one | {"created": at} for at, one in enumerate(gangs)]
    case = opened({node: size for node, (size, _) in nodes.items()}, {"q": 18}, [*work, *gangs], actions=["preempt"])
    assert decided(case)[1] == [(0, 0, 1), (1, 2, 1), (2, 1, 1)]


@pytest.mark.parametrize("first", ["small", "large"])
def test_the_order_of_arrival_decides_who_is_served_where_there_is_room_for_one(first: str) -> None:
    sizes = {"small": (3, 2), "large": (4, 2)}
    gangs = [waiting(name, *sizes[name]) for name in sorted(sizes, key=lambda name: name != first)]
    _, plans = decided(case_of(gangs, dear=2))
    assert plans == [(0, 0, 2 * sizes[first][0])]


def test_a_small_gang_leaves_the_only_node_of_a_rack_on_which_a_later_one_fits() -> None:
    """All of the podgroup `one` goes for `large`, and leaves room for `small` as well."""
    one = running("one", "n0", 4, 5.0)
    one |= {"tasks": [*one["tasks"], *running("two", "n0", 4, 5.0)["tasks"], *running("three", "n1", 4, 5.0)["tasks"]]}
    work = [one | {"min_available": 3}, running("stays", "n1", 4, 100.0), running("light", "far", 4, 1.0)]
    case = open_case({
        "version": 1, "now": NOW, "policy": {"profile": "default", "actions": ["preempt"]},
        "nodes": [
            {"name": name, "allocatable": {GPU: many, "pods": 99}, "labels": {"rack": name[0]}}
            for name, many in (("far", 4), ("n0", 8), ("n1", 8))
        ],
        "topology": {"levels": ["rack"], "labels": {"rack": "rack"}},
        "queues": [{"name": "q", "deserved": {GPU: 20}}],
        "podgroups": [*work, waiting("small", 1, 4) | {"created": 1}, waiting("large", 1, 8) | {"created": 2}],
    })  # fmt: skip
    done, plans = decided(case)
    assert sorted(row for plan in done.plans for row in plan.statement.evictions.tolist()) == [0, 1, 2]
    assert [node for _, node, _ in plans] == [2, 1]


def test_a_small_gang_breaks_what_makes_room_for_another_one_too_though_less_would_do_for_it_alone() -> None:
    """For `small` alone `light` would do; `wide` goes for `large` anyway, and makes room for `small` as well."""
    wide = [
        podgroup(name, [{GPU: 4}] * 2, on, phase="Running", min_available=2, started=NOW - 7200)
        for name, on in (("other", ["n0", "n2"]), ("wide", ["n1", "n0"]))
    ]
    work = [*wide, running("long", "n1", 4, 5.0), running("light", "n2", 2, 3.0)]
    gangs = [waiting("small", 1, 2) | {"created": 0}, waiting("large", 1, 4) | {"created": 1}]
    _, plans = decided(opened({"n0": 8, "n1": 8, "n2": 6}, {"q": 22}, [*work, *gangs], actions=["preempt"]))
    assert plans == [(0, 0, 2), (1, 1, 0)]


def test_policies_that_keep_the_order_of_bundles_serve_one_after_the_other() -> None:
    _, plans = decided(case_of([waiting("small", 2, 1), waiting("large", 4, 2)], dear=8, profile="volcano"))
    assert [node for _, node, _ in plans[:1]] == [0]


def test_in_reclaim_all_take_from_the_fairest_queue_that_suffices_for_all_though_it_is_the_fullest_no_more() -> None:
    """Queue `c` holds 12 devices and `d` 10 at first, and both deserve 1; one gang after the other takes from each."""
    holds = {"c": 12, "d": 10}
    nodes = {f"{queue}{at}": (queue, min(4, many - 4 * at)) for queue, many in holds.items() for at in range(3)}
    work = [running(name, name, many, 1.0) | {"queue": queue} for name, (queue, many) in nodes.items()]
    groups = [*work, waiting("first", 4, 1, "b"), waiting("second", 2, 2, "b")]
    gpus = {name: many for name, (_, many) in nodes.items()}
    case = opened(gpus, {"b": 8, "c": 1, "d": 1}, groups, actions=["reclaim"])
    done, plans = decided(case)
    assert [node for _, node, _ in plans] == [0, 1]
    assert [plan.price.queue_rank for plan in done.plans] == [1, 1]
