"""How many podgroups break once some tasks have gone: one answer for a set, where the sets are many and small."""

import numpy as np

from pipeline.cluster.arrays import NONE, Ids, Longs, Rows
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.rules.minimum import Have, Minima, parts_reach, towards_all
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import kernel


def breaking(snapshot: Snapshot, rows: Rows, class_of: Longs, classes: int) -> Longs:
    """int64[C]: of each class of podgroups (``class_of`` int64[G]) how many lose tasks and have no minimum left.

    ``rows`` int64[V] hold nodes. A podgroup without its minimum counts even if it had none before; compare
    ``minimum.whole_without``.
    """
    minima, have = snapshot.once(towards_all)
    tasks = snapshot.tasks
    return np.asarray(_breaking(minima, have, rows, tasks.podgroup, tasks.role, tasks.subgroup, class_of, classes))


@kernel
def _breaking(
    needs: Plain, known: Plain, rows: Rows, podgroup: Ids, role: Ids, part: Ids, class_of: Longs, classes: int
) -> Longs:
    """The same from columns of all tasks; ``needs`` are ``Minima``, ``known`` is ``Have``."""
    minima, before = Minima(*needs), Have(*known)
    have = Have(before.group.copy(), before.role.copy(), before.leaf.copy())
    for row in rows:
        have.group[podgroup[row]] -= 1
        if role[row] != NONE:
            have.role[role[row]] -= 1
        if part[row] != NONE:
            have.leaf[part[row]] -= 1
    result, seen = np.zeros(classes, np.int64), np.zeros(len(class_of), np.bool_)
    for row in rows:
        group = podgroup[row]
        if not seen[group] and (have.group[group] < minima.least[group] or not parts_reach(minima, have, group)):
            result[class_of[group]] += 1
        seen[group] = True
    return result
