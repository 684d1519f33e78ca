"""``propose``: one preemptor, some domains, the best plan or the reason why there is none.

The solver that the policy names for the action finds the plan; every plan is checked once more, independently.
"""

from functools import partial

from pipeline.cluster.arrays import NONE
from pipeline.decision.attempt import Attempt, Survey
from pipeline.decision.explanation import Reason
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.statement import Statement
from pipeline.placement.feasibility import feasible
from pipeline.placement.filters import well_placed
from pipeline.placement.reasons.obstacles import with_obstacles
from pipeline.placement.reasons.question import Question
from pipeline.placement.reasons.spared import with_victims
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.records import replace
from pipeline.solvers.registry import DIVISIBLE, solver_of


def host_of(attempt: Attempt) -> Host:
    """The policy's plugins on the attempt's snapshot; attempts on one snapshot can share them."""
    state = attempt.snapshot, attempt.policy, attempt.now
    return Host(Context(*state, attempt.starting, attempt.among, attempt.equally_fair))


def divides(attempt: Attempt) -> bool:
    """Whether parts of the attempt's domains can be searched apart without changing what is decided."""
    solver = DIVISIBLE.get(attempt.policy.solver(attempt.action))
    return solver is not None and solver.divides(attempt)


def searched_part(attempt: Attempt, host: Host) -> Plan | NoPlan | Survey:
    """The search of a part of a preemptor's domains, where it divides: to be put together by `merging.merged`.

    A survey is returned where all domains must be estimated before any is selected; see ``Attempt.survey``.
    """
    return DIVISIBLE[attempt.policy.solver(attempt.action)].survey(attempt, host) or propose(attempt, host)


def propose(attempt: Attempt, host: Host | None = None) -> Plan | NoPlan:
    """What `proposed` answers, explained in full."""
    outcome = proposed(attempt, host)
    return outcome if isinstance(outcome, Plan) or outcome.explain is None else NoPlan(outcome.in_full)


def proposed(attempt: Attempt, host: Host | None = None) -> Plan | NoPlan:
    """Find the least harmful way to make room for the attempt's preemptor (PREEMPT or RECLAIM).

    Where there is none, it is left to the caller whether to find out what stands in the way (``NoPlan.in_full``).

    Parameters
    ----------
    host
        Of the same snapshot, policy and clock, if the caller has one already.

    Raises
    ------
    PolicyRefused
        If the policy names a solver for the action that does not exist.
    """
    solver, host = solver_of(attempt.policy, attempt.action), host or host_of(attempt)
    outcome = solver.propose(attempt, host)
    if isinstance(outcome, Plan) and not _holds(host, outcome.statement):
        # A mistake of the solver costs the plan, but never a wrong eviction.
        why = replace(outcome.explanation, reason=Reason.UNPLACEABLE, domain=NONE, bundles=(), given_back=0)
        return NoPlan(why)
    if isinstance(outcome, Plan):
        asked = Question(attempt, host, solver.victim_point(attempt.purpose), Reason.CHOSEN)
        return replace(outcome, explanation=with_victims(asked, outcome))
    why, point = outcome.explanation, solver.victim_point(attempt.purpose)
    return NoPlan(why, partial(with_obstacles, attempt, host, why, point))


def _holds(host: Host, made: Statement) -> bool:
    """Whether there is room for the tasks that a statement places, and they may be on those nodes."""
    return feasible(host.context.snapshot, made) and well_placed(host, made)
