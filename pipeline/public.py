"""The names that ``pipeline`` exports."""

from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import Cycle
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.price import Price
from pipeline.decision.statement import Statement
from pipeline.decision.verdict import Accepted, Conflict, Stale, Verdict
from pipeline.policy import Policy, Purpose

__all__ = [
    "Accepted", "Attempt", "Conflict", "Cycle", "NoPlan", "Plan", "Policy", "Price", "Purpose", "Snapshot", "Stale",
    "Statement", "Verdict",
]  # fmt: skip
