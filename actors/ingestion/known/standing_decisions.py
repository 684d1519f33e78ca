"""Our decisions that are not over: plans that may be taken back, domains kept for a podgroup, victims that are late."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class StandingPlan:
    """A decision whose effects may still be taken back: its entry, and (task, incarnation) of what it did."""

    entry: str
    evictions: list[tuple[str, int]]
    nominations: list[tuple[str, int]]


@dataclass(slots=True)
class StandingClaim:
    """A domain kept for a podgroup until ``expires_at`` (seconds): the decision's entry, and the domain's name."""

    entry: str
    domain: str
    expires_at: float


@dataclass(slots=True)
class StandingDecisions:
    """What of our decisions is not over.

    Attributes
    ----------
    plans
        Decisions that may still be taken back, by plan id.
    claims
        Domains that are kept for a podgroup, by its name.
    overdue
        Victims that did not end in time, by name: their incarnation, and until when (seconds) their room is not counted
        on.
    """

    plans: dict[str, StandingPlan] = field(default_factory=dict)
    claims: dict[str, StandingClaim] = field(default_factory=dict)
    overdue: dict[str, tuple[int, float]] = field(default_factory=dict)

    def entries(self) -> list[str]:
        """Entries of the decisions that may still be taken back."""
        return [one.entry for one in self.plans.values()] + [one.entry for one in self.claims.values()]

    def copied(self) -> StandingDecisions:
        """Decisions that can be changed without these."""
        return StandingDecisions(dict(self.plans), dict(self.claims), dict(self.overdue))

    def packable(self) -> list[Any]:
        """As plain data."""
        plans = {key: [plan.entry, plan.evictions, plan.nominations] for key, plan in self.plans.items()}
        claims = {key: [claim.entry, claim.domain, claim.expires_at] for key, claim in self.claims.items()}
        return [plans, claims, self.overdue]

    @classmethod
    def of_packable(cls, given: list[Any]) -> StandingDecisions:
        """What ``packable`` gave."""
        plans, claims, overdue = given
        return cls(
            {
                key: StandingPlan(entry, [(t, i) for t, i in evictions], [(t, i) for t, i in nominations])
                for key, (entry, evictions, nominations) in plans.items()
            },
            {key: StandingClaim(*claim) for key, claim in claims.items()},
            {task: (incarnation, until) for task, (incarnation, until) in overdue.items()},
        )
