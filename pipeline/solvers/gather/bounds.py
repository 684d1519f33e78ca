"""The domains in which podgroups must or should be gathered: the layers that they name, tried one after the other."""

from collections.abc import Iterator, Sequence

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.domains import held_nodes, required_domains


def gathers(snapshot: Snapshot, podgroups: Sequence[int]) -> bool:
    """Whether any of the podgroups states how close together, or near which tasks, it must or should be."""
    groups, rows = snapshot.podgroups, list(podgroups)
    said = (groups.required_level[rows], groups.preferred_level[rows], groups.gather[rows])
    return any(bool((one != NONE).any()) for one in said)


def layers(snapshot: Snapshot, podgroups: Sequence[int]) -> Iterator[Rows]:
    """Domains (int64[D]) by layer: each layer that any of them prefers, the narrowest first, then what is required."""
    groups, rows, topology = snapshot.podgroups, list(podgroups), snapshot.topology
    required, outer = int(groups.required_level[rows].max()), required_domains(snapshot, podgroups)
    held = held_nodes(snapshot, podgroups)
    wanted = {level for row in rows for level in _preferred(snapshot, row) if level > required}
    for level in sorted(wanted, reverse=True):
        domains = topology.holding(topology.at_level(level), held)
        inside = (topology.start[domains][:, None] >= topology.start[outer]) & (
            topology.stop[domains][:, None] <= topology.stop[outer]
        )
        yield domains[inside.any(axis=1)]
    yield outer


def _preferred(snapshot: Snapshot, podgroup: int) -> list[int]:
    """The levels that a podgroup prefers: those that it lists, else the narrowest and all above it."""
    gather, names = int(snapshot.podgroups.gather[podgroup]), snapshot.vocabulary.levels
    listed = snapshot.vocabulary.gathers[gather].layers if gather != NONE else ()
    if listed:
        return [names.index(name) for name in listed if name in names]
    return list(range(int(snapshot.podgroups.preferred_level[podgroup]) + 1))
