"""Foreign keys in another numbering."""

import numpy as np

from pipeline.cluster.arrays import NONE, Ids, Rows


def translated(column: Ids, to: Ids) -> Ids:
    """int32[M]: a foreign key column in the numbering that ``to`` gives per known row; NONE stays NONE."""
    return np.append(to, np.int32(NONE)).astype(np.int32)[column]


def replaced(column: Ids, known: Rows, fresh: Rows) -> Ids:
    """int32[M]: a foreign key column in which ``known`` became ``fresh``; the others, and NONE, stay."""
    to = np.arange(max(int(column.max(initial=NONE)), int(known.max(initial=NONE))) + 1, dtype=np.int32)
    to[known] = fresh
    return translated(column, to)
