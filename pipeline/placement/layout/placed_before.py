"""What became of groups in regions that had the same room before, so that it is not worked out again.

Layouts that are tried one after the other differ little: few nodes have other room, and the orders in which groups are
tried begin alike. So a group mostly meets a region just as one like it met it before, and the same becomes of it.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Longs
from pipeline.kernels import inlined, kernel, linked
from pipeline.placement.layout.room_left import AskedOfRoom, RoomLeft, count_slots_of, go_on_cards, place, take_room

#: At most this many rows, and numbers in all of them.
_ROWS, _NUMBERS = 1 << 10, 1 << 20
#: Nodes with more cards are not compared.
_CARDS = 16
#: A sequence of 31 bits, see ``_row_of``.
_TIMES, _BITS = 1103515245, (1 << 31) - 1


class PlacedBefore(NamedTuple):
    """One group in one region in each row; columns change in place, and a new row takes the place of an old one.

    Attributes
    ----------
    asked: int64[E, M + 2]
        The group's tasks of each kind, and the region: its first node, and the one after its last; 0: nothing is known.
    there: int64[E, w, K]
        What the nodes of the region had left. Where tasks ask for parts of cards, then each card before any task of the
        gang was placed, and how many tasks of each kind held parts of them.
    fits: bool[E]
        Whether all tasks of the group found a node.
    taken: int64[E, M, w]
        Where: how many of each kind went to each node.
    """

    asked: Longs
    there: Longs
    fits: Bools
    taken: Longs


@kernel
def nothing_placed(region: Longs, asked: AskedOfRoom) -> PlacedBefore:
    """Nothing is known yet of groups in some regions, int64[P, 2]: the first node of each, and the one after its last.

    Wide regions have fewer rows.
    """
    (kinds, columns), widest = asked.request.shape, 0
    columns += kinds + _CARDS if len(asked.carded) > 0 else 0
    for first, last in region:
        widest = max(widest, last - first)
    rows = min(_ROWS, _NUMBERS // max(widest * (columns + kinds), 1)) if widest > 0 else 0
    return PlacedBefore(
        np.zeros((rows, kinds + 2), np.int64), np.empty((rows, widest, columns), np.int64),
        np.zeros(rows, np.bool_), np.empty((rows, kinds, widest), np.int64),
    )  # fmt: skip


@linked
def place_as_before(room: RoomLeft, count: Longs, first: int, last: int, taken: Longs, before: PlacedBefore) -> bool:
    """Place as ``place`` does; what is known already is not worked out. ``taken`` has nothing in the region."""
    if not _may_know(room, first, last, before):
        return place(room, count, first, last, taken)
    at = _row_of(room, count, first, last, before)
    if not _is_known(at, room, count, first, last, before):
        _note(at, room, count, first, last, before)
        before.fits[at] = place(room, count, first, last, taken)
        before.taken[at, :, : last - first] = taken[:, first:last]
    elif before.fits[at]:
        _put_again(at, room, first, last, taken, before)
    return bool(before.fits[at])


@inlined
def _may_know(room: RoomLeft, first: int, last: int, before: PlacedBefore) -> bool:
    """Whether what happens in a region follows from columns that are compared."""
    cards = room.cards.shape[1] if len(room.carded) > 0 else 0
    return len(before.fits) > 0 and last - first <= before.there.shape[1] and len(room.domains) == 0 and cards <= _CARDS


@inlined
def _row_of(room: RoomLeft, count: Longs, first: int, last: int, before: PlacedBefore) -> int:
    """The row in which such a group in such room is noted, if it is."""
    row = first
    for many in count:
        row = (row * _TIMES + many) & _BITS
    for n in range(first, last):
        for r in range(room.left.shape[1]):
            amount = room.left[n, r]
            row = (row * _TIMES + ((amount ^ (amount >> 31)) & _BITS)) & _BITS
    return int(row % len(before.fits))


@inlined
def _is_known(at: int, room: RoomLeft, count: Longs, first: int, last: int, before: PlacedBefore) -> bool:
    """Whether a row is about such a group in such room."""
    asked, there, resources, kinds = before.asked, before.there, room.left.shape[1], len(count)
    if asked[at, kinds] != first or asked[at, kinds + 1] != last:
        return False
    same = True
    for kind in range(kinds):
        same &= asked[at, kind] == count[kind]
    for n in range(last - first if same else 0):
        for r in range(resources):
            same &= there[at, n, r] == room.left[first + n, r]
    for n in range(last - first if same and len(room.carded) > 0 else 0):
        for kind in range(kinds):
            same &= there[at, n, resources + kind] == room.held[first + n, kind]
        for card in range(room.cards.shape[1]):
            same &= there[at, n, resources + kinds + card] == room.cards[first + n, card]
    return same


@inlined
def _note(at: int, room: RoomLeft, count: Longs, first: int, last: int, before: PlacedBefore) -> None:
    """Let a row be about a group in room that is not used yet."""
    there, resources, kinds, cards = before.there, room.left.shape[1], len(count), room.cards.shape[1]
    before.asked[at, :kinds] = count
    before.asked[at, kinds], before.asked[at, kinds + 1] = first, last
    there[at, : last - first, :resources] = room.left[first:last]
    if len(room.carded) > 0:
        there[at, : last - first, resources : resources + kinds] = room.held[first:last]
        there[at, : last - first, resources + kinds : resources + kinds + cards] = room.cards[first:last]


@linked
def _put_again(at: int, room: RoomLeft, first: int, last: int, taken: Longs, before: PlacedBefore) -> None:
    """Place the tasks of a group where they went before."""
    for n in range(first, last):
        some, on_cards = 0, 0
        for kind in range(len(taken)):
            many = before.taken[at, kind, n - first]
            if many > 0:
                take_room(room, kind, n, many, taken)
                some += many
                if room.on_card[kind] > 0:
                    room.held[n, kind] += many
                    on_cards += many
        if on_cards > 0:
            room.cards_left[n] = room.cards[n]
            go_on_cards(room.held[n], room.on_card, room.carded, room.cards_left[n])
        if some > 0:
            count_slots_of(room, n)
