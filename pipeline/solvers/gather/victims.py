"""The cheapest victims for a gang in one domain, and where the gang is gathered without them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Rows, is_among
from pipeline.decision.price import Price, Work, price_of
from pipeline.solvers.gather.gathering import Gathered, GatherSite, gathered_in
from pipeline.solvers.gather.leaving.budgets import permitted_by_budgets
from pipeline.solvers.gather.leaving.out_of_order import of_losers, orders_otherwise, permitted, refused_of
from pipeline.solvers.gather.leaving.pool import Pool, orders_up_to, pool_of_some, rows_in
from pipeline.solvers.gather.leaving.search import (
    GatherArea,
    GatherSearch,
    leaving,
    leaving_places,
    pool_in,
    sets_enough,
    slots_brought,
    slots_of_each,
    slots_suffice,
)
from pipeline.solvers.gather.leaving.unneeded import unneeded

Harm = tuple[int, int, int, int, Work, Work, int]
#: Where slots do not decide, at most this many units are tried by themselves; of so few candidates all are.
_TRIED = 16
#: Of at most this many candidates every set is tried where quotas permit too little along the usual order.
_FEW = 8
#: So often what quotas refuse returns first.
_TURNS = 16
#: Above every priority.
ANY_PRIORITY = int(np.iinfo(np.int64).max)


class _Way(NamedTuple):
    """Candidates of a pool that leave (bool[C]) if they return in an order (int64[C]), and their price."""

    price: Price
    pool: Pool
    leaves: Bools
    order: Rows


@dataclass(frozen=True)
class MadeRoom:
    """Room made in one domain: victims (int64[V], task rows), where the gang goes, and the price."""

    victims: Rows
    placed: Gathered
    price: Price


#: Room that is cheaper than what another domain costs, if there is any; a price that is not below it; or neither.
_Search = Callable[[Harm | None], MadeRoom | Price | None]


def harm_of(price: Price) -> Harm:
    """The cost to the jobs that lose, smaller is better: highest priority, then number of jobs, then work."""
    return (
        price.budgets_violated, price.queue_rank, price.highest_priority, price.gangs_broken,
        price.broken, price.surplus, price.victims,
    )  # fmt: skip


def may_gather(search: GatherSearch, area: GatherArea, limit: int) -> bool:
    """Whether the gang may find room in a domain if only podgroups up to a priority leave.

    If slots decide, it does: these have been counted.
    """
    return search.slots_decide or _may_gather(search, area, _leavers(search, area, limit))


def _may_gather(search: GatherSearch, area: GatherArea, rows: Rows) -> bool:
    """The same if all of some candidates leave: fewer leave no more room."""
    return search.slots_decide or _gathered(search, area, rows) is not None


def cheapest_in(search: GatherSearch, area: GatherArea, highest: int, best: Harm | None) -> MadeRoom | Price | None:
    """The cheapest room that is found in a domain.

    Parameters
    ----------
    highest
        The priority up to which podgroups must be able to leave; the others are looked at only if that is not enough.
    best
        What another domain costs; None: there is none yet.

    Returns
    -------
    The price alone where it is not below ``best``; None if the gang cannot have it there.
    """
    tried = -1
    for limit in (highest, ANY_PRIORITY):
        rows = _leavers(search, area, limit)
        hopeful = len(rows) > tried and _may_gather(search, area, rows)
        found = _cheapest(search, area, rows, best) if hopeful else None
        if found is not None:
            return found
        tried = len(rows)
    return None


def _leavers(search: GatherSearch, area: GatherArea, limit: int) -> Rows:
    """Candidates up to a priority: those in the domain, and those outside that may leave."""
    snapshot = search.snapshot
    rows = rows_in(snapshot, search.candidate, area.start, area.stop, limit)
    if len(area.outside) == 0:
        return rows
    priority = snapshot.podgroups.priority[snapshot.tasks.podgroup[area.outside]]
    return np.sort(np.concatenate([rows, area.outside[priority <= limit]]))


def _cheapest(search: GatherSearch, area: GatherArea, rows: Rows, best: Harm | None) -> MadeRoom | Price | None:
    """The same among the candidates ``rows``."""
    pool = pool_in(search, rows)
    may = permitted(search, pool)
    losers = pool if may.all() else of_losers(search, pool)
    few = not may.all() and len(losers.rows) <= _FEW
    found: MadeRoom | Price | None = None
    if search.out_of_order:
        ways = iter(()) if few else _otherwise(search, area, pool, may)
    else:
        ways = (
            partial(_cheapest_of, search, area, pool_of_some(pool, one))
            for one in _lawful_sets(search, area, pool, may)
        )
    for way in ways:
        one = way(best)
        if isinstance(one, MadeRoom):
            best = harm_of(one.price)
        found = one if isinstance(one, MadeRoom) or found is None else found
    if found is None and few and not search.out_of_order:
        return _of_every_set(search, area, losers, best)
    return found


def _of_every_set(search: GatherSearch, area: GatherArea, pool: Pool, best: Harm | None) -> MadeRoom | Price | None:
    """The cheapest of all sets of a few candidates that quotas permit; among equals the usual order decides."""
    sets = sets_enough(search, area, pool)
    prices = [_priced(search, pool.rows[some], area.domain) for some in sets]
    stays = (sets @ (1 << np.argsort(pool.usual[::-1]))).tolist()
    for one in sorted(range(len(prices)), key=lambda at: (harm_of(prices[at]), stays[at])):
        if best is not None and harm_of(prices[one]) >= best:
            return prices[one]
        victims = pool.rows[sets[one]]
        if not search.may_all_go(victims) or len(refused_of(search, victims)):
            continue
        placed = _gathered(search, area, victims)
        if placed is not None:
            return MadeRoom(victims, placed, prices[one])
    return None


def _otherwise(search: GatherSearch, area: GatherArea, pool: Pool, may: Bools) -> Iterator[_Search]:
    """The same among candidates that quotas refuse in the usual order, by several orders of return."""
    pool = of_losers(search, pool)
    every = np.ones(len(pool.rows), bool)
    if may.all() or (pool.frees.sum(axis=0) < search.short).any() or not slots_suffice(search, area, pool, every):
        return
    for order in orders_otherwise(search, area, pool):
        yield partial(_permitted_room, search, area, pool, order)


def _lawful_sets(search: GatherSearch, area: GatherArea, pool: Pool, may: Bools) -> Iterable[Bools]:
    """What may leave: all that is permitted in the usual order, and what else budgets let go."""
    usual = [may] if _hopeful(search, area, pool, may) else []
    return usual if may.all() else [*usual, *permitted_by_budgets(search, area, pool)]


def _hopeful(search: GatherSearch, area: GatherArea, pool: Pool, may: Bools) -> bool:
    """Whether slots suffice once all tasks that may leave have left; they always do where no quota limits which may."""
    return bool(may.all()) or slots_suffice(search, area, pool, may)


def _cheapest_of(search: GatherSearch, area: GatherArea, pool: Pool, best: Harm | None) -> MadeRoom | Price | None:
    """The cheapest room if any of the pool may leave; None if all of it frees less quota than is lacked."""
    if (pool.frees.sum(axis=0) < search.short).any():
        return None
    ways: dict[bytes, _Way] = {}
    pools = pool, pool_in(search, pool.rows, slots_of_each(search, area, pool))
    for some in pools:
        _note_ways(search, area, some, some.orders, ways)
    least = min((way.price for way in ways.values()), key=harm_of)
    for some in pools if least.gangs_broken else ():
        brought = slots_brought(search, area, some)
        _note_ways(search, area, some, orders_up_to(some, least.highest_priority, brought), ways)
    found: MadeRoom | Price | None = None
    for price, some, leaves, order in sorted(ways.values(), key=lambda one: harm_of(one.price)):
        if best is not None and harm_of(price) >= best:
            return found if found is not None else price
        room = _made(search, area, some, order, leaves)
        if room is None or not search.may_all_go(room.victims):
            continue
        if best is None or harm_of(room.price) < best:
            best, found = harm_of(room.price), room
        elif found is None:
            found = room.price
        if isinstance(found, MadeRoom) and not _tries_each(search, pool):
            return found
    return found


def _permitted_room(
    search: GatherSearch, area: GatherArea, pool: Pool, order: Rows, best: Harm | None
) -> MadeRoom | Price | None:
    """The same by one order: what quotas refuse of the victims returns before all others the next time."""
    for _ in range(_TURNS):
        leaves, room = leaving(search, area, pool, order), None
        price = _priced(search, pool.rows[leaves], area.domain)
        if best is not None and harm_of(price) >= best:
            return price
        refused = refused_of(search, pool.rows[leaves])
        if len(refused) == 0:  # the gang may need more of them to leave
            room = _made(search, area, pool, order, leaves)
            refused = refused_of(search, room.victims) if room is not None else NO_ROWS
        if len(refused) == 0:
            if room is None or not search.may_all_go(room.victims):
                return None
            return room if best is None or harm_of(room.price) < best else room.price
        first = is_among(pool.rows[order], refused)
        order = np.concatenate([order[first], order[~first]])
    return None


def _note_ways(
    search: GatherSearch, area: GatherArea, pool: Pool, orders: Iterable[Rows], ways: dict[bytes, _Way]
) -> None:
    """Note what leaves if all return that may, in each of some orders, and its price; each set once."""
    for order in orders:
        leaves = leaving(search, area, pool, order)
        if leaves.tobytes() not in ways:
            ways[leaves.tobytes()] = _Way(_priced(search, pool.rows[leaves], area.domain), pool, leaves, order)


def _made(search: GatherSearch, area: GatherArea, pool: Pool, order: Rows, leaves: Bools) -> MadeRoom | None:
    """The victims that remain if candidates return in one order, ``leaves`` if all may, and where the gang is gathered.

    Where it can be gathered then, all of them are needed. Else fewer return: as long as places are left, or
    those up to one in the order, and then others by themselves.
    """
    placed = _gathered(search, area, pool.rows[leaves])
    if placed is None:
        fewer = leaving_places(search, area, pool, order) or _some_leave(search, area, pool, order)
        if fewer is None:
            return None
        leaves, placed = _fewer(search, area, pool, order, *fewer)
        placed = _gathered(search, area, pool.rows[leaves]) or placed
        victims = pool.rows[order[leaves[order]]]
        victims = np.sort(victims[~unneeded(search, victims, placed)])
    else:
        victims = np.sort(pool.rows[leaves])
    return MadeRoom(victims, placed, _priced(search, victims, area.domain))


def _some_leave(search: GatherSearch, area: GatherArea, pool: Pool, order: Rows) -> tuple[Bools, Gathered] | None:
    """What leaves where not all in the order may return: the most leading ones do, or none yet if each is tried."""
    if _tries_each(search, pool):
        placed = _gathered(search, area, pool.rows)
        return None if placed is None else (np.ones(len(pool.rows), bool), placed)
    low, high, best = 0, len(order), None
    while low < high:  # at most this many may return
        half = (low + high) // 2
        leaves = leaving(search, area, pool, order[:half])
        found = _gathered(search, area, pool.rows[leaves])
        best = (leaves, found) if found is not None else best
        low, high = (half + 1, high) if found is not None else (low, half)
    return best


def _tries_each(search: GatherSearch, pool: Pool) -> bool:
    """Whether of few candidates each is asked whether it may return, in each order.

    Not where what quotas refuse returns first: they may go on refusing other parts of podgroups.
    """
    return len(pool.rows) <= _TRIED and not search.out_of_order


def _fewer(
    search: GatherSearch, area: GatherArea, pool: Pool, order: Rows, leaves: Bools, placed: Gathered
) -> tuple[Bools, Gathered]:
    """The same, but others return as long as the gang can still be gathered: units in their order, then single ones."""
    freed, each = pool.frees, np.arange(len(leaves))
    units = dict.fromkeys((pool.unit[one], one if pool.unit[one] == NONE else NONE) for one in order.tolist())
    members = [(NONE, one) for one in order.tolist() if pool.unit[one] != NONE]
    tried, most = 0, len(units) + len(members) if _tries_each(search, pool) else _TRIED
    for unit, one in [*units, *members]:
        stays = each == one if unit == NONE else pool.unit == unit
        fewer = leaves & ~stays
        if tried == most or not (leaves & stays).any() or (freed[fewer].sum(axis=0) < search.short).any():
            continue
        tried += 1
        found = _gathered(search, area, pool.rows[fewer])
        if found is not None:
            leaves, placed = fewer, found
    return leaves, placed


def _priced(search: GatherSearch, victims: Rows, domain: int) -> Price:
    return price_of(search.snapshot, victims, search.preemptor.request, search.lost, search.queue_rank, domain)


def _gathered(search: GatherSearch, area: GatherArea, rows: Rows) -> Gathered | None:
    """Where the gang goes if the candidates ``rows`` leave."""
    victims = rows.tobytes()
    if victims not in area.known:
        area.known[victims] = _gathered_without(search, area, rows)
    return area.known[victims]


def _gathered_without(search: GatherSearch, area: GatherArea, rows: Rows) -> Gathered | None:
    """The same, not known before."""
    snapshot, need, here = search.snapshot, search.need, slice(area.start, area.stop)
    room, node = snapshot.room.future[here].copy(), snapshot.tasks.node[rows].astype(np.int64)
    inside, allowed = area.holds(node), np.ascontiguousarray(area.wanted.allowed[:, : len(room)])
    snapshot.add_requests(rows[inside], room, node[inside] - area.start)
    steps = search.steps.on(area.start, area.stop) if search.steps is not None else None
    site = GatherSite(snapshot, need, room, allowed, search.existing[here], rows, area.tree, area.start, steps)
    anywhere = np.ones(len(area.tree.parent), bool)
    return gathered_in(site, need.tasks[: need.minimum], area.kinds, anywhere, search.counted)
