"""Where victims go: they stay on their nodes if room is left, else move to other nodes, else lose their place."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.rules.anti_affinity import concerned
from pipeline.cluster.rules.minimum import breaks_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import kernel
from pipeline.placement.need import Need
from pipeline.plugins.host import Host


@dataclass(frozen=True)
class Settled:
    """The victims' places once the preemptor has its own.

    Attributes
    ----------
    moved, node: int64[M]
        Tasks that start again elsewhere, and their new nodes.
    lost: int64[L]
        Tasks without a place.
    """

    moved: Rows
    node: Rows
    lost: Rows

    @property
    def evicted(self) -> Rows:
        """int64[V]: all victims that do not stay."""
        return np.sort(np.concatenate([self.moved, self.lost]))


def settled(host: Host, need: Need, places: Rows, victims: Rows, *, biggest_first: bool) -> Settled:
    """Place the victims again beside the preemptor, whose tasks take ``places`` (int64[K]).

    A victim that fits where it is stays. The others go to the fullest node that takes them, the highest priority first,
    or the biggest first if all must be placed. A podgroup keeps its minima by staying and moving, or is lost as a
    whole.
    """
    snapshot = host.context.snapshot
    tasks, request = snapshot.tasks, snapshot.shapes.request
    rank = host.job_rank[tasks.podgroup[victims]]
    held = request[tasks.shape[victims]]
    share = -(held / np.maximum(snapshot.capacity, 1)).max(axis=1, initial=0.0) if biggest_first else rank
    order = np.lexsort((host.task_rank[victims], rank, share))
    rows = victims[order]
    left = snapshot.room.future.copy()
    np.add.at(left, tasks.node[rows], held[order])
    np.subtract.at(left, places, request[tasks.shape[need.tasks[: need.minimum]]])
    shapes, kind = np.unique(tasks.shape[rows], return_inverse=True)
    nodes = _laid_out(
        tasks.node[rows].astype(np.int64), kind.astype(np.int64), np.ascontiguousarray(request[shapes]),
        host.allowed(shapes.astype(np.int64)), _may_move(snapshot, rows), snapshot.shapes.on_card[shapes] == 0, left,
    )  # fmt: skip
    owner = tasks.podgroup[rows]
    torn = np.intersect1d(owner[nodes == NONE], owner[nodes != NONE])
    broken = torn[breaks_without(snapshot, torn, rows[(nodes == NONE) & np.isin(owner, torn)])]
    nodes[np.isin(owner, broken)] = NONE
    moved, lost = (nodes != NONE) & (nodes != tasks.node[rows]), nodes == NONE
    return Settled(rows[moved], nodes[moved], rows[lost])


def _may_move(snapshot: Snapshot, rows: Rows) -> Bools:
    """bool[V]: tasks that can start again elsewhere and that only resources and nodes constrain."""
    tasks, groups = snapshot.tasks, snapshot.podgroups
    free = ~tasks.gone_when_evicted[rows] & (groups.required_level[tasks.podgroup[rows]] == NONE)
    inner = np.zeros(len(groups), bool)
    inner[snapshot.subgroups.podgroup[snapshot.subgroups.required_level != NONE]] = True
    free &= ~inner[tasks.podgroup[rows]]
    free &= ~concerned(snapshot, snapshot.shapes.constraint[tasks.shape[rows]], tasks.label_set[rows])
    return np.asarray(free)


@kernel
def _laid_out(
    node: Rows, kind: Rows, request: Longs, allowed: Bools, movable: Bools, cardless: Bools, left: Longs
) -> Rows:
    """int64[V]: the node of each task, its own if it stays, NONE for none. ``left`` is reduced."""
    result = np.full(len(node), NONE, np.int64)
    for task in range(len(node)):
        if cardless[kind[task]] and _fits(request[kind[task]], left[node[task]]):
            result[task] = node[task]
            left[node[task]] -= request[kind[task]]
    for task in range(len(node)):
        if result[task] == NONE and movable[task] and cardless[kind[task]]:
            asks, best, fullest = request[kind[task]], NONE, np.inf
            for n in range(len(left)):
                if allowed[kind[task], n] and _fits(asks, left[n]):
                    share = np.inf
                    for r in range(len(asks)):
                        if asks[r] > 0:
                            share = min(share, left[n, r] / asks[r])
                    if share < fullest:
                        best, fullest = n, share
            if best != NONE:
                result[task] = best
                left[best] -= asks
    return result


@kernel
def _fits(asks: Longs, there: Longs) -> bool:
    enough = True
    for r in range(len(asks)):
        enough &= asks[r] <= there[r] or asks[r] <= 0
    return enough
