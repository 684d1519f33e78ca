"""The search of the bundle family: need, domains, bundles, vote and cover, for one preemptor in some domains.

The steps are those of "Gang-Aware Preemption and Reclaim"; added to them are bounds over all domains before any is
looked at, and the cheapest plan of all domains is taken instead of the first that works.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows, dense_rank, frozen
from pipeline.cluster.cards import cards_for
from pipeline.cluster.rules.sparing import no_quota
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import CLOSEST, DomainTried, Explanation, LowerBound, Reason, Ruled, lacking_most
from pipeline.decision.plan import NoPlan, Plan, assumptions
from pipeline.decision.price import Price, lost_work
from pipeline.decision.refusal import refusal_of
from pipeline.decision.statement import statement
from pipeline.placement.compositions import compositions, has_choice
from pipeline.placement.domains import domains_of
from pipeline.placement.need import Need, all_of, need_of
from pipeline.placement.outranked import on, outranked, withdrawing, without
from pipeline.plugins.extension_points import Preemptor
from pipeline.plugins.host import Host
from pipeline.policy import Purpose
from pipeline.solvers.bundles.bundling.terms import Search
from pipeline.solvers.bundles.covering.exact import MOST
from pipeline.solvers.bundles.covering.selection import Selection, Shortfall, estimate, select
from pipeline.solvers.bundles.lower_bounds import CostBounds, Slots, cost_bounds, least_of_all, slot_bounds
from pipeline.solvers.bundles.node_clearing import node_rank, takes_whole_nodes
from pipeline.solvers.bundles.pricing import priceable, prices, slots_decide

#: Of domains that fell for lack of slots, at most this many report how much they lack.
_COUNTED = 8
#: Up to ``_FEW`` domains all are selected with effort; of more, the ``_RIVALS`` with the lowest prices.
_FEW = 16
_RIVALS = 3


@dataclass(frozen=True)
class _Best:
    """The cheapest selection of all domains, the outcomes of those looked at, and which were not looked at."""

    selection: Selection | None
    tried: tuple[DomainTried, ...]
    ruled: Ruled
    bound: LowerBound | None


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
        return _unproved(found)
    return _unproved(withdrawing(attempt, host, freed, other, rows))


def _cheapest(attempt: Attempt, host: Host) -> Plan | NoPlan:
    """The cheapest plan over all ways to make up the minimum."""
    found = [_for_need(attempt, host, need) for need in _needs(attempt, host)]
    plans = [one for one in found if isinstance(one, Plan)]
    best = min(plans, key=lambda plan: plan.price) if plans else found[0]
    return best if len(found) == 1 else _unproved(best)


def _unproved(outcome: Plan | NoPlan) -> Plan | NoPlan:
    """The outcome without its bound: it holds for one need on one snapshot, and others were looked at as well."""
    return replace(outcome, explanation=replace(outcome.explanation, bound=None))


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
    return _plan(attempt, host, search, best)


def _domains(attempt: Attempt, host: Host) -> Rows:
    return domains_of(host, attempt.podgroups, attempt.purpose) if attempt.domains is None else attempt.domains


def _needs(attempt: Attempt, host: Host) -> Iterator[Need]:
    """The ways to make up the minimum, from tasks that some node could take after all legal evictions."""
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
    """int64 over the snapshot's shapes: how many tasks of each one domain could take after all legal evictions."""
    snapshot = attempt.snapshot
    every = all_of(need_of(snapshot, attempt.podgroups))
    allowed, domains = host.allowed(every.shapes), _domains(attempt, host)
    search = search_of(attempt, host, every, allowed, Preemptor(attempt.podgroups, every.total, attempt.purpose))
    slots = slot_bounds(search, domains)
    most = np.zeros(len(snapshot.shapes), np.int64)
    most[every.shapes] = slots.reachable.max(axis=0, initial=0)
    return most


def _refusal(attempt: Attempt, host: Host, need: Need, preemptor: Preemptor) -> Reason | None:
    """Why the preemptor may not evict any task, or None."""
    snapshot, rows = attempt.snapshot, list(attempt.podgroups)
    may = snapshot.podgroups.may_preempt[rows].all() and snapshot.tasks.may_preempt[need.tasks].all()
    refused = refusal_of(attempt, host, short=need.short > 0 or need.minimum == 0, never=not may)
    if refused is None and attempt.purpose is Purpose.RECLAIM and not host.preemptive(preemptor):
        return Reason.QUOTA
    if refused is Reason.TOO_FEW_TASKS and host.valid[rows].all():
        every = need_of(snapshot, attempt.podgroups, surplus=False)
        if every.minimum and not every.short:  # they exist, but those that no node could take were left out
            return Reason.CONSTRAINTS
    return refused


def search_of(attempt: Attempt, host: Host, need: Need, allowed: Bools, preemptor: Preemptor) -> Search:
    """The input of the selection in each domain.

    Preempt ranks priority before efficiency; reclaim ranks queue fairness before and priority after it (3.5).
    """
    groups, policy = attempt.snapshot.podgroups, attempt.policy
    nothing = np.zeros(len(groups), np.int64)
    if attempt.purpose is Purpose.PREEMPT:
        before, after, queue_rank = groups.priority.astype(np.int64), -host.job_rank, nothing
    else:
        before = host.victim_queue_rank(int(groups.queue[attempt.podgroups[0]]))[groups.queue]
        after, queue_rank = dense_rank(groups.priority, -host.job_rank), before
    candidate, lost = host.candidates(preemptor), lost_work(attempt.snapshot, attempt.now)
    by_node = policy.cheapest_set and takes_whole_nodes(attempt.snapshot, need, allowed)
    return Search(
        snapshot=attempt.snapshot,
        need=need,
        allowed=frozen(allowed, np.bool_),
        candidate=frozen(candidate, np.bool_),
        before=frozen(before, np.int64),
        after=frozen(after, np.int64),
        queue_rank=frozen(queue_rank, np.int64),
        lost_work=frozen(lost, np.float64),
        quota_filter=(lambda rows, unit: host.bundle_quota_filter(preemptor, rows, unit))
        if host.has_quota(preemptor)
        else None,
        validate_set=lambda rows: host.validate_set(preemptor, rows),
        allow_whole=policy.allow_whole_bundle,
        cluster_wide=policy.whole_gangs_everywhere,
        efficiency_step=policy.efficiency_step,
        node_rank=node_rank(attempt.snapshot, need, candidate, lost, before) if by_node else None,
        keep_order=not policy.cheapest_set,
        by_priority=attempt.purpose is Purpose.PREEMPT,
        quota=host.bundle_quota(preemptor) or no_quota(),
    )


def _best_of(attempt: Attempt, search: Search, domains: Rows) -> _Best:
    """The cheapest selection of all domains that are not hopeless.

    Where slots decide, all of them are priced at once and the cheapest lawful one is selected. Elsewhere they are
    selected one by one, best first by lower bound, until no bound can beat the best price found.
    """
    slots = slot_bounds(search, domains)
    hopeless: Bools = np.asarray((slots.reachable < search.need.count).any(axis=1))
    tried = _Tried(attempt, search, domains, slots, hopeless)
    at_once = priceable(search) and not attempt.policy.first_fit and not attempt.policy.max_domains
    at_once = at_once and not _all_sets_tried(search, domains)
    return _cheapest_first(tried) if at_once else _best_first(tried, np.flatnonzero(~hopeless))


def _all_sets_tried(search: Search, domains: Rows) -> bool:
    """Whether all domains are so small that selecting in them tries every set of victims."""
    topology, start = search.snapshot.topology, search.site.start
    most = (start[topology.stop[domains]] - start[topology.start[domains]]).max(initial=0)
    return len(domains) <= _FEW and most <= MOST and not search.keep_order


@dataclass(frozen=True)
class _Tried:
    """The input of the search over domains; a domain is identified by its position in ``domains``."""

    attempt: Attempt
    search: Search
    domains: Rows
    slots: Slots
    hopeless: Bools

    def entry(self, at: int, reason: Reason, price: Price | None = None) -> DomainTried:
        """The outcome of a domain."""
        room, reachable, wanted = self._slots(np.array([at]))
        return DomainTried(int(self.domains[at]), reason, price, int(room[0]), int(reachable[0]), int(wanted[0]))

    def fallen(self, at: int, found: Shortfall) -> DomainTried:
        """The entry of a domain that fell when it was looked at."""
        slots = np.array([found.room], np.int64), np.array([found.reachable], np.int64)
        room, reachable, wanted = (int(of[0]) for of in lacking_most(self.search.need.count, *slots))
        return DomainTried(int(self.domains[at]), found.reason, None, room, reachable, wanted)

    def best(
        self, selection: Selection | None, tried: list[DomainTried], unseen: Bools, bounds: list[LowerBound | None]
    ) -> _Best:
        """The outcome; ``unseen`` bool[D] are the domains that were not looked at, ``bounds`` those of the parts."""
        bound = min((one for one in bounds if one is not None), default=None)
        out = np.flatnonzero(unseen)
        ruled = Ruled(self.domains[out], *self._slots(out), ~self.hopeless[out])
        return _Best(selection, tuple(sorted(tried, key=lambda entry: entry.domain)), ruled, bound)

    def _slots(self, rows: Rows) -> tuple[Longs, Longs, Longs]:
        return lacking_most(self.search.need.count, self.slots.room[rows], self.slots.reachable[rows])


def _cheapest_first(tried: _Tried) -> _Best:
    """Select in the domain of the lowest price; look at the next one only if the law refuses or raises the price.

    Domains in which anti-affinity matters cannot be priced at once; they are selected one by one.
    """
    search, hopeful = tried.search, np.flatnonzero(~tried.hopeless)
    plain = search.interchangeable(tried.domains[hopeful])
    priced = prices(search, tried.domains[hopeful[plain]])
    rows = zip(hopeful[plain].tolist(), priced.price, priced.effort.tolist(), strict=True)
    told = {at: (price, effort) for at, price, effort in rows}
    known = sorted((price, effort, at) for at, (price, effort) in told.items() if price is not None)
    best: Selection | None = None
    entries: dict[int, DomainTried] = {}
    law = False
    for price, effort, at in known:
        if best is not None and best.price <= price:
            entries[at] = tried.entry(at, Reason.COSTLIER, price)
            continue
        found = select(search, int(tried.domains[at]), effort)
        if isinstance(found, Shortfall):
            law, entries[at] = True, tried.fallen(at, found)
            continue
        entries[at] = tried.entry(at, Reason.COSTLIER, found.price)
        if best is None or found.price < best.price:
            best = found
    if priced.left.any() and law:
        # The law refused the price that the others were compared with: look at each.
        return _best_first(tried, hopeful)
    unseen = tried.hopeless.copy()
    unseen[hopeful[plain][priced.left]] = True
    without = [at for at, (price, _) in told.items() if price is None and not unseen[at]]
    bounds = [least_of_all(priced.bounds, search)]
    found_by_price = tried.best(best, [*entries.values(), *_without_slots(tried, without)], unseen, bounds)
    return _best_first(tried, hopeful[~plain], found_by_price)


def _without_slots(tried: _Tried, at: list[int]) -> list[DomainTried]:
    """Entries of domains whose bundles make too little room; for the first of them slots are counted."""
    entries = []
    for one in at[:_COUNTED]:
        found = select(tried.search, int(tried.domains[one]))
        if isinstance(found, Shortfall):
            entries.append(tried.fallen(one, found))
    return entries + [DomainTried(int(tried.domains[one]), Reason.UNPLACEABLE) for one in at[_COUNTED:]]


def _best_first(tried: _Tried, some: Rows, before: _Best | None = None) -> _Best:
    """Select in one domain after the other while their bounds leave a chance.

    Parameters
    ----------
    some: int64[H]
        Positions of the domains to look at.
    before
        The outcome so far.
    """
    policy = tried.attempt.policy
    bounds = cost_bounds(tried.search, tried.search.site, tried.domains[some])
    entries = [] if before is None else list(before.tried)
    unseen = tried.hopeless.copy()
    if before is not None:
        unseen |= np.isin(tried.domains, before.ruled.domain)
    best = None if before is None else before.selection
    estimated = np.zeros(len(some), bool)
    if len(some) > _FEW and slots_decide(tried.search):
        estimated = tried.search.interchangeable(tried.domains[some])
    for i in _in_order(tried, some, bounds):
        at, domain = int(some[i]), int(tried.domains[some[i]])
        cheapest = min((one.price for one in entries if one.price is not None), default=None)
        if cheapest is not None and (policy.first_fit or not _could_beat(tried.search, bounds, i, cheapest)):
            unseen[at] = True
            continue
        if len(entries) == (policy.max_domains or len(tried.domains)):
            entries.append(tried.entry(at, Reason.BUDGET))
            break
        price = estimate(tried.search, domain) if estimated[i] else None
        if price is not None:
            entries.append(tried.entry(at, Reason.COSTLIER, price))
            continue
        found = select(tried.search, domain)
        if isinstance(found, Shortfall):
            entries.append(tried.fallen(at, found))
            continue
        entries.append(tried.entry(at, Reason.COSTLIER, found.price))
        if best is None or found.price < best.price:
            best = found
    if estimated.any():
        best, entries = _selected(tried, best, entries)
    least = [least_of_all(bounds, tried.search), None if before is None else before.bound]
    return tried.best(best, entries, unseen, least)


def _selected(
    tried: _Tried, best: Selection | None, entries: list[DomainTried]
) -> tuple[Selection | None, list[DomainTried]]:
    """Select, with effort, in the domains with the lowest estimates: a few, and more until one is lawful."""
    told, looked = {one.domain: one for one in entries}, 0
    for price, domain in sorted((one.price, one.domain) for one in entries if one.price is not None):
        if best is not None and (best.price <= price or looked >= _RIVALS):
            break
        found, looked = select(tried.search, domain), looked + 1
        if isinstance(found, Shortfall):
            told[domain] = tried.fallen(int(np.flatnonzero(tried.domains == domain)[0]), found)
            continue
        told[domain] = replace(told[domain], price=found.price)
        if best is None or found.price < best.price:
            best = found
    return best, list(told.values())


def _in_order(tried: _Tried, hopeful: Rows, bounds: CostBounds) -> list[int]:
    """Positions in ``hopeful``: by lowest bound, most room, narrowest, first in order."""
    domains = tried.domains[hopeful]
    room = -tried.slots.room[hopeful].sum(axis=1)
    keys = (domains, tried.search.snapshot.topology.tier[domains], room, bounds.work, bounds.head)
    return [int(at) for at in np.lexsort(keys)]


def _could_beat(search: Search, bounds: CostBounds, at: int, price: Price) -> bool:
    """Whether the domain's lower bound allows a lower price than ``price``."""
    head, work = int(bounds.head[at]), float(bounds.work[at])
    if not search.by_priority:
        return (head, work) <= (price.queue_rank, sum(lost for _, lost in price.broken))
    return ((int(bounds.priority[at]), work),) <= price.broken if head else True


def _why_none(best: _Best) -> Reason:
    """The reason that came closest to a plan."""
    reasons = {entry.reason for entry in best.tried}
    return next((reason for reason in CLOSEST if reason in reasons), Reason.BOUND)


def _explained(attempt: Attempt, need: Need, reason: Reason, best: _Best | None = None) -> Explanation:
    purpose, podgroup = attempt.purpose.value, attempt.podgroups[0]
    if best is None:
        return Explanation(purpose, podgroup, need.minimum, reason)
    return Explanation(purpose, podgroup, need.minimum, reason, tried=best.tried, ruled=best.ruled, bound=best.bound)


def _plan(attempt: Attempt, host: Host, search: Search, best: _Best) -> Plan | NoPlan:
    """The best selection as a plan."""
    selection, need = best.selection, search.need
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
        bundles=selection.bundles,
        given_back=selection.given_back,
    )
    expires_at = attempt.now + attempt.policy.plan_ttl_s
    return Plan(made, assumptions(attempt, made), selection.price, domain, expires_at, explanation)
