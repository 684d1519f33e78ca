"""Cover and give back: how many leading bundles must go until the gang places, and which of them may stay after all.

With one shape of task both are exact and incremental: slots per node change only where a victim was. With several
shapes, anti-affinity or parts with a topology of their own, the gang is placed for every question, and the number of
bundles is found by search. Giving back costliest first follows the reprieve of kube-scheduler and Kueue's fill-back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.arrangement import arrange, unbound
from pipeline.cluster.arrays import Bools, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.compiled import kernel
from pipeline.need import Need
from pipeline.placement import fits
from pipeline.plugins.predicates import repels


@kernel
def _slots(request: Longs, room: Longs, node: int) -> int:
    count = 1 << 60
    for r in range(len(request)):
        if request[r] > 0:
            if room[node, r] < request[r]:
                return 0
            count = min(count, room[node, r] // request[r])
    return count


@kernel
def _total(request: Longs, allowed: Bools, room: Longs) -> int:
    total = 0
    for node in range(len(room)):
        if allowed[node]:
            total += _slots(request, room, node)
    return total


@kernel
def _move(request: Longs, allowed: Bools, room: Longs, node: int, taken: Longs, sign: int) -> int:
    """Add (or take away) one task's resources on a node; how the slots changed."""
    before = _slots(request, room, node) if allowed[node] else 0
    for r in range(len(taken)):
        room[node, r] += sign * taken[r]
    after = _slots(request, room, node) if allowed[node] else 0
    return after - before


@kernel
def cover_one_shape(
    request: Longs, count: int, allowed: Bools, room: Longs, node: Rows, held: Longs, stop: Rows
) -> tuple[int, int]:
    """The fewest leading bundles that make ``count`` slots; ``room`` is left with them gone.

    Parameters
    ----------
    request: int64[R]
    allowed: bool[n]
    room: int64[n, R]
        Changed in place.
    node: int64[C], held: int64[C, R]
        Node of the slice and resources of each candidate, in bundle order.
    stop: int64[B]
        Where each bundle ends.

    Returns
    -------
    How many bundles (-1 if all do not suffice), and the slots then.
    """
    total = _total(request, allowed, room)
    task = 0
    for bundle in range(len(stop) + 1):
        if total >= count:
            return bundle, total
        if bundle == len(stop):
            break
        while task < stop[bundle]:
            total += _move(request, allowed, room, node[task], held[task], 1)
            task += 1
    return -1, total


@kernel
def give_back_one_shape(
    request: Longs, count: int, total: int, allowed: Bools, room: Longs, node: Rows, held: Longs, start: Rows
) -> Bools:
    """Which of the items may stay, tried in order; an item is a run ``start[i]:start[i + 1]`` of tasks.

    Slots only fall as items return, so what was refused once is refused for good: one pass is enough.
    """
    back = np.zeros(len(start) - 1, np.bool_)
    for item in range(len(start) - 1):
        change = 0
        for task in range(start[item], start[item + 1]):
            change += _move(request, allowed, room, node[task], held[task], -1)
        if total + change >= count:
            total += change
            back[item] = True
        else:
            for task in range(start[item], start[item + 1]):
                _move(request, allowed, room, node[task], held[task], 1)
    return back


@dataclass(frozen=True)
class Slice:
    """The nodes ``start:stop`` of a domain for one need, with room int64[n, R] as it is without evictions."""

    snapshot: Snapshot
    need: Need
    allowed: Bools
    start: int
    stop: int
    room: Longs

    @cached_property
    def by_classes(self) -> bool:
        """Whether placement by classes decides: no part is bound to a narrower domain, nobody repels anybody."""
        return not repels(self.snapshot) and unbound(self.need, self.snapshot, self.start, self.stop)

    @property
    def simple(self) -> bool:
        """Whether slots of one shape decide."""
        return len(self.need.shapes) == 1 and self.by_classes

    def held(self, rows: Rows) -> Longs:
        """int64[C, R]: what tasks hold."""
        return self.snapshot.shapes.request[self.snapshot.tasks.shape[rows]]

    def at(self, rows: Rows) -> Rows:
        """int64[C]: the node of each task, counted from the start of the slice."""
        return self.snapshot.tasks.node[rows].astype(np.int64) - self.start

    def room_without(self, rows: Rows) -> Longs:
        """int64[n, R]: room once the tasks ``rows`` have gone."""
        room = self.room.copy()
        np.add.at(room, self.at(rows), self.held(rows))
        return room

    def places(self, rows: Rows) -> bool:
        """Whether the minimum fits once ``rows`` have gone."""
        room = self.room_without(rows)
        if self.by_classes:
            return fits(self.need.request, self.need.count, self.allowed, room)
        return self.arranged(rows, room) is not None

    def arranged(self, rows: Rows, room: Longs | None = None) -> Rows | None:
        """A node row for every task of the minimum once ``rows`` have gone, or None."""
        left = self.room_without(rows) if room is None else room
        return arrange(self.need, self.allowed, left, self.start, self.stop, self.snapshot, rows)


def cover(part: Slice, rows: Rows, stop: Rows) -> int:
    """The fewest leading bundles after which the minimum places, -1 if none does; bundle ``b`` ends at ``stop[b]``."""
    if part.simple:
        request, count = part.need.request[0], int(part.need.count[0])
        found, _ = cover_one_shape(
            request, count, part.allowed[0], part.room.copy(), part.at(rows), part.held(rows), stop
        )
        return int(found)
    if part.places(rows[:0]):
        return 0
    return _fewest(len(stop), lambda bundles: part.places(rows[: stop[bundles - 1]]))


def _fewest(most: int, enough: Callable[[int], bool]) -> int:
    """The smallest number in 1..most that is enough, by doubling and halving; -1 if ``most`` is not.

    Placement by classes is a heuristic and need not be monotone; what is found is enough, and the next smaller number
    that was tried is not.
    """
    low, high = 0, 1
    while high < most and not enough(high):
        low, high = high, 2 * high
    high = min(high, most)
    if most == 0 or not enough(high):
        return -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def give_back(part: Slice, items: list[Rows], gone: Rows) -> Bools:
    """Which items (task rows each, costliest first) may stay: bool[I]; ``gone`` are all victims, items included.

    Repeated until no item can return by itself, for with several shapes an early refusal need not be the last word.
    """
    if not items:
        return np.zeros(0, bool)
    if part.simple:
        rows = np.concatenate(items)
        start = np.concatenate([[0], np.cumsum([len(item) for item in items])]).astype(np.int64)
        request, count, room = part.need.request[0], int(part.need.count[0]), part.room_without(gone)
        total = int(_total(request, part.allowed[0], room))
        return np.asarray(
            give_back_one_shape(request, count, total, part.allowed[0], room, part.at(rows), part.held(rows), start)
        )
    back, again = np.zeros(len(items), bool), True
    while again:
        again = False
        for item in np.flatnonzero(~back).tolist():
            left = np.setdiff1d(gone, items[item], assume_unique=True)
            if part.places(left):
                gone, back[item], again = left, True, True
    return back
