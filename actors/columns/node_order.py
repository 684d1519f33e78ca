"""Nodes in the order of their topology, so that every domain is one slice of rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from actors.cluster_file.documents import NodeDocument, TopologyDocument
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.topology import Topology

_CLUSTER: tuple[()] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Nodes and domains numbered.

    Attributes
    ----------
    nodes
        In row order.
    domains
        Names by row; the cluster's is empty. A label value that names several domains is told with its path.
    """

    nodes: tuple[NodeDocument, ...]
    topology: Topology
    domains: tuple[str, ...]


@dataclass(slots=True)
class _Domain:
    """A domain while its place is sought: ``key`` is unlike any other's."""

    key: Hashable
    name: str
    level: int
    parent: Hashable = _CLUSTER
    nodes: list[NodeDocument] = field(default_factory=list)
    start: int = 0
    stop: int = 0


def lay_out(nodes: Sequence[NodeDocument], topology: TopologyDocument | None) -> Layout:
    """Number the nodes depth-first by topology, then by name; siblings by name; those outside any domain first.

    By labels, a domain is a path of label values from the widest level down: equal racks of two blocks are two. A node
    that lacks a level's label is in no domain of that level. The order in which nodes and domains were given is of no
    consequence.
    """
    levels = topology.levels if topology is not None else ()
    domains = _domains(nodes, topology)
    children: dict[Hashable, list[_Domain]] = defaultdict(list)
    for domain in sorted(domains.values(), key=lambda domain: domain.name):
        if domain.key != _CLUSTER:
            children[domain.parent].append(domain)
    ordered: list[NodeDocument] = []

    def visit(domain: _Domain) -> None:
        domain.start = len(ordered)
        ordered.extend(sorted(domain.nodes, key=lambda node: node.name))
        for child in children[domain.key]:
            visit(child)
        domain.stop = len(ordered)

    visit(domains[_CLUSTER])
    # By level, so that parents come first; empty domains last.
    table = sorted(domains.values(), key=lambda d: (d.level, d.start == d.stop, d.start, d.name))
    row = {domain.key: at for at, domain in enumerate(table)}
    return Layout(
        tuple(ordered),
        Topology(
            len(levels),
            frozen([domain.level for domain in table], np.int32),
            frozen([NONE if domain.key == _CLUSTER else row[domain.parent] for domain in table], np.int32),
            frozen([domain.start for domain in table], np.int64),
            frozen([domain.stop for domain in table], np.int64),
        ),
        tuple(domain.name for domain in table),
    )


def _domains(nodes: Sequence[NodeDocument], topology: TopologyDocument | None) -> Mapping[Hashable, _Domain]:
    cluster = _Domain(_CLUSTER, "", NONE)
    if topology is None:
        cluster.nodes.extend(nodes)
        return {_CLUSTER: cluster}
    if topology.labels is not None:
        return _by_label(nodes, [topology.labels[level] for level in topology.levels], cluster)
    return _written_out(nodes, topology, cluster)


def _by_label(nodes: Sequence[NodeDocument], keys: Sequence[str], cluster: _Domain) -> Mapping[Hashable, _Domain]:
    domains: dict[Hashable, _Domain] = {_CLUSTER: cluster}
    for node in nodes:
        inner = cluster
        path: tuple[str | None, ...] = _CLUSTER
        for level, key in enumerate(keys):
            value = node.labels.get(key)
            path = (*path, value)
            if value is not None:
                inner = domains.setdefault(path, _Domain(path, value, level, inner.key))
        inner.nodes.append(node)
    often = Counter(domain.name for domain in domains.values())
    for domain in domains.values():
        if often[domain.name] > 1 and isinstance(domain.key, tuple):
            domain.name = "/".join(value or "" for value in domain.key)
    return domains


def _written_out(
    nodes: Sequence[NodeDocument], topology: TopologyDocument, cluster: _Domain
) -> Mapping[Hashable, _Domain]:
    domains: dict[Hashable, _Domain] = {_CLUSTER: cluster}
    home: dict[str, _Domain] = {}
    for document in topology.domains or ():
        parent = _CLUSTER if document.parent is None else document.parent
        domain = _Domain(document.name, document.name, topology.levels.index(document.level), parent)
        domains[document.name] = domain
        home.update(dict.fromkeys(document.nodes, domain))
    for node in nodes:
        home.get(node.name, cluster).nodes.append(node)
    return domains
