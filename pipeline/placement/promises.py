"""Whether promises can be kept: the tasks would be promised the same nodes again on the present state."""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Ids, Longs, Rows, distinct
from pipeline.cluster.rules.minimum import whole_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import TERMINATING
from pipeline.kernels import kernel
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
    queue, request = snapshot.queue_of(rows), snapshot.request_of(rows)
    result = np.ones(len(rows), bool)
    for owner in distinct(queue).tolist():
        mine = np.flatnonzero(queue == owner)
        total = np.cumsum(request[mine], axis=0)
        result[mine] = ((total <= headroom[owner]) | (request[mine] == 0)).all(axis=1)
    return result


def fitting(snapshot: Snapshot, rows: Rows, node: Rows, card: Rows, room: Longs, on_cards: Longs) -> Bools:
    """bool[K]: which tasks fit the ``room`` of their nodes and cards, each beside those before it.

    A task that does not fit leaves its room to later ones.
    """
    shapes, order = snapshot.shapes, node.argsort(kind="stable")
    columns = node[order], card[order], snapshot.tasks.shape[rows[order]]
    result = np.empty(len(rows), bool)
    result[order] = _fitting(*columns, shapes.request, shapes.on_card, room, on_cards)
    return result


@kernel
def _fitting(node: Rows, card: Rows, shape: Ids, request: Longs, on_card: Longs, room: Longs, on_cards: Longs) -> Bools:
    """The same of tasks node by node."""
    result, left, left_on = np.empty(len(node), np.bool_), room[:0].copy().ravel(), on_cards[:0].copy().ravel()
    for task in range(len(node)):
        if task == 0 or node[task] != node[task - 1]:
            left, left_on = room[node[task]].copy(), on_cards[node[task]].copy()
        on, amount = card[task], on_card[shape[task]]
        has = amount == 0 or (on != NONE and left_on[on] >= amount)
        for r in range(len(left)):
            asked = request[shape[task], r]
            has &= asked <= 0 or asked <= left[r]
        result[task] = has
        if has:
            for r in range(len(left)):
                left[r] -= request[shape[task], r]
            if amount != 0:
                left_on[on] -= amount
    return result


def moving_alone(snapshot: Snapshot, lost: Rows) -> Rows:
    """int64[K]: tasks that are to start elsewhere again, and whose podgroup breaks once ``lost`` have gone."""
    losing = snapshot.tasks.podgroup[lost]
    promised = losing[snapshot.counts.waiting[losing] > 0]
    if len(promised) == 0:  # as it mostly is
        return NO_ROWS
    owner = distinct(promised).astype(np.int64)
    rows = snapshot.tasks_of_all(owner[~whole_without(snapshot, owner, lost)])[0]
    moves = (snapshot.tasks.status[rows] == TERMINATING) & (snapshot.tasks.nominated[rows] != NONE)
    return np.asarray(rows[moves])
