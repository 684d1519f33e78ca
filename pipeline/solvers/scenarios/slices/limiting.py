"""What limits the slots of a slice beside resources, where it can be counted: cards, repelling tasks, parts."""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bytes, Longs
from pipeline.cluster.rules.anti_affinity import concerns, exclusions, of_single_nodes, repulsion_of_kind
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.layout.parts import groups_of, in_one_region_each, regions_at
from pipeline.placement.need import Need
from pipeline.solvers.scenarios.slices.slots_kernels import SlotLimits

#: Nothing keeps the need from any node.
_NO_REPULSION = np.zeros(0, np.uint8), np.zeros(0, np.int64)


def limits_of(snapshot: Snapshot, need: Need, start: int, stop: int) -> tuple[SlotLimits, bool]:
    """The limits in the slice ``start:stop``, and whether slots within them decide whether a need of one shape fits.

    Where they do not there are no limits; room on cards is counted if the need asks for it.
    """
    shapes, tasks = snapshot.shapes, snapshot.tasks
    # Where no node has cards there is nothing to work out of them.
    card_room = (snapshot.card_room.future if snapshot.nodes.cards.shape[1] else snapshot.nodes.cards)[start:stop]
    some = -int(shapes.on_card[need.shapes].any())
    none = SlotLimits(*_NO_REPULSION, tasks.card, shapes.on_card, card_room, some, np.zeros(0, np.int64), 0)
    if len(need.shapes) > 1:
        return none, False
    repulsion, parts = _repulsion(snapshot, need), _parts(snapshot, need, start, stop)
    if repulsion is None or parts is None:
        return none, False
    (repels, blocked), (region, each), asks = repulsion, parts, int(shapes.on_card[need.shapes[0]])
    if each and (len(repels) or asks):
        return none, False
    here = blocked[start:stop] if len(blocked) else blocked
    return SlotLimits(repels, here, tasks.card, shapes.on_card, card_room, asks, region, each), True


def _repulsion(snapshot: Snapshot, need: Need) -> tuple[Bytes, Longs] | None:
    """How often each task keeps the need from its node, and how often tasks keep it from each node.

    None where a task may keep it from other nodes too, or the need's tasks repel each other or are of several kinds.
    """
    known, asked = snapshot.answers(_repulsion), need.tasks[: need.minimum].tobytes()
    if asked not in known:
        known[asked] = _of_nodes(snapshot, need) if concerns(snapshot, need.tasks) else _NO_REPULSION
    return known[asked]


def _of_nodes(snapshot: Snapshot, need: Need) -> tuple[Bytes, Longs] | None:
    tasks, rows = snapshot.tasks, need.tasks[: need.minimum]
    labels = tasks.label_set[rows[:1]]
    if (tasks.label_set[rows] != labels).any():
        return None
    found = repulsion_of_kind(snapshot, int(rows[0]))
    if not all(map(of_single_nodes, found.domain)):
        return None
    if exclusions(snapshot, snapshot.shapes.constraint[need.shapes], labels, NO_ROWS).conflict.any():
        return None
    return found.repels.sum(axis=0, dtype=np.uint8), found.repelled


def _parts(snapshot: Snapshot, need: Need, start: int, stop: int) -> tuple[Longs, int] | None:
    """The region of each node of the slice for parts of equal size that are to lie in one region each, and their size.

    0 if there are none; None if that does not describe the need.
    """
    if need.plain:
        return np.zeros(0, np.int64), 0
    grouping = groups_of(need, snapshot, NO_ROWS, (start, stop))
    if grouping is None:
        return None
    groups, of = grouping
    each = in_one_region_each(groups)
    if each is None or len(each.around):
        return None
    if len(groups) == 1:
        return np.zeros(0, np.int64), 0
    count = np.bincount(of[need.part[: need.minimum]], minlength=len(groups))
    if count[0] or (count[1:] != count[1]).any():
        return None
    region = regions_at(snapshot, groups[1].required)[start:stop]
    first = region[region != NONE].min(initial=len(snapshot.nodes))
    return np.where(region == NONE, NONE, region - first).astype(np.int64), int(count[1])
