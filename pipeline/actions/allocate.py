"""Allocate: place what fits without evicting anybody; who was promised room comes first."""

import numpy as np

from pipeline.actions.enqueue import admit
from pipeline.actions.progress import Progress
from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.cluster.minimum import starts_with
from pipeline.cluster.resources import fits
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, PHASE_PENDING
from pipeline.decision.statement import statement
from pipeline.placement.gang_allocation import allocate as place
from pipeline.placement.starving import in_order
from pipeline.plugins.extension_points import Follows
from pipeline.plugins.host import Host

#: Into so many turns all that waits is divided at most.
_TURNS = 64


def allocate(progress: Progress) -> Progress:
    """Redeem nominations whose room is there by now, then place waiting podgroups in order.

    The order is asked for anew after every placement: a queue that got something moves back, and so does a podgroup
    that has its minimum, if the policy says so. What is beyond the minimum goes task by task where others would be
    served first by then. Where nobody admits podgroups, all of them are admitted here.
    """
    if "enqueue" not in progress.policy.actions:
        groups = progress.snapshot.podgroups
        progress = admit(progress, np.flatnonzero((groups.phase == PHASE_PENDING) & groups.alive), "allocate")
    progress = redeem(progress)
    left: Bools = np.ones(len(progress.snapshot.podgroups), bool)
    host, going = progress.host(), True
    # One task, as upstream does; where very many wait a share is not moved by a task.
    portion = max(1, int(progress.snapshot.standing.pending.sum()) // _TURNS)
    while going:
        snapshot, going = progress.snapshot, False
        left = left & host.valid & (snapshot.standing.pending > 0) & ~host.overused[snapshot.podgroups.queue]
        units = in_order(host, left)
        for unit in units:
            made = place(host, unit, "allocate", beyond=_beyond(host, unit, units, portion))
            if made is not None:
                progress, going = progress.decided(made), True
                host = progress.host()
                break
            left[list(unit)] = False
    return progress


def _beyond(host: Host, unit: tuple[int, ...], units: list[tuple[int, ...]], portion: int) -> int | None:
    """How many tasks beyond its minimum a unit gets before the order is asked for again; None: all."""
    snapshot = host.context.snapshot
    queue, others = snapshot.podgroups.queue, [other[0] for other in units if other != unit]
    same = queue[others] == queue[unit[0]]
    by_share = (same.any() and host.job_order_follows(Follows.SHARE)) or (
        not same.all() and host.queue_order_follows(Follows.SHARE)
    )
    if not host.ready[list(unit)].all():
        return 0 if by_share or (same.any() and host.job_order_follows(Follows.READINESS)) else None
    return portion if by_share else None


def redeem(progress: Progress) -> Progress:
    """Bind promised tasks once the room is there, a gang's only when it can start with them."""
    snapshot = progress.snapshot
    promised = (snapshot.tasks.status == PENDING) & (snapshot.tasks.nominated != NONE)
    if not promised.any():
        return progress
    holders = np.zeros(len(snapshot.podgroups), bool)
    holders[snapshot.tasks.podgroup[promised]] = True
    host = progress.host()
    for unit in in_order(host, holders):
        progress = _redeem(progress, unit, promised, host.binding)
    return progress


def _redeem(progress: Progress, unit: tuple[int, ...], promised: Bools, binding: bool) -> Progress:
    snapshot = progress.snapshot
    rows = np.concatenate([snapshot.tasks_of(podgroup) for podgroup in unit])
    rows = rows[promised[rows]]
    rows = rows[_fitting(snapshot, rows)]
    if len(rows) == 0 or (binding and not all(starts_with(snapshot, podgroup, rows) for podgroup in unit)):
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
