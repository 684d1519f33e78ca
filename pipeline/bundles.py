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

from pipeline.cluster.arrays import Bools, Floats, Longs, Rows, frozen
from pipeline.cluster.resources import PODS
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.compiled import kernel
from pipeline.need import Need
from pipeline.sorting import sort_by
from pipeline.surplus import mark_safe, unconditional

#: Bits of a packed sort key for a rank of shapes, and where the sign of a priority goes.
_SHAPE_BITS, _PRIORITY_BITS = 15, 32


@dataclass(frozen=True)
class Scale:
    """What tasks are worth to one need.

    Attributes
    ----------
    needed: int64[R]
        What the minimum asks for; 0 where it does not count: pods, if anything else is asked for.
    coverage, waste: int64[shapes]
        Ranks of a task of each shape: by how much of the need it covers, most first; by its size, smallest first.
    """

    needed: Longs
    coverage: Longs
    waste: Longs


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


# -- what they are worth -----------------------------------------------------------------------------------------------


def scale_of(snapshot: Snapshot, need: Need) -> Scale:
    """The scale of one need."""
    needed = np.where(need.total > 0, need.total, 0)
    if (needed > 0).sum() > 1:
        needed[PODS] = 0
    dims, request = np.flatnonzero(needed), snapshot.shapes.request
    covered = (np.minimum(request[:, dims], needed[dims]) / needed[dims]).sum(axis=1)
    size = (request[:, dims] / needed[dims]).sum(axis=1)
    unasked = np.where(needed == 0, request / np.maximum(snapshot.capacity, 1), 0.0).sum(axis=1)
    order = np.lexsort((unasked, size))
    waste = np.empty(len(request), np.int64)
    waste[order] = np.arange(len(request))
    coverage = np.unique(-np.round(covered, 12), return_inverse=True)[1]
    most = (1 << _SHAPE_BITS) - 1
    return Scale(
        frozen(needed, np.int64),
        frozen(np.minimum(coverage, most), np.int64),
        frozen(np.minimum(waste, most), np.int64),
    )


@kernel
def gain(local: Longs, needed: Longs) -> float:
    """Local gain score: the sum of min(local, needed) / needed over what is needed (document 1, section 3.4.3)."""
    score = 0.0
    for r in range(len(needed)):
        if needed[r] > 0:
            score += min(local[r], needed[r]) / needed[r]
    return score


@kernel
def cost(everywhere: Longs, needed: Longs) -> float:
    """Global cost score: the sum of everywhere / needed over what is needed."""
    score = 0.0
    for r in range(len(needed)):
        if needed[r] > 0:
            score += everywhere[r] / needed[r]
    return score


@kernel
def efficiency(local: Longs, everywhere: Longs, needed: Longs) -> float:
    """Gain over cost; 0 where nothing that is needed comes free."""
    price = cost(everywhere, needed)
    return gain(local, needed) / price if price > 0 else 0.0


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


# -- splitting ---------------------------------------------------------------------------------------------------------


@kernel
def runs(status: int) -> bool:
    """Whether a task holds its node and is not on its way out."""
    return status in (BOUND, RUNNING)


@kernel
def _by_podgroup(
    rows: Rows, candidate: Bools, status: Any, podgroup: Any, podgroups: int
) -> tuple[Rows, Longs, Rows, Bools]:
    """Group candidates by podgroup: podgroups, where each one's begin, the tasks, and who has others running here."""
    at = np.full(podgroups, -1, np.int32)
    owner, begin = np.empty(len(rows), np.int64), np.zeros(len(rows) + 1, np.int64)
    groups = 0
    for row in rows:
        if candidate[row]:
            if at[podgroup[row]] < 0:
                at[podgroup[row]] = groups
                owner[groups] = podgroup[row]
                groups += 1
            begin[at[podgroup[row]] + 1] += 1
    for group in range(groups):
        begin[group + 1] += begin[group]
    fill, local = begin[:groups].copy(), np.empty(begin[groups], np.int64)
    shut = np.zeros(groups, np.bool_)
    for row in rows:
        group = at[podgroup[row]]
        if candidate[row]:
            local[fill[group]] = row
            fill[group] += 1
        elif group >= 0 and runs(status[row]):
            shut[group] = True
    return owner[:groups], begin[: groups + 1], local, shut


@kernel
def _sort_victims(rows: Rows, shape: Any, priority: Any, order: Any, coverage: Longs, waste: Longs) -> None:
    """Who goes first: most coverage, lowest priority, least waste, youngest; equals by name, the last first."""
    high, low = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        row = rows[i]
        key = (coverage[shape[row]] << _PRIORITY_BITS) + np.int64(priority[row]) + (1 << (_PRIORITY_BITS - 1))
        high[i] = (key << _SHAPE_BITS) + waste[shape[row]]
        low[i] = -order[row]
    sort_by(rows, high, low)


@kernel
def _weigh_gang(
    rows: Rows,
    slice_: tuple[int, int],
    candidate: Bools,
    status: Any,
    node: Any,
    shape: Any,
    request: Longs,
    held: Longs,
) -> tuple[int, bool]:
    """Sum up in ``held`` what a gang's members ``rows`` hold; how many run outside, and whether all may be victims."""
    held[:] = 0
    outside, fixed = 0, 0
    for row in rows:
        if runs(status[row]):
            for r in range(len(held)):
                held[r] += request[shape[row], r]
            fixed += not candidate[row]
            outside += not slice_[0] <= node[row] < slice_[1]
    return outside, fixed == 0


@kernel
def _take(rows: Rows, chosen: Bools, out: Rows, filled: int) -> int:
    """Append the ``chosen`` rows to ``out``; how many it has then."""
    for i in range(len(rows)):
        if chosen[i]:
            out[filled] = rows[i]
            filled += 1
    return filled


@kernel
def split(
    rows: Rows,
    slice_: tuple[int, int],
    tasks: tuple[Any, ...],
    members: tuple[Longs, Rows],
    surplus: tuple[Any, ...],
    scale: tuple[Any, ...],
    flags: tuple[bool, bool, bool],
) -> tuple[Any, ...]:
    """Split the candidates among the tasks ``rows`` of a slice of nodes into bundles, podgroup by podgroup.

    A whole bundle is left out if a member of the gang that would have to go is no candidate: in the slice, or, where
    gangs go ``everywhere``, anywhere.

    Parameters
    ----------
    tasks
        Columns candidate, status, podgroup, role, subgroup, shape, priority, order, node.
    members
        See ``Snapshot.by_podgroup``.
    surplus, scale
        The columns of ``Surplus``; the request of shapes, and the columns of ``Scale``.
    flags
        Whether gangs may break, whether they go everywhere then, whether the order inside safe bundles matters.

    Returns
    -------
    The columns of ``Bundles``.
    """
    candidate, status, podgroup, role_of, subgroup_of, shape, priority, order, node = tasks
    gang, role, role_start, leaf, slack, parent = surplus
    request, needed, coverage, waste = scale
    allow_whole, everywhere, ordered = flags
    owner, begin, local, shut = _by_podgroup(rows, candidate, status, podgroup, len(gang))
    leaf, slack = leaf.copy(), slack.copy()
    most = 2 * len(owner)
    names, stop, kind = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.bool_)
    elsewhere, worth, price = np.zeros(most, np.int64), np.full(most, np.inf), np.zeros(most)
    out, many, filled = np.empty(len(local), np.int64), 0, 0
    freed, held = np.empty(len(needed), np.int64), np.empty(len(needed), np.int64)
    for g in range(len(owner)):
        group, mine = owner[g], local[begin[g] : begin[g + 1]]
        spare = gang[group]
        roles = role[role_start[group] : role_start[group + 1]].copy()
        at_will = spare < 0 or unconditional(spare, len(mine), roles, len(parent) > 0)
        if ordered or (spare > 0 and not at_will):
            _sort_victims(mine, shape, priority, order, coverage, waste)
        safe = np.ones(len(mine), np.bool_)
        if not at_will:
            safe = mark_safe(mine, spare, role_of, role_start[group], roles, subgroup_of, leaf, slack, parent)
        before = filled
        filled = _take(mine, safe, out, filled)
        if filled > before:
            names[many], kind[many], stop[many] = group, True, filled
            many += 1
        if filled - before == len(mine) or not allow_whole or shut[g]:
            continue
        gang_rows = members[1][members[0][group] : members[0][group + 1]]
        outside, free = _weigh_gang(gang_rows, slice_, candidate, status, node, shape, request, held)
        if everywhere and not free:
            continue
        before = filled
        filled = _take(mine, ~safe, out, filled)
        freed[:] = 0
        for row in out[before:filled]:
            for r in range(len(freed)):
                freed[r] += request[shape[row], r]
        names[many], kind[many], stop[many], elsewhere[many] = group, False, filled, outside if everywhere else 0
        worth[many], price[many] = efficiency(freed, held, needed), cost(held, needed)
        many += 1
    return names[:many], kind[:many], stop[:many], out[:filled], elsewhere[:many], worth[:many], price[:many]


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
    vote: Callable[[Rows], Bools],
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
    permitted = np.ascontiguousarray(vote(rows), np.bool_)
    return bundles.having(_granted(permitted, ends, bundles.podgroup, bundles.safe, bundles.stop, everywhere))
