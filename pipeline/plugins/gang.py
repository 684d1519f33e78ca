"""The gang plugin: a podgroup starts whole or not at all ("Gang Plugin"). Roles bind unless it is elastic."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Longs, Rows
from pipeline.cluster.rules.gang_groups import gang_groups
from pipeline.cluster.rules.match_policy import starts_freely, to_make_room, to_start
from pipeline.cluster.rules.minima_met import is_pipelined, is_ready, is_starving, is_valid
from pipeline.cluster.rules.sparing import TaskQuota, task_quota
from pipeline.kernels import kernel
from pipeline.plugins.extension_points import (
    CountsTasks,
    FiltersTasks,
    FindsStarving,
    OrdersJobs,
    PipelinesJobs,
    ReadiesJobs,
    ShieldsTasks,
    ValidatesJobs,
)
from pipeline.plugins.plugin import Context, Follows, Plugin, Preemptor, Protects
from pipeline.policy import PluginSetting

#: Of fewer tasks each looks at those before it.
_FEW = 64


class Gang(
    Plugin, OrdersJobs, ValidatesJobs, ReadiesJobs, PipelinesJobs, FindsStarving,
    ShieldsTasks, FiltersTasks, CountsTasks,
):  # fmt: skip
    """Validity, readiness, starvation and order of podgroups as gangs."""

    PROTECTS = Protects.MINIMA
    JOB_ORDER_FOLLOWS = Follows.READINESS

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._otherwise = context.policy.match_policy

    def job_order(self) -> Longs:
        """Key[G]: not ready first, as in upstream's code, not as "Gang Plugin" says (notes on Volcano, 2.3)."""
        return is_ready(self._snapshot).astype(np.int64)

    def job_valid(self) -> Bools:
        """bool[G]: enough tasks exist for its minima, and every podgroup that it starts with is there."""
        found = is_valid(to_start(self._snapshot, self._otherwise))
        complete = self._snapshot.once(gang_groups).complete
        if not complete.all():
            complete = complete | starts_freely(self._snapshot, self._otherwise)
        return np.asarray(found & complete)

    def job_ready(self) -> Bools:
        """bool[G]: it could run now."""
        return is_ready(to_start(self._snapshot, self._otherwise))

    def job_pipelined(self) -> Bools:
        """bool[G]: it could run once its promised room is free."""
        return is_pipelined(to_start(self._snapshot, self._otherwise))

    def job_starving(self) -> Bools:
        """bool[G]: it is below a minimum even with promised tasks."""
        return is_starving(to_make_room(self._snapshot, self._otherwise))

    def evictable(self, preemptor: Preemptor) -> bool | None:
        """Permits every task on the gang path, where bundles decide what a gang can lose and whether it may break.

        Task by task it has no opinion on a task alone; see ``task_quota_filter``.
        """
        return True if preemptor.task == NONE else None

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools:
        """bool[C]: the ordered candidates whose podgroup keeps its minimum without them and those before them."""
        owner = self._base.tasks.podgroup.take(rows)
        return _spared(owner, self._state.ready_of(owner), self._base.podgroups.min_available)

    def task_quota(self, preemptor: Preemptor) -> TaskQuota:
        """The same for podgroups in columns."""
        return task_quota(spares=True)


@kernel
def _spared(owner: Ids, ready: Counts, least: Counts) -> Bools:
    """bool[C]: tasks of ``owner`` (with ``ready`` tasks each) that go with those before them and leave the minimum."""
    result = np.empty(len(owner), np.bool_)
    if len(owner) < _FEW:  # sooner than a count for each podgroup of the fleet
        for at in range(len(owner)):
            before = 0
            for other in range(at):
                before += owner[other] == owner[at]
            result[at] = ready[at] - before > least[owner[at]]
        return result
    taken = np.zeros(len(least), np.int64)
    for at in range(len(owner)):
        result[at] = ready[at] - taken[owner[at]] > least[owner[at]]
        taken[owner[at]] += 1
    return result
