"""Bundles: the worked examples and tables of "Gang-Aware Preemption and Reclaim", and what it leaves open."""

import itertools

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import SUCCEEDED, TERMINATING
from pipeline.decision.price import in_units
from pipeline.solvers.bundles.bundling.bundles import order_of
from pipeline.solvers.bundles.bundling.records import Bundles, Groups, Rules
from pipeline.solvers.bundles.bundling.sorting import first_by, sort_by
from pipeline.solvers.bundles.bundling.worth import gain
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from tests.support.builders import AXIS, Gang, Task, cluster, gang, searching

BIG = gang(1, cpu=100, gpu=8, priority=9)


def split(gangs, *, nodes=2, racks=(), domain=0, **changed):
    """Bundles of a domain as (podgroup, safe, tasks); the last gang is the preemptor."""
    snapshot = cluster([{"gpu": 99}] * nodes, [*gangs, BIG], racks=racks)
    search = searching(snapshot, len(gangs), **changed)
    return search, DomainBundles(search, domain).ordered


def told(found):
    search, bundles = found
    rows = search.snapshot.occupancy.task
    return [
        (int(bundles.podgroup[b]), bool(bundles.safe[b]), sorted(rows[bundles.entry[bundles.owner == b]].tolist()))
        for b in range(bundles.many)
    ]


# -- Job-A and Job-B ---------------------------------------------------------------------------------------------------


def test_job_a_can_lose_two_of_five_and_its_core_is_three():
    assert told(split([gang(5, [0], minimum=3, gpu=1)])) == [(0, True, [3, 4]), (0, False, [0, 1, 2])]


def test_job_b_can_lose_one_worker_and_no_driver():
    driver, worker = Task(0, gpu=1, role=0), Task(0, gpu=1, role=1)
    job_b = Gang([driver, worker, worker, worker, worker], 4, roles=(1, 3))
    assert told(split([job_b])) == [(0, True, [4]), (0, False, [0, 1, 2, 3])]


def test_an_elastic_job_is_not_held_by_its_roles():
    job = Gang([Task(0, gpu=1, role=0), *[Task(0, gpu=1, role=1)] * 4], 2, roles=(1, 3))
    assert told(split([job])) == [(0, True, [2, 3, 4]), (0, False, [0, 1])]


def test_a_role_without_a_minimum_does_not_bind():
    job = Gang([Task(0, gpu=1, role=0), Task(0, gpu=1, role=1), Task(0, gpu=1)], 1, roles=(1, 0))
    assert told(split([job])) == [(0, True, [1, 2]), (0, False, [0])]


def test_a_gang_below_its_minimum_is_safe_entirely_and_costs_nothing():
    bundles = split([gang(3, [0], minimum=4, gpu=1)])
    assert told(bundles) == [(0, True, [0, 1, 2])]
    assert bundles[1].cost.tolist() == [0.0]


def test_surplus_counts_what_succeeded_but_not_what_is_on_its_way_out():
    done, leaving = Task(0, gpu=1, status=SUCCEEDED), Task(0, gpu=1, status=TERMINATING)
    assert told(split([Gang([done, leaving, Task(0, gpu=1), Task(0, gpu=1)], 2)])) == [(0, True, [3]), (0, False, [2])]


def test_surplus_elsewhere_lets_local_tasks_go_but_only_local_tasks_are_taken():
    bundles = split([gang(4, [0, 0, 1, 1], minimum=3, gpu=1)], racks=(1, 1), domain=1)
    assert told(bundles) == [(0, True, [1]), (0, False, [0])]
    assert bundles[1].elsewhere.tolist() == [0, 2]


# -- subgroups ---------------------------------------------------------------------------------------------------------


def in_parts(counts, minimum, parts, least):
    tasks = [Task(0, gpu=1, subgroup=part) for part, count in enumerate(counts) for _ in range(count)]
    return Gang(tasks, minimum, subgroups=parts, min_subgroups=least)


def test_a_subgroup_above_its_minimum_can_lose_its_surplus():
    assert told(split([in_parts([3, 2], 2, [(NONE, 2, NONE)] * 2, NONE)]))[0] == (0, True, [2])


def test_one_subgroup_can_break_if_enough_others_stay_whole():
    assert told(split([in_parts([2, 2, 2], 2, [(NONE, 2, NONE)] * 3, 2)]))[0] == (0, True, [4, 5])


def test_a_subgroup_that_is_broken_already_is_free():
    assert told(split([in_parts([1, 2, 2], 2, [(NONE, 2, NONE)] * 3, 2)]))[0] == (0, True, [0])


def test_every_level_of_subgroups_keeps_what_it_states():
    two_of_two = [(NONE, 0, 1), (NONE, 0, 2), (0, 1, NONE), (0, 1, NONE), (1, 1, NONE), (1, 1, NONE)]
    tasks = [Task(0, gpu=1, subgroup=part) for part in (2, 3, 4, 5)]
    assert told(split([Gang(tasks, 1, subgroups=two_of_two)]))[0] == (0, True, [1])
    assert told(split([Gang(tasks, 1, subgroups=two_of_two, min_subgroups=1)]))[0] == (0, True, [1, 2, 3])


# -- who of a gang goes first ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "goes"),
    [
        ([Task(0, gpu=4), Task(0, gpu=2)], 0),  # covers more
        ([Task(0, gpu=4, priority=3), Task(0, gpu=4, priority=1), Task(0, gpu=4, priority=2)], 1),
        ([Task(0, gpu=64), Task(0, gpu=8), Task(0, gpu=32)], 1),  # all cover the need; the rest is waste
        ([Task(0, gpu=4), Task(0, gpu=4, memory=8)], 0),  # what nobody asked for is waste, too
        ([Task(0, gpu=4, created=2.0), Task(0, gpu=4, created=3.0), Task(0, gpu=4, created=1.0)], 1),
        ([Task(0, gpu=2, priority=-5), Task(0, gpu=4, priority=5)], 1),  # coverage comes before priority
        ([Task(0, gpu=64, priority=1), Task(0, gpu=8, priority=2)], 0),  # and priority before waste
        ([Task(0, gpu=64, created=2.0), Task(0, gpu=8, created=1.0)], 1),  # and waste before age
    ],
)
def test_within_a_gang_coverage_priority_waste_and_youth_decide(tasks, goes):
    assert told(split([Gang(tasks, len(tasks) - 1)]))[0] == (0, True, [goes])


def test_sorting_in_a_kernel_is_sorting():
    rng = np.random.default_rng(7)
    for size in (0, 1, 2, 13, 17, 200, 3_000):
        rows, high, low = np.arange(size), rng.integers(0, 5, size), rng.permutation(size)
        expected = np.lexsort((low, high)).tolist()
        sort_by(rows, high, low)
        assert rows.tolist() == expected
        for many in {0, 1, size // 3, size}:
            rows, keys = np.arange(size), (rng.integers(0, 5, size), rng.permutation(size))
            expected = np.lexsort(keys[::-1])[:many].tolist()
            first_by(rows, *keys, many)
            assert rows[:many].tolist() == expected
            assert sorted(rows.tolist()) == list(range(size))


def test_a_role_that_can_spare_as_much_as_its_gang_does_not_bind():
    tasks = [Task(0, gpu=1, role=at % 2, created=float(at)) for at in range(6)]
    assert told(split([Gang(tasks, 4, roles=(1, 1))]))[0] == (0, True, [4, 5])
    assert told(split([Gang(tasks, 4, roles=(3, 1))]))[0] == (0, True, [3, 5])


# -- efficiency --------------------------------------------------------------------------------------------------------


def amounts(**said):
    return np.array([said.get(name, 0) for name in AXIS], np.int64)


@pytest.mark.parametrize(
    ("victim", "needed", "local", "everywhere", "gained", "paid", "worth"),
    [
        ("A", {"gpu": 2}, {"gpu": 2}, {"gpu": 4}, 1.0, 2.0, 0.5),
        ("B", {"gpu": 2}, {"gpu": 2}, {"gpu": 2}, 1.0, 1.0, 1.0),
        ("C", {"cpu": 10}, {"cpu": 10}, {"cpu": 20}, 1.0, 2.0, 0.5),
        ("D", {"cpu": 10}, {"cpu": 2}, {"cpu": 2}, 0.2, 0.2, 1.0),
        ("E", {"cpu": 4, "memory": 16}, {"cpu": 4, "memory": 4}, {"cpu": 4, "memory": 4}, 1.25, 1.25, 1.0),
        ("F", {"cpu": 4, "memory": 16}, {"cpu": 2, "memory": 8}, {"cpu": 2, "memory": 8}, 1.0, 1.0, 1.0),
        ("G", {"cpu": 4}, {"cpu": 4}, {"cpu": 4}, 1.0, 1.0, 1.0),
        ("H", {"cpu": 4}, {"cpu": 4, "gpu": 1}, {"cpu": 4, "gpu": 1}, 1.0, 1.0, 1.0),
    ],
)
def test_the_tables_of_document_1(victim, needed, local, everywhere, gained, paid, worth):
    need, here, whole = amounts(**needed), amounts(**local), amounts(**everywhere)
    cost = in_units(whole[None, :], need)[0]
    assert (victim, gain(here, need), cost) == (victim, gained, paid)
    assert gain(here, need) / cost == worth


def test_a_victim_that_holds_nothing_needed_is_worth_nothing():
    bundles = split([gang(1, [0], memory=4)])
    assert bundles[1].efficiency.tolist() == [0.0]


def test_a_distributed_gang_is_less_efficient_than_one_inside_the_domain():
    spread, inside = gang(2, [0, 1], gpu=2), gang(1, [0], gpu=2)
    bundles = split([spread, inside], racks=(1, 1), domain=1)
    assert told(bundles) == [(1, False, [2]), (0, False, [0])]
    assert bundles[1].efficiency.tolist() == [1.0, 0.5]


def test_pods_count_only_where_nothing_else_is_asked_for():
    snapshot = cluster([{}], [gang(3, [0]), gang(2, priority=1)])
    assert searching(snapshot, 1).worth.needed.tolist() == amounts(pods=2).tolist()
    snapshot = cluster([{}], [gang(3, [0]), gang(2, cpu=1, priority=1)])
    assert searching(snapshot, 1).worth.needed.tolist() == amounts(cpu=2).tolist()


# -- order -------------------------------------------------------------------------------------------------------------


def listed(count, *, safe=False, worth=1.0):
    column = np.arange(count)
    return Bundles(
        column, np.broadcast_to(safe, count).copy(), column + 1, column, np.zeros(count, np.int64),
        np.broadcast_to(worth, count).astype(float), np.ones(count),
    )  # fmt: skip


def ordered(bundles, before=None, after=None, last=None, step=0.05):
    """Podgroups in the order of their bundles; equal in everything, they would keep the order in which they came."""
    none, zeros = np.zeros(bundles.many, np.int32), np.zeros(bundles.many)
    ranks = [np.array(none if key is None else key, np.int64) for key in (before, after, last)]
    by_nodes = np.zeros(0, np.int64)
    groups = Groups(zeros, none, none == 0, ranks[0], ranks[1], by_nodes, ranks[2], none, ranks[0], ranks[0], zeros)
    rules = Rules(True, True, False, False, True, step, 0.0)
    return bundles.podgroup[order_of(bundles, groups.rank_before, groups, rules)].tolist()


def test_safe_bundles_come_first_whatever_policy_says():
    assert ordered(listed(2, safe=[False, True]), before=[0, 9]) == [1, 0]


def test_what_policy_puts_before_efficiency_prevails():
    assert ordered(listed(2, worth=[1.0, 0.2]), before=[5, 1]) == [1, 0]


def test_efficiency_decides_among_equals_and_then_policy_then_the_last_rank():
    assert ordered(listed(3, worth=[0.2, 0.9, 0.5])) == [1, 2, 0]
    assert ordered(listed(3), after=[2, 0, 1]) == [1, 2, 0]
    assert ordered(listed(3), last=[2, 0, 1]) == [1, 2, 0]


def test_efficiencies_of_one_step_are_equal_so_that_policy_decides():
    assert ordered(listed(2, worth=[0.52, 0.54]), after=[0, 1]) == [0, 1]
    assert ordered(listed(2, worth=[0.52, 0.56]), after=[0, 1]) == [1, 0]
    assert ordered(listed(2, worth=[1.0, 0.952]), after=[1, 0]) == [1, 0]
    assert ordered(listed(2, worth=[0.52, 0.54]), after=[0, 1], step=0.0) == [1, 0]


def test_a_step_ends_at_its_multiple_in_spite_of_rounding():
    assert ordered(listed(2, worth=[0.15, 0.11]), after=[1, 0]) == [1, 0]
    assert ordered(listed(2, worth=[0.15, 0.16]), after=[0, 1]) == [1, 0]


def test_the_order_does_not_depend_on_the_order_of_the_input():
    worth = [0.51, 0.54, 0.56, 0.59]
    for input_ in itertools.permutations(range(4)):
        order = np.array(input_)
        bundles = listed(4, worth=worth)
        bundles = bundles._replace(podgroup=bundles.podgroup[order], efficiency=bundles.efficiency[order])
        assert ordered(bundles, after=[0, 1, 2, 3]) == [2, 3, 0, 1]


def test_efficiency_of_surplus_is_not_compared():
    assert ordered(listed(2, safe=True, worth=[0.1, 0.9]), after=[0, 1]) == [0, 1]


# -- what may not break ------------------------------------------------------------------------------------------------


def test_a_gang_with_a_protected_member_anywhere_is_not_broken():
    job = Gang([Task(0, gpu=1), Task(1, gpu=1, preemptible=False)], 2)
    assert told(split([job], racks=(1, 1), domain=1)) == []


def test_where_gangs_go_locally_a_protected_member_elsewhere_does_not_matter():
    job = Gang([Task(0, gpu=1), Task(1, gpu=1, preemptible=False)], 2)
    assert told(split([job], racks=(1, 1), domain=1, cluster_wide=False)) == [(0, False, [0])]
    here = Gang([Task(0, gpu=1), Task(0, gpu=1, preemptible=False)], 2)
    assert told(split([here], racks=(1, 1), domain=1, cluster_wide=False)) == []


def test_gangs_are_not_broken_where_policy_forbids_it():
    assert told(split([gang(3, [0], minimum=2, gpu=1)], allow_whole=False)) == [(0, True, [2])]
