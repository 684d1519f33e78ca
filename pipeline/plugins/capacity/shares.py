"""Shares and ceilings of queues: they follow from what queues state and from the cluster's size."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, Bools, Ids, Longs
from pipeline.cluster.queue_tree import flat, is_parent
from pipeline.cluster.resources import CPU, MEMORY, PODS
from pipeline.cluster.rules.quota import flat_ceilings
from pipeline.cluster.tables import Queues


@dataclass(frozen=True)
class CapacityShares:
    """Entitlements and ceilings of each queue.

    Attributes
    ----------
    parent: int32[Q]
        NONE everywhere where queues are flat.
    inner: bool[Q]
        Has children: work lives in leaves.
    ceiling: int64[Q, R]
        Volcano's real capability: what is left when the guarantees of others are kept, at most the capability.
    deserved: int64[Q, R]
        0 where nothing was stated, never below the guarantee.
    stated, counts: bool[Q, R]
        Resources with a stated share; resources whose share protects what the queue holds.
    bare: bool[Q]
        Whether it deserves nothing, pods aside.
    """

    parent: Ids
    inner: Bools
    ceiling: Longs
    deserved: Longs
    stated: Bools
    counts: Bools
    bare: Bools


def shares_of(queues: Queues, whole: Longs, *, tree: bool, strict: bool) -> CapacityShares:
    """The shares of ``whole`` (int64[R]); ``strict``: see `plugin`. Worked out once for as long as these stay."""
    known, asked = queues.answers(shares_of), (whole.tobytes(), tree, strict)
    found = known.get(asked)
    if found is None:
        known.clear()  # another whole is not asked about again
        found = known[asked] = _shares_of(queues, whole, tree=tree, strict=strict)
    return found


def _shares_of(queues: Queues, whole: Longs, *, tree: bool, strict: bool) -> CapacityShares:
    stated = queues.deserved != UNSET
    ceiling = _tree_ceilings(queues, whole) if tree else flat_ceilings(queues, whole)
    deserved = np.where(stated, queues.deserved, 0)
    deserved = np.maximum(deserved if tree else np.minimum(deserved, ceiling), queues.guarantee)
    parent = queues.parent if tree else flat(len(queues))
    # Upstream counts a scalar as soon as it is stated, even as 0.
    scalar = np.ones(len(whole), bool)
    scalar[[CPU, MEMORY, PODS]] = False
    return CapacityShares(
        parent=parent,
        inner=is_parent(parent),
        ceiling=ceiling,
        deserved=deserved,
        stated=stated,
        counts=stated if strict else (deserved > 0) | (stated & scalar),
        bare=np.asarray(~np.delete(deserved > 0, PODS, axis=1).any(axis=1)),
    )


def _tree_ceilings(queues: Queues, whole: Longs) -> Longs:
    inner, ceiling = is_parent(queues.parent), np.empty_like(queues.guarantee)
    for parent in (NONE, *np.flatnonzero(inner).tolist()):  # parents come before their children
        rows = np.flatnonzero(queues.parent == parent)
        above, guarantee = whole if parent == NONE else ceiling[parent], queues.guarantee[rows]
        others = guarantee.sum(axis=0) - guarantee
        left = np.where(above >= UNLIMITED, UNLIMITED, np.maximum(above - others, guarantee))
        if parent == NONE:
            left[inner[rows]] = UNLIMITED  # only its own statement limits a root
        ceiling[rows] = np.minimum(left, queues.capability[rows])
    return ceiling
