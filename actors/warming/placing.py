"""A search for places on its own, so that the kernels are compiled that few decisions reach."""

import numpy as np

from actors.fleets.generated import GangSpec, generate
from actors.fleets.mixed import with_shapes, with_subgroups
from pipeline.cluster.arrays import NO_ROWS
from pipeline.placement.layout.regions_of_parts import asked_of_regions
from pipeline.placement.layout.topology_packing import Packing, pack
from pipeline.placement.need import need_of

#: So few that a gang that finds no place is tried task by task.
_NODES, _TASKS = 16, 8


def refuse_regions() -> None:
    """Look for places for a small gang of subgroups in regions that have no room."""
    fleet = with_subgroups(with_shapes(generate(_NODES, GangSpec(_TASKS)), gang=True), gang=True)
    need, snapshot = need_of(fleet.snapshot, (fleet.gang,)), fleet.snapshot
    room, asked = np.zeros((_NODES, need.request.shape[1]), np.int64), asked_of_regions(need, need.request, snapshot)
    Packing(need, np.ones((len(need.shapes), _NODES), bool), 0, _NODES, snapshot, asked=asked).may_fit(room)


def place_task_by_task() -> None:
    """Look for places for a small gang of several shapes where there is no room: in groups, and then task by task."""
    fleet = with_shapes(generate(_NODES, GangSpec(_TASKS)), gang=True)
    need = need_of(fleet.snapshot, (fleet.gang,))
    room = np.zeros((_NODES, need.request.shape[1]), np.int64)
    pack(need, np.ones((len(need.shapes), _NODES), bool), room, 0, _NODES, fleet.snapshot, NO_ROWS)
