"""Which victims could start again at all: a move whose task would wait on its new node is no move.

KAI Scheduler binds what it has moved whatever the queue says by then. Here a promise is redeemed only where it would be
made anew (`actions.redeem`), so the same is asked before a task is moved.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, distinct, is_among
from pipeline.cluster.rules.gang_groups import gang_group_of, gang_groups
from pipeline.cluster.rules.match_policy import stated_policy
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import ONLY_WAITING
from pipeline.cluster.what_if import WhatIf
from pipeline.placement.promises import within_headroom
from pipeline.plugins.host import Host


def may_restart(host: Host, rows: Rows) -> Bools:
    """bool[M]: which of the victims ``rows`` could start again, if they all leave and there is room for them."""
    may = may_wait(host, rows)
    at = np.flatnonzero(may)
    if len(at):
        may[at] = _within_queues(host, rows[at])
    return may


def may_wait(host: Host, rows: Rows) -> Bools:
    """bool[M]: which of the victims ``rows`` wait to start again once evicted, with no regard to their queues.

    The others are gone then, or wait for what does not come.
    """
    snapshot = host.context.snapshot
    tasks = snapshot.tasks
    may = ~tasks.gone_when_evicted[rows] & ~tasks.gated[rows]
    if may.any():
        owner = tasks.podgroup[rows]
        held_up = _held_up(snapshot, distinct(owner[may]).astype(np.int64), host.context.policy.match_policy)
        may &= ~is_among(owner, held_up)
    return np.asarray(may)


def _held_up(snapshot: Snapshot, podgroups: Rows, otherwise: str) -> Rows:
    """int64[P]: podgroups that start only with others that are not ready, or only by what waits."""
    groups, known = snapshot.podgroups, snapshot.once(gang_groups)
    waits = np.asarray(stated_policy(groups.match_policy[podgroups], otherwise) == ONLY_WAITING)
    for at in np.flatnonzero((groups.gang_group[podgroups] != NONE) & ~waits).tolist():
        podgroup = int(podgroups[at])
        others = [one for one in gang_group_of(snapshot, podgroup) if one != podgroup]
        waits[at] = not known.complete[podgroup] or not minima_met(snapshot).ready[others].all()
    result: Rows = podgroups[waits]
    return result


def _within_queues(host: Host, rows: Rows) -> Bools:
    """bool[M]: which tasks their queues would take again once all of them have left."""
    snapshot = host.context.snapshot
    queue, asks = snapshot.queue_of(rows), snapshot.request_of(rows) > 0
    if ((host.headroom[queue] > 0) | ~asks).all():  # mostly: then what they hold now fits as well
        return np.ones(len(rows), bool)
    left: Longs = host.on(WhatIf.of(snapshot).evicting(rows), rows).headroom
    return within_headroom(snapshot, rows, left)
