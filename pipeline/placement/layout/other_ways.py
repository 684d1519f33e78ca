"""Other tasks that make up a minimum, where tasks of several kinds wait and those that come first find no room."""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from pipeline.cluster.arrays import Longs, Rows, sums_of_slices
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.compositions import compositions, has_choice
from pipeline.placement.layout.packing import node_slots
from pipeline.placement.need import Need, need_of, need_of_all
from pipeline.plugins.host import Host


def other_ways(host: Host, snapshot: Snapshot, need: Need, outer: Rows, room: Callable[[], Longs]) -> Iterator[Need]:
    """Other tasks than those of ``need`` that make up the minimum, where tasks of several kinds wait.

    Parameters
    ----------
    outer: int64[D]
        Domains: of each kind no more tasks are taken than one of these has slots for.
    room
        What the nodes have for them, int64[N, R].
    """
    if need.minimum == 0 or not has_choice(snapshot, need):
        return
    every, topology = need_of_all(need_of(snapshot, need.podgroups)), snapshot.topology
    slots, _ = node_slots(every.request, every.count, host.allowed(every.shapes), 0, room())
    most = np.zeros(len(snapshot.shapes), np.int64)
    most[every.shapes] = sums_of_slices(slots.T, topology.start[outer], topology.stop[outer]).max(axis=0, initial=0)
    yield from ways_within(snapshot, need, most, surplus=len(need.tasks) > need.minimum)


def ways_within(snapshot: Snapshot, need: Need, most: Longs, *, surplus: bool) -> Iterator[Need]:
    """The ways to make up the minimum of a need with no more tasks of each shape than ``most`` int64[shapes]."""
    limited = need_of(snapshot, need.podgroups, surplus=surplus, most=most)
    if not limited.short:
        return compositions(snapshot, limited, most)
    # What comes first in order lacks a place; the minimum is made up of others.
    return islice(compositions(snapshot, need_of(snapshot, need.podgroups, surplus=False), most), 1, None)
