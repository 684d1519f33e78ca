"""A cycle: every action of the policy in order over one snapshot, in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pipeline.actions.allocate import allocate
from pipeline.actions.backfill import backfill
from pipeline.actions.enqueue import enqueue
from pipeline.actions.gangpreempt import gangpreempt
from pipeline.actions.gangreclaim import gangreclaim
from pipeline.actions.preempt import preempt
from pipeline.actions.progress import Progress
from pipeline.actions.reclaim import reclaim
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.explanation import Explanation
from pipeline.decision.statement import Statement
from pipeline.errors import PolicyRefused
from pipeline.placement.conditions import Condition, Unscheduled, conditions_of, unscheduled
from pipeline.policy import Policy

_ACTIONS: dict[str, Callable[[Progress], Progress]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "gangpreempt": gangpreempt,
    "gangreclaim": gangreclaim,
    "preempt": lambda progress: (
        preempt(progress) if progress.policy.solver("preempt") == "tasks" else gangpreempt(progress, "preempt")
    ),
    "reclaim": lambda progress: (
        reclaim(progress) if progress.policy.solver("reclaim") == "tasks" else gangreclaim(progress, "reclaim")
    ),
}


@dataclass(frozen=True)
class Cycle:
    """What a cycle decided: statements in order, why, and the snapshot with all of them carried out."""

    statements: tuple[Statement, ...]
    explanations: tuple[Explanation, ...]
    snapshot: Snapshot

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Whether each podgroup is scheduled now, and if not why, by row."""
        return conditions_of(self.snapshot)

    @cached_property
    def unscheduled(self) -> Unscheduled:
        """What is not scheduled, in numbers."""
        return unscheduled(self.conditions)


def cycle(snapshot: Snapshot, policy: Policy, now: float) -> Cycle:
    """Run the policy's actions.

    Raises
    ------
    PolicyRefused
        For an action that exists but is not supported yet.
    """
    progress = Progress(snapshot, policy, now)
    for position, action in enumerate(policy.actions):
        if action not in _ACTIONS:
            raise PolicyRefused(f"policy.actions[{position}]: {action!r} is not supported yet")
        progress = _ACTIONS[action](progress)
    return Cycle(progress.statements, progress.explanations, progress.snapshot)
