"""The gang plugin: a podgroup starts whole or not at all ("Gang Plugin"). Roles bind unless it is elastic."""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Counts, Ids, Longs, Rows
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.rules.gang_groups import gang_groups
from pipeline.cluster.rules.match_policy import starts_freely, to_make_room, to_start
from pipeline.cluster.rules.minima_met import is_pipelined, is_ready, is_starving, is_valid
from pipeline.cluster.rules.minimum import Have, Minima, count_tasks, parts_spare, towards_start, writable
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
        self._policy = context.policy

    def job_order(self) -> Longs:
        """Key[G]: not ready first, as in upstream's code, not as "Gang Plugin" says (notes on Volcano, 2.3)."""
        return is_ready(self._snapshot).astype(np.int64)

    def job_valid(self) -> Bools:
        """bool[G]: enough tasks exist for its minima, and every podgroup that it starts with is there."""
        found = is_valid(to_start(self._snapshot, self._policy))
        complete = self._snapshot.once(gang_groups).complete
        if not complete.all():
            complete = complete | starts_freely(self._snapshot, self._policy.match_policy)
        return np.asarray(found & complete)

    def job_ready(self) -> Bools:
        """bool[G]: it could run now."""
        return is_ready(to_start(self._snapshot, self._policy))

    def job_pipelined(self) -> Bools:
        """bool[G]: it could run once its promised room is free."""
        return is_pipelined(to_start(self._snapshot, self._policy))

    def job_starving(self) -> Bools:
        """bool[G]: it is below a minimum even with promised tasks."""
        return is_starving(to_make_room(self._snapshot, self._policy))

    def evictable(self, preemptor: Preemptor) -> bool | None:
        """Permits every task on the gang path, where bundles decide what a gang can lose and whether it may break.

        Task by task it has no opinion on a task alone; see ``task_quota_filter``.
        """
        return True if preemptor.task == NONE else None

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools:
        """bool[C]: the ordered candidates that podgroup, role and subgroup can spare after those before them.

        Upstream looks at the podgroup's minimum only ("Gang Plugin", section 4.3), so that a gang can lose its driver.
        """
        base, tasks = self._base, self._base.tasks
        owner = tasks.podgroup.take(rows)
        ready = self._state.ready_of(owner)
        if (tasks.role.take(rows) == NONE).all() and (tasks.subgroup.take(rows) == NONE).all():
            return _spared(owner, ready, base.podgroups.min_available)
        columns = tasks.podgroup, tasks.role, tasks.subgroup
        return _spared_by_parts(owner, ready, rows, self._left(), base.once(towards_start), columns)

    def _left(self) -> Rows:
        """int64[V]: tasks that held a node on the snapshot and do not on the what-if."""
        if not isinstance(self._state, WhatIf):
            return NO_ROWS
        changed = self._state.changed
        left = (self._base.tasks.node[changed] != NONE) & (self._state.place_of(changed) == NONE)
        return np.asarray(changed[left])

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


@kernel
def _spared_by_parts(
    owner: Ids, ready: Counts, rows: Rows, left: Rows, towards: tuple[Plain, Plain], columns: Plain
) -> Bools:
    """The same of tasks ``rows`` with their roles and subgroups, once ``left`` (int64[V]) have gone."""
    minima, have, (podgroup, role, part) = Minima(*towards[0]), writable(Have(*towards[1])), columns
    count_tasks(-1, left, have, podgroup, role, part)
    result, taken = np.zeros(len(rows), np.bool_), np.zeros(len(minima.least), np.int64)
    for at in range(len(rows)):
        group, row = owner[at], rows[at]
        if ready[at] - taken[group] > minima.least[group]:
            result[at] = parts_spare(minima, have, group, role[row], part[row])
            taken[group] += result[at]
    return result
