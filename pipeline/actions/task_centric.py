"""What the task-centric actions share: who is served in which order, and what earlier evictions of the cycle count."""

import numpy as np

from pipeline.actions.progress import Progress
from pipeline.attempt import Attempt, Purpose
from pipeline.plugins.votes import Votes
from pipeline.simulation import charging, situated
from pipeline.starving import in_order
from pipeline.task_eviction import serve


def make_room_by_task(progress: Progress, action: str, purpose: Purpose, *, own: bool = False) -> Progress:
    """Serve everyone who starves, each once, by queue, then by podgroup.

    Parameters
    ----------
    own
        Whether podgroups may take less important tasks of their own.
    """
    votes = _votes(progress)
    for unit in in_order(votes, votes.starving & votes.valid):
        snapshot = votes.situation.snapshot
        served = serve(votes, Attempt(snapshot, progress.policy, purpose, unit, None, progress.now, action), own=own)
        if served.statement is None:
            progress = progress.explained(served.explanation)
        else:
            progress = progress.decided(served.statement, served.explanation)
            votes = _votes(progress)
    return progress


def _votes(progress: Progress) -> Votes:
    """The votes, with disruption budgets charged for what the cycle evicts already."""
    votes = progress.votes()
    evicted = [made.evictions for made in progress.statements]
    if len(progress.snapshot.budgets) == 0 or not evicted:
        return votes
    return situated(votes, charging(progress.snapshot, np.concatenate(evicted)))
