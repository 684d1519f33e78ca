"""Surplus: how much a podgroup, its roles and its subgroups can lose before the gang breaks.

A subgroup below its own minimum is broken and can lose the rest. A subgroup at its minimum can break if every level
above it that still has its ``min_subgroups`` keeps them. A role without a minimum does not bind (the pseudo-code of
"Gang-Aware Preemption and Reclaim" would make its tasks unsafe), and no role binds in an elastic podgroup.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Rows, frozen, sealed
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.subgroups import wholeness
from pipeline.kernels import kernel, linked
from pipeline.solvers.bundles.bundling.records import Entries, Surplus

#: The surplus of a role that does not bind.
UNBOUND = np.iinfo(np.int32).max


def surplus_of(snapshot: Snapshot) -> Surplus:
    """The surplus of a snapshot: ready tasks less the minima.

    A podgroup that is short in a role or subgroup is broken, whatever it has in all: its surplus is negative.
    """
    groups, roles, table = snapshot.podgroups, snapshot.roles, snapshot.subgroups
    parts = wholeness(table, groups, snapshot.subgroup_counts.ready)
    return Surplus(
        gang=sealed(_of_groups(snapshot.counts.ready, groups.min_available, minima_met(snapshot).runs)),
        role=sealed(_of_roles(snapshot.role_counts.ready, roles.min_available, roles.podgroup, snapshot.roles_bind)),
        role_start=frozen(snapshot.role_start, np.int64),
        leaf=frozen(np.where(parts.whole, snapshot.subgroup_counts.ready - table.min_available, NONE), np.int32),
        slack=sealed(parts.slack),
        holder=sealed(parts.holder),
    )


@kernel
def _of_groups(ready: Counts, least: Counts, parts_run: Bools) -> Counts:
    """int32[G]: the surplus of each podgroup; negative unless its parts have their minima (``parts_run`` bool[G])."""
    result = np.empty(len(ready), np.int32)
    for group in range(len(ready)):
        spare = ready[group] - least[group]
        result[group] = spare if parts_run[group] else min(spare, NONE)
    return result


@kernel
def _of_roles(ready: Counts, least: Counts, podgroup: Ids, bind: Bools) -> Counts:
    """int32[L]: the surplus of each role; ``bind`` bool[G]: whether roles bind in a podgroup."""
    result = np.empty(len(ready), np.int32)
    for role in range(len(ready)):
        binds = bind[podgroup[role]] & (least[role] != 0)
        result[role] = ready[role] - least[role] if binds else UNBOUND
    return result


@linked
def break_leaf(row: int, leaf: Counts, slack: Counts, holder: Ids) -> bool:
    """Break a subgroup at its minimum if every level above can lose it; if not, change nothing."""
    top = row
    while slack[holder[top]] == 0:
        if holder[top] >= len(holder):
            return False
        top = holder[top]
    leaf[row] = NONE
    at = row
    while True:
        slack[holder[at]] -= 1
        if at == top:
            return True
        at = holder[at]


@linked
def to_use_up(surplus: Surplus) -> Surplus:
    """The surplus with columns of its own where `mark_safe` uses them up."""
    parts = len(surplus.slack) if len(surplus.leaf) else 0  # without subgroups it is not read
    leaf, slack = surplus.leaf.copy(), surplus.slack[:parts].copy()
    return Surplus(surplus.gang, surplus.role, surplus.role_start, leaf, slack, surplus.holder)


@linked
def unconditional(spare: int, count: int, role: Counts, subgroups: bool) -> bool:
    """Whether any ``spare`` of ``count`` tasks can go: the podgroup's surplus is used up before that of any role."""
    fewest = UNBOUND
    for least in role:
        fewest = min(fewest, least)
    return fewest >= min(spare, count) and not subgroups


@linked
def mark_safe(mine: Rows, spare: int, first_role: int, role: Counts, entries: Entries, left: Surplus) -> Bools:
    """Which tasks of one whole podgroup can go, one after the other, without breaking it.

    This is case B of "Gang-Aware Preemption and Reclaim", section 3.4.1.

    Parameters
    ----------
    mine: int64[C]
        Entries of its candidates, the one that goes first in front.
    spare
        The podgroup's surplus.
    first_role
        Row of the podgroup's first role.
    role: int32[L']
        Surplus of the podgroup's roles; used up.
    left
        Its ``leaf`` and ``slack`` are used up.

    Returns
    -------
    bool[C].
    """
    safe = np.zeros(len(mine), np.bool_)
    for i in range(len(mine)):
        if spare == 0:
            break
        task = entries.task[mine[i]]
        own, part = entries.of_tasks.role[task] - first_role, entries.of_tasks.subgroup[task]
        if own >= 0 and role[own] <= 0:
            continue
        if part != NONE:
            if left.leaf[part] > 0:
                left.leaf[part] -= 1
            elif left.leaf[part] == 0 and not break_leaf(part, left.leaf, left.slack, left.holder):
                continue
        safe[i] = True
        spare -= 1
        if own >= 0 and role[own] != UNBOUND:
            role[own] -= 1
    return safe


@kernel
def stays_whole(some: Rows, entries: Entries, surplus: Surplus) -> bool:
    """Whether one podgroup loses nothing but surplus with some of its entries (int64[C])."""
    if len(some) == 0:
        return True
    group = entries.podgroup[some[0]]
    spare, first, last = surplus.gang[group], surplus.role_start[group], surplus.role_start[group + 1]
    if spare < 0:
        return True
    if len(some) > spare:
        return False
    if unconditional(spare, len(some), surplus.role[first:last], len(surplus.leaf) > 0):
        return True
    safe = mark_safe(some, spare, first, surplus.role[first:last].copy(), entries, to_use_up(surplus))
    return bool(safe.all())
