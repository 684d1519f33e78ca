"""The least price of victims on one fleet, as a mixed-integer program (HiGHS, through SciPy).

Variables: whether each task is evicted, whether each podgroup breaks, the work that each task loses as surplus, how
many tasks of each shape of the need each node takes, and whether surplus of each level goes. A podgroup that breaks
goes whole; any other loses no more than it and its roles can spare. Shapes share the resources of a node, so the
packing is exact too. In reclaim no queue loses more than it holds above what it deserves.

The price is lexicographic, so the program is solved once for each field: the work lost by podgroups that break, level
by level from the highest, then for each level whether surplus of it goes and the work that this loses: what was broken
before loses none, and still a lower level goes first. Fields that are solved become constraints.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Floats, Longs, Rows
from pipeline.cluster.resources import PODS
from pipeline.decision.price import Price
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch

#: How far above its least a solved field may be later on, and how many seconds one field may take.
_SLACK, _SECONDS = 2e-6, 5.0


@dataclass(frozen=True)
class Levels:
    """The fields: lost work of podgroups that break, by level from the highest; then surplus: if any goes, its work."""

    work: Floats

    @classmethod
    def of(cls, price: Price, levels: Rows) -> "Levels":
        """The fields of a price, for these levels."""
        broken, surplus = dict(price.broken), dict(price.surplus)
        fields = [broken.get(int(level), 0.0) for level in levels]
        for level in levels:
            fields += [float(int(level) in surplus), surplus.get(int(level), 0.0)]
        return cls(np.array(fields))

    def saves(self, other: "Levels", step: float) -> bool:
        """Whether this is less than ``other`` by more than a part of it: what breaks first, then surplus."""
        levels = len(self.work) // 3
        for field in (slice(levels), slice(levels + 1, None, 2)):
            mine, others = float(self.work[field].sum()), float(other.work[field].sum())
            if abs(mine - others) > _SLACK:
                return mine < others * (1.0 - step)
        return False


class Program:
    """The program of one search over all its nodes.

    No task of a queue with a rank above ``queue_rank`` may go: the price compares the fairness to queues before work.
    None of a priority above ``highest`` may, if that is not None.
    """

    def __init__(self, search: BundleSearch, queue_rank: int, highest: int | None = None) -> None:
        snapshot = self._snapshot = search.snapshot
        tasks = snapshot.tasks
        self._search, self._rows = search, np.flatnonzero(search.candidate)
        self._group = tasks.podgroup[self._rows]
        self._shapes, self._nodes = len(search.need.shapes), len(snapshot.nodes)
        self._tasks, self._groups = len(self._rows), len(snapshot.podgroups)
        whole = search.surplus.gang >= 0
        may = whole & search.terms.groups.complete
        level = snapshot.podgroups.priority if search.rules.by_priority else np.zeros(self._groups, np.int64)
        self._level = level[self._group]
        self.levels: Rows = np.unique(self._level).astype(np.int64)[::-1]
        blocks = [0, self._tasks, self._groups, self._tasks, self._shapes * self._nodes, len(self.levels)]
        self._starts = np.cumsum(blocks)
        lost = search.lost_work * whole
        each = np.eye(len(self.levels))
        self._objectives = [
            self._row(1, np.where(level == one, search.terms.groups.cost * lost, 0.0)) for one in self.levels
        ]
        for at, one in enumerate(self.levels):
            self._objectives += [self._row(4, each[at]), self._row(2, self._works(lost) * (self._level == one))]
        upper = np.ones(self._starts[-1])
        fair = search.queue_rank <= queue_rank
        if highest is not None:
            fair = fair & (snapshot.podgroups.priority <= highest)
        upper[: self._tasks] = fair[self._group]
        upper[self._starts[1] : self._starts[2]] = may & fair
        slots = search.open * search.need.count[:, None]
        upper[self._starts[3] : self._starts[4]] = slots.ravel()
        self._upper = upper
        self._laws = [*self._room(), self._placed(), *self._spared(whole), *self._linked(whole), *self._queues()]

    def _works(self, lost: Floats) -> Floats:
        unit: Floats = self._search.worth.unit[self._snapshot.tasks.shape[self._rows]]
        return unit * lost[self._group]

    def least(self) -> Levels | None:
        """The least work by field; None if a field was not proved in time, or there is no lawful solution."""
        settled = list[Any]()
        work = []
        for objective in self._objectives:
            if not objective.any():
                work.append(0.0)
                continue
            found = self._solved(objective, settled)
            if found.status != 0:
                return None
            work.append(float(found.fun))
            settled.append(LinearConstraint(csr_array(objective[None, :]), -np.inf, work[-1] + _SLACK))
        return Levels(np.array(work))

    def works(self) -> bool | None:
        """Whether there is a lawful solution; None if that was not proved in time."""
        return {0: True, 2: False}.get(self._solved(np.zeros(self._starts[-1]), []).status)

    def _solved(self, objective: Floats, settled: list[Any]) -> Any:
        integral = np.ones(self._starts[-1])
        integral[self._starts[2] : self._starts[3]] = 0
        return milp(
            objective, integrality=integral, bounds=Bounds(np.zeros(len(self._upper)), self._upper),
            constraints=[*self._laws, *settled], options={"time_limit": _SECONDS, "mip_rel_gap": 1e-6},
        )  # fmt: skip

    def _row(self, block: int, values: Floats) -> Floats:
        row = np.zeros(self._starts[-1])
        row[self._starts[block] : self._starts[block + 1]] = values
        return row

    def _matrix(self, rows: Longs, columns: Longs, values: Floats, many: int) -> Any:
        return csr_array((values, (rows, columns)), shape=(many, self._starts[-1]))

    def _room(self) -> list[Any]:
        """On each node the need takes no more than what is free there and what victims held."""
        snapshot, need, laws = self._snapshot, self._search.need, []
        node = snapshot.tasks.node[self._rows]
        slot = np.arange(self._shapes * self._nodes)
        for r in np.flatnonzero(need.request.any(axis=0)):
            scale = float(need.request[:, r].max())
            held = snapshot.request[self._rows, r] / scale
            asked = np.repeat(need.request[:, r] / scale, self._nodes)
            matrix = self._matrix(
                np.concatenate([node, slot % self._nodes]),
                np.concatenate([np.arange(self._tasks), self._starts[3] + slot]),
                np.concatenate([-held, asked]),
                self._nodes,
            )
            laws.append(LinearConstraint(matrix, -np.inf, snapshot.room.future[:, r] / scale))
        return laws

    def _placed(self) -> Any:
        slot = np.arange(self._shapes * self._nodes)
        matrix = self._matrix(slot // self._nodes, self._starts[3] + slot, np.ones(len(slot)), self._shapes)
        return LinearConstraint(matrix, self._search.need.count.astype(np.float64), np.inf)

    def _spared(self, whole: Bools) -> list[Any]:
        """A podgroup or role loses no more than it can spare, unless the podgroup breaks."""
        snapshot, surplus = self._snapshot, self._search.surplus
        role, owner = snapshot.tasks.role[self._rows], snapshot.roles.podgroup
        bound = whole[owner] & (surplus.role < np.iinfo(np.int32).max)
        return [
            self._limit(self._group, surplus.gang.astype(np.float64), np.arange(self._groups), whole),
            self._limit(role, np.maximum(surplus.role, 0).astype(np.float64), owner, bound),
        ]

    def _limit(self, owner: Any, spare: Floats, group: Any, binds: Bools) -> Any:
        """Victims of each owner that ``binds``, less all its tasks if its podgroup breaks, are at most ``spare``."""
        mine = owner != NONE
        have = np.bincount(owner[mine], minlength=len(spare)).astype(np.float64)
        rows = np.concatenate([owner[mine], np.arange(len(spare))])
        columns = np.concatenate([np.flatnonzero(mine), self._starts[1] + group])
        matrix = self._matrix(rows, columns, np.concatenate([np.ones(int(mine.sum())), -have]), len(spare))
        return LinearConstraint(matrix, -np.inf, np.where(binds, spare, np.inf))

    def _linked(self, whole: Bools) -> list[Any]:
        """A podgroup that breaks goes whole; a victim of any other podgroup is surplus of its level."""
        each, ones = np.arange(self._tasks), np.ones(self._tasks)
        breaks = self._starts[1] + self._group
        along = self._matrix(
            np.tile(each, 2), np.concatenate([each, breaks]), np.concatenate([ones, -ones]), self._tasks
        )
        columns = np.concatenate([self._starts[2] + each, each, breaks])
        lost = self._matrix(np.tile(each, 3), columns, np.concatenate([ones, -ones, ones]), self._tasks)
        free = np.where(whole[self._group], 0.0, -1.0)
        at = self._starts[4] + np.searchsorted(-self.levels, -self._level)
        columns = np.concatenate([at, each, breaks])
        goes = self._matrix(np.tile(each, 3), columns, np.concatenate([ones, -ones, ones]), self._tasks)
        return [
            LinearConstraint(along, 0.0, np.inf), LinearConstraint(lost, free, np.inf),
            LinearConstraint(goes, 0.0, np.inf),
        ]  # fmt: skip

    def _queues(self) -> list[Any]:
        """In reclaim every queue keeps what it deserves of all that is taken from it."""
        if self._search.rules.by_priority:
            return []
        snapshot, laws = self._snapshot, []
        queue = snapshot.podgroups.queue[self._group].astype(np.int64)
        for r in range(len(snapshot.vocabulary.resources)):
            counts = snapshot.queues.deserved[:, r] < UNLIMITED
            if r == PODS or not counts.any():
                continue
            scale = max(float(snapshot.request[:, r].max()), 1.0)
            matrix = self._matrix(queue, np.arange(self._tasks), snapshot.request[self._rows, r] / scale, len(counts))
            spare = np.maximum(snapshot.allocated_here[:, r] - snapshot.queues.deserved[:, r], 0) / scale
            laws.append(LinearConstraint(matrix, -np.inf, np.where(counts, spare, 0.0)))
        return laws
