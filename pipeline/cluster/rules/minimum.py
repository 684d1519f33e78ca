"""Whether a podgroup has its minimum: as a whole, in its roles (unless it is elastic) and in its subgroups.

Here it is asked of one podgroup or of some, with changes; ``minima_met`` answers for all podgroups of a snapshot.
"""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Counts, Ids, Longs, Rows, sealed
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.counted.counting import TaskColumns
from pipeline.cluster.counted.minima import (
    Have,
    Minima,
    by_itself,
    count_tasks,
    reaches,
    whole_and_spare,
    writable,
)
from pipeline.cluster.counted.totals import TaskCounts
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf, task_columns
from pipeline.kernels import kernel

_NO_PARTS = np.zeros(0, np.int32)


def has_minimum(state: Snapshot | WhatIf, podgroup: int, subgroup: int = NONE, placed: Rows = NO_ROWS) -> bool:
    """Whether the minimum is reached, counting what is ready, promised, without requests, or ``placed``.

    Parameters
    ----------
    subgroup
        Row of the subgroup in question; NONE: the podgroup, with its roles and subgroups.
    placed: int64[K]
        Waiting task rows that count as promised; those of other podgroups do not matter.
    """
    return _has(state, podgroup, subgroup, placed, promised=True)


def whole_without(snapshot: Snapshot, podgroups: Rows, rows: Rows) -> Bools:
    """bool[P]: which of ``podgroups`` int64[P] have their minimum, as ``has_minimum`` says, once ``rows`` are evicted.

    ``rows`` int64[V] hold nodes and count towards the minima of these podgroups.
    """
    if len(podgroups) == 0:
        return np.zeros(0, bool)
    tasks = snapshot.tasks
    columns = tasks.podgroup, tasks.role, tasks.subgroup
    return _whole_without(snapshot.once(towards_all), podgroups, rows, columns)


def leaves_with(snapshot: Snapshot, podgroup: int, placed: Rows) -> Counts:
    """int32[P]: what the leaf subgroups of a podgroup have towards their minima, counted as by ``has_minimum``."""
    first, last = snapshot.subgroup_start[podgroup : podgroup + 2].tolist()
    _, part = _of_placed(podgroup, placed, snapshot.nominated_of(placed), snapshot.once(task_columns))
    more = np.bincount(part[part != NONE] - first, minlength=last - first)
    return _towards(snapshot.subgroup_counts, promised=True)[first:last] + more.astype(np.int32)


def starts_with(state: Snapshot | WhatIf, podgroup: int, rows: Rows) -> bool:
    """Whether the podgroup can start once ``rows`` are bound; what is merely promised does not count."""
    return _has(state, podgroup, NONE, rows, promised=False)


def _has(state: Snapshot | WhatIf, podgroup: int, subgroup: int, placed: Rows, *, promised: bool) -> bool:
    what_if = state if isinstance(state, WhatIf) else WhatIf.of(state)
    snapshot = what_if.snapshot
    role = part = _NO_PARTS
    if len(placed):
        role, part = _of_placed(podgroup, placed, state.nominated_of(placed), snapshot.once(task_columns))
    minima, known = snapshot.once(towards_all if promised else towards_start)
    return bool(_reaches(*what_if.entries, podgroup, subgroup, role, part, promised, minima, known))


def towards_start(snapshot: Snapshot) -> tuple[Plain, Plain]:
    """``Minima`` and ``Have``."""
    return tuple(snapshot.once(minima_of)), tuple(_have(snapshot, promised=False))


def towards_all(snapshot: Snapshot) -> tuple[Plain, Plain]:
    """The same, with what is promised."""
    return tuple(snapshot.once(minima_of)), tuple(_have(snapshot, promised=True))


def _have(snapshot: Snapshot, *, promised: bool) -> Have:
    return Have(
        _towards(snapshot.counts, promised=promised),
        _towards(snapshot.role_counts, promised=promised),
        _towards(snapshot.subgroup_counts, promised=promised),
    )


def _towards(counts: TaskCounts, *, promised: bool) -> Counts:
    """int32[M]: what counts towards a minimum; a best-effort task with a promise counts once."""
    have = counts.ready + counts.pending_best_effort
    if promised:
        have += counts.waiting
    return sealed(have)


def minima_of(snapshot: Snapshot) -> Minima:
    """What its podgroups need."""
    groups, table = snapshot.podgroups, snapshot.subgroups
    return Minima(
        groups.min_available, snapshot.roles_bind, snapshot.role_start, snapshot.roles.min_available,
        snapshot.subgroup_start, table.parent, table.min_available, table.min_subgroups, groups.min_subgroups,
    )  # fmt: skip


@kernel
def _whole_without(towards: tuple[Plain, Plain], podgroups: Rows, rows: Rows, columns: Plain) -> Bools:
    minima, have, (podgroup, role, part) = Minima(*towards[0]), writable(Have(*towards[1])), columns
    count_tasks(-1, rows, have, podgroup, role, part)
    result = np.empty(len(podgroups), np.bool_)
    for at in range(len(podgroups)):
        result[at] = reaches(minima, have, podgroups[at])
    return result


@kernel
def _of_placed(podgroup: int, placed: Rows, nominated: Ids, plain: Plain) -> tuple[Ids, Ids]:
    """Roles and subgroups, int32[K] each, of the tasks of one podgroup that count once more when they are ``placed``.

    A task that asks for nothing counts already, unless a node is promised to it (``nominated``). ``plain`` are
    ``TaskColumns``.
    """
    columns = TaskColumns(*plain)
    mine = np.empty(len(placed), np.bool_)
    for at in range(len(placed)):
        row = placed[at]
        mine[at] = columns.podgroup[row] == podgroup and (not columns.best_effort[row] or nominated[at] != NONE)
    return columns.role[placed[mine]], columns.subgroup[placed[mine]]


@kernel
def _reaches(
    heads: Longs, entries: Longs, count: int,
    podgroup: int, subgroup: int, role: Ids, part: Ids, promised: bool, needs: Plain, known: Plain,
) -> bool:  # fmt: skip
    """Whether one podgroup, or a subgroup of it, has its minimum with the changes and once some more tasks count.

    ``needs`` are ``Minima``, ``known`` is ``Have``.
    """
    minima = Minima(*needs)
    mine, have = by_itself(minima, Have(*known), podgroup, heads, entries, count, promised)
    first_role, first_part = minima.role_start[podgroup], minima.part_start[podgroup]
    have.group[0] += len(role)
    for at in range(len(role)):
        if role[at] != NONE:
            have.role[role[at] - first_role] += 1
        if part[at] != NONE:
            have.leaf[part[at] - first_part] += 1
    if subgroup != NONE:
        return bool(whole_and_spare(mine, 0, have.leaf)[0][subgroup - first_part])
    return reaches(mine, have, 0)
