"""Which of their waiting tasks bring podgroups to their minima: those of roles and subgroups first, then in order."""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import kernel


def minimum_of(snapshot: Snapshot, podgroup: int, rows: Rows) -> tuple[Bools, int]:
    """Which of the pending ``rows`` (bool[K], in placement order) reach the minimum, and how many it still lacks.

    Roles and subgroups that are short come first, then tasks in order until ``min_available`` is reached. Best-effort
    tasks are included: each needs a place for its pod, and a gang starves until it has one.
    """
    chosen, lacking = reaching_minima(snapshot, np.array([podgroup]), rows, np.zeros(len(rows), np.int64))
    return chosen, int(lacking[0])


def reaching_minima(snapshot: Snapshot, podgroups: Rows, rows: Rows, owner: Rows) -> tuple[Bools, Longs]:
    """The same for several podgroups: bool[K], and int64[P].

    Parameters
    ----------
    podgroups
        int64[P]
    rows, owner
        int64[K]: pending tasks of one podgroup after the other, each in placement order, and positions of their
        podgroups in ``podgroups``.
    """
    counts, least = snapshot.counts, snapshot.podgroups.min_available
    chosen, lacking = np.zeros(len(rows), bool), np.zeros(len(podgroups), np.int64)
    after = podgroups + 1
    roles = snapshot.roles_bind[podgroups] & (snapshot.role_start[after] > snapshot.role_start[podgroups])
    inner = roles | (snapshot.subgroup_start[after] > snapshot.subgroup_start[podgroups])
    for at in inner.nonzero()[0].tolist():
        mine = slice(*owner.searchsorted((at, at + 1)).tolist())
        chosen[mine], lacking[at] = _leading_of_parts(snapshot, int(podgroups[at]), rows[mine])
    _fill_up(podgroups, owner, least, counts.ready, counts.waiting, chosen, lacking)
    return chosen, lacking


@kernel
def _fill_up(
    podgroups: Rows, owner: Rows, least: Counts, ready: Counts, waiting: Counts, chosen: Bools, lacking: Longs
) -> None:
    """Choose tasks in order until each podgroup has its minimum; ``lacking`` becomes at least what it lacks then."""
    missing = np.empty(len(podgroups), np.int64)
    for at in range(len(podgroups)):
        group = podgroups[at]
        missing[at] = least[group] - ready[group] - waiting[group]
    for task in range(len(owner)):
        missing[owner[task]] -= chosen[task]
    for task in range(len(owner)):
        if not chosen[task] and missing[owner[task]] > 0:
            chosen[task] = True
            missing[owner[task]] -= 1
    for at in range(len(podgroups)):
        lacking[at] = max(lacking[at], missing[at])


def _leading_of_parts(snapshot: Snapshot, podgroup: int, rows: Rows) -> tuple[Bools, int]:
    """Which of the pending ``rows`` make the roles and subgroups of a podgroup whole, and how many these still lack."""
    chosen, lacking, tasks = np.zeros(len(rows), bool), 0, snapshot.tasks
    if snapshot.roles_bind[podgroup]:
        have = snapshot.role_counts
        for role in range(snapshot.role_start[podgroup], snapshot.role_start[podgroup + 1]):
            short = snapshot.roles.min_available[role] - have.ready[role] - have.waiting[role]
            lacking += _take(rows, tasks.role, role, int(short), chosen)
    for leaf, short in _short_subgroups(snapshot, podgroup, rows):
        wanted = short - int(chosen[tasks.subgroup[rows] == leaf].sum())
        lacking += _take(rows, tasks.subgroup, leaf, wanted, chosen)
    return chosen, lacking


def _take(rows: Rows, of: Ids, row: int, wanted: int, chosen: Bools) -> int:
    """Mark the first ``wanted`` tasks of one owner that are not chosen yet; returns how many are missing."""
    if wanted <= 0:
        return 0
    found = np.flatnonzero((of[rows] == row) & ~chosen)[:wanted]
    chosen[found] = True
    return wanted - len(found)


def _short_subgroups(snapshot: Snapshot, podgroup: int, rows: Rows) -> list[tuple[int, int]]:
    """Leaf subgroups that must still become whole, and by how many tasks: the closest to it first.

    An inner subgroup needs ``min_subgroups`` of its children (all of them if not stated). Whole children count; then
    those that lack least are taken, and last those that the pending ``rows`` cannot complete.
    """
    first, last = int(snapshot.subgroup_start[podgroup]), int(snapshot.subgroup_start[podgroup + 1])
    if first == last:
        return []
    table, have = snapshot.subgroups, snapshot.subgroup_counts
    waiting = np.bincount(snapshot.tasks.subgroup[rows] + 1, minlength=len(table) + 1)[1:]
    children: dict[int, list[int]] = {}
    for row in range(first, last):
        children.setdefault(int(table.parent[row]), []).append(row)

    def lacking(row: int) -> list[tuple[int, int]]:
        if row not in children:
            short = int(table.min_available[row] - have.ready[row] - have.waiting[row])
            return [(row, short)] if short > 0 else []
        return chosen_of(children[row], int(table.min_subgroups[row]))

    def chosen_of(rows: Sequence[int], wanted: int) -> list[tuple[int, int]]:
        lacks = [(*_effort(leaves, waiting), row, leaves) for row in rows for leaves in (lacking(row),)]
        lacks.sort(key=lambda entry: entry[:3])
        return [leaf for *_, leaves in lacks[: len(rows) if wanted == NONE else wanted] for leaf in leaves]

    return chosen_of(children[NONE], int(snapshot.podgroups.min_subgroups[podgroup]))


def _effort(leaves: Sequence[tuple[int, int]], waiting: Longs) -> tuple[bool, int]:
    """The effort to complete some leaves: whether it is impossible, and how many tasks it takes."""
    return any(short > waiting[leaf] for leaf, short in leaves), sum(short for _, short in leaves)
