"""Surplus: how much a podgroup, its roles and its subgroups can lose before the gang breaks.

A subgroup below its own minimum is broken and can lose the rest; one at its minimum can break as long as every level
above it that still has its ``min_subgroups`` keeps them. A role without a minimum does not bind (the pseudo-code of
document 1 would make its tasks unsafe), and no role binds an elastic podgroup.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Longs, Rows, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.subgroups import wholeness
from pipeline.kernels import kernel

#: The surplus of a role that does not bind.
UNBOUND = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Surplus:
    """How much every podgroup, role and subgroup may lose, in tasks.

    Attributes
    ----------
    gang: int32[G]
        Ready less minimum; negative: broken already.
    role: int32[L]
        Likewise; UNBOUND where the role does not bind.
    role_start: int64[G + 1]
        The roles of each podgroup.
    leaf: int32[U]
        Ready less minimum of a leaf subgroup; NONE: broken already.
    slack: int32[U + G]
        How many more children an inner subgroup (row u), or a podgroup (row U + g), can lose; negative: broken.
    parent: int32[U]
        Row in ``slack`` of what holds the subgroup.
    """

    gang: Counts
    role: Counts
    role_start: Longs
    leaf: Counts
    slack: Counts
    parent: Ids


def surplus_of(snapshot: Snapshot) -> Surplus:
    """Count the surplus of a snapshot: what is Bound, Running or Succeeded against the minima."""
    groups, table = snapshot.podgroups, snapshot.subgroups
    spare = snapshot.role_standing.ready - snapshot.roles.min_available
    free = ~snapshot.roles_bind[snapshot.roles.podgroup] | (snapshot.roles.min_available == 0)
    parts = wholeness(table, groups, snapshot.subgroup_standing.ready)
    return Surplus(
        gang=frozen(snapshot.standing.ready - groups.min_available, np.int32),
        role=frozen(np.where(free, UNBOUND, spare), np.int32),
        role_start=frozen(snapshot.role_start, np.int64),
        leaf=frozen(np.where(parts.whole, snapshot.subgroup_standing.ready - table.min_available, NONE), np.int32),
        slack=frozen(parts.slack, np.int32),
        parent=frozen(parts.holder, np.int32),
    )


@kernel
def break_leaf(row: int, leaf: Counts, slack: Counts, parent: Ids) -> bool:
    """Break a subgroup that stands at its minimum if all that holds it can spare it; change nothing if not."""
    top = row
    while slack[parent[top]] == 0:
        if parent[top] >= len(parent):
            return False
        top = parent[top]
    leaf[row] = NONE
    at = row
    while True:
        slack[parent[at]] -= 1
        if at == top:
            return True
        at = parent[at]


@kernel
def unconditional(spare: int, count: int, role: Counts, subgroups: bool) -> bool:
    """Whether, of ``count`` tasks, any ``spare`` can go: the podgroup's surplus is used up before that of any role."""
    fewest = UNBOUND
    for least in role:
        fewest = min(fewest, least)
    return fewest >= min(spare, count) and not subgroups


@kernel
def mark_safe(
    rows: Rows,
    spare: int,
    role_of: Ids,
    first_role: int,
    role: Counts,
    subgroup_of: Ids,
    leaf: Counts,
    slack: Counts,
    parent: Ids,
) -> Bools:
    """Which tasks of one healthy podgroup can go in turn without breaking it (document 1, section 3.4.1, case B).

    Parameters
    ----------
    rows: int64[C]
        Its candidates, who goes first in front.
    spare
        The podgroup's surplus.
    role_of, subgroup_of: int32[T]
    first_role
        Row of the podgroup's first role.
    role: int32[L']
        Surplus of the podgroup's roles; used up.
    leaf, slack, parent
        See ``Surplus``; the first two are used up.

    Returns
    -------
    bool[C].
    """
    safe = np.zeros(len(rows), np.bool_)
    for i in range(len(rows)):
        if spare == 0:
            break
        mine, part = role_of[rows[i]] - first_role, subgroup_of[rows[i]]
        if mine >= 0 and role[mine] <= 0:
            continue
        if part != NONE:
            if leaf[part] > 0:
                leaf[part] -= 1
            elif leaf[part] == 0 and not break_leaf(part, leaf, slack, parent):
                continue
        safe[i] = True
        spare -= 1
        if mine >= 0 and role[mine] != UNBOUND:
            role[mine] -= 1
    return safe
