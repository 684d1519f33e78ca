"""The gang plugin: a podgroup starts whole or not at all ("Gang Plugin"). Roles bind unless it is elastic."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Longs, Rows
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.rules.gang_groups import gang_groups
from pipeline.cluster.rules.match_policy import starts_freely, to_make_room, to_start
from pipeline.cluster.rules.minima_met import is_pipelined, is_ready, is_starving, is_valid
from pipeline.cluster.rules.minimum import Have, Minima, by_itself, parts_spare, towards_start
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
        state = self._state if isinstance(self._state, WhatIf) else WhatIf.of(base)
        parts = tasks.role.take(rows), tasks.subgroup.take(rows)
        return _spared_by_parts(owner, ready, parts, base.once(towards_start), state.entries)

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
    owner: Ids, ready: Counts, parts: tuple[Ids, Ids], towards: tuple[Plain, Plain], changes: tuple[Longs, Longs, int]
) -> Bools:
    """The same of tasks with their roles and subgroups (``parts``, int32[C] each), on a what-if with ``changes``."""
    minima, have, (role, part), (heads, entries, count) = Minima(*towards[0]), Have(*towards[1]), parts, changes
    result, order, first = np.zeros(len(owner), np.bool_), np.argsort(owner, kind="mergesort"), 0
    while first < len(order):
        group, taken = owner[order[first]], 0
        needs, known = by_itself(minima, have, group, heads, entries, count)
        while first < len(order) and owner[order[first]] == group:
            at = order[first]
            first += 1
            if ready[at] - taken > needs.least[0]:
                mine = NONE if role[at] == NONE else role[at] - minima.role_start[group]
                inside = NONE if part[at] == NONE else part[at] - minima.part_start[group]
                result[at] = parts_spare(needs, known, 0, mine, inside)
                taken += result[at]
    return result
