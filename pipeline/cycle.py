"""A cycle: every action of the policy in order over one snapshot, in this process."""

from dataclasses import dataclass
from functools import cached_property

from pipeline.actions.progress import Progress
from pipeline.actions.registry import actions_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.explanation import Explanation
from pipeline.decision.statement import Statement
from pipeline.placement.conditions import Condition, Unscheduled, conditions_of, unscheduled
from pipeline.policy import Policy


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
    for action in actions_of(policy.actions):
        assert action.run is not None
        progress = action.run(progress)
    return Cycle(progress.statements, progress.explanations, progress.snapshot)
