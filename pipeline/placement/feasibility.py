"""The independent check: does a statement make the room that it promises? Plain NumPy, no kernel.

A card counts as a resource of its node here: columns for the cards follow those of the resources.

Every plan passes it before it leaves ``propose`` and again when it is judged. A wrong kernel may cost a plan, never a
wrong eviction.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows, distinct, is_among
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, TERMINATING
from pipeline.decision.statement import Statement
from pipeline.placement.filters import repelled


class Leftover(NamedTuple):
    """The nodes on which a statement places tasks, and what it leaves there; resources, then cards.

    Attributes
    ----------
    node: int64[M]
        Node rows, ascending.
    bound, placed: int64[M, R + D]
        What bound tasks ask for, and what all placed ones do.
    room: int64[M, R + D]
        Future room once the victims have gone and all placed tasks have started.
    """

    node: Rows
    bound: Longs
    placed: Longs
    room: Longs


def feasible(snapshot: Snapshot, made: Statement) -> bool:
    """Whether victims run, tasks wait or move, and no touched node is promised more than it will have.

    Bound tasks must fit the idle room; bound and nominated tasks together must fit the future room. A task that asks
    for a card has one. Anti-affinity holds.
    """
    return feasibly_left(snapshot, made) is not None


def feasibly_left(snapshot: Snapshot, made: Statement) -> Leftover | None:
    """What a feasible statement leaves (see ``leftover``), None if it is not feasible."""
    tasks = snapshot.tasks
    status = tasks.status[made.evictions]
    if not ((status == BOUND) | (status == RUNNING)).all():
        return None
    if (tasks.status[made.bound] != PENDING).any() or not _waits_or_moves(snapshot, made).all():
        return None
    placed = made.nominated_node >= 0
    asks, has = np.concatenate([made.nominated[placed], made.bound]), made.nominated_card[placed]
    if ((snapshot.shapes.on_card[tasks.shape[asks]] > 0) != (np.concatenate([has, made.bound_card]) != NONE)).any():
        return None
    left = leftover(snapshot, made)
    idle = np.concatenate([snapshot.room.idle_of(left.node), snapshot.card_room.idle_of(left.node)], axis=1)
    fits = ((left.room >= 0) | (left.placed == 0)).all() and ((left.bound <= idle) | (left.bound == 0)).all()
    return left if fits and not against_anti_affinity(snapshot, made, made.evictions) else None


def against_anti_affinity(snapshot: Snapshot, made: Statement, victims: Rows) -> bool:
    """Whether a task that the statement places would violate an anti-affinity term, its own or another task's.

    ``victims`` are the evictions of the statement that count as gone.
    """
    placed = made.nominated_node >= 0
    rows = np.concatenate([made.nominated[placed], made.bound])
    nodes = np.concatenate([made.nominated_node[placed], made.bound_node])
    gone = np.concatenate([victims, made.nominated, made.bound])
    return bool(repelled(snapshot, rows, nodes, gone).any())


def _waits_or_moves(snapshot: Snapshot, made: Statement) -> Bools:
    """bool[K]: nominated tasks that are Pending, or evicted by the same statement and able to start again elsewhere.

    A task that is gone when it is evicted cannot move. Nor can one that holds part of a card: ``Tasks.card`` has room
    for one card, and the task would hold one and be promised another. A victim that is still ending can lose the
    promise of an earlier move.
    """
    tasks, rows = snapshot.tasks, made.nominated
    movable = ~tasks.gone_when_evicted[rows] & (snapshot.shapes.on_card[tasks.shape[rows]] == 0)
    waits = tasks.status[rows] == PENDING
    if waits.all():
        return np.asarray(waits)
    moves = is_among(rows, made.evictions) & (made.nominated_node != NONE) & movable
    loses = (tasks.status[rows] == TERMINATING) & (made.nominated_node == NONE)
    return np.asarray(waits | moves | loses)


def leftover(snapshot: Snapshot, made: Statement) -> Leftover:
    """What the statement leaves on the nodes on which it places tasks."""
    tasks = snapshot.tasks
    placed = made.nominated_node >= 0
    touched = distinct(np.concatenate([made.nominated_node[placed], made.bound_node]))
    bound = summed(snapshot, touched, made.bound, made.bound_node, made.bound_card)
    nominated, node, card = made.nominated[placed], made.nominated_node[placed], made.nominated_card[placed]
    later = bound + summed(snapshot, touched, nominated, node, card)
    left = np.concatenate([snapshot.room.future_of(touched), snapshot.card_room.future_of(touched)], axis=1)
    left += summed(snapshot, touched, made.evictions, tasks.node[made.evictions], tasks.card[made.evictions])
    promised = np.concatenate([made.nominated, made.bound])  # their old promises end
    left += summed(snapshot, touched, promised, tasks.nominated[promised], tasks.card[promised])
    return Leftover(touched, bound, later, left - later)


def summed(snapshot: Snapshot, touched: Rows, rows: Rows, nodes: Rows | Ids, on: Rows | Ids) -> Longs:
    """int64[M, R + D]: requests of ``rows`` summed per touched node; other nodes do not count.

    ``on`` is the card of each, NONE for none.
    """
    total = np.zeros((len(touched), len(snapshot.vocabulary.resources) + snapshot.nodes.cards.shape[1]), np.int64)
    if len(touched) == 0 or len(rows) == 0:
        return total
    at = np.minimum(np.searchsorted(touched, nodes), len(touched) - 1)
    here = touched[at] == nodes
    if not here.any():
        return total
    np.add.at(total, at[here], asked(snapshot, rows[here], on[here]))
    return total


def asked(snapshot: Snapshot, rows: Rows, on: Rows | Ids) -> Longs:
    """int64[K, R + D]: what each of ``rows`` asks for, of its card too."""
    request, shape, has = snapshot.shapes.request, snapshot.tasks.shape[rows], np.flatnonzero(on != NONE)
    result = np.zeros((len(rows), request.shape[1] + snapshot.nodes.cards.shape[1]), np.int64)
    result[:, : request.shape[1]] = request[shape]
    result[has, request.shape[1] + on[has]] = snapshot.shapes.on_card[shape[has]]
    return result
