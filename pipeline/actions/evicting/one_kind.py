"""Room for gangs of one kind is sought at once.

If they were served one after the other, each would break what is cheapest for it alone. So victims for all of them are
sought first, as if they were one gang, and each then takes what it needs of those.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice, takewhile

import numpy as np

from pipeline.actions.backoff import GangGroup
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt

#: For at most this many gangs.
LIMIT = 64


def of_one_kind(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are single gangs of one kind.

    They have the same queue, priority and rights, no topology or subgroups of their own, and ask for the same.
    """
    kinds = ((one, _kind(snapshot, one)) for one in islice(some, LIMIT))
    first = next(kinds, None)
    if first is None or first[1] is None:
        return []
    return [first[0], *(one for one, _ in takewhile(lambda other: other[1] == first[1], kinds))]


def as_one(some: Iterable[GangGroup], attempt: Attempt) -> Attempt:
    """The attempt of the first of them for all of them."""
    return replace(attempt, podgroups=tuple(row for one in some for row in one))


def _kind(snapshot: Snapshot, some: tuple[int, ...]) -> tuple[object, ...] | None:
    """What gangs of one kind have in common; None for what is no simple gang."""
    groups, row = snapshot.podgroups, some[0]
    free = groups.required_level[row] == NONE and groups.preferred_level[row] == NONE
    if len(some) > 1 or not free or groups.min_available[row] < 2:  # noqa: PLR2004 - a single task breaks little
        return None
    roles = slice(snapshot.role_start[row], snapshot.role_start[row + 1])
    parts = snapshot.subgroup_start[row + 1] > snapshot.subgroup_start[row] or snapshot.roles.min_available[roles].any()
    pending = snapshot.pending(row)
    shape = np.unique(snapshot.tasks.shape[pending])
    if parts or len(shape) != 1:
        return None
    rights = bool(groups.may_preempt[row]), bool(snapshot.tasks.may_preempt[pending].all())
    asked = int(groups.min_available[row]), len(pending), int(shape[0]), int(snapshot.counts.ready[row])
    return int(groups.queue[row]), int(groups.priority[row]), int(groups.namespace[row]), rights, asked
