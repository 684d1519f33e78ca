"""Reprieve where slots leave a doubt: what leaves must leave places for the whole gang."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.kernels import inlined, writing
from pipeline.placement.kept_places import (
    FOUND,
    THERE_ARE_NONE,
    KeptPlaces,
    count_offers,
    find_places_without,
    offer_again,
)
from pipeline.placement.layout.settled_groups import AskedPlaces
from pipeline.placement.room.ground import Ground, move, try_return
from pipeline.solvers.bundles.bundling.records import Units


@inlined
def _nodes_of(some: Rows, ground: Ground) -> Rows:
    """The nodes of entries, counted from the start of the slice."""
    nodes = np.empty(len(some), np.int64)
    for i in range(len(some)):
        nodes[i] = ground.node[some[i]] - ground.first
    return nodes


@writing("returned", "kept", "ground")
def placed_return(
    begin: int, units: Units, returned: Bools, asks: bool, asked: AskedPlaces, kept: KeptPlaces, ground: Ground
) -> int:
    """Reprieve units from ``begin`` on while all tasks of the gang have places, until no more can return.

    ``asks``: stop after each return, since something else is to be asked about it; there is one pass then, and what
    regions have is counted when it begins.

    Returns
    -------
    The unit that returned last; the number of units if all were decided.
    """
    before, many = np.empty((len(ground.wanted), len(units.entry)), np.int64), len(units.stop)
    if begin == 0:
        count_offers(asked, kept, ground.room)
    back, decided = True, returned.copy()  # what cannot return now cannot after others either
    while back:
        back = False
        for unit in range(begin, many):
            if decided[unit] or (units.after[unit] != NONE and not returned[units.after[unit]]):
                continue
            some = units.entry[units.stop[unit - 1] if unit > 0 else 0 : units.stop[unit]]
            if not try_return(some, before, ground):
                decided[unit] = True
                continue
            outcome = find_places_without(_nodes_of(some, ground), asked, kept, ground.room)
            if outcome != FOUND:
                decided[unit] = outcome == THERE_ARE_NONE
                go_again(some, asked, kept, ground)
                continue
            decided[unit] = returned[unit] = back = True
            if asks:
                return unit
        begin = 0
        back &= not asks
    return many


@writing("kept", "ground")
def go_again(some: Rows, asked: AskedPlaces, kept: KeptPlaces, ground: Ground) -> None:
    """Undo the return of some entries."""
    move(some, 1, ground)
    offer_again(_nodes_of(some, ground), asked, kept, ground.room)
