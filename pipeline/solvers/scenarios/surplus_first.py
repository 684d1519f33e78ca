"""The tasks of a podgroup that may go without breaking it, before its others."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Longs, Rows
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.counted.minima import Have, Minima, of_use, parts_spare, reaches, writable
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.rules.minimum import towards_all
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import kernel, linked


def surplus_first(snapshot: Snapshot, rows: Rows, owner: Rows) -> tuple[Rows, Bools]:
    """The tasks by podgroup, surplus first, in the order in which they go; and which are surplus.

    A podgroup with roles that bind or with subgroups gives up tasks as long as it keeps its minima. First go those that
    are of no use, since their subgroup or one above it is not whole: so one subgroup goes before a second one breaks.
    Then those that their subgroup can spare, of the fullest first; then those that break one. Any other podgroup gives
    up its first ones.

    Parameters
    ----------
    rows, owner: int64[C]
        Tasks that hold nodes, sorted by podgroup (``owner``), the lowest priority first.
    """
    tasks = snapshot.tasks
    columns = tasks.podgroup, tasks.role, tasks.subgroup
    ready = snapshot.counts.ready, minima_met(snapshot).ready
    return _surplus_first(snapshot.once(towards_all), rows, owner, columns, ready)


@kernel
def _surplus_first(
    towards: tuple[Plain, Plain], rows: Rows, owner: Rows, columns: Plain, ready: tuple[Counts, Bools]
) -> tuple[Rows, Bools]:
    """The same: ``ready`` are the ready tasks of each podgroup, and whether these reach its minima."""
    minima, have, (running, reached) = Minima(*towards[0]), writable(Have(*towards[1])), ready
    result, spare, at = np.empty_like(rows), np.zeros(len(rows), np.bool_), 0
    while at < len(rows):
        group, first = owner[at], at
        while at < len(rows) and owner[at] == group:
            at += 1
        mine, count = rows[first:at], 0
        result[first:at] = mine
        roles = minima.binds[group] and minima.role_start[group] < minima.role_start[group + 1]
        if roles or minima.part_start[group] < minima.part_start[group + 1]:
            if reaches(minima, have, group):
                count = _give_up(minima, have, group, mine, columns, result[first:at])
        elif reached[group]:
            count = max(running[group] - minima.least[group], 0)
        spare[first : min(first + count, at)] = True
    return result, spare


@linked
def _give_up(minima: Minima, have: Have, group: int, mine: Rows, columns: Plain, result: Rows) -> int:
    """How many tasks of a podgroup that has its minima can go, one after the other; they come first in ``result``.

    What is not there any more is taken from ``have``. A task that breaks the podgroup when its turn comes does so later
    as well, since there is only less: it is asked about once.
    """
    head, following = _chained(minima, group, mine, columns)
    given, stays = 0, np.ones(len(mine), np.bool_)
    for _ in range(len(mine)):
        part = _first_to_lose(minima, have, group, head)
        at = head[part]
        head[part] = following[at]
        if _spares(minima, have, group, mine[at], columns):
            result[given], stays[at] = mine[at], False
            given += 1
    result[given:] = mine[stays]
    return given


@linked
def _chained(minima: Minima, group: int, mine: Rows, columns: Plain) -> tuple[Longs, Longs]:
    """Chains of the tasks of each subgroup, and last of those in none: where each begins, and what follows; or NONE."""
    part, first = columns[2], minima.part_start[group]
    none = minima.part_start[group + 1] - first
    head, following = np.full(none + 1, NONE, np.int64), np.empty(len(mine), np.int64)
    for at in range(len(mine) - 1, -1, -1):
        own = part[mine[at]] - first if part[mine[at]] != NONE else none
        following[at], head[own] = head[own], at
    return head, following


@linked
def _first_to_lose(minima: Minima, have: Have, group: int, head: Longs) -> int:
    """The subgroup with a task left that loses one next, of equals the last; else those in none."""
    best, least_harm, most, first = len(head) - 1, 3, 0.0, minima.part_start[group]
    leaf = have.leaf[first : minima.part_start[group + 1]]
    use = of_use(minima, group, leaf)
    for part in range(len(head) - 1):
        if head[part] == NONE:
            continue
        least = minima.part_least[first + part]
        harm = (2 if leaf[part] <= least else 1) if use[part] else 0
        full = leaf[part] / max(least, 1)
        if harm < least_harm or (harm == least_harm and full >= most):
            best, least_harm, most = part, harm, full
    return best


@linked
def _spares(minima: Minima, have: Have, group: int, row: int, columns: Plain) -> bool:
    """Whether a podgroup with its minima keeps them without a task; if so the task is taken from ``have``."""
    role, part = columns[1][row], columns[2][row]
    if have.group[group] <= minima.least[group] or not parts_spare(minima, have, group, role, part):
        return False
    have.group[group] -= 1
    return True
