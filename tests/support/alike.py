"""Gangs that differ, in one thing each, from a gang of two tasks with four devices each."""

from tests.support.builders import Gang, Task, gang

UNLIKE = [
    gang(2, gpu=2),
    gang(3, gpu=4),
    gang(2, gpu=4, priority=1),
    gang(2, gpu=4, queue=1),
    gang(2, gpu=4, required_level=0),
    gang(2, gpu=4, preemptible=False),
    Gang([Task(gpu=4), Task(gpu=4), Task(gpu=4)], 2),
    Gang([Task(gpu=4), Task(gpu=2)], 2),
    Gang([Task(gpu=4, role=0), Task(gpu=4), Task(gpu=4)], 2, roles=(1,)),
]
