"""Places of a gang that are kept while the room around them shrinks, so that few of its tasks are placed anew.

Nodes lose room as victims return to them. What regions have for parts is counted on these nodes again, and refuses
most returns. After another one only tasks whose node has too little room are moved, each within the region of its
part; where they find no place there, the gang is laid out anew, as by ``topology_packing``. So a return costs what
changes, as in large neighbourhood search (Shaw 1998) with the smallest neighbourhood.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Longs, Rows
from pipeline.kernels import inlined, kernel, linked, writing
from pipeline.placement.layout.placed_before import PlacedBefore
from pipeline.placement.layout.regions_of_parts import may_hold_all, offer_to_parts
from pipeline.placement.layout.room_left import RoomLeft, count_slots, go_on_cards, place, room_left, share
from pipeline.placement.layout.settled_groups import AskedPlaces, no_groups_placed, settled

#: Places were found; none were, though there may be some; there are none.
FOUND, MISSED, THERE_ARE_NONE = range(3)
#: No room of a node: what it has was never counted.
_NEVER = -(1 << 62)


class KeptPlaces(NamedTuple):
    """The places that are kept; columns change in place.

    Attributes
    ----------
    found: int64[1]
        1 while there are places.
    column: int64[L, n]
        The region of each node among those of a level; NONE for a node in none. Does not change.
    have, offered: int64[L, S + 1, Q], int64[L, S + 1, n]
        What regions have for parts, and how much of it is on each node.
    counted: int64[n, R]
        The room of each node when that was counted.
    taken: int64[G, S, n]
        How many tasks of each group and shape go to each node.
    region: int64[G, 2]
        The region of each group: its first node, and the one after its last.
    held, used: int64[n, S], int64[n, R]
        How many tasks of each shape go to each node, and what these take of it.
    before
        What became of groups in regions when they were laid out.
    """

    found: Longs
    column: Longs
    have: Longs
    offered: Longs
    counted: Longs
    taken: Longs
    region: Longs
    held: Longs
    used: Longs
    before: PlacedBefore


@linked
def _columns(asked: AskedPlaces) -> Longs:
    """See ``KeptPlaces.column``."""
    nodes = asked.usable.shape[1]
    column = np.full((len(asked.regions.amount), nodes), NONE, np.int64)
    for level in range(len(column)):
        number, region = 0, asked.regions.region[level, asked.first : asked.first + nodes]
        for n in range(nodes):
            number += int(n > 0 and region[n] != region[n - 1])
            if region[n] != NONE:
                column[level, n] = number
    return column


@kernel
def no_places(asked: AskedPlaces) -> KeptPlaces:
    """No places yet."""
    column, (shapes, resources) = _columns(asked), asked.room.request.shape
    (levels, nodes), groups, rows, widest = column.shape, len(asked.tree.own), asked.regions.amount.shape[1], 1
    for level in range(levels):
        widest = max(widest, column[level].max() + 1)
    return KeptPlaces(
        np.zeros(1, np.int64), column,
        np.zeros((levels, rows, widest), np.int64), np.zeros((levels, rows, nodes), np.int64),
        np.full((nodes, asked.regions.request.shape[1]), _NEVER, np.int64),
        np.zeros((groups, shapes, nodes), np.int64), np.zeros((groups, 2), np.int64),
        np.zeros((nodes, shapes), np.int64), np.zeros((nodes, resources), np.int64),
        no_groups_placed(asked.tree, asked.room),
    )  # fmt: skip


def apart(kept: KeptPlaces) -> KeptPlaces:
    """The same places, to go another way with; what became of groups before holds for both."""
    return kept._replace(
        found=kept.found.copy(), have=kept.have.copy(), offered=kept.offered.copy(), counted=kept.counted.copy(),
        taken=kept.taken.copy(), region=kept.region.copy(), held=kept.held.copy(), used=kept.used.copy(),
    )  # fmt: skip


@writing("kept")
def find_places(asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> bool:
    """Look for places of all tasks in the ``room`` of the nodes; those that are found are kept.

    They are the same whatever was kept before, unless only what was kept is found.

    Parameters
    ----------
    room: int64[n, R]
        Where tasks ask for parts of cards, int64[n, R + 1 + D]: what all cards of a node have follows, then each card.
    """
    count_offers(asked, kept, room)
    if not (may_be_held(asked, kept) and _laid_out(asked, kept, room)) and kept.found[0]:
        kept.found[0] = 1 - _are_short(np.arange(len(room)), asked, kept, room)
    return bool(kept.found[0] == 1)


@linked
def find_places_without(nodes: Rows, asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> int:
    """Look for places of all tasks after some nodes (int64[K]) lost room; those that are found are kept.

    What regions have is counted again; the caller has it counted once more where nodes get their room back.

    Returns
    -------
    FOUND, MISSED, or THERE_ARE_NONE, if not even in less room.
    """
    offer_again(nodes, asked, kept, room)
    if stay(nodes, asked, kept, room):
        return FOUND
    if not may_be_held(asked, kept):
        return THERE_ARE_NONE
    return FOUND if moved_or_anew(nodes, asked, kept, room) else MISSED


@linked
def find_again(nodes: Rows, asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> bool:
    """The same where regions may have enough: whether there are places."""
    return stay(nodes, asked, kept, room) or moved_or_anew(nodes, asked, kept, room)


@linked
def may_have_places(asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> bool:
    """Whether regions have enough for all parts in the ``room`` of the nodes; if not, some part finds none."""
    count_offers(asked, kept, room)
    return bool(may_be_held(asked, kept))


@inlined
def stay(nodes: Rows, asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> bool:
    """Whether the places that are kept are still there after some nodes (int64[K]) lost room."""
    return kept.found[0] == 1 and not _are_short(nodes, asked, kept, room)


# -- what regions have -------------------------------------------------------------------------------------------------


@linked
def count_offers(asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> None:
    """Count what regions have for parts in the room of all nodes."""
    if len(kept.have) > 0:
        offer_again(np.arange(len(room)), asked, kept, room)


@linked
def offer_again(nodes: Rows, asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> bool:
    """Count again what regions have on some nodes (int64[K]) if their room changed; whether any of it is less."""
    less = False
    if len(kept.have) == 0:
        return less
    levels, rows, _ = kept.have.shape
    there, left = np.zeros((levels, rows), np.int64), room[:, : asked.regions.request.shape[1]]  # without cards
    for i in range(len(nodes)):
        n = nodes[i]
        if not _is_new(n, kept, left):
            continue
        offer_to_parts(asked.regions, asked.usable, left, n, there)
        for level in range(levels):
            region = kept.column[level, n]
            for row in range(rows if region != NONE else 0):
                more = there[level, row] - kept.offered[level, row, n]
                less |= more < 0
                kept.have[level, row, region] += more
                kept.offered[level, row, n] += more
    return less


@inlined
def _is_new(n: int, kept: KeptPlaces, left: Longs) -> bool:
    """Whether what a node has was last counted in other room; the caller counts it now."""
    changed, counted = False, kept.counted
    for r in range(counted.shape[1]):
        changed |= counted[n, r] != left[n, r]
    if changed:
        counted[n] = left[n]
    return changed


@inlined
def may_be_held(asked: AskedPlaces, kept: KeptPlaces) -> bool:
    """Whether regions have enough for all parts; if not, some part finds none."""
    return len(kept.have) == 0 or may_hold_all(asked.regions, kept.have)


# -- places ------------------------------------------------------------------------------------------------------------


@inlined
def _is_short(n: int, asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> bool:
    """Whether a node has too little room for the tasks that go there."""
    short, on_cards, resources = False, 0, kept.used.shape[1]
    for r in range(resources):
        short |= kept.used[n, r] > 0 and kept.used[n, r] > room[n, r]
    for kind in asked.room.carded:
        on_cards += kept.held[n, kind]
    if short or on_cards == 0:
        return short
    return not go_on_cards(kept.held[n], asked.room.on_card, asked.room.carded, room[n, resources + 1 :].copy())


@inlined
def _are_short(nodes: Rows, asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> bool:
    short = False
    for n in nodes:
        short |= _is_short(n, asked, kept, room)
    return short


@inlined
def _take(group: int, kind: int, n: int, many: int, asked: AskedPlaces, kept: KeptPlaces) -> None:
    """Let some more tasks of a group and kind go to a node, or fewer."""
    kept.taken[group, kind, n] += many
    kept.held[n, kind] += many
    for r in range(kept.used.shape[1]):
        kept.used[n, r] += many * asked.room.request[kind, r]


@linked
def moved_or_anew(nodes: Rows, asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> bool:
    """Whether all tasks have places once those of some nodes (int64[K]) moved, or all did."""
    return (kept.found[0] == 1 and _put_right(nodes, asked, kept, room)) or _laid_out(asked, kept, room)


@linked
def _put_right(nodes: Rows, asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> bool:
    """Move the tasks of those of some nodes that have too little room; if one finds no place, nothing changes."""
    groups, kinds, _ = kept.taken.shape
    lifted, most = np.zeros((groups, kinds), np.int64), 0
    for n in nodes:
        most += kept.held[n].sum()
    moved, many = np.empty((2 * most, 4), np.int64), 0
    for n in nodes:
        if not _is_short(n, asked, kept, room):
            continue
        for group in range(groups):
            for kind in range(kinds):
                here = kept.taken[group, kind, n]
                if here > 0:
                    _take(group, kind, n, -here, asked, kept)
                    lifted[group, kind] += here
                    moved[many] = group, kind, n, -here
                    many += 1
    for group in range(groups):
        if not lifted[group].any():
            continue
        first, last = kept.region[group]
        placed = np.zeros((kinds, last - first), np.int64)
        if not place(_left_in(first, last, asked, kept, room), lifted[group], 0, last - first, placed):
            for i in range(many):
                _take(moved[i, 0], moved[i, 1], moved[i, 2], -moved[i, 3], asked, kept)
            return False
        for kind in range(kinds):
            for at in np.flatnonzero(placed[kind]):
                _take(group, kind, first + at, placed[kind, at], asked, kept)
                moved[many] = group, kind, first + at, placed[kind, at]
                many += 1
    return True


@linked
def _left_in(first: int, last: int, asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> RoomLeft:
    """What tasks that keep their places leave of the nodes ``first:last``."""
    carded = len(asked.room.carded) > 0
    usable, resources = asked.usable[:, first:last], kept.used.shape[1]
    free, cards = room[first:last, :resources], room[first:last, resources + 1 :]
    left = room_left(asked.room, usable, free, cards, np.arange(len(usable)))
    left.left[:] -= kept.used[first:last]
    for n in range(last - first if carded else 0):
        left.held[n] = kept.held[first + n]
        go_on_cards(left.held[n], left.on_card, left.carded, left.cards_left[n])
    count_slots(left)
    return left


@linked
def _laid_out(asked: AskedPlaces, kept: KeptPlaces, room: Longs) -> bool:
    """Lay out all tasks; without success nothing changes."""
    resources = kept.used.shape[1]
    size = share(asked.room.request, room[:, :resources].copy())
    biggest = np.argsort(-size, kind="mergesort")
    there = room_left(asked.room, asked.usable, room[:, :resources], room[:, resources + 1 :], biggest)
    taken, region = settled(asked.tree, there, asked.trials, kept.before)
    if len(taken) == 0:
        return False
    kept.found[0] = 1
    kept.taken[:], kept.region[:], kept.used[:] = taken, region, room[:, :resources] - there.left
    kept.held[:] = taken.sum(axis=0).T
    return True
