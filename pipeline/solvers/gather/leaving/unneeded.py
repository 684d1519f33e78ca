"""Victims that may stay beside a gang once it has its nodes."""

import numpy as np

from pipeline.cluster.arrays import Bools, Rows, is_among
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.filters import repelled
from pipeline.solvers.gather.gathering import Gathered
from pipeline.solvers.gather.leaving.search import GatherSearch


def unneeded(search: GatherSearch, victims: Rows, placed: Gathered) -> Bools:
    """bool[V]: which victims fit beside the gang, one after the other, while the others free the quota that it lacks.

    What holds a card on a node of the gang is not asked.
    """
    snapshot, lacks = search.snapshot, search.short > 0
    here, held = snapshot.tasks.node[victims].astype(np.int64), snapshot.request_of(victims)
    nodes, at = unique_inverse(here)
    left, mine = snapshot.room.future[nodes], is_among(placed.node, nodes)
    np.add.at(left, at, held)
    np.subtract.at(left, np.searchsorted(nodes, placed.node[mine]), snapshot.request_of(placed.tasks[mine]))
    frees = held * search.frees[snapshot.queue_of(victims)][:, None]
    freed, stays = frees.sum(axis=0), np.zeros(len(victims), bool)
    cards = (snapshot.shapes.on_card[snapshot.tasks.shape[victims]] > 0) & is_among(here, placed.node)
    fits = ((held <= left[at]) | (held == 0)).all(axis=1)
    for one in np.flatnonzero(fits & ~cards & _tolerated(snapshot, victims, placed)).tolist():
        left_then, freed_then = left[at[one]] - held[one], freed - frees[one]
        if ((left_then >= 0) | (held[one] == 0)).all() and (freed_then >= search.short)[lacks].all():
            left[at[one]], freed, stays[one] = left_then, freed_then, True
    return stays


def _tolerated(snapshot: Snapshot, victims: Rows, placed: Gathered) -> Bools:
    """bool[V]: which victims anti-affinity lets stay beside the gang, each where it runs."""
    both = np.concatenate([victims, placed.tasks])
    nodes = np.concatenate([snapshot.tasks.node[victims].astype(np.int64), placed.node])
    return ~repelled(snapshot, both, nodes, both)[: len(victims)]
