"""What is gathered: tasks that some node takes; where room is made, as many tasks as domains take at a time."""

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs
from pipeline.cluster.resources import fits
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT
from pipeline.placement.need import Need, need_of, need_of_all, without_shapes
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
    return least if many == least.minimum else need_of_all(need_of(snapshot, podgroups, among=every[:many]))


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
