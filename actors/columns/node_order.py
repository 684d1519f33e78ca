"""Nodes in the order of their topology, so that every domain is one slice of rows."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from actors.cluster_file.documents import NodeDocument, TopologyDocument
from actors.documents.alike import Alike
from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows, frozen
from pipeline.cluster.topology import ROOT, Topology

#: A domain as pairs (name, level) of the domains around it and itself, the widest first; empty for the cluster. If
#: labels name the domains, names are label values, and racks with equal names in two blocks have two paths. Nodes
#: sorted by (path, name) are numbered depth-first: nodes directly in a domain come before those of its children.
Path = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class TopologyOrder:
    """The numbering of nodes and domains.

    Attributes
    ----------
    nodes
        Names by row.
    domains
        Names by row; that of the cluster is empty. A label value that names several domains is written with its path.
    paths
        Path of each domain.
    """

    nodes: tuple[str, ...]
    topology: Topology
    domains: tuple[str, ...]
    paths: tuple[Path, ...]


class Homes:
    """The narrowest domain of each node.

    If labels name the domains, a domain is a path of label values from the widest level down. A node without the label
    of a level is in no domain of that level.
    """

    def __init__(self, document: TopologyDocument | None) -> None:
        self.levels = document.levels if document is not None else ()
        self.by_label = document is not None and document.labels is not None
        labels = document.labels if document is not None and document.labels is not None else {}
        self._keys = [(labels[level], row) for row, level in enumerate(self.levels)] if self.by_label else []
        self.written_out: dict[str, Path] = {}
        self._path_of_node: dict[str, Path] = {}
        if document is not None and document.domains is not None:
            self._read(document)

    def _read(self, document: TopologyDocument) -> None:
        domains = document.domains or ()
        # Parents have wider levels, so this order goes from parents to children.
        for one in sorted(domains, key=lambda domain: self.levels.index(domain.level)):
            above = self.written_out[one.parent] if one.parent is not None else ()
            self.written_out[one.name] = (*above, (one.name, self.levels.index(one.level)))
        for one in domains:
            self._path_of_node.update(dict.fromkeys(one.nodes, self.written_out[one.name]))

    def path(self, node: NodeDocument) -> Path:
        """The path of the narrowest domain that a node is in."""
        return self._by_labels(node.labels) if self.by_label else self._path_of_node.get(node.name, ())

    def paths(self, nodes: Alike[NodeDocument]) -> list[Path]:
        """The path of the narrowest domain that each node is in."""
        if self.by_label:
            each = [self._by_labels(kind.labels) for kind in nodes.kinds]
            return [each[kind] for kind in nodes.kind]
        return [self._path_of_node.get(name, ()) for name in nodes.column("name")]

    def _by_labels(self, labels: Mapping[str, str]) -> Path:
        return tuple((labels[key], level) for key, level in self._keys if key in labels)


def order_nodes(nodes: Alike[NodeDocument], homes: Homes) -> tuple[TopologyOrder, list[int]]:
    """Number the nodes: also returns, by row, the position of each in ``nodes``.

    Nodes go depth-first by topology, then by name; siblings by name; nodes outside any domain first. The given order of
    nodes and domains does not matter.
    """
    inside: dict[Path, list[int]] = {path: [] for path in homes.written_out.values()}
    for at, home in enumerate(homes.paths(nodes)):
        inside.setdefault(home, []).append(at)
    every = {path[:depth] for path in inside for depth in range(len(path) + 1)} | {()}
    ordered: list[int] = []
    start: dict[Path, int] = {}
    stop: dict[Path, int] = {}
    called = nodes.column("name")
    for path in sorted(every):
        start[path] = len(ordered)
        ordered.extend(sorted(inside.get(path, ()), key=called.__getitem__))
        for depth in range(len(path) + 1):
            stop[path[:depth]] = len(ordered)
    names = tuple([called[at] for at in ordered])
    table = _Domains(list(every), [start[path] for path in every], [stop[path] for path in every])
    return table.numbered(names, homes), ordered


@dataclass(slots=True)
class _Domains:
    """Domains in any order, and the slice of nodes of each."""

    paths: list[Path]
    start: list[int] | Longs
    stop: list[int] | Longs

    def numbered(self, nodes: tuple[str, ...], homes: Homes) -> TopologyOrder:
        """Number the domains: by level, so that parents come first, then by their nodes; empty ones last, by name."""
        level = [path[-1][1] if path else NONE for path in self.paths]
        start, stop, called = np.asarray(self.start), np.asarray(self.stop), self._names(homes)
        empty = start == stop
        order = sorted(range(len(level)), key=lambda at: (level[at], bool(empty[at]), int(start[at]), called[at]))
        row = {self.paths[at]: position for position, at in enumerate(order)}
        paths = [self.paths[at] for at in order]
        topology = Topology(
            len(homes.levels),
            frozen([level[at] for at in order], np.int32),
            frozen([row[path[:-1]] if path else NONE for path in paths], np.int32),
            frozen(start[order], np.int64),
            frozen(stop[order], np.int64),
        )
        return TopologyOrder(nodes, topology, tuple(called[at] for at in order), tuple(paths))

    def _names(self, homes: Homes) -> list[str]:
        """Names of the domains; a label value that names several domains is written with its path."""
        often = Counter(path[-1][0] for path in self.paths if path)
        return [
            (path[-1][0] if often[path[-1][0]] == 1 or not homes.by_label else _told(path)) if path else ""
            for path in self.paths
        ]


def _told(path: Path) -> str:
    values = {level: value for value, level in path}
    return "/".join(values.get(level, "") for level in range(path[-1][1] + 1))


# -- nodes that come and go --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reordered:
    """An order after some nodes joined, moved or left, and the new rows of the others.

    Attributes
    ----------
    order
        The new order.
    row_of: int32[N]
        The new row of each old row; NONE for a node that left. A node that moved has its new row.
    kept: bool[N]
        Old rows whose nodes neither moved nor left.
    kept_at: int64[K]
        New rows of those, ascending.
    placed: int64[P]
        New rows of the nodes that joined or moved, in the order in which they were given.
    """

    order: TopologyOrder
    row_of: Ids
    kept: Bools
    kept_at: Rows
    placed: Rows


class Reordering:
    """Puts nodes in and takes them out one by one; each costs some array arithmetic, and no loop over the others."""

    def __init__(self, order: TopologyOrder, homes: Homes) -> None:
        topology = order.topology
        self._homes, self._before = homes, order
        self._names = list(order.nodes)
        self._paths = list(order.paths)
        self._at = dict(zip(order.paths, range(len(order.paths)), strict=True))
        self._parent, self._start, self._stop = topology.parent.copy(), topology.start.copy(), topology.stop.copy()
        self._kept = np.ones(len(order.nodes), bool)
        self._regular = True

    def take_out(self, rows: Rows) -> None:
        """Take nodes out by their old rows; must be called once, before `put_in`."""
        if len(rows) == 0:
            return
        self._kept[rows] = False
        self._names = list(compress(self._names, self._kept.tolist()))
        before = np.append(0, np.cumsum(self._kept))
        self._start, self._stop = before[self._start], before[self._stop]
        self._regular &= bool((self._start[1:] < self._stop[1:]).all())

    def put_in(self, nodes: Sequence[NodeDocument]) -> Rows:
        """Put nodes in; returns their rows, in the same order."""
        rows = np.full(len(nodes), len(self._names) + len(nodes), np.int64)
        for at, node in enumerate(nodes):
            row = self._put_in(node)
            rows[:at] += rows[:at] >= row
            rows[at] = row
        return rows

    def _put_in(self, node: NodeDocument) -> int:
        path = self._homes.path(node)
        home = self._domain(path)
        first, last = int(self._start[home]), int(self._stop[home])
        children = self._start[(self._parent == home) & (self._start < self._stop)]
        row = bisect_left(self._names, node.name, first, int(children.min(initial=last)))
        self._names.insert(row, node.name)
        later, tied = self._start > row, np.flatnonzero(self._start == row)
        for at in tied.tolist():
            later[at] = self._paths[at] > path
        # A domain that gets its first node, or becomes empty, may change its row.
        self._regular &= first < last and bool((self._stop[tied] > row).all())
        self._start += later
        self._stop += later
        for depth in range(len(path) + 1):
            self._stop[self._at[path[:depth]]] += 1
        return row

    def _domain(self, path: Path) -> int:
        """Position of a domain; it is added if no node was in it."""
        if path in self._at:
            return self._at[path]
        above = self._domain(path[:-1])
        # Its nodes begin after those of all domains before it in the order of paths.
        before = [self._stop[at] for at in np.flatnonzero(self._parent == above).tolist() if self._paths[at] < path]
        children = self._start[(self._parent == above) & (self._start < self._stop)]
        begin = max(before, default=int(children.min(initial=self._stop[above])))
        self._at[path] = len(self._paths)
        self._paths.append(path)
        self._parent, self._start, self._stop = (
            np.append(column, value)
            for column, value in ((self._parent, above), (self._start, begin), (self._stop, begin))
        )
        self._regular = False
        return self._at[path]

    def done(self, placed: Rows, moved: Sequence[tuple[int, int]]) -> Reordered:
        """The new order.

        Parameters
        ----------
        placed
            The result of `put_in`.
        moved
            Old and new row of each node that was taken out and put in.
        """
        old, names = self._before, tuple(self._names)
        if self._regular:
            topology = Topology(
                old.topology.levels,
                old.topology.level,
                old.topology.parent,
                frozen(self._start, np.int64),
                frozen(self._stop, np.int64),
            )
            order = TopologyOrder(names, topology, old.domains, old.paths)
        else:
            order = self._renumbered(names)
        fresh = np.zeros(len(names), bool)
        fresh[placed] = True
        kept_at = np.flatnonzero(~fresh)
        row_of = np.full(len(old.nodes), NONE, np.int32)
        row_of[self._kept] = kept_at
        for was, now in moved:
            row_of[was] = now
        return Reordered(order, row_of, self._kept, kept_at, placed)

    def _renumbered(self, names: tuple[str, ...]) -> TopologyOrder:
        """Number all domains after some came or went. If labels name the domains, those without nodes are dropped."""
        there = list(range(len(self._paths)))
        if self._homes.by_label:
            there = [at for at in there if at == ROOT or self._start[at] < self._stop[at]]
        table = _Domains([self._paths[at] for at in there], self._start[there], self._stop[there])
        return table.numbered(names, self._homes)
