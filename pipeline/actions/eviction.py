"""What the gang-aware evicting actions share: ask for a plan for each starving podgroup, and carry it out."""

from pipeline.actions.progress import Progress
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.placement.starving import in_order
from pipeline.policy import Purpose
from pipeline.propose import propose


def make_room(progress: Progress, action: str, purpose: Purpose) -> Progress:
    """Serve everyone who starves, each once, first served first."""
    host = progress.host()
    for unit in in_order(host, host.starving & host.valid):
        attempt = Attempt(progress.snapshot, progress.policy, purpose, unit, None, progress.now, action)
        outcome = propose(attempt, host)
        if isinstance(outcome, Plan):
            progress = progress.decided(outcome.statement, outcome.explanation)
            host = progress.host()
        else:
            progress = progress.explained(outcome.explanation)
    return progress
