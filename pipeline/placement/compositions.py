"""Which tasks, roles and subgroups make up the minimum, where more of them wait than are needed.

The minimum of an elastic gang, or of one that needs only some of its subgroups, can be made up in several ways. The
first way (`need.need_of`) takes the parts that lack least and come first in order. Where it fits nowhere, or costs more
than another way, the other one is the need.
"""

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.need import Need, need_of, task_order

#: Where there are too many ways, at most this many are looked at: each costs a search.
_MOST = 8
#: Up to this many combinations of kinds and counts are all gone through.
_ALL = 128
#: Needs of more shapes are not compared.
_SHAPES = 6


def compositions(snapshot: Snapshot, first: Need, most: Longs | None = None) -> Iterator[Need]:
    """Needs of the same podgroups, the ``first`` one leading; each is another set of tasks.

    Where kinds and tasks are few, all ways follow. Else each of the others leaves out one subgroup or one shape of an
    earlier one.

    Parameters
    ----------
    most: int64[shapes]
        How many tasks of each of ``Snapshot.shapes`` can be placed at most.
    """
    yield first
    if not has_choice(snapshot, first):
        return
    kinds = _kinds(snapshot, first)
    if math.prod(len(rows) + 1 for rows in kinds) <= _ALL and len(first.tasks) == first.minimum:
        yield from _every(snapshot, first, kinds, most)
        return
    seen, queue, found = {_chosen(first)}, [(first, frozenset[int](), frozenset[int]())], 1
    while queue:
        need, subgroups, shapes = queue.pop(0)
        for other_subgroups, other_shapes in _exclusions(snapshot, need, subgroups, shapes):
            other = _need_without(snapshot, first, most, other_subgroups, other_shapes)
            if other.short or other.minimum == 0 or _chosen(other) in seen:
                continue
            seen.add(_chosen(other))
            queue.append((other, other_subgroups, other_shapes))
            yield other
            found += 1
            if found == _MOST:
                return


def has_choice(snapshot: Snapshot, need: Need) -> bool:
    """Whether other pending tasks, of another kind, could replace some tasks of the minimum."""
    waiting, _ = snapshot.waiting_of(np.array(need.podgroups))
    if len(waiting) == need.minimum:
        return False
    tasks = snapshot.tasks
    kinds = np.stack([tasks.shape[waiting], tasks.subgroup[waiting], tasks.role[waiting]])
    return bool((kinds != kinds[:, :1]).any())


def asks_less(snapshot: Snapshot, one: Need, other: Need, allowed: Callable[[Rows], Bools]) -> bool:
    """Whether ``one`` asks for less than ``other``: it fits wherever that does. False where that is not known.

    Each of its tasks has one of the other's for itself that asks for no less and may use no other nodes: by Hall's
    marriage theorem, over the shapes. Only for needs without parts of their own, and without anti-affinity.

    Parameters
    ----------
    allowed
        The nodes that each of some shapes may use, bool[S, N].
    """
    (few, many), shapes = (one.shapes, other.shapes), snapshot.shapes
    apart = any(not need.plain or len(need.parts) > 1 or concerns(snapshot, need.tasks) for need in (one, other))
    if apart or len(few) > _SHAPES or (one.total >= other.total).all():
        return False
    less = (shapes.request[few][:, None] <= shapes.request[many]).all(axis=2)
    less &= shapes.on_card[few][:, None] <= shapes.on_card[many]
    less &= (allowed(few)[:, None] >= allowed(many)).all(axis=2)
    for some in product((False, True), repeat=len(few)):
        mine = np.array(some)
        if one.count[mine].sum() > other.count[less[mine].any(axis=0)].sum():
            return False
    return True


def _kinds(snapshot: Snapshot, need: Need) -> list[Rows]:
    """The waiting tasks by podgroup, shape, subgroup and role, each kind in placement order."""
    tasks = snapshot.tasks
    waiting = np.concatenate([task_order(snapshot, snapshot.pending(podgroup)) for podgroup in need.podgroups])
    columns = (tasks.podgroup, tasks.shape, tasks.subgroup, tasks.role, tasks.label_set)
    _, kind = unique_inverse(np.stack([column[waiting] for column in columns], axis=1))
    return [waiting[kind == one] for one in dict.fromkeys(kind.tolist())]


def _every(snapshot: Snapshot, first: Need, kinds: list[Rows], most: Longs | None) -> Iterator[Need]:
    """Every way but the first: a number of tasks of each kind that cannot be reduced."""
    seen = {_chosen(first)}
    for many in product(*(range(len(rows), -1, -1) for rows in kinds)):
        rows = np.concatenate([mine[:count] for mine, count in zip(kinds, many, strict=True)])
        asked = np.bincount(snapshot.tasks.shape[rows], minlength=len(snapshot.shapes))
        if len(rows) == 0 or (most is not None and (asked > most).any()):
            continue
        need = need_of(snapshot, first.podgroups, surplus=False, among=rows)
        if need.short or need.minimum != len(rows) or _chosen(need) in seen:
            continue
        seen.add(_chosen(need))
        yield need


def _chosen(need: Need) -> tuple[int, ...]:
    return tuple(np.sort(need.tasks[: need.minimum]).tolist())


def _exclusions(
    snapshot: Snapshot, need: Need, subgroups: frozenset[int], shapes: frozenset[int]
) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
    """What else to leave out: each subgroup of the minimum, then each of its shapes, the last ones in order first."""
    tasks = need.tasks[: need.minimum][::-1]
    for row in dict.fromkeys(snapshot.tasks.subgroup[tasks].tolist()):
        if row != NONE:
            yield subgroups | {row}, shapes
    for row in dict.fromkeys(snapshot.tasks.shape[tasks].tolist()):
        yield subgroups, shapes | {row}


def _need_without(
    snapshot: Snapshot, first: Need, most: Longs | None, subgroups: frozenset[int], shapes: frozenset[int]
) -> Need:
    limits = np.full(len(snapshot.shapes), np.iinfo(np.int64).max) if most is None else most.copy()
    limits[sorted(shapes)] = 0
    surplus = len(first.tasks) > first.minimum
    return need_of(snapshot, first.podgroups, surplus=surplus, most=limits, without=subgroups)
