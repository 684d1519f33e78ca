"""Arithmetic that several queue plugins share: ceilings, and what admitted podgroups may still claim."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Ids, Longs, Rows, mask_of
from pipeline.cluster.queue_tree import least_above, with_descendants
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PHASE_PENDING, PHASE_RUNNING, Queues
from pipeline.kernels import inlined, kernel, linked


class QueueLimits(NamedTuple):
    """What each queue may hold, its descendants included.

    Attributes
    ----------
    parent: int32[Q]
        NONE everywhere where queues are flat.
    ceiling, held: int64[Q, R]
        The most that it may hold (UNLIMITED: no bound), and what it holds.
    closed: bool[Q]
        Queues that may take nothing.
    """

    parent: Ids
    ceiling: Longs
    held: Longs
    closed: Bools

    @property
    def headroom(self) -> Longs:
        """int64[Q, R]: what each queue may still take below its limit and those of its ancestors."""
        return np.asarray(_headroom(self.parent, self.ceiling, self.held, self.closed))


@kernel
def _headroom(parent: Ids, ceiling: Longs, held: Longs, closed: Bools) -> Longs:
    left = least_above(parent, np.where(ceiling >= UNLIMITED, UNLIMITED, ceiling - held))
    for queue in range(len(closed)):
        if closed[queue]:
            left[queue] = 0
    return left


class LosingOrder(NamedTuple):
    """From which queue to take first, where that follows from what queues hold, for a solver that counts it itself.

    Attributes
    ----------
    first, last: int64[Q]
        Keys before and after the part that is used of what a queue deserves, the lower, the earlier; ``last`` tells all
        apart. The more is used, the earlier.
    deserved: int64[Q, R]
    bare: bool[Q]
        Queues that deserve nothing that counts; they are used up.
    """

    first: Longs
    deserved: Longs
    bare: Bools
    last: Longs


@linked
def rank_losers(order: LosingOrder, held: Longs, rank: Longs) -> None:
    """Write the rank of each queue into ``rank`` int64[Q] by what it holds, int64[Q, R]: which is taken from first."""
    used, sorted_queues = np.ones(len(rank)), np.empty(len(rank), np.int64)
    for queue in range(len(rank)):
        if not order.bare[queue]:
            used[queue] = 0.0
            for r in range(held.shape[1]):
                if order.deserved[queue, r] > 0:
                    used[queue] = max(used[queue], held[queue, r] / order.deserved[queue, r])
    for queue in range(len(rank)):
        at = queue
        while at > 0:
            other = sorted_queues[at - 1]
            key = (order.first[other], -used[other], order.last[other])
            if key <= (order.first[queue], -used[queue], order.last[queue]):
                break
            sorted_queues[at] = other
            at -= 1
        sorted_queues[at] = queue
    for at in range(len(rank)):
        rank[sorted_queues[at]] = at


def flat_ceilings(queues: Queues, whole: Longs) -> Longs:
    """int64[Q, R]: what ``whole`` (int64[R]) leaves once the others' guarantees are kept, at most the capability.

    Volcano calls it the real capability.
    """
    others = queues.guarantee.sum(axis=0) - queues.guarantee
    return np.asarray(np.minimum(np.maximum(whole - others, queues.guarantee), queues.capability))


def unmet_minimum(snapshot: Snapshot, admitted: Bools) -> Longs:
    """What admitted podgroups may still take up to their minimum resources: int64[G, R].

    A podgroup that runs below its minimum takes nothing more: some of it has ended already (upstream's example is a
    Spark job whose driver is done). Gated tasks take nothing either.

    Parameters
    ----------
    admitted: bool[G]
        Podgroups admitted in this cycle, beside those whose phase says so.
    """
    groups = snapshot.podgroups
    live = ((groups.phase != PHASE_PENDING) | admitted) & groups.alive
    live &= (groups.phase != PHASE_RUNNING) | (snapshot.counts.running >= groups.min_available)
    rest = np.maximum(np.maximum(groups.min_resources, 0) - snapshot.held_of(np.arange(len(groups))), 0)
    return np.asarray(np.where(live[:, None], np.maximum(rest - snapshot.totals.podgroup_sums.gated, 0), 0))


def committed(snapshot: Snapshot, admitted: Bools) -> Longs:
    """What each queue has given out, ahead of the tasks: int64[Q, R], without descendants.

    Allocated, plus ``unmet_minimum``, less what is elastic: what podgroups hold above their minimum resources can be
    taken back, and all that they hold where they name none.
    """
    groups = snapshot.podgroups
    beyond = np.maximum(snapshot.held_of(np.arange(len(groups))) - np.maximum(groups.min_resources, 0), 0)
    elastic = np.where(groups.alive[:, None], beyond, 0)
    total = snapshot.allocated_here.copy()
    np.add.at(total, groups.queue, unmet_minimum(snapshot, admitted) - elastic)
    return total


def minimum_resources(snapshot: Snapshot, podgroup: int) -> Longs:
    """int64[R]: minimum resources of a podgroup, 0 where it names none."""
    return np.asarray(np.maximum(snapshot.podgroups.min_resources[podgroup], 0))


@inlined
def run_end(unit: Rows, first: int) -> int:
    """Where the run of one number that begins at ``first`` of ``unit`` int64[C] ends; each NONE is a run of its own."""
    stop = first + 1
    while stop < len(unit) and unit[first] != NONE and unit[stop] == unit[first]:
        stop += 1
    return stop


def agreed(ask: Callable[[Rows], list[Bools]], many: int) -> Bools:
    """bool[C]: which of the ordered candidates may go by several quotas at once.

    Each quota counts on its own, and so charges candidates that another quota refuses. What it grants holds with fewer
    of them as well, but not what it refuses from then on: refusals before that are certain. These candidates are
    dropped, and the rest is counted anew.

    Parameters
    ----------
    ask
        The answer of each quota about the candidates at some positions; empty: all may go. Neighbours that go together
        are refused together.
    many
        How many candidates there are.
    """
    at = np.arange(many)
    while said := ask(at):
        each = np.array(said)
        may, certain = np.asarray(each.all(axis=0)), _certain(each)
        if certain == many:
            return may
        if certain == len(at):
            at = at[may]
            break
        at = np.concatenate([at[:certain][may[:certain]], at[certain:]])
    return mask_of(at, many)


def _certain(said: Bools) -> int:
    """How many leading candidates no quota refuses that has charged one which another refused; ``said`` bool[P, C]."""
    charged_more: Bools = np.logical_or.accumulate(said & ~said.all(axis=0), axis=1)
    doubtful = np.flatnonzero((charged_more & ~said).any(axis=0))
    return int(doubtful[0]) if len(doubtful) else len(said[0])


def never_evicted(snapshot: Snapshot) -> Longs:
    """int64[Q, R]: what tasks hold or were promised that can never be evicted, descendants included."""
    groups, sums = snapshot.podgroups, snapshot.totals.podgroup_sums
    lasting = groups.alive & ~groups.preemptible
    return np.asarray(_held_below(snapshot.queues.parent, groups.queue, lasting, sums.running, sums.waiting))


@kernel
def _held_below(parent: Ids, queue: Ids, lasting: Bools, running: Longs, waiting: Longs) -> Longs:
    """int64[Q, R]: what some podgroups hold or were promised, by queue, descendants included."""
    total = np.zeros((len(parent), running.shape[1]), np.int64)
    for group in range(len(queue)):
        if lasting[group]:
            total[queue[group]] += running[group] + waiting[group]
    return with_descendants(parent, total)
