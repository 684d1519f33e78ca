"""Bundles: what a podgroup can lose in one domain, in two parts (document 1, section 3.4).

*Safe*: surplus over the minima of the gang, its roles (unless elastic) and its subgroups, or everything if the gang is
below its minimum already. *Whole*: the rest, whose loss breaks the gang.

Differences from document 1: subgroups count, with every ``min_subgroups`` up the tree; a role without a minimum does not
bind (its pseudo-code would make such tasks unsafe); efficiencies are compared in steps, because the proposed tolerance
of 5 % compared pair by pair is no order (20 bundles already sort differently from one input order to another).
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Floats, Ids, Longs, Rows
from pipeline.cluster.resources import PODS
from pipeline.cluster.snapshot import Snapshot
from pipeline.compiled import kernel
from pipeline.need import Need

SAFE, WHOLE = 0, 1


@dataclass(frozen=True)
class Surplus:
    """How much every podgroup, role and subgroup may lose; made once a snapshot, copied for every split.

    Attributes
    ----------
    gang: int32[G]
        Ready less minimum; negative: broken already.
    role: int32[L]
        Likewise; a large number where the role does not bind.
    leaf: int32[U]
        Ready less minimum of a leaf subgroup; negative: broken already.
    slack: int32[U + G]
        How many more children an inner subgroup (row u), or a podgroup (row U + g), can lose; negative: broken.
    parent: int32[U]
        Row in ``slack`` of what holds the subgroup.
    """

    gang: Counts
    role: Counts
    leaf: Counts
    slack: Counts
    parent: Ids


def surplus_of(snapshot: Snapshot) -> Surplus:
    """Count the surplus of a snapshot."""
    groups, table = snapshot.podgroups, snapshot.subgroups
    role = snapshot.role_standing.ready - snapshot.roles.min_available
    free = ~snapshot.roles_bind[snapshot.roles.podgroup] | (snapshot.roles.min_available == 0)
    leaf = snapshot.subgroup_standing.ready - table.min_available
    parent = np.where(table.parent == NONE, len(table) + table.podgroup, table.parent).astype(np.int32)
    slack = np.zeros(len(table) + len(groups), np.int32)
    children = np.bincount(parent, minlength=len(slack))
    wanted = np.concatenate([table.min_subgroups, groups.min_subgroups])
    wanted = np.where(wanted == NONE, children, wanted)
    whole = leaf >= 0
    for row in range(len(table) - 1, -1, -1):  # children come after their parents
        if children[row]:
            slack[row] -= wanted[row]
            whole[row] = slack[row] >= 0
        slack[parent[row]] += whole[row]
    slack[len(table) :] -= wanted[len(table) :].astype(np.int32)
    return Surplus(
        (snapshot.standing.ready - groups.min_available).astype(np.int32),
        np.where(free, np.iinfo(np.int32).max, role).astype(np.int32),
        np.where(whole, leaf, NONE).astype(np.int32),
        slack,
        parent,
    )


@kernel
def _break_leaf(row: int, parent: Ids, leaf: Counts, slack: Counts, inner: int) -> bool:
    """Break a subgroup if what holds it can spare it, all the way up; change nothing if not."""
    top = row
    while True:
        above = parent[top]
        if slack[above] != 0:
            break
        if above >= inner:
            return False
        top = above
    at = row
    while True:
        if at == row:
            leaf[at] = NONE
        above = parent[at]
        slack[above] -= 1
        if at == top:
            return True
        at = above


@kernel
def mark_safe(
    podgroup: Ids, role: Ids, subgroup: Ids, gang: Counts, roles: Counts, leaf: Counts, slack: Counts, parent: Ids
) -> Bools:
    """Which of the candidates, in their order, can go without breaking anything; the counts are used up.

    Parameters
    ----------
    podgroup, role, subgroup: int32[C]
    gang, roles, leaf, slack, parent
        See ``Surplus``; writable copies.

    Returns
    -------
    bool[C].
    """
    safe = np.zeros(len(podgroup), np.bool_)
    for task in range(len(podgroup)):
        owner = podgroup[task]
        if gang[owner] < 0:
            safe[task] = True
            continue
        if gang[owner] == 0 or (role[task] != NONE and roles[role[task]] <= 0):
            continue
        part = subgroup[task]
        if part != NONE:
            if leaf[part] > 0:
                leaf[part] -= 1
            elif leaf[part] == 0 and not _break_leaf(part, parent, leaf, slack, len(parent)):
                continue
        safe[task] = True
        gang[owner] -= 1
        if role[task] != NONE and roles[role[task]] < 2147483647:
            roles[role[task]] -= 1
    return safe


# -- what a bundle is worth -----------------------------------------------------------------------------------------


def asked(need: Need) -> Rows:
    """Resources in which efficiency is counted: those the need asks for, pods only if it asks for nothing else."""
    dims = np.flatnonzero(need.total > 0)
    return dims[dims != PODS] if len(dims) > 1 else dims


def gain(local: Longs, need: Longs) -> Floats:
    """Local gain score: float64[B] for resources int64[B, R'] freed in the domain, against ``need`` int64[R'].

    The sum over resources of min(local, need) / need (document 1, section 3.4.3).
    """
    score: Floats = (np.minimum(local, need) / need).sum(axis=-1)
    return score


def cost(everywhere: Longs, need: Longs) -> Floats:
    """Global cost score: the sum over resources of what the whole gang holds, by what is needed."""
    score: Floats = (everywhere / need).sum(axis=-1)
    return score


def efficiency(local: Longs, everywhere: Longs, need: Longs) -> Floats:
    """Gain over cost; infinite where the gang costs nothing in what is needed."""
    price = cost(everywhere, need)
    return np.divide(gain(local, need), price, out=np.full(price.shape, np.inf), where=price > 0)


def victim_order(snapshot: Snapshot, need: Need, rows: Rows) -> Rows:
    """Positions of candidates ordered by podgroup, within one by who goes first.

    Coverage of the need (most first), priority (lowest first), waste (smallest task first), youngest first, and of
    equals the last in name.
    """
    tasks, dims = snapshot.tasks, asked(need)
    shapes, shape = np.unique(tasks.shape[rows], return_inverse=True)
    request, total = snapshot.shapes.request[shapes][:, dims], need.total[dims]
    coverage, size = gain(request, total), cost(request, total)
    by_shape = np.lexsort((size, -coverage))
    rank = np.empty(len(shapes), np.int64)
    rank[by_shape] = np.arange(len(shapes))
    levels, level = np.unique(-np.round(coverage, 12), return_inverse=True)
    first = tasks.podgroup[rows].astype(np.int64) * len(levels) + level[shape]
    return np.lexsort((-tasks.order[rows], rank[shape], tasks.priority[rows], first))
