"""Podgroups alike, served at once and one after the other."""

from dataclasses import replace
from unittest.mock import patch

from actors.cli.simulate import Case
from pipeline.cycle import Cycle, cycle
from pipeline.decision.decided import carried_out
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge


def served(case: Case) -> tuple[Cycle, Cycle]:
    """A cycle in which podgroups alike are served at once, and one in which each is searched for alone."""
    at_once = cycle(case.snapshot, case.policy, case.now)
    with patch("pipeline.actions.evicting.one_pass.MOST_TASKS", 1):
        return at_once, cycle(case.snapshot, case.policy, case.now)


def defect_in(case: Case, at_once: Cycle, in_turn: Cycle) -> str | None:
    """A plan that does not hold as it is after those before it, or fewer plans than one after the other; else None."""
    state = case.snapshot
    for plan in at_once.plans:
        verdict = judge(plan, state, case.policy, case.now)
        if not isinstance(verdict, Accepted) or len(verdict.statement.evictions) < len(plan.statement.evictions):
            return f"{plan.statement.preemptor}: {verdict}"
        state = replace(carried_out(plan.statement, state, case.now), revision=state.revision)
    if len(at_once.plans) < len(in_turn.plans):
        return f"{len(at_once.plans)} plans, {len(in_turn.plans)} one after the other"
    return None
