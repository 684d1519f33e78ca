"""Podgroups of a few kinds that take turns are served kind by kind, if each of them gets a plan."""

from unittest.mock import patch

import pytest

from actors.cli.simulate import Case, open_case
from pipeline.actions.evicting.one_pass import Pass
from pipeline.cycle import Cycle, cycle
from tests.support.dealt_in_turn import defect_in
from tests.support.small_clusters import REST, podgroup, world

GPU = "nvidia.com/gpu"


def waiting(many: int, profile: str = "default", sizes: tuple[int, ...] = (1, 2)) -> Case:
    """Six full nodes of four devices, four with work that may go; podgroups that ask for these sizes in turns."""
    nodes = {f"n{at}": {GPU: 4} for at in range(6)}
    runs = [
        podgroup(f"low{node}{at}", [{GPU: 1}], node, phase="Running", priority=9 * (node in ("n4", "n5")))
        for node in nodes
        for at in range(4)
    ]
    asks = [(f"high{at:02}", sizes[at % len(sizes)]) for at in range(many)]
    waits = [podgroup(name, [{GPU: size}], phase="Inqueue", priority=5) for name, size in asks]
    queues = {"q": {"deserved": {GPU: 24, **(REST if profile == "kai" else {})}}}
    return open_case(world(nodes, queues, [*runs, *waits], profile=profile, actions=["preempt"]))


def searched(case: Case) -> tuple[Cycle, int]:
    """What is decided, and after how many searches."""
    asked, search = list[int](), Pass.search
    with patch.object(Pass, "search", lambda this, attempt: asked.append(1) or search(this, attempt)):
        return cycle(case.snapshot, case.policy, case.now), len(asked)


def served(case: Case, done: Cycle) -> list[str]:
    return sorted(case.names.podgroups[plan.statement.preemptor].removeprefix("default/") for plan in done.plans)


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_all_of_a_kind_share_a_search_and_each_gets_a_plan_that_holds(profile: str) -> None:
    case = waiting(10, profile)
    done, searches = searched(case)
    assert served(case, done) == [f"high{at:02}" for at in range(10)]
    assert (searches, [plan.explanation.together for plan in done.plans]) == (2, [5] * 10)
    assert sum(len(plan.statement.evictions) for plan in done.plans) == 15
    assert defect_in(case, done) is None


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_where_not_all_get_a_plan_those_that_come_first_do(profile: str) -> None:
    case = waiting(14, profile)
    done, _ = searched(case)
    assert served(case, done) == [f"high{at:02}" for at in (*range(10), 10)]
    assert defect_in(case, done) is None


def test_no_podgroup_that_comes_later_takes_the_room_of_one_that_does_not_fit() -> None:
    case = waiting(16, sizes=(8, 1))  # none of eight devices fits a node
    done, _ = searched(case)
    assert served(case, done) == [f"high{at:02}" for at in range(1, 16, 2)]
    assert {case.names.podgroups[one.gang_group[0]] for one in done.unplaced} == {
        f"default/high{at:02}" for at in range(0, 16, 2)
    }


def test_podgroups_that_are_too_wide_for_the_solver_are_served_one_by_one() -> None:
    case = waiting(10, "kai")
    with patch("pipeline.solvers.scenarios.solver._WIDEST", 0):
        done, searches = searched(case)
    assert served(case, done) == [f"high{at:02}" for at in range(10)]
    assert searches == 10


def test_where_there_are_few_of_each_kind_it_is_asked_again_some_turns_later() -> None:
    case, asked = waiting(4, "kai", sizes=(1, 2, 3, 4)), list[int]()
    with patch("pipeline.actions.evicting.one_kind._of_rank", lambda *_, **__: asked.append(1) or []):
        done = cycle(case.snapshot, case.policy, case.now)
    assert (len(done.plans), len(asked)) == (4, 1)
