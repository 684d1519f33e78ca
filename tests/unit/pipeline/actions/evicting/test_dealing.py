"""Many single tasks alike: one search makes room for all of them, and each gets its own plan."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from actors.cli.simulate import open_case
from actors.configuration.profiles import load_profile
from pipeline.actions.progress import Progress, StateSoFar
from pipeline.actions.searching import InPlace
from pipeline.actions.setup import Setup
from pipeline.cluster.arrays import NONE, sealed
from pipeline.cycle import cycle
from pipeline.decision.decided import carried_out
from pipeline.decision.plan import assumptions, assumptions_of
from pipeline.decision.verdict import Accepted, Stale
from pipeline.judge import judge
from pipeline.policy import Purpose
from tests.support import asking
from tests.support.asking import DEFAULT, VOLCANO
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_groups
from tests.support.twins import uncompiled

PREEMPTING = replace(DEFAULT, actions=("preempt",))
GPU = "nvidia.com/gpu"
HOUR = 3600.0
SCENARIOS = replace(load_profile("kai"), actions=("preempt",))


def served(state, policy=PREEMPTING):
    """A cycle, and for how many podgroups at once each search was."""
    done, asked = asking.served(state, policy)
    return done, [len(podgroups) for podgroups in asked]


def lone(many, **what):
    return [gang(1, priority=9, **what) for _ in range(many)]


def with_a_role(tasks, minimum):
    """A podgroup that can do without some task of a role: gangs of its kind share victims, and have turns."""
    return Gang([Task(gpu=1, role=0)] * tasks, minimum, priority=9, roles=(0,))


def test_tasks_alike_are_served_by_one_search_and_each_gets_a_plan_of_its_own():
    done, asked = served(cluster([{"gpu": 4}] * 2, [gang(1, n, gpu=1) for n in (0, 0, 0, 0, 1, 1)] + lone(5, gpu=1)))
    assert asked == [5]
    assert [plan.statement.preemptor for plan in done.plans] == [6, 7, 8, 9, 10]
    assert [len(plan.statement.nominated) for plan in done.plans] == [1] * 5
    assert [plan.price.victims for plan in done.plans] == [len(plan.statement.evictions) for plan in done.plans]
    assert sum(plan.price.victims for plan in done.plans) == 3  # two fit as it is
    assert {plan.explanation.together for plan in done.plans} == {5}


def test_where_there_is_room_for_some_the_first_in_order_get_it():
    done, asked = served(cluster([{"gpu": 4}], [gang(1, 0, gpu=2), gang(1, 0, gpu=2, priority=99), *lone(5, gpu=1)]))
    assert asked[:4] == [5, 1, 3, 2]
    assert [plan.statement.preemptor for plan in done.plans] == [2, 3]
    assert {one.gang_group for one in done.unplaced} == {(4,), (5,), (6,)}


@pytest.mark.parametrize(("policy", "asked"), [(PREEMPTING, [5, 1, 3, 4]), (SCENARIOS, [5, 1, 3, 2, 1])])
def test_more_than_the_half_that_has_room_are_tried_where_the_cheapest_set_goes(policy, asked):
    state = cluster([{"gpu": 4}], [*(gang(1, 0, gpu=1) for _ in range(4)), *lone(5, gpu=1)])
    done, tried = served(state, policy)
    assert tried[: len(asked)] == asked
    assert [plan.statement.preemptor for plan in done.plans] == [4, 5, 6, 7]


def test_a_gang_that_breaks_goes_with_the_first_plan_that_takes_of_it():
    done, asked = served(cluster([{"gpu": 4}] * 2, [gang(2, [0, 1], gpu=4), *lone(2, gpu=4)]))
    assert asked == [2]
    assert [plan.statement.evictions.tolist() for plan in done.plans] == [[0, 1], []]
    assert [plan.price.gangs_broken for plan in done.plans] == [1, 0]


def test_a_small_victim_is_given_back_where_a_larger_one_suffices():
    """Both tasks go where victims of two and six devices are; the first needs the larger one alone."""
    state = cluster(
        [{"gpu": 4}, {"gpu": 8}], [gang(1, 0, gpu=4), gang(1, 1, gpu=2), gang(1, 1, gpu=6), *lone(2, gpu=4)]
    )
    done, _ = served(state)
    assert [plan.statement.evictions.tolist() for plan in done.plans] == [[2], [1]]


def test_every_plan_is_accepted_on_what_those_before_it_left():
    state = cluster(
        [{"gpu": 4}] * 3, [gang(2, [0, 1], gpu=2), gang(1, [0, 1, 2], gpu=1), gang(1, 2, gpu=3), *lone(7, gpu=1)]
    )
    done, asked = served(state)
    assert asked[0] == 7
    assert len(done.plans) == 7
    for plan in done.plans:
        assert isinstance(judge(plan, state, PREEMPTING, 0.0), Accepted), plan.statement
        state = replace(carried_out(plan.statement, state, 0.0), revision=state.revision)


@pytest.mark.parametrize(
    "others",
    [
        [gang(1, gpu=1, priority=9, required_level=0) for _ in range(2)],
        [with_a_role(2, 1) for _ in range(2)],
        [gang(1, gpu=1, priority=9), gang(1, gpu=1, priority=8)],
        [gang(1, gpu=1, priority=9), gang(1, gpu=2, priority=8)],
    ],
)
def test_what_is_not_alike_is_served_one_by_one(others):
    _, asked = served(cluster([{"gpu": 4}], [gang(1, 0, gpu=1) for _ in range(4)] + others))
    assert set(asked) == {1}


def test_a_few_that_ask_for_different_things_are_served_by_one_search_where_that_costs_less():
    """One by one the small one takes what is cheapest, and the other needs the pair then, which is enough for both."""
    low, waiting = [gang(1, 0, gpu=4), gang(2, [1, 2], gpu=4)], [gang(1, gpu=gpu, priority=9) for gpu in (1, 4)]
    state = with_groups(cluster([{"gpu": 4}] * 3, low + waiting), [0, 1], started=[0.0, -HOUR])
    done, asked = served(state)
    assert asked == [2, 1, 1]
    assert [plan.statement.evictions.tolist() for plan in done.plans] == [[1, 2], []]
    assert [plan.explanation.minimum for plan in done.plans] == [1, 1]


def test_those_are_served_one_by_one_where_another_of_them_gets_a_plan_then():
    """The second finds no room; the third does."""
    waiting = [gang(1, gpu=gpu, priority=9) for gpu in (1, 8, 2)]
    done, _ = served(cluster([{"gpu": 4}], [gang(1, 0, gpu=1) for _ in range(4)] + waiting))
    assert [plan.statement.preemptor for plan in done.plans] == [4, 6]


def test_a_policy_that_keeps_the_order_of_bundles_serves_one_by_one():
    state = cluster([{"gpu": 4}], [gang(1, 0, gpu=1) for _ in range(4)] + lone(3, gpu=1))
    _, asked = served(state, replace(VOLCANO, actions=("gangpreempt",)))
    assert asked == [1, 1, 1]


def test_each_plan_has_the_price_of_its_own_victims():
    state = with_groups(
        cluster([{"gpu": 2}], [gang(1, 0, gpu=1), gang(1, 0, gpu=1), *lone(2, gpu=1)]), [0], started=[-3600.0]
    )
    done, _ = served(state)
    assert sorted(plan.price.lost_work for plan in done.plans) == [1.0, 2.0]
    assert len(np.unique(np.concatenate([plan.statement.evictions for plan in done.plans]))) == 2


@pytest.mark.parametrize("waiting", [lone(3, gpu=1), [with_a_role(3, 2) for _ in range(2)]])
@pytest.mark.parametrize("lost", ["together", "among"])
def test_a_lost_searcher_ends_the_pass_and_its_gangs_wait_for_the_next_cycle(waiting, lost):
    class Lost(InPlace):
        def one(self, attempt, host):
            is_lost = len(attempt.podgroups) > 1 if lost == "together" else attempt.among is not None
            return None if is_lost else super().one(attempt, host)

    state = cluster([{"gpu": 4}], [gang(1, 0, gpu=1) for _ in range(4)] + waiting)
    done = cycle(state, PREEMPTING, 0.0, Setup(search=Lost()))
    if lost == "among" and len(waiting[0].tasks) == 1:
        assert len(done.plans) == 3, "tasks that are dealt plans share no victims"
    else:
        assert done.plans == ()
        assert done.more


@pytest.mark.parametrize("level", [NONE, 0])
def test_a_search_that_is_lost_among_several_for_the_same_gangs_leaves_all_of_them_to_the_next_cycle(level):
    """They ask for different things, together or for a rack each."""

    class Lost(InPlace):
        left = 0

        def one(self, attempt, host):
            self.left -= 1
            return None if self.left == 0 else super().one(attempt, host)

    waiting = [gang(1, gpu=gpu, priority=9, required_level=level) for gpu in (1, 4)]
    low = [gang(1, 0, gpu=4), gang(2, [1, 2], gpu=4)]
    state = with_groups(cluster([{"gpu": 4}] * 3, low + waiting, racks=[1] * 3), [0, 1], started=[0.0, -HOUR])
    search = Lost()
    assert len(cycle(state, PREEMPTING, 0.0, Setup(search=search)).plans) == 2
    for lost in range(1, 1 - search.left):
        search.left = lost
        done = cycle(state, PREEMPTING, 0.0, Setup(search=search))
        assert (done.more, done.plans) == (True, ()), lost


def test_victims_are_dealt_by_the_compiled_kernel_and_by_its_plain_twin_alike():
    running = [gang(2, [0, 1], gpu=1), *(gang(1, at % 3, gpu=1 + at % 2) for at in range(6)), gang(3, [0, 1, 2], gpu=1)]
    state = cluster([{"gpu": 4}] * 3, [*running, *lone(5, gpu=2)])
    compiled, asked = served(state)
    with uncompiled():
        assert repr(served(state)[0].plans) == repr(compiled.plans)
    assert asked[0] == 5
    assert sum(len(plan.statement.evictions) for plan in compiled.plans)


def test_what_each_of_several_plans_assumes_is_what_it_would_alone():
    state = cluster([{"gpu": 4}] * 2, [gang(1, n, gpu=1) for n in (0, 0, 0, 0, 1, 1)] + lone(5, gpu=1))
    attempt = Progress(StateSoFar(state), PREEMPTING, 0.0).attempt(Purpose.PREEMPT, (6,), "preempt")
    some = [plan.statement for plan in served(state)[0].plans]
    assert [repr(one) for one in assumptions_of(attempt, some)] == [repr(assumptions(attempt, one)) for one in some]
    assert [one.nodes.tolist() for one in assumptions_of(attempt, some)] == [
        sorted({*state.tasks.node[made.evictions].tolist(), *made.nominated_node.tolist()}) for made in some
    ]


def at_its_limit(profile, purpose, alike, each, held=4, members=1):
    """A queue at its limit on a node with as much more; podgroups alike wait there, or in its sibling.

    Those that run need one of their ``members``.
    """
    all_of_it, preempts = {"cpu": "unlimited", "memory": "unlimited"}, purpose == "preempt"
    deserved = {"a": held if preempts else 0, "b": 0 if preempts else held}
    low = [{"name": f"low{at}", "request": {GPU: 1}, "status": "Running", "node": "n0"} for at in range(held)]
    waiting = [[{"name": f"high{at}-{n}", "request": {GPU: 1}} for n in range(each)] for at in range(alike)]
    return {
        "version": 1,
        "policy": {"profile": profile, "actions": ["allocate", purpose]},
        "nodes": [{"name": "n0", "allocatable": {GPU: 2 * held, "pods": 199}}],
        "queues": [
            {"name": "top", "capability": {GPU: held}, "deserved": {GPU: held, **all_of_it}},
            *(
                {"name": name, "parent": "top", "capability": {GPU: held}, "deserved": {GPU: own, **all_of_it}}
                for name, own in deserved.items()
            ),
        ],
        "podgroups": [
            *({"name": one["name"], "queue": "a", "priority": 1, "min_available": 1, "phase": "Running",
               "tasks": low[at : at + members]} for at, one in islice(enumerate(low), 0, None, members)),
            *({"name": f"high{at}", "queue": "a" if preempts else "b", "priority": 9, "min_available": each,
               "phase": "Inqueue", "tasks": tasks} for at, tasks in enumerate(waiting)),
        ],
    }  # fmt: skip


@pytest.mark.parametrize(("alike", "each"), [(2, 1), (3, 1), (2, 2)])
@pytest.mark.parametrize("purpose", ["preempt", "reclaim"])
@pytest.mark.parametrize("profile", ["default", "kai"])
def test_podgroups_alike_whose_queue_is_at_its_limit_make_room_although_nodes_have_some(profile, purpose, alike, each):
    case = open_case(at_its_limit(profile, purpose, alike, each))
    first = cycle(case.snapshot, case.policy, case.now)
    assert [len(plan.statement.evictions) for plan in first.plans] == [each] * alike
    for plan in first.plans:
        assert isinstance(judge(plan, case.snapshot, case.policy, case.now), Accepted)


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_a_victim_that_only_makes_room_below_a_limit_is_not_given_back(profile):
    case = open_case(at_its_limit(profile, "preempt", 1, 2))
    (plan,) = cycle(case.snapshot, case.policy, case.now).plans
    verdict = judge(plan, case.snapshot, case.policy, case.now)
    assert isinstance(verdict, Accepted)
    assert verdict.statement.evictions.tolist() == plan.statement.evictions.tolist()


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_a_plan_is_stale_once_others_hold_what_its_victims_would_leave_below_a_limit(profile):
    case = open_case(at_its_limit(profile, "preempt", 1, 1))
    (plan,) = cycle(case.snapshot, case.policy, case.now).plans
    queues = case.snapshot.queues
    less = replace(case.snapshot, queues=replace(queues, capability=sealed(np.minimum(queues.capability, 3))))
    assert isinstance(judge(plan, replace(less, revision=less.revision + 1), case.policy, case.now), Stale)


@pytest.mark.parametrize("purpose", ["preempt", "reclaim"])
@pytest.mark.parametrize("profile", ["default", "kai"])
def test_podgroups_alike_whose_queue_is_at_its_limit_are_served_by_one_search(profile, purpose):
    case = open_case(at_its_limit(profile, purpose, 4, 1))
    done, asked = served(case.snapshot, case.policy)
    assert asked == [4]
    assert [len(plan.statement.evictions) for plan in done.plans] == [1] * 4
    with uncompiled():
        assert repr(served(case.snapshot, case.policy)[0].plans) == repr(done.plans)


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_some_of_the_victims_at_a_limit_make_room_at_once_where_all_of_them_would_be_too_many(profile):
    """Were all of them to go, the queue above would fall below what it deserves."""
    case = open_case(at_its_limit(profile, "reclaim", 45, 1, held=60))
    done, asked = served(case.snapshot, case.policy)
    assert asked == [45]
    assert [len(plan.statement.evictions) for plan in done.plans] == [1] * 45


@pytest.mark.parametrize("alike", [1, 5])
@pytest.mark.parametrize("profile", ["default", "kai"])
def test_surplus_at_a_limit_makes_room_task_by_task_where_all_that_a_podgroup_can_spare_would_be_too_much(
    profile, alike
):  # fmt: skip
    """Were two tasks to go for one, the queue above would fall below what it deserves."""
    case = open_case(at_its_limit(profile, "reclaim", alike, 1, held=60, members=4))
    done, asked = served(case.snapshot, case.policy)
    assert asked == [alike]
    assert [len(plan.statement.evictions) for plan in done.plans] == [1] * alike
    assert not any(plan.price.gangs_broken for plan in done.plans)
