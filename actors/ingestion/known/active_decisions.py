"""Our decisions that have not ended: plans that may be taken back, claims, overdue victims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ActivePlan:
    """A decision whose effects may still be taken back: its entry, and (task, incarnation) of what it did.

    The promise of a task that moves outlasts its present life: it is nominated in whichever it has then (``CURRENT``).
    What a later decision promises a task, or takes from it, belongs to that decision and is removed from this one.
    """

    entry: str
    evictions: list[tuple[str, int]]
    nominations: list[tuple[str, int]]


@dataclass(slots=True)
class UnknownParts:
    """Parts of a decision that cannot be folded yet: news of their tasks or nodes was lost, and the next list has it.

    Unknown are tasks and nodes that the register does not have, and lives of tasks later than those that it has.

    Attributes
    ----------
    entry
        Id of the decision's entry.
    evictions
        (Task, incarnation).
    places
        (Task, node, card, incarnation) of its nominations and of its bindings; None where it names no life.
    """

    entry: str
    evictions: list[tuple[str, int]]
    places: list[tuple[str, str, str | None, int | None]]


@dataclass(slots=True)
class ActiveClaim:
    """A domain kept for a podgroup until ``expires_at`` (seconds): the decision's entry, and the domain's name."""

    entry: str
    domain: str
    expires_at: float


@dataclass(slots=True)
class ActiveDecisions:
    """Our decisions that have not ended.

    Attributes
    ----------
    plans
        Decisions that may still be taken back, by plan id.
    unknown
        Parts of decisions that could not be folded yet, by plan id.
    claims
        Domains that are kept for a podgroup, by its name.
    overdue
        Victims that did not end in time, by name: their incarnation, and until when (seconds) their room is not counted
        on.
    """

    plans: dict[str, ActivePlan] = field(default_factory=dict)
    claims: dict[str, ActiveClaim] = field(default_factory=dict)
    overdue: dict[str, tuple[int, float]] = field(default_factory=dict)
    unknown: dict[str, UnknownParts] = field(default_factory=dict)
    _promised_by: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._promised_by = {task: plan_id for plan_id, plan in self.plans.items() for task, _ in plan.nominations}

    def placed_anew(self, tasks: Iterable[str]) -> None:
        """Take tasks out of earlier decisions: a later one says where they belong, or evicts them in a later life."""
        anew: dict[str, set[str]] = {}
        named = set(tasks)
        for key, parts in self.unknown.items():
            if any(place[0] in named for place in parts.places):
                left = [one for one in parts.places if one[0] not in named]
                self.unknown[key] = UnknownParts(parts.entry, parts.evictions, left)
        for task in sorted(named):
            promised_by = self._promised_by.pop(task, None)
            if promised_by in self.plans:
                anew.setdefault(promised_by, set()).add(task)
        for plan_id, those in anew.items():
            older = self.plans[plan_id]
            kept = [one for one in older.nominations if one[0] not in those]
            self.plans[plan_id] = ActivePlan(older.entry, older.evictions, kept)

    def keep(self, plan_id: str, plan: ActivePlan) -> None:
        """Add a decision that stands from now on."""
        self.plans[plan_id] = plan
        self._promised_by |= {task: plan_id for task, _ in plan.nominations}

    def end(self, plan_id: str) -> ActivePlan | None:
        """Remove a decision that stands no more; returns what it was, None if it did not stand."""
        self.unknown.pop(plan_id, None)
        plan = self.plans.pop(plan_id, None)
        for task, _ in plan.nominations if plan is not None else ():
            if self._promised_by.get(task) == plan_id:
                del self._promised_by[task]
        return plan

    def entries(self) -> list[str]:
        """Entries of the decisions that may still be taken back."""
        return [one.entry for known in (self.plans, self.claims, self.unknown) for one in known.values()]

    def copied(self) -> ActiveDecisions:
        """A copy that can be changed independently."""
        return ActiveDecisions(dict(self.plans), dict(self.claims), dict(self.overdue), dict(self.unknown))

    def packable(self) -> list[Any]:
        """As plain data."""
        plans = {key: [plan.entry, plan.evictions, plan.nominations] for key, plan in self.plans.items()}
        claims = {key: [claim.entry, claim.domain, claim.expires_at] for key, claim in self.claims.items()}
        unknown = {key: [one.entry, one.evictions, one.places] for key, one in self.unknown.items()}
        return [plans, claims, self.overdue, unknown]

    @classmethod
    def of_packable(cls, given: list[Any]) -> ActiveDecisions:
        """The decisions that ``packable`` has given."""
        plans, claims, overdue, unknown = given
        return cls(
            {
                key: ActivePlan(entry, [(t, i) for t, i in evictions], [(t, i) for t, i in nominations])
                for key, (entry, evictions, nominations) in plans.items()
            },
            {key: ActiveClaim(*claim) for key, claim in claims.items()},
            {task: (incarnation, until) for task, (incarnation, until) in overdue.items()},
            {
                key: UnknownParts(entry, [(t, i) for t, i in evictions], [(t, n, c, i) for t, n, c, i in places])
                for key, (entry, evictions, places) in unknown.items()
            },
        )
