"""A few gangs that each need a domain: they are served in other orders, and the cheapest outcome in sum counts.

One after the other, each takes the domain that is cheapest for it. A small gang may take the one domain that would be
cheap for a large one, and none breaks what would make room for several. So they are tried in other orders; then one
after the other is planned anew beside the others (ruin and recreate, as in Schrimpf et al., "Record Breaking
Optimization Results Using the Ruin and Recreate Principle"); then each comes first in each of its other domains.

In reclaim a queue that loses to one of them is less fair to take from for the next, so all of them take from the
fairest queues that suffice for all, as things stand before the first.

What comes of that is dealt out in the policy's order: each gang in its turn, in its domain, among the victims that were
found. So every plan holds as it is after those before it, and the order of policy is kept.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import NamedTuple, TypeAlias

import numpy as np

from pipeline.actions.backoff import GangGroup
from pipeline.actions.evicting.one_kind import rigid_apart
from pipeline.actions.evicting.one_pass import Pass
from pipeline.actions.searching import Outcome
from pipeline.cluster.arrays import NONE, Longs, Rows, distinct
from pipeline.decision.plan import Plan
from pipeline.decision.price import Price, in_units, needed_by
from pipeline.placement.domains import domains_of
from pipeline.placement.kinds import kind_of
from pipeline.records import replace

#: How many searches there are for each gang at most while orders are tried, while gangs are planned anew, and
#: while they come first elsewhere; and for how many gangs at most.
_ORDERS, _ANEW, _ELSEWHERE, _GANGS = 6, 4, 8, 5


class _Turn(NamedTuple):
    """The turn of a gang, by its position among them; the only domain that it may have, or NONE for any."""

    position: int
    domain: int = NONE


_Order: TypeAlias = tuple[_Turn, ...]


class _Served(NamedTuple):
    """Plans for all of the gangs in the policy's order, and their price in sum."""

    plans: list[Plan]
    price: Price


class OtherOrders:
    """What some gangs of one rank get from the state as it is, in the policy's order and in others.

    Attributes
    ----------
    lost
        Whether a search was lost.
    first
        The outcome of the first search: for the first gang, on the state as it is.
    """

    def __init__(self, this: Pass, at: int, some: Sequence[GangGroup]) -> None:
        """For the gangs ``some``, whose turns begin at a position."""
        self.lost = False
        self.first: Outcome = None
        self._fresh, self._many, self._left = copy(this), len(some), 0
        self._fresh.narrow(some, at, rigid_apart)
        self._among: Rows | None = None
        self._first, snapshot = len(this.progress.plans), this.progress.snapshot
        rows, start = snapshot.waiting_of(np.array(some)[:, 0])
        asked = snapshot.request_of(rows)
        self._requested: Longs = asked.sum(axis=0)
        size = np.add.reduceat(in_units(asked, needed_by(self._requested)), start[:-1])
        order: list[int] = np.argsort(-size, kind="stable").tolist()
        self._policy, self._largest_first = _turns(range(self._many)), _turns(order)
        #: Gangs of one kind get the same in each other's place.
        self._kinds = [kind_of(snapshot, one) for one in some]
        self._after: dict[_Order, Pass | None] = {(): self._fresh}
        self._seen = {self._alike(self._policy)}
        self._outcomes = dict[tuple[object, ...], Outcome]()

    def leading(self) -> list[Plan]:
        """Plans for the gangs in the policy's order, each cheapest for it, up to one that gets none."""
        self._left, plans = self._many, list[Plan]()
        for many in range(1, self._many + 1):
            after = self._known(self._policy[:many])
            if after is None:
                break
            plans = self._plans(after)
        return plans

    def for_all(self) -> list[Plan]:
        """Plans for all of the gangs, though the last one in the policy's order gets none; empty if none are found."""
        self._left = _ORDERS * min(self._many, _GANGS)
        *others, last = self._policy
        for order in ((last, *others), self._largest_first, self._policy[::-1]):
            if self._known((last,)) is None:
                break
            found = self._in_order(order, None)
            if found is not None:
                return self._told(found.plans)
        return []

    def cheapest(self, plans: Sequence[Plan]) -> list[Plan]:
        """The cheapest plans for all of the gangs that are found; ``plans`` if none cost less."""
        before = best = _Served(list(plans), self._price(plans))
        if best.price.victims == 0:
            return best.plans
        best = self._from_fairest(best)
        self._left = _ORDERS * min(self._many, _GANGS)
        best = self._over_orders(best)
        self._left = _ANEW * min(self._many, _GANGS)
        best = self._anew(best)
        self._left = _ELSEWHERE * min(self._many, _GANGS)
        best = self._elsewhere(best)
        return best.plans if best is before else self._told(best.plans)

    def _told(self, plans: Sequence[Plan]) -> list[Plan]:
        """The plans; each says with how many it loses least in sum, and has no lower bound: that is for one alone."""
        whys = [replace(plan.explanation, bound=None, together=self._many) for plan in plans]
        some = zip(plans, map(self._ranked, plans), whys, strict=True)
        return [replace(plan, price=price, explanation=why) for plan, price, why in some]

    # -- queues ----------------------------------------------------------------------------------------------------

    def _from_fairest(self, best: _Served) -> _Served:
        """The best once all take from the fairest queues that suffice for all; from then on only those may lose."""
        rank, tasks = self._queue_rank(best.plans[0]), self._fresh.progress.snapshot.tasks
        if rank is None:
            return best
        rows = np.flatnonzero(tasks.node != NONE)
        of_rows = rank[tasks.podgroup[rows]]
        for least_fair in distinct(of_rows[of_rows <= best.price.queue_rank]).tolist():
            self._among, self._left = rows[of_rows <= least_fair], self._many
            self._after, self._outcomes = {(): self._fresh}, {}
            found = self._in_order(self._policy, None)
            if found is not None:
                return found if found.price < best.price else best
        return best

    def _queue_rank(self, plan: Plan) -> Longs | None:
        """int64[G]: the rank of each podgroup's queue before the first of the plans; None where that does not count."""
        return self._fresh.host.price_rank(plan.statement.purpose, plan.statement.preemptor)

    def _ranked(self, plan: Plan) -> Price:
        """The price of a plan, with the queues ranked if it was found where all were equally fair."""
        rank, owner = self._queue_rank(plan), self._fresh.progress.snapshot.tasks.podgroup[plan.statement.evictions]
        if rank is None or self._among is None:
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

    def _cheapest_of(self, some: Iterable[_Order], order: _Order, best: _Served) -> tuple[_Order, _Served]:
        """The order among some that costs less than the best so far, and what it gives; else the same as before."""
        for one in some:
            if self._left and self._alike(one) not in self._seen:
                self._seen.add(self._alike(one))
                found = self._in_order(one, best.price)
                if found is not None:
                    order, best = one, found
        return order, best

    def _near(self, order: _Order) -> Iterator[_Order]:
        """One gang comes first or last."""
        for at, turn in enumerate(order):
            rest = (*order[:at], *order[at + 1 :])
            yield from ((turn, *rest), (*rest, turn))

    def _alike(self, order: _Order) -> tuple[object, ...]:
        return tuple((self._kinds[turn.position], turn.domain) for turn in order)

    def _in_order(self, order: _Order, limit: Price | None) -> _Served | None:
        """What the gangs get in an order; None if not all get a plan, or it costs no less than the limit."""
        for many in range(1, len(order) + 1):
            after = self._known(order[:many])
            if after is None or (limit is not None and not self._price(self._plans(after)) < limit):
                return None
        plans = zip(order, self._plans(self._known(order)), strict=True)
        return self._dealt({turn.position: plan for turn, plan in plans}, limit)

    def _known(self, order: _Order) -> Pass | None:
        """The state once some gangs have had their turns in an order; None if not all get a plan."""
        if order not in self._after:
            before, turn = self._known(order[:-1]), order[-1]
            self._after[order] = None if before is None else self._searched(before, turn.position, turn.domain)
        return self._after[order]

    # -- planned anew ----------------------------------------------------------------------------------------------

    def _anew(self, best: _Served) -> _Served:
        """The best once each gang was planned anew beside the others, until that makes none cheaper."""
        position = since = 0
        while since < self._many and self._left:
            found = self._planned_anew(best, position)
            best, since = (best, since + 1) if found is None else (found, 0)
            position = (position + 1) % self._many
        return best

    def _planned_anew(self, best: _Served, position: int) -> _Served | None:
        """Plans once one gang was planned anew beside the others; None if not all get one, or they cost no less."""
        others = {at: plan for at, plan in enumerate(best.plans) if at != position}
        beside = self._dealt_out(others, _victims(best.plans))
        after = None if beside is None else self._searched(beside, position)
        if after is None:
            return None
        return self._dealt(dict(zip([*others, position], self._plans(after), strict=True)), best.price)

    # -- elsewhere -------------------------------------------------------------------------------------------------

    def _elsewhere(self, best: _Served) -> _Served:
        """The best once gangs came first in other domains, until that makes none cheaper."""
        while self._left:
            before = best
            _, best = self._cheapest_of(self._first_elsewhere(best.plans), self._policy, best)
            if best is before:
                break
            best = self._anew(best)
        return best

    def _first_elsewhere(self, plans: Sequence[Plan]) -> Iterator[_Order]:
        """Each gang comes first in one of its other domains, then each in the next one; the others after it."""
        turns = list[tuple[int, _Turn]]()
        for position, plan in enumerate(plans):
            attempt = self._fresh.attempt(position)
            domains = domains_of(self._fresh.host_of(attempt), attempt.podgroups, attempt.purpose)
            others = domains[domains != plan.domain].tolist()
            turns += [(nth, _Turn(position, domain)) for nth, domain in enumerate(others)]
        for _, first in sorted(turns):
            yield (first, *(turn for turn in self._largest_first if turn.position != first.position))

    # -- dealt out -------------------------------------------------------------------------------------------------

    def _dealt(self, plans: dict[int, Plan], limit: Price | None) -> _Served | None:
        """Plans, by position, dealt out in the policy's order; None unless they cost less than the limit."""
        made = [*plans.values()]
        if limit is not None and not self._price(made) < limit:
            return None
        if [*plans] != [*range(self._many)]:
            self._left += 2 * self._many  # these searches are not counted
            made = self._plans(self._dealt_out(dict(sorted(plans.items())), _victims(made)))
        if not made:
            return None
        price = self._price(made)
        return _Served(made, price) if limit is None or price < limit else None

    def _dealt_out(self, plans: dict[int, Plan], victims: Rows) -> Pass | None:
        """The state once gangs had their turns, each in its domain among some victims; None if not all get a plan.

        Where one takes nodes that another one needs, each is only given the nodes of its plan.
        """
        for fixed in (False, True):
            after: Pass | None = self._fresh
            for position, plan in plans.items():
                nodes = distinct(plan.statement.nominated_node) if fixed else None
                after = after and self._searched(after, position, plan.domain, victims, nodes)
            if after is not None:
                return after
        return None

    # -- one search ------------------------------------------------------------------------------------------------

    def _searched(
        self, before: Pass, position: int, domain: int = NONE, among: Rows | None = None, nodes: Rows | None = None
    ) -> Pass | None:
        """The state once a gang has its plan, in one domain (on some nodes) or in any; None if it gets none.

        A plan that takes what was promised, or what started, is none: others would have a turn after it.
        """
        if self._left == 0:
            return None
        self._left -= 1
        told = [plan.statement for plan in self._plans(before)]  # the state is the same in whatever order they came
        made = frozenset((one.preemptor, one.evictions.tobytes(), one.nominated_node.tobytes()) for one in told)
        key = made, position, domain, *(None if rows is None else rows.tobytes() for rows in (among, nodes))
        if key not in self._outcomes:
            attempt = before.attempt(position)
            domains = None if domain == NONE else np.array([domain])
            if nodes is not None:
                rest = np.delete(np.arange(len(attempt.snapshot.nodes)), nodes)
                attempt = replace(attempt, snapshot=attempt.snapshot.closing(rest))
            fair, among = self._among is not None, self._among if among is None else among
            self._outcomes[key] = before.search(replace(attempt, domains=domains, among=among, equally_fair=fair))
        found = self._outcomes[key]
        self.lost |= found is None
        self.first = self.first or found
        if not isinstance(found, Plan) or (found.statement.nominated_node == NONE).any():
            return None
        if len(before.progress.retaken_by(found)):
            return None
        after = copy(before)
        after.take([found], [before.gang_groups[position]])
        return after

    def _plans(self, after: Pass | None) -> list[Plan]:
        return [] if after is None else list(after.progress.plans[self._first :])

    def _price(self, plans: Sequence[Plan]) -> Price:
        return self._fresh.in_sum(plans, self._requested)


def _turns(positions: Iterable[int]) -> _Order:
    return tuple(map(_Turn, positions))


def _victims(plans: Sequence[Plan]) -> Rows:
    """int64[K]: the victims of all plans."""
    return distinct(np.concatenate([plan.statement.evictions for plan in plans]))
