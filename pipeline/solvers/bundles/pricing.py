"""The price of the selection in every domain, in one compiled sweep, before the gang is placed in any.

Where slots decide (one shape, interchangeable tasks, no quota that is counted along the list), a price needs neither a
placement nor the law. So every domain is priced by the stages of ``selection.select``, and only the cheapest is
selected. "Gang-Aware Preemption and Reclaim" looks at a few domains only, because simulating all would cost too much.

Domains are priced in the order of a lower bound of the price's leading level; those that cannot reach the best price
are left out. Those that are cheapest by their leading level are then improved.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Floats, Ids, Longs, Rows
from pipeline.decision.price import Price
from pipeline.kernels import inlined, kernel
from pipeline.solvers.bundles.bundling.records import Cost, Site, Terms
from pipeline.solvers.bundles.bundling.terms import Search
from pipeline.solvers.bundles.covering.least import solved
from pipeline.solvers.bundles.covering.selection import price_of
from pipeline.solvers.bundles.lower_bounds import HOPELESS, CostBounds, bound_domains

#: The outcome of a domain.
_NOTHING, _PRICED, _LEFT = 0, 1, 2
#: Steps of branch and bound in a domain that is improved.
_STEPS = 1_000
#: Up to ``_FEW`` domains all are improved; of more, ``_RIVALS`` with the cheapest leading lines.
_FEW = 16
_RIVALS = 3


class _Costs(NamedTuple):
    """Columns of ``Cost``, one row a domain, and what became of it.

    Attributes
    ----------
    effort: int64[D]
        Steps of branch and bound that were allowed for the price.
    first, broken, last: int64[D]
        A domain has the ``lines`` from the first up to the last; those before ``broken`` are for podgroups that break.
    """

    state: Bytes
    effort: Longs
    head: Longs
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


@inlined
def _leading(costs: _Costs, lines: _Lines) -> int:
    """The domain with the cheapest leading line of those that are not improved yet; NONE if there is none."""
    found = NONE
    for at in range(len(costs.state)):
        if costs.state[at] != _PRICED or costs.effort[at] > 0 or costs.first[at] == costs.last[at]:
            continue
        if (
            found == NONE
            or costs.head[at] < costs.head[found]
            or (costs.head[at] == costs.head[found] and lines.work[costs.first[at]] < lines.work[costs.first[found]])
        ):
            found = at
    return found


@kernel
def price_domains(
    site: Site, starts: Longs, stops: Longs, terms: Terms, seats: Ids, effort: int
) -> tuple[_Costs, _Lines, CostBounds]:
    """Price the selection on each slice of nodes ``starts[i]:stops[i]``; its bounds are told as well.

    ``effort``: steps of branch and bound in a domain that is improved. An argument, for a number that stood here would
    be a type of its own, and all that it is passed to compiled once more.
    """
    many, used, best = len(starts), 0, HOPELESS
    bounds = bound_domains(site, starts, stops, terms, seats)
    heads = bounds.head
    order = np.argsort(heads, kind="mergesort")
    columns = np.zeros((9, many), np.int64)
    costs = _Costs(
        np.full(many, _LEFT, np.uint8), columns[0], columns[1], columns[2], columns[3], columns[4], columns[5],
        columns[6], columns[7], columns[8],
    )  # fmt: skip
    lines = _Lines(np.empty(many, np.int64), np.empty(many))
    free, steps = False, effort if many <= _FEW else 0
    for at in order:
        if heads[at] > best:
            break
        one = solved(site, (starts[at], stops[at]), terms, seats, steps)
        costs.state[at], costs.effort[at] = _PRICED if one.found else _NOTHING, steps
        if one.found:
            lines = _longer(lines, used, len(one.cost.broken_level) + len(one.cost.surplus_level))
            used = _write(costs, lines, at, used, one.cost)
            free |= one.cost.victims == 0  # the others are priced as well, as alternatives
            best = min(best, one.cost.head) if one.cost.victims > 0 else best
    for _ in range(0 if free or many <= _FEW else _RIVALS):
        at = _leading(costs, lines)
        if at == NONE:
            break
        one = solved(site, (starts[at], stops[at]), terms, seats, effort)
        costs.effort[at] = effort
        lines = _longer(lines, used, len(one.cost.broken_level) + len(one.cost.surplus_level))
        used = _write(costs, lines, at, used, one.cost)
    return costs, lines, bounds


def slots_decide(search: Search) -> bool:
    """Whether slots decide what makes room, where tasks of the need are interchangeable."""
    carded = search.snapshot.shapes.on_card[search.need.shapes].any()  # slots do not count cards
    return len(search.need.shapes) == 1 and not carded


def priceable(search: Search) -> bool:
    """Whether slots decide everything in this search, so that all domains can be priced in one sweep."""
    return slots_decide(search) and not search.asks_in_order


class Priced(NamedTuple):
    """The prices of the selections in some domains.

    Attributes
    ----------
    price
        None if there is no selection, or if it was not computed.
    left: bool[D]
        Not computed, because the price is above that of another domain in any case.
    effort: int64[D]
        The effort: ``select`` finds the same victims with the same effort.
    """

    price: list[Price | None]
    left: Bools
    effort: Longs
    bounds: CostBounds


def prices(search: Search, domains: Rows) -> Priced:
    """The price of the selection in each domain, for searches in which slots decide."""
    topology = search.snapshot.topology
    site, starts, stops = search.site, topology.start[domains], topology.stop[domains]
    costs, lines, bounds = price_domains(site, starts, stops, search.terms, search.seats(), _STEPS)
    told = [
        price_of(search, int(domain), _cost_at(costs, lines, at)) if costs.state[at] == _PRICED else None
        for at, domain in enumerate(domains)
    ]
    return Priced(told, np.asarray(costs.state == _LEFT), costs.effort, bounds)


def _cost_at(costs: _Costs, lines: _Lines, at: int) -> Cost:
    broken, surplus = slice(costs.first[at], costs.broken[at]), slice(costs.broken[at], costs.last[at])
    return Cost(
        costs.head[at], costs.queue_rank[at], lines.level[broken], lines.work[broken], lines.level[surplus],
        lines.work[surplus], costs.highest_priority[at], costs.victims[at], costs.gangs_broken[at],
    )  # fmt: skip
