"""Where the first selection is proved to be the cheapest, nothing else is tried."""

from typing import Any

import numpy as np
import pytest

from pipeline.cluster.arrays import Longs
from pipeline.solvers.bundles.covering import cheaper
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.exact import MOST
from pipeline.solvers.bundles.covering.proof import is_least
from pipeline.solvers.bundles.covering.selection import select
from tests.support.builders import Gang, Task, cluster, gang, searching

#: Nodes of four devices, each with four tasks of one.
NODES = MOST // 2


def selected(some: list[Gang], wanted: int, **said: Any) -> tuple[DomainBundles, Selection]:
    """The domain, and what is selected for a gang of tasks that ask for one device."""
    waiting = gang(wanted, gpu=1, priority=9)
    search = searching(cluster([{"gpu": 4}] * NODES, [*some, waiting]), len(some), **({"by_priority": True} | said))
    found = select(search, 0)
    assert isinstance(found, Selection)
    return DomainBundles(search, 0), found


def lone(count: int, priority: int = 1) -> list[Gang]:
    """Podgroups of one task each, four to a node."""
    return [gang(1, [at // 4], gpu=1, priority=priority) for at in range(count)]


def test_podgroups_that_are_all_alike_are_not_searched_any_further(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("there is nothing to gain")

    monkeypatch.setattr(cheaper, "cheaper_sets", refused)
    here, found = selected(lone(4 * NODES), 16)
    assert is_least(here, found)
    assert (found.price.gangs_broken, found.price.victims) == (16, 16)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (gang(4, [NODES - 1] * 4, gpu=1, priority=1), (13, True)),
        (gang(4, [NODES - 1] * 4, gpu=1, minimum=2, priority=2), (14, False)),
    ],
    ids=["a larger podgroup, with which fewer break", "a podgroup that can lose tasks"],
)
def test_what_could_make_do_with_fewer_is_searched_for(
    monkeypatch: pytest.MonkeyPatch, other: Gang, expected: tuple[int, bool]
) -> None:
    asked, real = [], cheaper.cheaper_sets
    monkeypatch.setattr(cheaper, "cheaper_sets", lambda *said: asked.append(1) or real(*said))
    here, found = selected([*lone(4 * NODES - 4), other], 16)
    assert asked
    assert (found.price.gangs_broken, is_least(here, found)) == expected


def test_what_could_take_fewer_victims_or_less_important_ones_is_searched_for() -> None:
    many = [gang(2, [at // 2], gpu=1, priority=1) for at in range(2 * NODES - 2)]
    wide = [gang(1, [NODES - 1], gpu=2, priority=1)] * 2
    here, found = selected([*many, *wide], 4, rank_before=in_order(len(many), 2))
    assert (found.price.gangs_broken, found.price.victims, is_least(here, found)) == (2, 2, True)
    high, low = lone(4 * NODES - 4, priority=2), [gang(1, [NODES - 1], gpu=1, priority=1)] * 4
    _, found = selected([*high, *low], 3, rank_before=in_order(len(high), 4), by_priority=False)
    assert found.price.highest_priority == 1


def in_order(*many: int) -> Longs:
    """How many podgroups are taken from first, how many then, and so on; one more waits."""
    return np.repeat(np.arange(len(many) + 1), [*many, 1])


@pytest.mark.parametrize("dear", [9.0, 1.01])
def test_what_loses_more_work_than_has_to_be_lost_is_not_proved(dear: float) -> None:
    work = np.ones(4 * NODES + 1)
    work[:16] = dear
    here, found = selected(lone(4 * NODES), 16, effort=0, lost_work=work)
    assert found.price.broken == ((1, pytest.approx(dear)),)
    assert not is_least(here, found)


def test_where_every_candidate_has_to_go_no_other_set_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, real = [], cheaper.cheaper_sets
    monkeypatch.setattr(cheaper, "cheaper_sets", lambda *said: asked.append(1) or real(*said))
    elastic = [gang(4, [NODES - 1] * 4, gpu=1, minimum=0, priority=2)]
    for wanted, proved in ((4 * NODES, True), (4 * NODES - 1, False)):
        here, found = selected([*lone(4 * NODES - 4), *elastic], wanted)
        assert (len(found.victims), is_least(here, found)) == (wanted, proved)
        assert bool(asked) is not proved


def test_surplus_may_be_chosen_otherwise_where_a_podgroup_with_all_candidates_breaks() -> None:
    # Each node has a task that is surplus and one that is not, as age says; two of one node would do.
    tasks = [Task(node, gpu=1, created=age) for age in (0.0, 1.0) for node in range(22)]
    groups = [Gang(tasks, 22, priority=1), Gang([Task(gpu=2)], 1, priority=9)]
    found = select(searching(cluster([{"gpu": 2}] * 22, groups), 1, by_priority=True), 0)
    assert isinstance(found, Selection)
    assert (len(found.victims), found.price.gangs_broken) == (2, 0)


def test_where_all_surplus_together_is_too_little_one_podgroup_may_still_keep_its_minimum() -> None:
    # Each has four tasks on nodes of its own, which are surplus by age, and one on each node that they share.
    both = [[0, 0, 1, 1, *range(4, 22)], [2, 2, 3, 3, *range(4, 22)]]
    groups = [Gang([Task(node, gpu=1, created=float(node < 4)) for node in on], 8, priority=1) for on in both]
    groups.append(Gang([Task(gpu=2)] * 15, 15, priority=9))
    found = select(searching(cluster([{"gpu": 2}] * 22, groups), 2, by_priority=True), 0)
    assert isinstance(found, Selection)
    assert (len(found.victims), found.price.gangs_broken) == (35, 1)
