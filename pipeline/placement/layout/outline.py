"""The groups of a gang in one slice of nodes, as they are before its room is known: their regions and their tasks."""

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Longs, Rows
from pipeline.cluster.topology import Topology
from pipeline.keeping import begun_like, cached_property
from pipeline.placement.layout.parts import Group
from pipeline.placement.layout.settled_groups import OWN, GroupTree
from pipeline.records import replace


@dataclass(frozen=True)
class Slice:
    """The node rows ``start:stop``, and regions in it, which are counted from ``start``."""

    topology: Topology
    start: int
    stop: int

    def regions(self, group: Group) -> tuple[Longs, Longs]:
        """Regions by the preferred and by the required level of a group: int64[P, 2] each."""
        asked = group.required, group.preferred, group.fixed.tobytes()
        if asked not in self._known:  # siblings mostly ask for the same
            whole = np.array([[0, self.stop - self.start]])
            required = whole if group.required == NONE else self._cut(whole, group.required, group.fixed)
            preferred = required[:0] if group.preferred == NONE else self._cut(required, group.preferred, group.fixed)
            self._known[asked] = preferred, required
        return self._known[asked]

    @cached_property
    def _known(self) -> dict[tuple[int, int, bytes], tuple[Longs, Longs]]:
        """What ``regions`` answered."""
        return {}

    def _cut(self, regions: Longs, level: int, fixed: Rows) -> Longs:
        """Parts of regions in one domain each of the level that holds ``fixed``, in the order of their nodes."""
        rows = self.topology.holding(self.topology.at_level(level), fixed)
        lower = np.maximum(regions[:, 0, None], self.topology.start[rows] - self.start)
        upper = np.minimum(regions[:, 1, None], self.topology.stop[rows] - self.start)
        found = np.stack([lower[lower < upper], upper[lower < upper]], axis=1)
        return found[found[:, 0].argsort(kind="stable")]


class _GroupCounts(NamedTuple):
    """What is counted of the groups of a gang.

    Attributes
    ----------
    own, total: int64[P, M]
        Tasks of each kind that are in the group and in no inner one, and all in it.
    inside
        The groups right inside each.
    depth
        How many groups lie in each other at most.
    """

    own: Longs
    total: Longs
    inside: list[list[int]]
    depth: int


@dataclass(frozen=True)
class Outline:
    """What is known about a search for places before its room: the groups of a gang in one slice, and their tasks.

    Attributes
    ----------
    groups
        The first one is the gang itself.
    group, kind: int64[K]
        Of each task of the minimum.
    kinds
        How many kinds there are, M.
    alike
        Whether all tasks are of one kind, and slots say where the groups go.
    """

    groups: list[Group]
    group: Rows
    kind: Rows
    kinds: int
    alike: bool
    within: Slice

    def in_slice(self, within: Slice) -> "Outline":
        """The same groups in another slice, in which these ask for the same."""
        return begun_like(replace(self, within=within), self, "classes", "_has_own", "_begin", "_counted")

    @cached_property
    def classes(self) -> list[tuple[Rows, int, int]]:
        """Of each group and kind with tasks their positions, int64[K], then the group and the kind."""
        pairs = np.argwhere(self._counted.own).tolist()
        return [(np.flatnonzero((self.group == g) & (self.kind == k)), g, k) for g, k in pairs]

    def nodes(self, taken: Longs) -> Rows:
        """int64[K]: the node of each task, given how many of each group and kind go to each node, int64[G, M, n]."""
        nodes, each = np.empty(len(self.group), np.int64), np.arange(self.within.start, self.within.stop)
        for at, g, k in self.classes:
            nodes[at] = each.repeat(taken[g, k])
        return nodes

    @cached_property
    def tree(self) -> GroupTree:
        """The groups."""
        counted, todo = self._counted, list[int]()
        for inner, alone in zip(counted.inside, self._has_own, strict=True):
            todo += [*sorted(inner), OWN] if alone else sorted(inner)
        return GroupTree(
            counted.own, counted.total, np.array(todo, np.int64), self._begin, *self._regions, counted.depth
        )

    @cached_property
    def _has_own(self) -> list[bool]:
        """Of each group, whether it has tasks that are in no inner group."""
        return [bool(each.any()) for each in self._counted.own]

    @cached_property
    def _begin(self) -> Rows:
        """Where what is to be placed inside each group begins."""
        many = [len(inner) + alone for inner, alone in zip(self._counted.inside, self._has_own, strict=True)]
        return np.append(0, np.cumsum(many))

    @cached_property
    def _counted(self) -> _GroupCounts:
        own = np.zeros((len(self.groups), self.kinds), np.int64)
        np.add.at(own, (self.group, self.kind), 1)
        total, inside = own.copy(), list[list[int]]([] for _ in self.groups)
        for g in range(len(self.groups) - 1, 0, -1):
            total[self.groups[g].parent] += total[g]
            inside[self.groups[g].parent].append(g)
        depth = [1] * len(self.groups)
        for g, group in enumerate(self.groups[1:], 1):
            depth[g] += depth[group.parent]
        return _GroupCounts(own, total, inside, max(depth))

    @cached_property
    def _regions(self) -> tuple[Longs, Rows]:
        """The regions of all groups, and where those of each begin."""
        regions = [one for group in self.groups for one in self.within.regions(group)]
        return np.concatenate(regions), _edges(regions)


def _edges(lists: Sequence[Sized]) -> Rows:
    """int64[L + 1]: where each of the lists begins in all of them together, and the end."""
    return np.append(0, np.cumsum([len(one) for one in lists]))
