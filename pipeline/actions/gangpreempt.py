"""Gangpreempt: a starving gang takes room from less important work of its own queue (document 1, 3.5.2)."""

from pipeline.actions.eviction import make_room
from pipeline.actions.progress import Progress
from pipeline.policy import Purpose


def gangpreempt(progress: Progress, action: str = "gangpreempt") -> Progress:
    """Whole gangs as victims and preemptors; ``action`` is the name under which the policy lists it."""
    return make_room(progress, action, Purpose.PREEMPT)
