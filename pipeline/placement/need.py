"""What a starving podgroup needs: its pending tasks by shape, and how many of them reach the minimum.

Only the minimum may evict; the surplus is placed where there is room ("Gang-Aware Preemption and Reclaim" leaves this
open; upstream asks for all pending tasks at once).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows, any_true, frozen, is_among, sealed, sizes
from pipeline.cluster.orders import none_last, occurred_before, unique_inverse
from pipeline.cluster.rules.reaching import reaching_minima
from pipeline.cluster.snapshot import Snapshot
from pipeline.keeping import cached_property
from pipeline.records import replace


class Part(NamedTuple):
    """Tasks that share a topology constraint of their own: a subgroup, or a podgroup of a gang group.

    Attributes
    ----------
    parent
        Index of the part that contains it, NONE at the top.
    required_level, preferred_level
        Level rows within which all its tasks must, or should, lie; NONE without one.
    subgroup
        Row of the subgroup, NONE for a whole podgroup.
    podgroup
        Row of the podgroup.
    """

    parent: int
    required_level: int
    preferred_level: int
    subgroup: int
    podgroup: int


@dataclass(frozen=True)
class Need:
    """Pending tasks of one preemptor, those of the minimum first.

    Attributes
    ----------
    podgroups
        The podgroups that must start together, one unless they form a gang group.
    tasks: int64[K]
        Task rows in placement order; the first ``minimum`` of them reach the minimum, the others are surplus.
    minimum
        How many tasks must be placed; 0: none, all are surplus.
    shape: int32[K]
        Per task the row in ``shapes``.
    shapes: int64[S]
        Distinct rows of ``Snapshot.shapes`` in the order of the tasks, so that row numbers, which depend on what became
        known first, decide nothing.
    request: int64[S, R]
        What a task of each shape asks for.
    count: int64[S]
        How many tasks of each shape belong to the minimum.
    part: int32[K]
        Per task its part.
    parts
        Parts, parents before children; a preemptor without inner constraints has one, of level NONE.
    short
        How many tasks the minimum lacks because they do not exist or cannot be placed anywhere; 0 if it is in reach.
    """

    podgroups: tuple[int, ...]
    tasks: Rows
    minimum: int
    shape: Ids
    shapes: Rows
    request: Longs
    count: Longs
    part: Ids
    parts: tuple[Part, ...]
    short: int = 0

    @cached_property
    def total(self) -> Longs:
        """int64[R]: resources of the minimum together."""
        return sealed(self.count @ self.request)

    @cached_property
    def inside(self) -> tuple[Rows, ...]:
        """For each part the positions int64[K] of its tasks and of those of the parts inside it, ascending."""
        parents, result = [part.parent for part in self.parts], list[Rows]()
        for one in range(len(parents)):
            mine = {one}
            mine.update(other for other in range(one, len(parents)) if parents[other] in mine)
            result.append(sealed(np.flatnonzero(is_among(self.part, sorted(mine)))))
        return tuple(result)

    @cached_property
    def plain(self) -> bool:
        """Whether the domain alone decides: no subgroup, and no podgroup of several, with a topology of its own."""
        inner = (part for part in self.parts if part.subgroup != NONE or len(self.podgroups) > 1)
        return all(part.required_level == NONE and part.preferred_level == NONE for part in inner)


def task_order(snapshot: Snapshot, rows: Rows) -> Rows:
    """int64[K]: ``rows`` in placement order: higher priority, lower index, older, then name."""
    return _in_order(snapshot, rows, np.zeros(len(rows), np.int64))


def _in_order(snapshot: Snapshot, rows: Rows, owner: Rows) -> Rows:
    """The same by ``owner`` (int64[K]) first."""
    if len(rows) <= 1:
        return rows
    tasks = snapshot.tasks
    keys = tasks.order[rows], none_last(tasks.index[rows]), -tasks.priority[rows].astype(np.int64), owner
    return rows[np.lexsort(keys)]


def _parts_of(snapshot: Snapshot, podgroups: Rows, tasks: Rows, owner: Rows) -> tuple[list[Part], Ids]:
    """The parts of podgroups (int64[P]), and the part of each task, int32[K], whose podgroup ``owner`` is."""
    groups, table, parts, top = snapshot.podgroups, snapshot.subgroups, list[Part](), list[int]()
    columns = groups.required_level, groups.preferred_level, snapshot.subgroup_start, snapshot.subgroup_start[1:]
    part_of = dict[int, int]()
    for podgroup, *said in zip(podgroups.tolist(), *[one[podgroups].tolist() for one in columns], strict=True):
        required, preferred, first, stop = said
        top.append(len(parts))
        parts.append(Part(NONE, required, preferred, NONE, podgroup))
        for row in range(first, stop):
            parent = int(table.parent[row])
            inside = top[-1] if parent == NONE else part_of[parent]
            part_of[row] = len(parts)
            parts.append(Part(inside, int(table.required_level[row]), int(table.preferred_level[row]), row, podgroup))
    part = np.array(top, np.int32)[owner]
    if part_of and any_true(inside := snapshot.tasks.subgroup[tasks] != NONE):
        subgroups, at = unique_inverse(snapshot.tasks.subgroup[tasks[inside]])  # a subgroup is of one podgroup
        part[inside] = np.array([part_of[row] for row in subgroups.tolist()], np.int32)[at]
    return parts, part


def need_of(
    snapshot: Snapshot,
    podgroups: Sequence[int],
    *,
    surplus: bool = True,
    most: Longs | None = None,
    without: frozenset[int] = frozenset(),
    among: Rows | None = None,
) -> Need:
    """What the podgroups need together.

    Parameters
    ----------
    podgroups
        Rows that must start together, in order.
    surplus
        Whether tasks beyond the minimum are wanted as well.
    most: int64[shapes]
        How many tasks of each of ``Snapshot.shapes`` can be placed at most; the others are left out.
    without
        Rows of leaf subgroups whose tasks are left out.
    among: int64[K]
        Waiting tasks to choose from; None: all of them.
    """
    known, asked = snapshot.answers_about(podgroups, need_of), (tuple(podgroups), surplus)
    limited = most is not None or without or among is not None
    if not limited and asked in known:
        return known[asked]
    groups = np.array(podgroups, np.int64)
    waiting, start = snapshot.waiting_of(groups)
    owner = np.arange(len(groups)).repeat(sizes(start[1:]))
    waiting = _in_order(snapshot, waiting, owner)
    if limited:
        left = _left(snapshot, waiting, owner, most, without, among)
        waiting, owner = waiting[left], owner[left]
    need = _of_tasks(snapshot, groups, waiting, owner, surplus)
    if not limited:
        known[asked] = need
    return need


def _of_tasks(snapshot: Snapshot, groups: Rows, waiting: Rows, owner: Rows, surplus: bool) -> Need:
    """What podgroups (int64[P]) need of waiting tasks in order (int64[K]); ``owner`` is the position of each's."""
    leads, lacking = reaching_minima(snapshot, groups, waiting, owner)
    if not surplus:
        waiting, owner, leads = waiting[leads], owner[leads], leads[leads]
    minimum = int(np.count_nonzero(leads))
    if minimum < len(leads):
        order = (~leads).argsort(kind="stable")
        waiting, owner = waiting[order], owner[order]
    tasks = waiting
    parts, part = _parts_of(snapshot, groups, tasks, owner)
    shapes, shape = _by_appearance(snapshot.tasks.shape[tasks])
    return Need(
        podgroups=tuple(groups.tolist()),
        tasks=sealed(tasks),
        minimum=minimum,
        shape=sealed(shape.astype(np.int32)),
        shapes=sealed(shapes.astype(np.int64)),
        request=sealed(snapshot.shapes.request[shapes]),
        count=sealed(np.bincount(shape[:minimum], minlength=len(shapes))),
        part=sealed(part),
        parts=tuple(parts),
        short=int(lacking.sum()),
    )


def _by_appearance(values: Ids) -> tuple[Ids, Rows]:
    """The different values, those that come first before the others, and which of them each is."""
    kinds, kind = unique_inverse(values)
    if len(kinds) == 1:
        return kinds, kind
    first = np.empty(len(kinds), np.int64)
    first[kind[::-1]] = np.arange(len(values))[::-1]  # of equal indices the last one is written
    by_place = first.argsort()
    return kinds[by_place], by_place.argsort()[kind]


def _left(
    snapshot: Snapshot, rows: Rows, owner: Rows, most: Longs | None, without: frozenset[int], among: Rows | None
) -> Bools:
    """bool[K]: tasks in order that are not left out; see ``need_of``."""
    left = np.ones(len(rows), bool) if among is None else is_among(rows, among)
    if without:
        left &= ~is_among(snapshot.tasks.subgroup[rows], sorted(without))
    if most is not None:
        kind, some = snapshot.tasks.shape[rows], np.flatnonzero(left)
        left[some] = occurred_before(owner[some] * len(most) + kind[some]) < most[kind[some]]
    return left


def without_shapes(snapshot: Snapshot, need: Need, shapes: Rows, *, surplus: bool = True) -> Need:
    """What the podgroups of a need need without tasks of some shapes (int64[K], rows of ``Snapshot.shapes``)."""
    most = np.full(len(snapshot.shapes), len(need.tasks), np.int64)
    most[shapes] = 0
    return need_of(snapshot, need.podgroups, surplus=surplus, most=most)


def need_of_all(need: Need) -> Need:
    """The need in which every task belongs to the minimum: all tasks to choose from."""
    count = np.bincount(need.shape, minlength=len(need.shapes))
    return replace(need, minimum=len(need.tasks), count=frozen(count, np.int64))
