"""Podgroups that starve together, served at once and one after the other."""

from unittest.mock import patch

from actors.cli.simulate import Case
from pipeline.cluster.arrays import NONE
from pipeline.cycle import Cycle, cycle
from pipeline.decision.decided import carried_out
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge
from pipeline.records import replace


def served(case: Case) -> tuple[Cycle, Cycle]:
    """A cycle in which podgroups are served at once, and one in which each is searched for alone."""
    with (
        patch("pipeline.actions.evicting.at_once._RANKED_NODES", 0),
        patch("pipeline.actions.evicting.one_pass.MOST_TASKS", 1),
        patch("pipeline.actions.evicting.one_kind.MOST_GANGS", 1),
    ):
        in_turn = cycle(case.snapshot, case.policy, case.now)
    return cycle(case.snapshot, case.policy, case.now), in_turn


def defect_in(case: Case, done: Cycle, in_turn: Cycle | None = None) -> str | None:
    """A plan that does not hold as it is after those before it, or is about a task of one of them; else None.

    With what is done one after the other, also fewer plans than that has.
    """
    state, gone, placed = case.snapshot, set[int](), set[int]()
    for plan in done.plans:
        made, verdict = plan.statement, judge(plan, state, case.policy, case.now)
        if not isinstance(verdict, Accepted) or len(verdict.statement.evictions) < len(made.evictions):
            return f"{made.preemptor}: {verdict}"
        evicted = {*made.evictions.tolist()}
        starts = {*made.nominated[made.nominated_node != NONE].tolist(), *made.bound.tolist()}
        if gone & (evicted | starts) or placed & (evicted | starts):
            return f"{made.preemptor} is about a task of an earlier plan"
        gone, placed = gone | evicted, placed | starts
        state = replace(carried_out(made, state, case.now), revision=state.revision)
    if in_turn is not None and len(done.plans) < len(in_turn.plans):
        return f"{len(done.plans)} plans, {len(in_turn.plans)} one after the other"
    return None
