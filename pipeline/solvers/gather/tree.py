"""Nodes and domains as one tree of vertices: domain ``d`` is vertex ``d``, node ``n`` is vertex ``D + n``.

The figures of a vertex are sums over its nodes. Domains are slices of nodes, so all are summed in one pass.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Ids, Longs, Rows, offsets, sealed, sums_of_slices
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT
from pipeline.kernels import kernel


class Tree(NamedTuple):
    """The tree of a topology.

    Attributes
    ----------
    domains
        How many of the vertices are domains.
    parent: int32[V]
        The vertex above; the root's is the root itself.
    tier: int32[V]
        Height: 0 for a node.
    first, last: int64[V]
        The nodes of each vertex are rows ``first:last``.
    child_start: int64[V + 1], child: int64[V - 1]
        The vertices below each one, in row order.
    """

    domains: int
    parent: Ids
    tier: Ids
    first: Longs
    last: Longs
    child_start: Longs
    child: Rows

    def slice(self, vertex: int) -> tuple[int, int]:
        """The rows of the nodes of a vertex: the first, and the one after the last."""
        return int(self.first[vertex]), int(self.last[vertex])

    def summed(self, per_node: Longs) -> Longs:
        """int64[V]: the sum over the nodes of each vertex."""
        return sums_of_slices(per_node, self.first, self.last)


def tree_of(snapshot: Snapshot) -> Tree:
    """The tree of a snapshot; ask for it with ``Snapshot.once``."""
    topology = snapshot.topology
    parent = np.where(topology.parent == NONE, ROOT, topology.parent)
    return tree_over(parent, topology.tier, topology.start, topology.stop, len(snapshot.nodes))


def below(tree: Tree, domain: int) -> Tree:
    """The tree of one domain, without domains that have no nodes; its nodes are numbered from its first."""
    start, stop = tree.slice(domain)
    first, last, tier = (column[: tree.domains] for column in (tree.first, tree.last, tree.tier))
    inside = (first >= start) & (last <= stop) & (first < last) & (tier < tier[domain])
    rows = np.append(domain, np.flatnonzero(inside))  # parents stay before their children
    number = np.full(tree.domains, ROOT, np.int32)
    number[rows] = np.arange(len(rows))
    parent = number[tree.parent[rows]]
    parent[0] = ROOT
    return tree_over(parent, tier[rows], first[rows] - start, last[rows] - start, stop - start)


def tree_over(parent: Ids, tier: Ids, start: Longs, stop: Longs, nodes: int) -> Tree:
    """The tree of domains with these columns over ``nodes`` nodes."""
    above = np.concatenate([parent, _holders(start, stop, nodes)]).astype(np.int32)
    heights = np.concatenate([tier, np.zeros(nodes, np.int32)]).astype(np.int32)
    first, last = np.concatenate([start, np.arange(nodes)]), np.concatenate([stop, np.arange(1, nodes + 1)])
    lower = np.arange(1, len(above))  # every vertex but the root
    child = lower[np.argsort(above[1:], kind="stable")]
    children = offsets(above[child], len(above))
    columns = sealed(above), sealed(heights), sealed(first), sealed(last)
    return Tree(len(parent), *columns, children, sealed(child))


@kernel
def _holders(start: Longs, stop: Longs, nodes: int) -> Ids:
    """int32[N]: the narrowest domain that holds each node; domains come with their parents before them."""
    holder = np.zeros(nodes, np.int32)
    for domain in range(len(start)):
        for node in range(start[domain], stop[domain]):
            holder[node] = domain
    return holder
