"""The gang plugin: a podgroup starts whole or not at all ("Gang Plugin"). Roles bind unless it is elastic."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Longs, Rows, all_true
from pipeline.cluster.counted.change_log import PODGROUP, READY_OFF, Plain, last_entry
from pipeline.cluster.counted.minima import Have, Minima, by_itself, parts_spare
from pipeline.cluster.rules.gang_groups import gang_groups
from pipeline.cluster.rules.match_policy import starts_freely, to_make_room, to_start
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.rules.minimum import towards_start
from pipeline.cluster.rules.sparing import TaskQuota, task_quota
from pipeline.cluster.what_if import WhatIf
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


class Gang(
    Plugin, OrdersJobs, ValidatesJobs, ReadiesJobs, PipelinesJobs, FindsStarving,
    ShieldsTasks, FiltersTasks, CountsTasks,
):  # fmt: skip
    """Validity, readiness, starvation and order of podgroups as gangs."""

    PROTECTS = Protects.MINIMA
    JOB_ORDER_FOLLOWS = Follows.READINESS

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._policy = context.policy

    def job_order(self) -> Longs:
        """Key[G]: not ready first, as in upstream's code, not as "Gang Plugin" says (notes on Volcano, 2.3)."""
        return minima_met(self._snapshot).ready.astype(np.int64)

    def job_valid(self) -> Bools:
        """bool[G]: enough tasks exist for its minima, and every podgroup that it starts with is there."""
        found = minima_met(to_start(self._snapshot, self._policy)).valid
        complete = self._snapshot.once(gang_groups).complete
        if not all_true(complete):
            complete = complete | starts_freely(self._snapshot, self._policy.match_policy)
        return np.asarray(found & complete)

    def job_ready(self) -> Bools:
        """bool[G]: it could run now."""
        return minima_met(to_start(self._snapshot, self._policy)).ready

    def job_pipelined(self) -> Bools:
        """bool[G]: it could run once its promised room is free."""
        return minima_met(to_start(self._snapshot, self._policy)).pipelined

    def job_starving(self) -> Bools:
        """bool[G]: it is below a minimum even with promised tasks."""
        return minima_met(to_make_room(self._snapshot, self._policy)).starving

    def evictable(self, preemptor: Preemptor) -> bool:
        """Every task: bundles decide what a gang can lose and whether it may break; task by task see ``task_quota``."""
        return True

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools:
        """bool[C]: the ordered candidates that podgroup, role and subgroup can spare after those before them.

        Upstream looks at the podgroup's minimum only ("Gang Plugin", section 4.3), so that a gang can lose its driver.
        """
        base, tasks = self._base, self._base.tasks
        state = self._state if isinstance(self._state, WhatIf) else WhatIf.of(base)
        columns = tasks.podgroup, tasks.role, tasks.subgroup
        return _spared(rows, columns, base.counts.ready, base.once(towards_start), state.entries)

    def task_quota(self, preemptor: Preemptor) -> TaskQuota:
        """The same for podgroups in columns."""
        return task_quota(spares=True)


@kernel
def _spared(
    rows: Rows, columns: Plain, ready: Counts, towards: tuple[Plain, Plain], changes: tuple[Longs, Longs, int]
) -> Bools:
    """bool[C]: tasks that go with those before them and leave the minimum of podgroup, role and subgroup.

    ``ready`` is that of all podgroups without the ``changes`` of a what-if.
    """
    minima, have, (podgroup, role, part) = Minima(*towards[0]), Have(*towards[1]), columns
    owner, first = podgroup[rows], 0
    result, order = np.zeros(len(rows), np.bool_), np.argsort(owner, kind="mergesort")
    while first < len(order):
        group = owner[order[first]]
        needs, known = by_itself(minima, have, group, *changes, False)
        entry = last_entry(*changes, PODGROUP, group)
        left = ready[group] + (0 if entry == NONE else changes[1][entry, READY_OFF])
        while first < len(order) and owner[order[first]] == group:
            at = order[first]
            first += 1
            if left > needs.least[0]:
                mine, inside = role[rows[at]], part[rows[at]]
                mine = NONE if mine == NONE else mine - minima.role_start[group]
                inside = NONE if inside == NONE else inside - minima.part_start[group]
                result[at] = parts_spare(needs, known, 0, mine, inside)
                left -= result[at]
    return result
