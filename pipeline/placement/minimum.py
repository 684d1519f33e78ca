"""Whether a podgroup, or one of its subgroups, would have its minimum if some waiting tasks were placed."""

import numpy as np

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.snapshot import Snapshot


def has_minimum(snapshot: Snapshot, podgroup: int, subgroup: int, placed: Rows) -> bool:
    """Whether the minimum is reached, counting what is ready, promised, without requests, or ``placed``.

    Parameters
    ----------
    subgroup
        Row of the subgroup that is asked about; NONE: the podgroup, with its roles (unless elastic) and subgroups.
    placed
        Waiting task rows that count as promised; those of other podgroups do not matter.
    """
    if subgroup != NONE:
        return _whole(snapshot, subgroup, podgroup, placed)
    standing, groups = snapshot.standing, snapshot.podgroups
    mine = placed[snapshot.tasks.podgroup[placed] == podgroup]
    have = standing.ready[podgroup] + standing.waiting[podgroup] + standing.pending_best_effort[podgroup] + len(mine)
    if have < groups.min_available[podgroup] or not _children_reach(snapshot, NONE, podgroup, placed):
        return False
    if not snapshot.roles_bind[podgroup]:
        return True
    roles = np.arange(snapshot.role_start[podgroup], snapshot.role_start[podgroup + 1])
    have_roles = snapshot.role_standing
    counted = have_roles.ready[roles] + have_roles.waiting[roles] + have_roles.pending_best_effort[roles]
    added = np.array([(snapshot.tasks.role[mine] == role).sum() for role in roles], np.int64)
    return bool((counted + added >= snapshot.roles.min_available[roles]).all())


def starts_with(snapshot: Snapshot, podgroup: int, rows: Rows) -> bool:
    """Whether the podgroup can start once ``rows`` are bound; what is merely promised does not count."""
    members = snapshot.tasks_of(podgroup)
    unpromised = snapshot.nominating(members, np.full(len(members), NONE, np.int64))
    return has_minimum(unpromised, podgroup, NONE, rows)


def _whole(snapshot: Snapshot, subgroup: int, podgroup: int, placed: Rows) -> bool:
    table, have = snapshot.subgroups, snapshot.subgroup_standing
    if (table.parent == subgroup).any():
        return _children_reach(snapshot, subgroup, podgroup, placed)
    own = int((snapshot.tasks.subgroup[placed] == subgroup).sum())
    ready = have.ready[subgroup] + have.waiting[subgroup] + have.pending_best_effort[subgroup]
    return bool(ready + own >= table.min_available[subgroup])


def _children_reach(snapshot: Snapshot, subgroup: int, podgroup: int, placed: Rows) -> bool:
    """Whether enough children of a subgroup (NONE: of the podgroup itself) are whole."""
    table = snapshot.subgroups
    rows = range(int(snapshot.subgroup_start[podgroup]), int(snapshot.subgroup_start[podgroup + 1]))
    children = [row for row in rows if table.parent[row] == subgroup]
    wanted = snapshot.podgroups.min_subgroups[podgroup] if subgroup == NONE else table.min_subgroups[subgroup]
    whole = sum(_whole(snapshot, child, podgroup, placed) for child in children)
    return whole >= (len(children) if wanted == NONE else wanted)
