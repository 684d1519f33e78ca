"""The drf plugin: dominant resource fairness among podgroups (Ghodsi et al. 2011), or among queues as a tree.

The tree is hierarchical DRF (Bhattacharya et al. 2013) as Volcano does it (notes on Volcano, 2.9): a queue's share is
that of what its children hold, each scaled down to the smallest of their shares, so that a child with complementary
needs is not charged for what its siblings hold. A child that cannot grow (saturated) is not scaled, and is served last.
Promised room counts as held, which upstream counts only within a session. Upstream forgets a victim before it looks at
the next one; here victims add up. Saturation is determined before the victims go; otherwise the last task of a podgroup
could never reclaim.
"""

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Ids, Longs, Rows
from pipeline.cluster.orders import dense_rank, unique_inverse
from pipeline.cluster.queue_tree import chain
from pipeline.keeping import cached_property
from pipeline.plugins.extension_points import FiltersTasks, OrdersJobs, OrdersQueues
from pipeline.plugins.plugin import Context, Follows, Plugin, Preemptor, Protects
from pipeline.policy import HIERARCHY, PluginSetting, Purpose

#: Shares that differ by less are equal (Volcano's constant).
_EQUAL = 1e-6
#: Per queue from the top: whether it is saturated, and its weighted share.
_Path = tuple[tuple[bool, float], ...]


class DominantShare(Plugin, OrdersJobs, OrdersQueues, FiltersTasks):
    """Serves the podgroup with the smallest dominant share first.

    The switch ``hierarchy``, off by default, ranks the tree of queues before podgroups: queues are ordered by weighted
    hierarchical shares, and in reclaim a task may go only if its queue still comes after the preemptor's.
    """

    PROTECTS = Protects.DOMINANT_SHARES
    JOB_ORDER_FOLLOWS = Follows.SHARE
    QUEUE_ORDER_FOLLOWS = Follows.SHARE
    SWITCHES = (HIERARCHY,)

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._whole = context.snapshot.capacity
        self._tree = dict(setting.enabled).get(HIERARCHY, False)

    @cached_property
    def _held(self) -> Longs:
        """int64[G, R]: what each podgroup holds or was promised."""
        return self._state.held_of(np.arange(len(self._base.podgroups)))

    @cached_property
    def _wanted(self) -> Longs:
        """int64[G, R]: the same and what its tasks wait for."""
        return self._held + self._snapshot.totals.podgroup_sums.pending

    def _share(self, held: Longs | Floats) -> Floats:
        """float64[...]: the largest part of any resource, for ``held`` [..., R]."""
        part = np.divide(held, self._whole, out=np.zeros(held.shape), where=self._whole > 0)
        dominant: Floats = part.max(axis=-1, initial=0.0)
        return dominant

    def job_order(self) -> Floats | Longs:
        """Key[G]: smaller dominant share first; with ``hierarchy`` after the order of their queues."""
        share = self._share(self._held)
        if not self._tree:
            return share
        return dense_rank(self._queue_rank[self._snapshot.podgroups.queue], share)

    def queue_order(self, following: Ids) -> tuple[Longs, ...]:
        """With ``hierarchy``, smaller weighted share first, compared where the ancestors of two queues differ."""
        return (self._queue_rank,) if self._tree else ()

    @cached_property
    def _queue_rank(self) -> Longs:
        paths = self._paths(self._held)
        rank = {path: at for at, path in enumerate(sorted(set(paths)))}
        return np.array([rank[path] for path in paths], np.int64)

    @cached_property
    def _saturated(self) -> Bools:
        """bool[G]: podgroups that hold all that they want of some resource, or want one that is used up."""
        scarce, wants = self._held.sum(axis=0) >= self._whole, self._wanted > 0
        return np.asarray((wants & (scarce | ((self._held > 0) & (self._held >= self._wanted)))).any(axis=1))

    def _paths(self, held: Longs) -> list[_Path]:
        """The path of each queue, if the podgroups held ``held`` (int64[G, R])."""
        queues, groups = self._snapshot.queues, self._snapshot.podgroups
        own = np.zeros((len(queues), len(self._whole)))
        share, closed = np.zeros(len(queues)), np.ones(len(queues), bool)
        for queue in range(len(queues) - 1, -1, -1):  # children come after parents
            below = np.flatnonzero(queues.parent == queue)
            mine = np.flatnonzero((groups.queue == queue) & groups.alive)
            holds = np.concatenate([own[below], held[mine].astype(np.float64)])
            shares, done = self._share(holds), np.concatenate([closed[below], self._saturated[mine]])
            grows = (shares > 0) & ~done
            scale = np.where(grows, shares[grows].min(initial=1.0) / np.where(grows, shares, 1.0), 1.0)
            own[queue] = (holds * scale[:, None]).sum(axis=0)
            share[queue], closed[queue] = self._share(own[queue]), done.all()
        weighted = share / np.maximum(queues.weight, 1.0)
        return [
            tuple((bool(closed[q]), float(weighted[q])) for q in reversed(chain(queues.parent, queue)))
            for queue in range(len(queues))
        ]

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools | None:
        """bool[C]: in preempt, candidates whose podgroup keeps no smaller share than the preemptor gets.

        With ``hierarchy`` in reclaim, candidates whose queue is served after the preemptor's even then.
        """
        if preemptor.purpose is Purpose.RECLAIM:
            return self._reclaimable(preemptor, rows) if self._tree else None
        tasks = self._base.tasks
        mine = float(self._share(self._state.held_of(np.array(preemptor.podgroups[:1]))[0] + preemptor.request))
        owners, owner = unique_inverse(tasks.podgroup[rows])
        left, request = self._state.held_of(owners), self._base.request_of(rows)
        result = np.zeros(len(rows), bool)
        for position, at in enumerate(owner.tolist()):
            theirs = float(self._share(left[at] - request[position]))
            result[position] = mine < theirs or abs(mine - theirs) <= _EQUAL
            if result[position]:  # what stays takes nothing from its podgroup
                left[at] -= request[position]
        return result

    def _reclaimable(self, preemptor: Preemptor, rows: Rows) -> Bools:
        tasks, groups = self._snapshot.tasks, self._snapshot.podgroups
        holds, result = self._held.copy(), np.zeros(len(rows), bool)
        holds[preemptor.podgroups[0]] += preemptor.request
        own = int(groups.queue[preemptor.podgroups[0]])
        for position, row in enumerate(rows.tolist()):
            owner, request = int(tasks.podgroup[row]), self._snapshot.shapes.request[tasks.shape[row]]
            holds[owner] -= request
            paths = self._paths(holds)
            result[position] = paths[own] < paths[int(groups.queue[owner])]
            if not result[position]:
                holds[owner] += request
        return result
