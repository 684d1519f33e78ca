"""What the task-centric actions share: who is served in which order."""

from pipeline.actions.progress import Progress
from pipeline.decision.attempt import Attempt
from pipeline.placement.starving import in_order
from pipeline.policy import Purpose
from pipeline.solvers.tasks.serve import serve


def make_room_by_task(progress: Progress, action: str, purpose: Purpose, *, own: bool = False) -> Progress:
    """Serve everyone who starves, each once, by queue, then by podgroup.

    Parameters
    ----------
    own
        Whether podgroups may take less important tasks of their own.
    """
    votes = progress.votes()
    for unit in in_order(votes, votes.starving & votes.valid):
        snapshot = votes.situation.snapshot
        served = serve(votes, Attempt(snapshot, progress.policy, purpose, unit, None, progress.now, action), own=own)
        if served.statement is None:
            progress = progress.explained(served.explanation)
        else:
            progress = progress.decided(served.statement, served.explanation)
            votes = progress.votes()
    return progress
