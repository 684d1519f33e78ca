"""What may leave where disruption budgets bind: candidates return until no budget is exceeded, then as usual.

Counted off along an order a budget may be used up by what makes no room. So here all leave at first, and of those that
exceed a budget such return first whose node would gain few slots for them.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, frozen
from pipeline.cluster.orders import unique_inverse
from pipeline.records import replace
from pipeline.solvers.gather.leaving.pool import Pool, in_pieces
from pipeline.solvers.gather.leaving.reprieve import Exceeded
from pipeline.solvers.gather.leaving.search import (
    GatherArea,
    GatherSearch,
    leaving,
    slots_brought,
    slots_of_nodes,
    slots_suffice,
)

#: Slots for a candidate are compared in parts of one.
_PARTS = 1024


def permitted_by_budgets(search: GatherSearch, area: GatherArea, pool: Pool) -> list[Bools]:
    """Sets of candidates (bool[C]) that leave slots enough and exceed no quota; each once."""
    covered, beyond = _exceeded(search, pool)
    if len(beyond) == 0 or not slots_suffice(search, area, pool, np.ones(len(pool.rows), bool)):
        return []
    sets: dict[bytes, Bools] = {}
    apart = np.full(len(pool.rows), NONE, np.int64)
    units = (pool.unit, apart) if (pool.unit != NONE).any() else (apart,)
    exceeded = _by_candidate(covered, beyond)
    for order, unit in product(_orders(search, area, pool, covered), units):
        some = leaving(search, area, replace(pool, unit=unit), order, exceeded)
        if ((covered & some).sum(axis=1) <= covered.sum(axis=1) - beyond).all() and _lawful(search, pool, some):
            sets[some.tobytes()] = some
    return list(sets.values())


def _exceeded(search: GatherSearch, pool: Pool) -> tuple[Bools, Longs]:
    """Of budgets that do not let all go: what each covers (bool[P, C]), and how many are too many (int64[P])."""
    groups, tasks = search.snapshot.podgroups, search.snapshot.tasks
    where = groups.namespace[tasks.podgroup[pool.rows]], tasks.label_set[pool.rows]
    covered, beyond = [np.zeros((0, len(pool.rows)), bool)], [np.zeros(0, np.int64)]
    for budgets in search.host.budgets_left():
        more = budgets.how_many(*where) - budgets.allowed
        beyond.append(more[more > 0])
        covered.append(budgets.only(np.flatnonzero(more > 0)).covering(*where))
    return np.ascontiguousarray(np.concatenate(covered)), np.concatenate(beyond)


def _by_candidate(covered: Bools, beyond: Longs) -> Exceeded:
    """The same by candidate: each is covered by few of them."""
    candidate, budget = np.nonzero(covered.T)
    start = np.searchsorted(candidate, np.arange(covered.shape[1] + 1))
    return Exceeded(frozen(start, np.int64), frozen(budget, np.int64), frozen(beyond, np.int64))


def _lawful(search: GatherSearch, pool: Pool, some: Bools) -> bool:
    """Whether all quotas permit the set along the usual order."""
    order = pool.usual[::-1]
    order = order[some[order]]
    return bool(search.host.bundle_quota_filter(search.preemptor, pool.rows[order], pool.unit[order]).all())


def _orders(search: GatherSearch, area: GatherArea, pool: Pool, covered: Bools) -> Iterator[Rows]:
    """Orders of return: the usual ones, and those in which what brings the fewest slots comes first."""
    yield from pool.orders
    place, unit = pool.place, pool.whole
    for gain in (slots_brought(search, area, pool), _by_node(search, area, pool, covered)):
        for keys in ((place, gain), (place, gain, -pool.top)):
            yield in_pieces(np.lexsort(keys), unit)


def _by_node(search: GatherSearch, area: GatherArea, pool: Pool, covered: Bools) -> Longs:
    """int64[C]: slots that the node of each gains if all leave, for each candidate there that a budget covers."""
    _, at = unique_inverse(pool.node)
    taken = np.bincount(at, weights=covered.any(axis=0))[at]
    return np.asarray(_PARTS * slots_of_nodes(search, area, pool) // np.maximum(taken, 1), np.int64)
