"""Snapshots for tests of placement: a few nodes in racks and blocks, tasks that run there, gangs that wait."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from actors.fleets.generated_columns import table
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, PHASE_INQUEUE, RUNNING, Nodes, Podgroups, Roles, Shapes, Subgroups, Tasks
from pipeline.cluster.topology import Topology
from pipeline.cluster.vocabulary import AntiAffinity, Constraint, Taint, Vocabulary
from tests.support.small_states import column, small_state

BLOCK, RACK = 0, 1
NOWHERE = np.zeros(0, np.int64)
ANYWHERE = Constraint()
#: What may be said of a podgroup, and what holds otherwise.
_OF_GROUPS = {
    "min_available": 1, "required_level": NONE, "namespace": 0, "preferred_level": NONE, "priority": 0,
    "min_subgroups": NONE,
}  # fmt: skip


@dataclass(frozen=True)
class Work:
    """One task: its podgroup, what it asks for in cores, where it is; it waits if it is nowhere."""

    group: int
    cpu: int = 1
    node: int = NONE
    nominated: int = NONE
    subgroup: int = NONE
    priority: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    constraint: Constraint = ANYWHERE
    status: int | None = None


def placed(
    cores: Sequence[int],
    work: Sequence[Work],
    *,
    racks: Sequence[int] = (),
    racks_a_block: int = 2,
    groups: Sequence[dict[str, Any]] = ({},),
    subgroups: Sequence[tuple[int, int, int, int]] = (),
    labels: Sequence[dict[str, str]] = (),
    taints: Sequence[tuple[Taint, ...]] = (),
    cordoned: Sequence[int] = (),
) -> Snapshot:
    """A snapshot of ``cores`` nodes.

    ``racks``: how many nodes each has, in order; ``groups``: columns of each podgroup that are not as usual;
    ``subgroups``: (podgroup, parent, minimum, required level) each, by podgroup.
    """
    constraints = list(dict.fromkeys([Constraint(), *(task.constraint for task in work)]))
    label_sets = list(dict.fromkeys([(), *(task.labels for task in work)]))
    shapes = list(dict.fromkeys((task.cpu, constraints.index(task.constraint)) for task in work)) or [(1, 0)]
    keys = sorted({key for node in labels for key in node})
    values = {key: list(dict.fromkeys(node[key] for node in labels if key in node)) for key in keys}
    codes = [[values[key].index(node[key]) if key in node else NONE for key in keys] for node in labels]
    taint_sets = list(dict.fromkeys([(), *taints]))
    base = small_state()
    return replace(
        base,
        vocabulary=Vocabulary(
            base.vocabulary.resources, ("block", "rack"), tuple(keys), tuple(tuple(values[key]) for key in keys),
            tuple(taint_sets), tuple(constraints), tuple(label_sets), ("default", "other"),
        ),
        nodes=table(
            Nodes, len(cores), 3, allocatable=[[1000 * many, 1 << 30, 110] for many in cores],
            schedulable=[n not in cordoned for n in range(len(cores))],
            taint_set=[taint_sets.index(each) for each in taints] or 0, labels=codes or [],
        ),
        topology=topology(len(cores), racks, racks_a_block),
        shapes=Shapes(
            frozen([[1000 * cpu, 0, 1] for cpu, _ in shapes], np.int64), frozen([row for _, row in shapes], np.int32),
            column(0, np.int64, len(shapes)),
        ),
        podgroups=table(
            Podgroups, len(groups), 3, phase=PHASE_INQUEUE,
            **{name: [group.get(name, usual) for group in groups] for name, usual in _OF_GROUPS.items()},
        ),
        roles=Roles(column(0, np.int32, 0), column(0, np.int32, 0)),
        subgroups=Subgroups(
            *(frozen([row[i] for row in subgroups], np.int32) for i in range(3)),
            column(NONE, np.int32, len(subgroups)), frozen([row[3] for row in subgroups], np.int32),
            column(NONE, np.int32, len(subgroups)),
        ),
        tasks=table(
            Tasks, len(work), podgroup=[task.group for task in work],
            shape=[shapes.index((task.cpu, constraints.index(task.constraint))) for task in work],
            label_set=[label_sets.index(task.labels) for task in work],
            status=[(PENDING if t.node == NONE else RUNNING) if t.status is None else t.status for t in work],
            **{name: [getattr(task, name) for task in work] for name in ("subgroup", "priority", "node", "nominated")},
        ),
    )  # fmt: skip


def topology(nodes: int, racks: Sequence[int], racks_a_block: int) -> Topology:
    """Blocks of racks over all nodes; without racks the cluster is one domain."""
    level, parent, start, stop = [NONE], [NONE], [0], [nodes]
    edges = np.cumsum([0, *racks]).tolist()
    block = 0
    for rack in range(len(racks)):
        if rack % racks_a_block == 0:
            block = len(level)
            level.append(BLOCK)
            parent.append(0)
            start.append(edges[rack])
            stop.append(edges[min(rack + racks_a_block, len(racks))])
        level.append(RACK)
        parent.append(block)
        start.append(edges[rack])
        stop.append(edges[rack + 1])
    return Topology(
        2, frozen(level, np.int32), frozen(parent, np.int32), frozen(start, np.int64), frozen(stop, np.int64)
    )


def apart(key: str = "kubernetes.io/hostname", **labels: str) -> Constraint:
    """A constraint: not in one domain of ``key`` with tasks of these labels."""
    return Constraint(anti_affinity=(AntiAffinity(key, tuple(sorted(labels.items()))),))
