"""Reclaim, task by task: a starving podgroup takes back what other queues use beyond their share.

Volcano's action of that name, but with nominations, so that nobody takes the room while the victims leave (document 1,
section 4.3.4); whether it or ``gangreclaim`` is meant by ``reclaim`` is the policy's to say.
"""

from pipeline.actions.progress import Progress
from pipeline.actions.task_centric import make_room_by_task
from pipeline.policy import Purpose


def reclaim(progress: Progress) -> Progress:
    """Everybody who starves, from other queues."""
    return make_room_by_task(progress, "reclaim", Purpose.RECLAIM)
