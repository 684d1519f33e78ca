"""The input of a search for victims, and what the kernels of reprieve say about candidates in one of its domains."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Longs
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.need import Need
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.solvers.gather.leaving.pool import Pool
from pipeline.solvers.gather.leaving.reprieve import Brought, Wanted, brought, reprieved, suffices
from pipeline.solvers.gather.multiples import Steps


@dataclass(frozen=True)
class GatherSearch:
    """The input of the search in each domain.

    Attributes
    ----------
    host
        The plugins on the snapshot without the promises that may be withdrawn.
    allowed: bool[S, N]
        Nodes that each of ``need.shapes`` may use.
    existing: int64[N]
    candidate: bool[T]
        Tasks that may be victims, each looked at alone.
    short: int64[R]
        How much quota the gang lacks.
    frees: bool[Q]
        Queues whose victims free it: its own, or all below one of its ancestors.
    steps
        The multiples in which domains take its tasks; None if any number will do.
    lost: float64[G]
    queue_rank: int64[G]
        In reclaim, the rank of each podgroup's queue, fairest to take from first; None in preempt.
    out_of_order
        Whether what quotas permit is counted off along other orders than the usual one: see ``permitted_otherwise``.
    """

    host: Host
    need: Need
    preemptor: Preemptor
    allowed: Bools
    existing: Longs
    candidate: Bools
    short: Longs
    frees: Bools
    steps: Steps | None
    lost: Floats
    queue_rank: Longs | None
    out_of_order: bool = False

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is searched."""
        return self.host.context.snapshot


def leaving(search: GatherSearch, pool: Pool, order: Longs, domain: int) -> Bools:
    """bool[C]: which leave if only those in ``order`` (int64[K]) may return."""
    start = int(search.snapshot.topology.start[domain])
    wanted, left = _wanted(search, domain)
    held, order = _held(search, pool), np.ascontiguousarray(order)
    return reprieved(wanted, left, pool.node - start, held, quota_freed(search, pool), pool.unit, order)


def quota_freed(search: GatherSearch, pool: Pool) -> Longs:
    """int64[C, R]: how much of the quota that the gang lacks each candidate frees."""
    return _held(search, pool) * search.frees[search.snapshot.queue_of(pool.rows)][:, None]


def slots_suffice(search: GatherSearch, pool: Pool, leaves: Bools, domain: int) -> bool:
    """Whether the domain has slots for each kind of the gang's tasks once ``leaves`` (bool[C]) of the pool are gone."""
    start = int(search.snapshot.topology.start[domain])
    return suffices(*_wanted(search, domain), pool.node - start, _held(search, pool), leaves)


def slots_brought(search: GatherSearch, pool: Pool, domain: int) -> Brought:
    """The slots that each unit of the candidates brings if it alone leaves, and how many are missing."""
    start = int(search.snapshot.topology.start[domain])
    wanted, left = _wanted(search, domain)
    order = np.ascontiguousarray(pool.orders[0])
    return brought(wanted, left, pool.node - start, _held(search, pool), pool.unit, order)


def _wanted(search: GatherSearch, domain: int) -> tuple[Wanted, Longs]:
    """What the domain must be able to take, and the room of its nodes beside candidates (int64[n, R], a copy)."""
    snapshot, need = search.snapshot, search.need
    start, stop = int(snapshot.topology.start[domain]), int(snapshot.topology.stop[domain])
    allowed = np.ascontiguousarray(search.allowed[:, start:stop])
    return Wanted(need.request, need.count, allowed, search.short), snapshot.room.future[start:stop].copy()


def _held(search: GatherSearch, pool: Pool) -> Longs:
    """int64[C, R]: what the candidates hold."""
    snapshot = search.snapshot
    return np.ascontiguousarray(snapshot.shapes.request[snapshot.tasks.shape[pool.rows]])
