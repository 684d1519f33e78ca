"""Every set of victims of a small domain is tried, as long as no more are known than are kept."""

import pytest

from pipeline.cluster.arrays import Rows
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.every_set import of_all_sets
from tests.support.builders import cluster, gang, searching


@pytest.mark.parametrize(("many", "asked", "tried"), [(6, 5, 6 + 1), (10, 3, 256)], ids=["few", "more than are kept"])
def test_where_as_many_sets_were_refused_as_are_kept_not_all_were_tried(many: int, asked: int, tried: int) -> None:
    """Podgroups of one device each fill a node; the law refuses every set of them."""
    state = cluster([{"gpu": many}], [*[gang(1, [0], gpu=1)] * many, gang(asked, gpu=1, priority=9)])
    refused = set[tuple[int, ...]]()

    def lawful(victims: Rows) -> bool:
        refused.add(tuple(victims.tolist()))
        return False

    here = DomainBundles(searching(state, many, by_priority=True, validate_set=lawful), 0)
    assert of_all_sets(here, None) == (None, tried < 256)
    assert len(refused) == tried
