"""A last resort for small gangs: task by task on every node, where laying out by groups and kinds found nothing.

Groups and kinds are placed by rules that never look back. With anti-affinity, cards and parts that must stay together a
small gang can fit all the same. Depth first, until a number of nodes was tried; a count and not a time.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Longs, Rows
from pipeline.cluster.topology import Topology
from pipeline.placement.layout.parts import Group
from pipeline.placement.layout.room_left import RoomLeft, put, share

#: Gangs of more tasks, and slices of more nodes, are not tried; and how many nodes are tried in all.
_TASKS, _NODES, _TRIES = 8, 16, 300


def one_by_one(topology: Topology, start: int, groups: list[Group], group: Rows, kind: Rows, room: RoomLeft) -> Rows:
    """A node of the slice for each task, or no rows.

    Parameters
    ----------
    start
        The slice begins at this node.
    group, kind: int64[K]
        Of each task.
    room
        Of the slice, its slots counted.

    Returns
    -------
    int64[K], counted from the start of the slice; empty if nothing was found.
    """
    if not few_enough(len(group), len(room.left)):
        return np.zeros(0, np.int64)
    return _Assignment(topology, start, groups, group, kind, room).found()


def few_enough(tasks: int, nodes: int) -> bool:
    """Whether a gang, and the slice of nodes, are so small that it is tried."""
    return tasks <= _TASKS and nodes <= _NODES


class _Assignment:
    """The walk through the assignments."""

    def __init__(
        self, topology: Topology, start: int, groups: list[Group], group: Rows, kind: Rows, room: RoomLeft
    ) -> None:
        self._group, self._kind, self._room, self._tries = group, kind, room, _TRIES
        self._parent = [one.parent for one in groups]
        #: Per group the domain of each node that may take it, NONE for none; and the one that it is in.
        self._domain = [self._domains(topology, start, one, len(room.left)) for one in groups]
        self._order = np.lexsort((np.arange(len(group)), group, kind, -share(room.request, room.left)[kind])).tolist()
        self._node = np.full(len(group), NONE, np.int64)

    def found(self) -> Rows:
        """The first assignment that holds."""
        return self._node if self._placed(0, {}) else self._node[:0]

    @staticmethod
    def _domains(topology: Topology, start: int, one: Group, nodes: int) -> Longs:
        """int64[n]: the domain of each node where a level is required; NONE where the group may not use the node."""
        if one.required == NONE:
            return np.zeros(nodes, np.int64)
        rows, result = topology.at_level(one.required), np.full(nodes, NONE, np.int64)
        for row in rows.tolist():
            first, last = topology.slice_of(row)
            if all(first <= node < last for node in one.fixed.tolist()):
                result[max(first - start, 0) : max(last - start, 0)] = row
        return result

    def _placed(self, at: int, chosen: dict[int, int]) -> bool:
        """Place the tasks from the position ``at`` on; ``chosen`` are the domains that groups are in."""
        if at == len(self._order):
            return True
        task, first = self._order[at], 0
        before = self._order[at - 1] if at else NONE
        if at and (self._kind[task], self._group[task]) == (self._kind[before], self._group[before]):
            first = int(self._node[before])  # tasks that are alike: in the order of the nodes
        for node in range(first, len(self._room.left)):
            mine = self._with(int(self._group[task]), node, chosen)
            if mine is None or self._tries <= 0:
                continue
            self._tries -= 1
            before = self._room
            self._room = RoomLeft._make(column.copy() for column in before)
            if put(self._room, int(self._kind[task]), node):
                self._node[task] = node
                if self._placed(at + 1, mine):
                    return True
            self._room = before
        return False

    def _with(self, group: int, node: int, chosen: dict[int, int]) -> dict[int, int] | None:
        """The domains of all groups once one of them has a task on the node; None if it may not."""
        mine = dict(chosen)
        while group != NONE:
            domain = int(self._domain[group][node])
            if domain == NONE or mine.setdefault(group, domain) != domain:
                return None
            group = self._parent[group]
        return mine
