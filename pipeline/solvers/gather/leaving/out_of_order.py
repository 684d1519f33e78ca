"""What quotas permit, counted off along the usual order of candidates and, where that leaves too little, along others.

A quota is used up along an order, also by podgroups that bring the gang no slot; and the last podgroup that a queue
loses may take it further down than those before it. So victims are chosen by slots first, and the quota is asked about
them; or it is counted off along a few orders of those that bring slots. What is permitted then returns in the usual
order.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Longs, Rows
from pipeline.decision.price import in_units, needed_by
from pipeline.policy import Purpose
from pipeline.solvers.gather.leaving.pool import Pool
from pipeline.solvers.gather.leaving.search import GatherArea, GatherSearch, leaving, slots_brought, slots_suffice

#: Amounts and efficiencies are equal that agree in this many decimals.
_DECIMALS = 6


class _Unit(NamedTuple):
    """Of the unit of each candidate the slots that it brings, int64[C], and its place in the usual order, int64[C]."""

    slots: Longs
    place: Longs


def permitted(search: GatherSearch, pool: Pool) -> Bools:
    """bool[C]: the candidates that quotas and budgets permit, asked about in the reverse of the order of return."""
    if not search.host.has_quota(search.preemptor) or len(pool.rows) == 0:
        return np.ones(len(pool.rows), bool)
    return _asked(search, pool, pool.usual[::-1])


def differs_by_order(search: GatherSearch) -> bool:
    """Whether another order may permit more: in reclaim, unless quotas let not one task go. Preempt keeps the order."""
    if search.preemptor.purpose is not Purpose.RECLAIM or not search.host.has_quota(search.preemptor):
        return False
    rows = np.flatnonzero(search.candidate)
    return bool(search.host.bundle_quota_filter(search.preemptor, rows).any())


def permitted_otherwise(search: GatherSearch, area: GatherArea, pool: Pool) -> list[Bools]:
    """Sets of candidates (bool[C]) that quotas permit along other orders and that leave slots enough; each once."""
    sets = (*_needed(search, area, pool), *_by_slots(search, area, pool), _task_by_task(search, pool))
    distinct = {some.tobytes(): some for some in sets}
    return [some for some in distinct.values() if slots_suffice(search, area, pool, some)]


def _needed(search: GatherSearch, area: GatherArea, pool: Pool) -> Iterator[Bools]:
    """What has to go by each order of return if no quota is asked, where quotas permit that with the biggest last."""
    _, unit = np.unique(_places(pool), return_inverse=True)
    held = _held(search, pool)
    for order in pool.orders:
        leaves = leaving(search, area, pool, order)
        size = np.bincount(unit, weights=held * leaves)[unit]
        along = np.lexsort((unit, size))
        if _asked(search, pool, along[leaves[along]])[leaves].all():
            yield leaves


def _task_by_task(search: GatherSearch, pool: Pool) -> Bools:
    """bool[C]: what is permitted in the usual order where a queue may lose a part of a unit, though not all of it."""
    may, order = np.zeros(len(pool.rows), bool), pool.usual[::-1]
    may[order] = search.host.bundle_quota_filter(search.preemptor, pool.rows[order])
    return may


def _by_slots(search: GatherSearch, area: GatherArea, pool: Pool) -> Iterator[Bools]:
    """What is permitted among units that bring slots by themselves.

    Those first that bring all that is missing; then in the usual order, and by slots for what they hold, of these the
    smallest first, both with the last unit of each queue left out for one that brings what is missing.
    """
    slots, missing = slots_brought(search, area, pool)
    if not slots.any():
        return
    unit, some = _Unit(slots, _places(pool)), slots > 0
    yield _asked(search, pool, _bringing(unit, some, missing))
    _, number = np.unique(unit.place, return_inverse=True)
    size = np.round(np.bincount(number, weights=_held(search, pool))[number], _DECIMALS)
    thrift = np.round(slots / np.maximum(size, 10.0**-_DECIMALS), _DECIMALS)
    for keys in ((-unit.place,), (-unit.place, size, -thrift)):
        order = _sorted(keys, some)
        may = _asked(search, pool, order)
        yield _last_exchanged(search, pool, unit, order[may[order]], missing)


def _last_exchanged(search: GatherSearch, pool: Pool, unit: _Unit, order: Rows, missing: int) -> Bools:
    """bool[C]: what is permitted in an order without the last unit of each queue, and then one that brings the rest."""
    _, last = np.unique(search.snapshot.queue_of(pool.rows[order[::-1]]), return_index=True)
    first = order[~np.isin(unit.place[order], unit.place[order[::-1][last]])]
    _, once = np.unique(unit.place[first], return_index=True)
    rest = unit.slots > 0
    rest[first] = False
    missing -= int(unit.slots[first[once]].sum())
    return _asked(search, pool, np.concatenate([first, _bringing(unit, rest, missing)]))


def _bringing(unit: _Unit, some: Bools, missing: int) -> Rows:
    """int64[K]: those of ``some`` whose unit brings what is missing, in the usual order; then those that bring most."""
    enough = unit.slots >= missing
    return _sorted((-unit.place, np.where(enough, 0, -unit.slots), ~enough), some)


def _sorted(keys: tuple[Rows | Floats | Bools, ...], some: Bools) -> Rows:
    """int64[K]: the candidates ``some`` (bool[C]) by keys, the last first; the first tells units apart."""
    order = np.lexsort((np.arange(len(some)), *keys))
    return order[some[order]]


def _asked(search: GatherSearch, pool: Pool, order: Rows) -> Bools:
    """bool[C]: the candidates that quotas permit along an order, int64[K], each unit in one piece."""
    may = np.zeros(len(pool.rows), bool)
    may[order] = search.host.bundle_quota_filter(search.preemptor, pool.rows[order], pool.unit[order])
    return may


def _places(pool: Pool) -> Longs:
    """int64[C]: where in the usual order of return the unit of each candidate begins."""
    order = pool.usual
    place, unit = np.empty(len(order), np.int64), pool.unit[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (unit[1:] != unit[:-1]) | (unit[1:] < 0)
    place[order] = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    return place


def _held(search: GatherSearch, pool: Pool) -> Floats:
    """float64[C]: what each candidate holds, in units of the need."""
    worth = in_units(search.snapshot.shapes.request, needed_by(search.preemptor.request))
    return worth[search.snapshot.tasks.shape[pool.rows]]
