"""What queues may still take: all work up to their limits, and work that can never be evicted up to another quota."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Ids, Longs, Rows, is_among
from pipeline.cluster.queue_tree import chain, flat, in_common
from pipeline.cluster.resources import fits
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.statement import Statement
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor


class LineLimits(NamedTuple):
    """How much more a queue and its ancestors may take.

    Attributes
    ----------
    common: int64[Q]
        How many of the limits the work of each queue counts against: the last of them.
    room: int64[A, R]
        Below the limit of the queue itself, then of its ancestors.
    counted
        Whether that is known of each, and so what victims make of it; else the queue stands for its ancestors as well.
    """

    common: Longs
    room: Longs
    counted: bool

    def left_by(self, snapshot: Snapshot, victims: Rows) -> Longs:
        """int64[A, R]: the room once some tasks that run or are bound (int64[V]) have gone."""
        freed = np.zeros((len(self.room) + 1, self.room.shape[1]), np.int64)  # the last row: below none of them
        snapshot.add_requests(victims, freed, len(self.room) - self.common[snapshot.queue_of(victims)])
        return self._with(freed)

    def left_without(self, held: Longs) -> Longs:
        """int64[A, R]: the room once tasks have gone that hold so much of each queue's, int64[Q, R]."""
        freed = np.zeros((len(self.room) + 1, self.room.shape[1]), np.int64)
        np.add.at(freed, len(self.room) - self.common, held)
        return self._with(freed)

    def _with(self, freed: Longs) -> Longs:
        return np.asarray(self.room + freed.cumsum(axis=0)[:-1])

    def take(self, request: Longs, snapshot: Snapshot, victims: Rows) -> bool:
        """Whether all of them leave room for a request once some tasks that run or are bound have gone."""
        return bool(fits(request, self.left_by(snapshot, victims)).all())

    def leading(self, request: Longs, queue: Ids, held: Longs) -> int:
        """How many leading losses must go before the queue may take a request; NONE if all together are too little.

        Parameters
        ----------
        queue, held: int32[B], int64[B, R]
            The queue that bears each loss, and what it holds.
        """
        lacks = np.where(request > 0, request - self.room, 0)
        most, reach = 0, len(self.room) - self.common[queue]
        for limit, r in np.argwhere(lacks > 0):
            freed = np.where(reach <= limit, held[:, r], 0).cumsum()
            most = max(most, int(np.searchsorted(freed, lacks[limit, r])) + 1)
        return most if most <= len(queue) else NONE


def line_limits(host: Host, podgroup: int) -> LineLimits:
    """The limits of a podgroup's queue."""
    snapshot = host.context.snapshot
    queue, limits = int(snapshot.podgroups.queue[podgroup]), host.queue_limits()
    if limits is None or limits.closed[queue]:
        alone = in_common(flat(len(snapshot.queues)), queue)
        return LineLimits(alone, host.headroom_of(podgroup)[None], counted=False)
    line = chain(limits.parent, queue)
    ceiling = limits.ceiling[line]
    room = np.where(ceiling >= UNLIMITED, UNLIMITED, ceiling - limits.held[line])
    return LineLimits(in_common(limits.parent, queue), room, counted=True)


def takes_after(host: Host, preemptor: Preemptor, made: Statement, victims: Rows) -> bool:
    """Whether the preemptor's queue may take its request once some victims of a statement (int64[V]) have gone.

    Those that the statement moves hold as much as before. What its tasks were promised already is not counted twice.
    """
    snapshot, first = host.context.snapshot, preemptor.podgroups[0]
    if fits(preemptor.request, host.headroom_of(first)):
        return True
    moves, promised = is_among(made.nominated, victims), made.placed[snapshot.tasks.nominated[made.placed] != NONE]
    before = WhatIf.of(snapshot).withdrawing(promised)
    after = before.evicting(victims).nominating(made.nominated[moves], made.nominated_node[moves])
    return bool(fits(preemptor.request, host.on(after, victims).headroom_of(first)))


def queues_take(host: Host, rows: Rows) -> bool:
    """Whether the queues of pending tasks may take all of the tasks."""
    return _within(host, rows, host.headroom) and queues_take_lasting(host, rows)


def queues_take_lasting(host: Host, rows: Rows) -> bool:
    """Whether the queues of pending tasks may take those that can never be evicted."""
    snapshot = host.context.snapshot
    lasts = ~snapshot.podgroups.preemptible[snapshot.tasks.podgroup[rows]]
    return _within(host, rows[lasts], host.lasting_headroom)


def _within(host: Host, rows: Rows, room: Longs) -> bool:
    snapshot, asks = host.context.snapshot, np.zeros_like(room)
    snapshot.add_requests(rows, asks, snapshot.queue_of(rows))
    return bool(fits(asks, room).all())
