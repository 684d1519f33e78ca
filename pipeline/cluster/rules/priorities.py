"""The priorities that podgroups have, as ranks without gaps."""

from pipeline.cluster.arrays import Longs, Rows, kinds_of, sealed
from pipeline.cluster.tables import Podgroups


def priority_ranks(groups: Podgroups) -> tuple[Longs, Rows]:
    """The priorities that podgroups have, int64[P], the lowest first; and which of them each has, int64[G]."""
    priorities, rank = kinds_of(groups.priority)
    return sealed(priorities), sealed(rank)
