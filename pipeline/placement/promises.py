"""Whether promises can be kept: the tasks would be promised the same nodes again on the present state."""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Longs, Rows, distinct
from pipeline.cluster.resources import fits
from pipeline.cluster.rules.minimum import whole_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import TERMINATING
from pipeline.placement.filters import misplaced
from pipeline.plugins.host import Host


def kept(host: Host, rows: Rows, node: Rows, card: Rows) -> Bools:
    """bool[K]: which of the pending tasks ``rows`` may have their given nodes and cards, in order.

    Parameters
    ----------
    host
        The plugins on a snapshot in which none of them is promised anything.
    """
    snapshot = host.context.snapshot
    room = fitting(snapshot, rows, node, card, snapshot.room.future, snapshot.card_room.future)
    within = within_headroom(snapshot, rows, host.headroom)
    lasting = np.flatnonzero(~snapshot.podgroups.preemptible[snapshot.tasks.podgroup[rows]])
    if len(lasting):
        within[lasting] &= within_headroom(snapshot, rows[lasting], host.lasting_headroom)
    return room & within & ~misplaced(host, rows, node, rows)


def within_headroom(snapshot: Snapshot, rows: Rows, headroom: Longs) -> Bools:
    """bool[K]: tasks that their queues may take, in order, each after those before it."""
    queue, request = snapshot.queue_of(rows), snapshot.shapes.request[snapshot.tasks.shape[rows]]
    result = np.ones(len(rows), bool)
    for owner in distinct(queue).tolist():
        mine = np.flatnonzero(queue == owner)
        total = np.cumsum(request[mine], axis=0)
        result[mine] = ((total <= headroom[owner]) | (request[mine] == 0)).all(axis=1)
    return result


def fitting(snapshot: Snapshot, rows: Rows, node: Rows, card: Rows, room: Longs, on_cards: Longs) -> Bools:
    """bool[K]: which tasks fit the ``room`` of their nodes and cards, each beside those before it."""
    shapes, shape = snapshot.shapes, snapshot.tasks.shape[rows]
    left, left_on = room.copy(), on_cards.copy()
    snapshot.add_requests(rows, left, node, -1)
    carded = np.flatnonzero(shapes.on_card[shape] > 0)
    if (card[carded] == NONE).any():
        return _one_by_one(snapshot, rows, node, card, room, on_cards)
    np.subtract.at(left_on, (node[carded], card[carded]), shapes.on_card[shape[carded]])
    asked = shapes.request[shape] > 0
    if ((left[node] >= 0) | ~asked).all() and (left_on[node[carded], card[carded]] >= 0).all():
        return np.ones(len(rows), bool)
    return _one_by_one(snapshot, rows, node, card, room, on_cards)


def _one_by_one(snapshot: Snapshot, rows: Rows, node: Rows, card: Rows, room: Longs, on_cards: Longs) -> Bools:
    """The same where not all of them fit together: a task that does not fit leaves its room to later ones."""
    left, left_on = room.copy(), on_cards.copy()
    result = np.zeros(len(rows), bool)
    for position, row in enumerate(rows.tolist()):
        shape, at, on = snapshot.tasks.shape[row], node[position], card[position]
        request, amount = snapshot.shapes.request[shape], snapshot.shapes.on_card[shape]
        has = amount == 0 or (on != NONE and left_on[at, on] >= amount)
        if has and fits(request, left[at]):
            left[at] -= request
            if amount:
                left_on[at, on] -= amount
            result[position] = True
    return result


def moving_alone(snapshot: Snapshot, lost: Rows) -> Rows:
    """int64[K]: tasks that are to start elsewhere again, and whose podgroup breaks once ``lost`` have gone."""
    owner = distinct(snapshot.tasks.podgroup[lost]).astype(np.int64)
    owner = owner[snapshot.counts.waiting[owner] > 0]
    if len(owner) == 0:  # as it mostly is
        return NO_ROWS
    rows = snapshot.tasks_of_all(owner[~whole_without(snapshot, owner, lost)])[0]
    moves = (snapshot.tasks.status[rows] == TERMINATING) & (snapshot.tasks.nominated[rows] != NONE)
    return np.asarray(rows[moves])
