"""The plugin capacity: flat and as a tree, strict and as Volcano has it; admission by quota, and by overcommit."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NO_ROWS, NONE
from pipeline.cluster.tables import CLOSED
from pipeline.plugins.overcommit import Overcommit
from pipeline.plugins.plugin import Context, Opinion
from pipeline.policy import PluginSetting, Purpose
from tests.support.asking import DEFAULT
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_groups, with_parents, with_queues, with_quota, with_tasks
from tests.support.queued import GPU, LAX, STRICT, asking, capacity, proportion, shared

# -- capacity: ceilings and entitlements -------------------------------------------------------------------------------


def test_a_flat_queue_may_take_what_others_are_not_guaranteed():
    plugin = capacity(shared(3, 0, guarantee={0: {"gpu": 2}, 1: {"gpu": 1}}), tree=False)
    assert plugin.queue_limits().headroom[:, GPU].tolist() == [8 - 1 - 3, 8 - 2 - 0]


def test_a_ceiling_binds_below_what_there_is():
    assert capacity(shared(3, 0, capability={0: {"gpu": 4}})).queue_limits().headroom[0, GPU] == 1


def test_in_a_tree_the_narrowest_ceiling_on_the_way_up_binds_and_inner_queues_take_nothing():
    state = shared(0, 2, 1, capability={0: {"gpu": 4}, 1: {"gpu": 3}})
    plugin = capacity(with_parents(state, NONE, 0, 0))
    assert plugin.queue_limits().headroom[:, GPU].tolist() == [0, 1, 1]


def test_a_closed_queue_takes_nothing():
    state = with_queues(shared(0, 0), state=CLOSED)
    assert not capacity(state).queue_limits().headroom.any()
    assert capacity(state).preemptive(asking(2, gpu=1)) is False
    assert capacity(state).job_enqueued(2, np.zeros(3, bool)) is Opinion.REJECT


def test_a_queue_deserves_what_it_states_and_at_least_what_it_is_guaranteed():
    plugin = capacity(shared(0, 0, deserved={0: {"gpu": 3}}, guarantee={0: {"gpu": 5}, 1: {"gpu": 1}}))
    assert plugin.fair_share()[:, GPU].tolist() == [5, 1]


def test_share_is_the_largest_used_fraction_and_a_queue_that_deserves_nothing_is_full():
    assert capacity(shared(3, 1, deserved={0: {"gpu": 6}})).queue_order(NO_ROWS)[1].tolist() == [0.5, 1.0]


def test_the_least_satisfied_queue_is_served_first_after_priority():
    state = shared(3, 1, 0, deserved={0: {"gpu": 4}, 1: {"gpu": 4}, 2: {"gpu": 4}})
    order = np.lexsort(capacity(state).queue_order(NO_ROWS)[::-1])
    assert order.tolist() == [2, 1, 0]


def test_in_a_tree_queues_are_compared_where_their_ancestors_part():
    """Queue 2 is emptier than queue 3, but its parent 0 is fuller than 1."""
    state = shared(0, 0, 2, 1, deserved={0: {"gpu": 2}, 1: {"gpu": 8}, 2: {"gpu": 8}, 3: {"gpu": 1}})
    order = np.lexsort(capacity(with_parents(state, NONE, NONE, 0, 1)).queue_order(NO_ROWS)[::-1])
    assert order.tolist()[:2] == [3, 2]


def test_relatives_of_the_preemptor_are_taken_from_first():
    state = with_parents(shared(0, 0, 1, 1, 0), NONE, NONE, 0, 1, 0)
    assert capacity(state).victim_queue_order(4).tolist() == [-1, 0, -1, 0, -2]
    assert capacity(state, tree=False).victim_queue_order(4).tolist() == [0] * 5


# -- capacity: who may take --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "strict", "lax"),
    [({"gpu": 2}, True, True), ({"gpu": 3}, False, False), ({"gpu": 3, "cpu": 1}, False, True),
     ({"gpu": 2, "cpu": 9}, False, True), ({"memory": 1}, False, False)],
)  # fmt: skip
def test_strict_asks_for_all_that_is_stated_and_volcano_for_any(request_, strict, lax):
    state = shared(4, 0, deserved={1: {"gpu": 2, "cpu": 4}})
    assert capacity(state).preemptive(asking(2, **request_)) is strict
    assert bool(capacity(state, LAX).preemptive(asking(2, **request_))) is lax


def test_a_queue_may_hold_too_much_of_what_is_not_asked_for():
    state = shared(4, 3, deserved={1: {"gpu": 2, "cpu": 4}})
    assert capacity(state).preemptive(asking(2, cpu=4))
    assert not capacity(state).preemptive(asking(2, cpu=4, gpu=1))


def test_where_nothing_is_stated_capacity_has_no_opinion_on_who_takes():
    assert capacity(shared(4, 0)).preemptive(asking(2, gpu=1)) is None


def test_an_ancestor_may_answer_for_its_queue_where_the_level_says_so():
    state = with_parents(shared(0, 0, 0, 0, deserved={1: {"gpu": 8}}), NONE, 0, 1, 1)
    assert not capacity(state, LAX).preemptive(asking(4, gpu=1))
    assert capacity(state, {"ancestor_reclaim_level": 1}).preemptive(asking(4, gpu=1))


# -- capacity: who may be taken from -----------------------------------------------------------------------------------


def test_strict_keeps_every_resource_and_volcano_looks_for_one_that_is_over():
    """The victims' queue is over in devices and just at what it deserves in cpu."""
    state = cluster([{"gpu": 8}], [gang(4, 0, gpu=1, cpu=1, minimum=0), gang(2, gpu=1, queue=1)])
    state = with_quota(state, deserved={0: {"gpu": 2, "cpu": 4}, 1: {"gpu": 2}})
    rows = np.arange(4)
    assert capacity(state).bundle_quota_filter(asking(1, gpu=2), rows).tolist() == [False] * 4
    assert capacity(state, LAX).bundle_quota_filter(asking(1, gpu=2), rows).tolist() == [True, True, False, False]


def test_volcano_lets_the_last_victim_overshoot_and_strict_does_not():
    state = cluster([{"gpu": 8}], [gang(2, 0, gpu=3, minimum=0), gang(2, gpu=1, queue=1)])
    state = with_quota(state, deserved={0: {"gpu": 4}, 1: {"gpu": 4}})
    rows = np.arange(2)
    assert capacity(state, LAX).bundle_quota_filter(asking(1, gpu=2), rows).tolist() == [True, False]
    assert capacity(state).bundle_quota_filter(asking(1, gpu=2), rows).tolist() == [False, False]


def test_a_guarantee_is_never_taken():
    state = shared(4, 0, deserved={1: {"gpu": 4}}, guarantee={0: {"gpu": 3}})
    for arguments in (STRICT, LAX):
        assert capacity(state, arguments).bundle_quota_filter(asking(2, gpu=2), np.arange(4)).sum() == 1


def test_ancestors_are_charged_too():
    """Queues 1 and 2 hold two each and deserve nothing themselves; their parent 0 keeps three of four."""
    state = shared(0, 2, 2, 0, deserved={0: {"gpu": 3}, 1: {"gpu": 0}, 2: {"gpu": 0}, 3: {"gpu": 4}})
    state = with_parents(state, NONE, 0, 0, NONE)
    assert capacity(state).bundle_quota_filter(asking(4, gpu=2), np.arange(4)).tolist() == [True, False, False, False]


def test_an_ancestor_below_its_share_loses_no_more_than_the_gang_brings():
    """Queues 1 and 2 share the parent 0, which holds four of the eight that it deserves; the gang asks for two."""
    state = shared(0, 4, 0, gpus=8, deserved={0: {"gpu": 8}, 1: {"gpu": 1}, 2: {"gpu": 4}})
    plugin = capacity(with_parents(state, NONE, 0, 0))
    assert plugin.bundle_quota_filter(asking(3, gpu=2), np.arange(4)).tolist() == [True, True, False, False]
    assert plugin.validate_set(asking(3, gpu=2), np.arange(2))
    assert not plugin.validate_set(asking(3, gpu=2), np.arange(3))


@pytest.mark.parametrize("seed", range(40))
def test_a_unit_may_go_by_quota_if_and_only_if_it_is_a_lawful_set(seed):
    rng = np.random.default_rng(seed)
    parents = (NONE, *(int(rng.integers(0, queue)) for queue in range(1, 4)), *rng.integers(0, 4, 3).tolist())
    held = [0, 0, 0, 0, *rng.integers(0, 6, 2).tolist(), 0]
    deserved = {queue: {"gpu": int(rng.integers(0, 9))} for queue in range(7) if rng.random() < 0.7}
    plugin = capacity(with_parents(shared(*held, gpus=16, deserved=deserved), *parents))
    for _ in range(10):
        preemptor = asking(7, gpu=int(rng.integers(1, 4)))
        rows = rng.permutation(sum(held))[: rng.integers(0, 6)]
        together = plugin.bundle_quota_filter(preemptor, rows, np.zeros(len(rows), np.int64)).all()
        assert together == plugin.validate_set(preemptor, rows)


@pytest.mark.parametrize(
    ("preemptors_share", "level", "permitted"),
    [({"gpu": 2}, 1, True), ({"gpu": 2}, 0, True), ({}, 1, False), ({}, 0, True), ({"memory": 2}, 1, False)],
)
def test_relatives_do_not_ask_their_common_parent_but_spare_each_other_where_no_quota_stands_between_them(
    preemptors_share, level, permitted
):
    """Queue 0 over 1 over 2 and 3: queue 2 holds all that their parent deserves and is entitled to none of it."""
    state = with_parents(shared(0, 0, 4, 0, gpus=4, deserved={1: {"gpu": 6}, 3: preemptors_share}), NONE, 0, 1, 1)
    plugin = capacity(state, {"ancestor_reclaim_level": level})
    assert plugin.bundle_quota_filter(asking(4, gpu=2), np.arange(4)).tolist() == [permitted] * 4


def test_an_ancestor_of_another_height_answers_even_if_it_is_shared():
    """Queue 0 over 1 over 2 and 3, and 2 over 4, which holds what 1 deserves and no more."""
    state = shared(0, 0, 0, 0, 2, gpus=4, deserved={1: {"gpu": 2}, 3: {"gpu": 1}})
    state = with_groups(with_parents(state, NONE, 0, 1, 1, 2), [4, 5], queue=[4, 3])
    assert capacity(state, {"ancestor_reclaim_level": 1}).bundle_quota_filter(asking(5, gpu=1), np.arange(2)).all()
    assert not capacity(state, {"ancestor_reclaim_level": 2}).bundle_quota_filter(asking(5, gpu=1), np.arange(2)).any()


def test_a_scalar_of_which_nothing_is_deserved_can_be_exceeded_and_cpu_cannot():
    """The victims' queue is entitled to more cpu than it holds, and, in so many words, to no device or no memory."""
    state = cluster([{"gpu": 8}], [gang(2, 0, gpu=1, cpu=1, memory=1, minimum=0), gang(1, gpu=1, queue=1)])
    for said, expected in (({"gpu": 0}, True), ({"memory": 0}, False), ({}, False)):
        plugin = capacity(with_quota(state, deserved={0: {"cpu": 4, **said}, 1: {"gpu": 2}}), LAX)
        assert plugin.bundle_quota_filter(asking(1, gpu=1), np.arange(2)).tolist() == [expected] * 2


def test_who_is_entitled_to_pods_is_no_free_game_and_never_has_too_many():
    state = shared(4, 0, deserved={0: {"pods": 1}, 1: {"gpu": 4}})
    assert not capacity(state, LAX).bundle_quota_filter(asking(2, gpu=2), np.arange(4)).any()
    assert capacity(state, LAX).queue_order(NO_ROWS)[1].tolist()[0] == 1.0


def test_who_is_below_a_guarantee_loses_nothing_as_volcano_has_it():
    state = shared(4, 0, deserved={1: {"gpu": 4}}, guarantee={0: {"cpu": 1}})
    assert not capacity(state, LAX).bundle_quota_filter(asking(2, gpu=2), np.arange(4)).any()
    assert capacity(state).bundle_quota_filter(asking(2, gpu=2), np.arange(4)).all()


def test_no_queue_takes_beyond_its_own_ceiling():
    state = shared(4, 0, deserved={1: {"gpu": 4}}, capability={1: {"gpu": 2}})
    assert capacity(state, LAX).preemptive(asking(2, gpu=2))
    assert not capacity(state, LAX).preemptive(asking(2, gpu=3))


def test_of_equally_full_queues_in_a_tree_those_that_deserve_something_come_first():
    """Queue 1 is the older of the two leaves."""
    state = with_parents(shared(0, 0, 4, deserved={2: {"gpu": 4}}), NONE, 0, 0)
    assert np.lexsort(capacity(state).queue_order(NO_ROWS)[::-1]).tolist() == [2, 1, 0]


def test_the_final_victims_are_lawful_in_any_order():
    state = shared(4, 0, deserved={0: {"gpu": 2}, 1: {"gpu": 2}})
    plugin = capacity(state)
    assert plugin.validate_set(asking(2, gpu=2), np.array([3, 0]))
    assert plugin.validate_set(asking(2, gpu=2), np.array([0, 3]))
    assert not plugin.validate_set(asking(2, gpu=2), np.array([0, 1, 2]))


def test_the_preemptor_stays_under_its_ceiling():
    state = shared(4, 0, deserved={1: {"gpu": 2}}, capability={1: {"gpu": 1}})
    assert not capacity(state).validate_set(asking(2, gpu=2), np.array([0, 1]))
    assert capacity(state).validate_set(asking(2, gpu=1), np.array([0]))


def test_preempt_moves_nothing_between_queues_and_is_not_counted():
    state = shared(4, 0, deserved={0: {"gpu": 4}})
    preemptor = asking(2, Purpose.PREEMPT, gpu=2)
    assert not capacity(state).has_quota(preemptor)


# -- capacity: admission -----------------------------------------------------------------------------------------------


def test_podgroups_are_admitted_up_to_the_ceiling_with_those_admitted_before_in_mind():
    state = with_quota(cluster([{"gpu": 8}], [gang(2, gpu=1), gang(2, gpu=1)]), capability={0: {"gpu": 3}})
    state = with_groups(state, [0, 1], min_resources=[NONE, NONE, NONE, 2], phase=0)
    plugin = capacity(state)
    assert plugin.job_enqueued(0, np.array([False, False])) is Opinion.PERMIT
    assert plugin.job_enqueued(1, np.array([True, False])) is Opinion.REJECT


def admitted(state, plugin, rows=(0,)):
    """The opinion on podgroup 1 when ``rows`` were let in before it."""
    return plugin(state).job_enqueued(1, np.isin(np.arange(len(state.podgroups)), rows))


@pytest.mark.parametrize("plugin", [capacity, proportion])
def test_what_is_held_above_the_minimum_resources_can_be_taken_back_and_so_is_no_obstacle(plugin):
    """Three of four devices are held; podgroup 1 wants two at least."""
    running = with_quota(cluster([{"gpu": 4}], [gang(3, 0, gpu=1, minimum=1), gang(2, gpu=1)]))
    waiting = with_groups(running, 1, min_resources=[NONE, NONE, NONE, 2], phase=0)
    assert admitted(waiting, plugin) is Opinion.PERMIT  # nothing was said of podgroup 0
    for least, opinion in ((1, Opinion.PERMIT), (2, Opinion.PERMIT), (3, Opinion.REJECT)):
        stated = with_groups(waiting, 0, min_resources=[NONE, NONE, NONE, least])
        assert admitted(stated, plugin) is opinion


def overcommit(state):
    return Overcommit(Context(state, DEFAULT, 0.0), PluginSetting("overcommit"))


@pytest.mark.parametrize("plugin", [capacity, proportion, overcommit])
def test_a_podgroup_that_states_no_minimum_resources_is_admitted_however_much_is_held(plugin):
    full = with_quota(cluster([{"gpu": 4}], [gang(4, 0, gpu=1), gang(9, gpu=1)]), capability={0: {"gpu": 1}})
    assert admitted(with_groups(full, 0, min_resources=[NONE, NONE, NONE, 4]), plugin) is Opinion.PERMIT
    assert admitted(with_groups(full, 1, min_resources=[NONE, NONE, NONE, 9]), plugin) is Opinion.REJECT


def test_in_an_inner_queue_what_asks_for_something_is_not_admitted_and_in_a_closed_one_nothing_is():
    state = with_parents(cluster([{"gpu": 4}], [gang(1, 0, gpu=1), gang(1, gpu=1)]), NONE, 0)
    stated = with_groups(state, 1, min_resources=[NONE, NONE, NONE, 1])
    assert [admitted(one, capacity) for one in (state, stated)] == [Opinion.PERMIT, Opinion.REJECT]
    for plugin in (capacity, proportion):
        assert admitted(with_queues(state, state=CLOSED), plugin) is Opinion.REJECT


@pytest.mark.parametrize(("phase", "minimum", "gated", "opinion"), [
    (1, 2, False, Opinion.REJECT), (2, 1, False, Opinion.REJECT),
    (2, 2, False, Opinion.PERMIT),  # it runs in part: the rest of it has ended
    (1, 2, True, Opinion.PERMIT),  # its second task may not be placed yet
])  # fmt: skip
def test_admitted_podgroups_claim_the_rest_of_their_minimum(phase, minimum, gated, opinion):
    """One of podgroup 0's two devices is held, and podgroup 1 wants three of the other three."""
    tasks = [Task(0, gpu=1), Task(gpu=1)]
    state = cluster([{"gpu": 4}], [Gang(tasks, minimum), gang(3, gpu=1)])
    state = with_groups(state, [0, 1], min_resources=[[NONE, NONE, NONE, 2], [NONE, NONE, NONE, 3]], phase=[phase, 0])
    assert admitted(with_tasks(state, [1], gated=gated), capacity) is opinion


def test_overcommit_counts_what_is_in_use_and_what_is_claimed_and_nothing_as_elastic():
    """Two of four devices are held by podgroup 0, which needs one of them."""
    state = cluster([{"gpu": 4}], [gang(2, 0, gpu=1, minimum=1), gang(3, gpu=1)])
    for factor, least, opinion in ((1.5, 4, Opinion.PERMIT), (1.5, 5, Opinion.REJECT), (0.5, 3, Opinion.REJECT)):
        wanting = with_groups(state, [0, 1], min_resources=[[NONE] * 3 + [1], [NONE] * 3 + [least]], phase=[2, 0])
        setting = PluginSetting("overcommit", arguments=(("overcommit-factor", factor),))
        plugin = Overcommit(Context(wanting, DEFAULT, 0.0), setting)
        assert plugin.job_enqueued(1, np.zeros(2, bool)) is opinion, (factor, least)


def test_a_unit_that_cannot_go_together_uses_nothing_up():
    """The queue can spare three devices: not the unit of four, but the unit of two behind it and a single task."""
    state = with_quota(
        cluster([{"gpu": 9}], [gang(4, 0, gpu=1), gang(2, 0, gpu=1), gang(2, 0, gpu=1), gang(1, gpu=2, queue=1)]),
        deserved={0: {"gpu": 5}, 1: {"gpu": 9}},
    )
    unit = np.array([0, 0, 0, 0, 1, 1, NONE, NONE])
    for plugin in (capacity(state), capacity(state, LAX)):
        granted = plugin.bundle_quota_filter(asking(3, gpu=2), np.arange(8), unit).tolist()
        assert granted == [False] * 4 + [True] * 3 + [False]
