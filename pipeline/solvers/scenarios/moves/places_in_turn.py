"""Places for victims in their turns: those that still fit stay, the others go where they push the fewest out."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.cards import best_card
from pipeline.kernels import linked, writing
from pipeline.solvers.scenarios.moves.rough_kinds import MoverKinds, RoughKinds


@writing("left")
def places_in_turn(
    turn: Longs, here: Longs, kind: Rows, kinds: MoverKinds, rough: RoughKinds, spreads: bool, left: Longs, start: int,
    stop: int,
) -> Longs:  # fmt: skip
    """int64[2, M]: nodes and cards for tasks that are ``here`` (int64[2, M]), in turns (``turn`` int64[M], ascending).

    Of one turn first those stay that still fit. Each of the others gets a node that takes it after those before it:
    the fullest where those that follow could all stay; if there is none, that which lacks the least room for it then.
    Room only gets less: a node that takes no task of a rough kind is not asked about that kind again.
    """
    request, on_card, resources, following = kinds.request, kinds.on_card, kinds.request.shape[1], 0
    result, many = np.full((2, len(kind)), NONE, np.int64), np.full(len(rough.alone), NONE, np.int64)
    open_to, own = np.empty((len(rough.alone), stop - start), np.int64), np.empty(stop - start, np.int64)
    spare = left.copy()
    for task in range(len(kind)):
        _add(here[0, task], -request[kind[task]], spare)
    for task in range(len(kind)):
        while following < len(kind) and turn[following] == turn[task]:
            one = kind[following]
            allowed = kinds.allowed[kinds.access[one]]
            if _stays(here[:, following], request[one], on_card[one], allowed, left, start, stop):
                result[:, following] = here[:, following]
            following += 1
        mine, asks, part = rough.of[kind[task]], request[kind[task]], on_card[kind[task]]
        if result[0, task] != NONE:
            continue
        _add(here[0, task], asks, spare)
        nodes = _open_to(rough.kinds, mine, left, start, open_to, many)
        if not rough.alone[mine]:
            allowed = kinds.allowed[kinds.access[kind[task]]]
            nodes = own[: _that_take(asks, part, allowed, left, nodes, own)]
        best = _emptied_least(asks, spare, nodes)
        if best != NONE:
            card = best_card(part, left[best, resources:], spreads)
            result[0, task], result[1, task] = best, card
            _add(best, -asks, left)
            _add(best, -asks, spare)
            if card != NONE:
                left[best, resources + card] -= part
    return result


@linked
def _add(node: int, request: Longs, room: Longs) -> None:
    """Add to the room of a node, unless it is NONE."""
    if node != NONE:
        room[node, : len(request)] += request


@linked
def _stays(here: Longs, asks: Longs, part: int, allowed: Bools, left: Longs, start: int, stop: int) -> bool:
    """Whether a task still fits ``here`` (its node and card), in the slice; then ``left`` is reduced."""
    node, card, resources = here[0], here[1], len(asks)
    if not (start <= node < stop and allowed[node] and fits_in(asks, left[node])):
        return False
    if part > 0 and (card == NONE or left[node, resources + card] < part):
        return False
    _add(node, -asks, left)
    if part > 0:
        left[node, resources + card] -= part
    return True


@linked
def _open_to(kinds: MoverKinds, mine: int, left: Longs, start: int, open_to: Longs, many: Longs) -> Rows:
    """The nodes that still take a task of a kind: the first ``many`` of its row in ``open_to``; NONE: not asked yet.

    Memory of a row is taken when it is written first: none where no task of a kind looks for a node.
    """
    if many[mine] == NONE:
        many[mine] = open_to.shape[1]
        open_to[mine] = np.arange(start, start + open_to.shape[1])
    nodes, allowed = open_to[mine, : many[mine]], kinds.allowed[kinds.access[mine]]
    many[mine] = _that_take(kinds.request[mine], kinds.on_card[mine], allowed, left, nodes, nodes)
    return nodes[: many[mine]]


@linked
def _that_take(asks: Longs, part: int, allowed: Bools, left: Longs, nodes: Rows, into: Rows) -> int:
    """How many of the nodes take a task; these are put in front ``into``, which may be the nodes themselves."""
    kept = 0
    for n in nodes:
        if allowed[n] and fits_in(asks, left[n]) and (part == 0 or best_card(part, left[n, len(asks) :], True) != NONE):
            into[kept] = n
            kept += 1
    return kept


@linked
def _emptied_least(asks: Longs, spare: Longs, nodes: Rows) -> int:
    """The fullest of the nodes with room for a task, or that which lacks the least of it; the first of equals."""
    best, fullest, lacked = NONE, np.inf, True
    for n in nodes:
        share = np.inf
        for r in range(len(asks)):
            if asks[r] > 0:
                share = min(share, spare[n, r] / asks[r])
        lacks = share < 1.0
        share = -share if lacks else share
        if share < np.inf and ((lacked and not lacks) or (lacked == lacks and share < fullest)):
            best, fullest, lacked = n, share, lacks
    return best


@linked
def fits_in(asks: Longs, there: Longs) -> bool:
    """Whether there is room for one task; what it does not ask for may be overdrawn."""
    enough = True
    for r in range(len(asks)):
        enough &= asks[r] <= there[r] or asks[r] <= 0
    return enough
