"""The solver ``bundles``: whole gangs as victims and preemptors; need, domains, bundles, vote and cover.

The steps are those of "Gang-Aware Preemption and Reclaim"; added to them are bounds over all domains before any is
looked at, and the cheapest plan of all domains is taken instead of the first that works.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows, frozen
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.orders import total_rank
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.rules.sparing import Quota, no_quota
from pipeline.decision.attempt import Attempt, Survey
from pipeline.decision.explanation import Explanation, Reason, closest
from pipeline.decision.headroom import line_limits
from pipeline.decision.law import lawful, passes, still_lawful, victim_point, whole_or_none
from pipeline.decision.plan import NoPlan, Plan, explained, making_room, plan_of, prices_in_one_unit, unproved
from pipeline.decision.price import lost_work
from pipeline.placement.compositions import compositions, has_choice
from pipeline.placement.domains import domains_of
from pipeline.placement.need import Need, need_of, need_of_all, without_shapes
from pipeline.placement.outranked import or_breaking, or_withdrawing, outranked_promises
from pipeline.placement.refusal import refusal_of
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Policy, Purpose
from pipeline.records import replace
from pipeline.solvers.bundles.bundling.budget_columns import MOST_BUDGETS, NO_BUDGETS, binding
from pipeline.solvers.bundles.bundling.bundle_search import EFFORT, BundleSearch
from pipeline.solvers.bundles.bundling.node_clearing import takes_whole_nodes
from pipeline.solvers.bundles.bundling.records import Rules
from pipeline.solvers.bundles.covering.chosen import victims_by_bundle
from pipeline.solvers.bundles.elsewhere import or_elsewhere
from pipeline.solvers.bundles.lower_bounds import slot_bounds
from pipeline.solvers.bundles.over_compositions import costs_more, over_compositions
from pipeline.solvers.bundles.over_domains import Best, best_of
from pipeline.solvers.bundles.surveying import slots_decide, survey_of

__all__ = [
    "divides", "lawful", "passes", "propose", "search_of", "still_lawful", "survey", "victim_point", "whole_or_none",
    "widest_dealt",
]  # fmt: skip

#: Wider gangs are searched for one by one: each of them is a search of its own size.
_WIDEST = 512


def widest_dealt(policy: Policy) -> int:
    """Podgroups alike are served by one search, unless the policy keeps the order of bundles."""
    return _WIDEST if policy.cheapest_set else 0


def propose(attempt: Attempt, host: Host) -> Plan | NoPlan:
    """The cheapest plan of all the attempt's domains (PREEMPT or RECLAIM), or why there is none.

    Parameters
    ----------
    host
        The plugins on the attempt's snapshot, policy and clock.
    """
    found = or_withdrawing(attempt, host, _cheapest(attempt, host), _cheapest)
    found = or_breaking(attempt, host, found, _cheapest)
    return or_elsewhere(attempt, host, found, _cheapest)


def divides(attempt: Attempt) -> bool:
    """Whether parts of the attempt's domains can be surveyed apart, so that the choice can be made from all of them.

    They cannot where the search ends early, where the costs of all domains decide between needs or snapshots, or where
    slots do not decide: then a domain has no price before it is selected.
    """
    snapshot, policy = attempt.snapshot, attempt.policy
    if policy.first_fit or policy.max_domains or len(outranked_promises(attempt, breaking=True)):
        return False
    need = need_of(snapshot, attempt.podgroups, surplus=False)
    plain = need.plain and not concerns(snapshot, need.tasks)
    return plain and slots_decide(need) and not has_choice(snapshot, need)


def survey(attempt: Attempt, host: Host) -> Survey | None:
    """Estimates of the attempt's domains, where it divides; None where it may not evict."""
    need, domains = next(_needs(attempt, host)), _domains(attempt, host)
    if _refusal(attempt, host, need) is not None or len(domains) == 0:
        return None
    return survey_of(search_of(attempt, host, need), domains)


def _cheapest(attempt: Attempt, host: Host) -> Plan | NoPlan:
    """The cheapest plan over all ways to make up the minimum."""
    needs = [*_needs(attempt, host)]
    if len(needs) == 1:
        return _for_need(attempt, host, needs[0])
    found = over_compositions(attempt, host, needs, _for_need)
    plans = [one for one in found if isinstance(one, Plan)]
    if not plans:
        return unproved(found[0])
    prices = prices_in_one_unit([(attempt, plan) for plan in plans], host)
    return unproved(plans[prices.index(min(prices))])


def _for_need(attempt: Attempt, host: Host, need: Need, known: Sequence[Plan] = ()) -> Plan | NoPlan:
    """The cheapest plan for one way to make up the minimum; none if those ``known`` for others cost less anyway."""
    refused = _refusal(attempt, host, need)
    if refused is not None:
        return NoPlan(_explained(attempt, need, refused))
    domains = _domains(attempt, host)
    if len(domains) == 0:
        return NoPlan(_explained(attempt, need, Reason.NO_DOMAIN))
    search = search_of(attempt, host, need)
    if costs_more(search, domains, known):
        return NoPlan(_explained(attempt, need, Reason.BOUND))
    best = best_of(attempt, search, domains)
    return _plan(attempt, host, search, best)


def _domains(attempt: Attempt, host: Host) -> Rows:
    return domains_of(host, attempt.podgroups, attempt.purpose) if attempt.domains is None else attempt.domains


def _needs(attempt: Attempt, host: Host) -> Iterator[Need]:
    """The ways to make up the minimum, from tasks that some node could take after all legal evictions."""
    snapshot = attempt.snapshot
    need = need_of(snapshot, attempt.podgroups, surplus=False)
    if not has_choice(snapshot, need):
        served = host.allowed(need.shapes).any(axis=1)
        yield need if served.all() else without_shapes(snapshot, need, need.shapes[~served], surplus=False)
        return
    most = _most(attempt, host)
    limited = need_of(snapshot, attempt.podgroups, surplus=False, most=most)
    yield from compositions(snapshot, limited if not limited.short else need, most)


def _most(attempt: Attempt, host: Host) -> Longs:
    """int64 over the snapshot's shapes: how many tasks of each one domain could take after all legal evictions."""
    snapshot = attempt.snapshot
    every = need_of_all(need_of(snapshot, attempt.podgroups))
    slots = slot_bounds(search_of(attempt, host, every), _domains(attempt, host))
    most = np.zeros(len(snapshot.shapes), np.int64)
    most[every.shapes] = slots.reachable.max(axis=0, initial=0)
    return most


def _preemptor(attempt: Attempt, need: Need) -> Preemptor:
    return Preemptor(attempt.podgroups, need.total, attempt.purpose)


def _refusal(attempt: Attempt, host: Host, need: Need) -> Reason | None:
    """Why the preemptor may not evict any task, or None."""
    snapshot, rows = attempt.snapshot, list(attempt.podgroups)
    may = snapshot.podgroups.may_preempt[rows].all() and snapshot.tasks.may_preempt[need.tasks].all()
    refused = refusal_of(attempt, host, short=need.short > 0 or need.minimum == 0, never=not may)
    if refused is None and attempt.purpose is Purpose.RECLAIM and not host.preemptive(_preemptor(attempt, need)):
        return Reason.QUOTA
    if refused is Reason.TOO_FEW_TASKS and host.valid[rows].all():
        every = need_of(snapshot, attempt.podgroups, surplus=False)
        if every.minimum and not every.short:  # they exist, but those that no node could take were left out
            return Reason.CONSTRAINTS
    return refused


def search_of(attempt: Attempt, host: Host, need: Need) -> BundleSearch:
    """The input of the selection in each domain, for one way to make up the minimum."""
    policy, preemptor, allowed = attempt.policy, _preemptor(attempt, need), host.allowed(need.shapes)
    before, after, queue_rank = _ranks(attempt, host)
    candidate, lost = host.candidates(preemptor), lost_work(attempt.snapshot, attempt.now)
    counted = _counted(attempt, host, preemptor, candidate)
    quota, budgets = counted or (no_quota(), NO_BUDGETS)
    return BundleSearch(
        snapshot=attempt.snapshot,
        need=need,
        allowed=frozen(allowed, np.bool_),
        candidate=frozen(candidate, np.bool_),
        rank_before=frozen(before, np.int64),
        rank_after=frozen(after, np.int64),
        queue_rank=frozen(queue_rank, np.int64),
        lost_work=frozen(lost, np.float64),
        quota_filter=(lambda rows, unit: host.bundle_quota_filter(preemptor, rows, unit))
        if counted is None or quota.counted or len(budgets)
        else None,
        validate_set=lambda rows: host.validate_set(preemptor, rows),
        rules=_rules(attempt, asks_in_order=counted is None),
        by_node=policy.cheapest_set and takes_whole_nodes(attempt.snapshot, need, allowed),
        effort=EFFORT if policy.polish else 0,
        quota=quota,
        budgets=budgets,
        limits=lambda: line_limits(host, preemptor.podgroups[0]),
    )


def _ranks(attempt: Attempt, host: Host) -> tuple[Longs, Longs, Longs]:
    """int64[G] each: the ranks of podgroups before and after efficiency, and of their queues.

    Preempt ranks priority before efficiency; reclaim ranks queue fairness before and priority after it (3.5).
    """
    groups = attempt.snapshot.podgroups
    if attempt.purpose is Purpose.PREEMPT:
        return groups.priority.astype(np.int64), -host.job_rank, np.zeros(len(groups), np.int64)
    before = host.victim_queue_rank(int(groups.queue[attempt.podgroups[0]]))[groups.queue]
    # Counted from the end, the order numbers all podgroups from 0 on: that is sorted in half the time.
    return before, total_rank(groups.priority, len(groups) - 1 - host.job_rank), before


def _rules(attempt: Attempt, *, asks_in_order: bool) -> Rules:
    """The switches of the search, as the policy and the purpose say."""
    policy, preempts = attempt.policy, attempt.purpose is Purpose.PREEMPT
    return Rules(
        allow_whole=policy.allow_whole_bundle,
        cluster_wide=policy.whole_gangs_everywhere,
        asks_in_order=asks_in_order,
        keep_order=not policy.cheapest_set,
        by_priority=preempts,
        efficiency_step=policy.efficiency_step,
        tolerance=0.0 if preempts else policy.efficiency_step,
    )


def _counted(attempt: Attempt, host: Host, preemptor: Preemptor, candidate: Bools) -> tuple[Quota, Budgets] | None:
    """What quotas count, if all of it can be counted in columns; None: plugins have to be asked."""
    quotas = host.bundle_quotas(preemptor)
    if quotas is None:
        return None
    quota, several = quotas
    bind = [one for budgets in several if len(one := binding(attempt.snapshot, budgets, candidate))]
    if not bind:
        return quota, NO_BUDGETS
    if len(bind) > 1 or len(bind[0]) > MOST_BUDGETS or not attempt.policy.cheapest_set:
        return None
    return quota, bind[0]


def _explained(attempt: Attempt, need: Need, reason: Reason, best: Best | None = None) -> Explanation:
    why = explained(attempt, need.minimum, reason)
    return why if best is None else replace(why, tried=best.tried, ruled=best.ruled, lower_bound=best.lower_bound)


def _plan(attempt: Attempt, host: Host, search: BundleSearch, best: Best) -> Plan | NoPlan:
    """The best selection as a plan."""
    selection, need = best.selection, search.need
    if selection is None:
        why = closest((entry.reason for entry in best.tried), Reason.BOUND)
        return NoPlan(_explained(attempt, need, why, best))
    placed = need.tasks[: need.minimum], selection.node
    made = making_room(attempt, selection.victims, *placed, host.cards_for(*placed, selection.victims))
    explanation = replace(
        _explained(attempt, need, Reason.CHOSEN, best),
        domain=selection.price.domain,
        bundles=victims_by_bundle(search, selection.outcome),
        given_back=selection.given_back,
    )
    return plan_of(attempt, made, selection.price, explanation)
