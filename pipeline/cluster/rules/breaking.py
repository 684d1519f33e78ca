"""How many podgroups break once some tasks have gone, for several small sets of tasks at once."""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.arrays import NONE, Ids, Longs, Rows
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.rules.minimum import Have, Minima, parts_reach, towards_all
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import inlined, kernel


def breaking(snapshot: Snapshot, sets: Sequence[Rows], class_of: Longs, classes: int) -> Longs:
    """int64[S, C]: of each class of podgroups (``class_of`` int64[G]) how many lose tasks of a set, and their minimum.

    The sets (int64[V] each) are of tasks that hold nodes. A podgroup without its minimum counts even if it had none
    before; compare ``minimum.whole_without``.
    """
    minima, have = snapshot.once(towards_all)
    tasks, start = snapshot.tasks, np.cumsum([0, *map(len, sets)])
    columns = tasks.podgroup, tasks.role, tasks.subgroup
    return np.asarray(_breaking(minima, have, np.concatenate(sets), start, columns, class_of, classes))


@kernel
def _breaking(
    needs: Plain, known: Plain, rows: Rows, start: Longs, columns: Plain, class_of: Longs, classes: int
) -> Longs:
    """The same of ``rows[start[s]:start[s + 1]]``; ``needs`` are ``Minima``, ``known`` is ``Have``."""
    minima, before, (podgroup, role, part) = Minima(*needs), Have(*known), columns
    have = Have(before.group.copy(), before.role.copy(), before.leaf.copy())
    result, seen = np.zeros((len(start) - 1, classes), np.int64), np.full(len(class_of), NONE, np.int64)
    for one in range(len(result)):
        some = rows[start[one] : start[one + 1]]
        _count(-1, some, have, podgroup, role, part)
        for row in some:
            group = podgroup[row]
            lost = have.group[group] < minima.least[group] or not parts_reach(minima, have, group)
            if seen[group] != one and lost:
                result[one, class_of[group]] += 1
            seen[group] = one
        _count(1, some, have, podgroup, role, part)
    return result


@inlined
def _count(sign: int, rows: Rows, have: Have, podgroup: Ids, role: Ids, part: Ids) -> None:
    """Let tasks go (-1) or come back (1)."""
    for row in rows:
        have.group[podgroup[row]] += sign
        if role[row] != NONE:
            have.role[role[row]] += sign
        if part[row] != NONE:
            have.leaf[part[row]] += sign
