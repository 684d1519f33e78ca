"""Lower bounds by sums: what must be freed of the scarcest resource, and what podgroups of each level can free.

At least what the gang takes less what is idle must be freed. Surplus frees some of it; the rest needs podgroups that
break: in preempt up to some priority, and at that priority at least the work of a fractional knapsack (Dantzig 1957),
in which none counts with more than is missing. In reclaim the same holds for queues up to some rank, and no more is
taken from any than its quota lets go. Where surplus frees all of it in preempt, the same holds for surplus.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Floats, Ids, Longs, Rows
from pipeline.kernels import inlined
from pipeline.placement.room.ground import missing_of
from pipeline.solvers.bundles.bundling.kinds import HOPELESS, GroupKinds
from pipeline.solvers.bundles.bundling.records import BREAKING, Site, Terms
from pipeline.solvers.bundles.bundling.sorting import sort_by

#: Sizes of tasks are sorted by this many bits at a time.
_DIGIT = 8


class _DomainTasks(NamedTuple):
    """Columns of the tasks of one domain; slices, because a compiler need not ask whether positions are negative.

    Of each shape ``amount`` and ``size`` (int64[shapes]) say what a task holds of the scarcest resource, see
    ``GroupKinds``.
    """

    podgroup: Ids
    shape: Ids
    candidate: Bools
    amount: Longs
    size: Rows


class _Held(NamedTuple):
    """What podgroups hold of the scarce resource in one domain: as surplus, and the rest."""

    group: Rows
    free: Floats
    rest: Floats


class _ByLevel(NamedTuple):
    """The same summed by level."""

    free: Floats
    rest: Floats


class LevelsNeeded(NamedTuple):
    """Of each domain the levels that must lose tasks, as sums say: ``low`` to ``high``, the leading one.

    Attributes
    ----------
    low, high: int64[D]
        See ``CostBounds.head``.
    missing: float64[D]
        What they must free of the scarce resource.
    """

    low: Longs
    high: Longs
    missing: Floats


@inlined
def levels_by_sums(
    site: Site, first: int, last: int, terms: Terms, kinds: GroupKinds, seats: Ids
) -> tuple[int, int, float]:
    """The levels of the price of a selection on the nodes ``first:last``, at least; see ``LevelsNeeded``."""
    missing = missing_of(site.request, site.wanted, site.allowed, site.scarce, site.future[first:last], first)
    if missing <= 0:
        return 0, 0, 0.0
    here = tasks_of(site, first, last, terms, kinds)
    return _levels_needed(missing, sums_by_level(here, terms, kinds, seats), kinds.most, terms.rules.by_priority)


@inlined
def work_by_sums(
    low: int, high: int, missing: float, site: Site, first: int, last: int, terms: Terms, kinds: GroupKinds, seats: Ids
) -> float:
    """The work of that price, at least, given its levels; see ``CostBounds``."""
    if missing <= 0:
        return 0.0
    here = tasks_of(site, first, last, terms, kinds)
    if terms.rules.by_priority and high < BREAKING:
        some = _of_levels(high, high, True, here, kinds)
        return _filled_by_surplus(missing, some, _held(some, here, terms, seats), here, terms, kinds.most, seats)
    some = _of_levels(low % BREAKING, high % BREAKING, False, here, kinds)
    return _filled(missing, _held(some, here, terms, seats), terms, kinds.most)


@inlined
def tasks_of(site: Site, first: int, last: int, terms: Terms, kinds: GroupKinds) -> _DomainTasks:
    """The tasks of the nodes ``first:last``."""
    begin, end = site.start[first], site.start[last]
    return _DomainTasks(
        terms.entries.podgroup[begin:end], terms.entries.shape[begin:end], terms.entries.candidate[begin:end],
        kinds.amount, kinds.size,
    )  # fmt: skip


@inlined
def sums_by_level(here: _DomainTasks, terms: Terms, kinds: GroupKinds, seats: Ids) -> _ByLevel:
    """Sum what candidates hold by level, without a branch; podgroups with some surplus are looked at apart."""
    levels, of = kinds.levels, kinds.of
    podgroup, shape, candidate = here.podgroup, here.shape, here.candidate
    sums, some, many = np.zeros(1 + 3 * levels, np.int64), np.empty(len(podgroup), np.int64), 0
    for i in range(len(podgroup)):
        kind = of[np.uint32(podgroup[i])] * np.uint32(candidate[i])
        sums[kind] += here.amount[np.uint32(shape[i])]
        some[many] = i
        many += int(kind > 2 * levels)
    by_level = _ByLevel(sums[1 + levels : 1 + 2 * levels].astype(np.float64), sums[1 : 1 + levels].astype(np.float64))
    held = _held(some[:many], here, terms, seats)
    for m in range(len(held.group)):
        level = terms.groups.level[held.group[m]]
        by_level.free[level] += held.free[m]
        by_level.rest[level] += held.rest[m]
    return by_level


@inlined
def _of_levels(low: int, high: int, as_surplus: bool, here: _DomainTasks, kinds: GroupKinds) -> Rows:
    """int64[K]: positions of candidates of levels from ``low`` to ``high`` that may go as surplus, or in other ways."""
    of, podgroup, candidate = kinds.of, here.podgroup, here.candidate
    alone, mixed = np.uint32(1 + low + kinds.levels * int(as_surplus)), np.uint32(1 + 2 * kinds.levels + low)
    some, many, more = np.empty(len(podgroup), np.int64), 0, np.uint32(high - low)
    for i in range(len(podgroup)):
        kind = of[np.uint32(podgroup[i])] * np.uint32(candidate[i])
        some[many] = i
        many += int((alone <= kind <= alone + more) | (mixed <= kind <= mixed + more))
    return some[:many]


@inlined
def _held(some: Rows, here: _DomainTasks, terms: Terms, seats: Ids) -> _Held:
    """Sum the candidates at some positions by podgroup; each has a surplus, or none of it is surplus."""
    podgroup, shape, spare, uneven = here.podgroup, here.shape, terms.surplus.gang, False
    group, total, many = np.empty(len(some), np.int64), np.zeros(len(some)), 0
    largest, free = np.zeros(len(some)), np.zeros(len(some))
    for i in some:
        owner, held = podgroup[i], float(here.amount[shape[i]])
        m = seats[owner]
        if m == NONE:
            m = many
            seats[owner], group[m], largest[m] = m, owner, held
            many += 1
        total[m] += held
        uneven |= held != largest[m] and spare[owner] > 0
        largest[m] = max(largest[m], held)
    if uneven:
        _add_largest(some, here, spare, seats, free)
    for m in range(many):
        owner = group[m]
        seats[owner] = NONE
        if spare[owner] > 0:
            free[m] = free[m] if uneven else min(total[m], spare[owner] * largest[m])
            breaks = terms.rules.allow_whole and (terms.groups.complete[owner] or not terms.rules.cluster_wide)
            total[m] = total[m] - free[m] if breaks else 0.0
    return _Held(group[:many], free[:many], total[:many])


@inlined
def _add_largest(some: Rows, here: _DomainTasks, spare: Counts, seats: Ids, free: Floats) -> None:
    """Add what the largest of the candidates at some positions hold, as many of each podgroup as it can spare."""
    taken = np.zeros(len(free), np.int64)
    for i in _largest_first(some, here):
        m = seats[here.podgroup[i]]
        if taken[m] < spare[here.podgroup[i]]:
            free[m] += here.amount[here.shape[i]]
            taken[m] += 1


@inlined
def _largest_first(some: Rows, here: _DomainTasks) -> Rows:
    """int64[K]: the same positions, those of the largest tasks first; few bits tell their sizes apart."""
    shape, size, largest = here.shape, here.size, 0
    order, other = some.copy(), np.empty(len(some), np.int64)
    for i in some:
        largest = max(largest, size[shape[i]])
    for low in range(0, 64, _DIGIT):
        if largest >> low == 0:
            break
        start = np.zeros((1 << _DIGIT) + 1, np.int64)
        for i in order:
            start[((size[shape[i]] >> low) & ((1 << _DIGIT) - 1)) + 1] += 1
        for digit in range(1 << _DIGIT):
            start[digit + 1] += start[digit]
        for i in order:
            digit = (size[shape[i]] >> low) & ((1 << _DIGIT) - 1)
            other[start[digit]] = i
            start[digit] += 1
        order, other = other, order
    return order


@inlined
def _levels_needed(missing: float, by_level: _ByLevel, most: Floats, by_priority: bool) -> tuple[int, int, float]:
    """From which to which leading level podgroups lose tasks (HOPELESS if all free too little), and what these free.

    In preempt all surplus goes first, that of the lowest level before the others, then the lowest levels break; the
    highest of these counts. In reclaim the surplus of the fairest queues goes first; ``most``: see ``GroupKinds``.
    """
    levels, sum_, free = len(by_level.rest), 0.0, 0.0
    if by_priority:
        for level in range(levels):
            if by_level.free[level] >= missing:
                return level, level, missing
            missing -= by_level.free[level]
        for level in range(levels):
            if by_level.rest[level] >= missing:
                return BREAKING + level, BREAKING + level, missing
            missing -= by_level.rest[level]
        return 0, HOPELESS, 0.0
    for level in range(levels):
        sum_ += min(by_level.free[level] + by_level.rest[level], most[level])
        free += min(by_level.free[level], most[level])
        if sum_ >= missing:
            return 0, level, missing - free
    return 0, HOPELESS, 0.0


@inlined
def _filled(missing: float, held: _Held, terms: Terms, most: Floats) -> float:
    """The least work that frees what is missing, as if podgroups could break in part; ``most``: see ``GroupKinds``.

    A podgroup that holds more than is missing frees no more than that, so a part of it is a part of what is missing.
    """
    ratio, left, useful = np.empty(len(held.group)), most.copy(), np.minimum(held.rest, missing)
    for m in range(len(held.group)):
        group, rest = held.group[m], useful[m]
        loss = terms.groups.cost[group] * terms.groups.lost_work[group]
        ratio[m] = loss / rest if rest > 0 else np.inf
        left[terms.groups.level[group]] -= held.free[m]
    return _poured(missing, held, useful, ratio, left, terms)


@inlined
def _filled_by_surplus(
    missing: float, some: Rows, held: _Held, here: _DomainTasks, terms: Terms, most: Floats, seats: Ids
) -> float:
    """The least work that frees what is missing, as if a podgroup's surplus were its cheapest tasks, and in parts."""
    ratio, free = np.full(len(held.group), np.inf), held.free.copy()
    for m in range(len(held.group)):
        seats[held.group[m]] = m
        if terms.surplus.gang[held.group[m]] < 0:  # broken already: all of it is surplus, and loses nothing
            free[m] = held.rest[m]
    for i in some:
        group, shape = here.podgroup[i], here.shape[i]
        if here.amount[shape] > 0:
            lost = terms.groups.lost_work[group] if terms.surplus.gang[group] >= 0 else 0.0
            ratio[seats[group]] = min(ratio[seats[group]], terms.worth.unit[shape] * lost / here.amount[shape])
    for m in range(len(held.group)):
        seats[held.group[m]] = NONE
    return _poured(missing, held, free, ratio, most.copy(), terms)


@inlined
def _poured(missing: float, held: _Held, amount: Floats, ratio: Floats, left: Floats, terms: Terms) -> float:
    """What it costs at least to take what is missing of some amounts, at their ratios of cost to amount.

    ``left``: what each level may lose; used up.
    """
    order, least, work = np.arange(len(amount)), ratio.copy(), 0.0
    sort_by(order, least, np.arange(len(order)))
    for next_ in order:
        level = terms.groups.level[held.group[next_]]
        taken = min(amount[next_], missing, left[level])
        if taken > 0:
            work += taken * ratio[next_]
            missing -= taken
            left[level] -= taken
    return work
