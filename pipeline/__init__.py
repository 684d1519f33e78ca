"""The pure core: it decides which running work makes room for a gang, and does nothing else.

A gang of two waits, and a gang of two of lower priority runs on the only node. Which tasks must leave, and is the
plan still right?

>>> from actors.cli.simulate import open_case
>>> from pipeline.decision.attempt import Attempt
>>> from pipeline.decision.plan import Plan
>>> from pipeline.decision.verdict import Accepted
>>> from pipeline.judge import judge
>>> from pipeline.policy import Purpose
>>> from pipeline.propose import propose
>>> gpus = {"nvidia.com/gpu": 1}
>>> low = {"name": "low", "queue": "q", "min_available": 2, "priority": 1,
...        "tasks": [{"name": f"low-{i}", "request": gpus, "status": "Running", "node": "n"} for i in (0, 1)]}
>>> high = {"name": "high", "queue": "q", "min_available": 2, "priority": 9,
...         "tasks": [{"name": f"high-{i}", "request": gpus} for i in (0, 1)]}
>>> case = open_case({"version": 1, "nodes": [{"name": "n", "allocatable": {"nvidia.com/gpu": 2, "pods": 9}}],
...                   "queues": [{"name": "q"}], "podgroups": [low, high]})
>>> plan = propose(Attempt(case.snapshot, case.policy, Purpose.PREEMPT, (1,), None, case.now, "preempt"))
>>> isinstance(plan, Plan) and [case.names.tasks[row] for row in plan.statement.evictions.tolist()]
['default/low-0', 'default/low-1']
>>> isinstance(judge(plan, case.snapshot, case.policy, case.now), Accepted)
True
"""
