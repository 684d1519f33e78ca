"""The solver ``scenarios``: that of KAI Scheduler ("Reclaim and Preempt"), without the cases that it misses.

Victims accumulate in the reverse of the order in which podgroups are served, until the preemptor fits. Victims that are
not needed return, and those that can be placed elsewhere move. A plan is judged by the victims that lose their place.
If those may not be taken, longer scenarios are tried one after the other; their victims may find other places.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Bools, Longs, Rows, all_true
from pipeline.cluster.orders import first_of
from pipeline.cluster.resources import fits
from pipeline.cluster.rules.minimum import whole_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Explanation, Reason
from pipeline.decision.headroom import takes_after
from pipeline.decision.law import lawful, passes, victim_point, why_not_taken
from pipeline.decision.plan import NoPlan, Plan, explained, making_room, plan_of
from pipeline.decision.price import lost_work, price_of
from pipeline.decision.statement import Statement, taking_back
from pipeline.placement.domains import domains_of
from pipeline.placement.layout.other_ways import other_ways
from pipeline.placement.need import Need, need_of
from pipeline.placement.outranked import or_breaking, or_withdrawing
from pipeline.placement.promises import moving_alone
from pipeline.placement.refusal import refusal_of
from pipeline.placement.taken_again import taken_again
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Policy, Purpose
from pipeline.records import replace
from pipeline.solvers.scenarios.accumulating import Reached, accumulated
from pipeline.solvers.scenarios.asking import asked_for
from pipeline.solvers.scenarios.budget import Budget
from pipeline.solvers.scenarios.cheapest import cheapest, spares_lawfully
from pipeline.solvers.scenarios.grounds import Grounds, grounds_of
from pipeline.solvers.scenarios.law import Law, taken
from pipeline.solvers.scenarios.moves.restarting import may_wait
from pipeline.solvers.scenarios.moves.room_bound import RoomBound
from pipeline.solvers.scenarios.moves.trying import WorkingScenario, first_lawful, outcome
from pipeline.solvers.scenarios.signatures import failed, signature_of
from pipeline.solvers.scenarios.small_sets import first_lawful_set
from pipeline.solvers.scenarios.units import VictimUnits, victim_units

__all__ = ["lawful", "passes", "propose", "still_lawful", "victim_point", "whole_or_none", "widest_dealt"]

#: A scenario in which victims find other places is as much work as this many that are only counted.
_MOVING = 8
#: Wider gangs are searched for one by one: for each it is weighed whether one wide podgroup goes in place of several.
_WIDEST = 16
#: At most this many other ways to make up a minimum are searched for.
_WAYS = 8


def widest_dealt(_policy: Policy) -> int:
    """Small podgroups alike are served by one search."""
    return _WIDEST


def propose(attempt: Attempt, host: Host) -> Plan | NoPlan:
    """Room for what the attempt's podgroups ask for now.

    Where there is none, or where that spares running work, less important podgroups of the queue lose what they were
    promised.
    """
    found = _with_promises(attempt, host)
    other = or_breaking(attempt, host, found, _withdrawing)
    return found if other is found or isinstance(_lasting(attempt, host, other), NoPlan) else other


def _with_promises(attempt: Attempt, host: Host) -> Plan | NoPlan:
    """Room beside the promises of others, or instead of those that may be withdrawn by themselves."""
    found = _lasting(attempt, host, _proposed(attempt, host))
    other = or_withdrawing(attempt, host, found, _withdrawing)
    if other is found:
        return found
    lasting = _lasting(attempt, host, other)
    return found if isinstance(found, Plan) and isinstance(lasting, NoPlan) else lasting


def _withdrawing(freed: Attempt, host: Host) -> Plan | NoPlan:
    return _proposed(freed, host, withdraws=True)


def _lasting(attempt: Attempt, host: Host, found: Plan | NoPlan) -> Plan | NoPlan:
    """The outcome, unless another queue would take from the preemptor again what the plan gives it."""
    if isinstance(found, NoPlan) or not taken_again(attempt, host, found, _proposed):
        return found
    why = found.explanation
    return NoPlan(Explanation(why.purpose, why.preemptor, why.minimum, Reason.TAKEN_AGAIN))


def _proposed(attempt: Attempt, host: Host, *, withdraws: bool = False) -> Plan | NoPlan:
    """Room for what comes first; where nothing makes room for that, for other tasks that make up the minimum."""
    need = asked_for(host, attempt.podgroups)
    found = _for_need(attempt, host, need, withdraws=withdraws)
    if isinstance(found, Plan) or found.explanation.reason is not Reason.UNPLACEABLE:
        return found
    ways = islice(_others(attempt, host, need), _WAYS)
    made = (_for_need(attempt, host, one, withdraws=withdraws) for one in ways)
    return next((one for one in made if isinstance(one, Plan)), found)


def _others(attempt: Attempt, host: Host, need: Need) -> Iterator[Need]:
    """Other ways to make up the minimum of a need; none for one that only grows."""
    snapshot = attempt.snapshot
    if not need_of(snapshot, attempt.podgroups, surplus=False).minimum:
        return iter(())

    def room() -> Longs:
        left = snapshot.room.future.copy()
        rows = victim_units(host, Preemptor(attempt.podgroups, need.total, attempt.purpose)).rows
        snapshot.add_requests(rows, left, snapshot.tasks.node[rows])
        return left

    offered = domains_of(host, attempt.podgroups, attempt.purpose) if attempt.domains is None else attempt.domains
    others = other_ways(host, snapshot, need, offered, room)
    return (one for one in others if set(one.tasks.tolist()) != set(need.tasks.tolist()))


def _for_need(attempt: Attempt, host: Host, need: Need, *, withdraws: bool) -> Plan | NoPlan:
    """Room for one way to make up the minimum."""
    preemptor = Preemptor(attempt.podgroups, need.total, attempt.purpose)
    law = Law(host, preemptor)
    refused = _refused(attempt, host, need, law)
    if refused is not None:
        return NoPlan(explained(attempt, need.minimum, refused))
    known = attempt.snapshot.once(failed)
    reason = known.reason(signature_of(attempt, need)) if known.any else None
    if reason is None:
        found = _searched(attempt, host, need, law, withdraws=withdraws)
        if not isinstance(found, Reason):
            return _plan(attempt, host, need, found)
        reason = found
        if reason is not Reason.BUDGET:  # another order of scenarios might have found one
            known.add(signature_of(attempt, need), reason)
    return NoPlan(explained(attempt, need.minimum, reason))


def _searched(attempt: Attempt, host: Host, need: Need, law: Law, *, withdraws: bool) -> WorkingScenario | Reason:
    """The best scenario of all slices of nodes, or why there is none.

    Without any victim that could go there is none either, unless promises are withdrawn.
    """
    units = victim_units(host, law.preemptor)
    if len(units) == 0 and not withdraws:
        return Reason.NO_CANDIDATES  # room that is there already is for `allocate`
    if not (law.takes(NO_ROWS) or law.takes(units.rows)):
        return Reason.QUOTA
    if law.moves_all:
        units = _starting_again(host, units)
    grounds, budget = grounds_of(attempt, law, need, units), Budget(attempt.policy.search_budget)
    found = None if law.moves_all else _least(grounds, budget)
    if found is not None:
        return found
    if not law.allows_any:
        return Reason.QUOTA
    if law.moves_all or attempt.purpose is Purpose.RECLAIM:
        budget = Budget(attempt.policy.search_budget // _MOVING)
        found = _moving(grounds, budget)
    if not (law.moves_all or law.refuses_all) and (found is None or len(found.victims.moved) == 0):
        found = _of_all(grounds) or _nearest_first(attempt, law, need, units) or found
    if found is not None:
        return found
    if budget.left < 0:
        return Reason.BUDGET
    return Reason.UNPLACEABLE


def _starting_again(host: Host, units: VictimUnits) -> VictimUnits:
    """The units without tasks that can only stay, since they would not start again."""
    kept = units.without(~may_wait(host, units.rows))
    return replace(kept, turn=np.arange(len(kept)))


def _refused(attempt: Attempt, host: Host, need: Need, law: Law) -> Reason | None:
    """Why there is no search."""
    snapshot, rows = attempt.snapshot, list(attempt.podgroups)
    waits = len(need.tasks) > 0
    may = all_true(snapshot.tasks.may_preempt[need.tasks]) and all_true(snapshot.podgroups.may_preempt[rows])
    never = waits and not may
    refused = refusal_of(attempt, host, short=not waits or need.short > 0, never=never)
    if refused is not None:
        return refused
    if law.moves_all:
        if not snapshot.podgroups.preemptible[rows].all():
            return Reason.LASTS
        if not fits(need.total, snapshot.room.free):
            return Reason.UNPLACEABLE
        return Reason.TAKEN_AGAIN if _would_be_taken(host, attempt.podgroups, need) else None
    if attempt.purpose is Purpose.RECLAIM and not host.preemptive(law.preemptor):
        return Reason.QUOTA
    return None


def _would_be_taken(host: Host, podgroups: tuple[int, ...], need: Need) -> bool:
    """Whether another queue may reclaim the room while this one may not: then moves would be of no use."""
    snapshot = host.context.snapshot
    groups = snapshot.podgroups
    if host.preemptive(Preemptor(podgroups, need.total, Purpose.RECLAIM)):
        return False
    mine, waiting = groups.queue[podgroups[0]], np.flatnonzero(host.starving & host.valid)
    waiting = waiting[host.queue_rank[groups.queue[waiting]] < host.queue_rank[mine]]
    waiting = waiting[np.argsort(host.job_rank[waiting])]
    for row in waiting[first_of(groups.queue[waiting])[0]].tolist():
        asks = asked_for(host, (row,))
        if len(asks.tasks) and host.preemptive(Preemptor((row,), asks.total, Purpose.RECLAIM)):
            return True
    return False


def _nearest_first(attempt: Attempt, law: Law, need: Need, units: VictimUnits) -> WorkingScenario | None:
    """The same as ``_least`` where the units of the nearest queues go first: others can be lawful only beside them."""
    near = law.nearness(units.podgroup)
    if all_true(near == near[:1]):
        return None
    units = replace(units.arranged((-near).argsort(kind="stable")), turn=units.turn)
    return _least(grounds_of(attempt, law, need, units), Budget(attempt.policy.search_budget), strict=True)


def _least(grounds: Grounds, budget: Budget, *, strict: bool = False) -> WorkingScenario | None:
    """The scenario of the slice of nodes for which the queue of victims is followed least far."""
    best, before = None, len(grounds.units)
    for domain, lead in grounds.offered():
        if budget.left < 0:
            break
        if lead >= before:
            continue
        found = accumulated(grounds.scenario(domain, keeps=True), before, budget, spares_lawfully, strict=strict)
        if found is not None:
            best, before = found, found.turn
        elif grounds.law.refuses_all:  # then only room that is there already is of use
            before = 0
    return None if best is None else _outcome(best)


def _outcome(found: Reached) -> WorkingScenario | None:
    """What remains of a scenario; if it holds only with places that were kept, all is laid out anew each time."""
    scenario = found.scenario
    made = outcome(scenario, cheapest(found))
    if made is None and not scenario.ground.plain:
        scenario = replace(scenario, ground=replace(scenario.ground, keeps=False))
        made = outcome(scenario, cheapest(replace(found, scenario=scenario)))
    return made


def _moving(grounds: Grounds, budget: Budget) -> WorkingScenario | None:
    """The same with longer scenarios, one after the other, whose victims may find other places."""
    best, before, bound = None, len(grounds.units), RoomBound(grounds)
    for domain, lead in grounds.offered():
        if budget.left < 0:
            break
        if lead >= before:
            continue
        scenario = grounds.scenario(domain).up_to(before)
        if grounds.law.loses_none:  # then nothing of a podgroup has to go with what makes room
            scenario = replace(scenario, units=scenario.ground.only_here(scenario.units))
        found = first_lawful(scenario, budget, bound) if bound.may_suffice(scenario.ground, scenario.units) else None
        if found is not None:
            before, best = found
    return best


def _of_all(grounds: Grounds) -> WorkingScenario | None:
    """A set of few victims that is lawful as a whole, in the first slice of nodes that has one."""
    made = (first_lawful_set(replace(grounds.scenario(domain), units=grounds.units)) for domain, _ in grounds.offered())
    return next((one for one in made if one is not None), None)


def _plan(attempt: Attempt, host: Host, need: Need, found: WorkingScenario) -> Plan:
    snapshot, victims, domain = attempt.snapshot, found.victims, found.ground.domain
    columns = need.tasks[: need.minimum], *found.places
    moves = victims.moved, victims.node, victims.card
    rows, nodes, cards = map(np.concatenate, zip(columns, moves, strict=True)) if len(victims.moved) else columns
    made = making_room(attempt, victims.evicted, rows, nodes, cards)
    alone = moving_alone(snapshot, victims.lost)
    made = taking_back(made, alone) if len(alone) else made
    rank = host.price_rank(attempt.purpose, attempt.podgroups[0])  # moves are priced too, since they restart tasks
    price = price_of(snapshot, made.evictions, need.total, lost_work(snapshot, attempt.now), rank, domain)
    return plan_of(attempt, made, price, explained(attempt, need.minimum, Reason.CHOSEN, domain))


def still_lawful(host: Host, preemptor: Preemptor, made: Statement, _unchanged: bool) -> str | None:
    """Why the victims may not be taken, or None; asked even if nothing changed."""
    refused = why_not_taken(host, preemptor, made.evictions, taken(host.context.policy, made))
    within = refused is not None or takes_after(host, preemptor, made, made.evictions)
    return refused if within else "the queue may not take more"


def whole_or_none(snapshot: Snapshot, podgroups: Rows, victims: Rows) -> Bools:
    """Those that the victims leave without their minimum: what is left of a gang that had none before is one unit."""
    return ~whole_without(snapshot, podgroups, victims)
