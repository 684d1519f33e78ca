"""Podgroups that need not break: some of their victims return, and those that cannot are surplus.

A podgroup that breaks leaves whole, and a reprieve or a local search lets it return whole or not at all. Whether a part
of it would do is asked here, once, about the set that was chosen.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Counts, Ids, Longs, Rows, is_among, sizes
from pipeline.kernels import linked, writing
from pipeline.placement.room.ground import Ground, move, try_return
from pipeline.records import replace
from pipeline.solvers.bundles.bundling.records import Bundles, Entries, Groups, Outcome, Surplus, Worth
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.bundling.surplus import UNBOUND, stays_whole
from pipeline.solvers.bundles.bundling.worth import RANK_BITS
from pipeline.solvers.bundles.covering.chosen import Chosen, Selection
from pipeline.solvers.bundles.covering.cover import each_alone
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.every_set import selected_of, tries
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.sets import outcome_of

#: Bits of a rank by age and name in a sort key; and the lowest priority that one can hold.
_AGE_BITS, _LOWEST = 32, 1 - (1 << 31)


class _Breaking(NamedTuple):
    """Podgroups that break and could spare something, and their victims in the domain.

    Attributes
    ----------
    podgroup: int64[P]
        The costliest first: it is the first whose victims return.
    start: int64[P + 1]
        Where the entries of each begin.
    entry: int64[C]
        In the order in which they return: of roles that can spare the fewest, then the smallest, then in the order of
        a reprieve.
    returned: bool[C]
        Which return, by slots.
    kept: bool[P]
        Which podgroups keep their minima then.
    """

    podgroup: Rows
    start: Longs
    entry: Rows
    returned: Bools
    kept: Bools


def minima_kept(here: DomainBundles, found: Selection) -> Selection:
    """The selection less victims that are not needed and without which podgroups that break keep their minima."""
    search, some = here.search, found.broken[here.search.surplus.gang[found.broken] > 0]
    if len(some) == 0:
        return found
    terms, seats, free = search.terms, search.seats(), found.free
    some = _hopeful(some, found.entry, terms.entries.podgroup, terms.surplus.gang, seats, free.ground)
    if len(some) == 0:
        return found
    breaking = _returning(
        some, found.entry, terms.entries, terms.groups, terms.surplus, terms.worth, seats, free.ground
    )
    if not breaking.kept.any():
        return found
    back, kept = breaking.entry[breaking.returned], breaking.podgroup[breaking.kept]
    every = _selection_without(here, found, back, kept) if free.may_take_back(back) else None
    return every or _one_by_one(here, found, breaking)


@writing("seats", "ground")
def _hopeful(some: Rows, gone: Rows, podgroup: Ids, spare: Counts, seats: Ids, ground: Ground) -> Rows:
    """int64[K]: podgroups that can spare those of their victims that may not return alone.

    ``podgroup`` int32[M]: that of each entry. ``spare`` int32[G]: what podgroups can lose. The rest as in
    ``_returning``.
    """
    before, stuck = np.empty((len(ground.wanted), 1), np.int64), np.zeros(len(some), np.int64)
    for g in range(len(some)):
        seats[some[g]] = g
    for i in range(len(gone)):
        g = seats[podgroup[gone[i]]]
        if g != NONE:
            if try_return(gone[i : i + 1], before, ground):
                move(gone[i : i + 1], 1, ground)
            else:
                stuck[g] += 1
    for group in some:
        seats[group] = NONE
    return some[stuck <= spare[some]]


@writing("seats", "ground")
def _returning(
    some: Rows, gone: Rows, entries: Entries, groups: Groups, surplus: Surplus, worth: Worth, seats: Ids, ground: Ground
) -> _Breaking:
    """Let victims of podgroups that break return by slots, if the podgroup keeps its minima then.

    Parameters
    ----------
    some: int64[P], gone: int64[V]
        The podgroups, and the entries of all victims in the domain.
    ground
        With all victims gone, before and after.
    """
    breaking = _in_order(some, gone, entries, groups, surplus, worth, seats)
    before = np.empty((len(ground.wanted), 1), np.int64)
    for g in range(len(breaking.kept)):
        first, stop = breaking.start[g], breaking.start[g + 1]
        mine, returned = breaking.entry[first:stop], breaking.returned[first:stop]
        for i in range(len(mine)):
            returned[i] = try_return(mine[i : i + 1], before, ground)
        breaking.kept[g] = stays_whole(mine[~returned], entries, surplus)
        if not breaking.kept[g]:
            move(mine[returned], 1, ground)
            returned[:] = False
    move(breaking.entry[breaking.returned], 1, ground)
    return breaking


@linked
def _in_order(
    some: Rows, gone: Rows, entries: Entries, groups: Groups, surplus: Surplus, worth: Worth, seats: Ids
) -> _Breaking:
    """The podgroups and their victims in order; nothing has returned."""
    details, podgroup, start, many = entries.of_tasks, some.copy(), np.zeros(len(some) + 1, np.int64), 0
    sort_by(podgroup, -groups.cost[some] * groups.lost_work[some], some.copy())
    sort_by(podgroup, -groups.level[podgroup], np.arange(len(some)))
    for g in range(len(some)):
        seats[podgroup[g]] = g
    mine, seat = np.empty(len(gone), np.int64), np.empty(len(gone), np.int64)
    high, low = np.empty(len(gone), np.int64), np.empty(len(gone), np.int64)
    for at in gone:
        g = seats[entries.podgroup[at]]
        if g == NONE:
            continue
        task, role = entries.task[at], details.role[entries.task[at]]
        spare = np.int64(surplus.role[role]) if role != NONE else np.int64(UNBOUND)
        mine[many], seat[many] = at, g
        high[many] = (spare << RANK_BITS) + worth.waste[entries.shape[at]]
        low[many] = details.order[task] - (np.int64(max(details.priority[task], _LOWEST)) << _AGE_BITS)
        start[g + 1] += 1
        many += 1
    for g in range(len(some)):
        seats[podgroup[g]] = NONE
        start[g + 1] += start[g]
    order = np.arange(many)
    sort_by(order, high[:many], low[:many])
    order = order[np.argsort(seat[order], kind="mergesort")]
    return _Breaking(podgroup, start, mine[order], np.zeros(many, np.bool_), np.zeros(len(some), np.bool_))


def _one_by_one(here: DomainBundles, found: Selection, breaking: _Breaking) -> Selection:
    """The same where the gang does not place, or the law refuses that all return: podgroup by podgroup.

    Where slots do not decide, the gang is placed once for each victim; the costliest podgroups are tried, not all.
    """
    search, terms, left = here.search, here.search.terms, tries(len(here.search.snapshot.nodes))
    for g in np.flatnonzero(breaking.kept).tolist():
        podgroup, mine = int(breaking.podgroup[g]), breaking.entry[breaking.start[g] : breaking.start[g + 1]]
        left -= 1 if found.free.exact else len(mine)
        if left < 0:
            break
        back = mine[_placing(here, found, mine, podgroup)]
        if stays_whole(mine[~is_among(mine, back)], terms.entries, search.surplus):
            found = _selection_without(here, found, back, np.array([podgroup])) or found
    return found


def _placing(here: DomainBundles, found: Selection, mine: Rows, podgroup: int) -> Bools:
    """Which of the entries ``mine`` (int64[C]) of a podgroup that breaks may return, the gang being placed in doubt."""
    search, domain = here.search, here.domain
    free, broken = FreeRoom(search, domain, found.entry), found.broken[found.broken != podgroup]

    def left(returned: Bools) -> Chosen:
        return Chosen(search, domain, found.entry[~is_among(found.entry, mine[returned])], broken)

    return free.reprieve(each_alone(mine), None if free.exact else left)


def _selection_without(here: DomainBundles, found: Selection, back: Rows, kept: Rows) -> Selection | None:
    """The selection without the entries ``back`` (int64[C]), if the gang places and the law allows it.

    ``kept`` int64[P]: podgroups that break in it, and do not any more.
    """
    made = selected_of(here, _outcome_without(here, found.outcome, back, kept), NO_ROWS)
    return made and replace(made, given_back=found.given_back + len(back))


def _outcome_without(here: DomainBundles, found: Outcome, back: Rows, kept: Rows) -> Outcome:
    """An outcome without the entries ``back``; what still goes of each podgroup ``kept`` is one safe bundle."""
    bundles, units, size = found.bundles, found.units, sizes(found.units.stop)
    gone = np.repeat(~found.returned, size) & ~is_among(units.entry, back)
    spared = is_among(bundles.podgroup, kept)
    some = spared.nonzero()[0]
    some = some[bundles.podgroup[some].argsort(kind="stable")]
    again, into = bundles.podgroup[some[1:]] == bundles.podgroup[some[:-1]], np.arange(bundles.many)
    into[some[1:][again]] = some[:-1][again]  # a podgroup has two bundles at most
    owner = into[np.repeat(units.bundle, size)[gone]]
    many = np.bincount(owner, minlength=bundles.many)
    left = many > 0
    made = Bundles(
        bundles.podgroup[left], (bundles.safe | spared)[left], np.cumsum(many[left]),
        units.entry[gone][owner.argsort(kind="stable")], np.where(spared, 0, bundles.elsewhere)[left],
        np.where(spared, np.inf, bundles.efficiency)[left], np.where(spared, 0.0, bundles.cost)[left],
    )  # fmt: skip
    return outcome_of(made, here.search.terms, here.search.seats())
