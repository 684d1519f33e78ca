"""Which of many plans are taken together: for each preemptor in order the cheapest that holds beside those before it.

Plans of one search are made on one snapshot and do not know of each other. What holds beside the others is asked of
`pipeline.judge`, so room, victims and quotas are all counted with those already taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from actors.contracts import Answer, Closed
from actors.search import merging
from actors.search.backoff import Unit
from pipeline.actions.progress import Progress
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.explanation import Explanation
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.statement import Statement
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge


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


Outcomes = Mapping[int, Sequence[Plan | NoPlan | None]]
"""What was found for each position in the order of the units."""


def take(draft: Draft, action: str, units: Sequence[Unit], found: Outcomes, before: Outcomes) -> list[int]:
    """Take a plan for each position in ``found``, in order.

    Parameters
    ----------
    before
        What an earlier search of all domains found for those who are searched for in one domain now.

    Returns
    -------
    Positions whose plans all fell to those taken before them; a search on the draft as it is by now may find another.
    """
    searched_on, fell = draft.progress.snapshot, []
    for position in sorted(found):
        unit, mine = units[position], found[position]
        plans = sorted((one for one in mine if isinstance(one, Plan)), key=lambda plan: plan.price)
        if any(one is None for one in mine):
            draft.again = True
        elif not plans and position not in before and (why := merging.in_vain(mine)) is not None:
            draft.vain.setdefault(unit, []).append((action, why))
        for plan in plans:
            made = beside(plan, draft.progress, searched_on)
            if made is not None:
                whole = (*before.get(position, ()), *mine)
                merged = replace(plan, explanation=merging.explained(plan.explanation, whole))
                draft.progress = draft.progress.decided(made, merged.explanation)
                draft.offer(merged, unit)
                break
        else:
            fell += [position] if plans or position in before else []
    return fell


def beside(plan: Plan, progress: Progress, searched_on: Snapshot) -> Statement | None:
    """What a plan does beside those already taken; None if it does not hold any more."""
    if progress.snapshot is searched_on:
        return plan.statement
    verdict = judge(plan, progress.snapshot, progress.policy, progress.now)
    return verdict.statement if isinstance(verdict, Accepted) else None


def assigned(fell: Sequence[int], searched: Outcomes, tried: Mapping[int, set[int]], draft: Draft) -> dict[int, int]:
    """A domain for each who fell, in order: the cheapest by the prices of the first search that nobody else has now.

    An assignment and not a race: who all wanted the same domain would otherwise all want the same next one. Who is left
    out finds nothing in the prices and has to be searched for everywhere.
    """
    topology = draft.progress.snapshot.topology
    busy = np.zeros(int(topology.stop[0]), bool)
    for plan in draft.plans:
        busy[topology.start[plan.domain] : topology.stop[plan.domain]] = True
    chosen: dict[int, int] = {}
    for position in fell:
        priced = (entry for one in searched[position] if one is not None for entry in one.explanation.tried)
        offers = [(one.price, one.domain) for one in priced if one.price is not None]
        for _, domain in sorted(offers):
            here = slice(topology.start[domain], topology.stop[domain])
            if domain not in tried[position] and not busy[here].any():
                busy[here] = True
                chosen[position] = domain
                break
    return chosen
