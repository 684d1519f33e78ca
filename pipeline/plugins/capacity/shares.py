"""Shares and ceilings of queues: they follow from what queues state and from the cluster's size."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, Bools, Ids, Longs
from pipeline.cluster.queue_tree import flat, is_parent
from pipeline.cluster.resources import CPU, MEMORY, PODS
from pipeline.cluster.rules.quota import flat_ceilings
from pipeline.cluster.tables import Queues
from pipeline.kernels import kernel


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


def capacity_shares(queues: Queues, whole: Longs, *, tree: bool, strict: bool) -> CapacityShares:
    """The shares of ``whole`` (int64[R]); ``strict``: see `plugin`. Worked out once for as long as these stay."""
    known, asked = queues.answers(capacity_shares), (whole.tobytes(), tree, strict)
    found = known.get(asked)
    if found is None:
        known.clear()  # another whole is not asked about again
        found = known[asked] = _shares_of(queues, whole, tree=tree, strict=strict)
    return found


def _shares_of(queues: Queues, whole: Longs, *, tree: bool, strict: bool) -> CapacityShares:
    stated, parent = queues.deserved != UNSET, queues.parent if tree else flat(len(queues))
    inner = is_parent(parent)
    if tree:
        ceiling = _tree_ceilings(parent, inner, queues.guarantee, queues.capability, whole)
    else:
        ceiling = flat_ceilings(queues, whole)
    deserved = np.where(stated, queues.deserved, 0)
    deserved = np.maximum(deserved if tree else np.minimum(deserved, ceiling), queues.guarantee)
    owed = deserved > 0
    beside_pods = owed.copy()
    beside_pods[:, PODS] = False
    # Upstream counts a scalar as soon as it is stated, even as 0.
    scalar = np.ones(len(whole), bool)
    scalar[[CPU, MEMORY, PODS]] = False
    return CapacityShares(
        parent=parent,
        inner=inner,
        ceiling=ceiling,
        deserved=deserved,
        stated=stated,
        counts=stated if strict else owed | (stated & scalar),
        bare=np.asarray(~beside_pods.any(axis=1)),
    )


@kernel
def _tree_ceilings(parent: Ids, inner: Bools, guarantee: Longs, capability: Longs, whole: Longs) -> Longs:
    """int64[Q, R]: what is left for each queue where those beside it keep what they are guaranteed."""
    kept, ceiling = np.zeros((len(parent) + 1, len(whole)), np.int64), np.empty(guarantee.shape, np.int64)
    for queue in range(len(parent)):
        for r in range(len(whole)):
            kept[parent[queue], r] += guarantee[queue, r]  # the last row is that of queues without a parent
    for queue in range(len(parent)):  # parents come before their children
        top = parent[queue] == NONE
        for r in range(len(whole)):
            above, own = whole[r] if top else ceiling[parent[queue], r], guarantee[queue, r]
            left = max(above - (kept[parent[queue], r] - own), own)
            if above >= UNLIMITED or (top and inner[queue]):  # only its own statement limits a root
                left = UNLIMITED
            ceiling[queue, r] = min(left, capability[queue, r])
    return ceiling
