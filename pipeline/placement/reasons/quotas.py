"""What the preemptor's own queue lacks: it is not open, may not hold so much, or deserves too little."""

from collections.abc import Iterator

import numpy as np

from pipeline.cluster.arrays import UNLIMITED, UNSET, Longs
from pipeline.cluster.queue_tree import chain, with_descendants
from pipeline.cluster.resources import PODS, fits
from pipeline.cluster.rules.quota import never_evicted
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import OPEN, QUEUE_STATE_NAMES
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.headroom import line_limits
from pipeline.decision.obstacle import Cause, Obstacle
from pipeline.placement.reasons.question import Question
from pipeline.plugins.extension_points import AllowsReclaim, FindsOverused, LimitsLastingWork, LimitsQueues
from pipeline.plugins.host import Host
from pipeline.records import replace


def closed_queues(snapshot: Snapshot, queue: int) -> list[Obstacle]:
    """A queue and its ancestors, those that are not open."""
    states, chained = snapshot.queues.state, chain(snapshot.queues.parent, queue)
    closed = [row for row in chained if states[row] != OPEN]
    return [Obstacle(Cause.CLOSED, queue=row, what=QUEUE_STATE_NAMES[states[row]]) for row in closed]


def limits(asked: Question) -> Iterator[Obstacle]:
    """The queue or an ancestor is not open, or may not hold what is asked for even if all that may be lost is gone.

    So for the queues of all that start together; what is lost counts for the preemptor's.
    """
    snapshot, queue = asked.snapshot, asked.queue
    closed = dict.fromkeys(one for any_queue in asked.queues for one in closed_queues(snapshot, any_queue))
    yield from closed
    if closed:
        return
    yield from _elsewhere(asked)
    if fits(asked.need.total, asked.host.headroom_of(asked.attempt.podgroups[0])):
        return
    total, parent = asked.need.total, snapshot.queues.parent
    held, line = snapshot.allocated - with_descendants(parent, asked.leaving), chain(parent, queue)
    for name, room, lasts in _rooms_left(asked, lasts=not snapshot.podgroups.preemptible[asked.attempt.podgroups[0]]):
        binds = room + held[queue] < snapshot.capacity  # else it is the size of the cluster and no limit
        for row in np.flatnonzero((total > room) & (total > 0) & binds).tolist():
            all_of_it = bool((room[row] + held[line, row] >= snapshot.capacity[row]).any())
            for one in _exceeded(snapshot, queue, held, row, (int(total[row]), int(room[row])), lasts=lasts):
                if one.cause is not Cause.SHARES or not all_of_it:
                    yield replace(one, plugin=name)


def _rooms_left(asked: Question, *, lasts: bool) -> Iterator[tuple[str, Longs, bool]]:
    """What ``_rooms`` answers for the preemptor's queue once all that may be lost is gone.

    Where the ceilings stay as they are it is counted; trying many losses out takes a hundred times as long.
    """
    host, rows, line = asked.host, asked.losing, line_limits(asked.host, asked.attempt.podgroups[0])
    if line.counted and not lasts:
        left = line.left_without(asked.leaving).min(axis=0)
        yield from ((name, left, False) for name, _ in host.named(LimitsQueues))
        return
    after = host.on(WhatIf.of(asked.snapshot).evicting(rows), rows) if len(rows) else host
    yield from _rooms(after, asked.queue, lasts=lasts)


def _elsewhere(asked: Question) -> Iterator[Obstacle]:
    """Other queues of podgroups that start together which may not take their own part: no victim makes room in them."""
    snapshot, need = asked.snapshot, asked.need
    rows = need.tasks[: need.minimum]
    stays = ~snapshot.podgroups.preemptible[snapshot.tasks.podgroup[rows]]
    for queue in asked.queues[1:]:
        mine = snapshot.queue_of(rows) == queue
        for name, room, lasts in _rooms(asked.host, queue, lasts=bool(stays[mine].any())):
            some = rows[mine & stays] if lasts else rows[mine]
            total = snapshot.request_of(some).sum(axis=0)
            for row in np.flatnonzero((total > room) & (total > 0)).tolist():
                amounts = int(total[row]), int(room[row])
                for one in _exceeded(snapshot, queue, snapshot.allocated, row, amounts, lasts=lasts):
                    yield replace(one, plugin=name)


def _exceeded(
    snapshot: Snapshot, queue: int, held: Longs, row: int, amounts: tuple[int, int], *, lasts: bool
) -> Iterator[Obstacle]:
    """The limits of a queue and its ancestors that leave less of a resource than is asked for, those below first.

    Parameters
    ----------
    amounts
        What is asked for, and what a plugin leaves; where no limit leaves as little, it is the shares of others.
    """
    queues, line, (total, room) = snapshot.queues, chain(snapshot.queues.parent, queue), amounts
    stated = queues.capability
    if lasts:
        stated, held = np.maximum(queues.deserved, 0), snapshot.once(never_evicted)
    limited = [one for one in line if stated[one, row] < UNLIMITED]
    leaves = {one: int(stated[one, row] - held[one, row]) for one in limited}
    what, cause = snapshot.vocabulary.resources[row], Cause.LASTING if lasts else Cause.CEILING
    if room not in leaves.values():
        otherwise = Cause.LASTING if lasts else Cause.SHARES
        yield Obstacle(otherwise, queue=queue, what=what, wanted=float(total), found=float(max(room, 0)))
    for one, left in leaves.items():
        if left < total:
            passes = total <= int(stated[one, row])
            yield Obstacle(cause, queue=one, what=what, wanted=float(total), found=float(left), passes=passes)


def _rooms(host: Host, queue: int, *, lasts: bool) -> Iterator[tuple[str, Longs, bool]]:
    """What each plugin lets the queue take, and whether that is of work that can never be evicted."""
    for name, plugin in host.named(LimitsQueues):
        yield name, plugin.queue_limits().headroom[queue], False
    for name, lasting in host.named(LimitsLastingWork) if lasts else ():
        yield name, lasting.lasting_headroom()[queue], True


def entitlement(asked: Question) -> Iterator[Obstacle]:
    """The plugins that do not let the queue take from others, and what it would hold against what it deserves.

    Without any plugin where none objects and all abstain, for no queue states what it deserves.
    """
    queue, host = asked.queue, asked.host
    objecting = [name for name, plugin in host.named(FindsOverused) if plugin.overused()[queue]]
    objecting += [name for name, plugin in host.named(AllowsReclaim) if plugin.preemptive(asked.preemptor) is False]
    if not objecting and not host.preemptive(asked.preemptor):
        objecting = [""]
    over = _above_share(asked, queue)
    for plugin in dict.fromkeys(objecting):
        yield from (replace(one, plugin=plugin) for one in over)


def _above_share(asked: Question, queue: int) -> list[Obstacle]:
    """What a queue would hold more of than it deserves; an entry without a resource if it deserves nothing.

    Resources that are not asked for count where it stays within its share of all that are: a plugin may look at them.
    A queue that states more than its share gets no more of it by stating more.
    """
    snapshot, share = asked.snapshot, asked.host.fair_share()
    if share is None:
        return [Obstacle(Cause.QUEUE, queue=queue)]
    after, wanted = snapshot.allocated[queue] + asked.need.total, asked.need.total > 0
    above = (after > share[queue]) & (share[queue] < UNLIMITED)
    above[PODS] = False
    states = snapshot.queues.deserved[queue] != UNSET
    rows = np.flatnonzero(above & wanted & (states | (share[queue] > 0)))
    if len(rows) == 0 and ((above & wanted).any() or not (states & wanted).any()):
        return [Obstacle(Cause.QUEUE, queue=queue)]
    names, stated = snapshot.vocabulary.resources, snapshot.queues.deserved[queue]
    return [
        Obstacle(
            Cause.CUT if stated[row] > share[queue, row] else Cause.QUEUE, queue=queue, what=names[row],
            wanted=float(after[row]), found=float(share[queue, row]),
            passes=bool(asked.need.total[row] <= share[queue, row]),
        )
        for row in (rows if len(rows) else np.flatnonzero(above)).tolist()
    ]  # fmt: skip
