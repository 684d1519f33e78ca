"""Arithmetic that several queue plugins share: ceilings, and what admitted podgroups may still claim."""

import numpy as np

from pipeline.cluster.arrays import Bools, Longs
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PHASE_PENDING, Queues


def flat_ceilings(queues: Queues, whole: Longs) -> Longs:
    """int64[Q, R]: what ``whole`` (int64[R]) leaves once the others' guarantees are kept, at most the capability.

    Volcano calls it the real capability.
    """
    others = queues.guarantee.sum(axis=0) - queues.guarantee
    return np.asarray(np.minimum(np.maximum(whole - others, queues.guarantee), queues.capability))


def committed(snapshot: Snapshot, admitted: Bools) -> Longs:
    """What each queue has given out, ahead of the tasks: int64[Q, R], without descendants.

    Allocated, plus what admitted podgroups may still claim up to their minimum resources, less what running ones hold
    above theirs (it can be taken back).

    Parameters
    ----------
    admitted
        bool[G]: podgroups let in during this cycle, beside those whose phase says so.
    """
    groups = snapshot.podgroups
    live = ((groups.phase != PHASE_PENDING) | admitted) & groups.alive
    stated = (groups.min_resources >= 0).any(axis=1) & live
    least = np.maximum(groups.min_resources, 0)
    held = snapshot.podgroup_held
    balance = np.where(live[:, None], np.maximum(least - held, 0), 0)
    balance -= np.where(stated[:, None], np.maximum(held - least, 0), 0)
    total = snapshot.allocated_here.copy()
    np.add.at(total, groups.queue, balance)
    return total


def least_of(snapshot: Snapshot, podgroup: int) -> Longs:
    """int64[R]: minimum resources of a podgroup, 0 where it names none."""
    return np.asarray(np.maximum(snapshot.podgroups.min_resources[podgroup], 0))
