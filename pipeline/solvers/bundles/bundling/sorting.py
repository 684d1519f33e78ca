"""Sorting rows by two keys inside a kernel, in place and without allocating."""

from pipeline.cluster.arrays import Floats, Longs, Rows
from pipeline.kernels import linked

#: Up to this many rows are selected in one pass over a longer list; for more, the whole list is sorted.
_KEPT = 64


@linked
def sort_by(rows: Rows, high: Longs | Floats, low: Longs) -> None:
    """Sort ``rows`` and its keys by (high, low), ascending; with distinct ``low`` the order is total.

    Shell's sort (1959) with Knuth's gaps: for a dozen rows, as most lists have, it is insertion sort.
    """
    gap = 1
    while gap < len(rows) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(rows)):
            row, first, second = rows[i], high[i], low[i]
            at = i
            while at >= gap and (high[at - gap] > first or (high[at - gap] == first and low[at - gap] > second)):
                rows[at], high[at], low[at] = rows[at - gap], high[at - gap], low[at - gap]
                at -= gap
            rows[at], high[at], low[at] = row, first, second
        gap //= 3


@linked
def first_by(rows: Rows, high: Longs, low: Longs, many: int) -> None:
    """Move the first ``many`` of ``rows`` by (high, low) to the front, in order; the rest follow unsorted."""
    if many == 0:
        return
    if many == len(rows) or many > _KEPT:
        sort_by(rows, high, low)
        return
    sort_by(rows[:many], high[:many], low[:many])
    last = many - 1
    for i in range(many, len(rows)):
        row, first, second = rows[i], high[i], low[i]
        if high[last] < first or (high[last] == first and low[last] < second):
            continue
        rows[i], high[i], low[i] = rows[last], high[last], low[last]
        at = last
        while at > 0 and (high[at - 1] > first or (high[at - 1] == first and low[at - 1] > second)):
            rows[at], high[at], low[at] = rows[at - 1], high[at - 1], low[at - 1]
            at -= 1
        rows[at], high[at], low[at] = row, first, second
