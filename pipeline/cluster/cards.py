"""Cards: named devices of a node; tasks hold parts of them. Room on two cards does not add up to room on one.

What is free is kept card by card (``Snapshot.card_room``); a task that asks for ``amount`` of a card fits a node only
if one of its cards has that much by itself.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Ids, Longs, Rows, any_true, distinct, is_among
from pipeline.cluster.counted.totals import Room
from pipeline.cluster.resources import slots
from pipeline.cluster.tables import PENDING, Nodes, Shapes, Tasks
from pipeline.kernels import shared


def _freed(tasks: Tasks, shapes: Shapes, rows: Rows) -> tuple[Rows, Ids, Longs]:
    """What tasks ``rows`` int64[V] hold of cards, or else are promised: nodes, cards and amounts, of those that do."""
    waits = tasks.status[rows] == PENDING
    place = np.where(waits, tasks.nominated[rows], tasks.node[rows])
    card = np.where(waits, tasks.nominated_card[rows], tasks.card[rows])
    has = card != NONE
    return place[has], card[has], shapes.on_card[tasks.shape[rows[has]]]


def freed_on_cards(tasks: Tasks, shapes: Shapes, rows: Rows, first: int, free: Longs) -> None:
    """Add what tasks ``rows`` int64[V] hold or are promised to ``free`` int64[n, D], of the nodes from ``first`` on."""
    place, card, amount = _freed(tasks, shapes, rows)
    here = (place >= first) & (place < first + len(free))
    np.add.at(free, (place[here] - first, card[here]), amount[here])


def fits_card(amount: int, free: Longs) -> Bools:
    """bool[...]: whether one of the cards ``free`` int64[..., D] has the ``amount``, which is not 0."""
    return np.asarray((free >= amount).any(axis=-1))


def card_sizes(nodes: Nodes) -> Longs:
    """The different sizes of cards, ascending: amounts between two of them fit the same empty cards."""
    return distinct(nodes.cards.reshape(-1))


def slots_on_cards(amount: int, free: Longs) -> Longs:
    """int64[n]: how many tasks that ask for ``amount`` (above 0) of a card the cards ``free`` int64[n, D] take."""
    return np.asarray(np.maximum(free // amount, 0).sum(axis=-1), np.int64)


def slots_with_cards(request: Longs, amount: int, room: Longs, cards: Longs) -> Longs:
    """int64[n]: how many tasks that ask for a request (int64[R]) and for ``amount`` of a card nodes take.

    ``room`` int64[n, R] and ``cards`` int64[n, D] are what the nodes have; the amount is 0 for no card.
    """
    there = slots(request, room)
    return np.minimum(there, slots_on_cards(amount, cards)) if amount else there


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


def packed_on_cards(amounts: Longs, at: Rows, free: Longs, spread: bool) -> Rows:
    """A card for each of several tasks of some nodes, int64[K]; NONE for all of a node where none was found for one.

    The biggest first, each on the card that ``best_card`` says; where spreading them fails they are packed (best-fit
    decreasing, Johnson 1973). A task that asks for 0 gets NONE.

    Parameters
    ----------
    amounts, at: int64[K]
        What each task asks for, and the row of its node in ``free``.
    free: int64[n, D]
        Of the cards of these nodes.
    """
    result, left = np.full(len(amounts), NONE, np.int64), free.copy()
    order = np.lexsort((-amounts, at))
    order = order[amounts[order] > 0]
    rank = np.arange(len(order)) - np.searchsorted(at[order], at[order])
    turns = int(rank.max(initial=NONE)) + 1 if free.shape[1] else 0
    for turn in range(turns):  # one task of each node at once
        some = order[rank == turn]
        node, asked = at[some], amounts[some]
        there = left[node]
        fits = there >= asked[:, None]
        card = np.where(fits, -there if spread else there, UNLIMITED).argmin(axis=1)
        some, node, card = (one[fits.any(axis=1)] for one in (some, node, card))
        result[some] = card
        left[node, card] -= amounts[some]
    failed = is_among(at, at[(result == NONE) & (amounts > 0)])
    result[failed] = packed_on_cards(amounts[failed], at[failed], free, False) if spread and failed.any() else NONE
    return result


def cards_for(tasks: Tasks, shapes: Shapes, room: Room, placed: tuple[Rows, Rows], leaving: Rows, spread: bool) -> Rows:
    """A card for each of the tasks ``placed`` (rows and nodes, int64[K] each) once ``leaving`` have gone: int64[K].

    NONE where no card is asked for, or none was found.
    """
    rows, nodes = placed
    amounts = shapes.on_card[tasks.shape[rows]]
    if not any_true(amounts > 0):
        return np.full(len(rows), NONE, np.int64)
    here = distinct(nodes)
    free, (place, card, amount) = room.future_of(here), _freed(tasks, shapes, leaving)
    some = is_among(place, here)
    np.add.at(free, (here.searchsorted(place[some]), card[some]), amount[some])
    return packed_on_cards(amounts, here.searchsorted(nodes), free, spread)
