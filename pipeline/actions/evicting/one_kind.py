"""Room for gangs of one kind, or of one rank, is sought at once.

If they were served one after the other, each would break what is cheapest for it alone. So victims for all of them are
sought first, as if they were one gang, and each then takes what it needs of those.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice, takewhile

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Explanation
from pipeline.decision.plan import NoPlan
from pipeline.placement.kinds import PodgroupKind, kinds_in_turn
from pipeline.records import replace

#: For at most this many gangs at once; and for at most this many tasks of the minima of podgroups that start at once.
MOST_GANGS, MOST_TASKS = 64, 512
#: For at most this many gangs of one rank.
MOST_RANKED = 8
#: More of one rank are served kind by kind if there are at least this many of each kind.
_OF_A_KIND = 2


def of_one_kind(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are single gangs of one kind.

    They have the same queue, priority and rights, no topology or subgroups of their own, and ask for the same.
    """
    found, kind = _leading(snapshot, islice(some, MOST_GANGS))
    return found if kind is not None and kind.minimum > 1 else []  # a single task breaks little


def waiting_of_one_kind(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are podgroups of one kind, all of whose tasks wait; they ask for their minimum."""
    found, kind = _leading(snapshot, islice(some, MOST_TASKS))
    if kind is None or not 1 <= kind.minimum <= kind.waiting:
        return []
    rows, start = np.array(found)[:, 0], snapshot.by_podgroup[0]
    unlike = start[rows + 1] - start[rows] != kind.waiting
    if kind.minimum < kind.waiting:
        unlike |= _has_roles(snapshot, rows)
    others = np.flatnonzero(unlike)
    return found[: min(max(1, MOST_TASKS // kind.minimum), *others[:1].tolist(), len(found))]


def _has_roles(snapshot: Snapshot, rows: Rows) -> Bools:
    """bool[K]: podgroups (int64[K]) with roles: other tasks may make up the minimum of one that can spare some."""
    return np.asarray(snapshot.role_start[rows + 1] > snapshot.role_start[rows])


def rigid_of_one_rank(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are podgroups of one rank which need all of their tasks; all of those wait.

    They are of the same queue and priority, have the same rights and no topology of their own; what they ask for
    differs. None if it does not, for they are of one kind then; and none if there are many.
    """
    found, kinds, tasks = list[GangGroup](), list[PodgroupKind](), 0
    for one, kind in _of_rank(snapshot, islice(some, MOST_RANKED + 1), rigid=True):
        tasks += kind.minimum
        if kind.has_levels or tasks > MOST_TASKS:
            break
        found.append(one)
        kinds.append(kind)
    return found if len(set(kinds)) > 1 and len(found) <= MOST_RANKED else []


def waiting_of_few_kinds(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are podgroups of one rank, all of whose tasks wait; they ask for their minimum.

    They have no topology of their own. None if there are no more than `MOST_RANKED`, if they are of one kind, or if
    there are few of each kind.
    """
    found, kinds, tasks = list[GangGroup](), set[PodgroupKind](), 0
    for one, kind in _of_rank(snapshot, some, rigid=False):
        tasks += kind.minimum
        if kind.has_levels or tasks > MOST_TASKS:
            break
        found.append(one)
        kinds.add(kind)
    return found if len(found) > MOST_RANKED and 1 < len(kinds) <= len(found) // _OF_A_KIND else []


def by_kind(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[list[GangGroup]]:
    """Podgroups kind by kind: first those that ask for the largest part of the cluster; equal ones as they come."""
    found, asks = dict[PodgroupKind | None, list[GangGroup]](), dict[PodgroupKind | None, float]()
    for one, kind in kinds_in_turn(snapshot, some):
        found.setdefault(kind, []).append(one)
    for kind, (first, *_) in found.items():
        asking = snapshot.tasks_of(first[0])[: None if kind is None else kind.minimum]
        request = snapshot.request_of(asking).sum(axis=0)
        asks[kind] = float((request / np.maximum(snapshot.capacity, 1)).max())
    return [found[kind] for kind in sorted(found, key=lambda kind: -asks[kind])]


def rigid_apart(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are podgroups of one rank, need all of their tasks, and each need a domain.

    They ask for the same level; all of their tasks wait. None if there is only one, or if there are many.
    """
    ranked = _of_rank(snapshot, islice(some, MOST_RANKED + 1), rigid=True)
    apart = takewhile(lambda each: each[1].required_level != NONE, ranked)
    found = [one for one, _ in apart]
    return found if 1 < len(found) <= MOST_RANKED else []


def _of_rank(snapshot: Snapshot, some: Iterable[GangGroup], *, rigid: bool) -> Iterator[tuple[GangGroup, PodgroupKind]]:
    """The leading gang groups that are podgroups of one rank, all of whose tasks wait, with their kinds.

    ``rigid``: and which need all of their tasks.
    """
    rank = None
    for one, kind in kinds_in_turn(snapshot, some):
        if kind is None or rank not in (None, kind.rank):
            return
        if not 1 <= kind.minimum <= kind.waiting == len(snapshot.tasks_of(one[0])):
            return
        if kind.minimum < kind.waiting and (rigid or _has_roles(snapshot, np.array(one)).any()):
            return
        rank = kind.rank
        yield one, kind


def growing_kind(snapshot: Snapshot, gang_group: GangGroup) -> PodgroupKind | None:
    """What decides where there is room for one more task of a podgroup whose minimum is promised; None if more does.

    That is for gang groups, for podgroups with roles, subgroups or a topology of their own, for those that run already,
    and if the tasks that wait differ.
    """
    row, groups, counts, tasks = gang_group[0], snapshot.podgroups, snapshot.counts, snapshot.tasks
    if len(gang_group) > 1 or counts.ready[row] > 0 or not 0 < groups.min_available[row] <= counts.waiting[row]:
        return None
    rows, waiting = np.array([row]), snapshot.pending(row)
    if _has_roles(snapshot, rows).any() or snapshot.subgroup_start[row + 1] > snapshot.subgroup_start[row]:
        return None
    shape, labels = tasks.shape[waiting], tasks.label_set[waiting]
    if len(waiting) == 0 or (shape != shape[0]).any():
        return None
    columns = (
        groups.queue, groups.priority, groups.namespace, groups.required_level, groups.preferred_level, groups.gather,
        groups.may_preempt, groups.preemptible, groups.match_policy,
    )  # fmt: skip
    queue, priority, namespace, *others = (column[row].item() for column in columns)
    rights = bool(tasks.may_preempt[waiting].all()), bool(tasks.preemptible[waiting].all())
    kind = PodgroupKind._make(
        (queue, priority, namespace, NONE, len(waiting), *others, *rights, shape.tobytes(), labels.tobytes())
    )
    return None if kind.has_levels else kind


def of_another(found: NoPlan, snapshot: Snapshot, podgroup: int) -> NoPlan:
    """The reason why there is no room for a podgroup, from the reason for another one of its kind."""
    of_this = partial(_of_another, snapshot=snapshot, podgroup=podgroup)
    explain = None if found.explain is None else lambda: of_this(found.in_full)
    return NoPlan(of_this(found.explanation), explain)


def _of_another(why: Explanation, snapshot: Snapshot, podgroup: int) -> Explanation:
    task_of = dict(zip(snapshot.pending(why.preemptor).tolist(), snapshot.pending(podgroup).tolist(), strict=True))
    obstacles = tuple(
        replace(
            one,
            podgroup=podgroup if one.podgroup == why.preemptor else one.podgroup,
            task=task_of.get(one.task, one.task),
        )
        for one in why.obstacles
    )
    return replace(why, preemptor=podgroup, obstacles=obstacles)


def _leading(snapshot: Snapshot, some: Iterable[GangGroup]) -> tuple[list[GangGroup], PodgroupKind | None]:
    """The gang groups of the kind of the first one, up to one of another kind; and that kind.

    None if the first is of no kind, or asks for a domain of its own.
    """
    kinds = kinds_in_turn(snapshot, some)
    first, kind = next(kinds, ((), None))
    if kind is None or kind.has_levels:
        return [], None
    found = [first]
    for one, other in kinds:
        if other != kind:
            break
        found.append(one)
    return found, kind


def as_one(some: Iterable[GangGroup], attempt: Attempt) -> Attempt:
    """The attempt of the first of them for all of them."""
    return replace(attempt, podgroups=tuple(row for one in some for row in one))
