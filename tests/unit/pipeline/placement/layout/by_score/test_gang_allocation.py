"""Allocation: placing without evicting anybody, all or nothing, in the best of all domains."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.tables import TERMINATING
from pipeline.cluster.vocabulary import Constraint, Requirement
from pipeline.cluster.what_if import WhatIf
from pipeline.placement.layout.by_score import gang_allocation
from pipeline.placement.layout.by_score.gang_allocation import allocate_by_score
from tests.support.asking import DEFAULT, VOLCANO, host_on
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_quota, with_tasks
from tests.support.gathering import Outcome, cluster_file, waiting
from tests.support.placing import RACK, Work, placed


def put(snapshot, podgroup=0, policy=DEFAULT):
    """Node by task of what is bound, and of what is promised; None if nothing."""
    made = allocate_by_score(host_on(snapshot, policy), (podgroup,), "allocate")
    if made is None:
        return None
    assert len(made.evictions) == 0
    bound = dict(zip(made.bound.tolist(), made.bound_node.tolist(), strict=True))
    return bound, dict(zip(made.nominated.tolist(), made.nominated_node.tolist(), strict=True))


def test_a_gang_that_fits_is_bound():
    assert put(cluster([{"gpu": 2}] * 2, [gang(3, gpu=1)])) == ({0: 0, 1: 0, 2: 1}, {})


def test_a_gang_that_does_not_fit_entirely_gets_nothing():
    assert put(cluster([{"gpu": 2}], [gang(3, gpu=1)])) is None


def test_no_node_is_looked_at_where_all_together_have_too_little_even_for_the_smallest_tasks(monkeypatch):
    sizes = [Task(gpu=size) for size in (3, 1, 2)]

    def never(*_):
        raise AssertionError("a node was looked at")

    monkeypatch.setattr(gang_allocation, "ScoredPlacement", never)
    assert put(cluster([{"gpu": 1}] * 2, [Gang(sizes, minimum=2)])) is None
    with pytest.raises(AssertionError):
        put(cluster([{"gpu": 1}] * 3, [Gang(sizes, minimum=2)]))


@pytest.mark.parametrize("minimum", [0, 2])
def test_no_node_is_looked_at_where_the_queue_takes_too_little_even_for_the_smallest_tasks(monkeypatch, minimum):
    sizes = [Task(gpu=size) for size in (5, 3, 4)]
    state = cluster([{"gpu": 8}] * 3, [Gang(sizes, minimum=minimum)])

    def never(*_):
        raise AssertionError("a node was looked at")

    monkeypatch.setattr(gang_allocation, "ScoredPlacement", never)
    enough = 7 if minimum else 3
    assert put(with_quota(state, capability={0: {"gpu": enough - 1}})) is None
    with pytest.raises(AssertionError):
        put(with_quota(state, capability={0: {"gpu": enough}}))


def test_tasks_beyond_the_minimum_are_placed_where_there_is_room():
    assert put(cluster([{"gpu": 2}], [gang(3, gpu=1, minimum=1)])) == ({0: 0, 1: 0}, {})


def test_room_that_is_coming_free_is_promised_and_the_gang_waits_for_all_of_it():
    """One device is idle, one comes free: the gang starts with both, so neither is bound now."""
    state = cluster([{"gpu": 2}], [gang(2, gpu=1), gang(1, 0, gpu=1, status=TERMINATING)])
    assert put(state) == ({}, {0: 0, 1: 0})


def test_what_is_there_now_is_bound_if_the_gang_can_start_with_it():
    state = cluster([{"gpu": 2}], [gang(2, gpu=1, minimum=1), gang(1, 0, gpu=1, status=TERMINATING)])
    assert put(state) == ({0: 0}, {1: 0})


def test_room_that_others_were_promised_is_not_free():
    state = cluster([{"gpu": 1}], [gang(1, gpu=1), gang(1, gpu=1)])
    assert put(WhatIf.of(state).nominating(np.array([1]), np.array([0])).whole) is None


def test_a_queue_takes_no_more_than_its_ceiling():
    state = with_quota(cluster([{"gpu": 4}], [gang(3, gpu=1, minimum=1)]), capability={0: {"gpu": 2}})
    assert put(state) == ({0: 0, 1: 0}, {})


def test_roles_that_are_short_are_not_forgotten_for_tasks_that_come_first():
    workers, driver = [Task(gpu=1, role=1)] * 2, Task(gpu=1, role=0)
    state = cluster([{"gpu": 2}], [Gang([*workers, driver], 2, roles=(1, 1))])
    bound, _ = put(state)
    assert 2 in bound


def test_a_subgroup_that_misses_its_minimum_leaves_nothing_behind():
    tasks = [Task(gpu=1, subgroup=0), Task(gpu=1, subgroup=1), Task(gpu=2, subgroup=1)]
    state = cluster([{"gpu": 2}], [Gang(tasks, 1, subgroups=[(NONE, 1, NONE), (NONE, 2, NONE)], min_subgroups=1)])
    bound, _ = put(state)
    assert list(bound) == [0]


def test_the_fuller_of_two_domains_that_fit_is_taken():
    """Rack 2 is half full: binpack keeps rack 1 whole."""
    state = placed([4] * 2, [Work(0, 2), Work(1, 2, node=1)], racks=(1, 1), groups=[{"required_level": RACK}, {}])
    assert put(state) == ({0: 1}, {})


@pytest.mark.parametrize("subgroups", [[], [(0, NONE, 2, NONE)]])
def test_under_volcano_the_fuller_of_two_domains_is_taken_whatever_the_nodes_that_are_used(subgroups):
    """Rack 2 has a full node and an empty one, rack 1 two empty ones: their empty nodes score alike."""
    mine = [Work(0, 1, subgroup=0 if subgroups else NONE)] * 2
    state = placed([4] * 4, [*mine, Work(1, 4, node=3)], racks=(2, 2), subgroups=subgroups,
                   groups=[{"min_available": 2, "required_level": RACK}, {}])  # fmt: skip
    assert put(state) == ({0: 0, 1: 0}, {})
    assert put(state, policy=VOLCANO) == ({0: 2, 1: 2}, {})


def test_a_domain_that_scores_less_than_one_that_works_is_not_tried(monkeypatch):
    state = placed([4] * 4, [*[Work(0, 1)] * 2, Work(1, 4, node=3)], racks=(2, 2),
                   groups=[{"min_available": 2, "required_level": RACK}, {}])  # fmt: skip
    tried, layout = [], gang_allocation._layout
    monkeypatch.setattr(gang_allocation, "_layout", lambda floor, *said: tried.append(said[0]) or layout(floor, *said))
    put(state)
    before = len(tried)
    put(state, policy=VOLCANO)
    assert (before, len(tried) - before) == (2, 1)


def test_under_volcano_a_subgroup_takes_the_fuller_of_two_domains_rather_than_the_one_with_less_room():
    """Rack 1 has four cores, all free, rack 2 has sixteen and six of them free."""
    state = placed([4, 16], [*[Work(0, 1, subgroup=0)] * 2, Work(1, 10, node=1)], racks=(1, 1),
                   groups=[{"min_available": 2}, {}], subgroups=[(0, NONE, 2, RACK)])  # fmt: skip
    assert put(state) == ({0: 0, 1: 0}, {})
    assert put(state, policy=VOLCANO) == ({0: 1, 1: 1}, {})


def test_a_gang_is_not_torn_between_domains():
    state = placed([2] * 2, [Work(0, 2), Work(0, 2)], racks=(1, 1),
                   groups=[{"required_level": RACK, "min_available": 2}])  # fmt: skip
    assert put(state) is None


ZONE_A = Constraint(node_selector=(Requirement("zone", "In", ("a",)),))


@pytest.mark.parametrize(
    ("work", "minimum", "nodes"),
    [
        ([Work(0, 1), Work(0, 3, constraint=ZONE_A)], 2, {0: 1, 1: 0}),  # the first of them has another node
        ([Work(0, 1), Work(0, 1), Work(0, 2), Work(0, 3)], 4, {0: 1, 1: 1, 2: 1, 3: 0}),  # only the sizes differ
        ([Work(0, cpu, constraint=ZONE_A) for cpu in (3, 2, 1)], 2, {1: 0, 2: 0}),  # without it
    ],
)
def test_a_minimum_that_tasks_in_order_do_not_reach_is_packed_but_not_under_volcano(work, minimum, nodes):
    zones = [{"zone": "a"}, {"zone": "b"}]
    state = placed([3, 4], work, groups=[{"min_available": minimum}], labels=zones)
    assert put(state) == (nodes, {})
    assert put(state, policy=VOLCANO) is None


def test_a_preferred_domain_that_is_full_does_not_keep_a_gang_out():
    state = placed([2] * 2, [Work(0, 2), Work(0, 2)], racks=(1, 1),
                   groups=[{"preferred_level": RACK, "min_available": 2}])  # fmt: skip
    assert put(state) == ({0: 0, 1: 1}, {})


@pytest.mark.parametrize("column", ["best_effort", "gated"])
def test_tasks_without_requests_are_left_to_backfill_and_gated_ones_wait(column):
    state = with_tasks(cluster([{"gpu": 1}], [gang(1, gpu=1)]), [0], **{column: True})
    assert put(state, policy=replace(DEFAULT, best_effort_counts=True)) is None


@pytest.mark.parametrize("preferred", ["podgroup", "subgroup"])
def test_who_prefers_to_be_close_is_placed_beside_those_who_run(preferred):
    """Task 0 runs in the second rack, whose other node is free like those of the first; task 2 finds none there."""
    work = [Work(0, 1, node=2, subgroup=0), Work(0, 1, subgroup=0), Work(0, 1, subgroup=0)]
    groups = [{"min_available": 1, **({"preferred_level": RACK} if preferred == "podgroup" else {})}]
    state = placed([1, 1, 1, 1], work, racks=(2, 2), groups=groups, subgroups=[(0, NONE, 1, NONE)])
    if preferred == "subgroup":
        state = replace(state, subgroups=replace(state.subgroups, preferred_level=frozen([RACK], np.int32)))
    made = allocate_by_score(host_on(state), (0,), "allocate", surplus_limit=2)
    assert made is not None
    assert made.bound_node.tolist() == ([3] if preferred == "podgroup" else [3, 0])


def on_one_node(state, *, limit=None):
    """The tasks that are placed, in order."""
    made = allocate_by_score(host_on(state), (0,), "allocate", surplus_limit=limit)
    return [] if made is None else made.bound.tolist()


def elastic(running, waiting, parts, **said):
    """A podgroup on one node: how many tasks of each subgroup run, and then how many wait; these come last."""
    tasks = [Task(0, gpu=1, subgroup=part) for part, many in enumerate(running) for _ in range(many)]
    tasks += [Task(gpu=1, subgroup=part) for part, many in enumerate(waiting) for _ in range(many)]
    return Gang(tasks, said.pop("minimum", 1), subgroups=parts, **said)


@pytest.mark.parametrize(
    ("running", "room", "placed"),
    [
        ([1, 1], 4, [2, 5, 3, 6]),  # in turn
        ([3, 1], 3, [7, 8, 4]),  # the emptier one first, until both have as many
        ([1, 1], 6, [2, 3, 4, 5, 6, 7]),  # all
    ],
)
def test_where_surplus_does_not_all_fit_the_emptiest_subgroup_grows_first(running, room, placed):
    gang = elastic(running, [3, 3], [(NONE, 1, NONE)] * 2)
    assert sorted(on_one_node(cluster([{"gpu": sum(running) + room}], [gang]))) == sorted(placed)


def test_a_group_of_subgroups_is_as_full_as_it_has_whole_ones_beyond_those_it_needs():
    """Subgroup 0 needs one of 2 and 3, subgroup 1 needs 4 and 5: the latter has nothing to spare, and grows."""
    parts = [(NONE, 0, 1), (NONE, 0, NONE), *((parent, 1, NONE) for parent in (0, 0, 1, 1))]
    gang = elastic([0, 0, 2, 1, 1, 1], [0, 0, 2, 0, 2, 0], parts)
    assert on_one_node(cluster([{"gpu": 7}], [gang])) == [7, 8]


def test_a_subgroup_that_can_be_spared_comes_whole_or_leaves_the_room_to_others():
    parts = [(NONE, 1, NONE), (NONE, 2, NONE)]
    gang = elastic([1, 0], [2, 2], parts, min_subgroups=1)
    assert on_one_node(cluster([{"gpu": 3}], [gang])) == [3, 4]
    assert on_one_node(cluster([{"gpu": 2}], [gang])) == [1]


def test_a_task_that_finds_no_place_does_not_keep_smaller_ones_of_its_subgroup_waiting():
    tasks = [Task(0, gpu=1, subgroup=part) for part in (0, 1)]
    tasks += [Task(gpu=gpu, subgroup=part) for gpu, part in ((2, 0), (2, 0), (1, 0), (2, 1))]
    gang = Gang(tasks, 1, subgroups=[(NONE, 1, NONE)] * 2)
    assert on_one_node(cluster([{"gpu": 3}], [gang])) == [4]
    assert on_one_node(cluster([{"gpu": 5}], [gang])) == [2, 4]


def test_a_podgroup_with_subgroups_leaves_room_to_others_too():
    gang = elastic([1, 1], [2, 2], [(NONE, 1, NONE)] * 2)
    state = cluster([{"gpu": 6}], [gang])
    assert on_one_node(state, limit=1) == [2]
    assert sorted(on_one_node(state, limit=3)) == [2, 3, 4]


def test_podgroups_that_start_together_get_their_minima_before_any_gets_more():
    """Two places, and each of the podgroups needs one: neither takes both, whichever is placed first."""
    both = ["default/a", "default/b"]
    groups = [waiting(name, [2] * 5, min_available=1, gang_group=both) for name in "ab"]
    found = Outcome(cluster_file({"s": {"b": ["n1"]}}, 4, groups))
    assert found.bound == {"a-0": "n1", "b-0": "n1"}
