"""The rules of elastic quotas for victims, in plain Python on a cluster file: `docs/profiles.md`, "Elastic quota"."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import permutations, product
from math import inf
from typing import Any, NamedTuple

Document = dict[str, Any]
#: The resources that have quotas.
QUOTED = ("cpu", "gpu")


class Holds(NamedTuple):
    """What a task holds, or waits for."""

    name: str
    group: str
    queue: str
    runs: bool
    lasts: bool
    cpu: int
    gpu: int

    def of(self, resource: str) -> int:
        return self.cpu if resource == "cpu" else self.gpu


class LendingLaw:
    """What the queue of a job may take, and what the others may lose for it."""

    def __init__(self, document: Document, tasks: Sequence[Holds], own: str, *, reclaims: bool) -> None:
        self._queues = {one["name"]: one for one in document["queues"]}
        self._whole = {r: sum(node["allocatable"][r] for node in document["nodes"]) for r in QUOTED}
        self._tasks, self._own, self._reclaims = tasks, self._line(own), reclaims

    def rank(self, queue: str) -> int:
        """In reclaim queues that are served last lose first."""
        return -list(self._queues).index(queue) if self._reclaims else 0

    def allows(self, gone: Sequence[Holds], way: Sequence[Holds]) -> bool:
        """Whether quotas let the job have what it asks for, and queues lose these tasks, in some order."""
        asks = {r: sum(task.of(r) for task in way) for r in QUOTED}
        if not (self._may_take(asks, gone) and self._may_last(way)):
            return False
        if not self._reclaims or not gone:
            return True
        return self._may_reclaim(asks) and self._keeps_minima(asks, gone) and self._in_some_order(asks, gone)

    # -- what the job's queue may take ---------------------------------------------------------------------------------

    def _may_take(self, asks: Mapping[str, int], gone: Sequence[Holds]) -> bool:
        """Whether its queue and those above it stay within runtime quota and maximum of what is asked for."""
        for queue, r in product(self._own, QUOTED):
            after = self._used[queue, r] + asks[r] - self._lost(queue, r, gone)
            if asks[r] and self._bound(queue, r) and after > min(self._runtime[queue, r], self._most(queue, r)):
                return False
        return True

    def _may_last(self, way: Sequence[Holds]) -> bool:
        """Whether work that can never be evicted stays within the minimum of its queue."""
        least = self._queues[self._own[0]].get("deserved", {})
        lasting = [task for task in self._tasks if task.runs and task.lasts and task.queue == self._own[0]]
        comes = [task for task in way if task.lasts]
        return all(
            sum(task.of(r) for task in [*lasting, *comes]) <= least.get(r, inf)
            for r in QUOTED
            if any(task.of(r) for task in comes)
        )

    def _may_reclaim(self, asks: Mapping[str, int]) -> bool:
        """Whether a quota is stated of something that is asked for, and the queue stays within it."""
        own = self._own[0]
        bound = [r for r in QUOTED if asks[r] and self._bound(own, r)]
        return bool(bound) and all(self._used[own, r] + asks[r] <= self._runtime[own, r] for r in bound)

    # -- what other queues may lose ------------------------------------------------------------------------------------

    def _keeps_minima(self, asks: Mapping[str, int], gone: Sequence[Holds]) -> bool:
        """Whether queues that lose were over something that is asked for, and keep their minimum of it."""
        return all(self._may_lose(queue, asks, gone) for queue in self._queues)

    def _may_lose(self, queue: str, asks: Mapping[str, int], gone: Sequence[Holds]) -> bool:
        takes = {r: asks[r] if queue in self._own else 0 for r in QUOTED}
        lost = {r: self._lost(queue, r, gone) for r in QUOTED}
        if not any(self._bound(queue, r) and lost[r] > takes[r] for r in QUOTED):
            return True
        for r in (one for one in QUOTED if asks[one] and lost[one] and self._bound(queue, one)):
            after = self._used[queue, r] - lost[r] + takes[r]
            kept = after >= self._base(queue, r) or (queue in self._own and takes[r] >= lost[r])
            if kept and (self._is_parent(queue) or self._used[queue, r] > self._runtime[queue, r]):
                return True
        return False

    def _in_some_order(self, asks: Mapping[str, int], gone: Sequence[Holds]) -> bool:
        """Whether each podgroup, or each task, goes while its queue is over its quota, one after the other."""
        owners = dict.fromkeys(task.group for task in gone)
        for pieces in ([[task for task in gone if task.group == one] for one in owners], [[task] for task in gone]):
            queues = dict.fromkeys(piece[0].queue for piece in pieces)
            if all(self._one_by_one(asks, [one for one in pieces if one[0].queue == queue]) for queue in queues):
                return True
        return False

    def _one_by_one(self, asks: Mapping[str, int], pieces: Sequence[Sequence[Holds]]) -> bool:
        held = {(_sum(piece, "cpu"), _sum(piece, "gpu")): piece for piece in pieces}
        orders = permutations(pieces) if len(held) > 1 else iter([tuple(pieces)])
        return any(self._goes_on(asks, order) for order in orders)

    def _goes_on(self, asks: Mapping[str, int], order: Sequence[Sequence[Holds]]) -> bool:
        taken = Counter[str]()
        for piece in order:
            queue, here = piece[0].queue, {r: _sum(piece, r) for r in QUOTED}
            left = {(one, r): self._used[one, r] - taken[r] for one in self._queues for r in QUOTED}
            asked = [r for r in QUOTED if asks[r] and here[r] and self._bound(queue, r)]
            others = [one for one in self._line(queue) if one not in self._own]
            if not any(
                left[queue, r] > self._runtime[queue, r]
                and all(left[one, r] - here[r] >= self._base(one, r) for one in others)
                for r in asked
            ):
                return False
            taken.update(here)
        return True

    # -- quotas --------------------------------------------------------------------------------------------------------

    def _line(self, queue: str) -> list[str]:
        """The queue and those above it."""
        above = self._queues[queue].get("parent")
        return [queue, *(self._line(above) if above else [])]

    def _below(self, queue: str | None) -> list[str]:
        return sorted(name for name, said in self._queues.items() if said.get("parent") == queue)

    def _is_parent(self, queue: str) -> bool:
        return bool(self._below(queue))

    def _bound(self, queue: str, r: str) -> bool:
        """Whether it or a queue above it states a quota."""
        said = [self._queues[one] for one in self._line(queue)]
        stated = any(r in one.get("deserved", {}) or r in one.get("capability", {}) for one in said)
        return stated or any(one.get("guarantee", {}).get(r, 0) > 0 for one in said)

    def _states(self, queue: str, r: str) -> bool:
        return self._bound(queue, r) or any(self._states(one, r) for one in self._below(queue))

    def _most(self, queue: str, r: str) -> float:
        return float(self._queues[queue].get("capability", {}).get(r, inf))

    def _guarantee(self, queue: str, r: str) -> int:
        below = sum(self._guarantee(one, r) for one in self._below(queue))
        return max(int(self._queues[queue].get("guarantee", {}).get(r, 0)), below)

    def _base(self, queue: str, r: str) -> int:
        return max(int(self._queues[queue].get("deserved", {}).get(r, 0)), self._guarantee(queue, r))

    def _lost(self, queue: str, r: str, gone: Sequence[Holds]) -> int:
        return sum(task.of(r) for task in gone if queue in self._line(task.queue))

    @cached_property
    def _used(self) -> dict[tuple[str, str], int]:
        running = [task for task in self._tasks if task.runs]
        return {(queue, r): self._lost(queue, r, running) for queue in self._queues for r in QUOTED}

    @cached_property
    def _runtime(self) -> dict[tuple[str, str], float]:
        """The runtime quota of each queue."""
        found: dict[tuple[str, str], float] = {}
        for r in QUOTED:
            self._share(None, self._whole[r], r, found)
        return found

    def _share(self, parent: str | None, total: float, r: str, found: dict[tuple[str, str], float]) -> None:
        """What the children of a queue get of what it has, ties by name; and their children of that."""
        want = {name: self._wants(name, r) for name in self._below(parent)}
        got = {name: max(min(want[name], self._up_to(name, r)), self._guarantee(name, r)) for name in want}
        pool, weight = total - sum(got.values()), {one: int(self._queues[one].get("weight", 1)) for one in want}
        while pool > 0 and (needy := [one for one in want if want[one] > got[one] and weight[one] > 0]):
            for name, offered in zip(needy, _pieces(int(pool), [weight[one] for one in needy]), strict=True):
                took = min(offered, want[name] - got[name])
                got[name], pool = got[name] + took, pool - took
        for name in want:
            found[name, r] = got[name]
            self._share(name, got[name], r, found)

    def _up_to(self, queue: str, r: str) -> float:
        """Up to which a queue gets what it asks for before others do; one without a quota has what it holds."""
        return self._base(queue, r) if self._states(queue, r) else self._used[queue, r]

    def _wants(self, queue: str, r: str) -> float:
        mine = sum(task.of(r) for task in self._tasks if task.queue == queue)
        below = sum(self._wants(one, r) for one in self._below(queue))
        return min(max(mine + below, self._guarantee(queue, r)), self._most(queue, r))


def _sum(tasks: Sequence[Holds], resource: str) -> int:
    return sum(task.of(resource) for task in tasks)


def _pieces(pool: int, weight: Sequence[int]) -> list[int]:
    """All pieces in proportion to weight by largest remainder; ties go to the first."""
    whole, given = sum(weight), [pool * one // sum(weight) for one in weight]
    rest = [pool * one % whole for one in weight]
    for at in sorted(range(len(weight)), key=lambda one: (-rest[one], one))[: pool - sum(given)]:
        given[at] += 1
    return given
