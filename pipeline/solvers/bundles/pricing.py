"""The price of the selection in every domain, in one compiled sweep, before the gang is placed in any.

Where slots decide (one shape, interchangeable tasks, no quota that is counted along the list), a price needs neither a
placement nor the law. So every domain is priced by the stages of ``selection.select``, and only the cheapest is
selected. "Gang-Aware Preemption and Reclaim" looks at a few domains only, because simulating all would cost too much.

Domains are priced in the order of a lower bound of the price's leading level and its work; those that cannot reach the
best price, or nearly the same, are left out. A price is of its domain alone, so it is the same whatever others are
priced with it.
"""

from typing import Any, NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Bytes, Floats, Ids, Longs, Rows
from pipeline.decision.attempt import Survey
from pipeline.kernels import inlined, linked, shared, writing
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.kinds import HOPELESS, GroupKinds
from pipeline.solvers.bundles.bundling.records import BREAKING, Cost, Site, Terms
from pipeline.solvers.bundles.covering.chosen import price_in_domain
from pipeline.solvers.bundles.covering.least import solved
from pipeline.solvers.bundles.lower_bounds import CostBounds, bound_within, bounds_with_levels
from pipeline.solvers.bundles.nearly import margin_of, most_work
from pipeline.solvers.bundles.sum_bounds import LevelsNeeded

#: The outcome of a domain.
_NOTHING, _PRICED, _LEFT = 0, 1, 2


class _Costs(NamedTuple):
    """Columns of ``Cost``, one row a domain, and what became of it.

    Attributes
    ----------
    work: float64[D]
        The work of the leading level.
    first, broken, last: int64[D]
        A domain has the ``lines`` from the first up to the last; those before ``broken`` are for podgroups that break.
    """

    state: Bytes
    head: Longs
    work: Floats
    queue_rank: Longs
    highest_priority: Longs
    victims: Longs
    gangs_broken: Longs
    first: Longs
    broken: Longs
    last: Longs


class _Lines(NamedTuple):
    """Work by level, of all domains together."""

    level: Longs
    work: Floats


@inlined
def _longer(lines: _Lines, used: int, more: int) -> _Lines:
    """The lines, with space for some more."""
    if used + more <= len(lines.level):
        return lines
    longer = _Lines(np.empty(2 * (used + more), np.int64), np.empty(2 * (used + more)))
    longer.level[:used] = lines.level[:used]
    longer.work[:used] = lines.work[:used]
    return longer


@inlined
def _write(costs: _Costs, lines: _Lines, at: int, used: int, cost: Cost) -> int:
    """Write one row; returns how many lines are used then."""
    costs.head[at], costs.queue_rank[at] = cost.head, cost.queue_rank
    costs.highest_priority[at], costs.victims[at] = cost.highest_priority, cost.victims
    costs.gangs_broken[at], costs.first[at] = cost.gangs_broken, used
    for i in range(len(cost.broken_level)):
        lines.level[used], lines.work[used] = cost.broken_level[i], cost.broken_work[i]
        used += 1
    costs.broken[at] = used
    for i in range(len(cost.surplus_level)):
        lines.level[used], lines.work[used] = cost.surplus_level[i], cost.surplus_work[i]
        used += 1
    costs.last[at] = used
    return used


class Leading(NamedTuple):
    """The leading level of a price, and the work of that level, see ``CostBounds``.

    Attributes
    ----------
    most
        Up to this work another price of that level may be preferred.
    """

    head: int
    work: float
    most: float


#: Of a price that is above all others.
NO_PRICE = Leading(HOPELESS, 0.0, 0.0)


@shared
def leading_of(head: int, work: float, gangs_broken: int, margin: float) -> Leading:
    """What leads in a price.

    ``margin``: by what fraction work may exceed it if fewer podgroups break; where at most one does, fewer cannot.
    """
    return Leading(head, work, most_work(work, margin if gangs_broken > 1 else 0.0))


@shared
def may_be_preferred(head: Any, work: Any, best: Leading) -> Any:
    """Whether a bound (or bool[D]: each of some) allows a price that may be preferred to the best."""
    return (head < best.head) | ((head == best.head) & (work <= best.most))


@linked
def _leading_of_cost(cost: Cost, by_priority: bool, margin: float) -> Leading:
    work = 0.0
    if not by_priority:
        work = cost.broken_work.sum()
    elif cost.head >= BREAKING:
        work = cost.broken_work[0]
    elif cost.head > 0:
        work = cost.surplus_work[0]
    return leading_of(cost.head, work, cost.gangs_broken, margin)


@inlined
def _bound_work(
    upto: int, bounds: CostBounds, bounded: Bools, levels: LevelsNeeded, site: Site, starts: Longs, stops: Longs,
    terms: Terms, kinds: GroupKinds, seats: Ids,
) -> None:  # fmt: skip
    """Bound the work of domains whose leading level is not above ``upto``, as far as that was not done before."""
    for at in range(len(starts)):
        if not bounded[at] and bounds.head[at] <= upto:
            needed = levels.low[at], levels.high[at], levels.missing[at]
            bound = bound_within(needed, site, starts[at], stops[at], terms, kinds, seats, False)
            bounds.work[at], bounded[at] = bound[1], True


@writing("seats", "bounds", "bounded")
def price_domains(
    site: Site, starts: Longs, stops: Longs, terms: Terms, kinds: GroupKinds, seats: Ids, bounds: CostBounds,
    bounded: Bools, levels: LevelsNeeded, margin: float, effort: int,
) -> tuple[_Costs, _Lines]:  # fmt: skip
    """Price the selection on each slice of nodes ``starts[i]:stops[i]`` whose lower bound allows it.

    The one with the lowest bound comes first. Others of higher levels have their work bounded only if they reach it.

    Parameters
    ----------
    bounds, bounded
        Changed: work of those that are not ``bounded`` yet (bool[D]) is, as far as needed.
    margin
        See ``leading_of``.
    effort
        Steps of branch and bound in each domain; 0: its price is an estimate.
    """
    many, used, lowest, best = len(starts), 0, HOPELESS, NO_PRICE
    columns = np.zeros((8, many), np.int64)
    costs = _Costs(
        np.full(many, _LEFT, np.uint8), columns[0], np.zeros(many), columns[1], columns[2], columns[3], columns[4],
        columns[5], columns[6], columns[7],
    )  # fmt: skip
    lines = _Lines(np.empty(many, np.int64), np.empty(many))
    for at in range(many):
        lowest = min(lowest, bounds.head[at])
    for others in (False, True):
        _bound_work(best.head if others else lowest, bounds, bounded, levels, site, starts, stops, terms, kinds, seats)
        order = np.argsort(bounds.work, kind="mergesort")
        order = order[np.argsort(bounds.head[order], kind="mergesort")]
        for at in order[int(others) : many if others else 1]:
            if not may_be_preferred(bounds.head[at], bounds.work[at], best):
                break
            one = solved(site, (starts[at], stops[at]), terms, seats, effort)
            costs.state[at] = _PRICED if one.found else _NOTHING
            if one.found:
                lines = _longer(lines, used, len(one.cost.broken_level) + len(one.cost.surplus_level))
                used = _write(costs, lines, at, used, one.cost)
                lead = _leading_of_cost(one.cost, terms.rules.by_priority, margin)
                costs.work[at] = lead.work
                # Beside a domain without victims the others are priced as well, as alternatives.
                if one.cost.victims > 0 and (lead.head, lead.work) < (best.head, best.work):
                    best = lead
    return costs, lines


def prices(search: BundleSearch, domains: Rows, effort: int) -> Survey:
    """The price of the selection in each of the domains (ascending), where slots decide; see ``price_domains``."""
    return prices_within(search, domains, *bounds_with_levels(search, domains), np.ones(len(domains), np.bool_), effort)


def prices_within(
    search: BundleSearch, domains: Rows, bounds: CostBounds, levels: LevelsNeeded, bounded: Bools, effort: int
) -> Survey:
    """The same, given bounds and levels of the domains; those that are not ``bounded`` (bool[D]) lack their work."""
    topology = search.snapshot.topology
    slices = topology.start[domains], topology.stop[domains]
    costs, lines = price_domains(
        search.site, *slices, search.terms, search.kinds, search.seats(), bounds, bounded, levels,
        margin_of(search.rules), effort,
    )  # fmt: skip
    found = costs.state == _PRICED
    priced = [
        price_in_domain(search, domain, _cost_at(costs, lines, at)) if found[at] else None
        for at, domain in enumerate(domains.tolist())
    ]
    head = np.where(found & (costs.victims > 0), costs.head, HOPELESS)
    return Survey(domains, *bounds, costs.state != _LEFT, head, costs.work, tuple(priced))


def _cost_at(costs: _Costs, lines: _Lines, at: int) -> Cost:
    broken, surplus = slice(costs.first[at], costs.broken[at]), slice(costs.broken[at], costs.last[at])
    return Cost(
        costs.head[at], costs.queue_rank[at], lines.level[broken], lines.work[broken], lines.level[surplus],
        lines.work[surplus], costs.highest_priority[at], costs.victims[at], costs.gangs_broken[at],
    )  # fmt: skip
