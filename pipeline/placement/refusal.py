"""Why there is no search for a preemptor at all; asked before any solver searches."""

import numpy as np

from pipeline.cluster.arrays import Bools, Rows, all_true, any_true
from pipeline.cluster.tables import Podgroups
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Reason
from pipeline.plugins.host import Host
from pipeline.policy import Purpose


def refusal_of(
    attempt: Attempt, host: Host, *, short: bool = False, never: bool = False, across_queues: bool = False
) -> Reason | None:
    """The first reason why no room is to be made for the attempt's podgroups, or None.

    Parameters
    ----------
    host
        The plugins on the attempt's snapshot, policy and clock.
    short
        Whether the solver found that too few of their tasks can ever be placed.
    never
        Whether they would have to evict and may not.
    across_queues
        Whether the solver asks the queue of each podgroup. Others take what the first one's may, and charge it.
    """
    groups, rows = attempt.snapshot.podgroups, np.array(attempt.podgroups)
    if not any_true(host.starving[rows]):
        return Reason.NOTHING_MISSING
    if short or not all_true(host.valid[rows]):
        return Reason.TOO_FEW_TASKS
    if never:
        return Reason.NEVER
    queues = groups.queue[rows]
    if not across_queues and any_true(host.starving[rows] & (queues != queues[0])):
        return Reason.SEVERAL_QUEUES
    if any_true(delayed(groups, rows, attempt.now)):
        return Reason.DELAY
    if attempt.purpose is Purpose.RECLAIM and any_true(host.overused[queues]):
        return Reason.QUOTA
    return None


def delayed(groups: Podgroups, rows: Rows, now: float) -> Bools:
    """bool[len(rows)]: podgroups that have not yet waited for their delay.

    The clock that says when a podgroup was created may be ahead of ours. Then it has not waited yet, which only matters
    if it has a delay.
    """
    return np.asarray(np.fmax(0.0, now - groups.created[rows]) < groups.preemption_delay_s[rows])
