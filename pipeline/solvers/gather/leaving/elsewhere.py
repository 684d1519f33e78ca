"""Candidates outside a domain: they bring it no slots, but free quota that the gang lacks.

A gang that must stay in one domain may find room there while its queue is full. Then less important work of the queue
goes wherever it runs: the quota is asked about the whole queue, as in Koordinator's proposal of job-level preemption.
"""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Rows
from pipeline.records import replace
from pipeline.solvers.gather.leaving.out_of_order import permitted
from pipeline.solvers.gather.leaving.pool import pool_of_some
from pipeline.solvers.gather.leaving.search import GatherSearch, pool_in


def with_elsewhere(search: GatherSearch) -> GatherSearch:
    """The same search, with the candidates that free the quota that it lacks wherever they run."""
    return replace(search, elsewhere=_freeing(search)) if (search.short > 0).any() else search


def _freeing(search: GatherSearch) -> Rows:
    """int64[K]: the first of all candidates, the least important first, that free enough; none if all free too little.

    They are chosen once for all domains; in each one those go that are needed beside its own.
    """
    rows = np.flatnonzero(search.candidate)
    rows = rows[search.frees[search.snapshot.queue_of(rows)]]
    pool = pool_in(search, rows)
    pool = pool_of_some(pool, np.asarray((pool.frees[:, search.short > 0] > 0).any(axis=1)))
    pool = pool_of_some(pool, permitted(search, pool))
    order = pool.usual[::-1]
    enough = (np.cumsum(pool.frees[order], axis=0) >= search.short).all(axis=1)
    if not enough.any():
        return NO_ROWS
    last = int(np.argmax(enough))
    together = (pool.unit[order] == pool.unit[order[last]]) & (pool.unit[order] >= 0)
    together[: last + 1] = True
    return np.sort(pool.rows[order[together]])
