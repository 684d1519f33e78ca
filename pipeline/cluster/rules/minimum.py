"""Whether a podgroup has its minimum: as a whole, in its roles (unless it is elastic) and in its subgroups.

Here it is asked of one podgroup or of some, with changes; ``minima_met`` answers for all podgroups of a snapshot.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Counts, Ids, Longs, Rows, sealed
from pipeline.cluster.counted.change_log import (
    BEST_EFFORT_OFF,
    PODGROUP,
    READY_OFF,
    ROLE,
    SUBGROUP,
    WAITING_OFF,
    Plain,
    TaskColumns,
    last_entry,
)
from pipeline.cluster.counted.totals import TaskCounts
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.subgroups import whole_upwards
from pipeline.cluster.what_if import WhatIf, columns_of
from pipeline.kernels import inlined, kernel, linked

_NO_PARTS = np.zeros(0, np.int32)


class Minima(NamedTuple):
    """The minima of all podgroups.

    ``binds``: role minima count. ``role_start`` and ``part_start`` int64[G + 1] are offsets of roles and subgroups.
    """

    least: Counts
    binds: Bools
    role_start: Longs
    role_least: Counts
    part_start: Longs
    parent: Ids
    part_least: Counts
    wanted: Counts
    wanted_on_top: Counts


class Have(NamedTuple):
    """What podgroups, roles and leaf subgroups have towards their minima: int32[G], int32[L], int32[U]."""

    group: Counts
    role: Counts
    leaf: Counts


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
    _, part = _of_placed(podgroup, placed, snapshot.nominated_of(placed), snapshot.once(columns_of))
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
        role, part = _of_placed(podgroup, placed, state.nominated_of(placed), snapshot.once(columns_of))
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


@inlined
def writable(have: Have) -> Have:
    """Copies of the columns."""
    return Have(have.group.copy(), have.role.copy(), have.leaf.copy())


@inlined
def count_tasks(sign: int, rows: Rows, have: Have, podgroup: Ids, role: Ids, part: Ids) -> None:
    """Let tasks go (-1) or come back (1), in ``have``."""
    for row in rows:
        have.group[podgroup[row]] += sign
        if role[row] != NONE:
            have.role[role[row]] += sign
        if part[row] != NONE:
            have.leaf[part[row]] += sign


@linked
def reaches(minima: Minima, have: Have, group: int) -> bool:
    """Whether one podgroup has its minimum, and so do its parts."""
    return bool(have.group[group] >= minima.least[group] and parts_reach(minima, have, group))


@linked
def parts_reach(minima: Minima, have: Have, group: int) -> bool:
    """Whether in one podgroup no role that binds is below its minimum, and enough subgroups are whole."""
    if minima.binds[group]:
        for role in range(minima.role_start[group], minima.role_start[group + 1]):
            if have.role[role] < minima.role_least[role]:
                return False
    if minima.part_start[group] == minima.part_start[group + 1]:
        return bool(minima.wanted_on_top[group] <= 0)
    return subgroups_reach(minima, have, group)


@linked
def parts_spare(minima: Minima, have: Have, group: int, role: int, part: int) -> bool:
    """Whether roles and subgroups of a podgroup keep their minima, if they have them, without a task; if so it goes.

    ``role`` and ``part`` are those of the task, NONE: in none. It is taken from what these have, not from the podgroup.
    """
    last = role != NONE and minima.binds[group] and have.role[role] == minima.role_least[role]
    last |= part != NONE and have.leaf[part] == minima.part_least[part]
    kept = last and parts_reach(minima, have, group)
    _parts_lose(1, have, role, part)
    if kept and not parts_reach(minima, have, group):
        parts_regain(have, role, part)
        return False
    return True


@inlined
def parts_regain(have: Have, role: int, part: int) -> None:
    """Let a task that ``parts_spare`` took come back."""
    _parts_lose(-1, have, role, part)


@inlined
def _parts_lose(many: int, have: Have, role: int, part: int) -> None:
    if role != NONE:
        have.role[role] -= many
    if part != NONE:
        have.leaf[part] -= many


@inlined
def by_itself(minima: Minima, have: Have, group: int, heads: Longs, entries: Longs, count: int) -> tuple[Minima, Have]:
    """Minima and counts of one podgroup, as row 0 with its parts from row 0 on, with the changes of a what-if.

    What is promised does not count. The counts may be written to.
    """
    role, last_role = minima.role_start[group], minima.role_start[group + 1]
    part, last_part = minima.part_start[group], minima.part_start[group + 1]
    parent = minima.parent[part:last_part].copy()
    for at in range(len(parent)):
        parent[at] = NONE if parent[at] == NONE else parent[at] - part
    needs = Minima(
        minima.least[group : group + 1].copy(), minima.binds[group : group + 1].copy(),
        np.array([0, last_role - role]), minima.role_least[role:last_role].copy(), np.array([0, last_part - part]),
        parent, minima.part_least[part:last_part].copy(), minima.wanted[part:last_part].copy(),
        minima.wanted_on_top[group : group + 1].copy(),
    )  # fmt: skip
    known = Have(
        have.group[group : group + 1].copy(), have.role[role:last_role].copy(), have.leaf[part:last_part].copy()
    )
    known.group[0] += _more(heads, entries, count, PODGROUP, group, promised=False)
    for at in range(len(known.role)):
        known.role[at] += _more(heads, entries, count, ROLE, role + at, promised=False)
    for at in range(len(known.leaf)):
        known.leaf[at] += _more(heads, entries, count, SUBGROUP, part + at, promised=False)
    return needs, known


@linked
def subgroups_reach(minima: Minima, have: Have, group: int) -> bool:
    """Whether enough subgroups of one podgroup are whole, level by level."""
    first, stop = minima.part_start[group], minima.part_start[group + 1]
    return bool(_tree(minima, group, have.leaf[first:stop])[1][stop - first] >= 0)


@linked
def of_use(minima: Minima, podgroup: int, leaf: Counts) -> Bools:
    """bool[P]: which subgroups of a podgroup are whole, as are those above; ``leaf`` int32[P] is what leaves have."""
    whole, first = _tree(minima, podgroup, leaf)[0], minima.part_start[podgroup]
    for at in range(len(whole)):  # parents come before children
        above = minima.parent[first + at]
        if above != NONE:
            whole[at] &= whole[above - first]
    return whole


@kernel
def of_use_by_each(minima: Minima, podgroup: int, leaves: Counts) -> tuple[Bools, Bools]:
    """By each row of ``leaves`` int32[M, P]: whether enough subgroups are whole (bool[M]), and which are ``of_use``."""
    enough, use = np.empty(len(leaves), np.bool_), np.empty(leaves.shape, np.bool_)
    for at in range(len(leaves)):
        enough[at] = _tree(minima, podgroup, leaves[at])[1][-1] >= 0
        use[at] = of_use(minima, podgroup, leaves[at])
    return enough, use


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


@inlined
def _more(heads: Longs, entries: Longs, count: int, kind: int, row: int, promised: bool) -> int:
    """By how much more a podgroup, role or subgroup has towards its minimum than the snapshot says."""
    entry = last_entry(heads, entries, count, kind, row)
    if entry == NONE:
        return 0
    more = entries[entry, READY_OFF] + entries[entry, BEST_EFFORT_OFF]
    return int(more + entries[entry, WAITING_OFF] if promised else more)


@kernel
def _reaches(
    heads: Longs, entries: Longs, count: int,
    podgroup: int, subgroup: int, role: Ids, part: Ids, promised: bool, needs: Plain, known: Plain,
) -> bool:  # fmt: skip
    """Whether one podgroup, or a subgroup of it, has its minimum with the changes and once some more tasks count.

    ``needs`` are ``Minima``, ``known`` is ``Have``.
    """
    minima, have = Minima(*needs), Have(*known)
    first, stop = minima.part_start[podgroup], minima.part_start[podgroup + 1]
    leaf = have.leaf[first:stop].copy()
    for at in range(stop - first):
        leaf[at] += _more(heads, entries, count, SUBGROUP, first + at, promised)
    for at in range(len(part)):
        if part[at] != NONE:
            leaf[part[at] - first] += 1
    if subgroup != NONE:
        return bool(_tree(minima, podgroup, leaf)[0][subgroup - first])
    has = have.group[podgroup] + len(role) + _more(heads, entries, count, PODGROUP, podgroup, promised)
    if has < minima.least[podgroup]:
        return False
    if minima.binds[podgroup]:
        begin, end = minima.role_start[podgroup], minima.role_start[podgroup + 1]
        counted = have.role[begin:end].copy()
        for at in range(len(role)):
            if role[at] != NONE:
                counted[role[at] - begin] += 1
        for at in range(end - begin):
            if counted[at] + _more(heads, entries, count, ROLE, begin + at, promised) < minima.role_least[begin + at]:
                return False
    if first == stop:
        return bool(minima.wanted_on_top[podgroup] <= 0)
    return bool(_tree(minima, podgroup, leaf)[1][stop - first] >= 0)


@linked
def _tree(minima: Minima, group: int, leaf: Counts) -> tuple[Bools, Counts]:
    """Which subgroups of a podgroup are whole, and how many children each of them, and last the podgroup, can spare."""
    first, count = minima.part_start[group], len(leaf)
    holder, wanted = np.empty(count, np.int32), np.empty(count + 1, np.int32)
    for at in range(count):
        parent = minima.parent[first + at]
        holder[at] = count if parent == NONE else parent - first
        wanted[at] = minima.wanted[first + at]
    wanted[count] = minima.wanted_on_top[group]
    return whole_upwards(holder, wanted, leaf, minima.part_least[first : first + count])
