"""Splitting: the candidates of one domain, podgroup by podgroup, into surplus and the rest (document 1, phase 1).

One pass over the tasks of the domain. A podgroup's candidates are sorted only where it matters who of them is surplus.
"""

from typing import Any

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Floats, Ids, Longs, Rows
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.kernels import inlined, kernel
from pipeline.solvers.bundles.sorting import first_by
from pipeline.solvers.bundles.surplus import mark_safe, unconditional
from pipeline.solvers.bundles.worth import RANK_BITS, gain

_PRIORITY_BITS = 32


@kernel
def runs(status: int) -> bool:
    """Whether a task holds its node and is not on its way out."""
    return status in (BOUND, RUNNING)


@kernel
def _by_podgroup(rows: Rows, candidate: Bools, status: Any, podgroup: Any, at: Ids) -> tuple[Rows, Longs, Rows, Bools]:
    """Group candidates by podgroup: podgroups, where each one's begin, the tasks, and who has others running here.

    ``at`` int32[G] is scratch: NONE everywhere, and again so afterwards.
    """
    owner, begin = np.empty(len(rows), np.int64), np.zeros(len(rows) + 1, np.int64)
    groups = 0
    for row in rows:
        if candidate[row]:
            if at[podgroup[row]] < 0:
                at[podgroup[row]] = groups
                owner[groups] = podgroup[row]
                groups += 1
            begin[at[podgroup[row]] + 1] += 1
    for group in range(groups):
        begin[group + 1] += begin[group]
    fill, local = begin[:groups].copy(), np.empty(begin[groups], np.int64)
    shut = np.zeros(groups, np.bool_)
    for row in rows:
        group = at[podgroup[row]]
        if candidate[row]:
            local[fill[group]] = row
            fill[group] += 1
        elif group >= 0 and runs(status[row]):
            shut[group] = True
    for group in range(groups):
        at[owner[group]] = NONE
    return owner[:groups], begin[: groups + 1], local, shut


@kernel
def _sort_victims(
    rows: Rows, many: int, shape: Any, priority: Any, order: Any, ranks: tuple[Longs, Longs, Longs, Longs]
) -> None:
    """Who goes first, for the first ``many``: most coverage, lowest priority, least waste, youngest, then by name.

    ``ranks`` are coverage and waste of shapes, and scratch twice, at least as long as ``rows``.
    """
    coverage, waste, high, low = ranks
    for i in range(len(rows)):
        row = rows[i]
        key = (coverage[shape[row]] << _PRIORITY_BITS) + np.int64(priority[row]) + (1 << (_PRIORITY_BITS - 1))
        high[i] = (key << RANK_BITS) + waste[shape[row]]
        low[i] = -order[row]
    first_by(rows, high, low, many)


@kernel
def _surplus_first(
    mine: Rows,
    spare: int,
    tasks: tuple[Any, ...],
    surplus: tuple[Any, ...],
    left: tuple[Counts, Counts],
    ranks: tuple[Longs, Longs, Longs, Longs],
    ordered: bool,
) -> int:
    """Bring one podgroup's candidates into victim order, surplus in front; how many are surplus.

    Unless ``ordered``, they are sorted only as far as it matters who is surplus.
    """
    podgroup, role_of, subgroup_of, shape, priority, order = tasks[2:]
    role, role_start, parent = surplus[1], surplus[2], surplus[5]
    first_role, last_role = role_start[podgroup[mine[0]]], role_start[podgroup[mine[0]] + 1]
    count = len(mine)
    least = count if spare < 0 else min(spare, count)
    at_will = spare <= 0 or unconditional(spare, count, role[first_role:last_role], len(parent) > 0)
    if ordered or not at_will or 0 < least < count:
        _sort_victims(mine, least if at_will and not ordered else count, shape, priority, order, ranks)
    if at_will:
        return least
    roles = role[first_role:last_role].copy()
    safe = mark_safe(mine, spare, role_of, first_role, roles, subgroup_of, left[0], left[1], parent)
    rows, least, rest = mine.copy(), 0, safe.sum()
    for i in range(len(rows)):
        if safe[i]:
            mine[least] = rows[i]
            least += 1
        else:
            mine[rest] = rows[i]
            rest += 1
    return least


@inlined
def _add(freed: Longs, request: Longs, shape: int, tasks: int) -> None:
    for r in range(len(freed)):
        freed[r] += tasks * request[shape, r]


@kernel
def split(
    rows: Rows,
    tasks: tuple[Any, ...],
    gangs: tuple[Floats, Counts, Bools],
    surplus: tuple[Any, ...],
    scale: tuple[Any, ...],
    flags: tuple[bool, bool, bool],
    seats: Ids,
) -> tuple[Any, ...]:
    """Split the candidates among the tasks ``rows`` of a slice of nodes into bundles, podgroup by podgroup.

    A whole bundle is left out if a member of the gang that would have to go is no candidate: in the slice, or, where
    gangs go ``everywhere``, anywhere.

    Parameters
    ----------
    tasks
        Columns candidate, status, podgroup, role, subgroup, shape, priority, order.
    gangs
        Of every podgroup: cost of all that it runs, in units of the need; how many tasks that is; whether all of them
        are candidates.
    surplus, scale
        The columns of ``Surplus``; the request of shapes, and the columns of ``Scale``.
    flags
        Whether gangs may break, whether they go everywhere then, whether the order inside safe bundles matters.
    seats: int32[G]
        Scratch, NONE everywhere; left so.

    Returns
    -------
    The columns of ``Bundles``.
    """
    candidate, status, podgroup, shape = tasks[0], tasks[1], tasks[2], tasks[5]
    costs, running, free = gangs
    gang, leaf, slack = surplus[0], surplus[3], surplus[4]
    request, needed, coverage, waste = scale
    allow_whole, everywhere, ordered = flags
    owner, begin, local, shut = _by_podgroup(rows, candidate, status, podgroup, seats)
    leaf, slack = leaf.copy(), slack[: len(slack) if len(leaf) else 0].copy()  # without subgroups nobody reads it
    ranks = (coverage, waste, np.empty(len(local), np.int64), np.empty(len(local), np.int64))
    most = 2 * len(owner)
    names, stop, kind = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.bool_)
    elsewhere, worth, price = np.zeros(most, np.int64), np.full(most, np.inf), np.zeros(most)
    out, many, filled = np.empty(len(local), np.int64), 0, 0
    freed = np.empty(len(needed), np.int64)
    for g in range(len(owner)):
        group, low, high = owner[g], begin[g], begin[g + 1]
        edge = low
        if gang[group] < 0 and not ordered:
            edge = high
        elif gang[group] > 0 or ordered:
            edge += _surplus_first(local[low:high], gang[group], tasks, surplus, (leaf, slack), ranks, ordered)
        for at in range(low, edge):
            out[filled] = local[at]
            filled += 1
        if edge > low:
            names[many], kind[many], stop[many] = group, True, filled
            many += 1
        if edge == high or not allow_whole or shut[g] or (everywhere and not free[group]):
            continue
        for r in range(len(freed)):
            freed[r] = 0
        form, alike = shape[local[edge]], 0
        for at in range(edge, high):
            out[filled] = local[at]
            filled += 1
            if shape[local[at]] != form:
                _add(freed, request, form, alike)
                form, alike = shape[local[at]], 0
            alike += 1  # most gangs are of one shape: their tasks are counted, and added up once
        _add(freed, request, form, alike)
        names[many], kind[many], stop[many] = group, False, filled
        elsewhere[many] = running[group] - (high - low) if everywhere else 0
        price[many] = costs[group]
        worth[many] = gain(freed, needed) / costs[group] if costs[group] > 0 else 0.0
        many += 1
    return names[:many], kind[:many], stop[:many], out[:filled], elsewhere[:many], worth[:many], price[:many]
