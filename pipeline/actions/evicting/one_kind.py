"""Room for gangs of one kind is sought at once.

If they were served one after the other, each would break what is cheapest for it alone. So victims for all of them are
sought first, as if they were one gang, and each then takes what it needs of those.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, takewhile
from typing import TypeAlias

import numpy as np

from pipeline.actions.backoff import GangGroup
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt

#: For at most this many gangs, and this many podgroups of a single task.
LIMIT, SINGLES = 64, 512

#: What podgroups of one kind have in common.
_Kind: TypeAlias = tuple[object, ...]


def of_one_kind(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are single gangs of one kind.

    They have the same queue, priority and rights, no topology or subgroups of their own, and ask for the same.
    """
    return _leading((one, _kind(snapshot, one)) for one in islice(some, LIMIT))


def single_tasks(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are podgroups of one kind, each with one task, which waits."""
    return _leading((one, _kind_of_task(snapshot, one)) for one in islice(some, SINGLES))


def _leading(kinds: Iterator[tuple[GangGroup, _Kind | None]]) -> list[GangGroup]:
    """The gang groups of the kind of the first one, up to one of another kind; none if the first has no kind."""
    first = next(kinds, None)
    if first is None or first[1] is None:
        return []
    return [first[0], *(one for one, _ in takewhile(lambda other: other[1] == first[1], kinds))]


def as_one(some: Iterable[GangGroup], attempt: Attempt) -> Attempt:
    """The attempt of the first of them for all of them."""
    return replace(attempt, podgroups=tuple(row for one in some for row in one))


def _kind(snapshot: Snapshot, some: tuple[int, ...]) -> _Kind | None:
    """What gangs of one kind have in common; None for what is no simple gang."""
    lone = snapshot.podgroups.min_available[some[0]] < 2  # noqa: PLR2004 - a single task breaks little
    return None if lone else _in_common(snapshot, some)


def _kind_of_task(snapshot: Snapshot, some: tuple[int, ...]) -> _Kind | None:
    """What podgroups of one kind with a single task have in common; None for others."""
    start, _ = snapshot.by_podgroup
    single = start[some[0] + 1] - start[some[0]] == 1
    return _in_common(snapshot, some) if single else None


def _in_common(snapshot: Snapshot, some: tuple[int, ...]) -> _Kind | None:
    groups, row = snapshot.podgroups, some[0]
    free = groups.required_level[row] == NONE and groups.preferred_level[row] == NONE
    if len(some) > 1 or not free:
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
