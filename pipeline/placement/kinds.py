"""Podgroups of one kind: what is worked out for one of them on a snapshot holds for the others as well.

The idea is that of KAI Scheduler's scheduling signatures.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Rows
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


def kind_of(snapshot: Snapshot, gang_group: tuple[int, ...]) -> PodgroupKind | None:
    """What decides where there is room for a podgroup; None if more than this decides.

    That is for gang groups, roles, subgroups, tasks that differ, and podgroups that hold or are promised room already.
    """
    if len(gang_group) > 1:
        return None
    known, row = snapshot.answers(kind_of), gang_group[0]
    if row not in known:
        _look_up(snapshot, np.array([row]))
    return known[row]


def kinds_in_turn(
    snapshot: Snapshot, some: Iterable[tuple[int, ...]]
) -> Iterator[tuple[tuple[int, ...], PodgroupKind | None]]:
    """Each gang group with its kind. They are looked up in growing batches, which is several times as fast."""
    rest, many, known = iter(some), 1, snapshot.answers(kind_of)
    while ahead := list(islice(rest, many)):
        unknown = [one[0] for one in ahead if one[0] not in known]
        if unknown:
            _look_up(snapshot, np.array(unknown, np.int64))
        for one in ahead:
            yield one, known[one[0]] if len(one) == 1 else None
        many *= _FASTER


def _look_up(snapshot: Snapshot, rows: Rows) -> None:
    """Work out and remember the kinds of podgroups (int64[K]), as if each were alone."""
    groups, counts, tasks = snapshot.podgroups, snapshot.counts, snapshot.tasks
    waiting, start = snapshot.waiting_of(rows)
    size, shape = np.diff(start), tasks.shape[waiting]
    owner = np.repeat(np.arange(len(rows)), size)
    alike = size > 0
    alike[owner[shape != shape[start[owner]]]] = False
    alike &= (counts.ready[rows] == 0) & (counts.waiting[rows] == 0) & (snapshot.role_minimum[rows] == 0)
    alike &= snapshot.subgroup_start[rows + 1] == snapshot.subgroup_start[rows]
    rights = np.ones((2, len(rows)), bool)
    for right, column in zip(rights, (tasks.may_preempt, tasks.preemptible), strict=True):
        right[owner[~column[waiting]]] = False
    known, labels = snapshot.answers(kind_of), tasks.label_set[waiting]
    known.update(dict.fromkeys(rows[~alike].tolist()))
    some, first, stop = rows[alike], start[:-1][alike], start[1:][alike]
    columns = (
        groups.queue[some], groups.priority[some], groups.namespace[some], groups.min_available[some], size[alike],
        shape[first], groups.required_level[some], groups.preferred_level[some], groups.gather[some],
        groups.may_preempt[some], groups.preemptible[some], groups.match_policy[some], *rights[:, alike],
    )  # fmt: skip
    if len(some) > 1 and all((one == one[0]).all() for one in (*columns, labels)):  # as they mostly are
        kind = PodgroupKind._make((*(one[0].item() for one in columns), labels[first[0] : stop[0]].tobytes()))
        known.update(dict.fromkeys(some.tolist(), kind))
        return
    spans = zip(some.tolist(), first.tolist(), stop.tolist(), strict=True)
    for (row, begin, end), said in zip(spans, zip(*(one.tolist() for one in columns), strict=True), strict=True):
        known[row] = PodgroupKind._make((*said, labels[begin:end].tobytes()))
