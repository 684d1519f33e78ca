"""Podgroups of one kind: what is worked out for one of them on a snapshot holds for the others as well.

The idea is that of KAI Scheduler's scheduling signatures.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Rows
from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.cluster.snapshot import Snapshot

#: How many times as many podgroups are looked up the next time.
_FASTER = 8


class PodgroupKind(NamedTuple):
    """What podgroups of one kind have in common.

    Attributes
    ----------
    minimum, waiting, shape
        How many tasks it needs, how many wait, and the shape of those.
    every_may_preempt, every_preemptible
        Of its waiting tasks.
    labels
        Those of each waiting task, in order.
    """

    queue: int
    priority: int
    namespace: int
    minimum: int
    waiting: int
    shape: int
    required_level: int
    preferred_level: int
    gather: int
    may_preempt: bool
    preemptible: bool
    match_policy: int
    every_may_preempt: bool
    every_preemptible: bool
    labels: bytes

    @property
    def has_levels(self) -> bool:
        """Whether it asks for a domain of its own."""
        return not self.required_level == self.preferred_level == self.gather == NONE

    @property
    def rank(self) -> "PodgroupKind":
        """What it has in common with those that ask for something else, but rank as it does."""
        return self._replace(minimum=0, waiting=0, shape=NONE, labels=b"")


def podgroup_kind(snapshot: Snapshot, gang_group: GangGroup) -> PodgroupKind | None:
    """What decides where there is room for a podgroup; None if more than this decides.

    That is for gang groups, roles, subgroups, tasks that differ, and podgroups that hold or are promised room already.
    """
    if len(gang_group) > 1:
        return None
    known, row = snapshot.answers_about(gang_group, podgroup_kind), gang_group[0]
    if row not in known:
        _look_up(snapshot, np.array([row]))
    return known[row]


def kinds_in_turn(snapshot: Snapshot, some: Iterable[GangGroup]) -> Iterator[tuple[GangGroup, PodgroupKind | None]]:
    """Each gang group with its kind. They are looked up in growing batches, which is several times as fast."""
    rest, many = iter(some), 1
    while ahead := list(islice(rest, many)):
        unknown = [one[0] for one in ahead if one[0] not in snapshot.answers_about(one[:1], podgroup_kind)]
        if unknown:
            _look_up(snapshot, np.array(unknown, np.int64))
        for one in ahead:
            yield one, podgroup_kind(snapshot, one)
        many *= _FASTER


def _look_up(snapshot: Snapshot, rows: Rows) -> None:
    """Work out and remember the kinds of podgroups (int64[K]), as if each were alone."""
    groups, tasks = snapshot.podgroups, snapshot.tasks
    waiting, start = snapshot.waiting_of(rows)
    size, shape = np.diff(start), tasks.shape[waiting]
    owner = np.arange(len(rows)).repeat(size)
    rights = [_all_of_each(column[waiting], owner, len(rows)) for column in (tasks.may_preempt, tasks.preemptible)]
    has = (size > 0) & _all_of_each(shape == shape[start[owner]], owner, len(rows)) & _is_simple(snapshot, rows)
    some, first, stop = rows[has], start[:-1][has], start[1:][has]
    columns = (
        groups.queue[some], groups.priority[some], groups.namespace[some], groups.min_available[some], size[has],
        shape[first], groups.required_level[some], groups.preferred_level[some], groups.gather[some],
        groups.may_preempt[some], groups.preemptible[some], groups.match_policy[some], *(one[has] for one in rights),
    )  # fmt: skip
    kinds = dict.fromkeys(rows.tolist()) | _kinds(some, columns, tasks.label_set[waiting], first, stop)
    for row, kind in kinds.items():
        snapshot.answers_about((row,), podgroup_kind)[row] = kind


def _all_of_each(holds: Bools, owner: Rows, many: int) -> Bools:
    """bool[K]: whether it holds for each task of a podgroup; ``owner`` is the podgroup of each task."""
    result = np.ones(many, np.bool_)
    result[owner[~holds]] = False
    return result


def _is_simple(snapshot: Snapshot, rows: Rows) -> Bools:
    """bool[K]: podgroups that hold no room and are promised none, without minima of roles and without subgroups."""
    counts, start = snapshot.counts, snapshot.subgroup_start
    without_room = (counts.ready[rows] == 0) & (counts.waiting[rows] == 0)
    return np.asarray(without_room & (snapshot.role_minimum[rows] == 0) & (start[rows + 1] == start[rows]))


def _kinds(rows: Rows, columns: tuple[Any, ...], labels: Ids, first: Rows, stop: Rows) -> dict[int, PodgroupKind]:
    """The kind of each podgroup by row: ``columns`` are its fields but for the labels, ``labels[first:stop]``."""
    if len(rows) > 1 and all((one == one[0]).all() for one in (*columns, labels)):  # as they mostly are
        kind = PodgroupKind._make((*(one[0].item() for one in columns), labels[first[0] : stop[0]].tobytes()))
        return dict.fromkeys(rows.tolist(), kind)
    spans = zip(rows.tolist(), first.tolist(), stop.tolist(), strict=True)
    return {
        row: PodgroupKind._make((*said, labels[begin:end].tobytes()))
        for (row, begin, end), said in zip(spans, zip(*(one.tolist() for one in columns), strict=True), strict=True)
    }
