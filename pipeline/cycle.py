"""A cycle: every action of the policy in order over one snapshot. The only interpreter of a policy.

``clearway simulate``, the tests and the live dispatcher run these lines. Where to search, what observes the cycle and
what commits are arguments.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.actions.backoff import Backoff
from pipeline.actions.holding_back import with_starts_held_back
from pipeline.actions.progress import Progress, StateSoFar, Unplaced
from pipeline.actions.redeem import release
from pipeline.actions.registry import Action, actions_of
from pipeline.actions.setup import Setup
from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.explanation import Explanation
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.statement import Statement
from pipeline.decision.verdict import Accepted, Conflict, Stale, Verdict
from pipeline.keeping import cached_property
from pipeline.placement.conditions import Conditions, unscheduled_in
from pipeline.placement.undone import may_be_undone
from pipeline.policy import Policy, Purpose
from pipeline.records import replace

#: Takes the plans of a cycle in order and answers each; None: the plan was not judged and may be offered again.
Commit = Callable[[Sequence[Plan]], Sequence[Verdict | None]]


def accepted(plans: Sequence[Plan]) -> tuple[Verdict, ...]:
    """Commits everything, for a caller that is the only one to decide on this state."""
    return tuple(Accepted(plan.statement) for plan in plans)


@dataclass(frozen=True)
class Cycle:
    """What a cycle decided.

    Attributes
    ----------
    statements, explanations
        In order.
    state
        With all statements carried out.
    plans
        What was offered to be committed, in order.
    starving
        Gang groups that were searched for or paused.
    unplaced
        Those without any plan, once for each action.
    more
        Whether there is more to do even without news: gang groups had no turn, or a plan was refused or not judged.
    backoff
        For the next cycle.
    """

    statements: tuple[Statement, ...]
    explanations: tuple[Explanation, ...]
    state: StateSoFar
    plans: tuple[Plan, ...]
    starving: tuple[GangGroup, ...]
    unplaced: tuple[Unplaced, ...]
    more: bool
    backoff: Backoff

    @property
    def snapshot(self) -> Snapshot:
        """With all statements carried out."""
        return self.state.snapshot

    @cached_property
    def unscheduled(self) -> Conditions:
        """Why podgroups are not scheduled now."""
        return unscheduled_in(self.snapshot)


def cycle(
    snapshot: Snapshot, policy: Policy, now: float, setup: Setup | None = None, commit: Commit = accepted
) -> Cycle:
    """Run the policy's actions, and have what they decide committed together.

    Raises
    ------
    PolicyRefused
        For an action that is not known.
    """
    setup = (setup if setup is not None else Setup()).active_at(now)
    fresh = Progress(StateSoFar(snapshot), policy, now, setup, places_first=policy.once(_places_first))
    progress = with_starts_held_back(_run_actions, fresh)
    verdicts = tuple(commit(progress.plans)) if progress.plans else ()
    served = progress.served
    refused = (one for one in progress.unplaced if one.gang_group not in served)
    unplaced = [Unplaced(one.gang_group, one.action, one.found.in_full) for one in refused]
    return Cycle(
        statements=progress.statements,
        explanations=tuple(one.in_full if isinstance(one, NoPlan) else one for one in progress.explanations),
        state=progress.state,
        plans=progress.plans,
        starving=progress.starving,
        unplaced=_once_each(unplaced),
        more=progress.more or any(not isinstance(verdict, Accepted) for verdict in verdicts),
        backoff=_backoff_after(progress, snapshot, unplaced, verdicts),
    )


def _run_actions(progress: Progress) -> Progress:
    """Run the actions of the policy in order, until one would take what another has started.

    Those that serve podgroups in turns run again for podgroups that have had none, as they would in the next cycle.
    Then those that make room come first, so that nothing starts for these podgroups that one of them would take.
    """
    actions, begun = actions_of(progress.policy.actions), progress.snapshot
    progress = _run_in_order(progress, actions)
    if not progress.lost and (late := progress.without_turn()):
        again = sorted((action for action in actions if action.in_turns), key=lambda action: not action.makes_room)
        progress = _run_in_order(replace(progress, late=late), again)
    evicting = any(action.makes_room for action in actions)
    return progress if len(progress.retaken) else release(progress, begun, evicting=evicting)


def _run_in_order(progress: Progress, actions: Sequence[Action]) -> Progress:
    """Run some actions. Where one makes room that an earlier preempt would take later, preempt has another turn."""
    for at, action in enumerate(actions):
        before, preempts = len(progress.planned), [one for one in actions[:at] if one.purpose is Purpose.PREEMPT]
        progress = _run_action(progress, action)
        if preempts and _would_be_taken(progress, progress.plans[before:]):
            for preempt in preempts:
                progress = _run_action(progress, preempt)
    return progress


def _run_action(progress: Progress, action: Action) -> Progress:
    """Run one action, unless the cycle is to begin anew; actions that make room observe their own steps."""
    if len(progress.retaken):
        return progress
    if action.makes_room:
        return action.run(progress)
    with progress.setup.observer.step(action.name) as notes:
        before = len(progress.statements)
        progress = action.run(progress)
        notes.set(statements=len(progress.statements) - before)
    return progress


def _would_be_taken(progress: Progress, plans: Sequence[Plan]) -> bool:
    """Whether a gang group without a plan may yet take the room that some plans make, if the policy heeds that."""
    without_plan = [one.gang_group for one in progress.unplaced] if progress.policy.takes_back_starts else []
    return bool(without_plan) and any(may_be_undone(progress.snapshot, plan, without_plan) for plan in plans)


def _once_each(unplaced: Sequence[Unplaced]) -> tuple[Unplaced, ...]:
    """One reason for each gang group and action, the first: an action that goes task by task may search twice."""
    first: dict[tuple[GangGroup, str], Unplaced] = {}
    for one in unplaced:
        first.setdefault((one.gang_group, one.action), one)
    return tuple(first.values())


def _places_first(policy: Policy) -> bool:
    """Whether no action that places tasks comes after one that evicts."""
    makes_room = [action.makes_room for action in actions_of(policy.actions) if action.purpose is not Purpose.CLEAR]
    return makes_room == sorted(makes_room)


def next_due(snapshot: Snapshot, policy: Policy, now: float) -> float | None:
    """When a policy next has something to do after a cycle at ``now``, even without news; seconds, None: never."""
    due = [action.due(snapshot, policy, now) for action in actions_of(policy.actions)]
    return min((at for at in due if at is not None), default=None)


def _backoff_after(
    progress: Progress, snapshot: Snapshot, unplaced: Sequence[Unplaced], verdicts: Sequence[Verdict | None]
) -> Backoff:
    """The backoff for the next cycle: gang groups without a plan pause, and those whose plan was refused.

    Where a search was lost, gang groups without a plan have not been through all actions, and do not pause.
    """
    refused = [
        (gang_group, plan)
        for (plan, gang_group), verdict in zip(progress.planned, verdicts, strict=True)
        if gang_group is not None and isinstance(verdict, Stale | Conflict)
    ]
    served = progress.served - {gang_group for gang_group, _ in refused}
    backoff = progress.setup.backoff.kept(set(progress.starving) - served)
    for gang_group, plan in refused:
        backoff = backoff.refused(gang_group, plan.explanation.minimum, snapshot, progress.now)
    if progress.lost:
        return backoff
    whys: dict[GangGroup, list[Explanation]] = {}
    for one in unplaced:
        whys.setdefault(one.gang_group, []).append(one.why)
    for gang_group, why in whys.items():
        minimum = max(one.minimum for one in why)
        backoff = backoff.unplaced(gang_group, minimum, snapshot, progress.now, _opens_at(why))
    return backoff


def _opens_at(whys: Sequence[Explanation]) -> float:
    """When what stood in the way of a plan may have ended by itself, seconds; infinite: never."""
    times = (one.until for why in whys for one in why.obstacles if one.until)
    return min(times, default=math.inf)
