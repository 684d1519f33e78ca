"""Volcano's preempt and reclaim, task by task."""

from dataclasses import replace

import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import cycle
from pipeline.decision.explanation import Reason
from pipeline.policy import PluginSetting
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import edited, with_budget, with_groups, with_queues, with_tasks
from tests.support.task_centric import USUAL, pinned_nodes, policy, preempted, promised, reclaimed, victims

ELASTIC = ("priority", "conformance", "predicates")


def test_the_least_important_task_of_the_least_important_podgroup_goes() -> None:
    state = cluster(
        [{"cpu": 4}],
        [
            gang(2, 0, cpu=1, minimum=0, priority=5),
            Gang([Task(0, cpu=1, priority=2), Task(0, cpu=1, priority=1)], 0, priority=1),
            gang(1, cpu=1, priority=9),
        ],
    )
    made = preempted(state)
    assert victims(made) == [3]
    assert promised(made) == {4: 0}


def test_of_equal_tasks_the_newest_goes() -> None:
    state = cluster(
        [{"cpu": 2}], [Gang([Task(0, cpu=1, created=9), Task(0, cpu=1, created=3)], 0), gang(1, cpu=1, priority=1)]
    )
    assert victims(preempted(state)) == [0]


def test_tasks_of_several_sizes_use_free_room_before_any_task_goes() -> None:
    # The small task scores best where only the large one fits.
    waits = Gang([Task(cpu=2), Task(cpu=3)], 2, priority=1)
    state = cluster([{"cpu": 3, "memory": 9}] * 2, [gang(1, 0, cpu=1, minimum=0), waits])
    made = preempted(state, policy((*USUAL, "nodeorder")))
    assert victims(made) == []
    assert promised(made) == {1: 0, 2: 1}


@pytest.mark.parametrize(
    ("arguments", "gpu", "nodes"),
    [
        ({"strategy": "binpack"}, 2, [0, 0, 1, 1]),
        ({"strategy": "spread"}, 2, [0, 1, 0, 1]),
        ({"strategy": "spread"}, 0, [2, 2, 2, 2]),
        ({"strategy": "spread", "cpu_strategy": "binpack"}, 0, [2, 2, 2, 2]),
    ],
)
def test_tasks_go_to_the_nodes_that_nodeplacement_prefers_by_what_is_left_after_each(
    arguments: dict[str, str], gpu: int, nodes: list[int]
) -> None:
    placing = PluginSetting("nodeplacement", arguments=tuple(arguments.items()))
    fleet = [{"cpu": 9, "gpu": 4}, {"cpu": 9, "gpu": 8}, {"cpu": 9}]
    state = cluster(fleet, [gang(1, 1, gpu=3, priority=9), gang(4, cpu=1, gpu=gpu, priority=9)])
    made = promised(preempted(state, policy([*USUAL, placing])))
    assert [made[row] for row in range(1, 5)] == nodes


def test_equal_priority_and_other_queues_are_left_alone_by_preempt() -> None:
    equal = cluster([{"cpu": 1}], [gang(1, 0, cpu=1, minimum=0, priority=3), gang(1, cpu=1, priority=3)])
    other = cluster([{"cpu": 1}], [gang(1, 0, cpu=1, minimum=0, queue=1), gang(1, cpu=1, priority=3)])
    assert not preempted(equal).statements
    assert not preempted(other).statements


def test_no_task_is_taken_where_no_plugin_permits_it() -> None:
    state = cluster([{"cpu": 1}], [gang(1, 0, cpu=1, minimum=0), gang(1, cpu=1, priority=1)])
    silent = PluginSetting("priority", (("*", True), ("preemptable", False)))
    assert not preempted(state, policy([silent])).statements
    assert victims(preempted(state, policy([silent, "conformance"]))) == [0]


def test_the_gang_plugin_keeps_gangs_whole_unless_told_otherwise() -> None:
    state = cluster([{"cpu": 2}], [gang(2, 0, cpu=1), gang(1, cpu=1, priority=1)])
    open_gangs = PluginSetting("gang", (("*", True), ("preemptable", False)))
    assert not preempted(state).statements
    assert len(victims(preempted(state, policy(["priority", open_gangs])))) == 1


def test_a_gang_keeps_the_minimum_of_each_role() -> None:
    roles = [Task(0, cpu=1, role=0, priority=-1), Task(0, cpu=1, role=1), Task(0, cpu=1, role=1, created=1)]
    waits = gang(1, cpu=1, priority=1)
    assert victims(preempted(cluster([{"cpu": 3}], [Gang(roles, 2, roles=(1, 1)), waits]))) == [2]
    elastic = Gang(roles, 1, roles=(1, 1))  # its minimum is less than that of its roles: they do not bind
    assert victims(preempted(cluster([{"cpu": 3}], [elastic, waits]))) == [0]


def test_a_gang_keeps_as_many_whole_subgroups_as_it_needs() -> None:
    pairs = [Task(0, cpu=1, subgroup=part) for part in (0, 0, 1, 1, 2, 2)]
    tree = [(NONE, 2, NONE)] * 3
    nodes, low = [{"cpu": 6}], Gang(pairs, 2, subgroups=tree, min_subgroups=2)
    two, three = (cluster(nodes, [low, gang(many, cpu=1, priority=1)]) for many in (2, 3))
    gone = victims(preempted(two))
    assert len(gone) == 2
    assert gone[0] // 2 == gone[1] // 2  # both of one subgroup: a second one does not break
    assert not preempted(three).statements


def test_what_lacks_a_role_or_a_subgroup_already_can_lose_what_is_beyond_the_minimum() -> None:
    waits = gang(1, cpu=1, priority=1)
    parts = Gang([Task(0, cpu=1, subgroup=part) for part in (0, 0, 1)], 2, subgroups=[(NONE, 2, NONE)] * 2)
    roles = Gang([Task(0, cpu=1, role=1)] * 3, 2, roles=(1, 1))
    for low in (parts, roles):
        assert len(victims(preempted(cluster([{"cpu": 3}], [low, waits])))) == 1


def test_a_gang_gets_room_for_all_its_minimum_or_none() -> None:
    low = gang(2, [0, 1], cpu=2, minimum=0)
    short = cluster([{"cpu": 2}, {"cpu": 2}], [low, gang(3, cpu=2, priority=1)])
    enough = cluster([{"cpu": 2}, {"cpu": 2}], [low, gang(2, cpu=2, priority=1)])
    none = preempted(short)
    assert not none.statements
    assert {one.found.in_full.reason for one in none.unplaced} == {Reason.UNPLACEABLE}
    assert none.snapshot is short
    assert victims(preempted(enough)) == [0, 1]


def test_a_role_that_is_short_is_served_before_tasks_that_are_not_needed() -> None:
    tasks = [Task(cpu=1, role=0), Task(cpu=1, role=0), Task(cpu=1, role=1)]
    state = cluster([{"cpu": 2}], [gang(2, 0, cpu=1, minimum=0), Gang(tasks, 2, priority=1, roles=(1, 1))])
    assert sorted(promised(preempted(state))) == [2, 4]


def test_a_queue_at_its_ceiling_makes_room_within_itself_though_nodes_are_free() -> None:
    state = cluster([{"cpu": 9}, {"cpu": 9}], [gang(2, 0, cpu=2, minimum=0), gang(1, cpu=1, priority=1)])
    full = with_queues(state, capability=4)
    made = preempted(full, policy([*USUAL, "capacity"]))
    assert victims(made) == [1]
    assert promised(made) == {2: 0}


def test_a_queue_that_could_not_take_the_task_in_any_case_evicts_nothing() -> None:
    state = cluster([{"cpu": 9}], [gang(2, 0, cpu=2, minimum=0), gang(1, cpu=5, priority=1)])
    assert not preempted(with_queues(state, capability=4), policy([*USUAL, "capacity"])).statements


def test_who_is_not_needed_after_all_stays() -> None:
    # In victim order the small one goes first, but the big one alone makes the room.
    small, big = Task(0, cpu=1, created=9), Task(0, cpu=3, created=1)
    state = cluster([{"cpu": 4}], [Gang([small, big], 0), gang(1, cpu=3, priority=1)])
    assert victims(preempted(state)) == [1]


def test_who_is_not_needed_once_a_later_task_made_room_stays() -> None:
    low = Gang([Task(0, cpu=1, created=9), Task(0, cpu=5, created=1)], 0)
    high = Gang([Task(cpu=1, priority=2), Task(cpu=3, priority=1)], 2, priority=1)
    assert victims(preempted(cluster([{"cpu": 6}], [low, high]))) == [1]


def test_a_task_with_the_policy_never_evicts_nothing_but_may_use_what_is_free() -> None:
    state = cluster([{"cpu": 1}], [gang(1, 0, cpu=1, minimum=0), gang(1, cpu=1, priority=1)])
    roomy = cluster([{"cpu": 2}], [gang(1, 0, cpu=1, minimum=0), gang(1, cpu=1, priority=1)])
    assert not preempted(with_tasks(state, [1], may_preempt=False)).statements
    assert promised(preempted(with_tasks(roomy, [1], may_preempt=False))) == {1: 0}


def test_protected_tasks_stay() -> None:
    state = cluster([{"cpu": 1}], [gang(1, 0, cpu=1, minimum=0), gang(1, cpu=1, priority=1)])
    assert not preempted(with_tasks(state, [0], preemptible=False)).statements
    assert not preempted(with_tasks(state, [0], critical=True)).statements


def test_a_task_that_asks_for_nothing_takes_only_from_its_like() -> None:
    state = cluster([{"pods": 2}], [Gang([Task(0, cpu=1), Task(0)], 0), gang(1, priority=1)])
    state = with_tasks(state, [1, 2], best_effort=True)
    assert victims(preempted(state)) == [1]
    assert not preempted(with_tasks(state, [1], preemptible=False)).statements


def test_a_promised_task_without_requests_counts_once_towards_the_minimum() -> None:
    state = cluster([{"cpu": 1}], [gang(1, 0, cpu=1, minimum=0), Gang([Task(cpu=1), Task(cpu=1), Task()], 3, 1)])
    assert not preempted(with_tasks(state, [3], best_effort=True)).statements


def test_a_podgroup_takes_less_important_tasks_of_its_own_for_a_role_that_it_lacks() -> None:
    workers = [Task(0, cpu=1, role=1, priority=1, created=at) for at in range(2)]
    own = Gang([Task(cpu=1, role=0, priority=5), *workers], 2, roles=(1, 1))
    open_gangs = PluginSetting("gang", (("*", True), ("preemptable", False)))
    made = preempted(cluster([{"cpu": 2}], [own]), policy(["priority", open_gangs]))
    assert victims(made) == [2]
    assert promised(made) == {0: 0}


def test_a_podgroup_does_not_swap_tasks_of_its_own_if_it_is_no_better_off() -> None:
    state = cluster([{"cpu": 1}], [Gang([Task(0, cpu=1, priority=1), Task(cpu=1, priority=5)], 2)])
    open_gangs = PluginSetting("gang", (("*", True), ("preemptable", False)))
    assert not preempted(state, policy(["priority", open_gangs])).statements


def test_others_are_taken_before_ones_own() -> None:
    own = Gang([Task(0, cpu=1, priority=1), Task(cpu=1, priority=5)], 0, priority=3)
    state = cluster([{"cpu": 1}, {"cpu": 1}], [gang(1, 1, cpu=1, minimum=0), own])
    assert victims(preempted(state, policy(ELASTIC))) == [0]


def test_budgets_are_used_up_by_the_tasks_of_a_cycle() -> None:
    state = cluster([{"cpu": 1}, {"cpu": 1}], [gang(2, [0, 1], cpu=1, minimum=0), *[gang(1, cpu=1, priority=1)] * 2])
    guarded = with_budget(state, [0, 1], 1)
    assert len(victims(preempted(guarded, policy([*USUAL, "pdb"])))) == 1
    assert len(victims(preempted(guarded))) == 2
    one_gang = cluster([{"cpu": 1}, {"cpu": 1}], [gang(2, [0, 1], cpu=1, minimum=0), gang(2, cpu=1, priority=1)])
    assert not preempted(with_budget(one_gang, [0, 1], 1), policy([*USUAL, "pdb"])).statements


def test_a_budget_is_not_spent_on_a_task_that_is_too_small_where_another_one_makes_room() -> None:
    small, large = gang(1, 0, cpu=1, minimum=0), gang(1, 0, cpu=4, minimum=0, priority=1)
    state = with_budget(cluster([{"cpu": 5}], [small, large, gang(1, cpu=4, priority=9)]), [0, 1], 1)
    assert victims(preempted(state, policy([*USUAL, "pdb"]))) == [1]


# -- the sticky domain -----------------------------------------------------------------------------------------


def racks(preemptor: Gang, *others: Gang) -> Snapshot:
    """Two racks of two nodes, one task of low priority on each."""
    return cluster([{"cpu": 1}] * 4, [gang(4, [0, 1, 2, 3], cpu=1, minimum=0), preemptor, *others], racks=(2, 2))


def test_a_gang_with_a_required_level_is_not_torn_between_domains() -> None:
    made = preempted(racks(gang(2, cpu=1, priority=1, required_level=0)))
    assert pinned_nodes(made.snapshot, 1) in ([0, 1], [2, 3])


def test_the_domain_that_holds_the_whole_gang_is_pinned() -> None:
    state = cluster(
        [{"cpu": 1}] * 5, [gang(5, [0, 1, 2, 3, 4], cpu=1, minimum=0), gang(3, cpu=1, priority=1, required_level=0)],
        racks=(2, 3),
    )  # fmt: skip
    assert pinned_nodes(preempted(state).snapshot, 1) == [2, 3, 4]


def test_a_gang_that_does_not_fit_its_pinned_domain_fails_and_evicts_nothing() -> None:
    made = preempted(racks(gang(3, cpu=1, priority=1, required_level=0)))
    assert not made.statements
    assert len(preempted(racks(gang(3, cpu=1, priority=1))).statements) == 1


def test_a_single_task_goes_where_it_costs_least_in_all_domains_of_its_level() -> None:
    costly, cheap = gang(2, [0, 1], cpu=1, minimum=0, priority=2), gang(2, [2, 3], cpu=1, minimum=0, priority=1)
    state = cluster([{"cpu": 1}] * 4, [costly, cheap, gang(1, cpu=1, priority=3, required_level=0)], racks=(2, 2))
    assert victims(preempted(state, policy(topology_aware=True))) in ([2], [3])


def test_tasks_beyond_the_minimum_follow_the_first_into_its_domain() -> None:
    others = gang(3, [0, 1, 2], cpu=1, minimum=0, priority=1), gang(1, [3], cpu=1, minimum=0)
    several = gang(2, cpu=1, priority=2, minimum=1, required_level=0)
    state = cluster([{"cpu": 1}] * 4, [*others, several], racks=(2, 2))
    made = preempted(state, policy([*ELASTIC, "network-topology-aware"], topology_aware=True))
    assert victims(made) == [2, 3]
    assert pinned_nodes(made.snapshot, 2) == [2, 3]


def test_a_gang_that_runs_in_part_stays_in_its_domain() -> None:
    half = Gang([Task(2, cpu=1), Task(cpu=1)], 2, priority=1, required_level=0)
    state = cluster([{"cpu": 1}, {"cpu": 1}, {"cpu": 1}, {"cpu": 1}], [gang(2, [0, 3], cpu=1, minimum=0), half],
                    racks=(2, 2))  # fmt: skip
    made = preempted(state)  # node 1 is free, but in the other rack
    assert victims(made) == [1]
    assert pinned_nodes(made.snapshot, 1) == [2, 3]


def test_without_a_plugin_that_reads_topology_a_required_level_evicts_nothing() -> None:
    state = racks(gang(2, cpu=1, priority=1, required_level=0))
    assert not preempted(state, policy(["priority", "gang"])).statements


def test_a_preferred_level_searches_everywhere() -> None:
    state = racks(gang(3, cpu=1, priority=1))
    state = with_groups(state, ..., preferred_level=[NONE, 0])
    assert len(victims(preempted(state))) == 3


def test_each_subgroup_lies_in_one_domain_of_its_own_level() -> None:
    tasks = [Task(cpu=1, subgroup=0), Task(cpu=1, subgroup=1), Task(cpu=1, subgroup=0), Task(cpu=1, subgroup=1)]
    preemptor = Gang(tasks, 4, priority=1, subgroups=((NONE, 2, NONE), (NONE, 2, NONE)))
    state = racks(preemptor)
    made = preempted(edited(state, "subgroups", ..., required_level=0))
    nodes = promised(made)
    assert {nodes[4] // 2, nodes[6] // 2} != {nodes[5] // 2, nodes[7] // 2}
    assert nodes[4] // 2 == nodes[6] // 2
    assert nodes[5] // 2 == nodes[7] // 2


# -- reclaim ---------------------------------------------------------------------------------------------------


def test_reclaim_takes_back_what_another_queue_uses_beyond_its_share_and_promises_it() -> None:
    state = cluster([{"cpu": 4}], [gang(4, 0, cpu=1, minimum=0, priority=9), gang(2, cpu=1, queue=1)])
    made = reclaimed(state)
    assert len(victims(made)) == 2
    assert promised(made) == {4: 0, 5: 0}


def test_reclaim_leaves_a_queue_what_it_deserves() -> None:
    state = cluster([{"cpu": 4}], [gang(4, 0, cpu=1, minimum=0), gang(3, cpu=1, minimum=3, queue=1)])
    assert not reclaimed(state).statements


def test_reclaim_takes_nothing_from_a_queue_that_forbids_it() -> None:
    state = cluster([{"cpu": 4}], [gang(4, 0, cpu=1, minimum=0), gang(1, cpu=1, queue=1)])
    assert not reclaimed(with_queues(state, reclaimable=False)).statements


def test_reclaim_takes_from_the_queue_that_is_served_last() -> None:
    state = cluster(
        [{"cpu": 4}],
        [gang(2, 0, cpu=1, minimum=0), gang(2, 0, cpu=1, minimum=0, queue=1), gang(1, cpu=1, queue=2)],
        queues=3,
    )
    assert victims(reclaimed(with_queues(state, priority=[1, 2, 3]))) == [1]
    assert victims(reclaimed(with_queues(state, priority=[2, 1, 3]))) == [3]


def test_capacity_leaves_reclaim_to_others_where_no_queue_states_anything() -> None:
    state = cluster([{"cpu": 4}], [gang(4, 0, cpu=1, minimum=0), gang(1, cpu=1, queue=1)])
    assert not reclaimed(state, policy([*USUAL, "capacity"])).statements
    assert len(victims(reclaimed(state, policy([*USUAL, "capacity", "proportion"])))) == 1


# -- names -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("solver", "evicted"), [("tasks", 1), ("bundles", 2)])
def test_the_policy_says_which_solver_finds_the_plans_of_preempt(solver: str, evicted: int) -> None:
    chosen = replace(policy(["priority"]), actions=("preempt",), solvers=(("preempt", solver),))
    state = cluster([{"cpu": 2}], [gang(2, 0, cpu=1, minimum=2), gang(1, cpu=1, priority=1)])
    made = cycle(state, chosen, 0.0)  # a gang that is broken goes as a whole, or is given back as a whole
    assert sum(len(one.evictions) for one in made.statements) == evicted
