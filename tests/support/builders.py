"""Small clusters from plain arguments: nodes, gangs that run on them, one that waits. Nothing of the edge is needed.

Quantities are bare numbers (a ``cpu`` of 2 is two base units), so that the tables of a document can be typed in.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from actors.fleets.generated_columns import table
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.rules.sparing import no_quota
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import (
    BOUND,
    PENDING,
    PHASE_INQUEUE,
    RUNNING,
    Nodes,
    Podgroups,
    Roles,
    Shapes,
    Subgroups,
    Tasks,
)
from pipeline.cluster.topology import Topology
from pipeline.cluster.vocabulary import Constraint, Vocabulary
from pipeline.placement.need import need_of
from pipeline.solvers.bundles.bundling.budget_columns import NO_BUDGETS
from pipeline.solvers.bundles.bundling.bundle_search import EFFORT, BundleSearch
from pipeline.solvers.bundles.bundling.records import Rules
from tests.support.small_states import column, queues_table, small_state

AXIS = ("cpu", "memory", "pods", "gpu")
#: What a gang says as the column of its podgroup is called.
_SAME = ("priority", "queue", "min_subgroups", "required_level")


@dataclass(frozen=True)
class Task:
    """One task; it waits if it is on no node. ``role`` and ``subgroup`` count within its gang."""

    node: int = NONE
    cpu: int = 0
    memory: int = 0
    gpu: int = 0
    role: int = NONE
    subgroup: int = NONE
    priority: int | None = None
    created: float = 0.0
    status: int | None = None
    preemptible: bool = True

    @property
    def request(self) -> tuple[int, ...]:
        return self.cpu, self.memory, 1, self.gpu


@dataclass(frozen=True)
class Gang:
    """One podgroup. ``roles``: the minimum of each; ``subgroups``: (parent, minimum, min_subgroups) of each."""

    tasks: Sequence[Task]
    minimum: int = 1
    priority: int = 0
    queue: int = 0
    roles: Sequence[int] = ()
    subgroups: Sequence[tuple[int, int, int]] = ()
    min_subgroups: int = NONE
    required_level: int = NONE


def gang(count: int, on: Sequence[int] | int = NONE, *, minimum: int | None = None, **said: Any) -> Gang:
    """A gang of ``count`` equal tasks, on the nodes of ``on`` in turn; rigid unless a minimum is given."""
    of_gang = {name: said.pop(name) for name in ("priority", "queue", "required_level") if name in said}
    nodes = [on] if isinstance(on, int) else list(on)
    tasks = [Task(nodes[i % len(nodes)], **said) for i in range(count)]
    return Gang(tasks, count if minimum is None else minimum, **of_gang)


def cluster(
    nodes: Sequence[dict[str, int]], gangs: Sequence[Gang], *, racks: Sequence[int] = (), queues: int = 2
) -> Snapshot:
    """A snapshot; ``racks``: how many nodes each has, in order. Domain 0 is the cluster, rack i is domain i + 1."""
    tasks = [task for one in gangs for task in one.tasks]
    owner = [g for g, one in enumerate(gangs) for _ in one.tasks]
    shapes = list(dict.fromkeys(task.request for task in tasks)) or [(1, 0, 1, 0)]
    roles, subgroups = _firsts([len(one.roles) for one in gangs]), _firsts([len(one.subgroups) for one in gangs])
    edges, created = np.cumsum([0, *racks]), [task.created for task in tasks]
    base = small_state()
    return replace(
        base,
        vocabulary=Vocabulary(AXIS, ("rack",), constraints=(Constraint(),), namespaces=("default",)),
        nodes=_nodes(nodes),
        topology=Topology(
            1, frozen([NONE] + [0] * len(racks), np.int32), frozen([NONE] + [0] * len(racks), np.int32),
            frozen([0, *edges[:-1]], np.int64), frozen([len(nodes), *edges[1:]], np.int64),
        ),
        shapes=Shapes(
            frozen(shapes, np.int64), column(0, np.int32, len(shapes)), column(0, np.int64, len(shapes))
        ),
        queues=queues_table(queues, len(AXIS)),
        podgroups=table(
            Podgroups, len(gangs), len(AXIS), phase=PHASE_INQUEUE,
            **{
                name: [getattr(one, said) for one in gangs]
                for name, said in (("min_available", "minimum"), *((same, same) for same in _SAME))
            },
        ),
        roles=Roles(
            frozen(np.repeat(np.arange(len(gangs)), [len(one.roles) for one in gangs]), np.int32),
            frozen([least for one in gangs for least in one.roles], np.int32),
        ),
        subgroups=_subgroups(gangs, subgroups),
        tasks=table(
            Tasks, len(tasks), podgroup=owner, role=_rows_of([task.role for task in tasks], owner, roles),
            subgroup=_rows_of([task.subgroup for task in tasks], owner, subgroups),
            shape=[shapes.index(task.request) for task in tasks], node=[task.node for task in tasks],
            priority=[one.priority if t.priority is None else t.priority for one in gangs for t in one.tasks],
            created=created, order=np.argsort(np.lexsort((np.arange(len(tasks)), created))),
            preemptible=[task.preemptible for task in tasks], status=[_status(task) for task in tasks],
        ),
    )  # fmt: skip


def searching(snapshot: Snapshot, preemptor: int, **changed: Any) -> BundleSearch:
    """A search in preempt's order: candidates run, are preemptible and of lower priority; nobody votes."""
    tasks, groups = snapshot.tasks, snapshot.podgroups
    need = need_of(snapshot, (preemptor,), surplus=False)
    lower = (groups.priority < groups.priority[preemptor])[tasks.podgroup]
    candidate = np.isin(tasks.status, (BOUND, RUNNING)) & tasks.preemptible & lower
    nothing = frozen(np.zeros(len(groups)), np.int64)
    usual: dict[str, Any] = {
        "snapshot": snapshot, "need": need, "candidate": frozen(candidate, bool),
        "allowed": frozen(np.ones((len(need.shapes), len(snapshot.nodes))), bool),
        "rank_before": frozen(groups.priority, np.int64), "rank_after": nothing, "queue_rank": nothing,
        "lost_work": frozen(np.ones(len(groups)), np.float64),
        "quota_filter": None, "validate_set": lambda _: True, "by_node": False, "effort": EFFORT,
        "quota": no_quota(), "budgets": NO_BUDGETS, "limits": None,
    }  # fmt: skip
    given = {name: frozen(one, one.dtype) if isinstance(one, np.ndarray) else one for name, one in changed.items()}
    columns = usual | {name: one for name, one in given.items() if name not in Rules._fields}
    switches = {name: one for name, one in given.items() if name in Rules._fields}
    asks = columns["quota_filter"] is not None and not (columns["quota"].counted or len(columns["budgets"]))
    step = 0.0 if switches.get("by_priority") else 0.05
    rules = Rules(
        allow_whole=True, cluster_wide=True, asks_in_order=asks, keep_order=False, by_priority=False,
        efficiency_step=0.05, tolerance=step,
    )  # fmt: skip
    return BundleSearch(rules=rules._replace(**switches), **columns)


def _status(task: Task) -> int:
    if task.status is not None:
        return task.status
    return PENDING if task.node == NONE else RUNNING


def _firsts(sizes: list[int]) -> list[int]:
    return np.cumsum([0, *sizes]).tolist()


def _rows_of(inside: list[int], owner: list[int], firsts: list[int]) -> list[int]:
    """Table rows of numbers that count within each gang."""
    return [NONE if one == NONE else firsts[g] + one for one, g in zip(inside, owner, strict=True)]


def _subgroups(gangs: Sequence[Gang], firsts: list[int]) -> Subgroups:
    rows = [(g, *one) for g, each in enumerate(gangs) for one in each.subgroups]
    parents = [NONE if parent == NONE else firsts[g] + parent for g, parent, _, _ in rows]
    none = column(NONE, np.int32, len(rows))
    return Subgroups(
        frozen([row[0] for row in rows], np.int32), frozen(parents, np.int32),
        frozen([row[2] for row in rows], np.int32), frozen([row[3] for row in rows], np.int32), none, none,
    )  # fmt: skip


def _nodes(nodes: Sequence[dict[str, int]]) -> Nodes:
    usual = {"cpu": 1_000, "memory": 1_000, "pods": 100, "gpu": 0}
    rooms = [[{**usual, **one}[name] for name in AXIS] for one in nodes]
    return table(Nodes, len(nodes), len(AXIS), allocatable=rooms)
