"""Minima as kernels ask about them: columns of what podgroups, roles and subgroups need, and of what they have."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Longs, Rows
from pipeline.cluster.counted.change_log import (
    BEST_EFFORT_OFF,
    PODGROUP,
    READY_OFF,
    ROLE,
    SUBGROUP,
    WAITING_OFF,
    Plain,
    last_entry,
)
from pipeline.cluster.subgroups import whole_upwards
from pipeline.kernels import inlined, kernel, linked


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
def by_itself(
    minima: Minima, have: Have, group: int, heads: Longs, entries: Longs, count: int, promised: bool
) -> tuple[Minima, Have]:
    """Minima and counts of one podgroup, as row 0 with its parts from row 0 on, with the changes of a what-if.

    The counts may be written to; ``promised``: what is promised counts.
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
    known.group[0] += more_by_changes(heads, entries, count, PODGROUP, group, promised)
    for at in range(len(known.role)):
        known.role[at] += more_by_changes(heads, entries, count, ROLE, role + at, promised)
    for at in range(len(known.leaf)):
        known.leaf[at] += more_by_changes(heads, entries, count, SUBGROUP, part + at, promised)
    return needs, known


@linked
def subgroups_reach(minima: Minima, have: Have, group: int) -> bool:
    """Whether enough subgroups of one podgroup are whole, level by level."""
    first, stop = minima.part_start[group], minima.part_start[group + 1]
    return bool(whole_and_spare(minima, group, have.leaf[first:stop])[1][stop - first] >= 0)


@linked
def of_use(minima: Minima, podgroup: int, leaf: Counts) -> Bools:
    """bool[P]: which subgroups of a podgroup are whole, as are those above; ``leaf`` int32[P] is what leaves have."""
    whole, first = whole_and_spare(minima, podgroup, leaf)[0], minima.part_start[podgroup]
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
        enough[at] = whole_and_spare(minima, podgroup, leaves[at])[1][-1] >= 0
        use[at] = of_use(minima, podgroup, leaves[at])
    return enough, use


@kernel
def lacking_leaves(
    plain: Plain, podgroups: Rows, have: Counts, waiting: Counts
) -> tuple[Longs, Rows, Longs]:  # fmt: skip
    """What the subgroups of some podgroups lack at least, int64[P], in which leaves, int64[L], and how much there.

    An inner subgroup, or a podgroup, needs as many children as its minimum says, all of them if it says nothing. Those
    come first that lack least, and last those that the tasks that wait cannot make whole. ``plain`` are ``Minima``;
    ``have`` and ``waiting`` int32[U] say what leaves have, and how many tasks may still come.
    """
    minima, many = Minima(*plain), 0
    for group in podgroups:
        many += minima.part_start[group + 1] - minima.part_start[group]
    in_all, found = np.zeros(len(podgroups), np.int64), 0
    leaves, short = np.empty(many, np.int64), np.empty(many, np.int64)
    for at in range(len(podgroups)):
        first = minima.part_start[podgroups[at]]
        lacks, needed = _needed_parts(minima, podgroups[at], have, waiting)
        in_all[at] = lacks[len(needed)]
        for row in range(len(needed)):
            if needed[row] and lacks[row] > 0:
                leaves[found], short[found] = first + row, lacks[row]
                found += 1
    return in_all, leaves[:found], short[:found]


@linked
def _needed_parts(minima: Minima, group: int, have: Counts, waiting: Counts) -> tuple[Longs, Bools]:
    """What each subgroup of a podgroup lacks, and last the podgroup, int64[P + 1]; and which leaves count, bool[P]."""
    first, count = minima.part_start[group], minima.part_start[group + 1] - minima.part_start[group]
    holder, inner = np.full(count, count, np.int64), np.zeros(count + 1, np.bool_)
    for at in range(count):
        parent = minima.parent[first + at]
        if parent != NONE:
            holder[at] = parent - first
            inner[holder[at]] = True
    lacks, never, needed = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.bool_), np.zeros(count, np.bool_)
    for at in range(count - 1, -1, -1):  # parents come before children
        if inner[at]:
            _take_least(holder, at, minima.wanted[first + at], lacks, never, needed)
        else:
            lacks[at] = max(minima.part_least[first + at] - have[first + at], 0)
            never[at] = lacks[at] > waiting[first + at]
    _take_least(holder, count, minima.wanted_on_top[group], lacks, never, needed)
    for at in range(count):
        needed[at] &= holder[at] == count or needed[holder[at]]
    for at in range(count):
        needed[at] &= not inner[at]
    return lacks, needed


@linked
def _take_least(holder: Longs, at: int, wanted: int, lacks: Longs, never: Bools, needed: Bools) -> None:
    """Let a subgroup, or the podgroup, lack what as many children lack as it needs: mark those that lack least."""
    children = np.flatnonzero(holder == at)
    if wanted != NONE and wanted < len(children):
        last = lacks[children].max() + 1  # those that the tasks that wait cannot make whole come after all others
        children = children[np.argsort(lacks[children] + last * never[children], kind="mergesort")][:wanted]
    for child in children:
        needed[child] = True
        lacks[at] += lacks[child]
        never[at] |= never[child]


@inlined
def more_by_changes(heads: Longs, entries: Longs, count: int, kind: int, row: int, promised: bool) -> int:
    """By how much more a podgroup, role or subgroup has towards its minimum than the snapshot says."""
    entry = last_entry(heads, entries, count, kind, row)
    if entry == NONE:
        return 0
    more = entries[entry, READY_OFF] + entries[entry, BEST_EFFORT_OFF]
    return int(more + entries[entry, WAITING_OFF] if promised else more)


@linked
def whole_and_spare(minima: Minima, group: int, leaf: Counts) -> tuple[Bools, Counts]:
    """Which subgroups of a podgroup are whole, and how many children each of them, and last the podgroup, can spare.

    bool[P] and int32[P + 1]; ``leaf`` int32[P] is what leaves have.
    """
    first, count = minima.part_start[group], len(leaf)
    holder, wanted = np.empty(count, np.int32), np.empty(count + 1, np.int32)
    for at in range(count):
        parent = minima.parent[first + at]
        holder[at] = count if parent == NONE else parent - first
        wanted[at] = minima.wanted[first + at]
    wanted[count] = minima.wanted_on_top[group]
    return whole_upwards(holder, wanted, leaf, minima.part_least[first : first + count])
