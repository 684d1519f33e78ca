"""What quotas permit, counted off along the usual order of candidates; and what they refuse where that is too little.

A quota is used up along an order, also by podgroups that bring the gang no slot; and the last podgroup that a queue
loses may take it further down than those before it. So where the usual order leaves too little, victims are chosen
first, and the quota is asked about them. What it refuses returns before all others the next time, as in squeaky wheel
optimization (Joslin and Clements 1999). Where candidates are few, every set is tried instead.
"""

from collections.abc import Iterator

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Rows
from pipeline.cluster.orders import unique_inverse
from pipeline.decision.price import in_units, needed_by
from pipeline.policy import Purpose
from pipeline.solvers.gather.leaving.pool import Pool, pool_of_some
from pipeline.solvers.gather.leaving.search import GatherArea, GatherSearch, slots_brought

#: Amounts and efficiencies are equal that agree in this many decimals.
_DECIMALS = 6


def permitted(search: GatherSearch, pool: Pool) -> Bools:
    """bool[C]: the candidates that quotas and budgets permit, asked about in the reverse of the order of return."""
    may, order = np.ones(len(pool.rows), bool), pool.usual[::-1]
    if search.host.has_quota(search.preemptor) and len(order):
        may[order] = search.host.bundle_quota_filter(search.preemptor, pool.rows[order], pool.unit[order])
    return may


def differs_by_order(search: GatherSearch) -> bool:
    """Whether another order may permit more: in reclaim, unless quotas let not one task go. Preempt keeps the order."""
    if search.preemptor.purpose is not Purpose.RECLAIM or not search.host.has_quota(search.preemptor):
        return False
    rows = np.flatnonzero(search.candidate)
    return bool(search.host.bundle_quota_filter(search.preemptor, rows).any())


def of_losers(search: GatherSearch, pool: Pool) -> Pool:
    """The candidates whose queues may lose something."""
    return pool_of_some(pool, search.host.may_lose(search.preemptor)[search.snapshot.queue_of(pool.rows)])


def orders_otherwise(search: GatherSearch, area: GatherArea, pool: Pool) -> Iterator[Rows]:
    """int64[C] each: the usual orders, and one in which units return first that bring few slots for what they hold."""
    yield from pool.orders
    _, unit = unique_inverse(pool.whole)
    size = np.round(np.bincount(unit, weights=_held(search, pool.rows))[unit], _DECIMALS)
    thrift = np.round(slots_brought(search, area, pool) / np.maximum(size, 10.0**-_DECIMALS), _DECIMALS)
    yield np.lexsort((pool.place, -size, thrift))


def refused_of(search: GatherSearch, victims: Rows) -> Rows:
    """int64[K]: victims that quotas refuse, if whole podgroups or single tasks go one after the other.

    The largest go last. Of the two the one counts by which fewer are refused.
    """
    owner, held = search.snapshot.tasks.podgroup[victims].astype(np.int64), _held(search, victims)
    each = np.full(len(victims), NONE, np.int64)
    refused = []
    for unit, size in ((owner, np.bincount(owner, weights=held)[owner]), (each, held)):
        order = np.lexsort((unit, np.round(size, _DECIMALS)))
        may = search.host.bundle_quota_filter(search.preemptor, victims[order], unit[order])
        refused.append(victims[order[~may]])
    return min(refused, key=len)


def _held(search: GatherSearch, rows: Rows) -> Floats:
    """float64[K]: what each of some tasks holds, in units of the need."""
    worth = in_units(search.snapshot.shapes.request, needed_by(search.preemptor.request))
    return worth[search.snapshot.tasks.shape[rows]]
