"""The room left on a slice of nodes while a gang is placed on it, one kind of task after the other.

A kind is a shape; where anti-affinity matters, a shape with a set of labels. All columns are of the nodes of the slice,
and kernels change them in place.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.cluster.cards import best_card
from pipeline.cluster.counted.counting import free
from pipeline.cluster.rules.anti_affinity import Exclusions
from pipeline.kernels import kernel, linked, shared, writing
from pipeline.placement.layout.packing import card_slots, placed_in_slots, slots_at

#: More slots than any node has.
_ANY = (1 << 31) - 1


class RoomLeft(NamedTuple):
    """The room left on a slice of nodes, during one call of ``pack``.

    Attributes
    ----------
    request: int64[M, R]
        By kind of task.
    on_card: int64[M]
        What a task of each kind asks of a card.
    biggest: int64[M]
        The kinds, those of the largest share of the room first.
    carded: int64[C]
        The kinds that ask for parts of cards, the biggest part first.
    conflict: int64[M, M]
        See ``Exclusions``; 0 where kinds do not repel each other.
    domains: int64[keys, n]
        See ``Exclusions``.
    cards: int64[n, D]
        What each card has free before tasks of the gang are placed.
    left: int64[n, R]
    usable: bool[M, n]
        Nodes open to each kind; fewer as tasks that repel it are placed.
    cards_left: int64[n, D]
    held: int64[n, M]
        Tasks of each kind that hold parts of the node's cards.
    slots: int64[M, n]
        How many more tasks of each kind there is room for, whether or not the node is open to it.
    """

    request: Longs
    on_card: Longs
    biggest: Rows
    carded: Rows
    conflict: Longs
    domains: Longs
    cards: Longs
    left: Longs
    usable: Bools
    cards_left: Longs
    held: Longs
    slots: Longs


class AskedOfRoom(NamedTuple):
    """Kinds of tasks before there is room for them, see ``RoomLeft``."""

    request: Longs
    on_card: Longs
    carded: Rows
    conflict: Longs
    domains: Longs


#: Where nothing is placed.
NOTHING_ASKED = AskedOfRoom(
    np.zeros((0, 0), np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 0), np.int64),
    np.zeros((0, 0), np.int64),
)  # fmt: skip


def asked_of_room(request: Longs, on_card: Longs, nodes: int, among: Exclusions | None) -> AskedOfRoom:
    """What tasks of some kinds ask of ``nodes`` nodes.

    Parameters
    ----------
    request, on_card
        See ``RoomLeft``.
    among
        How tasks of the kinds repel each other, on the nodes of the slice; None if they do not.
    """
    kinds, carded, repels = len(request), np.flatnonzero(on_card), among is not None and len(among.keys) > 0
    conflict = among.conflict if among is not None else np.zeros((kinds, kinds), np.int64)
    domains = among.domains if among is not None and repels else np.zeros((0, nodes), np.int64)
    # Memory of one layout and type, so that one compiled specialisation serves all calls.
    return AskedOfRoom(
        np.array(request, np.int64, order="C"), np.array(on_card, np.int64),
        carded[np.argsort(-on_card[carded], kind="stable")], np.array(conflict, np.int64, order="C"),
        np.array(domains, np.int64, order="C"),
    )  # fmt: skip


@shared
def room_left(asked: AskedOfRoom, usable: Bools, left: Longs, cards: Longs, biggest: Rows) -> RoomLeft:
    """The room before any task is placed; its slots are counted by ``count_slots``. For all arguments see ``RoomLeft``.

    A slice without cards has none (D = 0).
    """
    kinds, nodes = usable.shape
    return RoomLeft(
        request=asked.request,
        on_card=asked.on_card,
        biggest=biggest,
        carded=asked.carded,
        conflict=asked.conflict,
        domains=asked.domains,
        cards=cards.copy(),
        left=left.copy(),
        usable=usable.copy(),
        cards_left=cards.copy(),
        held=np.zeros((nodes, kinds), np.int64),
        slots=np.zeros((kinds, nodes), np.int64),
    )


@kernel
def share(request: Longs, left: Longs) -> Floats:
    """float64[M]: the largest share of the room that one task of each kind takes."""
    there, result = free(left), np.zeros(len(request))
    for kind in range(len(request)):
        for r in range(request.shape[1]):
            result[kind] = max(result[kind], request[kind, r] / max(there[r], 1))
    return result


@linked
def count_slots(room: RoomLeft) -> None:
    """Count the slots of all nodes anew."""
    for node in range(len(room.left)):
        count_slots_of(room, node)


@linked
def count_slots_of(room: RoomLeft, node: int) -> None:
    """Count the slots of a node anew."""
    for kind in range(len(room.slots)):
        there, amount = slots_at(room.request, kind, room.left, node, _ANY), room.on_card[kind]
        if amount > 0:
            there = min(there, card_slots(amount, room.cards_left, node, 0))
        room.slots[kind, node] = there


@writing("room")
def put(room: RoomLeft, kind: int, node: int) -> bool:
    """Place one task of a kind on a node if it is open to it and takes it."""
    if not room.usable[kind, node] or room.slots[kind, node] == 0 or not _hold(room, node, kind, 1):
        return False
    for r in range(room.left.shape[1]):
        room.left[node, r] -= room.request[kind, r]
    count_slots_of(room, node)
    for bit in range(len(room.domains)):
        domain = room.domains[bit, node]
        for other in range(len(room.conflict) if domain != NONE else 0):
            if room.conflict[kind, other] >> bit & 1:
                for n in range(room.domains.shape[1]):
                    if room.domains[bit, n] == domain:
                        room.usable[other, n] = False
    return True


@linked
def _hold(room: RoomLeft, node: int, kind: int, many: int) -> bool:
    """Give tasks parts of the node's cards; all its tasks get cards anew. Nothing changes if one finds none."""
    if room.on_card[kind] == 0:
        return True
    left = room.cards[node].copy()
    room.held[node, kind] += many
    if not go_on_cards(room.held[node], room.on_card, room.carded, left):
        room.held[node, kind] -= many
        return False
    room.cards_left[node] = left
    return True


@linked
def go_on_cards(held: Longs, on_card: Longs, carded: Rows, left: Longs) -> bool:
    """Whether tasks find parts of a node's cards, the biggest first: best-fit decreasing, see ``packed_on_cards``.

    Each goes to the fullest card that takes it, which is ``left`` (int64[D]) with less.

    Parameters
    ----------
    held: int64[M]
        How many tasks of each kind.
    on_card, carded
        See ``RoomLeft``.
    """
    for kind in carded:
        for _ in range(held[kind]):
            card = best_card(on_card[kind], left, False)
            if card == NONE:
                return False
            left[card] -= on_card[kind]
    return True


@linked
def place(room: RoomLeft, count: Longs, first: int, last: int, taken: Longs) -> bool:
    """Place ``count`` int64[M] tasks on the nodes ``first:last``; whether all of them found a node.

    Tasks that repel others of the gang go first, then those that ask for parts of cards, then all others together. How
    many of each kind go where is added to ``taken`` int64[M, n].
    """
    rest, repels = count.copy(), np.zeros(len(count), np.bool_)
    for kind in room.biggest:
        repels[kind] = room.conflict[kind].any()
        for _ in range(count[kind] if repels[kind] else 0):
            node = _fullest(room, kind, first, last)
            if node == NONE or not put(room, kind, node):
                return False
            taken[kind, node] += 1
            rest[kind] -= 1
    for kind in room.carded:
        if rest[kind] > 0 and not _place_on_cards(room, kind, rest[kind], first, last, taken):
            return False
        rest[kind] = 0
    if rest.sum() == 0:
        return True
    here, slots = room.usable[:, first:last].copy(), room.slots[:, first:last].copy()
    for kind in range(len(slots)):
        for n in range(last - first):
            slots[kind, n] = min(slots[kind, n], rest[kind]) if here[kind, n] else 0
    placed = placed_in_slots(room.request, rest, here, room.left[first:last], slots)
    if placed.sum() < rest.sum():
        return False
    for n in range(last - first):
        some = 0
        for kind in range(len(placed)):
            if placed[kind, n] > 0:
                take_room(room, kind, first + n, placed[kind, n], taken)
                some += placed[kind, n]
        if some > 0:
            count_slots_of(room, first + n)
    return True


@linked
def take_room(room: RoomLeft, kind: int, node: int, many: int, taken: Longs) -> None:
    """Take the room for some tasks of a kind from a node."""
    taken[kind, node] += many
    for r in range(room.left.shape[1]):
        room.left[node, r] -= many * room.request[kind, r]


@linked
def _fullest(room: RoomLeft, kind: int, first: int, last: int) -> int:
    """The node of ``first:last`` with the fewest slots for a kind that it is open to; NONE without one."""
    best = NONE
    for n in range(first, last):
        there = room.slots[kind, n] if room.usable[kind, n] else 0
        if there > 0 and (best == NONE or there < room.slots[kind, best]):
            best = n
    return best


@linked
def _place_on_cards(room: RoomLeft, kind: int, count: int, first: int, last: int, taken: Longs) -> bool:
    """Place tasks of one kind, fullest nodes first; whether all of them found a card."""
    there = room.slots[kind, first:last] * room.usable[kind, first:last]
    for n in np.argsort(there, kind="mergesort"):
        many = min(there[n], count)
        if many > 0:
            take_room(room, kind, first + n, many, taken)
            if not _hold(room, first + n, kind, many):
                return False
            count_slots_of(room, first + n)
            count -= many
    return count == 0
