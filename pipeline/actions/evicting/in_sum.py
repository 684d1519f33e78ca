"""Plans for the same gang groups, found at once and one after the other: which of them lose less in sum."""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.plan import Plan
from pipeline.decision.price import Price, lost_work, price_of
from pipeline.plugins.host import Host


def cost_less(snapshot: Snapshot, host: Host, some: Sequence[Plan], others: Sequence[Plan]) -> bool:
    """Whether the victims of some plans on a snapshot cost less together than those of others."""
    return _in_sum(snapshot, host, some) < _in_sum(snapshot, host, others)


def _in_sum(snapshot: Snapshot, host: Host, plans: Sequence[Plan]) -> Price:
    """The price of all victims of some plans, in units of all that they place; they may lie in any domain."""
    first = plans[0].statement
    gone = np.sort(np.concatenate([plan.statement.evictions for plan in plans]))
    placed = np.concatenate([plan.statement.placed for plan in plans])
    requested = snapshot.shapes.request[snapshot.tasks.shape[placed]].sum(axis=0)
    rank = host.price_rank(first.purpose, first.preemptor)
    return price_of(snapshot, gone, requested, lost_work(snapshot, host.context.now), rank, 0)
