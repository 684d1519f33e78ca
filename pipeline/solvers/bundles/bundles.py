"""Bundles: what the podgroups of one domain can lose there, in two parts each (document 1, section 3.4).

*Safe*: surplus over the minima of the gang, its roles (unless elastic) and its subgroups, or everything if the gang is
below its minimum already. *Whole*: the rest, whose loss breaks the gang.

Efficiencies are compared in steps: document 1 proposes a tolerance of 5 % from pair to pair, which is no order (with 20
bundles the outcome already depends on the order of the input).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import kernel
from pipeline.solvers.bundles.splitting import runs


@dataclass(frozen=True)
class Bundles:
    """Bundles of one domain.

    Attributes
    ----------
    podgroup: int64[B]
    safe: bool[B]
    stop: int64[B]
        Bundle ``b`` has the tasks ``task[stop[b - 1]:stop[b]]``.
    task: int64[C]
        Task rows, inside the domain.
    elsewhere: int64[B]
        How many members outside the domain go along with a whole bundle.
    efficiency: float64[B]
        Local gain over global cost; infinite for a safe bundle, which costs nothing.
    cost: float64[B]
        What breaks with it, in units of the need; 0 for a safe bundle.
    """

    podgroup: Rows
    safe: Bools
    stop: Longs
    task: Rows
    elsewhere: Longs
    efficiency: Floats
    cost: Floats

    def __len__(self) -> int:
        return len(self.stop)

    @property
    def start(self) -> Longs:
        """int64[B]: where each bundle begins."""
        return np.concatenate([np.zeros(1, np.int64), self.stop[:-1]])[: len(self.stop)]

    @property
    def owner(self) -> Rows:
        """int64[C]: the bundle of each task."""
        return np.repeat(np.arange(len(self)), self.stop - self.start)

    def tasks(self, bundle: int) -> Rows:
        """Task rows of one bundle."""
        return self.task[self.stop[bundle - 1] if bundle else 0 : self.stop[bundle]]

    def first(self, count: int) -> "Bundles":
        """The leading ``count`` bundles."""
        end = int(self.stop[count - 1]) if count else 0
        return Bundles(
            self.podgroup[:count], self.safe[:count], self.stop[:count], self.task[:end], self.elsewhere[:count],
            self.efficiency[:count], self.cost[:count],
        )  # fmt: skip

    def having(self, kept: Bools) -> "Bundles":
        """These bundles with the tasks ``kept`` bool[C]; bundles of which nothing is left are dropped."""
        size = np.bincount(self.owner[kept], minlength=len(self))
        alive = size > 0
        return Bundles(
            self.podgroup[alive], self.safe[alive], np.cumsum(size[alive]), self.task[kept], self.elsewhere[alive],
            self.efficiency[alive], self.cost[alive],
        )  # fmt: skip

    def arranged(self, order: Rows) -> "Bundles":
        """The same bundles in another order."""
        size = (self.stop - self.start)[order]
        stop = np.cumsum(size)
        moved = np.repeat(self.start[order] - (stop - size), size) + np.arange(len(self.task))
        return Bundles(
            self.podgroup[order], self.safe[order], stop, self.task[moved], self.elsewhere[order],
            self.efficiency[order], self.cost[order],
        )  # fmt: skip


def in_order(bundles: Bundles, before: Longs, after: Longs, last: Longs, step: float) -> Bundles:
    """Bundles by kind (safe ones first), ``before``, efficiency (whole ones), ``after``, ``last``.

    Document 1 sorts a second time after the vote. Here the survivors keep their order: no key of a safe bundle depends
    on its size, and whole ones do not shrink.

    Parameters
    ----------
    before, after, last
        int64[G]: ranks of podgroups, smaller first.
    step
        Efficiencies within one step count as equal; 0: they are compared as they are.
    """
    group = bundles.podgroup
    worth = np.where(bundles.safe, 0.0, bundles.efficiency)
    level = np.floor(worth / step + 1e-9) if step > 0 else worth
    return bundles.arranged(np.lexsort((last[group], after[group], -level, before[group], ~bundles.safe)))


# -- the vote ----------------------------------------------------------------------------------------------------------


@kernel
def _flattened(
    task: Rows, stop: Longs, podgroup: Rows, elsewhere: Longs, slice_: tuple[int, int], members: Any, tasks: Any
) -> tuple[Rows, Longs]:
    """Tasks of each bundle, followed by the members outside the slice that go along; where each bundle's end."""
    status, node = tasks
    rows, ends = np.empty(len(task) + elsewhere.sum(), np.int64), np.empty(len(stop), np.int64)
    filled, begin = 0, 0
    for b in range(len(stop)):
        for row in task[begin : stop[b]]:
            rows[filled] = row
            filled += 1
        begin = stop[b]
        if elsewhere[b] > 0:
            for row in members[1][members[0][podgroup[b]] : members[0][podgroup[b] + 1]]:
                if runs(status[row]) and not slice_[0] <= node[row] < slice_[1]:
                    rows[filled] = row
                    filled += 1
        ends[b] = filled
    return rows, ends


@kernel
def _granted(permitted: Bools, ends: Longs, podgroup: Rows, safe: Bools, stop: Longs, everywhere: bool) -> Bools:
    """Which local tasks may go: whole bundles entirely or not at all, safe ones shrunk.

    A gang that goes everywhere goes with its surplus: if that was refused, the whole bundle falls too.
    """
    kept = np.zeros(stop[-1], np.bool_)
    refused = np.zeros(podgroup.max() + 1, np.bool_)
    begin, local = 0, 0
    for b in range(len(stop)):
        granted = permitted[begin : ends[b]]
        if safe[b]:
            kept[local : stop[b]] = granted
            refused[podgroup[b]] = not granted.all()
        elif granted.all() and not (everywhere and refused[podgroup[b]]):
            kept[local : stop[b]] = True
        begin, local = ends[b], stop[b]
    return kept


def voted(
    bundles: Bundles,
    quota_filter: Callable[[Rows], Bools],
    snapshot: Snapshot,
    slice_: tuple[int, int],
    *,
    everywhere: bool,
) -> Bundles:
    """What the vote leaves of the bundles, which it sees once, as one list in their order (document 1, phase 3)."""
    if len(bundles) == 0:
        return bundles
    tasks = snapshot.tasks
    rows, ends = _flattened(
        bundles.task, bundles.stop, bundles.podgroup, bundles.elsewhere, slice_, snapshot.by_podgroup,
        (tasks.status, tasks.node),
    )  # fmt: skip
    permitted = np.ascontiguousarray(quota_filter(rows), np.bool_)
    return bundles.having(_granted(permitted, ends, bundles.podgroup, bundles.safe, bundles.stop, everywhere))
