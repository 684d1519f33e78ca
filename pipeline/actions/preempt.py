"""Preempt, task by task: a starving podgroup takes room from less important tasks of its queue, then of its own.

Volcano's action of that name; whether it or ``gangpreempt`` is meant by ``preempt`` is the policy's to say.
"""

from pipeline.actions.progress import Progress
from pipeline.actions.task_centric import make_room_by_task
from pipeline.policy import Purpose


def preempt(progress: Progress) -> Progress:
    """Everybody from other podgroups of the queue first; whoever starves then, from its own as well."""
    progress = make_room_by_task(progress, "preempt", Purpose.PREEMPT)
    return make_room_by_task(progress, "preempt", Purpose.PREEMPT, own=True)
