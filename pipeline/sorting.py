"""Sorting rows by two keys inside a kernel, in place and without allocating."""

from pipeline.cluster.arrays import Floats, Longs, Rows
from pipeline.compiled import kernel


@kernel
def sort_by(rows: Rows, high: Longs | Floats, low: Longs) -> None:
    """Sort ``rows`` and its keys by (high, low), ascending; with distinct ``low`` the order is total.

    Shell's sort (1959) with the gaps of Knuth: most lists are a dozen rows, for which it is insertion sort.
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
