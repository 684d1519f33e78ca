"""A podgroup does not break where some of its victims may return so that it keeps its minima."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.solvers.bundles.covering.chosen import Selection, victims_by_bundle
from pipeline.solvers.bundles.covering.selection import select
from tests.support.builders import Gang, Task, cluster, gang, searching

#: Surplus on the first node, where no slot can be freed, goes before that on the second, whose loss then breaks all.
NODES = [{"gpu": 4}, {"gpu": 5}]


def two_tasks(at=0):
    """A podgroup with a task on each of two nodes, of which one may go; the first goes first."""
    return Gang([Task(at, gpu=4, priority=0), Task(at + 1, gpu=4)], 1, priority=1)


def selected(*gangs: Gang, asks=(5,), nodes=NODES, **said):
    """What goes for a gang of tasks that ask for so many devices each, and the search."""
    waiting = Gang([Task(gpu=gpu) for gpu in asks], len(asks), priority=9)
    search = searching(cluster(nodes, [*gangs, waiting]), len(gangs), **{"effort": 0, **said})
    found = select(search, 0)
    assert isinstance(found, Selection), found
    return search, found


@pytest.mark.parametrize("cluster_wide", [True, False])
@pytest.mark.parametrize("keep_order", [True, False])
@pytest.mark.parametrize("by_priority", [True, False])
def test_what_may_return_does_if_the_podgroup_keeps_its_minimum(cluster_wide, keep_order, by_priority):
    """Where not all members go, the surplus returned already, and the other one was called a podgroup that breaks."""
    flags = {"cluster_wide": cluster_wide, "keep_order": keep_order, "by_priority": by_priority}
    search, found = selected(two_tasks(), **flags)
    assert found.victims.tolist() == [1]
    assert found.broken.tolist() == []
    assert (found.price.victims, found.price.gangs_broken, found.price.broken) == (1, 0, ())
    assert [work for _, work in found.price.surplus] == [pytest.approx(0.8)]
    assert found.given_back == 1
    assert [(one.podgroup, one.safe, one.tasks, one.elsewhere) for one in victims_by_bundle(search, found.outcome)] == [
        (0, True, 1, 0)
    ]


def test_members_elsewhere_stay_too():
    """The second domain is searched: the member outside would go along if the podgroup broke."""
    low = Gang([Task(0, gpu=4), Task(1, gpu=4, priority=0), Task(2, gpu=4)], 2, priority=1)
    waiting = gang(1, gpu=5, priority=9)
    snapshot = cluster([{"gpu": 4}, *NODES], [low, waiting], racks=(1, 2))
    found = select(searching(snapshot, 1, effort=0, cluster_wide=True), 2)
    assert isinstance(found, Selection)
    assert (found.victims.tolist(), found.price.victims) == ([2], 1)


def test_a_podgroup_that_would_be_short_goes_whole():
    low = Gang([*two_tasks().tasks, Task(1, gpu=1)], 2, priority=1)
    _, found = selected(low, asks=(5,))
    assert (found.victims.tolist(), found.price.gangs_broken) == ([0, 1, 2], 1)


@pytest.mark.parametrize("least", [0, 1])
def test_roles_keep_their_minima(least):
    """The second task is the only one of its role."""
    low = Gang([Task(0, gpu=4, priority=0, role=0), Task(1, gpu=4, role=1)], 1, priority=1, roles=(0, least))
    _, found = selected(low)
    assert found.victims.tolist() == ([0, 1] if least else [1])


@pytest.mark.parametrize("least", [1, 2])
def test_subgroups_keep_their_minima(least):
    """Each task is a subgroup, of which the podgroup needs some."""
    tasks = [Task(0, gpu=4, priority=0, subgroup=0), Task(1, gpu=4, subgroup=1)]
    low = Gang(tasks, 1, priority=1, subgroups=[(NONE, 1, NONE), (NONE, 1, NONE)], min_subgroups=least)
    _, found = selected(low)
    assert found.victims.tolist() == ([0, 1] if least == len(tasks) else [1])


def test_tasks_of_a_role_that_can_spare_none_return_first():
    """One of the two on the second node may return: not the one of higher priority, but the one that its role needs."""
    tasks = [Task(0, gpu=4, role=0, priority=0), Task(1, gpu=4, role=0), Task(1, gpu=4, role=1, priority=0)]
    low = Gang(tasks, 2, priority=1, roles=(0, 1))
    _, found = selected(low, nodes=[{"gpu": 4}, {"gpu": 9}])
    assert found.victims.tolist() == [1]


@pytest.mark.parametrize(("most_return", "victims"), [(2, [1, 3]), (1, [0, 1, 3]), (0, [0, 1, 2, 3])])
def test_where_the_law_needs_more_victims_podgroups_return_one_by_one(most_return, victims):
    """As a queue does that has room for the gang only once enough of its own tasks are gone."""
    _, found = selected(
        two_tasks(), two_tasks(at=2), asks=(5, 5), nodes=NODES * 2, lost_work=np.array([1.0, 2.0, 1.0]),
        validate_set=lambda rows: len(rows) >= 4 - most_return,
    )  # fmt: skip
    assert found.victims.tolist() == victims


def test_what_slots_do_not_show_is_asked_by_placing():
    """Each shape alone has room on the second node; together they need what is freed on the first as well."""
    _, found = selected(two_tasks(), asks=(5, 1))
    assert found.victims.tolist() == [0, 1]
    _, found = selected(two_tasks(), two_tasks(at=2), asks=(5, 5, 1), nodes=NODES * 2)
    assert found.price.gangs_broken == 1
    assert len(found.victims) == 3
