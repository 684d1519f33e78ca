"""Gangreclaim: a starving gang takes back what other queues use beyond their share (document 1, 3.5.3)."""

from pipeline.actions.eviction import make_room
from pipeline.actions.progress import Progress
from pipeline.policy import Purpose


def gangreclaim(progress: Progress, action: str = "gangreclaim") -> Progress:
    """Whole gangs as victims and preemptors; ``action`` is the name under which the policy lists it."""
    return make_room(progress, action, Purpose.RECLAIM)
