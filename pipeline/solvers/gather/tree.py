"""Nodes and domains as one tree of vertices: domain ``d`` is vertex ``d``, node ``n`` is vertex ``D + n``.

The figures of a vertex are sums over its nodes. Domains are slices of nodes, so all are summed in one pass.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Ids, Longs, Rows, offsets, sealed
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT, Topology
from pipeline.keeping import cached_property
from pipeline.kernels import kernel


class Vertices(NamedTuple):
    """A tree for kernels; ``first``, ``last`` int64[V] are the nodes of each vertex, the others are those of `Tree`."""

    domains: int
    parent: Ids
    tier: Ids
    first: Longs
    last: Longs
    child_start: Longs
    child: Rows


@dataclass(frozen=True)
class Tree:
    """The tree of a topology.

    Attributes
    ----------
    topology
        Its domains; the root is the cluster.
    parent: int32[V]
        The vertex above; the root's is the root itself.
    tier: int32[V]
        Height: 0 for a node.
    child_start: int64[V + 1], child: int64[V - 1]
        The vertices below each one, in row order.
    """

    topology: Topology
    parent: Ids
    tier: Ids
    child_start: Longs
    child: Rows

    @property
    def domains(self) -> int:
        """How many of the vertices are domains."""
        return len(self.topology)

    @cached_property
    def vertices(self) -> Vertices:
        """The same for kernels."""
        nodes = np.arange(len(self.parent) - self.domains)
        first = sealed(np.concatenate([self.topology.start, nodes]))
        last = sealed(np.concatenate([self.topology.stop, nodes + 1]))
        return Vertices(self.domains, self.parent, self.tier, first, last, self.child_start, self.child)

    def slice(self, vertex: int) -> tuple[int, int]:
        """The rows of the nodes of a vertex: the first, and the one after the last."""
        if vertex >= self.domains:
            return vertex - self.domains, vertex - self.domains + 1
        return self.topology.slice_of(vertex)

    def summed(self, per_node: Longs) -> Longs:
        """int64[V]: the sum over the nodes of each vertex."""
        upto = np.zeros(len(per_node) + 1, np.int64)
        np.cumsum(per_node, out=upto[1:])
        return np.concatenate([upto[self.topology.stop] - upto[self.topology.start], per_node])


def tree_of(snapshot: Snapshot) -> Tree:
    """The tree of a snapshot; ask for it with ``Snapshot.once``."""
    return tree_over(snapshot.topology, len(snapshot.nodes))


def below(tree: Tree, domain: int) -> Tree:
    """The tree of one domain, without domains that have no nodes; its nodes are numbered from its first."""
    topology = tree.topology
    start, stop = topology.start[domain], topology.stop[domain]
    inside = (topology.start >= start) & (topology.stop <= stop) & (topology.start < topology.stop)
    inside &= topology.tier < topology.tier[domain]
    rows = np.append(domain, np.flatnonzero(inside))  # parents stay before their children
    number = np.full(len(topology), NONE, np.int32)
    number[rows] = np.arange(len(rows))
    parent = number[topology.parent[rows]]
    parent[0] = NONE
    part = Topology(
        topology.levels, sealed(topology.level[rows]), sealed(parent),
        sealed(topology.start[rows] - start), sealed(topology.stop[rows] - start),
    )  # fmt: skip
    return tree_over(part, int(stop - start))


def tree_over(topology: Topology, nodes: int) -> Tree:
    """The tree of a topology over ``nodes`` nodes."""
    holder = _holders(topology.start, topology.stop, nodes)
    parent = np.concatenate([np.where(topology.parent == NONE, ROOT, topology.parent), holder]).astype(np.int32)
    tier = np.concatenate([topology.tier, np.zeros(nodes, np.int32)]).astype(np.int32)
    below = np.arange(1, len(parent))  # every vertex but the root
    child = below[np.argsort(parent[1:], kind="stable")]
    return Tree(topology, sealed(parent), sealed(tier), offsets(parent[child], len(parent)), sealed(child))


@kernel
def _holders(start: Longs, stop: Longs, nodes: int) -> Ids:
    """int32[N]: the narrowest domain that holds each node; domains come with their parents before them."""
    holder = np.zeros(nodes, np.int32)
    for domain in range(len(start)):
        for node in range(start[domain], stop[domain]):
            holder[node] = domain
    return holder
