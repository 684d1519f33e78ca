"""The capacity plugin: queues with a guarantee, a deserved share and a ceiling, flat or as a tree.

Semantics of Volcano's plugin of that name (notes-volcano 2.7), with two differences. Ancestors are charged too when
victims are counted off (upstream's gang vote forgets them). With the argument ``strict`` (our default profile) a queue
never falls below what it deserves, resource by resource and whatever the order of the victims; upstream lets the last
victim overshoot.
"""

import numpy as np

from pipeline.attempt import Purpose
from pipeline.cluster.accounting import queue_chain, with_ancestors
from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, Bools, Floats, Ids, Longs, Rows
from pipeline.cluster.quota import committed, flat_ceilings, least_of
from pipeline.cluster.resources import PODS
from pipeline.cluster.tables import OPEN
from pipeline.compiled import kernel
from pipeline.plugins.protocols import Opinion, Preemptor, Situation
from pipeline.policy import PluginSetting, Point


@kernel
def _loses(taken: Longs, left: Longs, deserved: Longs, counts: Bools, strict: bool) -> bool:
    """Whether a queue with ``left`` may lose ``taken`` (int64[R]).

    Strict: it keeps what it deserves of everything that is taken. Else it must hold more than it deserves of something
    that is taken, or deserve nothing of it.
    """
    entitled = False
    for r in range(len(taken)):
        if taken[r] <= 0 or r == PODS or not counts[r]:
            continue
        entitled = True
        if strict and left[r] - taken[r] < deserved[r]:
            return False
        if not strict and left[r] > deserved[r]:
            return True
    return strict or not entitled


@kernel
def _count_off(
    queue: Ids,
    held: Longs,
    asked: Bools,
    left: Longs,
    deserved: Longs,
    counts: Bools,
    guarantee: Longs,
    parent: Ids,
    own: Bools,
    level: int,
) -> Bools:
    """Go through candidates in order and let each go while its queue, and the ancestors that answer, can spare it.

    Parameters
    ----------
    queue: int32[C], held: int64[C, R]
        Of the candidates.
    asked: bool[R]
        What the preemptor asks for; upstream spares who holds none of it. Strict: that is no question of law, for a
        gang's driver goes with its workers.
    left: int64[Q, R]
        Allocated; used up in place, ancestors included.
    counts: bool[Q, R]
        Where an entitlement counts.
    own: bool[Q]
        The preemptor's queue and its ancestors: what is taken below them stays theirs.
    level: int
        How many ancestors below the root answer; NONE: strict, and all that are not the preemptor's own.
    """
    permitted = np.zeros(len(queue), np.bool_)
    for task in range(len(queue)):
        taken = held[task]
        useful, kept = level == NONE, True
        for r in range(len(taken)):
            useful |= asked[r] and taken[r] > 0
            kept &= taken[r] <= 0 or r == PODS or left[queue[task], r] - taken[r] >= guarantee[queue[task], r]
        if not useful or not kept:
            continue
        row, depth, may = queue[task], 0, True
        while may and row != NONE:
            if level == NONE and own[row]:
                break
            if level != NONE and (depth > level or (depth > 0 and parent[row] == NONE)):
                break
            may = _loses(taken, left[row], deserved[row], counts[row], level == NONE)
            row, depth = parent[row], depth + 1
        if not may:
            continue
        permitted[task] = True
        row = queue[task]
        while row != NONE:
            left[row] -= taken
            row = parent[row]
    return permitted


class Capacity:
    """Quota of queues: who may take, who may be taken from, and how much."""

    def __init__(self, situation: Situation, setting: PluginSetting) -> None:
        self._snapshot = situation.snapshot
        self._queues = situation.snapshot.queues
        # The flag is a point of Volcano's configuration; a tree of queues needs no telling, but may be ignored.
        points = dict(setting.enabled)
        self._tree = points.get("hierarchy", points.get("*", False))
        self._strict = bool(setting.argument("strict", False))
        self._level = int(setting.argument("ancestor_reclaim_level", 0))
        self._allocated = self._snapshot.allocated if self._tree else self._snapshot.allocated_here
        self._ceiling = self._ceilings()
        self._stated = self._queues.deserved != UNSET
        self._deserved = self._entitlements()
        self._points = {point for point in Point if setting.asks(point)}

    # -- shares ------------------------------------------------------------------------------------------------

    def _ceilings(self) -> Longs:
        """int64[Q, R]: real capability: what is left once the others' guarantees are kept, at most the capability."""
        queues, whole = self._queues, self._snapshot.capacity
        if not self._tree:
            return flat_ceilings(queues, whole)
        ceiling = np.empty_like(queues.guarantee)
        for queue in range(len(queues)):
            parent = int(queues.parent[queue])
            if parent == NONE and (queues.parent == queue).any():
                ceiling[queue] = queues.capability[queue]  # a root is bound by what it states only
                continue
            others = queues.guarantee[queues.parent == parent].sum(axis=0) - queues.guarantee[queue]
            above = whole if parent == NONE else ceiling[parent]
            left = np.where(above >= UNLIMITED, UNLIMITED, np.maximum(above - others, queues.guarantee[queue]))
            ceiling[queue] = np.minimum(left, queues.capability[queue])
        return ceiling

    def _entitlements(self) -> Longs:
        """int64[Q, R]: deserved, 0 where nothing was stated, never below the guarantee."""
        stated = np.where(self._stated, self._queues.deserved, 0)
        if not self._tree:
            stated = np.minimum(stated, self._ceiling)
        return np.maximum(stated, self._queues.guarantee)

    def fair_share(self) -> Longs:
        """int64[Q, R]: what each queue deserves."""
        return self._deserved

    def share(self) -> Floats:
        """float64[Q]: the largest used fraction of what a queue deserves; 1 where it deserves nothing."""
        entitled = (self._deserved > 0) & (np.arange(self._deserved.shape[1]) != PODS)
        fraction = np.divide(self._allocated, self._deserved, out=np.zeros(self._deserved.shape), where=entitled)
        return np.where(entitled.any(axis=1), fraction.max(axis=1, initial=0.0), 1.0)

    def queue_order(self) -> tuple[Floats | Longs, ...]:
        """Higher priority, then the least satisfied queue; in a tree compared where two queues' ancestors part."""
        share = self.share()
        priority: Longs = -self._queues.priority.astype(np.int64)
        bare: Bools = np.asarray(~(self._deserved > 0).any(axis=1))
        if not self._tree or (self._queues.parent == NONE).all():
            return priority, share, bare.astype(np.int64)
        paths = [
            [(share[q], self._queues.order[q]) for q in reversed(queue_chain(self._queues, queue))]
            for queue in range(len(self._queues))
        ]
        leaf = np.array([not (self._queues.parent == queue).any() for queue in range(len(self._queues))])
        ranked = sorted(range(len(paths)), key=lambda queue: paths[queue])
        rank = np.empty(len(paths), np.int64)
        rank[ranked] = np.arange(len(paths))
        return priority, (~leaf).astype(np.int64), rank

    def victim_queue_order(self, queue: int) -> Longs:
        """In a tree, the nearest relatives of the preemptor's queue first; flat: no preference of its own."""
        if not self._tree or queue == NONE:
            return np.zeros(len(self._queues), np.int64)
        own = set(queue_chain(self._queues, queue))
        shared = [sum(q in own for q in queue_chain(self._queues, other)) for other in range(len(self._queues))]
        return -np.array(shared, np.int64)

    # -- who may take ------------------------------------------------------------------------------------------

    def headroom(self) -> Longs:
        """int64[Q, R]: up to the ceilings of the queue and its ancestors; nothing for a queue that is not open."""
        own = np.where(self._ceiling >= UNLIMITED, UNLIMITED, self._ceiling - self._allocated)
        if self._tree:
            for queue in range(len(self._queues)):
                if self._queues.parent[queue] != NONE:
                    own[queue] = np.minimum(own[queue], own[self._queues.parent[queue]])
            parents = np.unique(self._queues.parent[self._queues.parent != NONE])
            own[parents] = 0  # work lives in leaves
        own[self._queues.state != OPEN] = 0
        return own

    def preemptive(self, preemptor: Preemptor) -> bool | None:
        """Whether some resource that it asks for stays within what the queue deserves (strict: all that are stated).

        With ``ancestor_reclaim_level`` n, one of its n nearest ancestors below the root may answer for it. Where no
        queue states anything there is nothing to compare with: no opinion, and others (proportion) decide.
        """
        queue = int(self._snapshot.podgroups.queue[preemptor.podgroups[0]])
        if self._queues.state[queue] != OPEN:
            return False
        if not self._stated.any() and not self._queues.guarantee.any():
            return None
        asked = self._asked(preemptor)
        if self._strict:
            within = self._within(queue, preemptor.request, asked & self._stated[queue])
            return bool(within.all() and (asked & self._stated[queue]).any())
        return any(self._within(q, preemptor.request, asked & (self._deserved[q] > 0)).any() for q in self._line(queue))

    def _within(self, queue: int, request: Longs, dims: Bools) -> Bools:
        after = self._allocated[queue] + request
        return np.asarray((after <= self._deserved[queue])[dims])

    def _asked(self, preemptor: Preemptor) -> Bools:
        asked: Bools = preemptor.request > 0
        asked = asked.copy()
        asked[PODS] = False
        return asked

    def _line(self, queue: int) -> list[int]:
        """The queue and the ancestors that answer for it, the root left out."""
        if not self._tree:
            return [queue]
        chain = queue_chain(self._queues, queue)
        above = [q for q in chain[1:] if self._queues.parent[q] != NONE]
        return chain[:1] + above[: self._level]

    def job_enqueued(self, podgroup: int, admitted: Bools) -> Opinion:
        """Admit while minimum resources of what is admitted, less what is elastic, stay under the ceilings."""
        groups = self._snapshot.podgroups
        queue = int(groups.queue[podgroup])
        if self._queues.state[queue] != OPEN:
            return Opinion.REJECT
        least = least_of(self._snapshot, podgroup)
        if not least.any():
            return Opinion.PERMIT
        chain = queue_chain(self._queues, queue) if self._tree else [queue]
        if self._tree and (self._queues.parent == queue).any():
            return Opinion.REJECT
        total = committed(self._snapshot, admitted)
        if self._tree:
            total = with_ancestors(self._queues.parent, total)
        for q in chain:
            asked = least > 0
            if ((total[q] + least)[asked] > self._ceiling[q][asked]).any():
                return Opinion.REJECT
        return Opinion.PERMIT

    # -- who may be taken from ---------------------------------------------------------------------------------

    def evictable(self, preemptor: Preemptor) -> bool | None:
        """Permits everybody to a gang in preempt, which moves nothing between queues; in reclaim they are counted."""
        if preemptor.purpose is not Purpose.PREEMPT or preemptor.task != NONE:
            return None
        return True

    def counts(self, preemptor: Preemptor) -> bool:
        """Whether ``permitted`` refuses anybody for this preemptor."""
        return preemptor.purpose is Purpose.RECLAIM

    def permitted(self, preemptor: Preemptor, rows: Rows) -> Bools:
        """In reclaim, candidates in order while their queues are above what they deserve; preempt asks nothing."""
        if preemptor.purpose is not Purpose.RECLAIM:
            return np.ones(len(rows), bool)
        snapshot = self._snapshot
        own = np.zeros(len(self._queues), bool)
        own[queue_chain(self._queues, int(snapshot.podgroups.queue[preemptor.podgroups[0]]))] = True
        permitted: Bools = _count_off(
            snapshot.task_queue[rows],
            snapshot.shapes.request[snapshot.tasks.shape[rows]],
            self._asked(preemptor),
            self._allocated.copy(),
            self._deserved,
            self._stated if self._strict else self._deserved > 0,
            self._queues.guarantee,
            self._queues.parent if self._tree else np.full(len(self._queues), NONE, np.int32),
            own,
            NONE if self._strict else self._level,
        )
        return permitted

    def spare(self, preemptor: Preemptor, rows: Rows) -> Bools | None:
        """Task-centric path: in reclaim as ``permitted``; preempt moves nothing between queues."""
        return self.permitted(preemptor, rows) if preemptor.purpose is Purpose.RECLAIM else None

    def legal(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the preemptor's queues stay under their ceilings and, strict, nobody falls below what it deserves."""
        snapshot, queues = self._snapshot, self._queues
        change = np.zeros_like(self._allocated)
        np.subtract.at(change, snapshot.task_queue[rows], snapshot.shapes.request[snapshot.tasks.shape[rows]])
        queue = int(snapshot.podgroups.queue[preemptor.podgroups[0]])
        lost = change.copy()
        change[queue] += preemptor.request
        if self._tree:
            for q in range(len(queues) - 1, -1, -1):
                if queues.parent[q] != NONE:
                    change[queues.parent[q]] += change[q]
                    lost[queues.parent[q]] += lost[q]
        after = self._allocated + change
        asked = preemptor.request > 0
        chain = queue_chain(queues, queue) if self._tree else [queue]
        if any((after[q] > self._ceiling[q])[asked].any() for q in chain):
            return False
        if not self._strict or preemptor.purpose is not Purpose.RECLAIM:
            return True
        losing = (lost < 0) & (change < 0) & (self._stated | (queues.guarantee > 0))
        losing[:, PODS] = False
        return not (losing & (after < self._deserved)).any()
