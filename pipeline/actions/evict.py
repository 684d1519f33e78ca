"""Evict: every starving podgroup takes the room that it needs from others, in the policy's order.

Preempt takes from less important work of the same queue, reclaim from queues that use more than they deserve
("Gang-Aware Preemption and Reclaim", sections 3.5.2 and 3.5.3). Whether whole gangs or single tasks are taken is the
policy's to say for the names ``preempt`` and ``reclaim``.
"""

from pipeline.actions.progress import Progress
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.placement.starving import in_order
from pipeline.policy import Purpose
from pipeline.propose import propose
from pipeline.solvers.registry import solver_of


def evict(progress: Progress, action: str, purpose: Purpose) -> Progress:
    """Serve every starving podgroup in each of the action's passes, first served first."""
    for own in solver_of(progress.policy, action).passes(purpose):
        progress = _pass(progress, action, purpose, own=own)
    return progress


def _pass(progress: Progress, action: str, purpose: Purpose, *, own: bool) -> Progress:
    host = progress.host()
    for unit in in_order(host, host.starving & host.valid):
        attempt = Attempt(progress.snapshot, progress.policy, purpose, unit, None, progress.now, action, own)
        outcome = propose(attempt, host)
        if isinstance(outcome, Plan):
            progress = progress.decided(outcome.statement, outcome.explanation)
            host = progress.host()
        else:
            progress = progress.explained(outcome.explanation)
    return progress
