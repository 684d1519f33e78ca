"""Network domains as contiguous slices of nodes.

Level rows count from the widest (row 0). A domain's tier is its height: a node is 0, the narrowest level is 1. Domain 0
is always the cluster itself: level NONE, all nodes, one tier above the widest level.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Ids, Longs, sealed
from pipeline.keeping import cached_property

#: The cluster as a domain.
ROOT = 0


@dataclass(frozen=True)
class Topology:
    """Domains, parents before children, siblings in the order of their nodes (empty ones last, by name).

    Attributes
    ----------
    levels: int
        How many levels there are.
    level: int32[D]
        Level row, NONE for the cluster.
    parent: int32[D]
        Domain row, NONE for the cluster.
    start, stop: int64[D]
        The domain's nodes are rows ``start:stop``.
    """

    levels: int
    level: Ids
    parent: Ids
    start: Longs
    stop: Longs

    def __len__(self) -> int:
        return len(self.level)

    @cached_property
    def tier(self) -> Ids:
        """int32[D]: height of each domain; the narrowest level has 1, the cluster ``levels + 1``."""
        return np.where(self.level == NONE, self.levels + 1, self.levels - self.level).astype(np.int32)

    def slice_of(self, domain: int) -> tuple[int, int]:
        """The node rows of a domain: the first, and the one after the last."""
        return int(self.start[domain]), int(self.stop[domain])

    def slices_of(self, domains: Longs) -> list[tuple[int, int]]:
        """The same of several domains (int64[K]), in their order."""
        return list(zip(self.start[domains].tolist(), self.stop[domains].tolist(), strict=True))

    def at_level(self, level: int) -> Longs:
        """int64[K]: rows of the domains of one level (NONE: the cluster alone), in order."""
        return self._by_level[level - NONE]

    @cached_property
    def _by_level(self) -> tuple[Longs, ...]:
        return tuple(sealed(np.flatnonzero(self.level == level)) for level in range(NONE, self.levels))

    def lowest_common(self, nodes: Longs) -> int:
        """Row of the narrowest domain that holds all of ``nodes`` (int64[K], at least one)."""
        holding = self.holding(np.arange(len(self)), nodes)
        return int(holding[np.argmin(self.tier[holding])])

    def holding(self, domains: Longs, nodes: Longs | Ids) -> Longs:
        """int64[K]: those of some domains that hold all of ``nodes``; every one if there are none."""
        if len(nodes) == 0:
            return domains
        return np.asarray(domains[(self.start[domains] <= nodes.min()) & (self.stop[domains] > nodes.max())])
