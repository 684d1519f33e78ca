"""Parts of a need that go into one domain together: subgroups and podgroups with a level of their own."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Rows, is_among
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.subgroups import in_subtree, summed_upwards
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.cluster.topology import Topology
from pipeline.placement.need import Need, Part


@dataclass(frozen=True)
class Group:
    """Parts that go into one domain together; the first group is the gang in the whole slice.

    Attributes
    ----------
    parent
        Index of the group around it, NONE for the first.
    required, preferred
        Level rows; NONE without one, or if the slice lies in one domain of that level anyway.
    fixed: int64[F]
        Nodes on which tasks of these parts run already, or which are promised to them.
    """

    parent: int
    required: int
    preferred: int
    fixed: Rows


def groups_of(need: Need, snapshot: Snapshot, start: int, stop: int, leaving: Rows) -> tuple[list[Group], Rows] | None:
    """The groups, and the group of each part; None if a part has tasks outside the slice."""
    many, groups, of = [need.minimum], [Group(NONE, NONE, NONE, NO_ROWS)], np.zeros(len(need.parts), np.int64)
    if len(need.parts) > 1:
        own = np.bincount(need.part[: need.minimum], minlength=len(need.parts))
        many = summed_upwards(np.array([part.parent for part in need.parts], np.int32), own).tolist()
    for p, part in enumerate(need.parts):
        of[p] = 0 if part.parent == NONE else of[part.parent]
        if many[p] == 0 or part.required_level == part.preferred_level == NONE:
            continue
        fixed = _fixed(part, snapshot, leaving)
        required, preferred = part.required_level, part.preferred_level
        around = _around(snapshot.topology, required, start, stop)
        if around != NONE:
            if not holds(snapshot.topology, np.array([around]), fixed).all():
                return None
            required = NONE
        if _around(snapshot.topology, preferred, start, stop) != NONE:
            preferred = NONE
        if required != NONE or preferred != NONE:
            groups.append(Group(int(of[p]), required, preferred, fixed))
            of[p] = len(groups) - 1
    return groups, of


def _fixed(part: Part, snapshot: Snapshot, leaving: Rows) -> Rows:
    """Nodes of the part's tasks that run or are promised a node, without those that leave."""
    have = snapshot.counts
    if have.running[part.podgroup] == have.waiting[part.podgroup] == 0:  # the usual gang: all of it is to be placed
        return NO_ROWS
    rows = tasks_of_part(snapshot, part.podgroup, part.subgroup)
    nodes = place_of(snapshot, rows)
    held = nodes != NONE
    return nodes[held & ~is_among(rows, leaving)] if held.any() else nodes[:0]


def tasks_of_part(snapshot: Snapshot, podgroup: int, subgroup: int) -> Rows:
    """int64[K]: all tasks of a podgroup (``subgroup`` NONE), or of one of its subgroups and those inside it."""
    rows = snapshot.tasks_of(podgroup)
    if subgroup == NONE:
        return rows
    return rows[in_subtree(snapshot.subgroups, subgroup, snapshot.tasks.subgroup[rows])]


def place_of(snapshot: Snapshot, rows: Rows) -> Rows:
    """int64[K]: the node that each task holds or is promised; NONE for one without a node, or one that is ending."""
    tasks = snapshot.tasks
    running = (tasks.status[rows] == BOUND) | (tasks.status[rows] == RUNNING)
    return np.where(running, tasks.node[rows], tasks.nominated[rows]).astype(np.int64)


def _around(topology: Topology, level: int, start: int, stop: int) -> int:
    """The domain of the level that holds the whole slice, or NONE."""
    if level == NONE:
        return NONE
    rows = topology.at_level(level)
    holding = rows[(topology.start[rows] <= start) & (topology.stop[rows] >= stop)]
    return int(holding[0]) if len(holding) else NONE


def holds(topology: Topology, domains: Rows, nodes: Rows) -> Bools:
    """bool[D]: domains that hold all of ``nodes``."""
    if len(nodes) == 0:
        return np.ones(len(domains), bool)
    return np.asarray((topology.start[domains] <= nodes.min()) & (topology.stop[domains] > nodes.max()))
