"""The names of rows of the live state, and the rows of names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

import numpy as np

from actors.columns.names import Names
from actors.columns.node_order import Path, Reordered, TopologyOrder
from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.topology import Topology

RowKind = Literal["tasks", "podgroups", "nodes", "queues"]


@dataclass(frozen=True, slots=True)
class _Growing:
    """Names by row, to which rows are appended; a name that several rows have means the last of them."""

    names: list[str]
    row_of: dict[str, int]

    @classmethod
    def of(cls, names: Iterable[str]) -> _Growing:
        listed = list(names)
        return cls(listed, dict(zip(listed, count(), strict=False)))

    def append(self, names: Iterable[str]) -> None:
        for name in names:
            self.row_of[name] = len(self.names)
            self.names.append(name)

    def copied(self) -> _Growing:
        return _Growing(list(self.names), dict(self.row_of))


@dataclass(frozen=True, slots=True)
class _Reorderable:
    """Names whose rows change: each name has a fixed number, and an array maps numbers to rows."""

    names: list[str]
    number_of: dict[str, int]
    row_at: Rows

    @classmethod
    def of(cls, names: Iterable[str]) -> _Reorderable:
        listed = list(names)
        return cls(listed, dict(zip(listed, count(), strict=False)), np.arange(len(listed)))

    def row(self, name: str) -> int:
        number = self.number_of.get(name, NONE)
        return int(self.row_at[number]) if NONE < number < len(self.row_at) else NONE

    def reordered(self, made: Reordered) -> _Reorderable:
        """The names in another order. Earlier names stay valid, since numbers are only added."""
        names, number_of = list(made.order.nodes), self.number_of
        placed = [(number_of.setdefault(names[row], len(number_of)), row) for row in made.placed.tolist()]
        row_at = np.full(len(number_of), NONE, np.int64)
        row_at[: len(self.row_at)] = np.append(made.row_of, NONE)[self.row_at]
        for number, row in placed:
            row_at[number] = row
        return _Reorderable(names, number_of, row_at)


@dataclass(frozen=True, slots=True)
class RowNames:
    """Names by row and rows by name, of one epoch; within it they only grow.

    Attributes
    ----------
    domains
        Names of domains by row.
    paths
        Path of each domain, see ``node_order``.
    """

    _tasks: _Growing
    _podgroups: _Growing
    _nodes: _Reorderable
    _queues: _Growing
    domains: Sequence[str]
    paths: tuple[Path, ...]

    @classmethod
    def of(cls, names: Names) -> RowNames:
        """Names as they were compiled."""
        return cls(
            _Growing.of(names.tasks),
            _Growing.of(names.podgroups),
            _Reorderable.of(names.nodes),
            _Growing.of(names.queues),
            names.domains,
            names.paths,
        )

    @property
    def tasks(self) -> list[str]:
        """Names of tasks by row."""
        return self._tasks.names

    @property
    def podgroups(self) -> list[str]:
        """Names of podgroups by row."""
        return self._podgroups.names

    @property
    def nodes(self) -> list[str]:
        """Names of nodes by row."""
        return self._nodes.names

    @property
    def queues(self) -> list[str]:
        """Names of queues by row."""
        return self._queues.names

    def row(self, section: RowKind, name: str) -> int:
        """The row of a name; NONE for one that is not known."""
        if section == "tasks":
            return self._tasks.row_of.get(name, NONE)
        if section == "nodes":
            return self._nodes.row(name)
        return (self._podgroups if section == "podgroups" else self._queues).row_of.get(name, NONE)

    def append(self, podgroups: Iterable[str], tasks: Iterable[str]) -> None:
        """Name the rows that were appended."""
        self._podgroups.append(podgroups)
        self._tasks.append(tasks)

    def copied(self) -> RowNames:
        """A copy to which rows can be appended independently."""
        return replace(self, _tasks=self._tasks.copied(), _podgroups=self._podgroups.copied())

    # -- other numberings, which share what is numbered as before ----------------------------------------------

    def node_order(self, topology: Topology) -> TopologyOrder:
        """Nodes and domains as they stand."""
        return TopologyOrder(tuple(self.nodes), topology, tuple(self.domains), self.paths)

    def with_nodes_reordered(self, made: Reordered) -> RowNames:
        """The names once nodes came, moved or went."""
        return replace(self, _nodes=self._nodes.reordered(made), domains=made.order.domains, paths=made.order.paths)

    def with_nodes(self, names: Names) -> RowNames:
        """The names with all nodes and domains numbered anew."""
        return replace(self, _nodes=_Reorderable.of(names.nodes), domains=names.domains, paths=names.paths)

    def with_queues(self, queues: Sequence[str]) -> RowNames:
        """The names with all queues numbered anew."""
        return replace(self, _queues=_Growing.of(queues))

    # -- checkpoints -------------------------------------------------------------------------------------------

    def packable(self) -> list[Any]:
        """As plain data."""
        return [self.tasks, self.podgroups, self.nodes, self.queues, list(self.domains), list(self.paths)]

    @classmethod
    def of_packable(cls, plain: list[Any]) -> RowNames:
        """The names that ``packable`` has given."""
        tasks, podgroups, nodes, queues, domains, paths = plain
        known = tuple(tuple((name, level) for name, level in path) for path in paths)
        return cls.of(Names(nodes, queues, tuple(domains), podgroups, tasks, known))
