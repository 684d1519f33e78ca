"""The domains in which podgroups must or should be gathered: the layers that they name, tried one after the other."""

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT
from pipeline.placement.layout.parts import holds, place_of


def gathers(snapshot: Snapshot, podgroups: Sequence[int]) -> bool:
    """Whether any of the podgroups states how close together it must or should be."""
    groups, rows = snapshot.podgroups, list(podgroups)
    return bool((groups.required_level[rows] != NONE).any() or (groups.preferred_level[rows] != NONE).any())


def must(snapshot: Snapshot, podgroups: Sequence[int]) -> Rows:
    """int64[D]: all of them must lie in one of these domains, those of the deepest layer that any of them requires.

    If some of their tasks run or are promised nodes already, only domains that hold those.
    """
    level = int(snapshot.podgroups.required_level[list(podgroups)].max())
    if level == NONE:
        return np.array([ROOT], np.int64)
    domains = snapshot.topology.at_level(level)
    return domains[holds(snapshot.topology, domains, _held(snapshot, podgroups))]


def layers(snapshot: Snapshot, podgroups: Sequence[int]) -> Iterator[Rows]:
    """Domains by layer: those of the narrowest layer that is preferred, then of each wider one, then ``must``."""
    groups, rows, topology = snapshot.podgroups, list(podgroups), snapshot.topology
    required, outer = int(groups.required_level[rows].max()), must(snapshot, podgroups)
    held = _held(snapshot, podgroups)
    for level in range(int(groups.preferred_level[rows].max()), required, -1):
        domains = topology.at_level(level)
        domains = domains[holds(topology, domains, held)]
        inside = (topology.start[domains][:, None] >= topology.start[outer]) & (
            topology.stop[domains][:, None] <= topology.stop[outer]
        )
        yield domains[inside.any(axis=1)]
    yield outer


def _held(snapshot: Snapshot, podgroups: Sequence[int]) -> Rows:
    """Nodes that tasks of the podgroups hold or are promised."""
    nodes = np.concatenate([place_of(snapshot, snapshot.tasks_of(podgroup)) for podgroup in podgroups])
    return np.asarray(nodes[nodes != NONE], np.int64)
