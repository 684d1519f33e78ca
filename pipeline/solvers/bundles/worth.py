"""Scale: what resources are worth to one need; gain and cost of a bundle (document 1, section 3.4.3)."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Longs, frozen
from pipeline.cluster.resources import PODS
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import kernel
from pipeline.placement.need import Need

#: Bits that a rank of shapes takes in a sort key; of shapes beyond, the last are ranked alike.
RANK_BITS = 15


@dataclass(frozen=True)
class Scale:
    """What tasks are worth to one need.

    Attributes
    ----------
    needed: int64[R]
        What the minimum asks for; 0 where it does not count: pods, if anything else is asked for.
    coverage, waste: int64[shapes]
        Ranks of a task of each shape: by how much of the need it covers, most first; by its size, smallest first.
    """

    needed: Longs
    coverage: Longs
    waste: Longs


def scale_of(snapshot: Snapshot, need: Need) -> Scale:
    """The scale of one need."""
    needed = np.where(need.total > 0, need.total, 0)
    if (needed > 0).sum() > 1:
        needed[PODS] = 0
    dims, request = np.flatnonzero(needed), snapshot.shapes.request
    covered = (np.minimum(request[:, dims], needed[dims]) / needed[dims]).sum(axis=1)
    size = (request[:, dims] / needed[dims]).sum(axis=1)
    unasked = np.where(needed == 0, request / np.maximum(snapshot.capacity, 1), 0.0).sum(axis=1)
    order = np.lexsort((unasked, size))
    waste = np.empty(len(request), np.int64)
    waste[order] = np.arange(len(request))
    coverage = np.unique(-np.round(covered, 12), return_inverse=True)[1]
    most = (1 << RANK_BITS) - 1
    return Scale(
        frozen(needed, np.int64),
        frozen(np.minimum(coverage, most), np.int64),
        frozen(np.minimum(waste, most), np.int64),
    )


@kernel
def gain(local: Longs, needed: Longs) -> float:
    """Local gain score: the sum of min(local, needed) / needed over what is needed (document 1, section 3.4.3)."""
    score = 0.0
    for r in range(len(needed)):
        if needed[r] > 0:
            score += min(local[r], needed[r]) / needed[r]
    return score


@kernel
def cost(everywhere: Longs, needed: Longs) -> float:
    """Global cost score: the sum of everywhere / needed over what is needed."""
    score = 0.0
    for r in range(len(needed)):
        if needed[r] > 0:
            score += everywhere[r] / needed[r]
    return score


@kernel
def efficiency(local: Longs, everywhere: Longs, needed: Longs) -> float:
    """Gain over cost; 0 where nothing that is needed comes free."""
    price = cost(everywhere, needed)
    return gain(local, needed) / price if price > 0 else 0.0
