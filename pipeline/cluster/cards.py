"""Cards: named devices of a node; tasks hold parts of them. Room on two cards does not add up to room on one.

What is free is kept card by card (``Snapshot.card_room``); a task that asks for ``amount`` of a card fits a node only
if one of its cards has that much by itself.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.counted.totals import Room
from pipeline.cluster.tables import PENDING, Shapes, Tasks
from pipeline.kernels import shared


def freed_on_cards(tasks: Tasks, shapes: Shapes, rows: Rows, first: int, free: Longs) -> None:
    """Add what tasks ``rows`` int64[V] hold or are promised to ``free`` int64[n, D], of the nodes from ``first`` on."""
    rows = rows[tasks.card[rows] != NONE]
    place = np.where(tasks.status[rows] == PENDING, tasks.nominated[rows], tasks.node[rows]) - first
    here = (place >= 0) & (place < len(free))
    rows = rows[here]
    np.add.at(free, (place[here], tasks.card[rows]), shapes.on_card[tasks.shape[rows]])


def fits_card(amount: int, free: Longs) -> Bools:
    """bool[...]: whether one of the cards ``free`` int64[..., D] has the ``amount``; true if the amount is 0."""
    if amount == 0:
        return np.ones(free.shape[:-1], bool)
    return np.asarray((free >= amount).any(axis=-1))


def slots_on_cards(amount: int, free: Longs) -> Longs:
    """int64[n]: how many tasks that ask for ``amount`` (above 0) of a card the cards ``free`` int64[n, D] take."""
    return np.asarray(np.maximum(free // amount, 0).sum(axis=-1), np.int64)


@shared
def best_card(amount: int, free: Longs | list[int], spread: bool) -> int:
    """Which of one node's cards ``free`` int64[D] takes the task: the fullest that fits, with ``spread`` the emptiest.

    The first of equals; NONE where nothing is asked for, or none fits.
    """
    best = NONE
    for card in range(len(free) if amount > 0 else 0):
        if free[card] >= amount and (best == NONE or (free[card] > free[best] if spread else free[card] < free[best])):
            best = card
    return best


def packed(amounts: Longs, free: Longs, spread: bool) -> Rows | None:
    """A card of one node for each of several tasks, int64[K], or None if none was found.

    The biggest first, each on the card that ``best_card`` says; where spreading them fails they are packed (best-fit
    decreasing, Johnson 1973). A task that asks for 0 gets NONE.
    """
    parts, left = amounts.tolist(), free.tolist()
    result = [NONE] * len(parts)
    for at in sorted(range(len(parts)), key=lambda at: -parts[at]):
        if parts[at] == 0:
            break
        result[at] = card = best_card(parts[at], left, spread)
        if card == NONE:
            return packed(amounts, free, False) if spread else None
        left[card] -= parts[at]
    return np.array(result, np.int64)


def cards_for(tasks: Tasks, shapes: Shapes, room: Room, placed: tuple[Rows, Rows], leaving: Rows, spread: bool) -> Rows:
    """A card for each of the tasks ``placed`` (rows and nodes, int64[K] each) once ``leaving`` have gone: int64[K].

    NONE where no card is asked for, or none was found.
    """
    rows, nodes = placed
    amounts, result = shapes.on_card[tasks.shape[rows]], np.full(len(rows), NONE, np.int64)
    if not amounts.any():
        return result
    for node in np.unique(nodes[amounts > 0]).tolist():
        here = np.flatnonzero((nodes == node) & (amounts > 0))
        free = room.future_of(np.array([node]))
        freed_on_cards(tasks, shapes, leaving, node, free)
        on = packed(amounts[here], free[0], spread)
        if on is not None:
            result[here] = on
    return result
