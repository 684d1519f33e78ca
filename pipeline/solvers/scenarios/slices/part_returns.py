"""Podgroups with surplus that lose only some of their tasks: how many return where slots are counted."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Ids, Longs, Rows
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.counted.minima import Have, Minima, count_tasks, reaches, writable
from pipeline.kernels import kernel, linked
from pipeline.placement.room.ground import Ground, copied_ground, leave, try_return
from pipeline.solvers.scenarios.slices.slots_kernels import here

#: The tasks of at most this many nodes are tried.
_NODES = 8


class Parts(NamedTuple):
    """Podgroups with surplus that would go whole, one after the other.

    Attributes
    ----------
    podgroup, spare: int64[P]
        How many tasks each can spare.
    start: int64[P + 1]
    rows: int64[K]
        The tasks of podgroup ``p`` are ``rows[start[p]:start[p + 1]]``, in the order in which they return.
    node: int64[K]
    share: float64[K]
        The largest part of the cluster that each task holds.
    """

    podgroup: Rows
    spare: Longs
    start: Longs
    rows: Rows
    node: Ids
    share: Floats


@kernel
def orders_of_return(node: Ids, share: Floats) -> Longs:
    """int64[O, K]: as they are; the biggest last; and so with the tasks of one node after all others, node by node."""
    by_share, nodes = np.argsort(share, kind="mergesort"), np.unique(node)[:_NODES]
    orders = np.empty((2 + len(nodes), len(node)), np.int64)
    orders[0], orders[1] = np.arange(len(node)), by_share
    for way in range(len(nodes)):
        last = node[by_share] == nodes[way]
        orders[2 + way] = np.concatenate((by_share[~last], by_share[last]))
    return orders


@kernel
def parts_gone(ground: Ground, leaving: Rows, parts: Plain, towards: tuple[Plain, Plain], owners: Plain) -> Bools:
    """bool[K]: which tasks of the parts must go, once ``leaving`` (int64[V]) have gone, so that the rest can return.

    All of a podgroup where no order of return leaves it its minimum. ``parts`` are ``Parts``; ``towards`` are those of
    `towards_all`; ``owners`` are the podgroup, role and subgroup of each task.
    """
    some, ground, (podgroup, role, subgroup) = Parts(*parts), copied_ground(ground), owners
    minima, have = Minima(*towards[0]), writable(Have(*towards[1]))
    leave(here(leaving, ground), ground)
    gone, before = np.ones(len(some.rows), np.bool_), np.empty((len(ground.wanted), 1), np.int64)
    for part in range(len(some.podgroup)):
        mine = slice(some.start[part], some.start[part + 1])
        rows = some.rows[mine]
        for order in orders_of_return(some.node[mine], some.share[mine]):
            back = _return_in(order, rows, before, ground)
            lost = rows[~back]
            count_tasks(-1, lost, have, podgroup, role, subgroup)
            kept = len(lost) <= some.spare[part] and reaches(minima, have, some.podgroup[part])
            count_tasks(1, lost, have, podgroup, role, subgroup)
            if kept:
                gone[mine] = ~back
                break
            leave(here(rows[back], ground), ground)
    return gone


@linked
def _return_in(order: Rows, rows: Rows, before: Longs, ground: Ground) -> Bools:
    """bool[K]: which tasks return, one after the other."""
    back = np.zeros(len(rows), np.bool_)
    for at in order:
        back[at] = try_return(here(rows[at : at + 1], ground), before, ground)
    return back
