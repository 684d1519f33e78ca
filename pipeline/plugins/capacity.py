"""The capacity plugin: queues with a guarantee, a deserved share and a ceiling, flat or as a tree.

Semantics of Volcano's plugin of that name (notes-volcano 2.7), with two differences. Ancestors are charged too when
victims are counted off (upstream's gang vote forgets them). With the argument ``strict`` (our default profile) a queue
never falls below what it deserves, resource by resource and whatever the order of the victims; upstream lets the last
victim overshoot.
"""

from itertools import zip_longest
from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, Bools, Floats, Ids, Longs, Rows
from pipeline.cluster.quota import committed, flat_ceilings, least_of
from pipeline.cluster.resources import CPU, MEMORY, PODS
from pipeline.cluster.tables import OPEN
from pipeline.cluster.totals import queue_chain, with_ancestors
from pipeline.kernels import kernel
from pipeline.plugins.arguments import COUNT, SWITCH
from pipeline.plugins.extension_points import (
    AdmitsJobs,
    AllowsReclaim,
    Context,
    FiltersBundles,
    FiltersTasks,
    Follows,
    LimitsQueues,
    Opinion,
    OrdersQueues,
    OrdersVictimQueues,
    Plugin,
    Preemptor,
    SharesFairly,
    ShieldsTasks,
    ValidatesVictims,
)
from pipeline.policy import HIERARCHY, PluginSetting, Purpose


@kernel
def _loses(taken: Longs, left: Longs, deserved: Longs, counts: Bools, strict: bool) -> bool:
    """Whether a queue with ``left`` may lose ``taken`` (int64[R]).

    Strict: it keeps what it deserves of everything that is taken. Else it must hold more than it deserves of something
    that is taken, or deserve nothing of it; pods are an entitlement too, but nobody holds too many of them.
    """
    entitled = False
    for r in range(len(taken)):
        if taken[r] <= 0:
            continue
        entitled |= deserved[r] > 0
        if r == PODS or not counts[r]:
            continue
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
    answer: Ids,
    kin: Bools,
    strict: bool,
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
    guarantee: int64[Q, R]
        Never taken away. Not strict: who is below it of anything loses nothing at all, as upstream has it.
    answer: int32[Q, A]
        For each queue those who must be able to spare what it loses, itself first; NONE where there are fewer.
    kin: bool[Q]
        Queues that share an ancestor with the preemptor's queue, which deserves nothing of what it asks for: no quota
        says that it goes before them, so that who is entitled to nothing is not taken either.
    """
    permitted = np.zeros(len(queue), np.bool_)
    for task in range(len(queue)):
        taken, mine = held[task], queue[task]
        useful, may, entitled = strict, True, False
        for r in range(len(taken)):
            useful |= asked[r] and taken[r] > 0
            entitled |= taken[r] > 0 and deserved[mine, r] > 0
            if not strict or (taken[r] > 0 and r != PODS):
                may &= left[mine, r] - taken[r] >= guarantee[mine, r]
        may &= useful and (entitled or not kin[mine])
        for at in range(answer.shape[1]):
            row = answer[mine, at]
            if not may or row == NONE:
                break
            may = _loses(taken, left[row], deserved[row], counts[row], strict)
        if not may:
            continue
        permitted[task] = True
        row = mine
        while row != NONE:
            left[row] -= taken
            row = parent[row]
    return permitted


class Capacity(
    Plugin,
    OrdersQueues,
    OrdersVictimQueues,
    LimitsQueues,
    AllowsReclaim,
    AdmitsJobs,
    ShieldsTasks,
    SharesFairly,
    FiltersBundles,
    FiltersTasks,
    ValidatesVictims,
):
    """Quota of queues: who may take, who may be taken from, and how much."""

    QUEUE_ORDER_FOLLOWS = Follows.SHARE
    ARGUMENTS: ClassVar = {"strict": SWITCH, "ancestor_reclaim_level": COUNT}
    SWITCHES = (HIERARCHY,)

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        self._snapshot = context.snapshot
        self._queues = context.snapshot.queues
        # The flag is a point of Volcano's configuration; a tree of queues needs no telling, but may be ignored.
        points = dict(setting.enabled)
        self._tree = points.get(HIERARCHY, points.get("*", False))
        self._strict = setting.argument("strict", False)
        self._level = setting.argument("ancestor_reclaim_level", 0)
        self._allocated = self._snapshot.allocated if self._tree else self._snapshot.allocated_here
        self._ceiling = self._ceilings()
        self._stated = self._queues.deserved != UNSET
        self._deserved = self._entitlements()
        self._answers: dict[int, Ids] = {}

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

    def _share(self) -> Floats:
        """float64[Q]: the largest used fraction of what a queue deserves; 1 where it deserves nothing but pods."""
        entitled = self._deserved > 0
        fraction = np.divide(self._allocated, self._deserved, out=np.zeros(self._deserved.shape), where=entitled)
        return np.where(self._bare, 1.0, fraction.max(axis=1, initial=0.0))

    @property
    def _bare(self) -> Bools:
        """bool[Q]: queues that deserve nothing; pods alone are nothing."""
        return np.asarray(~np.delete(self._deserved > 0, PODS, axis=1).any(axis=1))

    def queue_order(self) -> tuple[Floats | Longs, ...]:
        """Higher priority, then the least satisfied queue; in a tree compared where two queues' ancestors part."""
        share, bare = self._share(), self._bare
        priority: Longs = -self._queues.priority.astype(np.int64)
        if not self._tree or (self._queues.parent == NONE).all():
            return priority, share, bare.astype(np.int64)
        paths = [
            [(share[q], bare[q], self._queues.order[q]) for q in reversed(queue_chain(self._queues, queue))]
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
        if ((self._allocated[queue] + preemptor.request) > self._ceiling[queue])[asked].any():
            return False
        line = [queue, *self._above(queue)]
        return any(self._within(q, preemptor.request, asked & (self._deserved[q] > 0)).any() for q in line)

    def _within(self, queue: int, request: Longs, dims: Bools) -> Bools:
        after = self._allocated[queue] + request
        return np.asarray((after <= self._deserved[queue])[dims])

    def _asked(self, preemptor: Preemptor) -> Bools:
        asked: Bools = preemptor.request > 0
        asked = asked.copy()
        asked[PODS] = False
        return asked

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

    def has_quota(self, preemptor: Preemptor) -> bool:
        """Whether ``bundle_quota_filter`` refuses anybody for this preemptor."""
        return preemptor.purpose is Purpose.RECLAIM

    def bundle_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools:
        """In reclaim, candidates in order while their queues are above what they deserve; preempt asks nothing."""
        if preemptor.purpose is not Purpose.RECLAIM:
            return np.ones(len(rows), bool)
        snapshot, queues = self._snapshot, self._queues
        mine = int(snapshot.podgroups.queue[preemptor.podgroups[0]])
        permitted: Bools = _count_off(
            snapshot.queue_of(rows),
            snapshot.shapes.request[snapshot.tasks.shape[rows]],
            self._asked(preemptor),
            self._allocated.copy(),
            self._deserved,
            self._counts,
            queues.guarantee,
            queues.parent if self._tree else np.full(len(queues), NONE, np.int32),
            self._answering(mine),
            self._kin(mine, preemptor),
            self._strict,
        )
        return permitted

    @property
    def _counts(self) -> Bools:
        """bool[Q, R]: where an entitlement counts; a scalar counts as soon as it is stated, were it 0 (upstream)."""
        if self._strict:
            return np.asarray(self._stated)
        scalar = np.ones(self._deserved.shape[1], bool)
        scalar[[CPU, MEMORY, PODS]] = False
        return np.asarray((self._deserved > 0) | (self._stated & scalar))

    def _above(self, queue: int) -> list[int]:
        """Ancestors that answer for a queue: ``ancestor_reclaim_level`` of them, the root left out."""
        chain = queue_chain(self._queues, queue)[1:] if self._tree else []
        return [q for q in chain if self._queues.parent[q] != NONE][: self._level]

    def _answering(self, mine: int) -> Ids:
        """int32[Q, A]: for each queue those who must be able to spare what it loses to ``mine``, itself first.

        Strict: all the way up to the ancestors of ``mine``, for what is taken below them stays theirs. Else as many
        ancestors as answer, but for those that ``mine`` has at the same height.
        """
        if mine in self._answers:
            return self._answers[mine]
        own = set(queue_chain(self._queues, mine))
        rows = list[list[int]]()
        for queue in range(len(self._queues)):
            above = self._above(queue)
            chain = queue_chain(self._queues, queue) if self._tree else [queue]
            if self._strict:
                rows.append([q for q in chain if q not in own])
            else:
                rows.append(
                    [queue, *(q for q, other in zip_longest(above, self._above(mine)) if q not in (None, other))]
                )
        answer = np.full((len(rows), max(map(len, rows), default=1)), NONE, np.int32)
        for queue, some in enumerate(rows):
            answer[queue, : len(some)] = some
        self._answers[mine] = answer
        return answer

    def _kin(self, mine: int, preemptor: Preemptor) -> Bools:
        """bool[Q]: see ``_count_off``."""
        above, result = set(self._above(mine)), np.zeros(len(self._queues), bool)
        if self._strict or not above or ((preemptor.request > 0) & (self._deserved[mine] > 0)).any():
            return result
        result[:] = [bool(above.intersection(self._above(queue))) for queue in range(len(result))]
        return result

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools | None:
        """Task-centric path: in reclaim as ``bundle_quota_filter``; preempt moves nothing between queues."""
        return self.bundle_quota_filter(preemptor, rows) if preemptor.purpose is Purpose.RECLAIM else None

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the preemptor's queues stay under their ceilings and, strict, nobody falls below what it deserves."""
        if not preemptor.podgroups:
            return True  # clearing and consolidating give no queue more than it has
        snapshot, queues = self._snapshot, self._queues
        if queues.state[snapshot.podgroups.queue[preemptor.podgroups[0]]] != OPEN:
            return False
        change = np.zeros_like(self._allocated)
        np.subtract.at(change, snapshot.queue_of(rows), snapshot.shapes.request[snapshot.tasks.shape[rows]])
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
