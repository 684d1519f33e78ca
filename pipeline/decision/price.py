"""The price of a plan: what its victims lose, as fields that are compared one after the other.

All solvers use it, so their plans can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from operator import attrgetter

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Floats, Longs, Rows, in_a_row
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.counted.minima import Have, Minima, count_tasks, reaches, writable
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.rules.minimum import towards_all
from pipeline.cluster.snapshot import Snapshot
from pipeline.keeping import cached_property
from pipeline.kernels import inlined, kernel
from pipeline.records import replace, several

#: The highest priority where there are no victims.
NO_PRIORITY = -(1 << 31)

#: Works that differ by less are equal: they are rounded to 1e-6 in a price.
EQUAL_WORK = 5e-7

#: Hours of lost work are rounded to a part of this.
_MICRO = 1e6

#: Lost work by level, the highest first.
Work = tuple[tuple[int, float], ...]


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
#: Those that follow from the victims.
_OF_VICTIMS = (
    "budgets_violated", "queue_rank", "broken", "surplus", "highest_priority", "victims", "gangs_broken",
)  # fmt: skip
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
    groups, tasks, (victims, start) = snapshot.podgroups, snapshot.tasks, in_a_row(sets)
    lines, level, work, broke, rank, priority = _lost_by_sets(
        snapshot.once(towards_all), victims, start, (tasks.podgroup, tasks.role, tasks.subgroup, tasks.shape),
        (groups.priority, minima_met(snapshot).pipelined, lost, snapshot.podgroup_held), snapshot.shapes.request,
        requested, NO_ROWS if queue_rank is None else queue_rank,
    )  # fmt: skip
    losses = [(one, round(amount, 6)) for one, amount in zip(level.tolist(), work.tolist(), strict=True)]
    works = [tuple(losses[first:stop]) for first, stop in pairwise(lines.tolist())]
    there, budgets = replace(NO_VICTIMS, tier=int(snapshot.topology.tier[domain]), domain=domain), len(snapshot.budgets)
    violated = [int(overdrawing(snapshot, some).sum()) if budgets else 0 for some in sets]
    columns = violated, rank.tolist(), works[::2], works[1::2], priority.tolist(), map(len, sets), broke.tolist()
    return several(there, _OF_VICTIMS, zip(*columns, strict=True))


@kernel
def _lost_by_sets(
    towards: tuple[Plain, Plain], rows: Rows, start: Longs, columns: Plain, groups: Plain,
    request: Longs, requested: Longs, ranks: Longs,
) -> tuple[Longs, Longs, Floats, Longs, Longs, Longs]:  # fmt: skip
    """What the sets ``rows[start[s]:start[s + 1]]`` lose, in lines of a level (int64) and work (float64).

    ``ranks`` int64[G] are those of the podgroups' queues in reclaim, else empty: then a priority is a level.

    Returns
    -------
    int64[2 S + 1]: of set ``s`` lines ``[2 s]:[2 s + 1]`` are of podgroups that break, and up to ``[2 s + 2]`` of the
    others, the highest level first; the level and the work of each line; and int64[S] each: how many podgroups break,
    the highest rank, and the highest priority.
    """
    minima, have = Minima(*towards[0]), writable(Have(*towards[1]))
    (podgroup, role, part, shape), (priorities, whole, lost, group_held), needed = columns, groups, needed_by(requested)
    count_tasks(-1, rows, have, podgroup, role, part)
    sets, owners = len(start) - 1, len(priorities)
    lines, level, work = np.zeros(2 * sets + 1, np.int64), np.empty(len(rows), np.int64), np.empty(len(rows))
    broke, rank, highest = np.zeros(sets, np.int64), np.zeros(sets, np.int64), np.full(sets, NO_PRIORITY)
    losing, held, seen = np.empty(len(rows), np.int64), np.zeros(owners), np.zeros(owners, np.bool_)
    for one in range(sets):
        count = 0
        for row in rows[start[one] : start[one + 1]]:
            group = podgroup[row]
            if not seen[group]:
                seen[group], held[group], losing[count] = True, 0.0, group
                count += 1
            held[group] += _in_units(request, shape[row], needed)
            highest[one] = max(highest[one], priorities[group])
            if len(ranks):
                rank[one] = max(rank[one], ranks[group])
        mine = np.sort(losing[:count])
        seen[mine] = False
        breaks = np.empty(count, np.bool_)
        for at in range(count):
            breaks[at] = whole[mine[at]] and not reaches(minima, have, mine[at])
        broke[one] = breaks.sum()
        for falls in (True, False):
            at = 2 * one + 1 - falls
            lines[at + 1] = lines[at]
            for loser, group in enumerate(mine):
                if breaks[loser] != falls:
                    continue
                amount = _in_units(group_held, group, needed) if falls else held[group] if whole[group] else 0.0
                on = 0 if len(ranks) else priorities[group]
                lines[at + 1] = _with_work(level, work, lines[at], lines[at + 1], on, amount * lost[group])
    return lines, level[: lines[-1]], work[: lines[-1]], broke, rank, highest


@inlined
def _with_work(level: Longs, work: Floats, first: int, stop: int, on: int, amount: float) -> int:
    """Where lines ``first:stop``, the highest level first, end once an amount is added on a level."""
    at = first
    while at < stop and level[at] > on:
        at += 1
    if at < stop and level[at] == on:
        work[at] += amount
        return stop
    for behind in range(stop, at, -1):
        level[behind], work[behind] = level[behind - 1], work[behind - 1]
    level[at], work[at] = on, amount
    return stop + 1


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


@kernel
def needed_by(requested: Longs) -> Longs:
    """int64[R]: what the minimum asks for, given the sum of its requests.

    Pods are left out (0) if it asks for anything else: every task has one, whatever its size.
    """
    needed = np.maximum(requested, 0)
    if (needed > 0).sum() > 1:
        needed[PODS] = 0
    return needed


@kernel
def in_units(amounts: Longs, needed: Longs) -> Floats:
    """float64[M]: resources int64[M, R] in units of the need: the sum of amount / needed (the global cost score)."""
    weighed = np.empty(len(amounts))
    for row in range(len(amounts)):
        weighed[row] = _in_units(amounts, row, needed)
    return weighed


@inlined
def _in_units(amounts: Longs, row: int, needed: Longs) -> float:
    """`in_units` of one row."""
    weighed = 0.0
    for resource in range(len(needed)):
        if needed[resource] > 0:
            weighed += amounts[row, resource] / needed[resource]
    return weighed


def overdrawing(snapshot: Snapshot, rows: Rows) -> Bools:
    """bool[V]: which of the tasks, evicted in this order, exceed a disruption budget that covers them."""
    if len(snapshot.budgets) == 0:
        return np.zeros(len(rows), bool)
    covering, allowed = snapshot.budgets_on(rows), snapshot.budgets.allowed
    some = np.flatnonzero(np.count_nonzero(covering, axis=1) > allowed)
    used = np.cumsum(covering[some], axis=1)
    return np.asarray((covering[some] & (used > allowed[some, None])).any(axis=0))
