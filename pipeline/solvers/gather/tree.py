"""Nodes and domains as one tree of vertices: domain ``d`` is vertex ``d``, node ``n`` is vertex ``D + n``.

The figures of a vertex are sums over its nodes. Domains are slices of nodes, so all are summed in one pass.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Ids, Longs, Rows, offsets, sealed
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT, Topology
from pipeline.kernels import kernel


@dataclass(frozen=True)
class Tree:
    """The tree of a snapshot's topology.

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

    def children(self, vertex: int) -> Rows:
        """int64[C]: the vertices below one."""
        return self.child[self.child_start[vertex] : self.child_start[vertex + 1]]

    def slice(self, vertex: int) -> tuple[int, int]:
        """The rows of the nodes of a vertex: the first, and the one after the last."""
        if vertex >= self.domains:
            return vertex - self.domains, vertex - self.domains + 1
        return int(self.topology.start[vertex]), int(self.topology.stop[vertex])

    def summed(self, per_node: Longs) -> Longs:
        """int64[V]: the sum over the nodes of each vertex."""
        upto = np.zeros(len(per_node) + 1, np.int64)
        np.cumsum(per_node, out=upto[1:])
        return np.concatenate([upto[self.topology.stop] - upto[self.topology.start], per_node])


def tree_of(snapshot: Snapshot) -> Tree:
    """The tree of a snapshot; ask for it with ``Snapshot.once``."""
    topology, nodes = snapshot.topology, len(snapshot.nodes)
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
