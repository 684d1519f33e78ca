"""Anti-affinity in one search: nodes denied by tasks that stay, nodes denied by candidates, and within the need."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Bools, Rows
from pipeline.cluster.rules.anti_affinity import concerns, denying, exclusions
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.need import Need


@dataclass(frozen=True)
class Repulsion:
    """Nodes that are closed to the tasks of a need.

    Attributes
    ----------
    denied: bool[S, N]
        Nodes denied to each shape of the need by tasks that are no candidates.
    contested: bool[N]
        Nodes denied to some task of the need by candidates: open once they leave.
    among
        Whether tasks of the need repel each other, or tasks of one shape are repelled by different ones.
    denies: bool[T]
        Candidates that deny nodes to some task of the need.
    """

    denied: Bools
    contested: Bools
    among: bool
    denies: Bools


def repulsion_of(snapshot: Snapshot, need: Need, candidate: Bools) -> Repulsion | None:
    """Anti-affinity for the minimum of a need; None if it does not concern it."""
    if not concerns(snapshot, need.tasks[: need.minimum]):
        return None
    pairs = np.stack([need.shape[: need.minimum], snapshot.tasks.label_set[need.tasks[: need.minimum]]], axis=1)
    kinds = np.unique(pairs, axis=0)
    shape, labels = kinds[:, 0], kinds[:, 1]
    constraint = snapshot.shapes.constraint[need.shapes[shape]]
    leaving: Rows = np.flatnonzero(candidate)
    stays = exclusions(snapshot, constraint, labels, leaving)
    now = exclusions(snapshot, constraint, labels, leaving[:0])
    denied = np.ones((len(need.shapes), len(snapshot.nodes)), bool)
    told_apart = False
    for s in range(len(need.shapes)):
        mine = stays.excluded[shape == s]
        denied[s] = mine.all(axis=0) if len(mine) else False
        told_apart |= bool((mine != mine[:1]).any())
    denies = np.zeros(len(candidate), bool)
    denies[denying(snapshot, constraint, labels)] = True
    denies &= candidate
    contested = (now.excluded & ~stays.excluded).any(axis=0)
    return Repulsion(denied, np.asarray(contested), told_apart or bool(stays.conflict.any()), denies)
