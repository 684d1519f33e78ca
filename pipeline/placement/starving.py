"""The order in which podgroups are served, and which of them start together."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools
from pipeline.cluster.snapshot import Snapshot
from pipeline.plugins.host import Host


def in_order(host: Host, wanted: Bools) -> list[tuple[int, ...]]:
    """The ``wanted`` podgroups (bool[G]) as units that start together, in order of queue, then of podgroup.

    A gang group stands at the place of its first member and is complete: members that are not wanted come along.
    """
    groups = host.context.snapshot.podgroups
    rows = np.flatnonzero(wanted)
    rows = rows[np.lexsort((host.job_rank[rows], host.queue_rank[groups.queue[rows]]))]
    units: list[tuple[int, ...]] = []
    seen: set[int] = set()
    for row in rows.tolist():
        unit = together(host.context.snapshot, row)
        if unit[0] not in seen:
            seen.update(unit)
            units.append(unit)
    return units


def together(snapshot: Snapshot, podgroup: int) -> tuple[int, ...]:
    """The podgroups that start together with this one, itself included, by age and name: the first speaks for all."""
    number = snapshot.podgroups.gang_group[podgroup]
    if number == NONE:
        return (podgroup,)
    same = (snapshot.podgroups.gang_group == number) & snapshot.podgroups.alive
    rows = np.flatnonzero(same)
    return tuple(rows[np.argsort(snapshot.podgroups.order[rows])].tolist())
