"""A few gangs that each need a domain: they are served in other orders, and the cheapest outcome in sum counts.

One after the other, each takes the domain that is cheapest for it. A small gang may take the one domain that would be
cheap for a large one, and none breaks what would make room for several. So they are tried in other orders; then one
after the other is planned anew beside the others (ruin and recreate, as in Schrimpf et al., "Record Breaking
Optimization Results Using the Ruin and Recreate Principle"); then each comes first in each of its other domains; then
each podgroup that loses tasks is spared; and then each gang takes the domain of another one, which comes last (an
ejection chain, as in Glover, "Ejection Chains, Reference Structures and Alternating Path Methods").

In reclaim a queue that loses to one of them is less fair to take from for the next, so all of them take from the
fairest queues that suffice for all, as things stand before the first.

What comes of that is dealt out in the policy's order: each gang in its turn, in its domain, among the victims that were
found. So every plan holds as it is after those before it, and the order of policy is kept.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import permutations
from typing import NamedTuple, TypeAlias

import numpy as np

from pipeline.actions.evicting.one_pass import Pass
from pipeline.actions.evicting.search_cache import Order, SearchCache, Turn
from pipeline.cluster.arrays import NONE, Longs, Rows, distinct
from pipeline.decision.plan import Plan
from pipeline.decision.price import Price, in_units, lost_work, needed_by
from pipeline.placement.domains import domains_of
from pipeline.placement.kinds import podgroup_kind
from pipeline.records import replace

#: How many searches there are for each gang in each step at most; and for how many gangs at most.
_SEARCHES, _GANGS = 4, 5

#: A plan for each of some gangs, by their positions, in the policy's order.
Plans: TypeAlias = dict[int, Plan]


def cheapest_in_sum(searches: SearchCache) -> Plans:
    """The cheapest plans that are found for as many of the gangs of a cache as get one together.

    Those that get none are left out: the first one, if no order makes room for it and all before it, and all after the
    next one that gets none.
    """
    every = range(len(searches.fresh.gang_groups))
    plans = _in_turn(searches, every)
    gap = len(plans)
    if 0 < gap < len(every):
        plans = OtherOrders(searches, every[: gap + 1]).for_all()
        plans = plans or _in_turn(searches, [*every[:gap], *every[gap + 1 :]])
    return OtherOrders(searches, [*plans]).cheapest(plans) if plans else plans


def _in_turn(searches: SearchCache, positions: Collection[int]) -> Plans:
    """Plans for gangs in the policy's order, each cheapest for it, up to one that gets none."""
    searches.left, order, plans = len(positions), _turns(positions), list[Plan]()
    for many in range(1, len(order) + 1):
        after = searches.in_order(order[:many])
        if after is None:
            break
        plans = searches.plans_of(after)
    return dict(zip(positions, plans, strict=False))


class _Served(NamedTuple):
    """Plans for all of the gangs, and their price in sum."""

    plans: Plans
    price: Price


class OtherOrders:
    """What some gangs of one rank get from the state as it is, in the policy's order and in others."""

    def __init__(self, searches: SearchCache, positions: Collection[int]) -> None:
        """For the gangs at some positions of the cache."""
        self._searches, self._positions = searches, positions
        self._few, fresh = min(len(positions), _GANGS), searches.fresh
        some, snapshot = [fresh.gang_groups[one] for one in positions], fresh.progress.snapshot
        rows, start = snapshot.waiting_of(np.array(some)[:, 0])
        asked = snapshot.request_of(rows)
        self._requested: Longs = asked.sum(axis=0)
        size = np.add.reduceat(in_units(asked, needed_by(self._requested)), start[:-1])
        largest = np.array(positions)[np.argsort(-size, kind="stable")]
        self._policy, self._largest_first = _turns(positions), _turns(largest.tolist())
        #: Gangs of one kind get the same in each other's place.
        self._kinds = {one: podgroup_kind(snapshot, fresh.gang_groups[one]) for one in positions}
        self._seen = {self._alike(self._policy)}

    def for_all(self) -> Plans:
        """Plans for all of the gangs, though the last one in the policy's order gets none; empty if none are found."""
        self._searches.left = _SEARCHES * self._few
        *others, last = self._policy
        for order in ((last, *others), self._largest_first, self._policy[::-1]):
            if self._searches.in_order((last,)) is None:
                break
            found = self._in_order(order, None)
            if found is not None:
                return self._explained(found.plans)
        return {}

    def cheapest(self, plans: Plans) -> Plans:
        """The cheapest plans for all of the gangs that are found; ``plans`` if none cost less."""
        before = best = _Served(plans, self._price(plans.values()))
        if len(plans) == 1 or best.price.victims == 0:
            return plans
        best = self._from_fairest(best)
        steps: list[Callable[[_Served], _Served]] = [self._over_orders, self._anew]
        steps += [partial(self._moved, near) for near in (self._elsewhere, self._sparing, self._displacing)]
        for step in steps:
            self._searches.left = _SEARCHES * self._few
            best = step(best)
        return best.plans if best is before else self._explained(best.plans)

    def _explained(self, plans: Plans) -> Plans:
        """The plans; each says with how many it loses least in sum, and has no lower bound: that is for one alone."""
        found = Plans()
        for position, plan in plans.items():
            why = replace(plan.explanation, lower_bound=None, together=len(self._positions))
            found[position] = replace(plan, price=self._ranked(plan), explanation=why)
        return found

    # -- queues ----------------------------------------------------------------------------------------------------

    def _from_fairest(self, best: _Served) -> _Served:
        """The best once all take from the fairest queues that suffice for all; from then on only those may lose."""
        searches = self._searches
        rank, tasks = self._queue_rank(best.plans[self._policy[0].position]), searches.fresh.progress.snapshot.tasks
        if rank is None:
            return best
        rows = np.flatnonzero(tasks.node != NONE)
        of_rows = rank[tasks.podgroup[rows]]
        for least_fair in distinct(of_rows[of_rows <= best.price.queue_rank]).tolist():
            searches.left = len(self._positions)
            searches.take_only_from(rows[of_rows <= least_fair])
            found = self._in_order(self._policy, None)
            if found is not None:
                return found if found.price < best.price else best
        return best

    def _queue_rank(self, plan: Plan) -> Longs | None:
        """int64[G]: the rank of each podgroup's queue before the first of the plans; None where that does not count."""
        return self._searches.fresh.host.price_rank(plan.statement.purpose, plan.statement.preemptor)

    def _ranked(self, plan: Plan) -> Price:
        """The price of a plan, with the queues ranked if it was found where all were equally fair."""
        owner = self._searches.fresh.progress.snapshot.tasks.podgroup[plan.statement.evictions]
        rank = self._queue_rank(plan)
        if rank is None or self._searches.among is None:
            return plan.price
        return replace(plan.price, queue_rank=int(rank[owner].max(initial=0)))

    # -- orders ----------------------------------------------------------------------------------------------------

    def _over_orders(self, best: _Served) -> _Served:
        """A local search over orders: on to the cheapest of those near the best so far, until none costs less."""
        order, best = self._cheapest_of((self._largest_first, self._policy[::-1]), self._policy, best)
        while True:
            before = order
            order, best = self._cheapest_of(self._near(order), order, best)
            if order is before:
                return best

    def _cheapest_of(self, some: Iterable[Order], order: Order, best: _Served) -> tuple[Order, _Served]:
        """The order among some that costs less than the best so far, and what it gives; else the same as before."""
        for one in some:
            if self._searches.left and self._alike(one) not in self._seen:
                self._seen.add(self._alike(one))
                found = self._in_order(one, best.price)
                if found is not None:
                    order, best = one, found
        return order, best

    def _near(self, order: Order) -> Iterator[Order]:
        """One gang comes first or last."""
        for at, turn in enumerate(order):
            rest = (*order[:at], *order[at + 1 :])
            yield from ((turn, *rest), (*rest, turn))

    def _alike(self, order: Order) -> tuple[object, ...]:
        return tuple((self._kinds[turn.position], *turn[1:]) for turn in order)

    def _in_order(self, order: Order, limit: Price | None) -> _Served | None:
        """What the gangs get in an order; None if not all get a plan, or it costs no less than the limit."""
        plans = list[Plan]()
        for many in range(1, len(order) + 1):
            plans = self._searches.plans_of(self._searches.in_order(order[:many]))
            if not plans or (limit is not None and not self._price(plans) < limit):
                return None
        return self._dealt({turn.position: plan for turn, plan in zip(order, plans, strict=True)}, limit)

    # -- planned anew ----------------------------------------------------------------------------------------------

    def _anew(self, best: _Served) -> _Served:
        """The best once each gang was planned anew beside the others, until that makes none cheaper."""
        turn = since = 0
        while since < len(self._policy) and self._searches.left:
            found = self._planned_anew(best, self._policy[turn].position)
            best, since = (best, since + 1) if found is None else (found, 0)
            turn = (turn + 1) % len(self._policy)
        return best

    def _planned_anew(self, best: _Served, position: int) -> _Served | None:
        """Plans once one gang was planned anew beside the others; None if not all get one, or they cost no less."""
        others = {at: plan for at, plan in best.plans.items() if at != position}
        beside = self._dealt_out(others, _victims(best.plans))
        after = None if beside is None else self._searches.pass_after(beside, Turn(position))
        if after is None:
            return None
        return self._dealt(dict(zip([*others, position], self._searches.plans_of(after), strict=True)), best.price)

    # -- other domains, other victims ------------------------------------------------------------------------------

    def _moved(self, near: Callable[[Plans], Iterable[Order]], best: _Served) -> _Served:
        """The best once orders near it were tried, and gangs planned anew, until that makes none cheaper."""
        while self._searches.left:
            before = best
            _, best = self._cheapest_of(near(best.plans), self._policy, best)
            if best is before:
                break
            best = self._anew(best)
        return best

    def _elsewhere(self, plans: Plans) -> Iterator[Order]:
        """Each gang comes first in one of its other domains, then each in the next one; the others after it."""
        turns, fresh = list[tuple[int, Turn]](), self._searches.fresh
        for position, plan in plans.items():
            attempt = fresh.attempt(position)
            domains = domains_of(fresh.host_of(attempt), attempt.podgroups, attempt.purpose)
            others = domains[domains != plan.domain].tolist()
            turns += [(nth, Turn(position, domain)) for nth, domain in enumerate(others)]
        for _, first in sorted(turns):
            yield (first, *(turn for turn in self._largest_first if turn.position != first.position))

    def _sparing(self, plans: Plans) -> Iterator[Order]:
        """Each podgroup that loses tasks loses none, the dearest first; the gangs in order, the largest first."""
        fresh = self._searches.fresh
        snapshot = fresh.progress.snapshot
        losers = distinct(snapshot.tasks.podgroup[_victims(plans)])
        lost = in_units(snapshot.podgroup_held[losers], needed_by(self._requested))
        lost = lost * lost_work(snapshot, fresh.host.context.now)[losers]
        for spared in losers[np.argsort(-lost, kind="stable")].tolist():
            yield tuple(turn._replace(sparing=spared) for turn in self._largest_first)

    def _displacing(self, plans: Plans) -> Iterator[Order]:
        """Each gang comes first in the domain of another one; those that were there come last, the rest stay."""
        for first, other in permutations([turn.position for turn in self._largest_first], 2):
            domain = plans[other].domain
            if domain != plans[first].domain:
                rest = [turn.position for turn in self._largest_first if turn.position != first]
                stay = (Turn(one, plans[one].domain) for one in rest if plans[one].domain != domain)
                yield (Turn(first, domain), *stay, *(Turn(one) for one in rest if plans[one].domain == domain))

    # -- dealt out -------------------------------------------------------------------------------------------------

    def _dealt(self, plans: Plans, limit: Price | None) -> _Served | None:
        """Plans dealt out in the policy's order; None unless they cost less than the limit."""
        if limit is not None and not self._price(plans.values()) < limit:
            return None
        if [*plans] != [*self._positions]:
            self._searches.left += 2 * len(plans)  # these searches are not counted
            after = self._dealt_out(dict(sorted(plans.items())), _victims(plans))
            if after is None:
                return None
            plans = dict(zip(self._positions, self._searches.plans_of(after), strict=True))
        price = self._price(plans.values())
        return _Served(plans, price) if limit is None or price < limit else None

    def _dealt_out(self, plans: Plans, victims: Rows) -> Pass | None:
        """The state once gangs had their turns, each in its domain among some victims; None if not all get a plan.

        Where one takes nodes that another one needs, each is only given the nodes of its plan.
        """
        for fixed in (False, True):
            after: Pass | None = self._searches.fresh
            for position, plan in plans.items():
                nodes = distinct(plan.statement.nominated_node) if fixed else None
                after = after and self._searches.pass_after(after, Turn(position, plan.domain), victims, nodes)
            if after is not None:
                return after
        return None

    def _price(self, plans: Collection[Plan]) -> Price:
        return self._searches.fresh.in_sum([*plans], self._requested)


def _turns(positions: Iterable[int]) -> Order:
    return tuple(map(Turn, positions))


def _victims(plans: Plans) -> Rows:
    """int64[K]: the victims of all plans."""
    return distinct(np.concatenate([plan.statement.evictions for plan in plans.values()]))
