"""The independent check: does a statement make the room that it promises? Plain NumPy, no kernel.

A card counts as a resource of its node here: columns for the cards follow those of the resources.

Every plan passes it before it leaves ``propose`` and again when it is judged. A wrong kernel may cost a plan, never a
wrong eviction.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows, all_true, any_true, distinct, is_among
from pipeline.cluster.counted.totals import Room
from pipeline.cluster.rules.anti_affinity import states_terms
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, TERMINATING
from pipeline.decision.statement import Statement
from pipeline.placement.filters import repelled, too_early


class Leftover(NamedTuple):
    """The nodes on which a statement places tasks, and what it leaves there; resources, then cards.

    Attributes
    ----------
    node: int64[M]
        Node rows, ascending.
    bound, placed, withdrawn: int64[M, R + D]
        What bound tasks ask for, what all placed ones do, and what its tasks were promised there before.
    room: int64[M, R + D]
        Future room once the victims have gone and all placed tasks have started.
    """

    node: Rows
    bound: Longs
    placed: Longs
    withdrawn: Longs
    room: Longs


def feasible(snapshot: Snapshot, made: Statement) -> bool:
    """Whether victims run, tasks wait or move, and no touched node is promised more than it will have.

    Bound tasks must fit the idle room; bound and nominated tasks together must fit the future room, or what they were
    promised of it before: where too much is promised the first may start. A task that asks for a card has one.
    Anti-affinity holds, for bound tasks beside tasks that are still ending as well.
    """
    return feasibly_left(snapshot, made) is not None


def feasibly_left(snapshot: Snapshot, made: Statement) -> Leftover | None:
    """What a feasible statement leaves (see ``leftover``), None if it is not feasible."""
    tasks = snapshot.tasks
    if not all_true(tasks.runs(made.evictions)):
        return None
    if any_true(tasks.status[made.bound] != PENDING) or not all_true(_waits_or_moves(snapshot, made)):
        return None
    places = placed, _, card = made.places
    if any_true((snapshot.shapes.on_card[tasks.shape[placed]] > 0) != (card != NONE)):
        return None
    left = leftover(snapshot, made, places)
    if not all_true((left.room >= 0) | (left.placed <= left.withdrawn)):
        return None
    if len(made.bound):
        idle = _with_cards(snapshot, lambda room: room.idle_of(left.node))
        if not ((left.bound <= idle) | (left.bound == 0)).all():
            return None
        if too_early(snapshot, made.bound, made.bound_node, made.evictions).any():
            return None
    return None if against_anti_affinity(snapshot, made, made.evictions) else left


def against_anti_affinity(snapshot: Snapshot, made: Statement, victims: Rows) -> bool:
    """Whether a task that the statement places would violate an anti-affinity term, its own or another task's.

    ``victims`` are the evictions of the statement that count as gone.
    """
    if not states_terms(snapshot):
        return False
    rows, nodes, _ = made.places
    gone = np.concatenate([victims, made.nominated, made.bound])
    return bool(repelled(snapshot, rows, nodes, gone).any())


def _waits_or_moves(snapshot: Snapshot, made: Statement) -> Bools:
    """bool[K]: nominated tasks that are Pending, or evicted by the same statement and able to start again elsewhere.

    A task that is gone when it is evicted cannot move. A victim that is still ending can lose the promise of an earlier
    move.
    """
    tasks, rows = snapshot.tasks, made.nominated
    waits = tasks.status[rows] == PENDING
    if all_true(waits):
        return np.asarray(waits)
    moves = is_among(rows, made.evictions) & (made.nominated_node != NONE) & ~tasks.gone_when_evicted[rows]
    loses = (tasks.status[rows] == TERMINATING) & (made.nominated_node == NONE)
    return np.asarray(waits | moves | loses)


def leftover(snapshot: Snapshot, made: Statement, places: tuple[Rows, Rows, Rows]) -> Leftover:
    """What the statement leaves on the nodes on which it places tasks; ``places`` are its own."""
    tasks = snapshot.tasks
    gone, promised = made.evictions, np.concatenate([made.nominated, made.bound])
    touched = distinct(places[1])
    placed, bound, freed, withdrawn = (
        _summed(snapshot, touched, *some)
        for some in (
            places,
            (made.bound, made.bound_node, made.bound_card),
            (gone, tasks.node[gone], tasks.card[gone]),
            (promised, *tasks.promised(promised)),  # their old promises end
        )
    )
    future = _with_cards(snapshot, lambda room: room.future_of(touched))
    return Leftover(touched, bound, placed, withdrawn, future + freed + withdrawn - placed)


def _with_cards(snapshot: Snapshot, of: Callable[[Room], Longs]) -> Longs:
    """int64[M, R + D]: what is asked about the room of resources, and about that of cards."""
    room = of(snapshot.room)
    return np.concatenate([room, of(snapshot.card_room)], axis=1) if snapshot.nodes.cards.shape[1] else room


def _summed(snapshot: Snapshot, touched: Rows, rows: Rows, nodes: Rows | Ids, on: Rows | Ids) -> Longs:
    """int64[M, R + D]: what tasks ask for, summed per touched node; other nodes do not count.

    ``nodes`` and ``on`` are the node of each task and its card, NONE for none.
    """
    many = snapshot.shapes.request.shape[1] + snapshot.nodes.cards.shape[1]
    total = np.zeros((len(touched), many), np.int64)
    if len(rows) == 0 or len(touched) == 0:
        return total
    at = touched.searchsorted(nodes)
    inside = (touched.take(at, mode="clip") == nodes).nonzero()[0]
    if len(inside):
        asks = asked(snapshot, rows[inside], on[inside])
        # Flat, for NumPy adds rows of a table one by one, which takes three times as long for many.
        np.add.at(total.reshape(-1), (at[inside, None] * many + np.arange(many)).ravel(), asks.ravel())
    return total


def asked(snapshot: Snapshot, rows: Rows, on: Rows | Ids) -> Longs:
    """int64[K, R + D]: what each of ``rows`` asks for, of its card too."""
    shape, cards = snapshot.tasks.shape[rows], snapshot.nodes.cards.shape[1]
    request, has = snapshot.shapes.request.take(shape, axis=0), (on != NONE).nonzero()[0]
    if cards == len(has) == 0:
        return request
    of_card = np.zeros((len(rows), cards), np.int64)
    of_card[has, on[has]] = snapshot.shapes.on_card[shape[has]]
    return np.concatenate([request, of_card], axis=1)
