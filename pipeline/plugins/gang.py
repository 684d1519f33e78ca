"""The gang plugin: a podgroup starts whole or not at all (document 3).

Ready: bound, running and succeeded tasks, and waiting ones without requests, reach the minimum. Pipelined: promised
ones count too. Starving: promised and ready ones, without the best-effort term, do not reach it. Roles bind unless the
podgroup is elastic; subgroups bind where they are stated.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.totals import Standing
from pipeline.plugins.extension_points import Context, Preemptor
from pipeline.policy import ExtensionPoint, PluginSetting


class Gang:
    """Validity, readiness, starvation and order of podgroups as gangs."""

    ORDERED_BY = (("standing", ExtensionPoint.JOB_ORDER),)

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        self._snapshot = context.snapshot
        self._setting = setting

    def job_order(self) -> Longs:
        """Not ready before ready: upstream's code, against one sentence of document 3 (notes-volcano 2.3)."""
        return self._snapshot.once(is_ready).astype(np.int64)

    def job_state(self, point: str) -> Bools | None:
        """See ``is_valid``, ``is_ready``, ``is_pipelined`` and ``is_starving``."""
        known = {
            ExtensionPoint.JOB_VALID: is_valid,
            ExtensionPoint.JOB_READY: is_ready,
            ExtensionPoint.JOB_PIPELINED: is_pipelined,
            ExtensionPoint.JOB_STARVING: is_starving,
        }
        return self._snapshot.once(known[ExtensionPoint(point)]) if point in known else None

    def evictable(self, preemptor: Preemptor) -> bool | None:
        """Permits everybody to a gang: what a gang can spare, and whether it may break, is settled by its bundles.

        Task by task nothing can be said of a task alone; see ``task_quota_filter``.
        """
        return True if preemptor.task == NONE else None

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools:
        """Of the ordered candidates, those whose podgroup stays above its minimum without them and those before."""
        owner = self._snapshot.tasks.podgroup[rows]
        order = np.argsort(owner, kind="stable")
        start = np.searchsorted(owner[order], owner[order], side="left")
        taken = np.empty(len(rows), np.int64)
        taken[order] = np.arange(len(rows)) - start
        standing, least = self._snapshot.standing, self._snapshot.podgroups.min_available
        return np.asarray(standing.ready[owner] - taken > least[owner])


def is_valid(snapshot: Snapshot) -> Bools:
    """bool[G]: enough tasks exist for the roles, the subgroups and the whole (three levels, in this order)."""
    return parts_valid(snapshot) & (snapshot.standing.valid >= snapshot.podgroups.min_available)


def parts_valid(snapshot: Snapshot) -> Bools:
    """bool[G]: enough tasks exist for the roles and the subgroups."""
    return _roles_reach(snapshot, snapshot.role_standing.valid) & _subgroups_reach(
        snapshot, snapshot.subgroup_standing.valid
    )


def is_ready(snapshot: Snapshot) -> Bools:
    """bool[G]: could run now."""
    return _reaches(snapshot, waiting=False)


def is_pipelined(snapshot: Snapshot) -> Bools:
    """bool[G]: could run once what was promised comes free."""
    return _reaches(snapshot, waiting=True)


def is_starving(snapshot: Snapshot) -> Bools:
    """bool[G]: below the minimum even with what was promised; best-effort tasks do not count.

    Upstream looks at the podgroup's minimum alone, so that a podgroup short of a role or subgroup never preempts
    (notes-volcano 1.8, 20); here such a podgroup starves too.
    """
    standing, groups = snapshot.standing, snapshot.podgroups
    below: Bools = standing.waiting + standing.ready < groups.min_available
    roles = snapshot.role_standing
    parts = snapshot.subgroup_standing
    short = ~(
        _roles_reach(snapshot, roles.ready + roles.waiting + roles.pending_best_effort)
        & _subgroups_reach(snapshot, parts.ready + parts.waiting + parts.pending_best_effort)
    )
    return (below | short) & groups.alive


def _reaches(snapshot: Snapshot, *, waiting: bool) -> Bools:
    def have(standing: Standing) -> Counts:
        # A best-effort task that was promised a node is counted once, as promised.
        promised = standing.waiting if waiting else 0
        return standing.ready + standing.pending_best_effort + promised

    return (
        _roles_reach(snapshot, have(snapshot.role_standing))
        & _subgroups_reach(snapshot, have(snapshot.subgroup_standing))
        & (have(snapshot.standing) >= snapshot.podgroups.min_available)
    )


def _roles_reach(snapshot: Snapshot, have: Counts) -> Bools:
    """bool[G]: no role is below its minimum, or roles do not bind."""
    short = np.zeros(len(snapshot.podgroups), bool)
    short[snapshot.roles.podgroup[have < snapshot.roles.min_available]] = True
    return np.asarray(~(short & snapshot.roles_bind))


def _subgroups_reach(snapshot: Snapshot, have: Counts) -> Bools:
    """bool[G]: enough subgroups are whole, level by level."""
    table, groups = snapshot.subgroups, snapshot.podgroups
    reached = np.ones(len(groups), bool)
    if len(table) == 0:
        return reached
    whole = have >= table.min_available
    children = np.bincount(table.parent[table.parent != NONE], minlength=len(table))
    for row in range(len(table) - 1, -1, -1):  # children come after parents
        if children[row]:
            own = table.parent == row
            wanted = children[row] if table.min_subgroups[row] == NONE else table.min_subgroups[row]
            whole[row] = whole[own].sum() >= wanted
    top = table.parent == NONE
    count = np.bincount(table.podgroup[top], minlength=len(groups))
    have_whole = np.bincount(table.podgroup[top], weights=whole[top], minlength=len(groups))
    wanted_top = np.where(groups.min_subgroups == NONE, count, groups.min_subgroups)
    return reached & (have_whole >= wanted_top)
