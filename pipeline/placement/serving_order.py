"""The order in which podgroups are served, and which of them start together."""

from collections.abc import Iterable, Iterator

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.cluster.orders import occurred_before
from pipeline.cluster.rules.gang_groups import GangGroup, gang_group_of, gang_groups
from pipeline.placement.kinds import kinds_in_turn
from pipeline.plugins.host import Host
from pipeline.policy import Policy

#: The argument of an action that says how many gang groups of each queue have a turn.
QUEUE_DEPTH = "queue_depth"


def in_serving_order(host: Host, wanted: Bools, *, evicting: bool = False) -> Iterator[GangGroup]:
    """The ``wanted`` podgroups (bool[G]) as gang groups, by the order of queues, then of podgroups.

    A gang group has the place of its first member, as in Koordinator its first pod in the queue brings the others along
    (notes on Koordinator, 1.4); where it is ``evicting``, that of the first of its members of the lowest priority, by
    which it may evict and may lose what it was promised. It is complete: it includes members that are not wanted. The
    order is worked out as far as it is asked for.
    """
    snapshot, rows = host.context.snapshot, wanted.nonzero()[0]
    ranked = _ranked(host, rows) if len(rows) > 1 else rows.tolist()
    if not snapshot.once(gang_groups).gang_group:
        yield from ((row,) for row in ranked)
        return
    priority, seen = snapshot.podgroups.priority, set[GangGroup]()
    later: dict[int, list[GangGroup]] = {}
    for row in ranked:
        for gang_group in (*later.pop(row, ()), gang_group_of(snapshot, row)):
            if gang_group in seen:
                continue
            members = [one for one in gang_group if wanted[one]]
            least = priority[members].min()
            if not evicting or priority[row] == least:
                seen.add(gang_group)
                yield gang_group
                continue
            for one in members:
                if priority[one] == least:
                    later.setdefault(one, []).append(gang_group)


def queue_depth(policy: Policy, action: str) -> int:
    """How many gang groups of each queue an action serves, the first in order; 0: all of them."""
    return policy.action_argument(action, QUEUE_DEPTH, 0)


def within_depth(host: Host, gang_groups: list[GangGroup], depth: int) -> list[GangGroup]:
    """The first ``depth`` of the ordered gang groups of each queue; all of them where it is 0."""
    if depth == 0:
        return gang_groups
    queue = host.context.snapshot.podgroups.queue
    place = occurred_before(np.array([queue[one[0]] for one in gang_groups], np.int64))
    return [one for one, before in zip(gang_groups, place.tolist(), strict=True) if before < depth]


def _ranked(host: Host, rows: Rows) -> Iterable[int]:
    queue = host.context.snapshot.podgroups.queue[rows]
    if (queue == queue[0]).all():  # the order of queues does not matter
        return list(rows[np.argsort(host.job_rank[rows])].tolist())
    if host.looks_ahead:
        return _looking_ahead(host, rows)
    return list(rows[np.lexsort((host.job_rank[rows], host.queue_rank[queue]))].tolist())


def _looking_ahead(host: Host, rows: Rows) -> Iterator[int]:
    """Always the first podgroup of the queue that is served first; queues are ranked anew after each podgroup.

    The order of queues depends on what their next podgroups ask for. So if that queue's next one is of the same kind,
    the ranks are the same again.
    """
    snapshot = host.context.snapshot
    queue, queues = host.context.snapshot.podgroups.queue, len(host.context.snapshot.queues)
    rows = rows[np.lexsort((host.job_rank[rows], queue[rows]))]
    at, stop = (np.searchsorted(queue[rows], np.arange(queues), side) for side in ("left", "right"))
    while (waits := at < stop).any():
        following = np.full(queues, NONE, np.int32)
        following[waits] = rows[at[waits]]
        rank = host.queue_rank_with(following)
        first = int(np.argmin(np.where(waits, rank, queues)))
        mine = kinds_in_turn(snapshot, ((row,) for row in rows[at[first] : stop[first]].tolist()))
        (row,), kind = next(mine)
        yield row
        served = 1
        for (row,), other in mine:
            if other is None or other != kind:
                break
            yield row
            served += 1
        at[first] += served
