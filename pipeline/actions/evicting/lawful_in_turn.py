"""Statements for podgroups alike, one after the other: how many of them are lawful each in its turn."""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Longs, joined
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.resources import fits
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.plan import Plan
from pipeline.decision.statement import Statement
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose


def lawful_in_turn(snapshot: Snapshot, host: Host, statements: Sequence[Statement], *, sets: bool, rooms: bool) -> int:
    """How many leading statements are lawful, each after those before it.

    Parameters
    ----------
    host
        On the snapshot.
    sets
        Whether the victims of each are asked about as a set.
    rooms
        Whether the queue must have room for each once its victims have gone.
    """
    after, gone = WhatIf.of(snapshot), NO_ROWS
    for at, made in enumerate(statements):
        request: Longs = snapshot.request_of(made.nominated).sum(axis=0)
        preemptor = Preemptor((made.preemptor,), request, made.purpose)
        if sets and not host.on(after, gone).validate_set(preemptor, made.evictions):
            return at
        after, gone = after.evicting(made.evictions), np.concatenate([gone, made.evictions])
        if rooms and not fits(request, host.on(after, gone).headroom_of(made.preemptor)):
            return at
        after = after.nominating(made.nominated, made.nominated_node)
    return len(statements)


def leading_plans(snapshot: Snapshot, host: Host, plans: Sequence[Plan]) -> Sequence[Plan]:
    """The leading plans of podgroups alike that hold one after the other, as if each had been searched for in its turn.

    All of them were found to be lawful together; but the rule of fair shares looks at the victims of a reclaim one
    after the other, and where they differ another order can be refused.
    """
    if not plans or plans[0].statement.purpose is not Purpose.RECLAIM or _alike(snapshot, plans):
        return plans
    return plans[: lawful_in_turn(snapshot, host, [plan.statement for plan in plans], sets=True, rooms=False)]


def _alike(snapshot: Snapshot, plans: Sequence[Plan]) -> bool:
    """Whether all victims are single tasks of one queue and shape, so that their order decides nothing."""
    tasks, groups = snapshot.tasks, snapshot.podgroups
    gone = joined(plan.statement.evictions for plan in plans)
    owner = tasks.podgroup[gone]
    same = all(len(unique_inverse(of)[0]) <= 1 for of in (tasks.shape[gone], groups.queue[owner]))
    return same and bool((snapshot.counts.running[owner] == 1).all())
