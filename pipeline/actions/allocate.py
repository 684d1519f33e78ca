"""Allocate: place what fits without evicting anybody; who was promised room comes first."""

import numpy as np

from pipeline.actions.enqueue import admit
from pipeline.actions.progress import Progress
from pipeline.allocation import allocate as place
from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.cluster.resources import fits
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, PHASE_PENDING
from pipeline.minimum import starts_with
from pipeline.starving import in_order
from pipeline.statement import statement


def allocate(progress: Progress) -> Progress:
    """Redeem nominations whose room is there by now, then place waiting podgroups in order.

    Who was placed in part is looked at again once everybody had a turn: what the best domain did not hold may fit
    elsewhere, and would only wait for the next cycle. Where nobody admits podgroups, all of them are admitted here.
    """
    if "enqueue" not in progress.policy.actions:
        groups = progress.snapshot.podgroups
        progress = admit(progress, np.flatnonzero((groups.phase == PHASE_PENDING) & groups.alive), "allocate")
    progress = redeem(progress)
    left: Bools = np.ones(len(progress.snapshot.podgroups), bool)
    while left.any():
        progress, left = _turn(progress, left)
    return progress


def _turn(progress: Progress, left: Bools) -> tuple[Progress, Bools]:
    """Place the waiting among ``left`` (bool[G]), each looked at once; also, who got something.

    The order is asked for anew after every placement: a queue that got something moves back.
    """
    votes = progress.votes()
    left, placed = left & votes.valid & (progress.snapshot.standing.pending > 0), np.zeros(len(left), bool)
    while left.any():
        left &= ~votes.overused[progress.snapshot.podgroups.queue]
        units = in_order(votes, left)
        if not units:
            break
        for unit in units:
            left[list(unit)] = False
            made = place(votes, unit, "allocate")
            if made is not None:
                placed[list(unit)] = True
                progress = progress.decided(made)
                votes = progress.votes()
                break
    return progress, placed


def redeem(progress: Progress) -> Progress:
    """Bind promised tasks once the room is there, a gang's only when it can start with them."""
    snapshot = progress.snapshot
    promised = (snapshot.tasks.status == PENDING) & (snapshot.tasks.nominated != NONE)
    if not promised.any():
        return progress
    holders = np.zeros(len(snapshot.podgroups), bool)
    holders[snapshot.tasks.podgroup[promised]] = True
    for unit in in_order(progress.votes(), holders):
        progress = _redeem(progress, unit, promised)
    return progress


def _redeem(progress: Progress, unit: tuple[int, ...], promised: Bools) -> Progress:
    snapshot = progress.snapshot
    rows = np.concatenate([snapshot.tasks_of(podgroup) for podgroup in unit])
    rows = rows[promised[rows]]
    rows = rows[_fitting(snapshot, rows)]
    if len(rows) == 0 or not all(starts_with(snapshot, podgroup, rows) for podgroup in unit):
        return progress
    node, card = snapshot.tasks.nominated[rows], snapshot.tasks.card[rows]
    return progress.decided(statement("allocate", unit[0], bound=rows, bound_node=node, bound_card=card))


def _fitting(snapshot: Snapshot, rows: Rows) -> Bools:
    """Which promised tasks fit the idle room of their nodes and cards, taken in order of row."""
    idle, cards = snapshot.room.idle.copy(), snapshot.card_room.idle.copy()
    result = np.zeros(len(rows), bool)
    for position, row in enumerate(rows.tolist()):
        shape, node, card = (getattr(snapshot.tasks, name)[row] for name in ("shape", "nominated", "card"))
        request, amount = snapshot.shapes.request[shape], snapshot.shapes.on_card[shape]
        has = amount == 0 or (card != NONE and cards[node, card] >= amount)
        if has and snapshot.nodes.schedulable[node] and fits(request, idle[node]):
            idle[node] -= request
            if amount:
                cards[node, card] -= amount
            result[position] = True
    return result
