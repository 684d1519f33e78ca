"""Lower bounds for gangs with parts that go into one region each: what the cheapest regions for all parts must free.

A region holds as many parts as its room allows once podgroups up to some level have lost tasks there. So that level is
reached at least at which the regions hold all parts. What the part after another of its size in a region lacks never
falls, so taking the least again and again gives the least that must be freed in all.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Floats, Ids, Longs, Rows
from pipeline.kernels import inlined, linked
from pipeline.placement.layout.region_slots import lies_in_one
from pipeline.placement.layout.regions_of_parts import AskedOfRegions, hold
from pipeline.solvers.bundles.bundling.kinds import HOPELESS, GroupKinds
from pipeline.solvers.bundles.bundling.records import BREAKING, Site, Terms
from pipeline.solvers.bundles.sum_bounds import sums_by_level, tasks_of


class _Room(NamedTuple):
    """What regions have of the scarce resource.

    Attributes
    ----------
    idle: float64[Q]
        Without evictions.
    free, rest: float64[levels, Q]
        What podgroups of each level hold there: as surplus, and the rest.
    """

    idle: Floats
    free: Floats
    rest: Floats


@linked
def levels_by_regions(
    needed: tuple[int, int, float], level: int, asked: AskedOfRegions, site: Site, first: int, last: int, terms: Terms,
    kinds: GroupKinds, seats: Ids,
) -> tuple[int, int, float]:  # fmt: skip
    """The levels of the price on the nodes ``first:last``, at least; see ``LevelsNeeded``.

    Parameters
    ----------
    needed
        The same as is known so far.
    level
        The row of ``asked``: parts that require one level.
    """
    amount, region = asked.amount[level, len(asked.request)], asked.region[level]
    if needed[1] >= HOPELESS or amount[0] <= 0 or lies_in_one(region, first, last):
        return needed
    room, levels = _room_of(region, site, first, last, terms, kinds, seats), kinds.levels
    held, before, free = room.idle.copy(), room.idle.copy(), room.idle.copy()
    by_priority, step = terms.rules.by_priority, 0
    while not hold(held, amount):
        if step == (2 * levels if by_priority else levels):
            return 0, HOPELESS, 0.0
        before[:] = held
        if step < levels:
            held += room.free[step]
            free += room.free[step]
        if not by_priority or step >= levels:
            held += room.rest[step % levels]
        step += 1
    head = max(step - 1, 0)
    if by_priority and head >= levels:
        head += BREAKING - levels
    if step == 0 or head < needed[1]:
        return needed
    missing = _least_missing(held, before if by_priority else free, amount)
    return head if by_priority else 0, head, max(missing, needed[2] if head == needed[1] else 0.0)


@inlined
def _regions(region: Ids, first: int, last: int) -> tuple[Rows, Rows]:
    """int64[Q], int64[Q]: the first node of each region among ``first:last``, and the node after its last."""
    begin, end, many, before = np.empty(last - first, np.int64), np.empty(last - first, np.int64), 0, NONE
    for node in range(first, last):
        here = region[node]
        if here not in (NONE, before):
            begin[many] = node
            many += 1
        if here != NONE:
            end[many - 1] = node + 1
        before = here
    return begin[:many], end[:many]


@inlined
def _room_of(region: Ids, site: Site, first: int, last: int, terms: Terms, kinds: GroupKinds, seats: Ids) -> _Room:
    """What each region among the nodes ``first:last`` has."""
    begin, end = _regions(region, first, last)
    room = _Room(
        np.zeros(len(begin)), np.zeros((kinds.levels, len(begin))), np.zeros((kinds.levels, len(begin)))
    )  # fmt: skip
    for r in range(len(begin)):
        for node in range(begin[r], end[r]):
            if site.allowed[:, node].any():
                room.idle[r] += max(site.future[node, site.scarce], 0)
        by_level = sums_by_level(tasks_of(site, begin[r], end[r], terms, kinds), terms, kinds, seats)
        room.free[:, r], room.rest[:, r] = by_level.free, by_level.rest
    return room


@inlined
def _least_missing(held: Floats, before: Floats, amount: Longs) -> float:
    """What regions must free at least beyond what they had ``before``, so that they hold parts of these amounts.

    All that are as large as a part, or larger, are counted as if they were of its size.
    """
    most = 0.0
    for part in range(len(amount)):
        if amount[part] == 0:
            break
        if part + 1 == len(amount) or amount[part + 1] != amount[part]:
            most = max(most, _missing_for(held, before, float(amount[part]), part + 1))
    return most


@inlined
def _missing_for(held: Floats, before: Floats, least: float, many: int) -> float:
    """The same for many parts of one size, which regions hold by what they ``held``."""
    missing, parts = 0.0, np.zeros(len(held), np.int64)
    for _ in range(many):
        found, lacks = NONE, np.inf
        for r in range(len(held)):
            if (parts[r] + 1) * least > held[r]:
                continue
            more = max((parts[r] + 1) * least - before[r], 0.0) - max(parts[r] * least - before[r], 0.0)
            if more < lacks:
                found, lacks = r, more
        parts[found] += 1
        missing += lacks
    return missing
