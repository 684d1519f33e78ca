"""How many leading bundles of a domain must go so that the queue's limits leave room for the need."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, UNLIMITED
from pipeline.decision.headroom import LineLimits
from pipeline.solvers.bundles.bundling.bundles import first
from pipeline.solvers.bundles.covering.chosen import all_chosen
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles, least_leading
from tests.support.builders import AXIS, cluster, gang, searching

RACK = 1


def in_a_rack(left, *, counted=True, **changed):
    """A search whose queue may take ``left`` devices more; one gang runs in both racks, one in a queue of its own."""
    gangs = [
        gang(3, [0, 0, 1], gpu=1, minimum=2), gang(2, 0, gpu=1), gang(1, 0, gpu=1, queue=1), gang(2, 0, gpu=1),
        gang(4, gpu=1, priority=9),
    ]  # fmt: skip
    room = np.full((1, len(AXIS)), UNLIMITED)
    room[0, AXIS.index("gpu")] = left
    limits = LineLimits(np.array([1, 0]), room, counted)
    search = searching(cluster([{"gpu": 12}] * 2, gangs, racks=[1, 1]), 4, limits=lambda: limits, **changed)
    return search, DomainBundles(search, RACK).permitted[0]


def freed_by(search, bundles, count):
    """Devices of the first queue that leading bundles free, wherever they are."""
    rows, snapshot = all_chosen(search, RACK, first(bundles, count)).victims, search.snapshot
    return int(snapshot.request[rows[snapshot.queue_of(rows) == 0], AXIS.index("gpu")].sum())


@pytest.mark.parametrize("cluster_wide", [True, False])
@pytest.mark.parametrize("left", range(-4, 5))
def test_as_many_bundles_must_go_as_free_what_the_queue_lacks(left, cluster_wide):
    search, bundles = in_a_rack(left, cluster_wide=cluster_wide)
    enough = (many for many in range(bundles.many + 1) if left + freed_by(search, bundles, many) >= 4)
    assert least_leading(search, bundles) == next(enough, NONE)


def test_no_bundle_must_go_where_limits_are_not_counted():
    assert least_leading(*in_a_rack(0, counted=False)) == 0


def test_no_bundle_must_go_where_no_limits_are_told():
    _, bundles = in_a_rack(0)
    assert least_leading(searching(cluster([{"gpu": 4}], [gang(1, gpu=1)]), 0), bundles) == 0
