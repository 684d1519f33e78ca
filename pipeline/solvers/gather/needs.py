"""What is gathered: tasks that some node takes; where room is made, as many tasks as domains take at a time.

Where tasks of several kinds wait, others may make up the minimum than those that come first.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.resources import fits
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT
from pipeline.placement.compositions import compositions, has_choice
from pipeline.placement.layout.packing import node_slots
from pipeline.placement.need import Need, all_of, need_of, without_shapes
from pipeline.plugins.host import Host
from pipeline.solvers.gather.amounts import in_steps
from pipeline.solvers.gather.multiples import steps_of
from pipeline.solvers.gather.tree import tree_of


def within_reach(host: Host, snapshot: Snapshot, podgroups: Sequence[int], *, surplus: bool) -> Need:
    """What the podgroups need, made up of tasks that some node could take if it were empty.

    All tasks count where those are fewer than the minimum: then there is no place for it.
    """
    need, every = need_of(snapshot, podgroups, surplus=surplus), need_of(snapshot, podgroups)
    if len(every.shapes) <= 1:  # tasks of one shape leave no choice
        return need
    lost = every.shapes[~served(every, host.allowed(every.shapes), snapshot.nodes.allocatable)]
    if len(lost) == 0:
        return need
    limited = without_shapes(snapshot, every, lost, surplus=surplus)
    return need if limited.short else limited


def in_multiples(host: Host, snapshot: Snapshot, podgroups: Sequence[int]) -> Need:
    """The minimum within reach, and as many tasks more as make it a multiple where domains take multiples only."""
    least = within_reach(host, snapshot, podgroups, surplus=False)
    steps = steps_of(snapshot, podgroups, least.tasks)
    if steps is None or least.minimum == 0:
        return least
    every = within_reach(host, snapshot, podgroups, surplus=True).tasks
    tree, room = snapshot.once(tree_of), np.full(len(snapshot.nodes), len(every), np.int64)
    numbers = in_steps(tree, steps, room, np.array([ROOT], np.int64), len(every))
    many = next((one for one in numbers if one >= least.minimum), least.minimum)
    return least if many == least.minimum else all_of(need_of(snapshot, podgroups, among=every[:many]))


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
    every, topology = all_of(need_of(snapshot, need.podgroups)), snapshot.topology
    slots, _ = node_slots(every.request, every.count, host.allowed(every.shapes), 0, room())
    upto = np.concatenate([np.zeros((len(slots), 1), np.int64), slots.cumsum(axis=1)], axis=1)
    most = np.zeros(len(snapshot.shapes), np.int64)
    most[every.shapes] = (upto[:, topology.stop[outer]] - upto[:, topology.start[outer]]).max(axis=1, initial=0)
    limited = need_of(snapshot, need.podgroups, surplus=len(need.tasks) > need.minimum, most=most)
    if limited.short:  # the first way lacks a place; the minimum is made up of others
        limited = need_of(snapshot, need.podgroups, surplus=False)
        yield from islice(compositions(snapshot, limited, most), 1, None)
    else:
        yield from compositions(snapshot, limited, most)


def of_each_subgroup(snapshot: Snapshot, need: Need) -> Iterator[Need]:
    """The need for the tasks of one subgroup after the other, where it has others too; none belongs to the minimum."""
    for part, row in enumerate(need.parts):
        mine = need.tasks[need.part == part]
        if row.subgroup != NONE and 0 < len(mine) < len(need.tasks):
            yield need_of(snapshot, need.podgroups, among=mine)


def served(need: Need, allowed: Bools, room: Longs) -> Bools:
    """bool[S]: shapes of the need that some node takes.

    Parameters
    ----------
    allowed: bool[S, N]
        Nodes that each shape may use.
    room: int64[N, R]
    """
    return np.array([(fits(request, room) & may).any() for request, may in zip(need.request, allowed, strict=True)])
