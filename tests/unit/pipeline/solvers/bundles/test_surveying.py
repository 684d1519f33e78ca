"""Which domains are priced: those whose lower bound allows a price that may be preferred to the best so far."""

from itertools import pairwise

import numpy as np
import pytest

from pipeline.solvers.bundles.pricing import leading_of, may_be_preferred
from pipeline.solvers.bundles.surveying import estimates
from tests.support.builders import searching
from tests.support.placing import Work, placed

#: Racks, and what each has lost more than the one before, as a part of all: several are nearly the same.
RACKS, MORE = 12, 3e-6


def racks(minimum: int):
    """A search in racks of two nodes; each has a podgroup of three tasks that needs so many. A gang wants all three."""
    work = [*[Work(0)] * 3, *(Work(1 + rack, node=2 * rack + at // 2) for rack in range(RACKS) for at in range(3))]
    groups = [{"min_available": 3, "priority": 9}, *({"min_available": minimum} for _ in range(RACKS))]
    snapshot = placed([2, 1] * RACKS, work, racks=[2] * RACKS, groups=groups)
    lost = np.array([0.0, *(1000.0 * (1.0 + MORE) ** rack for rack in range(RACKS))])
    return searching(snapshot, 0, lost_work=lost, by_priority=True)


def priced(search) -> list[int]:
    """Positions of the racks that are priced."""
    topology = search.snapshot.topology
    small = np.flatnonzero(topology.stop - topology.start == 2)
    assert len(small) == RACKS
    return np.flatnonzero(estimates(search, small).priced).tolist()


@pytest.mark.parametrize("minimum", [0, 3], ids=["surplus goes", "one podgroup breaks"])
def test_a_little_more_work_is_not_looked_at_where_no_fewer_can_break(minimum: int):
    assert priced(racks(minimum)) == [0]


def test_where_several_break_a_little_more_work_may_be_preferred():
    several, one = (leading_of(3, 1000.0, many, 0.01) for many in (2, 1))
    works = np.array([1000.0, 1009.9, 1010.1])
    assert may_be_preferred(np.full(3, 3), works, several).tolist() == [True, True, False]
    assert may_be_preferred(np.full(3, 3), works, one).tolist() == [True, False, False]
    assert all(more.most > less.most for less, more in pairwise((one, several)))
    assert may_be_preferred(np.array([2, 4]), works[2:].repeat(2), one).tolist() == [True, False]
