"""Subgroup trees: what is below a subgroup, and how many whole children each level can spare.

Every tree is a column of parents in which parents come before children, NONE at the top; sums upwards are those of
``queue_tree``.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Rows
from pipeline.cluster.tables import Podgroups, Subgroups
from pipeline.kernels import kernel, linked


def in_subtree(table: Subgroups, row: int, leaves: Ids) -> Bools:
    """Which of some tasks, given by their leaf subgroups int32[K] (NONE: in none), lie in the subtree of ``row``."""
    stop = int(np.searchsorted(table.podgroup, table.podgroup[row], side="right"))
    inside = np.zeros(stop - row + 1, bool)  # the last entry answers for every row outside row:stop
    inside[subtree(table.parent, row, stop) - row] = True
    place = leaves.astype(np.int64) - row
    place[(place < 0) | (place >= stop - row)] = -1
    return np.asarray(inside[place])


@dataclass(frozen=True)
class Wholeness:
    """Which subgroups are whole, and what each level can spare.

    Attributes
    ----------
    whole: bool[U]
        A leaf: it has its ``min_available``. An inner subgroup: enough of its children are whole.
    slack: int32[U + G]
        Whole children less those wanted, of an inner subgroup (row ``u``; 0 for a leaf) and of a podgroup
        (row ``U + g``; 0 for one that says nothing of subgroups). Negative: broken.
    holder: int32[U]
        Row in ``slack`` of the subgroup's parent or podgroup.
    """

    whole: Bools
    slack: Counts
    holder: Ids


def wholeness(table: Subgroups, groups: Podgroups, have: Counts) -> Wholeness:
    """Count whole subgroups from the leaves upwards; ``have`` int32[U] is what each leaf has towards its minimum."""
    return Wholeness(
        *_wholeness(
            table.parent, table.podgroup, table.min_subgroups, groups.min_subgroups, have, table.min_available
        )
    )  # fmt: skip


@kernel
def _wholeness(
    parent: Ids, podgroup: Ids, wanted: Counts, wanted_on_top: Counts, have: Counts, least: Counts
) -> tuple[Bools, Counts, Ids]:
    """The columns of ``Wholeness``."""
    holder, many = parent.copy(), len(parent)
    for row in range(many):
        if parent[row] == NONE:
            holder[row] = many + podgroup[row]
    whole, slack = whole_upwards(holder, np.concatenate((wanted, wanted_on_top)), have, least)
    return whole, slack, holder


@linked
def whole_upwards(holder: Ids, wanted: Counts, have: Counts, least: Counts) -> tuple[Bools, Counts]:
    """``whole`` and ``slack`` of ``Wholeness``.

    Parameters
    ----------
    holder: int32[U]
    wanted: int32[U + G]
        How many children must be whole, NONE: all of them.
    have, least: int32[U]
        What each leaf has, and needs.
    """
    slack, children = np.zeros(len(wanted), np.int32), np.zeros(len(wanted), np.int32)
    whole = np.empty(len(holder), np.bool_)
    for row in range(len(holder)):
        children[holder[row]] += 1
    for at in range(len(wanted)):
        slack[at] = -children[at] if wanted[at] == NONE else -wanted[at]
    for row in range(len(holder) - 1, -1, -1):  # children come after their parents
        whole[row] = slack[row] >= 0 if children[row] else have[row] >= least[row]
        slack[holder[row]] += np.int32(whole[row])
    return whole, slack


@kernel
def subtree(parent: Ids, row: int, stop: int) -> Rows:
    """int64[K]: the row and everything below it, ascending; ``stop`` is the end of its tree's rows."""
    inside = np.zeros(stop - row, np.bool_)
    inside[0] = True
    count = 1
    for other in range(row + 1, stop):
        if parent[other] >= row and inside[parent[other] - row]:
            inside[other - row] = True
            count += 1
    found, at = np.empty(count, np.int64), 0
    for other in range(stop - row):
        if inside[other]:
            found[at] = row + other
            at += 1
    return found
