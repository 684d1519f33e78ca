"""What queues may still take: all work up to their limits, and work that can never be evicted up to another quota."""

import numpy as np

from pipeline.cluster.arrays import NONE, Longs, Rows, is_among
from pipeline.cluster.resources import fits
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.statement import Statement
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor


def headroom_of(host: Host, podgroup: int) -> Longs:
    """int64[R]: what the queue of a podgroup may still take of its work."""
    return room_of(host, host.context.snapshot, podgroup)


def room_of(host: Host, snapshot: Snapshot, podgroup: int) -> Longs:
    """The same where ``host`` may be on a what-if of ``snapshot``, which is not worked out for it."""
    queue, lasts = snapshot.podgroups.queue[podgroup], not snapshot.podgroups.preemptible[podgroup]
    room = host.headroom[queue]
    return np.asarray(np.minimum(room, host.lasting_headroom[queue]) if lasts else room)


def takes_after(host: Host, preemptor: Preemptor, made: Statement, victims: Rows) -> bool:
    """Whether the preemptor's queue may take its request once some victims of a statement (int64[V]) have gone.

    Those that the statement moves hold as much as before. What its tasks were promised already is not counted twice.
    """
    snapshot, first = host.context.snapshot, preemptor.podgroups[0]
    if fits(preemptor.request, room_of(host, snapshot, first)):
        return True
    moves, promised = is_among(made.nominated, victims), made.placed[snapshot.tasks.nominated[made.placed] != NONE]
    before = WhatIf.of(snapshot).nominating(promised, np.full(len(promised), NONE, np.int64))
    after = before.evicting(victims).nominating(made.nominated[moves], made.nominated_node[moves])
    return bool(fits(preemptor.request, room_of(host.on(after, victims), snapshot, first)))


def takes(host: Host, rows: Rows) -> bool:
    """Whether the queues of pending tasks may take all of the tasks."""
    return _within(host, rows, host.headroom) and takes_lasting(host, rows)


def takes_lasting(host: Host, rows: Rows) -> bool:
    """Whether the queues of pending tasks may take those that can never be evicted."""
    snapshot = host.context.snapshot
    lasts = ~snapshot.podgroups.preemptible[snapshot.tasks.podgroup[rows]]
    return _within(host, rows[lasts], host.lasting_headroom)


def _within(host: Host, rows: Rows, room: Longs) -> bool:
    snapshot, asks = host.context.snapshot, np.zeros_like(room)
    snapshot.add_requests(rows, asks, snapshot.queue_of(rows))
    return bool(fits(asks, room).all())
