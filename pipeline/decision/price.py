"""The price of a plan: what its victims lose, as fields that are compared one after the other.

All solvers use it, so their plans can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Ids, Longs, Rows, kinds_of
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.minima_met import breaks_without, is_pipelined
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import kernel

#: The highest priority where there are no victims.
NO_PRIORITY = -(1 << 31)

#: Hours of lost work are rounded to a part of this.
_MICRO = 1e6

Work = tuple[tuple[int, float], ...]
"""Lost work by level, the highest first."""


@dataclass(frozen=True, order=True)
class Price:
    """What a plan costs; smaller is better, compared field by field (decisions 13 and 27).

    In preempt lost work is listed by priority, the highest first, so that no efficiency outweighs a priority; in
    reclaim, which ranks priority last, it is one sum of level 0.

    Attributes
    ----------
    budgets_violated
        How many disruption budgets the victims exceed.
    queue_rank
        In reclaim, the rank of the victims' queue from which it is least fair to take; 0 in preempt.
    broken
        Work lost by podgroups that break: (level, work) from the highest level down. Work is what all their members
        hold, in units of the need, times (1 for the restart + hours since the last checkpoint); rounded to 1e-6.
    surplus
        The same for victims that break no podgroup. A podgroup that was broken before loses no work.
    highest_priority
        The highest priority of a victim; ``NO_PRIORITY`` without victims.
    victims
        Number of victims.
    tier
        Height of the domain.
    domain
        Row of the domain, the last tie-break.
    gangs_broken
        How many podgroups break; reported, not compared.
    """

    budgets_violated: int
    queue_rank: int
    broken: Work
    surplus: Work
    highest_priority: int
    victims: int
    tier: int
    domain: int
    gangs_broken: int = field(default=0, compare=False)

    @cached_property
    def lost_work(self) -> float:
        """All lost work, of all levels."""
        return round(sum(work for _, work in self.broken) + sum(work for _, work in self.surplus), 6)


#: The fields that are compared, in order; and their values in a price, by which many are sorted faster.
COMPARED = tuple(one.name for one in fields(Price) if one.compare)
compared = attrgetter(*COMPARED)
#: The price of a plan without victims; the domain is to be set.
NO_VICTIMS = Price(0, 0, (), (), NO_PRIORITY, 0, 0, NONE)


def price_of(
    snapshot: Snapshot, victims: Rows, requested: Longs, lost: Floats, queue_rank: Longs | None, domain: int
) -> Price:
    """The price of victims on the snapshot from which they are taken.

    A gang that breaks loses all its tasks, its surplus included; a podgroup that was broken before loses no work.

    Parameters
    ----------
    victims: int64[V]
        Task rows.
    requested: int64[R]
        What the minimum of the preemptor asks for: the unit of lost work.
    lost: float64[G]
        See ``lost_work``.
    queue_rank: int64[G]
        In reclaim, the rank of each podgroup's queue, fairest to take from first; None in preempt.
    domain
        Row of the domain in which the preemptor is placed.
    """
    return prices_of(snapshot, [victims], requested, lost, queue_rank, domain)[0]


def prices_of(
    snapshot: Snapshot, sets: Sequence[Rows], requested: Longs, lost: Floats, queue_rank: Longs | None, domain: int
) -> list[Price]:
    """The prices of several sets of victims. A podgroup that is in several of them breaks if it does once all are gone.

    See ``price_of``.
    """
    groups, victims = snapshot.podgroups, np.concatenate(sets)
    needed, owner = needed_by(requested), snapshot.tasks.podgroup[victims].astype(np.int64)
    unit = in_units(snapshot.shapes.request, needed)[snapshot.tasks.shape[victims]]
    of_set = np.repeat(np.arange(len(sets)), [len(one) for one in sets])
    pairs, of = kinds_of(of_set * len(groups) + owner)
    losing = pairs % max(len(groups), 1)
    whole = snapshot.once(is_pipelined)[losing]
    breaks = breaks_without(snapshot, losing, victims)
    held = np.where(whole, np.bincount(of, weights=unit, minlength=len(losing)), 0.0)
    held[breaks] = in_units(snapshot.podgroup_held[losing[breaks]], needed)
    level = groups.priority[losing] if queue_rank is None else np.zeros(len(losing), np.int64)
    set_of = pairs // max(len(groups), 1)
    works = _by_level(2 * set_of + ~breaks, level, held * lost[losing], 2 * len(sets))
    broke = np.bincount(set_of[breaks], minlength=len(sets)).tolist()
    rank, priority = np.zeros(len(sets), np.int64), np.full(len(sets), NO_PRIORITY)
    if queue_rank is not None:
        np.maximum.at(rank, of_set, queue_rank[owner])
    np.maximum.at(priority, of_set, groups.priority[owner])
    tier, budgets = int(snapshot.topology.tier[domain]), len(snapshot.budgets) > 0
    each = zip(sets, works[::2], works[1::2], rank.tolist(), priority.tolist(), broke, strict=True)
    return [
        Price(
            int(overdrawing(snapshot, some).sum()) if budgets else 0,
            least_fair, broken, surplus, highest, len(some), tier, domain, gangs_broken,
        )
        for some, broken, surplus, least_fair, highest, gangs_broken in each
    ]  # fmt: skip


def _by_level(owner: Rows, level: Longs | Ids, work: Floats, owners: int) -> list[Work]:
    """The work of each owner (int64[K], below ``owners``) summed by level, the highest level first."""
    order = np.lexsort((-level.astype(np.int64), owner))
    new = np.ones(len(order), bool)
    new[1:] = (owner[order[1:]] != owner[order[:-1]]) | (level[order[1:]] != level[order[:-1]])
    sum_of = np.empty(len(order), np.int64)
    sum_of[order] = np.cumsum(new) - 1
    first, summed = order[new], np.bincount(sum_of, weights=work)
    told = [(one, round(lost, 6)) for one, lost in zip(level[first].tolist(), summed.tolist(), strict=True)]
    spans = pairwise(np.searchsorted(owner[first], np.arange(owners + 1)).tolist())
    return [tuple(told[slice(*mine)]) for mine in spans]


def lost_work(snapshot: Snapshot, now: float) -> Floats:
    """float64[G]: weight of lost work: 1 for the restart, and the hours since the last checkpoint. Shared."""
    known = snapshot.answers(lost_work)
    if now not in known:
        groups = snapshot.podgroups
        known[now] = _lost_work(groups.last_checkpoint, groups.started, now)
    return known[now]


@kernel
def _lost_work(checkpoint: Floats, started: Floats, now: float) -> Floats:
    result = np.empty(len(started), np.float64)
    for group in range(len(started)):
        since = started[group] if np.isnan(checkpoint[group]) else checkpoint[group]
        hours = 0.0 if np.isnan(since) else max(now - since, 0.0) / 3600.0
        result[group] = 1.0 + np.rint(hours * _MICRO) / _MICRO
    return result


def needed_by(requested: Longs) -> Longs:
    """int64[R]: what the minimum asks for, given the sum of its requests.

    Pods are left out (0) if it asks for anything else: every task has one, whatever its size.
    """
    needed = np.maximum(requested, 0)
    if (needed > 0).sum() > 1:
        needed[PODS] = 0
    return needed


def in_units(amounts: Longs, needed: Longs) -> Floats:
    """float64[M]: resources int64[M, R] in units of the need: the sum of amount / needed (the global cost score)."""
    weighed = np.zeros(len(amounts))
    for resource in np.flatnonzero(needed).tolist():  # column by column: a copy of all takes three times as long
        weighed += amounts[:, resource] / needed[resource]
    return weighed


def overdrawing(snapshot: Snapshot, rows: Rows) -> Bools:
    """bool[V]: which of the tasks, evicted in this order, exceed a disruption budget that covers them."""
    if len(snapshot.budgets) == 0:
        return np.zeros(len(rows), bool)
    namespaces = snapshot.podgroups.namespace[snapshot.tasks.podgroup[rows]]
    covering = snapshot.budgets.covering(namespaces, snapshot.tasks.label_set[rows])
    used = np.cumsum(covering, axis=1)
    return np.asarray((covering & (used > snapshot.budgets.allowed[:, None])).any(axis=0))
