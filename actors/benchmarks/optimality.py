"""How far victims are from the best there are: random domains, each also solved to proven optimality.

The objective is a plan's price, field after field: gangs broken, then the highest priority evicted, then lost work.
The exact solver (HiGHS, by way of SciPy, a development dependency) solves one mixed-integer program a field: evict or
not per task, broken or not per gang, slots per node; what a gang and its roles can spare binds unless it is broken, and
a broken gang goes whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec, generate
from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.placement.need import Need, need_of
from pipeline.plugins.extension_points import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.solvers.bundles.bundling.terms import Search
from pipeline.solvers.bundles.covering.selection import Selection, select
from pipeline.solvers.bundles.search import search_of

#: Nodes of an instance, tasks and devices of its gang: small enough to be solved in some 10 ms.
_INSTANCES = ((16, 16, 1), (16, 8, 4), (16, 4, 8), (32, 48, 1), (32, 16, 4), (32, 8, 8))
_EPSILON = 1e-6
_SECONDS = 10.0


@dataclass(frozen=True)
class Cost:
    """What a set of victims costs: gangs broken, the highest priority evicted, lost work."""

    gangs: int
    priority: int
    work: float


@dataclass(frozen=True)
class Comparison:
    """An instance: what was chosen and what is best, None where the solver ran out of time."""

    chosen: Cost
    best: Cost | None


def compare(seed: int) -> Comparison | None:
    """Make an instance, choose victims and solve it exactly; None if nothing need be evicted or nothing can be."""
    nodes, tasks, gpus = _INSTANCES[seed % len(_INSTANCES)]
    rigidify = (0.0, 0.6, 0.9)[seed // len(_INSTANCES) % 3]
    fleet = generate(nodes, GangSpec(tasks, gpus, "pod"), seed=seed, rigidify=rigidify, queues=0)
    attempt = Attempt(fleet.snapshot, load_profile("default"), Purpose.PREEMPT, (fleet.gang,), None, NOW)
    host, need = host_of(attempt), need_of(fleet.snapshot, (fleet.gang,))
    preemptor = Preemptor(attempt.podgroups, need.total, attempt.purpose)
    search = search_of(attempt, host, need, host.allowed(need.shapes), preemptor)
    found = select(search, int(fleet.snapshot.topology.at_level(0)[0]))
    if not isinstance(found, Selection) or len(found.victims) == 0:
        return None
    program = _Program(search)
    return Comparison(program.cost(found.victims), program.best())


class _Program:
    """The mixed-integer program of one instance: columns are tasks, then podgroups, then nodes, then the priority."""

    def __init__(self, search: Search) -> None:
        self._snapshot, self._need = search.snapshot, search.need
        tasks = self._snapshot.tasks
        self._rows: Rows = np.flatnonzero(search.candidate)
        self._group = tasks.podgroup[self._rows]
        self._priority = tasks.priority[self._rows].astype(np.float64)
        self._work: Floats = search.worth.unit[tasks.shape[self._rows]] * search.lost_work[self._group]
        self._tasks, self._groups = len(self._rows), len(self._snapshot.podgroups)
        self._width = self._tasks + self._groups + len(self._snapshot.nodes) + 1
        self._constraints = self._laws()

    def cost(self, victims: Rows) -> Cost:
        """Price a set of victims from the columns alone."""
        at = np.isin(self._rows, victims)
        gone = np.bincount(self._group[at], minlength=self._groups)
        ready, minimum = self._snapshot.counts.ready, self._snapshot.podgroups.min_available
        broken = (ready >= minimum) & (ready - gone < minimum)
        return Cost(int(broken.sum()), int(self._priority[at].max()), float(self._work[at].sum()))

    def best(self) -> Cost | None:
        """The least cost, field by field; None if the solver did not prove it in time."""
        gangs = self._solved(self._column(slice(self._tasks, self._tasks + self._groups), 1.0), [])
        if gangs is None:
            return None
        few = [self._law(self._column(slice(self._tasks, self._tasks + self._groups), 1.0), upper=round(gangs))]
        highest = self._solved(self._column(slice(self._width - 1, self._width), 1.0), few)
        if highest is None:
            return None
        few.append(self._law(self._column(slice(self._width - 1, self._width), 1.0), upper=highest + _EPSILON))
        work = self._solved(self._column(slice(0, self._tasks), self._work), few)
        return None if work is None else Cost(round(gangs), round(highest), work)

    def _solved(self, objective: Floats, more: list[Any]) -> float | None:
        integral = np.ones(self._width)
        integral[-1] = 0
        upper = np.ones(self._width)
        upper[self._tasks + self._groups :] = np.inf
        found = milp(
            objective,
            integrality=integral,
            bounds=Bounds(np.zeros(self._width), upper),
            constraints=[*self._constraints, *more],
            options={"time_limit": _SECONDS, "mip_rel_gap": 1e-6},
        )
        return float(found.fun) if found.status == 0 else None

    def _column(self, where: slice, values: Floats | float) -> Floats:
        row = np.zeros(self._width)
        row[where] = values
        return row

    def _law(self, row: Floats, *, lower: float = -np.inf, upper: float = np.inf) -> Any:
        return LinearConstraint(row[None, :], lower, upper)

    def _laws(self) -> list[Any]:
        need: Need = self._need
        slots = slice(self._tasks + self._groups, self._width - 1)
        return [
            self._law(self._column(slots, 1.0), lower=float(need.minimum)),
            *self._rooms(need.request[0]),
            *self._spared(self._snapshot),
            self._linked(),
        ]

    def _rooms(self, request: Longs) -> list[Any]:
        """Slots of a node take no more than what is free there and what its victims hold."""
        node = self._snapshot.tasks.node[self._rows]
        nodes = len(self._snapshot.nodes)
        laws = []
        for r in np.flatnonzero(request > 0):
            scale = float(request[r])
            held = self._snapshot.request[self._rows, r] / scale
            rows = np.concatenate([node, np.arange(nodes)])
            columns = np.concatenate([np.arange(self._tasks), self._tasks + self._groups + np.arange(nodes)])
            values = np.concatenate([-held, np.ones(nodes)])
            matrix = csr_array((values, (rows, columns)), shape=(nodes, self._width))
            laws.append(LinearConstraint(matrix, -np.inf, self._snapshot.room.future[:, r] / scale))
        return laws

    def _spared(self, snapshot: Snapshot) -> list[Any]:
        """No more of a podgroup or role than it can spare, unless the podgroup breaks."""
        groups, roles, tasks = snapshot.podgroups, snapshot.roles, snapshot.tasks
        whole = snapshot.counts.ready >= groups.min_available
        spare = snapshot.counts.ready - groups.min_available
        role = tasks.role[self._rows]
        bound = (groups.min_available >= snapshot.role_minimum) & whole
        left = snapshot.role_counts.ready - roles.min_available
        return [
            self._limit(self._group, spare.astype(np.float64), np.arange(self._groups), whole),
            self._limit(role, np.maximum(left, 0).astype(np.float64), roles.podgroup, bound[roles.podgroup]),
        ]

    def _limit(self, owner: Any, spare: Floats, group: Any, binds: Bools) -> Any:
        """Per owner that ``binds``: its victims, less all it has where its podgroup breaks, are at most ``spare``."""
        mine = owner != NONE
        have = np.bincount(owner[mine], minlength=len(spare)).astype(np.float64)
        rows = np.concatenate([owner[mine], np.arange(len(spare))])
        columns = np.concatenate([np.flatnonzero(mine), self._tasks + group])
        matrix = csr_array(
            (np.concatenate([np.ones(int(mine.sum())), -have]), (rows, columns)), shape=(len(spare), self._width)
        )
        return LinearConstraint(matrix, -np.inf, np.where(binds, spare, np.inf))

    def _linked(self) -> Any:
        """A broken gang goes whole; the priority is at least that of every victim."""
        each = np.arange(self._tasks)
        rows = np.concatenate([each, each, self._tasks + each, self._tasks + each])
        columns = np.concatenate([each, self._tasks + self._group, each, np.full(self._tasks, self._width - 1)])
        ones = np.ones(self._tasks)
        values = np.concatenate([ones, -ones, -self._priority, ones])
        matrix = csr_array((values, (rows, columns)), shape=(2 * self._tasks, self._width))
        return LinearConstraint(matrix, 0.0, np.inf)
