"""Parts of a need that go into one domain together: subgroups and podgroups with a level of their own."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Ids, Longs, Rows, is_among, sealed
from pipeline.cluster.queue_tree import with_descendants
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.subgroups import in_subtree
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


def groups_of(
    need: Need, snapshot: Snapshot, leaving: Rows, nodes: tuple[int, int] | None = None
) -> tuple[list[Group], Rows] | None:
    """The groups in a slice of nodes, and int64[P]: the group of each part; None if a part has tasks outside the slice.

    Without a slice: in any domain in which the podgroups may lie; that is within what they require as a whole.
    """
    many, groups, of = [need.minimum], [Group(NONE, NONE, NONE, NO_ROWS)], np.zeros(len(need.parts), np.int64)
    levels = {level for part in need.parts for level in (part.required_level, part.preferred_level)}
    around = {} if nodes is None else {one: domain_around(snapshot.topology, one, *nodes) for one in levels}
    if len(need.parts) > 1:
        own = np.bincount(need.part[: need.minimum], minlength=len(need.parts))
        parent = np.array([part.parent for part in need.parts], np.int32)
        many = with_descendants(parent, own[:, None])[:, 0].tolist()
    for p, part in enumerate(need.parts):
        of[p] = 0 if part.parent == NONE else of[part.parent]
        if many[p] == 0 or part.required_level == part.preferred_level == NONE:
            continue
        fixed = nodes_of(part, snapshot, leaving)
        required, preferred = part.required_level, part.preferred_level
        if nodes is not None:
            if around[required] != NONE:
                if len(fixed) and len(snapshot.topology.holding(np.array([around[required]]), fixed)) == 0:
                    return None
                required = NONE
            if around[preferred] != NONE:
                preferred = NONE
        elif part.subgroup == NONE:
            required = NONE
        if required != NONE or preferred != NONE:
            groups.append(Group(int(of[p]), required, preferred, fixed))
            of[p] = len(groups) - 1
    return groups, of


def least_of_parts(need: Need, snapshot: Snapshot) -> Longs:
    """int64[P, S]: tasks of each shape that must be placed of each part, lest its podgroup misses its minimum.

    Counted in subgroups without others inside that the podgroup cannot spare. Any waiting tasks of such a subgroup make
    up its minimum, so of a shape no more are counted than are needed if all the others are placed.
    """
    own, outer = np.zeros((len(need.parts), len(need.shapes)), np.int64), {part.parent for part in need.parts}
    np.add.at(own, (need.part, need.shape), 1)
    settled = is_among(need.part, [*need.part[: need.minimum].tolist(), *outer])
    for p, (many, part) in enumerate(zip(own, need.parts, strict=True)):
        lacking = 0 if part.subgroup == NONE or p in outer else lacking_in(snapshot, part.subgroup)
        others = need.tasks[settled & (need.part != p)]
        spared = lacking <= 0 or has_minimum(snapshot, part.podgroup, NONE, others)
        own[p] = 0 if spared else np.maximum(many - (many.sum() - lacking), 0)
    return own


def lacking_in(snapshot: Snapshot, subgroup: int) -> int:
    """How many tasks a subgroup without others inside lacks for its minimum, with what is promised."""
    have, least = snapshot.subgroup_counts, snapshot.subgroups.min_available[subgroup]
    return int(least - have.ready[subgroup] - have.waiting[subgroup] - have.pending_best_effort[subgroup])


class InOneRegionEach(NamedTuple):
    """Groups that require one level, int64[P], and the outer group of each, int64[P]: no rows if all lie in the first.

    Outer groups require one wider level, or the same, and lie in the first group.
    """

    inner: Rows
    around: Rows


_ALL_IN_THE_FIRST = InOneRegionEach(NO_ROWS, NO_ROWS)


def in_one_region_each(groups: list[Group]) -> InOneRegionEach | None:
    """The groups that contain no other group, if slots decide where tasks of one shape go; None otherwise.

    Slots do not decide where a group prefers a level, or has tasks on nodes.
    """
    if len(groups) == 1:
        return _ALL_IN_THE_FIRST
    outer = {one.parent for one in groups[1:] if one.parent}
    inner = [g for g in range(1, len(groups)) if g not in outer]
    around = [groups[g].parent for g in inner]
    levels, wide = {groups[g].required for g in inner}, {groups[g].required for g in outer}
    if any(one.preferred != NONE or len(one.fixed) for one in groups) or len(levels) > 1 or len(wide) > 1:
        return None
    if outer and (max(wide) > min(levels) or not all(around) or any(groups[g].parent for g in outer)):
        return None
    return InOneRegionEach(np.array(inner, np.int64), np.array(around if outer else [], np.int64))


def nodes_of(part: Part, snapshot: Snapshot, leaving: Rows) -> Rows:
    """int64[K]: the nodes of the part's tasks that run or are promised a node; ``leaving`` int64[V] do not count."""
    have = snapshot.counts
    if have.running[part.podgroup] == have.waiting[part.podgroup] == 0:  # the usual gang: all of it is to be placed
        return NO_ROWS
    rows = tasks_of_part(snapshot, part.podgroup, part.subgroup)
    nodes = snapshot.place_of(rows).astype(np.int64)
    held = nodes != NONE
    return nodes[held & ~is_among(rows, leaving)] if held.any() else nodes[:0]


def tasks_of_part(snapshot: Snapshot, podgroup: int, subgroup: int) -> Rows:
    """int64[K]: all tasks of a podgroup (``subgroup`` NONE), or of one of its subgroups and those inside it."""
    rows = snapshot.tasks_of(podgroup)
    if subgroup == NONE:
        return rows
    return rows[in_subtree(snapshot.subgroups, subgroup, snapshot.tasks.subgroup[rows])]


def domain_around(topology: Topology, level: int, start: int, stop: int) -> int:
    """The domain of the level that holds the whole slice, or NONE."""
    if level == NONE:
        return NONE
    rows = topology.at_level(level)
    holding = rows[(topology.start[rows] <= start) & (topology.stop[rows] >= stop)]
    return int(holding[0]) if len(holding) else NONE


def regions_at(snapshot: Snapshot, level: int) -> Ids:
    """int32[N]: the domain of a level that each node is in, counted in the order of the nodes; NONE without one."""
    known, topology = snapshot.answers(regions_at), snapshot.topology
    if level not in known:
        region = np.full(len(snapshot.nodes), NONE, np.int32)
        for at, domain in enumerate(in_order_of_nodes(topology, topology.at_level(level)).tolist()):
            region[topology.start[domain] : topology.stop[domain]] = at
        known[level] = sealed(region)
    return known[level]


def in_order_of_nodes(topology: Topology, domains: Rows) -> Rows:
    """int64[K]: those of some domains (int64[D]) that have nodes, in the order of their nodes."""
    domains = domains[topology.start[domains] < topology.stop[domains]]
    return domains[topology.start[domains].argsort(kind="stable")]
