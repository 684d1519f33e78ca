"""The plugin proportion: how it divides, and what it takes back."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NO_ROWS, NONE, UNLIMITED
from pipeline.cycle import cycle
from pipeline.plugins.plugin import Preemptor
from pipeline.plugins.proportion import water_fill
from pipeline.policy import Purpose
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_queues
from tests.support.queued import GPU, asking, capacity, proportion, shared
from tests.support.task_centric import policy


def filled(weight, request, *, ceiling=None, guarantee=None, whole=12.0):
    """One resource: what each queue gets."""
    one = [np.array(values, float)[:, None] for values in (request, ceiling or [1e9] * len(weight),
                                                           guarantee or [0] * len(weight))]  # fmt: skip
    return water_fill(np.array(weight, float), *one, np.array([whole]))[:, 0].round(3).tolist()


@pytest.mark.parametrize(
    ("weight", "request_", "said", "expected"),
    [
        ([1, 1], [20, 20], {}, [6, 6]),
        ([1, 3], [20, 20], {}, [3, 9]),
        ([1, 1], [2, 20], {}, [2, 10]),  # what one does not want goes to the other
        ([1, 1, 1], [1, 20, 20], {}, [1, 5.5, 5.5]),
        ([1, 1], [20, 20], {"ceiling": [4, 100]}, [4, 8]),
        ([1, 1], [20, 20], {"guarantee": [8, 0], "ceiling": [12, 4]}, [8, 4]),
        ([0, 1], [20, 20], {}, [0, 12]),  # nobody there
        ([1, 1], [2, 3], {}, [2, 3]),  # more than enough
        ([1, 1], [20, 20], {"whole": 0.0}, [0, 0]),
    ],
)
def test_water_is_divided_by_weight_and_no_queue_gets_more_than_wanted(weight, request_, said, expected):
    assert filled(weight, request_, **said) == expected


def test_a_queue_without_work_gets_no_share():
    state = with_queues(shared(2, 0, 0, waiting=9), weight=[1, 1, 1])
    assert proportion(state).fair_share()[:, GPU].tolist() == [2, 0, 6]


def test_a_queue_that_holds_its_share_of_everything_is_overused():
    state = shared(2, 6, waiting=4)
    assert proportion(state).fair_share()[:, GPU].tolist() == [2, 6]
    assert proportion(state).overused().tolist() == [True, False]


def test_reclaim_takes_from_a_queue_down_to_its_share():
    state = shared(8, 0, waiting=8)
    plugin = proportion(state)
    assert plugin.fair_share()[:, GPU].tolist() == [4, 4]
    assert plugin.bundle_quota_filter(asking(2, gpu=4), np.arange(8)).sum() == 4
    assert plugin.preemptive(asking(2, gpu=4))
    assert not plugin.preemptive(asking(2, gpu=5))


def test_what_goes_together_or_not_at_all_uses_nothing_up_where_it_stays():
    plugin, unit = proportion(shared(8, 0, waiting=8)), np.array([0, 0, NONE, 1, 1, 1, 1, NONE])
    may = plugin.bundle_quota_filter(asking(2, gpu=4), np.arange(8), unit)
    assert may.tolist() == [True, True, True, False, False, False, False, True]


def test_preempt_gives_a_queue_no_more_than_its_share_once_the_victims_have_gone():
    state = shared(2, 2, waiting=4)
    plugin = proportion(state)
    assert plugin.fair_share()[:, GPU].tolist() == [2, 6]
    assert plugin.validate_set(asking(2, Purpose.PREEMPT, gpu=4), NO_ROWS)
    assert not plugin.validate_set(asking(2, Purpose.PREEMPT, gpu=5), NO_ROWS)
    assert not plugin.validate_set(asking(2, Purpose.PREEMPT, gpu=5), np.array([0]))
    assert plugin.validate_set(asking(2, Purpose.PREEMPT, gpu=5), np.array([2]))
    assert plugin.validate_set(Preemptor((), np.zeros(4, np.int64), Purpose.CLEAR), np.array([0]))


@pytest.mark.parametrize(("ceiling", "promised"), [(2, 0), (4, 2)])
def test_a_gang_gets_idle_room_by_preempt_only_up_to_the_share_of_its_queue(ceiling, promised):
    state = with_queues(cluster([{"cpu": 4}], [gang(2, 0, cpu=1), gang(2, cpu=1)]), capability=ceiling)
    chosen = replace(policy(["priority", "proportion"]), actions=("preempt",), solvers=(("preempt", "bundles"),))
    made = cycle(state, chosen, 0.0)
    assert sum(len(one.nominated) for one in made.statements) == promised
    assert not any(len(one.evictions) for one in made.statements)


def test_there_is_no_bound_where_none_is_stated():
    state = cluster([{"gpu": 8}], [Gang([Task(gpu=1)], 1)])
    assert (state.queues.capability == UNLIMITED).all()
    assert capacity(state).queue_limits().headroom[0, GPU] == 8


def test_pods_divide_no_queue():
    """Both queues want more pods than half of what there are; the first may still place its sixth."""
    state = cluster([{"gpu": 8, "pods": 8}], [gang(5, 0, gpu=0, cpu=0, minimum=0), gang(3, gpu=0), gang(8, queue=1)])
    plugin = proportion(state)
    assert plugin.fair_share()[0, 2] < 6
    assert plugin.queue_limits().headroom[0, 2] == UNLIMITED
    assert plugin.preemptive(asking(1, pods=1))


def test_a_resource_of_which_a_queue_deserves_nothing_does_not_make_it_full():
    """What is held beyond the ceiling of a closed-off resource does not put the queue last."""
    state = shared(2, 1, waiting=6, capability={0: {"gpu": 0}})
    assert proportion(state).fair_share()[0, GPU] == 0
    assert proportion(state).queue_order(NO_ROWS)[1][0] == pytest.approx(
        proportion(state)._allocated[0, 2] / proportion(state)._deserved[0, 2]
    )
