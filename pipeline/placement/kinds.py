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
    minimum, waiting
        How many tasks it needs, and how many wait.
    every_may_preempt, every_preemptible
        Of its waiting tasks.
    shapes, labels
        Those of each waiting task, in order.
    """

    queue: int
    priority: int
    namespace: int
    minimum: int
    waiting: int
    required_level: int
    preferred_level: int
    gather: int
    may_preempt: bool
    preemptible: bool
    match_policy: int
    every_may_preempt: bool
    every_preemptible: bool
    shapes: bytes
    labels: bytes

    @property
    def has_levels(self) -> bool:
        """Whether it asks for a domain of its own."""
        return not self.required_level == self.preferred_level == self.gather == NONE

    @property
    def rank(self) -> "PodgroupKind":
        """What it has in common with those that ask for something else, but rank as it does."""
        return self._replace(minimum=0, waiting=0, shapes=b"", labels=b"")


def podgroup_kind(snapshot: Snapshot, gang_group: GangGroup) -> PodgroupKind | None:
    """What decides where there is room for a podgroup; None if more than this decides.

    That is for gang groups, subgroups, podgroups that hold or are promised room already, and for those that can do
    without some task, if their tasks differ or roles have minima: which ones they can do without is not said.
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
    alike = _all_of_each(shape == shape[start[owner]], owner, len(rows)) & (snapshot.role_minimum[rows] == 0)
    has = (size > 0) & (alike | (size == groups.min_available[rows])) & _is_simple(snapshot, rows)
    some, first, stop = rows[has], start[:-1][has], start[1:][has]
    columns = (
        groups.queue[some], groups.priority[some], groups.namespace[some], groups.min_available[some], size[has],
        groups.required_level[some], groups.preferred_level[some], groups.gather[some], groups.may_preempt[some],
        groups.preemptible[some], groups.match_policy[some], *(one[has] for one in rights),
    )  # fmt: skip
    kinds = dict.fromkeys(rows.tolist()) | _kinds(some, columns, (shape, tasks.label_set[waiting]), first, stop)
    for row, kind in kinds.items():
        snapshot.answers_about((row,), podgroup_kind)[row] = kind


def _all_of_each(holds: Bools, owner: Rows, many: int) -> Bools:
    """bool[K]: whether it holds for each task of a podgroup; ``owner`` is the podgroup of each task."""
    result = np.ones(many, np.bool_)
    result[owner[~holds]] = False
    return result


def _is_simple(snapshot: Snapshot, rows: Rows) -> Bools:
    """bool[K]: podgroups that hold no room and are promised none, without subgroups."""
    counts, start = snapshot.counts, snapshot.subgroup_start
    without_room = (counts.ready[rows] == 0) & (counts.waiting[rows] == 0)
    return np.asarray(without_room & (start[rows + 1] == start[rows]))


def _kinds(
    rows: Rows, columns: tuple[Any, ...], of_tasks: tuple[Ids, ...], first: Rows, stop: Rows
) -> dict[int, PodgroupKind]:
    """The kind of each podgroup by row: ``columns`` are its fields, then come those of its tasks ``first:stop``."""

    def kind(said: Iterable[Any], begin: int, end: int) -> PodgroupKind:
        return PodgroupKind._make((*said, *(one[begin:end].tobytes() for one in of_tasks)))

    if len(rows) > 1 and all((one == one[0]).all() for one in (*columns, *of_tasks)):  # as they mostly are
        return dict.fromkeys(rows.tolist(), kind((one[0].item() for one in columns), first[0], stop[0]))
    spans = zip(rows.tolist(), first.tolist(), stop.tolist(), strict=True)
    return {
        row: kind(said, begin, end)
        for (row, begin, end), said in zip(spans, zip(*(one.tolist() for one in columns), strict=True), strict=True)
    }
