"""Victims of one domain: bundle, order, vote, cover, give back, price (document 1, section 3.4.1).

Where we differ: room without evictions comes first; the gang must really place, where document 1 sums resources up;
what is not needed is given back; and the whole selection is priced, so that domains can be compared.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.cluster.anti_affinity import repels
from pipeline.cluster.arrays import NONE, Bools, Counts, Floats, Longs, Rows, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.decision.explanation import NO_PRIORITY, Price, Reason, VictimBundle
from pipeline.kernels import kernel
from pipeline.placement.need import Need
from pipeline.solvers.bundles.bundles import Bundles, in_order, voted
from pipeline.solvers.bundles.cover import Clearing, Units
from pipeline.solvers.bundles.lower_bounds import units
from pipeline.solvers.bundles.sorting import sort_by
from pipeline.solvers.bundles.splitting import split
from pipeline.solvers.bundles.surplus import Surplus, surplus_of
from pipeline.solvers.bundles.worth import Scale, scale_of


@dataclass(frozen=True)
class Search:
    """One preemptor, one purpose: what the selection in every domain needs to know.

    Attributes
    ----------
    need
        Its minimum only; tasks beyond it evict nobody.
    allowed: bool[S, N]
        Nodes that each of ``need.shapes`` may use.
    candidate: bool[T]
        Tasks that may be victims as far as each is judged alone; all of them run.
    before, after: int64[G]
        Policy ranks ahead of and behind efficiency; smaller goes first.
    unfairness: int64[G]
        Rank used in the price; 0 where fairness has no say.
    lost_work: float64[G]
        Weight of what an eviction destroys.
    quota_filter
        The plugins' vote on ordered candidates, called once a domain with the whole list; None: nobody counts.
    validate_set
        Whether a final set is lawful as a whole, in any order.
    allow_whole
        Whether gangs may be broken.
    everywhere
        Whether members of a broken gang outside the domain go too.
    efficiency_step
        Width of the steps in which efficiencies are compared; 0: exactly.
    violations
        How many disruption budgets a final set violates; None: none can be.
    """

    snapshot: Snapshot
    need: Need
    allowed: Bools
    candidate: Bools
    before: Longs
    after: Longs
    unfairness: Longs
    lost_work: Floats
    quota_filter: Callable[[Rows], Bools] | None
    validate_set: Callable[[Rows], bool] | None
    allow_whole: bool
    everywhere: bool
    efficiency_step: float
    violations: Callable[[Rows], int] | None = None
    by_priority: bool = False

    def __post_init__(self) -> None:
        """Refuse columns that do not go together: kernels do not check their bounds."""
        groups, nodes = len(self.snapshot.podgroups), len(self.snapshot.nodes)
        expected = {
            "allowed": (len(self.need.shapes), nodes), "candidate": (len(self.snapshot.tasks),), "before": (groups,),
            "after": (groups,), "unfairness": (groups,), "lost_work": (groups,),
        }  # fmt: skip
        for name, shape in expected.items():
            found = getattr(self, name).shape
            if found != shape:
                raise ValueError(f"search.{name}: expected shape {shape}, found {found}")

    @cached_property
    def surplus(self) -> Surplus:
        """What every podgroup can spare."""
        return self.snapshot.once(surplus_of)

    @cached_property
    def scale(self) -> Scale:
        """What tasks are worth to the need."""
        return scale_of(self.snapshot, self.need)

    @cached_property
    def gangs(self) -> tuple[Floats, Counts, Bools]:
        """Per podgroup: cost of all that it runs, how many tasks that is, whether all of them are candidates."""
        snapshot, tasks = self.snapshot, self.snapshot.tasks
        asked = np.flatnonzero(self.scale.needed)
        costs = (snapshot.podgroup_held[:, asked] / self.scale.needed[asked]).sum(axis=1)
        running = (tasks.status == BOUND) | (tasks.status == RUNNING)
        fixed = np.bincount(tasks.podgroup[running & ~self.candidate], minlength=len(snapshot.podgroups))
        return frozen(costs, np.float64), frozen(snapshot.standing.running, np.int32), frozen(fixed == 0, np.bool_)

    @cached_property
    def units(self) -> Floats:
        """float64[shapes]: a task of each shape in units of the need."""
        return units(self.snapshot, self.need)

    @cached_property
    def interchangeable(self) -> bool:
        """Whether tasks of one shape are: no anti-affinity, no part with a topology of its own."""
        return self.need.plain and not repels(self.snapshot)


@dataclass(frozen=True)
class Selection:
    """Victims in one domain, and a node for every task of the minimum.

    Attributes
    ----------
    victims: int64[V]
        Task rows, ascending, those outside the domain included.
    node: int64[minimum]
        Node rows, in the order of ``need.tasks``.
    """

    victims: Rows
    node: Rows
    price: Price
    bundles: tuple[VictimBundle, ...]
    given_back: int


@dataclass(frozen=True)
class Shortfall:
    """Why a domain fell; slots for the shape that is shortest, without evictions and with all permitted ones."""

    reason: Reason
    room: int = 0
    reachable: int = 0


def select(search: Search, domain: int) -> Selection | Shortfall:
    """Choose victims in one domain and place the minimum, or say why it cannot be done.

    Every refusal is a ``Shortfall``.
    """
    topology = search.snapshot.topology
    first, last = int(topology.start[domain]), int(topology.stop[domain])
    clearing = _clearing(search, first, last)
    room = _shortest(clearing)
    nothing = _Chosen(search, (first, last), _NO_BUNDLES)
    if clearing.places(nothing.victims) and nothing.lawful():
        return _selected(nothing, clearing, domain) or Shortfall(Reason.UNPLACEABLE, room, room)
    bundles = bundles_of(search, first, last)
    if len(bundles) == 0:
        return Shortfall(Reason.NO_CANDIDATES, room, room)
    permitted = bundles
    if search.quota_filter is not None:
        permitted = voted(bundles, search.quota_filter, search.snapshot, (first, last), everywhere=search.everywhere)
    return _chosen(search, domain, permitted) or _shortfall(search, (first, last), bundles, permitted, room)


def bundles_of(search: Search, first: int, last: int) -> Bundles:
    """The bundles on the nodes ``first:last``, in order, before the vote (document 1, phases 1 and 2)."""
    occupancy = search.snapshot.occupancy
    entries = occupancy.task[occupancy.start[first] : occupancy.start[last]]
    found = split(entries, *columns(search))
    last_rank = search.snapshot.podgroups.order
    return in_order(Bundles(*found), search.before, search.after, last_rank, search.efficiency_step)


def columns(search: Search) -> tuple[Any, ...]:
    """What ``split`` asks for beside the tasks of the slice: tasks, gangs, surplus, scale, flags, seats."""
    snapshot, surplus, scale = search.snapshot, search.surplus, search.scale
    tasks = snapshot.tasks
    return (
        (
            search.candidate, tasks.status, tasks.podgroup, tasks.role, tasks.subgroup, tasks.shape, tasks.priority,
            tasks.order,
        ),
        search.gangs,
        (surplus.gang, surplus.role, surplus.role_start, surplus.leaf, surplus.slack, surplus.parent),
        (snapshot.shapes.request, scale.needed, scale.coverage, scale.waste),
        (search.allow_whole, search.everywhere, search.quota_filter is not None),
        np.full(len(snapshot.podgroups), NONE, np.int32),
    )  # fmt: skip


def _clearing(search: Search, first: int, last: int) -> Clearing:
    return Clearing(search.snapshot, search.need, search.allowed, first, last, interchangeable=search.interchangeable)


def _shortest(clearing: Clearing) -> int:
    return int(clearing.total.min()) if len(clearing.total) else 0


def _shortfall(search: Search, slice_: tuple[int, int], bundles: Bundles, permitted: Bundles, room: int) -> Shortfall:
    """Say what was in the way: the law, the vote, or the nodes."""
    everything, allowed = _clearing(search, *slice_), _clearing(search, *slice_)
    everything.leave(bundles.task)
    allowed.leave(permitted.task)
    reachable = _shortest(allowed)
    if allowed.places(_Chosen(search, slice_, permitted).victims):
        return Shortfall(Reason.ILLEGAL, room, reachable)
    vetoed = everything.places(_Chosen(search, slice_, bundles).victims)
    return Shortfall(Reason.VETOED if vetoed else Reason.UNPLACEABLE, room, reachable)


# -- choosing ----------------------------------------------------------------------------------------------------------


@kernel
def _members(
    podgroups: Rows, start: Longs, rows: Rows, candidate: Bools, node: Any, first: int, last: int, limit: int
) -> Rows:
    """Running members of the podgroups that lie outside ``first:last``; at most ``limit``."""
    found, many = np.empty(limit, np.int64), 0
    for group in podgroups:
        for row in rows[start[group] : start[group + 1]]:
            if candidate[row] and not first <= node[row] < last:
                found[many] = row
                many += 1
    return found[:many]


_NO_BUNDLES = Bundles(
    np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64),
    np.zeros(0), np.zeros(0),
)  # fmt: skip


@dataclass(frozen=True)
class _Chosen:
    """Bundles that are victims, what follows from them, and how many tasks were given back."""

    search: Search
    slice_: tuple[int, int]
    bundles: Bundles
    given_back: int = 0

    @property
    def broken(self) -> Rows:
        """Podgroups that break."""
        return self.bundles.podgroup[~self.bundles.safe]

    def victims(self) -> Rows:
        """All victims, ascending: those of the bundles, and the members elsewhere that go along."""
        limit = int(self.bundles.elsewhere.sum())
        if limit == 0:
            return np.sort(self.bundles.task)
        snapshot = self.search.snapshot
        along = _members(
            self.broken, *snapshot.by_podgroup, self.search.candidate, snapshot.tasks.node, *self.slice_, limit
        )
        return np.sort(np.concatenate([self.bundles.task, along]))

    def lawful(self) -> bool:
        """Whether they may go together."""
        return self.search.validate_set is None or self.search.validate_set(self.victims())


def _chosen(search: Search, domain: int, bundles: Bundles) -> Selection | None:
    """Cover with the fewest leading bundles, then give back.

    The law is asked about the outcome. Where it refuses (the gang's own queue may need more victims than the nodes do),
    the search is repeated with the law asked at every step.
    """
    topology = search.snapshot.topology
    slice_ = int(topology.start[domain]), int(topology.stop[domain])
    for by_law in (False, True):
        clearing = _clearing(search, *slice_)
        chosen = _least(search, slice_, clearing, bundles, by_law=by_law)
        if chosen is None:
            return None
        if chosen.lawful():
            return _selected(chosen, clearing, domain)
    return None


def _least(
    search: Search, slice_: tuple[int, int], clearing: Clearing, bundles: Bundles, *, by_law: bool
) -> _Chosen | None:
    """The least that works of the bundles in their order; None if nothing does."""

    def works(chosen: _Chosen) -> bool:
        return clearing.places(chosen.victims) and not (by_law and not chosen.lawful())

    def leading_work(count: int) -> bool:
        return works(_Chosen(search, slice_, bundles.first(count)))

    slots_decide = clearing.exact and not by_law
    count = clearing.cover(bundles.stop, bundles.task, None if slots_decide else leading_work)
    if count == NONE:
        return None
    leading = bundles.first(count)
    units, unit = _units(search, leading)

    def rest(returned: Bools) -> _Chosen:
        return _Chosen(search, slice_, leading.having(~returned[unit]), int(returned[unit].sum()))

    returned = clearing.give_back(
        units, None if slots_decide else lambda returned: works(rest(returned)), lawful=by_law
    )
    return rest(returned)


def _units(search: Search, bundles: Bundles) -> tuple[Units, Rows]:
    """What can be given back, in this order, and the unit of each task: int64[C].

    Whole bundles come first, those that policy would take last in front, among equals the costliest. Then the surplus,
    task by task: of the bundle that policy would take last, the highest priority, then the oldest.
    """
    tasks, owner, start = search.snapshot.tasks, bundles.owner, bundles.start
    whole = np.flatnonzero(~bundles.safe)
    group = bundles.podgroup[whole]
    worth = bundles.cost[whole] * search.lost_work[group]
    whole = whole[np.lexsort((-whole, -worth, -search.before[group]))]
    size = (bundles.stop - start)[whole]
    single = np.flatnonzero(bundles.safe[owner])
    rows = bundles.task[single]
    single = valuable_first(single, owner[single], len(bundles), tasks.priority[rows], tasks.order[rows])
    stop = np.concatenate([np.cumsum(size), size.sum() + 1 + np.arange(len(single))])
    runs = np.repeat(start[whole] - (np.cumsum(size) - size), size) + np.arange(int(size.sum()))
    where = np.empty(len(bundles.task), np.int64)
    where[runs] = np.repeat(np.arange(len(whole)), size)
    where[single] = len(whole) + np.arange(len(single))
    after = np.full(len(stop), NONE, np.int64)
    if search.everywhere and len(whole):
        unit_of = np.full(int(bundles.podgroup.max()) + 1, NONE, np.int64)
        unit_of[bundles.podgroup[whole]] = np.arange(len(whole))
        after[len(whole) :] = unit_of[bundles.podgroup[owner[single]]]
    return Units(stop, bundles.task[np.concatenate([runs, single])], after), where


@kernel
def valuable_first(single: Rows, bundle: Rows, bundles: int, priority: Any, order: Longs) -> Rows:
    """Sort positions of tasks: the last bundle first, in it the highest priority, then the oldest."""
    high, low = np.empty(len(single), np.int64), order.copy()
    for i in range(len(single)):
        high[i] = ((bundles - bundle[i]) << 32) - np.int64(priority[i])
    sorted_ = single.copy()
    sort_by(sorted_, high, low)
    return sorted_


# -- the outcome -------------------------------------------------------------------------------------------------------


def _selected(chosen: _Chosen, clearing: Clearing, domain: int) -> Selection | None:
    """Lay the gang out and price what it takes; None if no layout is found."""
    victims = chosen.victims()
    node = clearing.arranged(victims)
    if node is None:
        return None
    return Selection(victims, node, _price(chosen, victims, domain), _told(chosen), chosen.given_back)


def _price(chosen: _Chosen, victims: Rows, domain: int) -> Price:
    """Price victims: gangs that break lose all they have everywhere, those that were broken before lose nothing."""
    search, bundles = chosen.search, chosen.bundles
    snapshot, group = search.snapshot, bundles.podgroup
    whole = ~bundles.safe
    loses = bundles.safe & (search.surplus.gang[group] >= 0) & ~np.isin(group, chosen.broken)
    rows = bundles.task[loses[bundles.owner]]
    lost = (bundles.cost[whole] * search.lost_work[group[whole]]).sum()
    lost += (search.units[snapshot.tasks.shape[rows]] * search.lost_work[snapshot.tasks.podgroup[rows]]).sum()
    return Price(
        0 if search.violations is None else search.violations(victims),
        int((snapshot.podgroups.min_available[group[whole]] > 1).sum()),
        int(snapshot.podgroups.priority[group].max(initial=NO_PRIORITY)),
        int(search.unfairness[group].max(initial=0)),
        _important(search, victims),
        round(float(lost), 6),
        len(victims),
        int(snapshot.topology.tier[domain]),
        domain,
    )


def _important(search: Search, victims: Rows) -> int:
    """How many victims are of the highest priority among them, where priority ranks; 0 elsewhere."""
    priority = search.snapshot.podgroups.priority[search.snapshot.tasks.podgroup[victims]]
    return int((priority == priority.max(initial=NO_PRIORITY)).sum()) if search.by_priority else 0


def _told(chosen: _Chosen) -> tuple[VictimBundle, ...]:
    """The bundles that are victims in the end, in the order in which they were chosen."""
    bundles, priority = chosen.bundles, chosen.search.snapshot.podgroups.priority
    columns = (bundles.podgroup, bundles.safe, bundles.stop - bundles.start, bundles.elsewhere, bundles.efficiency)
    return tuple(
        VictimBundle(group, safe, tasks, elsewhere, int(priority[group]), 0.0 if safe else round(efficiency, 6))
        for group, safe, tasks, elsewhere, efficiency in zip(*(column.tolist() for column in columns), strict=True)
    )
