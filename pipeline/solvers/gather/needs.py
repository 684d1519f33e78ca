"""What is gathered: tasks that some node takes, and where room is made as many as domains take at a time."""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.arrays import Bools, Longs
from pipeline.cluster.resources import fits
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.need import Need, all_of, need_of
from pipeline.plugins.host import Host
from pipeline.solvers.gather.multiples import steps_of


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
    most = np.full(len(snapshot.shapes), len(every.tasks), np.int64)
    most[lost] = 0
    limited = need_of(snapshot, podgroups, surplus=surplus, most=most)
    return need if limited.short else limited


def in_multiples(host: Host, snapshot: Snapshot, podgroups: Sequence[int]) -> Need:
    """The minimum within reach, and as many tasks more as make it a multiple where domains take multiples only."""
    least, steps = within_reach(host, snapshot, podgroups, surplus=False), steps_of(snapshot, podgroups)
    if steps is None or least.minimum % steps.whole == 0:
        return least
    many = -(-least.minimum // steps.whole) * steps.whole
    every = within_reach(host, snapshot, podgroups, surplus=True).tasks
    return least if many > len(every) else all_of(need_of(snapshot, podgroups, among=every[:many]))


def served(need: Need, allowed: Bools, room: Longs) -> Bools:
    """bool[S]: shapes of the need that some node takes.

    Parameters
    ----------
    allowed: bool[S, N]
        Nodes that each shape may use.
    room: int64[N, R]
    """
    return np.array([(fits(request, room) & may).any() for request, may in zip(need.request, allowed, strict=True)])
