"""What quotas permit alone: surplus task by task, what breaks with all that goes with it."""

import pytest

from pipeline.cluster.arrays import NONE
from pipeline.placement.need import need_of
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.solvers.bundles.bundling.permitted_alone import may_free_enough, permitted_alone
from pipeline.solvers.bundles.solver import search_of
from tests.support.asking import attempt
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_quota
from tests.support.twins import uncompiled

#: Two racks of one node each.
DEVICES = 4


def may_go(mine: Gang, spare: int, *, first_rack: bool = False) -> tuple[list[int], bool]:
    """Tasks of a podgroup that may go alone while its queue can lose so many devices; and whether it may break."""
    held = sum(task.gpu for task in mine.tasks if task.node != NONE)
    state = cluster([{"gpu": DEVICES}] * 2, [mine, gang(1, gpu=DEVICES, queue=1)], queues=2, racks=(1, 1))
    state = with_quota(state, deserved={0: {"gpu": held - spare}, 1: {"gpu": 2 * DEVICES}})
    one = attempt(state, 1, Purpose.RECLAIM)
    search = search_of(one, host_of(one), need_of(state, one.podgroups, surplus=False))
    end = int(search.site.start[1 if first_rack else 2])
    found, broken = permitted_alone(0, end, search.terms, search.seats())
    with uncompiled():
        other = permitted_alone(0, end, search.terms, search.seats())
    assert [one.tolist() for one in other] == [found.tolist(), broken.tolist()]
    return sorted(state.occupancy.task[found].tolist()), broken.tolist() == [0]


def of(minimum: int, *gpus: int, missing: int = 0) -> Gang:
    """A podgroup of queue 0 whose tasks take turns on two nodes; some others of it do not run."""
    running = [Task(at % 2, gpu=gpu) for at, gpu in enumerate(gpus)]
    return Gang([*running, *[Task(gpu=1)] * missing], minimum, queue=0)


@pytest.mark.parametrize(("spare", "expected"), [(2, ([], False)), (3, ([0, 1, 2], True))])
def test_a_podgroup_that_needs_all_of_its_tasks_goes_whole_or_not_at_all(spare, expected):
    assert may_go(of(3, 1, 1, 1), spare) == expected


def test_what_goes_elsewhere_with_it_counts():
    assert may_go(of(2, 1, 1), 1, first_rack=True) == ([], False)
    assert may_go(of(2, 1, 1), 2, first_rack=True) == ([0], True)


def test_of_surplus_each_task_counts_alone():
    assert may_go(of(1, 1, 2, 2), 0) == ([], False)
    assert may_go(of(1, 1, 2, 2), 1) == ([0], False)
    assert may_go(of(1, 1, 2, 2), 2) == ([0, 1, 2], False)
    assert may_go(of(1, 1, 2, 2), 5) == ([0, 1, 2], True)


def test_of_a_podgroup_below_its_minimum_each_task_goes_alone():
    assert may_go(of(4, 1, 2, 2, missing=1), 1) == ([0], False)


@pytest.mark.parametrize(("asks", "spare", "expected"), [(4, 3, False), (4, 4, True), (3, 3, True), (8, 7, False)])
@pytest.mark.parametrize("of", ["gpu", "memory"])
def test_no_more_is_freed_than_the_scarcest_of_what_queues_can_lose(asks, spare, expected, of):
    """Each task holds two units of memory; one unit more may be lost than those hold that may go."""
    low = [Gang([Task(at % 2, gpu=1, memory=2)], 1, queue=0) for at in range(2 * DEVICES)]
    state = cluster([{"gpu": DEVICES, "memory": 99}] * 2, [*low, gang(asks, gpu=1, queue=1)], queues=2)
    kept = {"gpu": 2 * DEVICES - spare} if of == "gpu" else {"memory": 4 * DEVICES - 2 * spare - 1}
    state = with_quota(state, deserved={0: kept, 1: {"gpu": 2 * DEVICES}})
    one = attempt(state, 2 * DEVICES, Purpose.RECLAIM)
    search = search_of(one, host_of(one), need_of(state, one.podgroups, surplus=False))
    some, _ = permitted_alone(0, 2 * DEVICES, search.terms, search.seats())
    assert len(some) == 2 * DEVICES
    assert may_free_enough(some, (0, 2), search.site, search.terms) == expected
    with uncompiled():
        assert may_free_enough(some, (0, 2), search.site, search.terms) == expected
