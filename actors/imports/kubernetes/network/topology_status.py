"""``status.detailStatus`` of a ClusterNetworkTopology, from its layers and the labels of the nodes.

Source: "Job Scheduling & Network-Topology Aware", section "Cluster Network Topology". A domain is identified by the
path of names from the widest layer down, so equal names under two parents are two domains. A node without the label of
the layer right above it is a domain of its own in that layer. A node without the label of a wider layer is in no domain
and is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from actors.imports.kubernetes.network.topology import CLUSTER_LAYER, NODE_LAYER, first_of

Layers = Sequence[tuple[str, tuple[str, ...]]]
Path = tuple[str, ...]


def detail_status(layers: Layers, nodes: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """One entry for each domain above the nodes: depth first, siblings by name.

    Parameters
    ----------
    layers
        Widest first: the name, and labels; the first label that a node bears names its domain.
    nodes
        Labels by node.
    """
    count: dict[Path, int] = {(): 0}
    for name in sorted(nodes):
        path = _path(name, nodes[name], layers)
        if path is not None:
            for depth in range(len(path) + 1):
                count[path[:depth]] = count.get(path[:depth], 0) + 1
    children: dict[Path, list[str]] = {}
    for path in sorted(count):
        if path:
            children.setdefault(path[:-1], []).append(path[-1])
    return [_entry(path, count[path], children.get(path, []), layers) for path in sorted(count)]


def _path(name: str, labels: Mapping[str, str], layers: Layers) -> Path | None:
    path = [first_of(labels, keys) for _, keys in layers]
    if path and not path[-1]:
        path[-1] = name
    return tuple(path) if all(path) else None


def _entry(path: Path, nodes: int, children: Sequence[str], layers: Layers) -> dict[str, Any]:
    names = [CLUSTER_LAYER, *(layer for layer, _ in layers), NODE_LAYER]
    entry: dict[str, Any] = {"childTopologyLayer": names[len(path) + 1]}
    if children:
        entry["childTopologyNames"] = list(children)
    entry["nodeNum"] = nodes
    if path:
        entry["parentTopologyInfo"] = _info(path[:-1], names)
    entry["topologyInfo"] = _info(path, names)
    return entry


def _info(path: Path, names: Sequence[str]) -> dict[str, str]:
    return {"topologyLayer": names[len(path)], "topologyName": path[-1] if path else ""}
