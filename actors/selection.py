"""Which of many plans are taken together: for each preemptor in order the cheapest that holds beside those before it.

Plans of one search are made on one snapshot and do not know of each other. What holds beside the others is asked of
`pipeline.judge`, so room, victims and quotas are all counted with those already taken.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from actors import merging
from actors.backoff import Unit
from actors.exchange import Answer, Closed, Searched
from pipeline.actions.progress import Progress
from pipeline.cluster.snapshot import Snapshot
from pipeline.explanation import Explanation
from pipeline.judge import judge
from pipeline.plan import Plan
from pipeline.statement import Statement
from pipeline.verdict import Accepted


@dataclass(slots=True)
class Draft:
    """A cycle in progress.

    Attributes
    ----------
    plans
        In the order in which they are to be judged; ``owners`` has the unit of each, None where nobody was evicted.
    vain
        Units without a plan, with the explanation of each action.
    again
        Whether there is more to do without any news.
    closed
        What is not open to everybody now.
    """

    progress: Progress
    closed: Closed = field(default_factory=Closed)
    plans: list[Plan] = field(default_factory=list)
    owners: list[Unit | None] = field(default_factory=list)
    starving: set[Unit] = field(default_factory=set)
    vain: dict[Unit, list[tuple[str, Explanation]]] = field(default_factory=dict)
    again: bool = False

    def offer(self, plan: Plan, owner: Unit | None = None) -> None:
        """A plan that is to be judged after those before it."""
        self.plans.append(plan)
        self.owners.append(owner)

    @property
    def planned(self) -> set[Unit]:
        """Units for which somebody is to be evicted."""
        return {unit for unit in self.owners if unit is not None}

    def refused(self, answers: Sequence[Answer]) -> list[tuple[Unit, Plan]]:
        """Units whose plan was judged and refused, with the plan."""
        return [
            (unit, plan)
            for unit, plan, answer in zip(self.owners, self.plans, answers, strict=False)
            if unit is not None and answer.verdict in ("stale", "conflict")
        ]


def take(
    draft: Draft, action: str, units: Sequence[Unit], wanted: Collection[int], found: Sequence[Searched]
) -> list[int]:
    """Take a plan for each of the ``wanted`` positions in ``units``, in order, from what was found on the draft.

    Returns
    -------
    Positions whose plans all fell to those taken before them; a search on the draft as it is by now may find another.
    """
    searched_on, fell = draft.progress.snapshot, []
    for position in sorted(wanted):
        unit, mine = units[position], [one.outcome for one in found if one.unit == position]
        plans = sorted((one for one in mine if isinstance(one, Plan)), key=lambda plan: plan.price)
        if any(one is None for one in mine):
            draft.again = True
        elif not plans and (why := merging.in_vain(mine)) is not None:
            draft.vain.setdefault(unit, []).append((action, why))
        for plan in plans:
            made = beside(plan, draft.progress, searched_on)
            if made is not None:
                merged = replace(plan, explanation=merging.explained(plan.explanation, mine))
                draft.progress = draft.progress.decided(made, merged.explanation)
                draft.offer(merged, unit)
                break
        else:
            fell += [position] if plans else []
    return fell


def beside(plan: Plan, progress: Progress, searched_on: Snapshot) -> Statement | None:
    """What a plan does beside those already taken; None if it does not hold any more."""
    if progress.snapshot is searched_on:
        return plan.statement
    verdict = judge(plan, progress.snapshot, progress.policy, progress.now)
    return verdict.statement if isinstance(verdict, Accepted) else None
