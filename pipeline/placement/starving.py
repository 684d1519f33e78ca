"""The order in which podgroups are served, and which of them start together."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.cluster.rules.gang_groups import together
from pipeline.cluster.snapshot import Snapshot
from pipeline.plugins.host import Host


def in_order(host: Host, wanted: Bools) -> list[tuple[int, ...]]:
    """The ``wanted`` podgroups (bool[G]) as units that start together, by the order of queues, then of podgroups.

    A gang group has the place of its first member and is complete: it includes members that are not wanted.
    """
    return list(served(host, wanted))


def served(host: Host, wanted: Bools) -> Iterator[tuple[int, ...]]:
    """The same as an iterator, for callers that may need the first few only."""
    rows = np.flatnonzero(wanted)
    seen: set[tuple[int, ...]] = set()
    for row in _looking_ahead(host, rows) if host.looks_ahead else _queue_by_queue(host, rows):
        unit = together(host.context.snapshot, row)
        if unit not in seen:
            seen.add(unit)
            yield unit


def _queue_by_queue(host: Host, rows: Rows) -> Iterator[int]:
    queue = host.context.snapshot.podgroups.queue[rows]
    yield from rows[np.lexsort((host.job_rank[rows], host.queue_rank[queue]))].tolist()


def _looking_ahead(host: Host, rows: Rows) -> Iterator[int]:
    """Always the first podgroup of the queue that is served first; queues are ranked anew after each podgroup."""
    queue, queues = host.context.snapshot.podgroups.queue, len(host.context.snapshot.queues)
    rows = rows[np.lexsort((host.job_rank[rows], queue[rows]))]
    at, stop = (np.searchsorted(queue[rows], np.arange(queues), side) for side in ("left", "right"))
    while (waits := at < stop).any():
        following = np.full(queues, NONE, np.int32)
        following[waits] = rows[at[waits]]
        rank = host.queue_rank_with(following)
        first = int(np.argmin(np.where(waits, rank, queues)))
        yield int(following[first])
        at[first] += 1


def alike(snapshot: Snapshot, some: Sequence[tuple[int, ...]]) -> int:
    """How many of the leading gang groups are single gangs of one kind, for which room can be sought at once.

    They have the same queue, priority and rights, no topology or subgroups of their own, and ask for the same.
    """
    kinds = (_kind(snapshot, one) for one in some)
    first = next(kinds, None)
    return 0 if first is None else 1 + sum(1 for _ in takewhile(lambda kind: kind == first, kinds))


def _kind(snapshot: Snapshot, some: tuple[int, ...]) -> tuple[object, ...] | None:
    """What gangs of one kind have in common; None for what is no simple gang."""
    groups, row = snapshot.podgroups, some[0]
    free = groups.required_level[row] == NONE and groups.preferred_level[row] == NONE
    roles = slice(snapshot.role_start[row], snapshot.role_start[row + 1])
    parts = snapshot.subgroup_start[row + 1] > snapshot.subgroup_start[row] or snapshot.roles.min_available[roles].any()
    pending = snapshot.pending(row)
    shape = np.unique(snapshot.tasks.shape[pending])
    if len(some) > 1 or parts or not free or groups.min_available[row] < 2 or len(shape) != 1:  # noqa: PLR2004
        return None
    rights = bool(groups.may_preempt[row]), bool(snapshot.tasks.may_preempt[pending].all())
    asked = int(groups.min_available[row]), len(pending), int(shape[0]), int(snapshot.counts.ready[row])
    return int(groups.queue[row]), int(groups.priority[row]), int(groups.namespace[row]), rights, asked
