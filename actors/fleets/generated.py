"""A seeded fleet for measurements: columns of any size in seconds, without a cluster file.

Nodes have 128 cores, 1 TiB and 8 devices. Racks have 14 to 18 nodes, blocks 8 racks, pods 8 blocks. About 99 % of the
devices are in use, by about ten tasks on each node, of 33 shapes; podgroups have 1 to 256 tasks in one to three roles.
The mix is synthetic. The surplus of podgroups decides how hard a fleet is, so measurements must state it.
"""

from dataclasses import dataclass

import numpy as np

from actors.fleets.generated_columns import table
from pipeline.cluster.arrays import NONE, Floats, Longs, Rows, frozen
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.counted.recent_evictions import NO_EVICTIONS
from pipeline.cluster.orders import dense_rank
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import (
    PENDING,
    PHASE_INQUEUE,
    PHASE_RUNNING,
    RUNNING,
    Nodes,
    Podgroups,
    Queues,
    Roles,
    Shapes,
    Subgroups,
    Tasks,
)
from pipeline.cluster.topology import Topology
from pipeline.cluster.vocabulary import Constraint, Vocabulary

NOW = 1_700_000_000.0
LEVELS = ("pod", "block", "rack")
RESOURCES = ("cpu", "memory", "pods", "nvidia.com/gpu")
_GIB = 1 << 30
_NODE = (128_000, 1024 * _GIB, 110, 8)
_QUEUES, _PRIORITIES = 32, 10
_SHAPES = 34
#: When the gang came.
_ARRIVED = NOW - 60.0
#: Ways to divide the 8 devices of a node among tasks, and their frequencies.
_CUTS = (
    ((8,), 0.12),
    ((4, 4), 0.12),
    ((4, 2, 2), 0.10),
    ((4, 1, 1, 1, 1), 0.13),
    ((2, 2, 2, 2), 0.10),
    ((2, 2, 1, 1, 1, 1), 0.13),
    ((2, 1, 1, 1, 1, 1, 1), 0.15),
    ((1, 1, 1, 1, 1, 1, 1, 1), 0.15),
)
#: Fraction of the tasks with devices that are left out, so that some devices are idle.
_HOLES = 0.006
#: Podgroups by how much they can lose: nothing; down to their roles' minima; below it already; any task.
RIGID, ELASTIC, BROKEN, LOOSE = range(4)
_KINDS = (0.50, 0.35, 0.05, 0.10)
#: Standard deviation, in nodes, of the places of the tasks of a podgroup.
_STREWN = 6.0


@dataclass(frozen=True)
class GangSpec:
    """The gang that waits: ``tasks`` of one shape with ``gpus`` devices each, all in one domain of ``level``."""

    tasks: int = 512
    gpus: int = 1
    level: str = "block"


@dataclass(frozen=True)
class GeneratedFleet:
    """A fleet, and the row of the podgroup that waits in it.

    The gang may reclaim: its queue, the last one, holds nothing and deserves a share that the other queues hold. In a
    fleet with one queue it may preempt: its priority is above all others.
    """

    snapshot: Snapshot
    gang: int


def generate(
    nodes: int, gang: GangSpec | None = None, *, seed: int = 0, rigidify: float = 0.6, queues: int = _QUEUES
) -> GeneratedFleet:
    """Make a fleet.

    Parameters
    ----------
    nodes
        Number of nodes.
    gang
        The gang that waits; None: 512 tasks of one device in one block.
    seed
        The same seed gives the same fleet.
    rigidify
        Fraction of podgroups that are made rigid beside those that are anyway; the more, the harder the fleet.
    queues
        Number of queues beside that of the gang; with 0 all podgroups are in the gang's queue.
    """
    gang = gang or GangSpec()
    rng = np.random.default_rng(seed)
    topology = _topology(nodes, rng)
    request = _requests(gang)
    node, shape = _running(nodes, rng)
    group = _podgroups_of(node, rng)
    node, shape, group = _arrival(node, shape, group, rng)
    sizes = np.bincount(group)
    roles, role, minimum = _roles(group, sizes, rigidify, rng)
    groups, wide = len(sizes), len(RESOURCES)
    priority = np.append(rng.integers(0, _PRIORITIES, groups), _PRIORITIES)
    started = NOW - np.round(rng.exponential(12 * 3600.0, groups), 1)
    created = np.append(started, _ARRIVED)
    owner = rng.integers(0, queues, groups) if queues else np.zeros(groups, np.int64)
    used = (np.bincount(shape, minlength=len(request))[:, None] * request).sum(axis=0)
    snapshot = Snapshot(
        revision=1,
        epoch=1,
        decided=0,
        vocabulary=Vocabulary(RESOURCES, LEVELS, constraints=(Constraint(),), namespaces=("default",)),
        nodes=table(Nodes, nodes, wide, allocatable=_NODE, revision=1),
        topology=topology,
        shapes=Shapes(
            frozen(request, np.int64),
            frozen(np.zeros(len(request)), np.int32),
            frozen(np.zeros(len(request)), np.int64),
        ),
        queues=table(Queues, queues + 1, wide, deserved=_deserved(queues, used), revision=1),
        podgroups=table(
            Podgroups, groups + 1, wide, queue=np.append(owner, queues), priority=priority,
            min_available=np.append(minimum, gang.tasks), phase=[PHASE_RUNNING] * groups + [PHASE_INQUEUE],
            required_level=[NONE] * groups + [LEVELS.index(gang.level)], created=created,
            started=np.append(started, np.nan), order=dense_rank(created, np.arange(groups + 1)), revision=1,
        ),
        roles=roles,
        subgroups=Subgroups(*(frozen([], np.int32) for _ in range(6))),
        tasks=_tasks(gang.tasks, group, shape, role, node, priority, created),
        budgets=Budgets(frozen([], np.int32), frozen([], np.int32), frozen(np.zeros((0, 1)), np.bool_)),
        recent=NO_EVICTIONS,
    )  # fmt: skip
    return GeneratedFleet(snapshot, groups)


# -- topology ------------------------------------------------------------------------------------------------------


def _topology(nodes: int, rng: np.random.Generator) -> Topology:
    edges = np.append(0, np.cumsum(rng.integers(14, 19, nodes // 14 + 1)))
    edges = np.append(edges[edges < nodes], nodes)
    level, parent, start, stop = [NONE], [NONE], [0], [nodes]
    pod = block = 0
    for rack in range(len(edges) - 1):
        for depth, many in enumerate((64, 8, 1)):
            if rack % many == 0:
                level.append(depth)
                parent.append((0, pod, block)[depth])
                start.append(int(edges[rack]))
                stop.append(int(edges[min(rack + many, len(edges) - 1)]))
                pod, block = (len(level) - 1 if depth == d else row for d, row in enumerate((pod, block)))
    return Topology(
        len(LEVELS), frozen(level, np.int32), frozen(parent, np.int32), frozen(start, np.int64), frozen(stop, np.int64)
    )


# -- what runs -----------------------------------------------------------------------------------------------------


def _requests(gang: GangSpec) -> Longs:
    """int64[_SHAPES, R]: 9 shapes without devices, 6 for each of 1, 2, 4 and 8 devices, and the gang's."""
    plain = [(1000 * cpu, gib * _GIB, 1, 0) for cpu in (1, 2, 4) for gib in (4, 8, 16)]
    device = [
        (1000 * cpu * gpus, gib * gpus * _GIB, 1, gpus)
        for gpus in (1, 2, 4, 8)
        for cpu in (4, 8, 12)
        for gib in (32, 96)
    ]
    own = (8000 * gang.gpus, 64 * gang.gpus * _GIB, 1, gang.gpus)
    return np.array([*plain, *device, own], np.int64)


def _running(nodes: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Node and shape of each running task, by node."""
    cut = rng.choice(len(_CUTS), nodes, p=[share for _, share in _CUTS])
    node, shape = [], []
    for number, (pieces, _) in enumerate(_CUTS):
        where = np.flatnonzero(cut == number)
        for piece in pieces:
            kept = where[rng.random(len(where)) >= _HOLES]
            node.append(kept)
            shape.append(9 + 6 * (piece.bit_length() - 1) + rng.integers(0, 6, len(kept)))
    plain = np.repeat(np.arange(nodes), rng.integers(3, 9, nodes))
    node.append(plain)
    shape.append(rng.integers(0, 9, len(plain)))
    every = np.concatenate(node)
    order = np.argsort(every, kind="stable")
    return every[order], np.concatenate(shape)[order]


def _podgroups_of(node: Rows, rng: np.random.Generator) -> Rows:
    """int64[T]: the podgroup of each task; tasks of a podgroup lie on nearby nodes."""
    sizes = np.clip(rng.lognormal(1.7, 1.3, len(node)), 1, 256).astype(np.int64)
    ends = np.cumsum(sizes)
    strewn = np.argsort(node + rng.normal(0.0, _STREWN, len(node)), kind="stable")
    group = np.empty(len(node), np.int64)
    group[strewn] = np.searchsorted(ends, np.arange(len(node)), side="right")
    return group


def _arrival(node: Rows, shape: Rows, group: Rows, rng: np.random.Generator) -> tuple[Rows, Rows, Rows]:
    """Sort tasks by podgroup, in random order of podgroups, as if they had arrived so."""
    group = rng.permutation(int(group.max()) + 1)[group]
    order = np.lexsort((node, shape, group))
    return node[order], shape[order], group[order]


def _roles(group: Rows, sizes: Rows, rigidify: float, rng: np.random.Generator) -> tuple[Roles, Rows, Rows]:
    """Roles, the role of each task, and the minimum of each podgroup."""
    kind = rng.choice(4, len(sizes), p=_KINDS)
    kind[rng.random(len(sizes)) < rigidify] = RIGID
    parts = np.minimum(rng.integers(1, 4, len(sizes)), sizes)
    first = np.cumsum(parts) - parts
    begin = np.cumsum(sizes) - sizes
    rank = np.arange(len(group)) - begin[group]
    role = first[group] + rank * parts[group] // sizes[group]
    owner = np.repeat(np.arange(len(sizes)), parts)
    have = np.bincount(role, minlength=len(owner))
    kept = rng.uniform(0.5, 0.9, len(sizes))
    least = np.where(kind[owner] == ELASTIC, np.ceil(have * kept[owner]), have).astype(np.int64)
    least[kind[owner] == LOOSE] = 0
    minimum = np.bincount(owner, weights=least, minlength=len(sizes)).astype(np.int64)
    minimum[kind == BROKEN] += 1
    minimum[kind == LOOSE] = np.ceil(sizes * kept).astype(np.int64)[kind == LOOSE]
    return Roles(frozen(owner, np.int32), frozen(least, np.int32)), role, minimum


def _deserved(queues: int, used: Longs) -> Longs:
    """int64[Q, R]: 40 to 80 % of an equal share of what is used for each queue; a fifth for that of the gang."""
    parts = np.append(0.8 * np.linspace(0.5, 1.0, queues) / max(queues, 1), 0.2)
    return np.floor(parts[:, None] * used).astype(np.int64)


def _tasks(waiting: int, group: Rows, shape: Rows, role: Rows, node: Rows, priority: Rows, created: Floats) -> Tasks:
    """Tasks that run, then those of the gang, whose shape is the last one and whose podgroup is as well."""
    running, none = len(group), np.full(waiting, NONE)
    group = np.append(group, np.full(waiting, len(created) - 1))
    return table(
        Tasks, running + waiting, podgroup=group, shape=np.append(shape, np.full(waiting, _SHAPES - 1)),
        role=np.append(role, none), priority=priority[group], status=np.repeat([RUNNING, PENDING], [running, waiting]),
        node=np.append(node, none), index=np.append(np.full(running, NONE), np.arange(waiting)),
        created=created[group], order=dense_rank(created[group], np.arange(running + waiting)), incarnation=1,
        revision=1,
    )  # fmt: skip
