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
    host = progress.host()
    for unit in in_order(host, host.starving & host.valid):
        snapshot = host.context.snapshot
        served = serve(host, Attempt(snapshot, progress.policy, purpose, unit, None, progress.now, action), own=own)
        if served.statement is None:
            progress = progress.explained(served.explanation)
        else:
            progress = progress.decided(served.statement, served.explanation)
            host = progress.host()
    return progress
