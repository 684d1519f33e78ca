"""Anti-affinity in one search: nodes denied by tasks that stay, nodes denied by candidates, and within the need."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Bools, Ids, Rows, distinct, paired, unpaired
from pipeline.cluster.rules.anti_affinity import (
    Exclusions,
    concerns,
    denying,
    exclusions,
    of_single_nodes,
    reaches_other_nodes,
    spares_other_nodes,
)
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.layout.parts_in_regions import apart_in_regions
from pipeline.placement.layout.region_slots import PartsInRegions
from pipeline.placement.need import Need
from pipeline.placement.room.room_columns import Closing


@dataclass(frozen=True)
class Repulsion:
    """Nodes that are closed to the tasks of a need.

    Attributes
    ----------
    denied: bool[S, N]
        Nodes denied to each shape of the need by tasks that are no candidates.
    closing
        Where tasks close only their own nodes: what can be counted as resources of these; then the rest says nothing.
    contested: bool[N]
        Nodes denied to some task of the need by candidates: open once they leave.
    among
        Whether tasks of the need repel each other, or tasks of one shape are repelled by different ones.
    denies: bool[T]
        Candidates that deny nodes to some task of the need.
    apart
        The tasks of the need as parts of one each, where they must not share a region.
    """

    denied: Bools
    closing: tuple[Closing, ...]
    contested: Bools
    among: bool
    denies: Bools
    apart: PartsInRegions | None = None

    @property
    def only_closes(self) -> bool:
        """Whether all that anti-affinity asks is counted as resources of single nodes."""
        return len(self.closing) > 0 and self.apart is None


def repulsion_of(snapshot: Snapshot, need: Need, candidate: Bools) -> Repulsion | None:
    """Anti-affinity for the minimum of a need; None if it does not concern it."""
    if not concerns(snapshot, need.tasks[: need.minimum]):
        return None
    kinds = distinct(paired(need.shape[: need.minimum], snapshot.tasks.label_set[need.tasks[: need.minimum]]))
    shape, label = (one.astype(np.int32) for one in unpaired(kinds))
    constraint = snapshot.shapes.constraint[need.shapes[shape]]
    leaving: Rows = np.flatnonzero(candidate)
    stays = exclusions(snapshot, constraint, label, leaving)
    denied, told_apart = np.ones((len(need.shapes), len(snapshot.nodes)), bool), False
    for s in range(len(need.shapes)):
        mine = stays.excluded[shape == s]
        denied[s] = mine.all(axis=0) if len(mine) else False
        told_apart |= bool((mine != mine[:1]).any())
    nothing = np.zeros(len(candidate), bool)
    if not told_apart and len(shape) == len(need.shapes) and spares_other_nodes(snapshot, constraint, label):
        closing = _closing(snapshot, (constraint, label), stays.conflict != 0, candidate)
        if closing is not None:
            return Repulsion(denied, closing, np.zeros(len(snapshot.nodes), bool), among=False, denies=nothing)
    apart = _apart(snapshot, need, (constraint, label), stays, candidate)
    if apart is not None:
        closing = _closing(snapshot, (constraint, label), stays.conflict != 0, candidate) or ()
        return Repulsion(denied, closing, np.zeros(len(snapshot.nodes), bool), among=False, denies=nothing, apart=apart)
    now = exclusions(snapshot, constraint, label, leaving[:0])
    nothing[denying(snapshot, constraint, label)] = True
    contested = (now.excluded & ~stays.excluded).any(axis=0)
    among = told_apart or bool(stays.conflict.any())
    return Repulsion(denied, (), np.asarray(contested), among, nothing & candidate)


def _apart(
    snapshot: Snapshot, need: Need, kinds: tuple[Ids, Ids], stays: Exclusions, candidate: Bools
) -> PartsInRegions | None:
    """The tasks of a need of one kind as parts, where each keeps a region for itself; see ``Repulsion.apart``.

    None if candidates deny more than their own nodes as well, or a part of the need has a topology of its own.
    """
    wide = [row for row in stays.domains if not of_single_nodes(row)]
    if len(kinds[0]) != 1 or len(wide) != 1 or not need.plain or not need.minimum:
        return None
    if snapshot.shapes.on_card[need.shapes].any() or reaches_other_nodes(snapshot, *kinds, candidate):
        return None
    return apart_in_regions(need.minimum, wide[0])


def _closing(
    snapshot: Snapshot, kinds: tuple[Ids, Ids], conflict: Bools, candidate: Bools
) -> tuple[Closing, ...] | None:
    """What closes single nodes to kinds, one for each shape of the need; None if that is no resource of the nodes.

    Tasks that repel each other (``conflict`` bool[S, S]) take up such a resource if each of them repels all of them,
    itself included.
    """
    others = np.flatnonzero(conflict.any(axis=1)).tolist()
    if any((conflict[conflict[one]] != conflict[one]).any() or not conflict[one, one] for one in others):
        return None
    groups = {conflict[one].tobytes(): Closing(conflict[one], NO_ROWS, takes_one=True) for one in others}
    closed = dict[bytes, list[int]]()
    for at in range(len(conflict)):
        rows = denying(snapshot, kinds[0][at : at + 1], kinds[1][at : at + 1])
        closed.setdefault(rows[candidate[rows]].tobytes(), []).append(at)
    by_tasks = [
        Closing(np.isin(np.arange(len(conflict)), shapes), np.frombuffer(rows, np.int64), takes_one=False)
        for rows, shapes in closed.items()
        if rows
    ]
    return (*groups.values(), *by_tasks)
