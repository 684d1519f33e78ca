"""What queues may still take: all work up to their limits, and work that can never be evicted up to another quota."""

import numpy as np

from pipeline.cluster.arrays import Longs, Rows
from pipeline.cluster.resources import fits
from pipeline.plugins.host import Host


def headroom_of(host: Host, podgroup: int) -> Longs:
    """int64[R]: what the queue of a podgroup may still take of its work."""
    groups = host.context.snapshot.podgroups
    queue, lasts = groups.queue[podgroup], not groups.preemptible[podgroup]
    room = host.headroom[queue]
    return np.asarray(np.minimum(room, host.lasting_headroom[queue]) if lasts else room)


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
