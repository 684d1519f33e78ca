"""How many podgroups break once some tasks have gone, for several small sets of tasks at once."""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.arrays import NONE, Floats, Longs, Rows, in_a_row
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.counted.minima import Have, Minima, count_tasks, reaches, writable
from pipeline.cluster.rules.minimum import towards_all
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import kernel


def breaking(
    snapshot: Snapshot, sets: Sequence[Rows], class_of: Longs, classes: int, share: Floats
) -> tuple[Longs, Floats]:
    """int64[S, C]: of each class of podgroups (``class_of`` int64[G]) how many lose tasks of a set, and their minimum.

    Also float64[S]: the sum of what the tasks of each set hold, by shape (``share``). The sets (int64[V] each) are of
    tasks that hold nodes. A podgroup without its minimum counts even if it had none before; compare
    ``minimum.whole_without``.
    """
    minima, have = snapshot.once(towards_all)
    tasks = snapshot.tasks
    columns = tasks.podgroup, tasks.role, tasks.subgroup, tasks.shape
    return _breaking(minima, have, *in_a_row(sets), columns, class_of, classes, share)


@kernel
def _breaking(
    needs: Plain, known: Plain, rows: Rows, start: Longs, columns: Plain, class_of: Longs, classes: int, share: Floats
) -> tuple[Longs, Floats]:
    """The same of ``rows[start[s]:start[s + 1]]``; ``needs`` are ``Minima``, ``known`` is ``Have``."""
    minima, have, (podgroup, role, part, shape) = Minima(*needs), writable(Have(*known)), columns
    result, seen = np.zeros((len(start) - 1, classes), np.int64), np.full(len(class_of), NONE, np.int64)
    held = np.zeros(len(result))
    for one in range(len(result)):
        some = rows[start[one] : start[one + 1]]
        count_tasks(-1, some, have, podgroup, role, part)
        for row in some:
            group = podgroup[row]
            held[one] += share[shape[row]]
            if seen[group] != one and not reaches(minima, have, group):
                result[one, class_of[group]] += 1
            seen[group] = one
        count_tasks(1, some, have, podgroup, role, part)
    return result, held
