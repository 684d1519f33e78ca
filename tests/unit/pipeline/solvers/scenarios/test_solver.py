"""The solver `scenarios`: what is asked, what is taken, and who returns or moves."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import TERMINATING
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Reason
from pipeline.decision.plan import NoPlan, Plan
from pipeline.placement.room.counted_need import CountedNeed
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of, propose
from pipeline.solvers.scenarios.accumulating import Reached, Scenario, accumulated
from pipeline.solvers.scenarios.asking import asked_for
from pipeline.solvers.scenarios.budget import Budget
from pipeline.solvers.scenarios.cheapest import cheapest
from pipeline.solvers.scenarios.law import Law
from pipeline.solvers.scenarios.moves.trying import WorkingScenario, outcome
from pipeline.solvers.scenarios.slices.node_slice import NodeSlice
from pipeline.solvers.scenarios.units import VictimUnits
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_tasks
from tests.support.scenarios import SCENARIOS
from tests.support.small_clusters import REST, played, podgroup, world


def asked(state: Snapshot, action: str = "preempt", domains: Rows | None = None, **changed: Any) -> Plan | NoPlan:
    purpose = Purpose.PREEMPT if action == "preempt" else Purpose.CONSOLIDATE
    unit = (len(state.podgroups) - 1,)
    return propose(Attempt(state, replace(SCENARIOS, **changed), purpose, unit, domains, 1e6, action))


def done(outcome: Plan | NoPlan) -> tuple[list[int], dict[int, int]]:
    """Victims, and node by task."""
    assert isinstance(outcome, Plan), outcome.explanation
    made = outcome.statement
    return made.evictions.tolist(), dict(zip(made.nominated.tolist(), made.nominated_node.tolist(), strict=True))


def test_what_a_podgroup_can_spare_goes_before_any_podgroup_breaks() -> None:
    """Two elastic podgroups give a task each; the younger one, which is later by name, gives first."""
    low = [gang(2, 0, gpu=1, minimum=1)] * 2
    assert done(asked(cluster([{"gpu": 4}], [*low, gang(1, gpu=2, priority=1)])))[0] == [1, 3]


def test_one_subgroup_goes_before_a_second_one_breaks() -> None:
    """Four replicas of two tasks, of which two must be whole: room for two tasks costs one replica."""
    tasks = [Task(0, gpu=1, subgroup=at // 2) for at in range(8)]
    replicas = Gang(tasks, 0, subgroups=[(NONE, 2, NONE)] * 4, min_subgroups=2)
    for asks, victims in ((1, [7]), (2, [6, 7]), (3, [5, 6, 7])):
        assert done(asked(cluster([{"gpu": 8}], [replicas, gang(1, gpu=asks, priority=1)])))[0] == victims


def test_what_is_below_a_broken_subgroup_goes_before_another_one_breaks() -> None:
    """Three replicas, each of a part of one task and a part of two; one of them is enough."""
    parts = [(NONE, 0, NONE)] * 3 + [(at // 2, 1 + at % 2, NONE) for at in range(6)]
    tasks = [Task(0, gpu=1, subgroup=3 + 2 * replica + part) for replica in range(3) for part in (0, 1, 1)]
    replicas = Gang(tasks, 0, subgroups=parts, min_subgroups=1)
    assert done(asked(cluster([{"gpu": 9}], [replicas, gang(1, gpu=3, priority=1)])))[0] == [6, 7, 8]


def test_a_gang_goes_whole() -> None:
    state = cluster([{"gpu": 2}] * 2, [gang(2, [0, 1], gpu=2), gang(1, gpu=2, priority=1)])
    assert done(asked(state))[0] == [0, 1]


@pytest.mark.parametrize("first", [2, 9])
def test_other_tasks_make_up_the_minimum_where_nothing_makes_room_for_the_first(first: int) -> None:
    """A more important task on each node stays: one device of each can be had, and two of three tasks are enough."""
    work = [gang(1, at, gpu=1, priority=which) for which in (0, 2) for at in (0, 1)]
    state = cluster([{"gpu": 2}] * 2, [*work, Gang([Task(gpu=many) for many in (first, 1, 1)], 2, priority=1)])
    victims, nodes = done(asked(state))
    assert (victims, nodes.keys()) == ([0, 1], {5, 6})


def test_who_is_not_needed_returns() -> None:
    """The first victim in order lies on the wrong node for two: only the second, which is big enough, goes."""
    state = cluster([{"gpu": 1}, {"gpu": 3}], [gang(1, 1, gpu=3), gang(1, 0, gpu=1), gang(1, gpu=3, priority=1)])
    assert done(asked(state))[0] == [0]


def test_a_victim_that_fits_elsewhere_moves() -> None:
    """One task of the gang finds room on the other node, and that is enough for its minimum."""
    state = cluster([{"gpu": 2}, {"gpu": 1}], [gang(2, 0, gpu=1, minimum=1), gang(1, gpu=2, priority=1)])
    assert done(asked(state)) == ([0, 1], {0: 1, 2: 0})


def test_a_podgroup_with_its_minimum_asks_for_one_task_more() -> None:
    waiting = Gang([Task(0, gpu=1), Task(gpu=1), Task(gpu=1)], 1, priority=1)
    assert done(asked(cluster([{"gpu": 3}], [gang(2, 0, gpu=1, minimum=0), waiting])))[0] == [1]


@pytest.mark.parametrize(("gives", "victims"), [(1, None), (2, [0, 1])])
def test_a_subgroup_that_can_be_spared_evicts_for_all_that_it_lacks_or_not_at_all(
    gives: int, victims: list[int] | None
) -> None:
    """Subgroup 0 is enough; subgroup 1 would start with two tasks, and of no use is one."""
    tasks = [Task(0, gpu=1, subgroup=0), *[Task(gpu=1, subgroup=1)] * 2]
    waiting = Gang(tasks, 1, priority=1, subgroups=[(NONE, 1, NONE), (NONE, 2, NONE)], min_subgroups=1)
    outcome = asked(cluster([{"gpu": 1 + gives}], [*[gang(1, 0, gpu=1)] * gives, waiting]))
    assert isinstance(outcome, NoPlan) if victims is None else done(outcome)[0] == victims


def test_a_subgroup_that_can_be_spared_asks_for_nothing_where_too_few_of_its_tasks_wait() -> None:
    tasks = [Task(0, gpu=1, subgroup=0), Task(gpu=1, subgroup=1)]
    waiting = Gang(tasks, 1, priority=1, subgroups=[(NONE, 1, NONE), (NONE, 2, NONE)], min_subgroups=1)
    assert isinstance(asked(cluster([{"gpu": 2}], [gang(1, 0, gpu=1), waiting])), NoPlan)


@pytest.mark.parametrize(("gives", "victims"), [(2, None), (3, [0, 1, 2])])
def test_a_subgroup_that_can_be_spared_evicts_for_all_of_its_parts_at_once(
    gives: int, victims: list[int] | None
) -> None:
    """Two replicas, each of a part of one task and a part of two; one of them runs and is enough."""
    parts = [(NONE, 0, NONE)] * 2 + [(replica, least, NONE) for replica in (0, 1) for least in (1, 2)]
    tasks = [
        Task(place, gpu=1, subgroup=part) for place, one in ((0, 2), (NONE, 4)) for part in (one, one + 1, one + 1)
    ]
    waiting = Gang(tasks, 1, priority=1, subgroups=parts, min_subgroups=1)
    outcome = asked(cluster([{"gpu": 3 + gives}], [*[gang(1, 0, gpu=1)] * gives, waiting]))
    assert isinstance(outcome, NoPlan) if victims is None else done(outcome)[0] == victims


def test_a_podgroup_with_its_minimum_asks_for_a_task_of_the_subgroup_that_is_least_above_its_own() -> None:
    tasks = [*[Task(0, gpu=1, subgroup=0)] * 2, Task(0, gpu=1, subgroup=1), *(Task(gpu=1, subgroup=p) for p in (0, 1))]
    waiting = Gang(tasks, 1, priority=1, subgroups=[(NONE, 1, NONE)] * 2)
    assert done(asked(cluster([{"gpu": 4}], [gang(1, 0, gpu=1), waiting])))[1] == {5: 0}


def test_a_queue_of_equals_gives_nothing() -> None:
    assert isinstance(asked(cluster([{"gpu": 1}], [gang(1, 0, gpu=1), gang(1, gpu=1)])), NoPlan)


SCATTERED = [gang(1, 0, gpu=2), gang(1, 1, gpu=2), gang(1, gpu=3)]


def test_consolidation_moves_one_task_so_that_scattered_room_comes_together() -> None:
    assert done(asked(cluster([{"gpu": 4}] * 2, SCATTERED), "consolidation")) == ([1], {1: 0, 2: 1})


def test_consolidation_leaves_all_tasks_where_all_room_together_is_too_little() -> None:
    assert isinstance(asked(cluster([{"gpu": 3}] * 2, SCATTERED), "consolidation"), NoPlan)


def test_consolidation_moves_no_more_podgroups_than_it_may() -> None:
    state = cluster([{"gpu": 4}] * 2, SCATTERED)
    assert isinstance(asked(state, "consolidation", consolidation_max_victims=0), NoPlan)
    assert isinstance(asked(state, "consolidation", consolidation_max_victims=1), Plan)


def test_consolidation_moves_nothing_that_loses_more_than_it_makes_room_for() -> None:
    """Two of three devices restart: more than half of what is asked for."""
    state = cluster([{"gpu": 4}] * 2, SCATTERED)
    assert isinstance(asked(state, "consolidation", consolidation_cost_limit=0.5), NoPlan)
    assert isinstance(asked(state, "consolidation", consolidation_cost_limit=0.7), Plan)


def test_consolidation_moves_no_task_for_work_that_can_never_be_moved_itself() -> None:
    state = cluster([{"gpu": 4}] * 2, SCATTERED)
    lasting = replace(state, podgroups=replace(state.podgroups, preemptible=state.podgroups.order < 2))
    assert isinstance(asked(lasting, "consolidation"), NoPlan)


def test_many_podgroups_return_for_one_that_comes_a_little_later_in_the_queue() -> None:
    """Three lone tasks make the shortest scenario; the gang behind them is as big, of the same priority, and alone."""
    lone = [gang(1, at, gpu=1) for at in (1, 2, 3)]
    state = cluster([{"gpu": 3}, *[{"gpu": 1}] * 3], [gang(3, 0, gpu=1), *lone, gang(3, gpu=1, priority=1)])
    assert done(asked(state))[0] == [0, 1, 2]


def test_one_podgroup_goes_in_place_of_two_of_its_priority_and_size_wherever_it_is_in_the_queue() -> None:
    """Of four nodes three must be cleared: two by one gang, and the third of one lone task or of two."""
    wide = Gang([Task(2, gpu=1), Task(0, gpu=2), Task(2, gpu=3)], 3)
    for lone in ([1, 3, 3], [3, 1, 3], [3, 3, 1]):
        state = cluster([{"gpu": 4}] * 4, [*[gang(1, at, gpu=2) for at in lone], wide, gang(3, gpu=3, priority=1)])
        assert done(asked(state))[0] == [lone.index(1), 3, 4, 5]


def test_more_important_podgroups_do_not_go_in_preempt_however_many_others_return() -> None:
    lone = [gang(1, at, gpu=1) for at in (1, 2, 3, 4, 5)]
    big = gang(5, 0, gpu=1, priority=1)
    state = cluster([{"gpu": 5}, *[{"gpu": 1}] * 5], [big, *lone, gang(5, gpu=1, priority=2)])
    assert done(asked(state))[0] == [5, 6, 7, 8, 9]


def test_surplus_out_of_reach_goes_with_the_rest_of_its_podgroup() -> None:
    """The third task lies in another rack, where it is of no use; alone it would run on below its minimum of two."""
    victim = Gang([Task(0, gpu=1), Task(0, gpu=1), Task(1, gpu=1)], 2)
    state = cluster([{"gpu": 2}, {"gpu": 1}], [victim, gang(2, gpu=1, priority=1, required_level=0)], racks=[1, 1])
    assert done(asked(state, domains=np.array([1, 2])))[0] == [0, 1, 2]


def test_a_task_that_was_to_start_elsewhere_does_not_once_the_rest_of_its_gang_goes() -> None:
    low = Gang([Task(0, gpu=1, status=TERMINATING), Task(2, gpu=1)], 2)
    state = cluster([{"gpu": 1}] * 3, [low, gang(2, gpu=1, priority=1)])
    found = asked(with_tasks(state, 0, nominated=1))
    assert done(found) == ([1], {0: NONE, 2: 0, 3: 2})


def test_a_podgroup_that_may_not_preempt_evicts_nothing() -> None:
    state = cluster([{"gpu": 1}], [gang(1, 0, gpu=1), gang(1, gpu=1, priority=1)])
    found = asked(replace(state, podgroups=replace(state.podgroups, may_preempt=state.podgroups.order < 1)))
    assert isinstance(found, NoPlan)
    assert found.explanation.reason is Reason.NEVER


def test_room_that_is_there_already_is_left_to_allocate_where_nothing_could_be_evicted() -> None:
    found = asked(cluster([{"gpu": 2}], [gang(1, 0, gpu=1, priority=2), gang(1, gpu=1, priority=1)]))
    assert isinstance(found, NoPlan)
    assert found.explanation.reason is Reason.NO_CANDIDATES


def test_a_search_ends_with_its_budget() -> None:
    """Nothing fits without moves, and each set of victims that move costs of the budget."""
    state = cluster([{"gpu": 2}] * 3, [*[gang(1, node, gpu=1) for node in range(3)], gang(1, gpu=2)])
    assert isinstance(asked(state, "consolidation"), Plan)
    assert isinstance(asked(state, "consolidation", search_budget=1), NoPlan)


def test_slices_of_nodes_in_which_nothing_is_refused_cost_nothing_of_the_budget() -> None:
    """The rack that is looked at first needs a more important victim than the other; a third is too small."""
    running = [gang(1, 0, gpu=2, priority=1), gang(1, 1, gpu=2, priority=0)]
    nodes = [{"gpu": 2}, {"gpu": 2}, {"gpu": 1}]
    state = cluster(nodes, [*running, gang(1, gpu=2, priority=2, required_level=0)], racks=[1, 1, 1])
    assert done(asked(state, domains=np.array([3, 1, 2]), search_budget=1))[0] == [1]


def test_where_no_victims_are_accepted_only_one_slice_of_nodes_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever room the racks would have, the reason is the law."""
    running = [gang(1, node, gpu=2) for node in range(3)]
    state = cluster([{"gpu": 2}] * 3, [*running, gang(1, gpu=2, priority=1, required_level=0)], racks=[1, 1, 1])
    racks, tried = np.array([1, 2, 3]), list[Scenario]()

    def looked_at(scenario: Scenario, *given: Any, **named: Any) -> Reached | None:
        tried.append(scenario)
        return accumulated(scenario, *given, **named)

    monkeypatch.setattr("pipeline.solvers.scenarios.solver.accumulated", looked_at)
    assert isinstance(asked(state, domains=racks), Plan)
    monkeypatch.setattr(Law, "allows", lambda *_: False)
    tried.clear()
    refused = asked(replace(state), domains=racks)
    assert (refused.explanation.reason, len(tried)) == (Reason.QUOTA, 1)


@dataclass(frozen=True)
class ProtectsTheFirst(Law):
    """A law under which the task of row 0 may not go."""

    def allows(self, victims: Rows) -> bool:
        """Whether it stays."""
        return not (victims == 0).any()


@dataclass(frozen=True)
class SparesTheFirstAlone(Law):
    """A law under which the task of row 0 may go only beside others."""

    def allows(self, victims: Rows) -> bool:
        """Whether it does not go alone."""
        return victims.tolist() != [0]


def under(law: type[Law], state: Snapshot, *units: list[int]) -> Scenario:
    """The last podgroup in preempt under a law, with units of these rows; the last of each podgroup breaks it."""
    preemptor = (len(state.podgroups) - 1,)
    attempt = Attempt(state, SCENARIOS, Purpose.PREEMPT, preemptor, None, 1e6, "preempt")
    host = host_of(attempt)
    need, rows = asked_for(host, preemptor), np.concatenate(units)
    owner = state.tasks.podgroup[[unit[-1] for unit in units]].astype(np.int64)
    ends, each = np.cumsum([len(unit) for unit in units]), np.arange(len(units))
    last = np.array([not (owner[at + 1 :] == owner[at]).any() for at in each])
    ground = NodeSlice(CountedNeed(state, need, host.allowed(need.shapes), rows), NONE, 0, len(state.nodes))
    queue = VictimUnits(rows, np.append(0, ends), owner, last, each)
    return Scenario(ground, law(host, Preemptor(preemptor, need.total, Purpose.PREEMPT)), queue)


def test_each_refusal_is_paid_from_the_budget() -> None:
    """The protected task is the second in the queue of victims."""
    state = cluster([{"gpu": 3}], [*[gang(1, 0, gpu=1)] * 3, gang(1, gpu=2, priority=1)])
    scenario = under(ProtectsTheFirst, state, [1], [0], [2])
    found = accumulated(scenario, 3, Budget(1))
    assert found is not None
    assert found.scenario.units.first(found.count).rows.tolist() == [1, 2]
    assert accumulated(scenario, 3, Budget(0)) is None


def test_what_is_left_of_a_podgroup_stays_where_its_surplus_may_not_go() -> None:
    state = cluster([{"gpu": 5}], [gang(3, 0, gpu=1, minimum=2), gang(2, 0, gpu=1), gang(1, gpu=2, priority=1)])
    found = accumulated(under(ProtectsTheFirst, state, [0], [1, 2], [3, 4]), 3, Budget(9))
    assert found is not None
    assert found.scenario.units.first(found.count).rows.tolist() == [3, 4]


def test_victims_that_stay_are_those_without_which_the_others_are_lawful() -> None:
    """The first one is enough and holds less, but it may not go alone."""
    state = cluster([{"gpu": 5}], [gang(1, 0, gpu=2), gang(1, 0, gpu=3), gang(1, gpu=2, priority=1)])
    assert cheapest(Reached(under(SparesTheFirstAlone, state, [0], [1]), 2)).tolist() == [1]


def test_a_gang_that_only_fits_where_its_tasks_were_kept_is_laid_out_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten tasks of two sizes take the nodes of two podgroups of three; places that were kept are said not to hold."""
    low = [gang(8, at, gpu=1) for at in range(3)]
    high = Gang([Task(gpu=size) for size in (2, 2, 2, 1, 1, 1, 1, 1, 1, 1)], 10, priority=1)
    state, tried = cluster([{"gpu": 8}] * 3, [*low, high]), list[bool]()
    first = done(asked(state))

    def holds(scenario: Scenario, victims: Rows) -> WorkingScenario | None:
        tried.append(scenario.ground.keeps)
        return None if tried[-1] else outcome(scenario, victims)

    monkeypatch.setattr("pipeline.solvers.scenarios.solver.outcome", holds)
    assert done(asked(replace(state))) == first
    assert (len(first[0]), tried) == (16, [True, False])


def test_where_the_law_lets_no_task_be_lost_only_the_first_units_are_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The queue that holds all devices deserves them; whole podgroups are not tried one after the other."""
    running = [podgroup(f"low-{at}", [{"gpu": 1}], "n0", preemptible=True) for at in range(12)]
    queues = {"q": {"deserved": {"gpu": 12, **REST}}, "other": {"deserved": {"gpu": 4, **REST}}}
    waits = podgroup("waits", [{"gpu": 2}], queue="other", preemptible=True, priority=1)
    asked_about, real = list[int](), Law.allows

    def allows(law: Law, victims: Rows) -> bool:
        asked_about.append(len(victims))
        return real(law, victims)

    def no_sets(_scenario: Scenario) -> WorkingScenario | None:
        raise AssertionError("no set of them can be lawful")

    monkeypatch.setattr(Law, "allows", allows)
    monkeypatch.setattr("pipeline.solvers.scenarios.solver.first_lawful_set", no_sets)
    document = world({"n0": {"gpu": 12}}, queues, [*running, waits], profile="kai", actions=["reclaim"])
    assert played(document)[0]["evictions"] == []
    assert asked_about == [2, 1, 0]
