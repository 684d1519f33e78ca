"""Victims of one domain: bundle, order, vote, order again, cover, give back (document 1, section 3.4.1).

Where we differ: room without evictions comes first; the gang must really place, where document 1 sums resources up;
what is not needed is given back; and the whole selection is priced, so that domains can be compared.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.bounds import units
from pipeline.bundles import SAFE, WHOLE, Surplus, asked, efficiency, mark_safe, surplus_of, victim_order
from pipeline.cluster.arrays import Bools, Floats, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.cover import Slice, cover, give_back
from pipeline.explanation import NO_PRIORITY, Price, Reason, VictimBundle
from pipeline.need import Need


@dataclass(frozen=True)
class Search:
    """One preemptor, one purpose: what the selection in every domain needs to know.

    Attributes
    ----------
    allowed: bool[S, N]
        Nodes that each of ``need.shapes`` may use.
    candidate: bool[T]
        Tasks that may be victims as far as each is judged alone.
    before, after: int64[G]
        Policy ranks ahead of and behind efficiency; smaller goes first.
    unfairness: int64[G]
        Rank used in the price; 0 where fairness has no say.
    lost_work: float64[G]
        Weight of what an eviction destroys.
    vote
        The plugins' vote on ordered candidates, called once a domain with the whole list; None: nobody counts.
    legal
        Whether a final set is lawful as a whole.
    allow_whole
        Whether gangs may be broken.
    everywhere
        Whether members of a broken gang outside the domain go too.
    efficiency_step
        Width of the steps in which efficiencies are compared.
    """

    snapshot: Snapshot
    need: Need
    allowed: Bools
    candidate: Bools
    before: Longs
    after: Longs
    unfairness: Longs
    lost_work: Floats
    vote: Callable[[Rows], Bools] | None
    legal: Callable[[Rows], bool] | None
    allow_whole: bool
    everywhere: bool
    efficiency_step: float

    @cached_property
    def surplus(self) -> Surplus:
        """What every podgroup can spare."""
        return surplus_of(self.snapshot)

    @cached_property
    def units(self) -> Floats:
        """float64[shapes]: a task of each shape in units of the need."""
        return units(self.snapshot, self.need)

    @cached_property
    def removable(self) -> Bools:
        """bool[G]: podgroups of which every running task may be evicted."""
        tasks = self.snapshot.tasks
        running = (tasks.status == BOUND) | (tasks.status == RUNNING)
        fixed = np.bincount(tasks.podgroup[running & ~self.candidate], minlength=len(self.snapshot.podgroups))
        return np.asarray(fixed == 0)

    def members(self, podgroup: int) -> Rows:
        """Rows of all running tasks of a podgroup."""
        rows = self.snapshot.tasks_of(podgroup)
        status = self.snapshot.tasks.status[rows]
        return rows[(status == BOUND) | (status == RUNNING)]


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
    """Why a domain fell; slots for the leading shape without evictions and with all permitted ones."""

    reason: Reason
    room: int = 0
    reachable: int = 0


@dataclass(frozen=True)
class _Bundles:
    """Bundles of one domain in order: rows of tasks, and where each bundle ends.

    Attributes
    ----------
    podgroup, kind: int64[B]
    efficiency: float64[B]
        Infinite for safe ones.
    rows: int64[C]
    stop: int64[B]
    """

    podgroup: Rows
    kind: Rows
    efficiency: Floats
    rows: Rows
    stop: Rows

    @property
    def start(self) -> Rows:
        """int64[B]: where each bundle begins."""
        return np.concatenate([np.zeros(1, np.int64), self.stop[:-1]])

    def tasks(self, bundle: int) -> Rows:
        """Rows of one bundle."""
        return self.rows[self.start[bundle] : self.stop[bundle]]

    def first(self, count: int) -> "_Bundles":
        """The leading ``count`` bundles."""
        end = int(self.stop[count - 1]) if count else 0
        return _Bundles(
            self.podgroup[:count], self.kind[:count], self.efficiency[:count], self.rows[:end], self.stop[:count]
        )


def select(search: Search, domain: int) -> Selection | Shortfall:
    """Choose victims in one domain and place the minimum, or say why it cannot be done.

    Raises nothing; every refusal is a ``Shortfall``.
    """
    snapshot = search.snapshot
    start, stop = int(snapshot.topology.start[domain]), int(snapshot.topology.stop[domain])
    if start == stop:
        return Shortfall(Reason.CONSTRAINTS)
    room = np.ascontiguousarray(snapshot.room.future_of(np.arange(start, stop)))
    allowed = np.ascontiguousarray(search.allowed[:, start:stop])
    part = Slice(snapshot, search.need, allowed, start, stop, room)
    nothing = np.zeros(0, np.int64)
    if cover(part, nothing, nothing) == 0:
        return _selected(search, part, domain, _bundle(search, nothing), nothing, 0)
    candidates = _candidates(search, start, stop)
    if len(candidates) == 0:
        return Shortfall(Reason.NO_CANDIDATES)
    bundles = _in_order(search, _bundle(search, candidates))
    voted = _in_order(search, _voted(search, bundles, start, stop))
    count = cover(part, voted.rows, voted.stop)
    if count < 0:
        lost = len(voted.rows) < len(bundles.rows)
        return Shortfall(Reason.VETOED if lost and part.places(bundles.rows) else Reason.UNPLACEABLE)
    chosen = voted.first(count)
    kept, back = _given_back(search, part, chosen)
    return _selected(search, part, domain, chosen, kept, back)


def _candidates(search: Search, start: int, stop: int) -> Rows:
    """Candidates on the nodes ``start:stop``: a slice of the occupancy."""
    occupancy = search.snapshot.occupancy
    rows = occupancy.task[occupancy.start[start] : occupancy.start[stop]]
    return rows[search.candidate[rows]]


def _bundle(search: Search, candidates: Rows) -> _Bundles:
    """Split candidates into safe and whole bundles; whole ones that may not go are left out."""
    tasks, need, left = search.snapshot.tasks, search.need, search.surplus
    rows = candidates[victim_order(search.snapshot, need, candidates)] if len(candidates) else candidates
    owner = tasks.podgroup[rows]
    safe = mark_safe(
        owner,
        tasks.role[rows],
        tasks.subgroup[rows],
        left.gang.copy(),
        left.role.copy(),
        left.leaf.copy(),
        left.slack.copy(),
        left.parent,
    )
    able = safe | (search.removable[owner] if search.everywhere else search.allow_whole)
    if not search.allow_whole:
        able = safe
    kind = np.where(safe, SAFE, WHOLE)
    rows, owner, kind = rows[able], owner[able], kind[able]
    by_bundle = np.lexsort((kind, owner))
    rows, owner, kind = rows[by_bundle], owner[by_bundle], kind[by_bundle]
    last = np.ones(len(rows), bool)
    last[:-1] = (owner[1:] != owner[:-1]) | (kind[1:] != kind[:-1])
    stop = np.flatnonzero(last) + 1
    ends = stop - 1
    return _rated(search, owner[ends].astype(np.int64), kind[ends].astype(np.int64), rows, stop)


def _rated(search: Search, podgroup: Rows, kind: Rows, rows: Rows, stop: Rows) -> _Bundles:
    """Bundles with their efficiency: resources freed here against what the whole gang holds."""
    dims = asked(search.need)
    held = search.snapshot.shapes.request[search.snapshot.tasks.shape[rows]][:, dims]
    running = np.concatenate([np.zeros((1, len(dims)), np.int64), np.cumsum(held, axis=0)])
    local = running[stop] - running[np.concatenate([np.zeros(1, np.int64), stop[:-1]])] if len(stop) else held
    everywhere = search.snapshot.podgroup_held[podgroup][:, dims]
    rated = efficiency(local, everywhere, search.need.total[dims])
    return _Bundles(podgroup, kind, np.where(kind == SAFE, np.inf, rated), rows, stop)


def _in_order(search: Search, bundles: _Bundles) -> _Bundles:
    """Bundles by kind, policy rank, efficiency in steps (whole ones only), policy rank, and last the podgroup's order."""
    if len(bundles.stop) == 0:
        return bundles
    step = np.where(bundles.kind == SAFE, 0.0, -np.floor(bundles.efficiency / search.efficiency_step + 1e-9))
    owner = bundles.podgroup
    order = np.lexsort(
        (-search.snapshot.podgroups.order[owner], search.after[owner], step, search.before[owner], bundles.kind)
    )
    sizes = bundles.stop - bundles.start
    rows = bundles.rows[_runs(bundles.start[order], sizes[order])]
    return _Bundles(owner[order], bundles.kind[order], bundles.efficiency[order], rows, np.cumsum(sizes[order]))


def _runs(start: Rows, size: Rows) -> Rows:
    """Positions of runs laid end to end: ``start[i] .. start[i] + size[i]`` for each i."""
    first = np.cumsum(size) - size
    return np.repeat(start - first, size) + np.arange(int(size.sum()))


def _voted(search: Search, bundles: _Bundles, start: int, stop: int) -> _Bundles:
    """What the plugins let go: whole bundles entirely or not at all, safe ones shrunk (document 1, phase 3)."""
    if search.vote is None or len(bundles.stop) == 0:
        return bundles
    lists = [_with_members(search, bundles, bundle, start, stop) for bundle in range(len(bundles.stop))]
    permitted = search.vote(np.concatenate(lists))
    ends = np.cumsum([len(rows) for rows in lists])
    size = bundles.stop - bundles.start
    keep = np.zeros(len(bundles.rows), bool)
    for bundle, end in enumerate(ends.tolist()):
        granted = permitted[end - len(lists[bundle]) : end]
        local = slice(int(bundles.start[bundle]), int(bundles.stop[bundle]))
        if bundles.kind[bundle] == SAFE:
            keep[local] = granted[: size[bundle]]
        else:
            keep[local] = granted.all()
    kept = np.add.reduceat(keep, bundles.start)
    alive = kept > 0
    return _rated(search, bundles.podgroup[alive], bundles.kind[alive], bundles.rows[keep], np.cumsum(kept[alive]))


def _with_members(search: Search, bundles: _Bundles, bundle: int, start: int, stop: int) -> Rows:
    """The bundle's tasks, followed by the members outside the domain that would go with a whole one."""
    rows = bundles.tasks(bundle)
    if bundles.kind[bundle] == SAFE or not search.everywhere:
        return rows
    members = search.members(int(bundles.podgroup[bundle]))
    node = search.snapshot.tasks.node[members]
    return np.concatenate([rows, members[(node < start) | (node >= stop)]])


def _given_back(search: Search, part: Slice, chosen: _Bundles) -> tuple[Rows, int]:
    """Local victims that cannot be spared, and how many of the chosen ones were given back.

    Whole bundles are tried first, the costliest first, then safe tasks one by one, the most valuable first. Safe tasks
    of a gang that stays broken are worth nothing alone; where such a gang goes everywhere they are not tried.
    """
    snapshot = search.snapshot
    whole = np.flatnonzero(chosen.kind == WHOLE)
    worth = _gang_cost(search, chosen.podgroup[whole])
    priority = snapshot.podgroups.priority[chosen.podgroup[whole]]
    whole = whole[np.lexsort((chosen.podgroup[whole], -worth, -priority))]
    back = give_back(part, [chosen.tasks(bundle) for bundle in whole], chosen.rows)
    stay = np.ones(len(chosen.rows), bool)
    for bundle in whole[back]:
        stay[chosen.start[bundle] : chosen.stop[bundle]] = False
    broken = chosen.podgroup[whole[~back]]
    of_bundle = np.repeat(np.arange(len(chosen.stop)), chosen.stop - chosen.start)
    loose = stay & (chosen.kind[of_bundle] == SAFE)
    if search.everywhere:
        loose &= ~np.isin(chosen.podgroup[of_bundle], broken)
    singles = chosen.rows[loose]
    singles = singles[_most_valuable_first(search, singles)]
    returned = give_back(part, [singles[at : at + 1] for at in range(len(singles))], chosen.rows[stay])
    stay &= ~np.isin(chosen.rows, singles[returned])
    return chosen.rows[stay], int(len(chosen.rows) - stay.sum())


def _most_valuable_first(search: Search, rows: Rows) -> Rows:
    """Positions of tasks: the highest priority first, then those of whose work most is lost, then the oldest."""
    tasks = search.snapshot.tasks
    owner = tasks.podgroup[rows]
    worth = search.units[tasks.shape[rows]] * search.lost_work[owner]
    return np.lexsort((tasks.order[rows], -worth, -tasks.priority[rows], -search.snapshot.podgroups.priority[owner]))


def _gang_cost(search: Search, podgroup: Rows) -> Floats:
    """float64[B]: what breaking each gang destroys, in units of the need."""
    dims = asked(search.need)
    held = search.snapshot.podgroup_held[podgroup][:, dims] / search.need.total[dims]
    weighed: Floats = held.sum(axis=1) * search.lost_work[podgroup]
    return weighed


def _selected(
    search: Search, part: Slice, domain: int, chosen: _Bundles, local: Rows, back: int
) -> Selection | Shortfall:
    """Place the gang, add the members elsewhere, ask for the law, and price the lot."""
    node = part.arranged(local)
    if node is None:
        return Shortfall(Reason.UNPLACEABLE)
    tasks = search.snapshot.tasks
    kept = np.isin(chosen.rows, local)
    of_bundle = np.repeat(np.arange(len(chosen.stop)), chosen.stop - chosen.start)
    broken = np.unique(chosen.podgroup[of_bundle[kept & (chosen.kind[of_bundle] == WHOLE)]])
    victims = np.sort(local)
    if search.everywhere and len(broken):
        victims = np.unique(np.concatenate([local, *(search.members(int(group)) for group in broken)]))
    if search.legal is not None and not search.legal(victims):
        return Shortfall(Reason.ILLEGAL)
    owner = tasks.podgroup[victims]
    single = ~np.isin(owner, broken) & (search.surplus.gang[owner] >= 0)
    lost = _gang_cost(search, broken).sum() + (
        search.units[tasks.shape[victims[single]]] * search.lost_work[owner[single]]
    ).sum()
    price = Price(
        0,
        len(broken),
        int(search.snapshot.podgroups.priority[owner].max(initial=NO_PRIORITY)),
        int(search.unfairness[owner].max(initial=0)),
        round(float(lost), 6),
        len(victims),
        int(search.snapshot.topology.tier[domain]),
        domain,
    )
    return Selection(victims, node, price, _explained(search, chosen, kept, of_bundle, victims), back)


def _explained(
    search: Search, chosen: _Bundles, kept: Bools, of_bundle: Rows, victims: Rows
) -> tuple[VictimBundle, ...]:
    """The bundles that are victims in the end, in the order in which they were chosen."""
    local = np.bincount(of_bundle[kept], minlength=len(chosen.stop))
    everyone = search.snapshot.tasks.podgroup[victims]
    told = []
    for bundle in np.flatnonzero(local).tolist():
        group = int(chosen.podgroup[bundle])
        here = int(local[chosen.podgroup == group].sum())
        whole = bool(chosen.kind[bundle] == WHOLE)
        told.append(
            VictimBundle(
                group,
                not whole,
                int(local[bundle]),
                int((everyone == group).sum()) - here if whole else 0,
                int(search.snapshot.podgroups.priority[group]),
                0.0 if not whole else round(float(chosen.efficiency[bundle]), 6),
            )
        )
    return tuple(told)
