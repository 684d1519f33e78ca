"""The input of a search for victims, and what the kernels of reprieve say about candidates in one of its domains."""

from dataclasses import dataclass, field

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Floats, Longs, Rows, frozen
from pipeline.cluster.counted.counting import add_requests
from pipeline.cluster.snapshot import Snapshot
from pipeline.keeping import cached_property
from pipeline.placement.kept_places import no_places
from pipeline.placement.layout.packing import node_slots
from pipeline.placement.layout.regions_of_parts import NOT_ASKED
from pipeline.placement.layout.settled_groups import AskedPlaces
from pipeline.placement.need import Need
from pipeline.placement.room.counted_need import CountedNeed
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.records import replace
from pipeline.solvers.gather.gathering import Gathered, counted_of, in_rank_order, only_slots_decide
from pipeline.solvers.gather.leaving.pool import Pool, pool_of
from pipeline.solvers.gather.leaving.reprieve import (
    Exceeded,
    LeavingCandidates,
    Wanted,
    brought,
    enough_without,
    has_slots_without,
    reprieved,
    reprieved_in_places,
)
from pipeline.solvers.gather.multiples import Steps
from pipeline.solvers.gather.offers import Kinds, kinds_of, offers_of
from pipeline.solvers.gather.tree import Tree, below, tree_of

#: No budget is exceeded.
_NONE_EXCEEDED = Exceeded(*[frozen([], np.int64)] * 3)


@dataclass(frozen=True)
class GatherSearch:
    """The input of the search in each domain.

    Attributes
    ----------
    host
        The plugins on the snapshot without the promises that may be withdrawn.
    allowed: bool[S, N]
        Nodes that each of ``need.shapes`` may use.
    existing: int64[N]
    candidate: bool[T]
        Tasks that may be victims, each looked at alone.
    short: int64[R]
        How much quota the gang lacks.
    frees: bool[Q]
        Queues whose victims free it: its own, or all below one of its ancestors.
    steps
        The multiples in which domains take its tasks; None if any number will do.
    lost: float64[G]
    queue_rank: int64[G]
        In reclaim, the rank of each podgroup's queue, fairest to take from first; None in preempt.
    out_of_order
        Whether quotas are asked about victims that other orders choose: see ``orders_otherwise``.
    elsewhere: int64[K]
        Candidates that free the quota wherever they run: see ``with_elsewhere``.
    validates
        Whether plugins judge victims as a whole before they are taken.
    """

    host: Host
    need: Need
    preemptor: Preemptor
    allowed: Bools
    existing: Longs
    candidate: Bools
    short: Longs
    frees: Bools
    steps: Steps | None
    lost: Floats
    queue_rank: Longs | None
    out_of_order: bool = False
    elsewhere: Rows = field(default_factory=lambda: NO_ROWS)
    validates: bool = True

    def may_all_go(self, victims: Rows) -> bool:
        """Whether victims (int64[V]) may go together, as far as the search asks."""
        return not self.validates or self.host.validate_set(self.preemptor, victims)

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is searched."""
        return self.host.context.snapshot

    @cached_property
    def kinds(self) -> Kinds:
        """The gang's tasks in rank order."""
        rows = in_rank_order(self.snapshot, self.need.tasks[: self.need.minimum])
        return kinds_of(self.counted, rows)

    @cached_property
    def priorities(self) -> list[int]:
        """The priorities of podgroups with candidates, ascending."""
        groups = self.snapshot.podgroups
        has = np.zeros(len(groups), bool)
        has[self.snapshot.tasks.podgroup[self.candidate]] = True
        return list[int](np.unique(groups.priority[has]).tolist())

    @cached_property
    def may_be_lawful(self) -> Bools:
        """bool[D]: domains with slots for each kind of task if all candidates leave whose queues may lose anything.

        In the others quotas permit too little in whatever order they are counted off.
        """
        snapshot, tree = self.snapshot, self.snapshot.once(tree_of)
        may = self.host.may_lose(self.preemptor) if self.host.has_quota(self.preemptor) else np.ones(1, bool)
        if may.all():
            return np.ones(tree.domains, bool)
        free, rows = self.room, np.flatnonzero(self.candidate)
        rows = rows[may[snapshot.queue_of(rows)]]
        self.add_held(rows, free, snapshot.tasks.node[rows].astype(np.int64))
        return offers_of(tree, self.kinds, free, self.existing, None).enough[: tree.domains]

    @cached_property
    def counted(self) -> CountedNeed:
        """The need of its minimum."""
        rows, may_leave = self.need.tasks[: self.need.minimum], np.flatnonzero(self.candidate)
        return counted_of(self.snapshot, self.need, self.allowed, rows, may_leave)

    @cached_property
    def slots_decide(self) -> bool:
        """Whether only slots decide where the minimum fits."""
        return only_slots_decide(self.counted)

    @cached_property
    def areas(self) -> "dict[int, GatherArea]":
        """The domains that were searched."""
        return {}

    @property
    def room(self) -> Longs:
        """int64[N, R]: the columns of ``counted`` but for cards as they are; a copy."""
        columns = self.counted.columns
        return np.array(columns.future[:, : columns.without_cards], order="C")

    def add_held(self, rows: Rows, room: Longs, node: Rows) -> None:
        """Add what tasks (int64[K]) hold to rows of ``room`` (int64[n, R']), those of ``node`` (int64[K])."""
        add_requests(room, node, self.counted.form[rows], self.counted.columns.held, 1)


@dataclass(frozen=True)
class GatherArea:
    """A domain that is searched for room: its nodes, numbered from its first, and what the gang asks of them.

    Attributes
    ----------
    domain, start, stop
        Its row, and the rows of its nodes.
    tree
        The domains and nodes in it.
    kinds
        The gang's tasks, in rank order.
    wanted
        What must remain possible. A last node that admits no task stands for the nodes of candidates ``outside``.
    outside: int64[K]
        Candidates that run outside and may leave to free quota.
    known
        Where the gang goes without some victims, by their rows: orders of return come to the same sets.
    """

    domain: int
    start: int
    stop: int
    tree: Tree
    kinds: Kinds
    wanted: Wanted
    outside: Rows
    known: dict[bytes, Gathered | None] = field(default_factory=dict)

    def holds(self, node: Rows) -> Bools:
        """bool[K]: which of the nodes lie in the domain."""
        return np.asarray((self.start <= node) & (node < self.stop))

    def numbers(self, node: Rows) -> Rows:
        """int64[K]: the nodes as the kernels number them."""
        own = node - self.start
        return np.where(self.holds(node), own, self.stop - self.start) if len(self.outside) else own


def pool_in(search: GatherSearch, rows: Rows, gain: Longs | None = None) -> Pool:
    """The candidates ``rows`` of a search; ``gain``: see ``pool_of``."""
    snapshot, counted = search.snapshot, search.counted
    frees = snapshot.request_of(rows) * search.frees[snapshot.queue_of(rows)][:, None]
    held = counted.columns.held[counted.form[rows]]
    return pool_of(snapshot, rows, search.preemptor, search.lost, held, frees, gain)


def area_of(search: GatherSearch, domain: int) -> GatherArea:
    """A domain as the kernels know it."""
    if domain not in search.areas:
        search.areas[domain] = _area_of(search, domain)
    return search.areas[domain]


def _area_of(search: GatherSearch, domain: int) -> GatherArea:
    counted, (start, stop) = search.counted, search.snapshot.topology.slice_of(domain)
    allowed = np.ascontiguousarray(counted.open[:, start:stop])
    place = search.snapshot.tasks.node[search.elsewhere]
    outside = search.elsewhere[(place < start) | (place >= stop)]
    if len(outside):
        allowed = np.pad(allowed, ((0, 0), (0, 1)))
    return GatherArea(
        domain, start, stop, below(search.snapshot.once(tree_of), domain), search.kinds.on(start, stop),
        Wanted(counted.columns.request, counted.need.count, allowed, search.short, _regions(search, start, stop)),
        outside,
    )  # fmt: skip


def _regions(search: GatherSearch, start: int, stop: int) -> AskedPlaces:
    """What the gang asks of regions in a slice."""
    packing = search.counted.packings.on(start, stop)
    return packing.without_places(NOT_ASKED if search.slots_decide else search.counted.asked or NOT_ASKED)


def leaving(
    search: GatherSearch, area: GatherArea, pool: Pool, order: Longs, exceeded: Exceeded = _NONE_EXCEEDED
) -> Bools:
    """bool[C]: the candidates that leave if only those in ``order`` (int64[K]) may return; see `reprieved`."""
    some = _leaving(area, pool)
    return reprieved(area.wanted, _room(search, area), some, np.ascontiguousarray(order), exceeded)


def leaving_places(search: GatherSearch, area: GatherArea, pool: Pool, order: Longs) -> tuple[Bools, Gathered] | None:
    """The same where those that return leave the gang places, and these; None if they have to be sought one by one."""
    packing = search.counted.packings.on(area.start, area.stop)
    asked = None if search.steps is not None else packing.asked_places
    if asked is None:
        return None
    some, kept = _leaving(area, pool), no_places(asked)
    wanted = area.wanted._replace(places=asked)
    leaves = reprieved_in_places(wanted, _room(search, area), some, np.ascontiguousarray(order), kept)
    node = packing.nodes_of(kept.taken) if kept.found[0] else None
    if node is None:
        return None
    return leaves, Gathered(search.need.tasks[: search.need.minimum], node, int(area.tree.tier[0]))


def _leaving(area: GatherArea, pool: Pool) -> LeavingCandidates:
    return LeavingCandidates(area.numbers(pool.node), pool.held, pool.frees, pool.unit, pool.gain)


def slots_of_nodes(search: GatherSearch, area: GatherArea, pool: Pool) -> Longs:
    """int64[C]: how many slots the node of each candidate gains if all on it leave, for all kinds together."""
    asked, node, room = area.wanted, area.numbers(pool.node), _room(search, area)
    before, _ = node_slots(asked.request, asked.many, asked.allowed, 0, room)
    search.add_held(pool.rows, room, node)
    after, _ = node_slots(asked.request, asked.many, asked.allowed, 0, room)
    return np.asarray((after - before).sum(axis=0)[node])


def slots_suffice(search: GatherSearch, area: GatherArea, pool: Pool, leaves: Bools) -> bool:
    """Whether the domain has slots and regions for the gang's tasks once ``leaves`` (bool[C]) of the pool are gone."""
    return has_slots_without(area.wanted, _room(search, area), area.numbers(pool.node), pool.held, leaves)


def sets_enough(search: GatherSearch, area: GatherArea, pool: Pool) -> Bools:
    """bool[S, C]: sets of a few candidates after which the domain has slots, and the gang the quota that it lacks.

    Of tasks alike, for which slots decide, only sets that are needed as a whole.
    """
    enough = enough_without(area.wanted, _room(search, area), _leaving(area, pool))
    numbers, each = np.arange(len(enough)), np.arange(len(pool.rows))
    if search.slots_decide and search.steps is None and len(area.wanted.many) == 1:
        needed = enough.copy()
        for one in each.tolist():
            leaves = (numbers >> one & 1) > 0
            needed[leaves] &= ~enough[numbers[leaves] ^ 1 << one]
        enough = needed
    return np.asarray((numbers[enough][:, None] >> each & 1) > 0)


def slots_brought(search: GatherSearch, area: GatherArea, pool: Pool) -> Longs:
    """int64[C]: the slots that the unit of each candidate brings if it alone leaves."""
    some = _leaving(area, pool)
    return brought(area.wanted, _room(search, area), some, np.ascontiguousarray(pool.usual))


def slots_of_each(search: GatherSearch, area: GatherArea, pool: Pool) -> Longs:
    """int64[C]: the slots that each candidate brings if it alone leaves."""
    return slots_brought(search, area, replace(pool, unit=np.full(len(pool.rows), NONE, np.int64)))


def _room(search: GatherSearch, area: GatherArea) -> Longs:
    """int64[n, R']: the room of the domain's nodes beside candidates, a copy."""
    room = search.counted.columns.future[area.start : area.stop]
    return np.pad(room, ((0, 1), (0, 0))) if len(area.outside) else room.copy()
