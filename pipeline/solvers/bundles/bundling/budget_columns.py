"""Disruption budgets as resources of a queue above all queues, so that what counts quotas counts budgets too.

A budget limits how many tasks go that it covers, whichever queues they are of. So each running task that it covers
holds one of one more resource, which no gang asks for, and a queue above all others can lose as many of it as the
budget allows. Slots do not change, since the gang asks for none of it.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, frozen, paired, unpaired
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.rules.sparing import Asking, Entitled, Quota, quota_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.room.room_columns import RoomColumns, wider

#: More budgets than this are not counted as resources: each is a column of every node.
MOST_BUDGETS = 32
#: What queues are said to hold of a resource that is added, so that no quota counts it.
_PLENTY = 1 << 50
#: No budgets.
NO_BUDGETS = Budgets(frozen([], np.int32), frozen([], np.int32), frozen(np.zeros((0, 1)), np.bool_))


class Covered(NamedTuple):
    """What P budgets count.

    Attributes
    ----------
    by_kind: int64[K, P]
        Of each kind of entries 1 for each budget that covers it; 0 for the others.
    kind: int64[M]
        The kind of each entry.
    group: int64[G, P]
        How many of the entries of each podgroup each budget covers.
    """

    by_kind: Longs
    kind: Rows
    group: Longs


def binding(snapshot: Snapshot, budgets: Budgets, candidate: Bools) -> Budgets:
    """Those of the budgets that cannot let all candidates (bool[T]) go that they cover."""
    if len(budgets) == 0:
        return NO_BUDGETS
    return budgets.only(np.flatnonzero(snapshot.how_many_on(np.flatnonzero(candidate), budgets) > budgets.allowed))


def covered_by(snapshot: Snapshot, budgets: Budgets) -> Covered:
    """What the budgets count."""
    tasks, rows = snapshot.tasks, snapshot.occupancy.task
    pairs, pair = unique_inverse(paired(snapshot.podgroups.namespace[tasks.podgroup[rows]], tasks.label_set[rows]))
    by_kind, kind_of = unique_inverse(budgets.covering(*unpaired(pairs)).T.astype(np.int64))
    kind = kind_of[pair]
    groups, kinds = len(snapshot.podgroups), len(by_kind)
    many = np.bincount(snapshot.placed.podgroup * np.int64(kinds) + kind, minlength=groups * kinds)
    return Covered(by_kind, kind, many.reshape(groups, kinds) @ by_kind)


def with_budgets(columns: RoomColumns, covered: Covered) -> RoomColumns:
    """The columns, and one for each budget; nodes have nothing of it."""
    kinds, many = covered.by_kind.shape
    of, kind, form = columns.told_apart(np.arange(len(covered.kind)), covered.kind, kinds)

    def none(rows: Longs) -> Longs:
        return wider(rows, np.zeros((len(rows), many), np.int64))

    return RoomColumns(
        none(columns.request),
        frozen(np.vstack([none(columns.held), np.hstack([columns.held[of], covered.by_kind[kind]])]), np.int64),
        np.append(columns.shape, columns.shape[of]),
        form,
        none(columns.future),
        none(columns.capacity),
        none(columns.nominated),
    )


def as_wide(quota: Quota, resources: int) -> Quota:
    """The quota over that many resources; it counts nothing of the added ones."""
    more = resources - quota.held.shape[1]
    if not quota.counted or more == 0:
        return quota

    def filled(column: Longs, value: int) -> Longs:
        return wider(column, np.full((len(column), more), value))

    entitled, asking = quota.entitled, quota.asking
    nothing = np.zeros((len(entitled.counts), more))
    return quota._replace(
        held=filled(quota.held, 0),
        allocated=filled(quota.allocated, _PLENTY),
        entitled=entitled._replace(
            deserved=filled(entitled.deserved, 0),
            counts=frozen(np.concatenate([entitled.counts, nothing], axis=1), np.bool_),
            guarantee=filled(entitled.guarantee, 0),
        ),
        asking=asking._replace(asked=frozen(np.append(asking.asked, nothing[0]), np.bool_)),
    )


def quota_with(quota: Quota, budgets: Budgets, covered: Covered, resources: int) -> Quota:
    """The quota, and the budgets as what a queue above all others can lose.

    ``resources``: how many there are without the budgets; the quota counts these already, if it counts any.
    """
    groups, many, top = len(covered.group), len(budgets), len(quota.allocated)
    if not quota.counted:
        nothing = np.zeros((0, resources), np.int64)
        empty = Entitled(nothing, nothing.astype(np.bool_), nothing, np.zeros(0, np.int32))
        answer = np.zeros((0, 0), np.int32)
        quota = quota._replace(
            queue=frozen(np.zeros(groups), np.int32), held=frozen(np.zeros((groups, resources)), np.int64),
            allocated=nothing, entitled=empty,
            asking=Asking(np.zeros(resources, np.bool_), answer, np.zeros(0, np.bool_)),
        )  # fmt: skip
    entitled, asking = quota.entitled, quota.asking

    def longer(column: Longs | Bools, last: Longs, more: int) -> Longs:
        return np.vstack([np.hstack([column, np.full((top, many), more)]), last]).astype(np.int64)

    none, each = np.zeros(resources + many, np.int64), np.repeat(np.array([0, 1]), (resources, many))
    above, answers = np.where(entitled.parent == NONE, top, entitled.parent), asking.answer.shape[1]
    return quota_of(
        quota.queue,
        np.hstack([quota.held, covered.group]),
        longer(quota.allocated, np.append(np.full(resources, _PLENTY), budgets.allowed), _PLENTY),
        Entitled(
            longer(entitled.deserved, none, 0), longer(entitled.counts, each, 0).astype(np.bool_),
            longer(entitled.guarantee, none, 0), np.append(above, NONE).astype(np.int32),
        ),
        Asking(
            np.append(asking.asked, np.zeros(many, np.bool_)),
            np.hstack([np.full((top + 1, 1), top), np.vstack([asking.answer, np.full((1, answers), NONE)])]).astype(
                np.int32
            ),
            np.append(asking.related, np.zeros(1, np.bool_)),
        ),
    )  # fmt: skip
