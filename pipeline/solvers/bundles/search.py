"""The search of the bundle family: need, domains, bundles, vote and cover, for one preemptor in some domains.

The steps are those of "Gang-Aware Preemption and Reclaim"; added to them are bounds over all domains before any is
looked at, and the cheapest plan of all domains instead of the first that works.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows, dense_rank, frozen
from pipeline.cluster.cards import cards_for
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import CLOSEST, DomainTried, Explanation, Reason, Ruled
from pipeline.decision.plan import NoPlan, Plan, assumptions
from pipeline.decision.price import Price, lost_work
from pipeline.decision.refusal import refusal_of
from pipeline.decision.statement import statement
from pipeline.placement.compositions import compositions, has_choice
from pipeline.placement.domains import domains_of
from pipeline.placement.need import Need, all_of, need_of
from pipeline.plugins.extension_points import Preemptor
from pipeline.plugins.host import Host
from pipeline.policy import Purpose
from pipeline.solvers.bundles.lower_bounds import Bounds, bounds
from pipeline.solvers.bundles.node_clearing import node_rank, takes_whole_nodes
from pipeline.solvers.bundles.outranked import on, outranked, withdrawing, without
from pipeline.solvers.bundles.pricing import priceable, prices
from pipeline.solvers.bundles.selection import Selection, Shortfall, select
from pipeline.solvers.bundles.terms import Search


@dataclass(frozen=True)
class _Best:
    """The cheapest selection of all domains, what became of those looked at, and which were not."""

    selection: Selection | None
    tried: tuple[DomainTried, ...]
    ruled: Ruled


def propose(attempt: Attempt, host: Host) -> Plan | NoPlan:
    """The cheapest plan of all the attempt's domains (PREEMPT or RECLAIM), or why there is none.

    Parameters
    ----------
    host
        Of the attempt's snapshot, policy and clock.
    """
    found = _cheapest(attempt, host)
    rows = outranked(attempt)
    if len(rows) == 0 or (isinstance(found, Plan) and len(found.statement.evictions) == 0):
        return found
    freed = without(attempt, rows)
    other = _cheapest(freed, on(host, freed.snapshot))
    if isinstance(other, NoPlan) or (isinstance(found, Plan) and found.price <= other.price):
        return found
    return withdrawing(attempt, host, freed, other, rows)


def _cheapest(attempt: Attempt, host: Host) -> Plan | NoPlan:
    """The cheapest plan over all ways to make up the minimum."""
    found = [_for_need(attempt, host, need) for need in _needs(attempt, host)]
    plans = [one for one in found if isinstance(one, Plan)]
    return min(plans, key=lambda plan: plan.price) if plans else found[0]


def _for_need(attempt: Attempt, host: Host, need: Need) -> Plan | NoPlan:
    """The cheapest plan for one way to make up the minimum."""
    preemptor = Preemptor(attempt.podgroups, need.total, attempt.purpose)
    refused = _refusal(attempt, host, need, preemptor)
    if refused is not None:
        return NoPlan(_explained(attempt, need, refused))
    domains = _domains(attempt, host)
    if len(domains) == 0:
        return NoPlan(_explained(attempt, need, Reason.NO_DOMAIN))
    search = search_of(attempt, host, need, host.allowed(need.shapes), preemptor)
    best = _best_of(attempt, search, domains)
    return _plan(attempt, host, need, best)


def _domains(attempt: Attempt, host: Host) -> Rows:
    return domains_of(host, attempt.podgroups, attempt.purpose) if attempt.domains is None else attempt.domains


def _needs(attempt: Attempt, host: Host) -> Iterator[Need]:
    """The ways to make up the minimum, from tasks that some node could serve after every eviction that is legal."""
    snapshot = attempt.snapshot
    need = need_of(snapshot, attempt.podgroups, surplus=False)
    if not has_choice(snapshot, need):
        served = host.allowed(need.shapes).any(axis=1)
        most = np.full(len(snapshot.shapes), len(need.tasks), np.int64)
        most[need.shapes[~served]] = 0
        yield need if served.all() else need_of(snapshot, attempt.podgroups, surplus=False, most=most)
        return
    most = _most(attempt, host)
    limited = need_of(snapshot, attempt.podgroups, surplus=False, most=most)
    yield from compositions(snapshot, limited if not limited.short else need, most)


def _most(attempt: Attempt, host: Host) -> Longs:
    """int64 over the snapshot's shapes: how many tasks of each one domain could take after every legal eviction."""
    snapshot = attempt.snapshot
    every = all_of(need_of(snapshot, attempt.podgroups))
    allowed, domains = host.allowed(every.shapes), _domains(attempt, host)
    search = search_of(attempt, host, every, allowed, Preemptor(attempt.podgroups, every.total, attempt.purpose))
    limits = bounds(snapshot, every, allowed, search.candidate, domains, search.lost_work, costs=False)
    most = np.zeros(len(snapshot.shapes), np.int64)
    most[every.shapes] = limits.reachable.max(axis=0, initial=0)
    return most


def _refusal(attempt: Attempt, host: Host, need: Need, preemptor: Preemptor) -> Reason | None:
    """Why the preemptor may evict no task at all, or None."""
    snapshot, rows = attempt.snapshot, list(attempt.podgroups)
    may = snapshot.podgroups.may_preempt[rows].all() and snapshot.tasks.may_preempt[need.tasks].all()
    refused = refusal_of(attempt, host, short=need.short > 0 or need.minimum == 0, never=not may)
    if refused is None and attempt.purpose is Purpose.RECLAIM and not host.preemptive(preemptor):
        return Reason.QUOTA
    return refused


def search_of(attempt: Attempt, host: Host, need: Need, allowed: Bools, preemptor: Preemptor) -> Search:
    """What the selection in each domain needs to know of policy.

    Preempt ranks priority ahead of efficiency, reclaim queue fairness ahead and priority behind (3.5).
    """
    groups, policy = attempt.snapshot.podgroups, attempt.policy
    nothing = np.zeros(len(groups), np.int64)
    if attempt.purpose is Purpose.PREEMPT:
        before, after, queue_rank = groups.priority.astype(np.int64), -host.job_rank, nothing
    else:
        before = host.victim_queue_rank(int(groups.queue[attempt.podgroups[0]]))[groups.queue]
        after, queue_rank = dense_rank(groups.priority, -host.job_rank), before
    candidate, lost = host.candidates(preemptor), lost_work(attempt.snapshot, attempt.now)
    if (
        policy.node_by_node
        and attempt.purpose is Purpose.PREEMPT
        and takes_whole_nodes(attempt.snapshot, need, allowed)
    ):
        before = node_rank(attempt.snapshot, need, candidate, lost, before)
    return Search(
        snapshot=attempt.snapshot,
        need=need,
        allowed=frozen(allowed, np.bool_),
        candidate=frozen(candidate, np.bool_),
        before=frozen(before, np.int64),
        after=frozen(after, np.int64),
        queue_rank=frozen(queue_rank, np.int64),
        lost_work=frozen(lost, np.float64),
        quota_filter=(lambda rows: host.bundle_quota_filter(preemptor, rows)) if host.has_quota(preemptor) else None,
        validate_set=lambda rows: host.validate_set(preemptor, rows),
        allow_whole=policy.allow_whole_bundle,
        cluster_wide=policy.whole_gangs_everywhere,
        efficiency_step=policy.efficiency_step,
        by_priority=attempt.purpose is Purpose.PREEMPT,
    )


def _best_of(attempt: Attempt, search: Search, domains: Rows) -> _Best:
    """The cheapest selection of all domains that are not hopeless.

    Where slots decide, all of them are priced at once and the cheapest that is lawful is selected. Elsewhere they are
    selected one by one, best first by their lower bounds, until no bound can beat what was found.
    """
    at_once = priceable(search) and not attempt.policy.first_fit and not attempt.policy.max_domains
    limits = bounds(
        search.snapshot, search.need, search.allowed, search.candidate, domains, search.lost_work, costs=not at_once
    )
    hopeless: Bools = np.asarray((limits.reachable < search.need.count).any(axis=1))
    order = _in_order(limits, domains, search, hopeless)
    if at_once:
        return _cheapest_first(attempt, search, domains, limits, hopeless, order)
    return _best_first(attempt, search, domains, limits, hopeless, order)


def _cheapest_first(
    attempt: Attempt, search: Search, domains: Rows, limits: Bounds, hopeless: Bools, order: list[int]
) -> _Best:
    """Select in the domain of the lowest price; the next one only if the law refuses there or makes it dearer."""
    priced, unpriced = prices(search, domains[order])
    told = dict(zip(order, priced, strict=True))
    best: Selection | None = None
    fallen: dict[int, Reason] = {}
    for at in sorted((at for at in order if told[at] is not None), key=lambda at: _known(told[at])):
        if best is not None and best.price <= _known(told[at]):
            break
        found = select(search, int(domains[at]))
        if isinstance(found, Shortfall):
            fallen[at] = found.reason
        elif best is None or found.price < best.price:
            best = found
    if unpriced.any() and fallen:
        # The law took what the others were measured against: look at each.
        return _best_first(attempt, search, domains, limits, hopeless, order)
    skipped = hopeless.copy()
    skipped[np.array(order, np.int64)[unpriced]] = True
    row, room, reachable = domains.tolist(), limits.room.min(axis=1).tolist(), limits.reachable.min(axis=1).tolist()
    tried = [
        DomainTried(
            row[at],
            fallen.get(at, Reason.COSTLIER if told[at] is not None else Reason.UNPLACEABLE),
            told[at],
            room[at],
            reachable[at],
        )
        for at in order
        if not skipped[at]
    ]
    return _Best(best, _by_domain(tried), _ruled(domains, limits, hopeless, skipped))


def _known(price: Price | None) -> Price:
    assert price is not None
    return price


def _best_first(
    attempt: Attempt, search: Search, domains: Rows, limits: Bounds, hopeless: Bools, order: list[int]
) -> _Best:
    """Select in one domain after the other while their bounds leave a chance."""
    tried: list[DomainTried] = []
    unseen = hopeless.copy()
    best: Selection | None = None
    for at in order:
        price = None if best is None else best.price
        if price is not None and (attempt.policy.first_fit or not _could_beat(limits, at, price)):
            unseen[at] = True
            continue
        domain, room, reachable = int(domains[at]), int(limits.room[at].min()), int(limits.reachable[at].min())
        if len(tried) == (attempt.policy.max_domains or len(domains)):
            tried.append(DomainTried(domain, Reason.BUDGET, None, room, reachable))
            break
        found = select(search, domain)
        if isinstance(found, Shortfall):
            tried.append(DomainTried(domain, found.reason, None, room, reachable))
            continue
        tried.append(DomainTried(domain, Reason.COSTLIER, found.price, room, reachable))
        if best is None or found.price < best.price:
            best = found
    return _Best(best, _by_domain(tried), _ruled(domains, limits, hopeless, unseen))


def _by_domain(tried: list[DomainTried]) -> tuple[DomainTried, ...]:
    return tuple(sorted(tried, key=lambda entry: entry.domain))


def _ruled(domains: Rows, limits: Bounds, hopeless: Bools, unseen: Bools) -> Ruled:
    """The domains that were not looked at."""
    out = np.flatnonzero(unseen)
    return Ruled(domains[out], limits.room[out].min(axis=1), limits.reachable[out].min(axis=1), ~hopeless[out])


def _in_order(limits: Bounds, domains: Rows, search: Search, hopeless: Bools) -> list[int]:
    """Positions of the hopeful domains: fewest gangs, least work, most room, narrowest, first."""
    hopeful = np.flatnonzero(~hopeless)
    tier = search.snapshot.topology.tier[domains[hopeful]]
    room = -limits.room[hopeful].sum(axis=1)
    keys = (domains[hopeful], tier, room, limits.lost_work[hopeful], limits.gangs[hopeful])
    return [int(at) for at in hopeful[np.lexsort(keys)]]


def _could_beat(limits: Bounds, at: int, price: Price) -> bool:
    """Whether the domain's lower bound leaves a chance to be cheaper than ``price``."""
    gangs, work = int(limits.gangs[at]), float(limits.lost_work[at])
    if gangs != price.gangs_broken:
        return gangs < price.gangs_broken
    if int(limits.priority[at]) < price.highest_priority or price.important:  # nothing bounds how many
        return True
    return work <= price.lost_work


def _why_none(best: _Best) -> Reason:
    """The reason that came closest to a plan."""
    reasons = {entry.reason for entry in best.tried}
    return next((reason for reason in CLOSEST if reason in reasons), Reason.BOUND)


def _explained(attempt: Attempt, need: Need, reason: Reason, best: _Best | None = None) -> Explanation:
    purpose, podgroup = attempt.purpose.value, attempt.podgroups[0]
    if best is None:
        return Explanation(purpose, podgroup, need.minimum, reason)
    return Explanation(purpose, podgroup, need.minimum, reason, tried=best.tried, ruled=best.ruled)


def _plan(attempt: Attempt, host: Host, need: Need, best: _Best) -> Plan | NoPlan:
    """Wrap the best selection up."""
    selection = best.selection
    if selection is None:
        return NoPlan(_explained(attempt, need, _why_none(best), best))
    snapshot, placed = attempt.snapshot, need.tasks[: need.minimum]
    made = statement(
        attempt.asked_by,
        attempt.podgroups[0],
        purpose=attempt.purpose,
        evictions=selection.victims,
        nominated=placed,
        nominated_node=selection.node,
        nominated_card=cards_for(
            snapshot.tasks, snapshot.shapes, snapshot.card_room, (placed, selection.node), selection.victims,
            spread=host.spreads_cards,
        ),
    )  # fmt: skip
    domain = selection.price.domain
    explanation = replace(
        _explained(attempt, need, Reason.CHOSEN, best),
        domain=domain,
        tried=tuple(replace(d, reason=Reason.CHOSEN) if d.domain == domain else d for d in best.tried),
        bundles=selection.bundles,
        given_back=selection.given_back,
    )
    expires_at = attempt.now + attempt.policy.plan_ttl_s
    return Plan(made, assumptions(attempt, made), selection.price, domain, expires_at, explanation)
