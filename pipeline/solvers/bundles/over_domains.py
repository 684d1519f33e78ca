"""The search over domains: which are looked at, in which order, and when no other can be cheaper."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows, is_among
from pipeline.decision.attempt import Attempt, Survey
from pipeline.decision.explanation import DomainTried, LowerBound, Reason, Ruled, lacking_most
from pipeline.decision.price import Price, compared
from pipeline.keeping import cached_property
from pipeline.records import replace
from pipeline.solvers.bundles.bundle_room import bundles_may_reach, in_order_of_room
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.records import Outcome
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.exact import MOST
from pipeline.solvers.bundles.covering.selection import Shortfall, estimate, select, select_out_of_order
from pipeline.solvers.bundles.finalists import Finalists
from pipeline.solvers.bundles.lower_bounds import CostBounds, Slots, cost_bounds, least_of_all, slot_bounds
from pipeline.solvers.bundles.nearly import margin_of
from pipeline.solvers.bundles.pricing import prices
from pipeline.solvers.bundles.surveying import bounds_of, contested, could_beat, estimable, estimates, priceable

#: Of domains whose bundles lack slots, this many are looked at, and report how much they lack.
_COUNTED = 8
#: Where no domain has room so far, other victims are sought in up to this many.
_OTHERS = 32
#: Up to this many domains all are looked at with effort; of more, those that a survey finds the cheapest.
_FEW = 16


@dataclass(frozen=True)
class Best:
    """The selections that were made, the outcomes of the domains looked at, and which were not looked at."""

    finalists: Finalists
    tried: tuple[DomainTried, ...]
    ruled: Ruled
    lower_bound: LowerBound | None

    @property
    def selection(self) -> Selection | None:
        """The selection that is preferred, None if there is none."""
        return self.finalists.preferred


def best_of(attempt: Attempt, search: BundleSearch, domains: Rows) -> Best:
    """The preferred selection of all domains that are not hopeless: see ``nearly``.

    Where slots decide, domains are priced at once and the cheapest lawful one is selected. Elsewhere they are selected
    one by one, best first by lower bound, until no bound allows a selection that would be preferred.
    """
    slots = slot_bounds(search, domains)
    hopeless = np.asarray((slots.reachable < search.need.count).any(axis=1))
    tried, hopeful = _Tried(attempt, search, domains, slots, hopeless), np.flatnonzero(~hopeless)
    if len(hopeful) == 0:
        return tried.best(tried.finalists, [], hopeless, [])
    surveyed = _survey(attempt, search, domains[hopeful])
    if surveyed is None:
        found = _best_first(tried, hopeful)
    else:
        found, settled = _cheapest_first(tried, *surveyed)
        found = _best_first(tried, hopeful[~is_among(domains[hopeful], settled)], found)
    return found if found.selection is not None or search.rules.keep_order else _out_of_order(tried, hopeful, found)


def _survey(attempt: Attempt, search: BundleSearch, hopeful: Rows) -> tuple[Survey, dict[int, Outcome]] | None:
    """The prices of those domains that can be priced before any is selected; None if all have to be selected.

    A domain that is the only one is not compared, so it is selected at once. Outcomes that are known come with the
    prices.
    """
    if attempt.policy.first_fit or attempt.policy.max_domains or len(hopeful) == 1:
        return None
    some = np.sort(hopeful[estimable(search, hopeful)])
    if len(some) > _FEW:
        return contested(search, attempt.survey or estimates(search, some))
    every_set = 0 < len(hopeful) <= _FEW and _small(search, hopeful).all()  # is tried in each of them
    if priceable(search) and not every_set:
        return prices(search, some, search.effort), {}
    return None


def _small(search: BundleSearch, domains: Rows) -> Bools:
    """bool[D]: domains in which every set of victims is tried, since they have only a few candidates."""
    topology, start = search.snapshot.topology, search.site.start
    many = start[topology.stop[domains]] - start[topology.start[domains]]
    return np.asarray((many <= MOST) & (not search.rules.keep_order))


@dataclass(frozen=True)
class _Tried:
    """The input of the search over domains; a domain is identified by its position in ``domains``."""

    attempt: Attempt
    search: BundleSearch
    domains: Rows
    slots: Slots
    hopeless: Bools

    def entry(self, at: int, reason: Reason, price: Price | None = None) -> DomainTried:
        """The outcome of a domain."""
        room, reachable, wanted = self._lacking
        return DomainTried(int(self.domains[at]), reason, price, int(room[at]), int(reachable[at]), int(wanted[at]))

    def looked_at(self, at: int, finalists: Finalists, known: Outcome | None = None) -> tuple[DomainTried, Finalists]:
        """The entry of a domain after selecting in it, without a price if it fell; and the selections with this one."""
        found = select(self.search, int(self.domains[at]), known)
        if isinstance(found, Shortfall):
            return self.fallen(at, found), finalists
        return self.entry(at, Reason.COSTLIER, found.price), finalists.and_also(found)

    def most_to_spare(self, some: Sequence[int] | Rows) -> Rows:
        """int64[K]: some domains; those with the most slots to spare, if everything left, come first."""
        rows = np.array(some, np.int64)
        spare = (self.slots.reachable[rows] - self.search.need.count).min(axis=1)
        return rows[np.lexsort((rows, -spare))]

    def fallen(self, at: int, found: Shortfall) -> DomainTried:
        """The entry of a domain that fell when it was looked at."""
        slots = np.array([found.room], np.int64), np.array([found.reachable], np.int64)
        room, reachable, wanted = (int(of[0]) for of in lacking_most(self.search.need.count, *slots))
        return DomainTried(int(self.domains[at]), found.reason, None, room, reachable, wanted)

    def best(
        self, finalists: Finalists, tried: list[DomainTried], unseen: Bools, bounds: list[LowerBound | None]
    ) -> Best:
        """The outcome; ``unseen`` bool[D] are the domains that were not looked at, ``bounds`` those of the parts."""
        least = min((one for one in bounds if one is not None), default=None)
        out = np.flatnonzero(unseen)
        room, reachable, wanted = self._lacking
        ruled = Ruled(self.domains[out], room[out], reachable[out], wanted[out], ~self.hopeless[out])
        return Best(finalists, _compared(tried, finalists), ruled, least)

    @property
    def finalists(self) -> Finalists:
        """No selections yet."""
        return Finalists(None if self.search.rules.keep_order else margin_of(self.search.rules))

    @cached_property
    def _lacking(self) -> tuple[Longs, Longs, Longs]:
        """Three of int64[D]: slots of the shape that each domain lacks most, see ``lacking_most``."""
        return lacking_most(self.search.need.count, self.slots.room, self.slots.reachable)


def _compared(tried: list[DomainTried], finalists: Finalists) -> tuple[DomainTried, ...]:
    """The entries by domain; where a selection costs less than the preferred one, it breaks more podgroups."""
    best, selected = finalists.preferred, {one.price.domain for one in finalists.found}

    def weighed(entry: DomainTried) -> DomainTried:
        if best is None or entry.price is None or entry.domain not in selected:
            return entry
        return replace(entry, reason=Reason.BREAKS_MORE if entry.price < best.price else Reason.COSTLIER)

    return tuple(weighed(entry) for entry in sorted(tried, key=lambda entry: entry.domain))


def _cheapest_first(tried: _Tried, survey: Survey, outcomes: dict[int, Outcome]) -> tuple[Best, Rows]:
    """Select in the domain of the lowest price; look at the next one only if it may be preferred to what was found.

    That is if the law refuses what is cheaper, its price rises, or the next one breaks fewer podgroups at nearly the
    same price. Returns the outcome, and the domains that it settles.
    """
    search, law, finalists = tried.search, False, tried.finalists
    priced = [(survey.price[row], at) for row, at in _priced_in(survey, tried.domains)]
    entries: dict[int, DomainTried] = {}
    known = sorted(((price, at) for price, at in priced if price is not None), key=lambda one: compared(one[0]))
    for looked, (price, at) in enumerate(known):
        if finalists.found and (looked >= _FEW or not finalists.loses_to(price)):
            entries[at] = tried.entry(at, Reason.COSTLIER, price)
            continue
        entries[at], finalists = tried.looked_at(at, finalists, outcomes.get(int(tried.domains[at])))
        law |= entries[at].price is None
    # Where the law refused the price that domains were left out for, these are open again.
    left = survey.domain[~survey.priced & (not law)]
    without = tried.most_to_spare([at for price, at in priced if price is None and not search.rules.asks_in_order])
    small = _small(search, tried.domains[without])
    for looked, at in enumerate(without.tolist()):  # bundles make too little room there by slots, but other sets may do
        if looked < (_OTHERS if small[looked] and not finalists.found else _COUNTED):
            entries[at], finalists = tried.looked_at(at, finalists)
        else:
            entries[at] = DomainTried(int(tried.domains[at]), Reason.UNPLACEABLE)
    settled = np.concatenate([left, tried.domains[[*entries]]])
    bounds = [least_of_all(bounds_of(survey), search)]
    unseen = tried.hopeless | is_among(tried.domains, left)
    return tried.best(finalists, [*entries.values()], unseen, bounds), settled


def _priced_in(survey: Survey, domains: Rows) -> list[tuple[int, int]]:
    """The rows of a survey that are priced, each with the position of its domain in ``domains``."""
    rows, order = np.flatnonzero(survey.priced), np.argsort(domains, kind="stable")
    at = order[np.searchsorted(domains, survey.domain[rows], sorter=order)]
    return list(zip(rows.tolist(), at.tolist(), strict=True))


def _best_first(tried: _Tried, some: Rows, before: Best | None = None) -> Best:
    """Select in one domain after the other while their bounds leave a chance.

    Parameters
    ----------
    some: int64[H]
        Positions of the domains to look at.
    before
        The outcome so far.
    """
    policy = tried.attempt.policy
    bounds = cost_bounds(tried.search, tried.domains[some])
    entries = [] if before is None else list(before.tried)
    unseen = tried.hopeless.copy()
    if before is not None:
        unseen |= is_among(tried.domains, before.ruled.domain)
    finalists = tried.finalists if before is None else before.finalists
    for i in _in_order(tried, some, bounds):
        at, domain = int(some[i]), int(tried.domains[some[i]])
        limit = finalists.beaten_by
        if limit is not None and (policy.first_fit or not _may_win(tried.search, domain, bounds, i, limit)):
            price = _of_alternative(tried, domain, len(some))
            if price is None:
                unseen[at] = True
            else:
                entries.append(tried.entry(at, Reason.COSTLIER, price))
            continue
        if len(entries) == (policy.max_domains or len(tried.domains)):
            entries.append(tried.entry(at, Reason.BUDGET))
            break
        entry, finalists = tried.looked_at(at, finalists)
        entries.append(entry)
    least = [least_of_all(bounds, tried.search), None if before is None else before.lower_bound]
    return tried.best(finalists, entries, unseen, least)


def _may_win(search: BundleSearch, domain: int, bounds: CostBounds, at: int, limit: Price) -> bool:
    """Whether the bounds of a domain, which are at a position, and its bundles allow a selection up to the limit."""
    return could_beat(search, bounds, at, limit) and bundles_may_reach(search, domain, limit)


def _of_alternative(tried: _Tried, domain: int, among: int) -> Price | None:
    """What a domain that cannot win would cost, where domains are few and one sweep prices them; None elsewhere."""
    tells = among <= _FEW and not tried.attempt.policy.first_fit and priceable(tried.search)
    return estimate(tried.search, domain) if tells and tried.search.interchangeable(np.array([domain])).all() else None


def _out_of_order(tried: _Tried, hopeful: Rows, found: Best) -> Best:
    """The outcome where the order of bundles makes room in no domain: other victims in some domain may.

    If the policy limits how many domains are looked at, only those are that were looked at before.
    """
    policy = tried.attempt.policy
    if policy.max_domains:
        looked_at = np.array([one.domain for one in found.tried if one.reason is not Reason.BUDGET], np.int64)
        hopeful = hopeful[is_among(tried.domains[hopeful], looked_at)]
    entries, finalists = {entry.domain: entry for entry in found.tried}, found.finalists
    some = tried.most_to_spare(hopeful)[:_OTHERS]
    for at in some.tolist():
        selected = select_out_of_order(tried.search, int(tried.domains[at]), len(some))
        if selected is not None:
            entries[selected.price.domain] = tried.entry(at, Reason.COSTLIER, selected.price)
            finalists = finalists.and_also(selected)
            if policy.first_fit:
                break
    if not finalists.found:
        return found
    return replace(found, finalists=finalists, tried=_compared([*entries.values()], finalists))


def _in_order(tried: _Tried, hopeful: Rows, bounds: CostBounds) -> list[int]:
    """Positions in ``hopeful``: by lowest bound, most room, narrowest, first in order; see ``in_order_of_room``."""
    domains, policy = tried.domains[hopeful], tried.attempt.policy
    room = -tried.slots.room[hopeful].sum(axis=1)
    keys = (domains, tried.search.snapshot.topology.tier[domains], room, bounds.work, bounds.head)
    order = np.lexsort(keys)
    if len(order) > 1 and not (policy.first_fit or policy.max_domains):
        order = in_order_of_room(tried.search, domains, bounds.head, order)
    return [int(at) for at in order]
