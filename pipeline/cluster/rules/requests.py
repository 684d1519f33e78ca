"""What queues ask for, whatever is evicted: a task that is ending and starts over waits again as soon as it has ended.

So an eviction changes no queue's share. KAI Scheduler has the same effect by computing shares once a session, and
Koordinator because a pod counts as long as it is there, and the one that takes its place from then on.
"""

from pipeline.cluster.arrays import NONE, Longs
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import TERMINATING
from pipeline.cluster.what_if import WhatIf


def lasting_requests(snapshot: Snapshot) -> Longs:
    """int64[Q, R]: what tasks hold, were promised, wait for or will wait for again, without descendants."""
    tasks, ending = snapshot.tasks, (snapshot.tasks.status == TERMINATING).nonzero()[0]
    if len(ending) == 0:
        return snapshot.requested_here
    total = snapshot.requested_here.copy()
    ending = ending[(tasks.nominated[ending] == NONE) & ~tasks.gone_when_evicted[ending]]
    snapshot.add_requests(ending, total, snapshot.queue_of(ending))
    return total


def snapshot_of_requests(state: Snapshot | WhatIf) -> Snapshot:
    """The snapshot that says what queues ask for in a state, and what they hold that can never be evicted.

    A what-if changes neither unless it is about tasks that can never be evicted, or that do not start over.
    """
    if not isinstance(state, WhatIf):
        return state
    base = state.snapshot
    if not base.once(_any_lasts):
        return base
    tasks, rows = base.tasks, state.changed
    lasts = tasks.gone_when_evicted[rows] | ~base.podgroups.preemptible[tasks.podgroup[rows]]
    return state.whole if lasts.any() else base


def _any_lasts(snapshot: Snapshot) -> bool:
    """Whether any task can never be evicted, or does not start over."""
    return bool(snapshot.tasks.gone_when_evicted.any() or not snapshot.podgroups.preemptible.all())
