"""Splitting: the candidates of one domain, podgroup by podgroup, into surplus and the rest.

This is phase 1 of "Gang-Aware Preemption and Reclaim", section 3.4.1, in one pass over the tasks of the domain. A
podgroup's candidates are sorted only if it matters which of them are surplus.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.cluster.counted.counting import runs
from pipeline.kernels import inlined, linked, writing
from pipeline.solvers.bundles.bundling.records import Bundles, Entries, Favour, Surplus, Terms, Worth, blank, cut
from pipeline.solvers.bundles.bundling.sorting import first_by, sort_by
from pipeline.solvers.bundles.bundling.surplus import mark_safe, to_use_up, unconditional
from pipeline.solvers.bundles.bundling.worth import RANK_BITS, gain

_PRIORITY_BITS = 32


@inlined
def by_podgroup(begin: int, end: int, entries: Entries, seats: Ids) -> tuple[Rows, Longs, Rows, Bools]:
    """Group the candidates of ``begin:end`` by podgroup.

    The podgroups, int64[P]; where the candidates of each begin, int64[P + 1]; these as entries; and bool[P]: which of
    the podgroups have other tasks running here. ``seats`` int32[G], scratch: below 0 before and after.
    """
    owner, start = np.empty(end - begin, np.int64), np.zeros(end - begin + 1, np.int64)
    groups = 0
    for entry in range(begin, end):
        if entries.candidate[entry]:
            group = entries.podgroup[entry]
            if seats[group] < 0:
                seats[group] = groups
                owner[groups] = group
                groups += 1
            start[seats[group] + 1] += 1
    for group in range(groups):
        start[group + 1] += start[group]
    fill, local = start[:groups].copy(), np.empty(start[groups], np.int64)
    shut = np.zeros(groups, np.bool_)
    for entry in range(begin, end):
        group = seats[entries.podgroup[entry]]
        if entries.candidate[entry]:
            local[fill[group]] = entry
            fill[group] += 1
        elif group >= 0 and runs(entries.status[entry]):
            shut[group] = True
    for group in range(groups):
        seats[owner[group]] = NONE
    return owner[:groups], start[: groups + 1], local, shut


@inlined
def may_go_whole(group: int, shut: bool, terms: Terms) -> bool:
    """Whether all of a podgroup may go that has to; ``shut``: other tasks of it run here (see ``by_podgroup``)."""
    rules = terms.rules
    return bool(rules.allow_whole and not shut and (terms.groups.complete[group] or not rules.cluster_wide))


@linked
def levels_of(owner: Rows, terms: Terms) -> tuple[Longs, int]:
    """int64[P]: the level of each podgroup's lost work in a price, 0 for the highest; and how many levels there are."""
    level = np.zeros(len(owner), np.int64)
    if not terms.rules.by_priority or len(owner) == 0:
        return level, 1
    order, high = np.arange(len(owner)), np.empty(len(owner), np.int64)
    for g in range(len(owner)):
        high[g] = -np.int64(terms.groups.priority[owner[g]])
    sort_by(order, high, order.copy())
    for k in range(1, len(order)):
        level[order[k]] = level[order[k - 1]] + (high[k] != high[k - 1])
    return level, int(level[order[-1]]) + 1


@inlined
def sort_victims(
    mine: Rows, many: int, entries: Entries, worth: Worth, favour: Favour, high: Longs, low: Longs
) -> None:
    """Move the ``many`` that go first to the front: most coverage, lowest priority, least waste, youngest, last name.

    With a ``favour``, it and the priority decide before age and name. ``high`` and ``low`` are scratch, at least as
    long as ``mine``.
    """
    for i in range(len(mine)):
        entry = mine[i]
        shape, task = entries.shape[entry], entries.task[entry]
        priority = np.int64(entries.of_tasks.priority[task]) + (1 << (_PRIORITY_BITS - 1))
        if len(favour.rank) > 0:
            high[i] = (favour.rank[entry - favour.begin] << _PRIORITY_BITS) + priority
        else:
            high[i] = (((worth.coverage[shape] << _PRIORITY_BITS) + priority) << RANK_BITS) + worth.waste[shape]
        low[i] = -entries.of_tasks.order[task]
    first_by(mine, high, low, many)


@inlined
def _surplus_first(mine: Rows, terms: Terms, left: Surplus, favour: Favour, high: Longs, low: Longs) -> int:
    """Sort one podgroup's candidates into victim order, surplus in front; returns how many are surplus.

    Unless the order of surplus matters, they are sorted only as far as needed to know which are surplus.
    """
    entries, surplus, in_order = terms.entries, terms.surplus, terms.rules.asks_in_order
    group = entries.podgroup[mine[0]]
    spare, first_role, last_role = surplus.gang[group], surplus.role_start[group], surplus.role_start[group + 1]
    count = len(mine)
    least = count if spare < 0 else min(spare, count)
    at_will = spare <= 0 or unconditional(spare, count, surplus.role[first_role:last_role], len(surplus.leaf) > 0)
    if in_order or not at_will or 0 < least < count:
        sort_victims(mine, least if at_will and not in_order else count, entries, terms.worth, favour, high, low)
    if at_will:
        return least
    safe = mark_safe(mine, spare, first_role, surplus.role[first_role:last_role].copy(), entries, left)
    ordered, least, rest = mine.copy(), 0, safe.sum()
    for i in range(len(ordered)):
        if safe[i]:
            mine[least] = ordered[i]
            least += 1
        else:
            mine[rest] = ordered[i]
            rest += 1
    return least


@inlined
def _copy(some: Rows, out: Rows, at: int) -> int:
    """Append entries to ``out`` from ``at`` on; a loop, since assigning to a slice checks for overlaps."""
    for entry in some:
        out[at] = entry
        at += 1
    return at


@inlined
def _add(freed: Longs, request: Longs, shape: int, tasks: int) -> None:
    for r in range(len(freed)):
        freed[r] += tasks * request[shape, r]


@inlined
def _gain_of(some: Rows, shape: Ids, worth: Worth, freed: Longs) -> float:
    """How much of the need some entries free together; ``freed`` int64[R] is scratch."""
    for r in range(len(freed)):
        freed[r] = 0
    form, alike = shape[some[0]], 0
    for entry in some:
        if shape[entry] != form:
            _add(freed, worth.request, form, alike)
            form, alike = shape[entry], 0
        alike += 1  # most gangs are of one shape: their tasks are counted and multiplied
    _add(freed, worth.request, form, alike)
    return gain(freed, worth.needed)


@inlined
def set_figures(made: Bundles, at: int, some: Rows, elsewhere: int, terms: Terms, freed: Longs) -> None:
    """Write down what a whole bundle of these entries is worth and costs; ``freed`` int64[R] is scratch."""
    cost = terms.groups.cost[made.podgroup[at]]
    made.elsewhere[at] = elsewhere if terms.rules.cluster_wide else 0
    made.efficiency[at] = _gain_of(some, terms.entries.shape, terms.worth, freed) / cost if cost > 0 else 0.0
    made.cost[at] = cost


@writing("seats")
def split(begin: int, end: int, terms: Terms, favour: Favour, seats: Ids) -> Bundles:
    """Split the candidates among the entries ``begin:end``, a slice of nodes, into bundles, podgroup by podgroup.

    A whole bundle is left out if a member of the gang that would have to go is no candidate: in the slice, or anywhere
    if gangs go ``cluster_wide``.

    Parameters
    ----------
    favour
        Which of a podgroup's tasks are preferred as surplus; without rows, the order of section 3.4.1 decides.
    """
    entries, groups, surplus, rules = terms.entries, terms.groups, terms.surplus, terms.rules
    owner, start, local, shut = by_podgroup(begin, end, entries, seats)
    high, low = np.empty(len(local), np.int64), np.empty(len(local), np.int64)
    left, freed = to_use_up(surplus), np.empty(len(terms.worth.needed), np.int64)
    made, many, filled = blank(2 * len(owner), len(local)), 0, 0
    for g in range(len(owner)):
        group, first, last = owner[g], start[g], start[g + 1]
        edge, spare = first, surplus.gang[group]
        if spare < 0 and not rules.asks_in_order:
            edge = last
        elif spare > 0 or rules.asks_in_order:
            edge += _surplus_first(local[first:last], terms, left, favour, high, low)
        if edge > first:
            filled = _copy(local[first:edge], made.entry, filled)
            made.podgroup[many], made.safe[many], made.stop[many] = group, True, filled
            many += 1
        if edge == last or not may_go_whole(group, shut[g], terms):
            continue
        filled = _copy(local[edge:last], made.entry, filled)
        made.podgroup[many], made.safe[many], made.stop[many] = group, False, filled
        set_figures(made, many, local[edge:last], groups.running[group] - (last - first), terms, freed)
        many += 1
    return cut(made, many, filled)
