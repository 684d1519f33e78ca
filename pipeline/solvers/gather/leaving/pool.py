"""The candidates in a domain, and the order in which they may stay: the job-aware cost of victims.

The most important return first. Of one priority a gang that breaks costs all that it holds, wherever it runs; tasks
beyond its minimum break nothing; a gang that is broken already cannot break. So candidates return gang by gang: first
the core of a gang, all together, then tasks beyond it, last tasks of gangs that are broken. No victim is free.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.cluster.orders import dense_rank, unique_inverse
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.price import in_units, needed_by
from pipeline.plugins.plugin import Preemptor

#: The part of its gang that a task belongs to: the minimum, beyond it, or a gang that is broken already.
_CORE, _SURPLUS, _BROKEN = range(3)


@dataclass(frozen=True)
class Pool:
    """Candidates in a domain.

    Attributes
    ----------
    rows: int64[C]
        Task rows.
    node: int64[C]
        The node that each runs on.
    held: int64[C, R'], frees: int64[C, R]
        What each holds of each column of the need, and how much it frees of the quota that the gang lacks.
    unit: int64[C]
        Candidates with one number stay together; NONE: each by itself.
    part, top: int64[C]
        The part of its gang that each belongs to; the highest priority in its unit.
    gain: int64[C]
        How many slots each brings if it alone leaves; 0 where that is not asked.
    orders
        Orders in which candidates return: int64[C] positions each, each unit in one piece.
    """

    rows: Rows
    node: Rows
    held: Longs
    frees: Longs
    unit: Longs
    part: Longs
    top: Longs
    gain: Longs
    orders: tuple[Rows, ...]

    @property
    def whole(self) -> Longs:
        """int64[C]: the unit of each; one that is by itself has a number of its own."""
        return _whole(self.unit)

    @property
    def usual(self) -> Rows:
        """int64[C]: the first of the orders, the usual one."""
        return self.orders[0]

    @property
    def place(self) -> Longs:
        """int64[C]: the position of each in the usual order."""
        return np.argsort(self.usual)


def rows_in(snapshot: Snapshot, candidate: Bools, start: int, stop: int, highest: int) -> Rows:
    """The candidates (bool[T]) on nodes ``start:stop`` whose podgroups' priority is at most ``highest``."""
    at = snapshot.occupancy.start
    rows = np.sort(snapshot.occupancy.task[at[start] : at[stop]])
    return rows[candidate[rows] & (snapshot.podgroups.priority[snapshot.tasks.podgroup[rows]] <= highest)]


def pool_of(
    snapshot: Snapshot, rows: Rows, gang: Preemptor, lost: Floats, held: Longs, frees: Longs, gain: Longs | None
) -> Pool:
    """The candidates ``rows``; what the gang asks for is the unit of work. ``held``, ``frees``, ``gain``: see ``Pool``.

    Where it is known what they gain, those that gain most are beyond the minimum; and there is one order, the first by
    the work that is lost.

    Parameters
    ----------
    lost: float64[G]
        See ``lost_work``.
    """
    tasks, gains = snapshot.tasks, np.zeros(len(rows), np.int64) if gain is None else gain
    part, unit = _parts(snapshot, rows, gains)
    top = _highest(snapshot, rows, _whole(unit))
    orders = _orders(snapshot, rows, part, unit, top, gang.request, np.ones(len(lost)) if gain is None else lost)
    return Pool(
        rows, tasks.node[rows].astype(np.int64), held, frees, unit, part, top, gains,
        tuple(islice(orders, None if gain is None else 1)),
    )  # fmt: skip


def orders_up_to(pool: Pool, level: int, slots: Longs) -> Iterator[Rows]:
    """Orders of return in which priorities up to ``level`` count as equal: one so important has to go in any case.

    Of these what breaks nothing goes first; then what comes last in the usual order, or brings most ``slots`` int64[C].
    """
    for keys in ((pool.place,), (pool.place, slots)):
        yield in_pieces(np.lexsort((*keys, pool.part, -np.maximum(pool.top, level))), _whole(pool.unit))


def pool_of_some(pool: Pool, some: Bools) -> Pool:
    """The pool of the candidates ``some`` (bool[C]); they return in the same orders."""
    if some.all():
        return pool
    at = np.cumsum(some) - 1
    orders = tuple(at[order[some[order]]] for order in pool.orders)
    return Pool(
        pool.rows[some], pool.node[some], pool.held[some], pool.frees[some], pool.unit[some], pool.part[some],
        pool.top[some], pool.gain[some], orders,
    )  # fmt: skip


def _parts(snapshot: Snapshot, rows: Rows, gain: Longs) -> tuple[Longs, Longs]:
    """The part of its gang that each candidate belongs to, and its unit: int64[C] each.

    The tasks beyond the minimum are those that gain most, and of equal ones the newest on the first nodes. If roles or
    subgroups bind, all tasks are core.
    """
    tasks, groups = snapshot.tasks, snapshot.podgroups
    owner = tasks.podgroup[rows]
    order = np.lexsort((-tasks.order[rows], tasks.node[rows], -gain, owner))
    arranged = owner[order]
    place = np.empty(len(rows), np.int64)  # of each candidate among those of its podgroup
    place[order] = np.arange(len(rows)) - np.searchsorted(arranged, arranged)
    structured = (np.diff(snapshot.subgroup_start) > 0) | (snapshot.role_minimum > 0)
    spare = np.where(structured, 0, snapshot.counts.ready - groups.min_available)[owner]
    part = np.where(place < spare, _SURPLUS, _CORE)
    part[~minima_met(snapshot).pipelined[owner]] = _BROKEN
    return part, np.where(part == _CORE, owner, NONE).astype(np.int64)


def _whole(unit: Longs) -> Longs:
    """int64[C]: the unit of each candidate; one that is by itself has a number of its own."""
    return np.where(unit == NONE, -1 - np.arange(len(unit)), unit)


def _highest(snapshot: Snapshot, rows: Rows, whole: Longs) -> Longs:
    """int64[C]: the highest priority in the unit of each candidate."""
    tasks, groups = snapshot.tasks, snapshot.podgroups
    priority = np.maximum(groups.priority[tasks.podgroup[rows]], tasks.priority[rows]).astype(np.int64)
    _, inverse = unique_inverse(whole)
    top = np.full(len(rows), np.iinfo(np.int64).min)
    np.maximum.at(top, inverse, priority)
    return np.asarray(top[inverse])


def _orders(
    snapshot: Snapshot, rows: Rows, part: Longs, unit: Longs, top: Longs, requested: Longs, lost: Floats
) -> Iterator[Rows]:
    """By priority, then part; then what loses more work first, or less, or what is on a costlier node.

    Among equals those on the last nodes return first, then the oldest podgroup, then its oldest task.
    """
    tasks, needed = snapshot.tasks, needed_by(requested)
    owner, node = tasks.podgroup[rows], tasks.node[rows]
    own = in_units(snapshot.shapes.request, needed)[tasks.shape[rows]]
    work = np.where(part == _CORE, in_units(snapshot.podgroup_held[owner], needed), own) * lost[owner]
    whole, at = _whole(unit), np.full(len(rows), np.iinfo(np.int64).max)
    _, inverse = unique_inverse(whole)
    np.minimum.at(at, inverse, node)  # a unit has the place of its first node
    last = (tasks.order[rows], snapshot.podgroups.order[owner], -at[inverse])
    yield np.lexsort((*last, -work, part, -top))  # what the first two go by is the same for all of a unit
    yield np.lexsort((*last, work, part, -top))
    cost = np.bincount(node - node.min(initial=0), weights=work)[node - node.min(initial=0)] if len(rows) else work
    highest = np.full(int(node.max(initial=0)) + 1, np.iinfo(np.int64).min)
    np.maximum.at(highest, node, top)
    yield in_pieces(np.lexsort((*last, -dense_rank(cost), part, -highest[node])), whole)


def in_pieces(order: Rows, whole: Longs) -> Rows:
    """int64[C]: the order with each unit (``whole`` int64[C]) in one piece, at the place of its first candidate."""
    _, inverse = unique_inverse(whole)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    lead = np.full(len(order), len(order), np.int64)
    np.minimum.at(lead, inverse, place)
    return np.lexsort((place, lead[inverse]))
