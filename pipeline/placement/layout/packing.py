"""Whether and where a gang fits: placement by classes of interchangeable tasks.

Tasks of one shape are interchangeable, so only how many of each shape a node takes matters: the cost is O(S * n) for S
shapes and n nodes, whatever the size of the gang. One shape is placed exactly: it fits if and only if the slots add up.
For several shapes bin packing is hard; three orders are tried, each best fit: the biggest shape first (best-fit
decreasing, Johnson 1973), then the shape with the fewest slots for each task, then the one that the fewest nodes are
open to. They may miss a plan, but never make a wrong one.
"""

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Longs, Rows
from pipeline.kernels import inlined, kernel, linked

#: Nodes with at least this many slots for a shape count as equally empty.
_BUCKETS = 256
#: Up to this many slots more or fewer are counted one by one.
_STEPS = 4


@inlined
def _times(there: int, asked: int) -> int:
    """How often ``asked`` (above 0) is there.

    The float quotient is off by one at most (for quotients below 2**51) and is corrected; it is four times as fast as
    Python's integer division.
    """
    if there < asked:
        return 0
    quotient = int(there / asked)
    rest = there - quotient * asked
    if rest < 0:
        quotient -= 1
    elif rest >= asked:
        quotient += 1
    return quotient


@inlined
def card_slots(part: int, cards: Longs, node: int, first: int) -> int:
    """How many tasks that ask for ``part`` (above 0) of a card the node's cards take, columns from ``first`` on."""
    slots = 0
    for card in range(first, cards.shape[1]):
        slots += _times(cards[node, card], part)
    return slots


@inlined
def most_on_cards(request: Longs, shape: int, room: Longs, node: int, most: int) -> int:
    """How many tasks of ``shape`` the cards of a node take, at most ``most``.

    Columns of the room beyond those of the request are cards: what is asked last is asked of any one of them. Where
    there are none, nothing is asked of single cards.
    """
    asked = request.shape[1]
    if room.shape[1] == asked or request[shape, asked - 1] == 0:
        return most
    return min(card_slots(request[shape, asked - 1], room, node, asked), most)


@inlined
def _slots_by_resources(request: Longs, shape: int, room: Longs, node: int, most: int) -> int:
    count = most
    for r in range(request.shape[1] - 1, -1, -1):  # devices are last on the axis and run out first
        asked = request[shape, r]
        if asked > 0:
            there = room[node, r]
            if there < asked:
                return 0
            count = min(count, _times(there, asked))
    return count


@inlined
def slots_at(request: Longs, shape: int, room: Longs, node: int, most: int) -> int:
    """How many tasks of ``shape`` the node takes, at most ``most``."""
    return _slots_by_resources(request, shape, room, node, most_on_cards(request, shape, room, node, most))


@inlined
def slots_more(request: Longs, shape: int, room: Longs, node: int, most: int, now: int) -> int:
    """``slots_at`` after room was added to a node with ``now`` slots; mostly none or one more, so no division."""
    most = most_on_cards(request, shape, room, node, most)
    for count in range(now, min(now + _STEPS, most)):
        for r in range(request.shape[1] - 1, -1, -1):
            asked = request[shape, r]
            if asked > 0 and room[node, r] < (count + 1) * asked:
                return count
    return _slots_by_resources(request, shape, room, node, most)


@inlined
def slots_less(request: Longs, shape: int, room: Longs, node: int, most: int, now: int) -> int:
    """``slots_at`` after room was taken from a node with ``now`` slots."""
    most = most_on_cards(request, shape, room, node, most)
    now = min(now, most)
    for count in range(now, max(now - _STEPS, 0), -1):
        fits = True
        for r in range(request.shape[1] - 1, -1, -1):
            fits &= room[node, r] >= count * request[shape, r] or request[shape, r] == 0
        if fits:
            return count
    return _slots_by_resources(request, shape, room, node, most)


@linked
def _sorted(wanted: Rows, key: Floats) -> Rows:
    """``wanted`` by ascending key, ties by row; a handful of shapes, so insertion sort."""
    result = wanted.copy()
    for i in range(len(wanted)):
        shape, at = wanted[i], i
        while at > 0 and key[result[at - 1]] > key[shape]:
            result[at] = result[at - 1]
            at -= 1
        result[at] = shape
    return result


@linked
def _biggest_first(request: Longs, wanted: Rows, room: Longs) -> Rows:
    """Shapes by their largest share of any resource of the room."""
    total = np.zeros(request.shape[1], np.float64)
    for n in range(len(room)):
        for r in range(request.shape[1]):
            total[r] += max(room[n, r], 0)
    key = np.zeros(len(request), np.float64)
    for s in wanted:
        for r in range(request.shape[1]):
            key[s] = min(key[s], -request[s, r] / max(total[r], 1.0))
    return _sorted(wanted, key)


@linked
def _scarcest_first(count: Longs, wanted: Rows, slots: Longs) -> Rows:
    """Shapes by slots for each task as if alone; empty if one of them does not even fit alone."""
    key = np.zeros(len(count), np.float64)
    for s in wanted:
        total = slots[s].sum()
        if total < count[s]:
            return np.empty(0, np.int64)
        key[s] = total / count[s]
    return _sorted(wanted, key)


@linked
def _least_open_first(wanted: Rows, allowed: Bools, nodes: int) -> Rows:
    """Shapes by how many of the first ``nodes`` nodes are open to them; empty if as many are open to each."""
    key, differ = np.zeros(len(allowed), np.float64), False
    for s in wanted:
        for n in range(nodes):
            if allowed[s, n]:
                key[s] += 1.0
        differ |= key[s] != key[wanted[0]]
    return _sorted(wanted, key) if differ else np.empty(0, np.int64)


@kernel
def node_slots(request: Longs, count: Longs, allowed: Bools, first: int, room: Longs) -> tuple[Longs, Longs]:
    """Slots of each shape per node, at most ``count``, int64[S, n]; and in all, int64[S].

    ``allowed`` bool[S, N] are the nodes open to each shape; those of ``room`` int64[n, R] are the ones from ``first``
    on.
    """
    slots, total = np.zeros((len(count), len(room)), np.int64), np.zeros(len(count), np.int64)
    for s in range(len(count)):
        for n in range(len(room)):
            if allowed[s, first + n]:
                slots[s, n] = slots_at(request, s, room, n, count[s])
                total[s] += slots[s, n]
    return slots, total


@linked
def sum_slots(request: Longs, shape: int, wanted: int, allowed: Bools, room: Longs) -> int:
    """Slots for the shape alone, at most ``wanted``."""
    total = 0
    for n in range(len(room)):
        if total >= wanted:
            return wanted
        if allowed[shape, n]:
            total += slots_at(request, shape, room, n, wanted - total)
    return total


@linked
def _place_shape(shape: int, wanted: int, slots: Longs, taken: Longs) -> None:
    """Place up to ``wanted`` tasks of one shape in its ``slots`` int64[n], fullest nodes first."""
    nodes = len(slots)
    buckets = min(wanted, _BUCKETS)
    first = np.zeros(buckets + 2, np.int64)
    for n in range(nodes):
        first[min(slots[n], buckets) + 1] += 1
    useless = first[1]
    for b in range(buckets + 1):
        first[b + 1] += first[b]
    order = np.empty(nodes, np.int64)
    for n in range(nodes):
        b = min(slots[n], buckets)
        order[first[b]] = n
        first[b] += 1
    placed = 0
    for i in range(useless, nodes):
        if placed == wanted:
            break
        here = min(slots[order[i]], wanted - placed)
        taken[shape, order[i]] += here
        placed += here


@linked
def _place_in_order(order: Rows, request: Longs, count: Longs, room: Longs, slots: Longs) -> Longs:
    """Place one shape after the other. Only nodes that one takes have other slots for the next."""
    left, there = room.copy(), slots.copy()
    taken = np.zeros((len(request), len(room)), np.int64)
    for at in range(len(order)):
        shape = order[at]
        _place_shape(shape, count[shape], there[shape], taken)
        for n in range(len(room) if at + 1 < len(order) else 0):
            if taken[shape, n] > 0:
                for r in range(request.shape[1]):
                    left[n, r] -= taken[shape, n] * request[shape, r]
                for s in order[at + 1 :]:
                    if there[s, n] > 0:
                        there[s, n] = slots_less(request, s, left, n, count[s], there[s, n])
    return taken


@kernel
def placed_classes(request: Longs, count: Longs, allowed: Bools, room: Longs) -> Longs:
    """As ``place_classes``, for kernels: shapes are not checked."""
    return placed_in_slots(request, count, allowed, room, node_slots(request, count, allowed, 0, room)[0])


@linked
def placed_in_slots(request: Longs, count: Longs, allowed: Bools, room: Longs, slots: Longs) -> Longs:
    """The same where the slots of each shape are known, int64[S, n]: see ``node_slots``."""
    wanted = np.flatnonzero(count > 0)
    taken = _place_in_order(_biggest_first(request, wanted, room), request, count, room, slots)
    if len(wanted) == 1 or taken.sum() == count[wanted].sum():
        return taken
    other = _scarcest_first(count, wanted, slots)
    if len(other) == 0:
        return taken
    for _ in range(2):
        again = _place_in_order(other, request, count, room, slots)
        if again.sum() > taken.sum():
            taken = again
        if taken.sum() == count[wanted].sum():
            break
        other = _least_open_first(wanted, allowed, len(room))
        if len(other) == 0:
            break
    return taken


def _checked(request: Longs, count: Longs, allowed: Bools, room: Longs) -> tuple[Longs, Longs, Bools, Longs]:
    """Refuse columns that do not go together: kernels do not check their bounds."""
    shapes, nodes = allowed.shape
    if request.shape != (shapes, room.shape[1]) or count.shape != (shapes,) or len(room) != nodes:
        found = f"request {request.shape}, count {count.shape}, allowed {allowed.shape}, room {room.shape}"
        raise ValueError(f"expected request [S, R], count [S], allowed [S, n], room [n, R]; found {found}")
    # Memory of one layout, so that one compiled specialisation serves all calls.
    return np.ascontiguousarray(request), count, np.ascontiguousarray(allowed), np.ascontiguousarray(room)


def place_classes(request: Longs, count: Longs, allowed: Bools, room: Longs) -> Longs:
    """How many tasks of each shape go to each node: fullest nodes first, node rows break ties.

    Parameters
    ----------
    request: int64[S, R]
        What a task of each shape asks for.
    count: int64[S]
        How many tasks of each shape; 0 for none.
    allowed: bool[S, n]
        Nodes that a shape may use.
    room: int64[n, R]
        Negative where more was promised than is there.

    Returns
    -------
    int64[S, n]; as many tasks as could be placed.
    """
    request, count, allowed, room = _checked(request, count, allowed, room)
    return placed_classes(request, count, allowed, room)
