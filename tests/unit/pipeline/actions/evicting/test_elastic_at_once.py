"""Podgroups that can do without some tasks are served at once with their minima; for the rest they have other turns."""

from typing import Any
from unittest.mock import patch

import pytest

from actors.cli.simulate import Case, open_case
from pipeline.actions.evicting.one_pass import Pass
from pipeline.cycle import Cycle, cycle
from tests.support.dealt_in_turn import defect_in
from tests.support.dealt_in_turn import served as both_ways
from tests.support.small_clusters import REST, podgroup, world

GPU = "nvidia.com/gpu"


def waiting(*asks: tuple[int, int], profile: str = "kai", nodes: int = 6, **policy: Any) -> Case:
    """Full nodes of four devices with work that may go; podgroups of so many tasks, after the minimum of each."""
    has = {f"n{at}": {GPU: 4} for at in range(nodes)}
    runs = [
        podgroup(f"low{node}{at}", [{GPU: 1}], node, phase="Running", priority=0) for node in has for at in range(4)
    ]
    waits = [
        podgroup(f"high{at}", [{GPU: 1}] * many, phase="Inqueue", priority=5, min_available=least)
        for at, (least, many) in enumerate(asks)
    ]
    queues = {"q": {"deserved": {GPU: 24, **(REST if profile == "kai" else {})}}}
    return open_case(world(has, queues, [*runs, *waits], profile=profile, actions=["preempt"], **policy))


def turns(case: Case, done: Cycle) -> list[tuple[int, int]]:
    """Which podgroups get a plan, in order, and for how many tasks."""
    first = len(case.names.podgroups) - sum("high" in name for name in case.names.podgroups)
    return [(plan.statement.preemptor - first, len(plan.statement.placed)) for plan in done.plans]


def decided(case: Case) -> tuple[Cycle, list[int]]:
    """What is decided, and for how many podgroups each search was."""
    asked, search = list[int](), Pass.search
    with patch.object(Pass, "search", lambda this, one: asked.append(len(one.podgroups)) or search(this, one)):
        return cycle(case.snapshot, case.policy, case.now), asked


def test_where_only_minima_are_asked_for_one_search_serves_all() -> None:
    case = waiting(*[(2, 5)] * 10, profile="default")
    done, asked = decided(case)
    assert turns(case, done) == [(at, 2) for at in range(10)]
    assert asked == [10]
    assert defect_in(case, done) is None


def test_kinds_with_different_minima_take_turns_too() -> None:
    case = waiting(*[(1, 3), (2, 3)] * 5, profile="default")
    done, asked = decided(case)
    assert sorted(turns(case, done)) == [(at, 1 + at % 2) for at in range(10)]
    assert asked == [5, 5]


def test_the_rest_is_asked_for_once_all_have_their_minima() -> None:
    case = waiting(*[(2, 4)] * 4, nodes=4)
    done, asked = decided(case)
    assert turns(case, done) == [*[(at, 2) for at in range(4)], *[(at, 1) for at in range(4)] * 2]
    assert asked[:2] == [4, 1]
    assert turns(case, done) == turns(case, both_ways(case)[1])


def test_where_the_policy_gives_the_first_its_rest_before_others_have_anything_they_are_served_in_turn() -> None:
    case = waiting(*[(2, 4)] * 4, nodes=3, plugins={"elastic": {"enabled": {"*": False}}})
    done, _ = decided(case)
    assert turns(case, done) == [(0, 2), (0, 1), (0, 1), (1, 2), (1, 1), (1, 1), (2, 2), (2, 1), (2, 1)]


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_where_not_all_get_their_minimum_those_that_come_first_do(profile: str) -> None:
    case = waiting(*[(2, 3)] * 8, profile=profile, nodes=3)
    done, _ = decided(case)
    assert turns(case, done)[:6] == [(at, 2) for at in range(6)]
    assert defect_in(case, done) is None


@pytest.mark.parametrize(("asks", "searches"), [([(2, 4)] * 4, [4, 1]), ([(2, 4)] * 2 + [(2, 5)] * 2, [2, 2, 1, 1])])
def test_where_one_finds_no_room_to_grow_others_of_its_kind_are_told_the_same(
    asks: list[tuple[int, int]], searches: list[int]
) -> None:
    case = waiting(*asks, nodes=2)
    done, asked = decided(case)
    assert (turns(case, done), asked) == ([(at, 2) for at in range(4)], searches)
    with patch("pipeline.actions.evicting.one_pass.growing_kind", lambda *_: None):
        assert decided(case)[1] == [*(many for many in searches if many > 1), 1, 1, 1, 1]
