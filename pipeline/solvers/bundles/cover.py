"""Cover and give back: the fewest leading bundles after which the gang really places, and who may return after all.

Slots decide, not sums: the aggregate test of document 1 lets half of its victims die for nothing. Slots change only on
a victim's node, so a victim costs a few divisions. For one shape they are exact; for several, for anti-affinity, for
cards and for parts with a topology of their own they are necessary only, and the gang is placed where they leave a
doubt. Giving back follows the reprieve of kube-scheduler and the fill-back of Kueue.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.cards import freed_on_cards, slots_on_cards
from pipeline.cluster.resources import slots
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import inlined, kernel
from pipeline.placement.need import Need
from pipeline.placement.packing import place_classes, slots_at, slots_less, slots_more
from pipeline.placement.topology_packing import arrange

#: first node, node and shape of tasks, request of their shapes; request, count and allowed of the need; room, slots and
#: totals, which change in place.
State: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Units:
    """What can be given back, the most valuable first.

    Attributes
    ----------
    stop: int64[U]
        Unit ``u`` has the tasks ``task[stop[u - 1]:stop[u]]``.
    task: int64[C]
    after: int64[U]
        The unit that must have returned before, NONE if there is none: surplus is worth nothing to a broken gang.
    """

    stop: Longs
    task: Rows
    after: Rows


@kernel
def _open(idle: Longs, terminating: Longs, nominated: Longs, first: int, last: int) -> Longs:
    return idle[first:last] + terminating[first:last] - nominated[first:last]


@kernel
def count_slots(request: Longs, count: Longs, allowed: Bools, first: int, room: Longs) -> tuple[Longs, Longs]:
    """Slots of each shape per node, int64[S, n], and in all, int64[S]."""
    slots, total = np.zeros((len(count), len(room)), np.int64), np.zeros(len(count), np.int64)
    for s in range(len(count)):
        for n in range(len(room)):
            if allowed[s, first + n]:
                slots[s, n] = slots_at(request, s, room, n, count[s])
                total[s] += slots[s, n]
    return slots, total


@inlined
def _move(rows: Rows, sign: int, state: State) -> None:
    """Let tasks leave (sign 1) or return (-1): room, slots and totals follow."""
    first, node, shape, held, request, count, allowed, room, slots, total = state
    for i in range(len(rows)):
        n, kind = node[rows[i]] - first, shape[rows[i]]
        for r in range(room.shape[1]):
            room[n, r] += sign * held[kind, r]
        if i + 1 < len(rows) and node[rows[i + 1]] - first == n:
            continue  # neighbours in a bundle often share a node: its slots are counted once for all of them
        for s in range(len(count)):
            if allowed[s, first + n]:
                if sign > 0:
                    now = slots_more(request, s, room, n, count[s], slots[s, n])
                else:
                    now = slots_less(request, s, room, n, count[s], slots[s, n])
                total[s] += now - slots[s, n]
                slots[s, n] = now


@inlined
def _enough(count: Longs, total: Longs) -> bool:
    missing = 0
    for s in range(len(count)):
        missing += max(count[s] - total[s], 0)
    return missing == 0


@inlined
def _try_return(rows: Rows, before: Longs, state: State) -> bool:
    """Let tasks return if slots suffice without their room; if not, nothing is changed.

    ``before`` int64[S, C'] is scratch for the slots that would be undone; it is at least as wide as ``rows``.
    """
    first, node, shape, held, request, count, allowed, room, slots, total = state
    for i in range(len(rows)):
        n, kind = node[rows[i]] - first, shape[rows[i]]
        for r in range(room.shape[1]):
            room[n, r] -= held[kind, r]
        for s in range(len(count)):
            before[s, i] = slots[s, n]
            if i + 1 < len(rows) and node[rows[i + 1]] - first == n:
                continue
            if allowed[s, first + n]:
                now = slots_less(request, s, room, n, count[s], slots[s, n])
                total[s] += now - slots[s, n]
                slots[s, n] = now
    if _enough(count, total):
        return True
    for i in range(len(rows) - 1, -1, -1):
        n, kind = node[rows[i]] - first, shape[rows[i]]
        for r in range(room.shape[1]):
            room[n, r] += held[kind, r]
        for s in range(len(count)):
            total[s] += before[s, i] - slots[s, n]
            slots[s, n] = before[s, i]
    return False


@kernel
def lead(stop: Longs, task: Rows, state: State) -> int:
    """Let bundles leave until there are slots enough; how many have left, NONE if all are too few."""
    count, total = state[5], state[9]
    for bundle in range(len(stop) + 1):
        if _enough(count, total):
            return bundle
        if bundle < len(stop):
            _move(task[stop[bundle - 1] if bundle > 0 else 0 : stop[bundle]], 1, state)
    return NONE


@inlined
def _holds(rows: Rows, used: Longs, state: State) -> bool:
    """Whether what is ``used`` still fits on the nodes of ``rows``."""
    first, node, room = state[0], state[1], state[7]
    for row in rows:
        n = node[row] - first
        for r in range(room.shape[1]):
            if used[n, r] > 0 and used[n, r] > room[n, r]:
                return False
    return True


@kernel
def return_units(
    begin: int, units: tuple[Longs, Rows, Rows], returned: Bools, certain: bool, used: Longs, state: State
) -> int:
    """Return units from ``begin`` on, while slots suffice; stops at the first doubt.

    A return is beyond doubt if slots are exact (``certain``), or if the placement ``used`` int64[n, R] stands with it;
    without any placement (no rows) every return is doubtful.

    Returns
    -------
    The unit that is in doubt: it has returned as far as ``room`` goes. The number of units if all were decided.
    """
    stop, task, after = units
    before = np.empty((len(state[5]), len(task)), np.int64)
    for unit in range(begin, len(stop)):
        if returned[unit] or (after[unit] != NONE and not returned[after[unit]]):
            continue
        rows = task[stop[unit - 1] if unit > 0 else 0 : stop[unit]]
        if not _try_return(rows, before, state):
            continue
        if certain or (len(used) > 0 and _holds(rows, used, state)):
            returned[unit] = True
        else:
            return unit
    return len(stop)


class Clearing:
    """The nodes ``first:last`` while victims are tried. Lives as long as one selection.

    Attributes
    ----------
    exact
        Slots alone say whether the minimum places.
    total: int64[S]
        Slots of each shape as things stand; a node counts for at most as many as are needed.
    """

    def __init__(
        self, snapshot: Snapshot, need: Need, allowed: Bools, first: int, last: int, *, interchangeable: bool
    ) -> None:
        room, tasks = snapshot.room, snapshot.tasks
        self._snapshot, self._need, self._allowed = snapshot, need, allowed
        self._first, self._last = first, last
        on_card = snapshot.shapes.on_card[need.shapes]
        self._carded = bool(on_card.any())
        #: What each task asks of a card where that and slots decide: tasks of one shape.
        self._on_card = int(on_card[0]) if interchangeable and len(on_card) == 1 else 0
        self._simple = interchangeable and not self._carded
        self.exact = self._simple and len(need.shapes) == 1
        self._room: Longs = _open(room.idle, room.terminating, room.nominated, first, last)
        there, self.total = count_slots(need.request, need.count, allowed, first, self._room)
        self._state = (
            first, tasks.node, tasks.shape, snapshot.shapes.request, need.request, need.count, allowed, self._room,
            there, self.total,
        )  # fmt: skip
        self._used: Longs = np.zeros((0, self._room.shape[1]), np.int64)

    @property
    def enough(self) -> bool:
        """Whether each shape alone has slots enough."""
        return bool(_enough(self._need.count, self.total))

    def leave(self, rows: Rows) -> None:
        """Let tasks of these nodes leave."""
        _move(rows, 1, self._state)

    def come_back(self, rows: Rows) -> None:
        """Let them return."""
        _move(rows, -1, self._state)

    def arranged(self, leaving: Rows) -> Rows | None:
        """A node row for every task of the minimum as things stand, or None; ``leaving`` are all victims."""
        allowed = np.ascontiguousarray(self._allowed[:, self._first : self._last])
        return arrange(self._need, allowed, self._room, self._first, self._last, self._snapshot, leaving)

    def places(self, leaving: Callable[[], Rows]) -> bool:
        """Whether the minimum places as things stand; a placement that was found is remembered."""
        if self.exact or not self.enough:
            return self.enough
        need = self._need
        if self._on_card:
            return self._card_slots(leaving()) >= need.minimum
        used = np.zeros_like(self._room)
        if self._simple:
            taken = place_classes(need.request, need.count, self._allowed[:, self._first : self._last], self._room)
            if taken.sum() < need.minimum:
                return False
            used = taken.T @ need.request
        else:
            nodes = self.arranged(leaving())
            if nodes is None:
                return False
            np.add.at(used, nodes - self._first, need.request[need.shape[: need.minimum]])
        if not self._carded:  # what is used says nothing about cards, so that every return is in doubt there
            self._used = used
        return True

    def _card_slots(self, leaving: Rows) -> int:
        """Slots on all nodes where tasks are of one shape and ask for parts of cards: exact."""
        tasks, shapes = self._snapshot.tasks, self._snapshot.shapes
        free = self._snapshot.card_room.future[self._first : self._last].copy()
        freed_on_cards(tasks, shapes, leaving, self._first, free)
        there = np.minimum(slots(self._need.request[0], self._room), slots_on_cards(self._on_card, free))
        return int(there[self._allowed[0, self._first : self._last]].sum())

    def cover(self, stop: Longs, task: Rows, works: Callable[[int], bool] | None) -> int:
        """Let the fewest leading bundles leave after which ``works(bundles)``; NONE if there is no such number.

        Without ``works`` slots decide. With it the number is found by doubling and halving from where slots suffice
        on; the number below it was tried and did not work.
        """
        low = int(lead(stop, task, self._state))
        if low == NONE or works is None:
            return low
        at, high, step = low, low, 1
        while not works(at):
            if at == len(stop):
                return NONE
            low, high = at + 1, min(at + step, len(stop))
            step *= 2
            at = self._go(at, high, stop, task)
        high = at
        while low < high:
            at = self._go(at, (low + high) // 2, stop, task)
            if works(at):
                high = at
            else:
                low = at + 1
        self._go(at, high, stop, task)
        if at != high and not works(high):  # remembers the placement; it worked before
            return NONE
        return high

    def _go(self, at: int, to: int, stop: Longs, task: Rows) -> int:
        """From ``at`` leading bundles gone to ``to``."""
        edge = (int(stop[at - 1]) if at else 0, int(stop[to - 1]) if to else 0)
        if to >= at:
            self.leave(task[edge[0] : edge[1]])
        else:
            self.come_back(task[edge[1] : edge[0]])
        return to

    def give_back(self, units: Units, works: Callable[[Bools], bool] | None, *, lawful: bool = False) -> Bools:
        """Return units one by one while ``works(returned)``: bool[U], which did.

        Without ``works`` slots decide, and one pass suffices: slots only fall as units return. With it passes are
        repeated until no unit can return by itself. ``lawful``: ``works`` must be asked about every return.
        """
        returned = np.zeros(len(units.stop), np.bool_)
        certain, columns = works is None, (units.stop, units.task, units.after)
        while True:
            before, at = int(returned.sum()), 0
            while True:
                used = self._used[:0] if lawful else self._used
                at = int(return_units(at, columns, returned, certain, used, self._state))
                if at == len(units.stop):
                    break
                returned[at] = True
                if works is not None and not works(returned):
                    returned[at] = False
                    self.leave(units.task[units.stop[at - 1] if at else 0 : units.stop[at]])
                at += 1
            if certain or int(returned.sum()) == before:
                return returned
