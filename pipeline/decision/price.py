"""The price of a plan: what its victims lose, in fields that are compared one after the other.

The same for every solver, so that plans can be compared whichever of them made them.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.cluster.minimum import has_minimum
from pipeline.cluster.resources import PODS
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf

NO_PRIORITY = -(1 << 31)
#: A podgroup with a minimum of one task is no gang: it does not break.
_LONE = 1


@dataclass(frozen=True, order=True)
class Price:
    """What a plan costs; smaller is better, compared field by field (DESIGN section 5).

    Attributes
    ----------
    budgets_violated, gangs_broken
        Counts.
    highest_priority
        Of the victims; the lowest integer if there is none.
    unfairness
        Rank of the least unfair queue evicted from (reclaim), 0 in preempt: lower is fairer to take from.
    important
        How many victims are of the highest priority evicted; 0 in reclaim, which ranks priority last.
    lost_work
        What the victims lose, in the need's own units times seconds or 1, rounded to 1e-6.
    victims
        Count.
    tier
        Height of the domain.
    domain
        Row, the last tie-break.
    """

    budgets_violated: int
    gangs_broken: int
    highest_priority: int
    unfairness: int
    important: int
    lost_work: float
    victims: int
    tier: int
    domain: int


#: The price of a plan without victims, but for its domain.
EVICTS_NOBODY = Price(0, 0, NO_PRIORITY, 0, 0, 0.0, 0, 0, NONE)


def price_of(
    snapshot: Snapshot, victims: Rows, requested: Longs, lost: Floats, queue_rank: Longs | None, domain: int
) -> Price:
    """The price of victims on the snapshot that they are taken from.

    A gang that breaks loses all that it holds, its surplus included; a podgroup that was broken before loses nothing.

    Parameters
    ----------
    victims: int64[V]
        Task rows.
    requested: int64[R]
        What the minimum of the preemptor asks for: the unit of lost work.
    lost: float64[G]
        As ``lost_work`` says.
    queue_rank: int64[G]
        From whose queue it is fairer to take, in reclaim; None in preempt.
    domain
        Row of the domain in which the preemptor is placed.
    """
    groups, shape = snapshot.podgroups, snapshot.tasks.shape
    owner, needed = snapshot.tasks.podgroup[victims], needed_by(requested)
    unit = in_units(snapshot.shapes.request, needed)
    after, nobody = WhatIf.of(snapshot).evicting(victims), np.zeros(0, np.int64)
    broken, work = 0, 0.0
    for group in np.unique(owner).tolist():
        if not has_minimum(snapshot, group, NONE, nobody):
            continue
        held = float(unit[shape[victims[owner == group]]].sum())
        if not has_minimum(after, group, NONE, nobody):
            broken += int(groups.min_available[group]) > _LONE
            held = float(in_units(snapshot.podgroup_held[[group]], needed)[0])
        work += held * float(lost[group])
    priority = groups.priority[owner].astype(np.int64)
    highest = int(priority.max(initial=NO_PRIORITY))
    return Price(
        budgets_violated=int(overdrawing(snapshot, victims).sum()),
        gangs_broken=broken,
        highest_priority=highest,
        unfairness=0 if queue_rank is None else int(queue_rank[owner].max(initial=0)),
        important=int((priority == highest).sum()) if queue_rank is None else 0,
        lost_work=round(work, 6),
        victims=len(victims),
        tier=int(snapshot.topology.tier[domain]),
        domain=domain,
    )


def lost_work(snapshot: Snapshot, now: float) -> Floats:
    """float64[G]: weight of what an eviction destroys: the restart (1) and the hours since the last checkpoint."""
    groups = snapshot.podgroups
    since = np.where(np.isnan(groups.last_checkpoint), groups.started, groups.last_checkpoint)
    hours = np.where(np.isnan(since), 0.0, np.maximum(now - since, 0.0) / 3600.0)
    return np.asarray(1.0 + np.round(hours, 6), np.float64)


def needed_by(requested: Longs) -> Longs:
    """int64[R]: what the minimum asks for, of its request in all.

    Pods are left out (0) as long as it asks for anything else: every task has one, whatever its size.
    """
    needed = np.maximum(requested, 0)
    if (needed > 0).sum() > 1:
        needed[PODS] = 0
    return needed


def in_units(amounts: Longs, needed: Longs) -> Floats:
    """float64[M]: resources int64[M, R] in units of the need, the global cost score: the sum of amount / needed."""
    asked = np.flatnonzero(needed)
    weighed: Floats = (amounts[:, asked] / needed[asked]).sum(axis=1)
    return weighed


def overdrawing(snapshot: Snapshot, rows: Rows) -> Bools:
    """bool[V]: which of the tasks, gone in this order, overdraw a disruption budget that covers them."""
    if len(snapshot.budgets) == 0:
        return np.zeros(len(rows), bool)
    namespaces = snapshot.podgroups.namespace[snapshot.tasks.podgroup[rows]]
    covering = snapshot.budgets.covering(namespaces, snapshot.tasks.label_set[rows])
    used = np.cumsum(covering, axis=1)
    return np.asarray((covering & (used > snapshot.budgets.allowed[:, None])).any(axis=0))
