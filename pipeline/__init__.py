"""The pure core: it decides which running work makes room for a gang, and does nothing else.

A gang of two waits, and a gang of two of lower priority runs on the only node. Which tasks must leave, and is the
plan still right?

>>> from actors.cli.simulate import open_case
>>> from pipeline import Accepted, Attempt, Plan, Purpose
>>> from pipeline.judge import judge
>>> from pipeline.propose import propose
>>> gpus = {"nvidia.com/gpu": 1}
>>> low = {"name": "low", "queue": "q", "min_available": 2, "priority": 1,
...        "tasks": [{"name": f"low-{i}", "request": gpus, "status": "Running", "node": "n"} for i in (0, 1)]}
>>> high = {"name": "high", "queue": "q", "min_available": 2, "priority": 9,
...         "tasks": [{"name": f"high-{i}", "request": gpus} for i in (0, 1)]}
>>> case = open_case({"version": 1, "nodes": [{"name": "n", "allocatable": {"nvidia.com/gpu": 2, "pods": 9}}],
...                   "queues": [{"name": "q"}], "podgroups": [low, high]})
>>> plan = propose(Attempt(case.snapshot, case.policy, Purpose.PREEMPT, (1,), None, case.now))
>>> isinstance(plan, Plan) and [case.names.tasks[row] for row in plan.statement.evictions.tolist()]
['default/low-0', 'default/low-1']
>>> isinstance(judge(plan, case.snapshot, case.policy, case.now), Accepted)
True
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.public import (
        Accepted,
        Attempt,
        Conflict,
        Cycle,
        NoPlan,
        Plan,
        Policy,
        Price,
        Purpose,
        Snapshot,
        Stale,
        Statement,
        Verdict,
    )

__all__ = [
    "Accepted", "Attempt", "Conflict", "Cycle", "NoPlan", "Plan", "Policy", "Price", "Purpose", "Snapshot", "Stale",
    "Statement", "Verdict",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """One of the names above, imported when it is first used: the kernels take long, and not all callers need them.

    ``propose``, ``judge`` and ``cycle`` are in the modules of their names.
    """
    if name not in __all__:
        raise AttributeError(f"module 'pipeline' has no attribute {name!r}")
    from pipeline import public  # noqa: PLC0415 - see above

    return getattr(public, name)
