"""One preemptor, one purpose: the input of the selection in every domain, as values and as records for kernels."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Bytes, Floats, Ids, Longs, Rows, frozen, sealed
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.counted.counting import runs
from pipeline.cluster.rules.priorities import priority_ranks
from pipeline.cluster.rules.sparing import Quota
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Podgroups
from pipeline.decision.headroom import LineLimits
from pipeline.decision.price import in_units, needed_by
from pipeline.keeping import Keeping, cached_property
from pipeline.kernels import in_halves, writing
from pipeline.placement.layout.parts_in_regions import parts_in_regions
from pipeline.placement.layout.region_slots import NO_PARTS, PartsInRegions
from pipeline.placement.layout.regions_of_parts import AskedOfRegions, asked_of_one_region, asked_of_regions, scarcest
from pipeline.placement.need import Need
from pipeline.placement.room.card_columns import asks_for_cards, cards_scarcer, with_cards
from pipeline.placement.room.repulsion import Repulsion, repulsion_of
from pipeline.placement.room.room_columns import RoomColumns, room_columns
from pipeline.solvers.bundles.bundling.budget_columns import Covered, as_wide, covered_by, quota_with, with_budgets
from pipeline.solvers.bundles.bundling.kinds import GroupKinds, group_kinds
from pipeline.solvers.bundles.bundling.node_clearing import node_rank
from pipeline.solvers.bundles.bundling.records import Entries, Groups, Rules, Site, Surplus, TaskDetails, Terms, Worth
from pipeline.solvers.bundles.bundling.surplus import surplus_of
from pipeline.solvers.bundles.bundling.worth import worth_of

#: Steps of branch and bound in a domain, where sets are polished.
EFFORT = 1_000
#: From this many entries on, two threads judge them.
_ENTRIES_FOR_TWO = 400_000


@dataclass(frozen=True)
class BundleSearch(Keeping):
    """One preemptor, one purpose.

    Attributes
    ----------
    need
        Its minimum only; tasks beyond it do not evict.
    allowed: bool[S, N]
        Nodes that each of ``need.shapes`` may use.
    candidate: bool[T]
        Running tasks that may be victims, each judged alone.
    rank_before, rank_after: int64[G]
        Policy ranks before and after efficiency; smaller goes first.
    queue_rank: int64[G]
        Rank of the podgroup's queue in the price; 0 where fairness does not count.
    lost_work: float64[G]
        Weight of lost work, see `price.lost_work`.
    quota_filter
        The plugins' vote on ordered candidates and their units (``Host.bundle_quota_filter``), asked with the whole
        list of a domain; None: no quota is counted.
    validate_set
        Whether a final set is lawful as a whole, in any order.
    rules
        Its switches.
    by_node
        Whether room is made node by node, so that the order of bundles by nodes is tried as well.
    effort
        Steps of branch and bound in a domain that is selected; 0: nothing else is tried either where the order of
        bundles makes room.
    quota, budgets
        What ``quota_filter`` counts of queues, and disruption budgets that bind, where all can be counted in columns.
    limits
        Those of the preemptor's queue, below which a final set must make room as well; None: they are not known.
    """

    snapshot: Snapshot
    need: Need
    allowed: Bools
    candidate: Bools
    rank_before: Longs
    rank_after: Longs
    queue_rank: Longs
    lost_work: Floats
    quota_filter: Callable[[Rows, Rows], Bools] | None
    validate_set: Callable[[Rows], bool]
    rules: Rules
    by_node: bool
    effort: int
    quota: Quota
    budgets: Budgets
    limits: Callable[[], LineLimits] | None

    def __post_init__(self) -> None:
        """Refuse columns that do not go together: kernels do not check their bounds."""
        groups, nodes = len(self.snapshot.podgroups), len(self.snapshot.nodes)
        expected = {
            "allowed": (len(self.need.shapes), nodes), "candidate": (len(self.snapshot.tasks),),
            "rank_before": (groups,), "rank_after": (groups,), "queue_rank": (groups,), "lost_work": (groups,),
        }  # fmt: skip
        for name, shape in expected.items():
            found = getattr(self, name).shape
            if found != shape:
                raise ValueError(f"search.{name}: expected shape {shape}, found {found}")

    def nodes_of(self, domain: int) -> tuple[int, int]:
        """The node rows of a domain, from the first up to the second."""
        return self.snapshot.topology.slice_of(domain)

    @cached_property
    def exceeded(self) -> LineLimits | None:
        """The limits that leave no room for the need while all tasks stay; None where they do, or are not known."""
        limits = None if self.limits is None else self.limits()
        if limits is None or not limits.counted or limits.take(self.need.total, self.snapshot, NO_ROWS):
            return None
        return limits

    @property
    def counts_quotas(self) -> bool:
        """Whether there are quotas, and ``terms`` count them."""
        return self.quota.counted or len(self.budgets) > 0

    def seats(self) -> Ids:
        """int32[G]: scratch for kernels, NONE everywhere."""
        result = np.empty(len(self.snapshot.podgroups), np.int32)
        result.fill(NONE)  # a third of what `numpy.full` takes for so few
        return result

    @cached_property
    def worth(self) -> Worth:
        """The worth of tasks to the need."""
        return worth_of(self.snapshot, self.need, self.columns)

    @cached_property
    def columns(self) -> RoomColumns:
        """What kernels count of nodes, tasks and the need."""
        closing = () if self.repulsion is None else self.repulsion.closing
        columns = room_columns(self.snapshot, self.need, closing)
        columns = columns if self._covered is None else with_budgets(columns, self._covered)
        return with_cards(columns, self.snapshot, self.need) if self._carded else columns

    @cached_property
    def _carded(self) -> bool:
        return asks_for_cards(self.snapshot, self.need)

    @cached_property
    def _covered(self) -> Covered | None:
        return covered_by(self.snapshot, self.budgets) if len(self.budgets) else None

    @cached_property
    def surplus(self) -> Surplus:
        """The surplus of every podgroup."""
        return self.snapshot.once(surplus_of)

    @cached_property
    def terms(self) -> Terms:
        """The same for kernels."""
        placed, tasks = self.snapshot.placed, self.snapshot.tasks
        entries = Entries(
            self._judged[0], placed.status, placed.podgroup, self.columns.form, placed.node,
            self.snapshot.occupancy.task,
            TaskDetails(tasks.role, tasks.subgroup, tasks.priority, tasks.order),
        )  # fmt: skip
        resources = self.columns.without_cards - len(self.budgets)
        quota = as_wide(self.quota, resources)
        if self._covered is not None:
            quota = quota_with(quota, self.budgets, self._covered, resources)
        quota = as_wide(quota, self.columns.held.shape[1])
        return Terms(entries, self._groups, self.surplus, self.worth, self.rules, quota)

    @cached_property
    def kinds(self) -> GroupKinds:
        """Podgroups by what their candidates free."""
        preempts, levels = self.rules.by_priority, self._level.max(initial=0) + 1
        priority = self.snapshot.podgroups.once(_priorities) if preempts else frozen(np.zeros(levels), np.int64)
        return group_kinds(self.terms, priority, self.site.scarce)

    @property
    def _level(self) -> Longs:
        return self.snapshot.podgroups.once(_priority_levels) if self.rules.by_priority else self.queue_rank

    @cached_property
    def _judged(self) -> tuple[Bools, Rows]:
        """bool[M]: which entries are candidates; int64[K]: those that run and are not."""
        task, status = self.snapshot.occupancy.task, self.snapshot.placed.status
        result = np.empty(len(task), np.bool_)

        def judge(begin: int, end: int) -> Rows:
            return begin + judged(task[begin:end], self.candidate, status[begin:end], result[begin:end])

        fixed = in_halves(judge, len(task), _ENTRIES_FOR_TWO)
        return result, np.concatenate(fixed)

    @property
    def fixed(self) -> Rows:
        """int64[K]: entries that run and are no candidates, mostly few."""
        return self._judged[1]

    @cached_property
    def _groups(self) -> Groups:
        snapshot, groups = self.snapshot, self.snapshot.podgroups
        complete = np.ones(len(groups), np.bool_)
        complete[snapshot.placed.podgroup[self.fixed]] = False
        by_node = NO_ROWS
        if self.by_node:
            by_node = sealed(node_rank(snapshot, self.need, self._judged[0], self.lost_work, self.rank_before))
        return Groups(
            cost=frozen(in_units(snapshot.podgroup_held, needed_by(self.need.total)), np.float64),
            running=frozen(snapshot.counts.running, np.int32),
            complete=frozen(complete, np.bool_),
            rank_before=frozen(self.rank_before - self.rank_before.min(initial=0), np.int64),
            rank_after=frozen(self.rank_after - self.rank_after.min(initial=0), np.int64),
            node_rank=by_node,
            order=frozen(groups.order, np.int64),
            priority=frozen(groups.priority, np.int32),
            queue_rank=frozen(self.queue_rank, np.int64),
            level=frozen(self._level, np.int64),
            lost_work=frozen(self.lost_work, np.float64),
        )

    @cached_property
    def site(self) -> Site:
        """The nodes, and what the need asks for."""
        snapshot, need, columns = self.snapshot, self.need, self.columns
        opened, parts, scarce = frozen(self.open, np.bool_), self.parts or NO_PARTS, scarcest(need, snapshot)
        if self._carded and need.plain and cards_scarcer(snapshot, need, scarce):
            scarce = columns.without_cards
        return Site(snapshot.occupancy.start, columns.future, columns.request, need.count, opened, scarce, parts)

    @cached_property
    def parts(self) -> PartsInRegions | None:
        """The parts of the need that go into one region each, if slots say whether they fit."""
        repulsion = self.repulsion
        if repulsion is not None and not repulsion.only_closes:
            return repulsion.apart
        return parts_in_regions(self.need, self.snapshot)

    @cached_property
    def asked_of_regions(self) -> AskedOfRegions | None:
        """What parts of the need ask of the regions that they go into; of several shapes without parts the whole need.

        None if slots alone say more.
        """
        need, request = self.need, self.columns.request[:, : self.columns.without_cards]
        found = asked_of_regions(need, request, self.snapshot)
        if found is None and need.plain and len(need.shapes) > 1:
            return asked_of_one_region(need, request, self.snapshot)
        return found

    @cached_property
    def alike(self) -> Bools:
        """bool[M]: entries without a card or labels that matter: shape, node, role and subgroup say all about them."""
        snapshot = self.snapshot
        alike, whole = np.ones(len(snapshot.placed.shape), bool), snapshot.shapes.on_card == 0
        if not whole.all():
            alike = whole[snapshot.placed.shape]
        if len(snapshot.budgets) or self.repulsion is not None:
            alike &= snapshot.tasks.label_set[snapshot.occupancy.task] == 0
        return np.asarray(alike)

    @cached_property
    def repulsion(self) -> Repulsion | None:
        """Anti-affinity for the need, None if it does not concern it."""
        return repulsion_of(self.snapshot, self.need, self.candidate)

    @cached_property
    def open(self) -> Bools:
        """bool[S, N]: ``allowed``, without nodes that anti-affinity denies whatever is evicted."""
        return self.allowed if self.repulsion is None else frozen(self.allowed & ~self.repulsion.denied, np.bool_)

    @cached_property
    def only_slots(self) -> bool:
        """Whether slots alone say where the tasks go, in every domain.

        All are alike, nothing repels them, and they have no cards, no level that they prefer and no part of their own.
        """
        need, have = self.need, self.snapshot.counts
        if len(need.shapes) > 1 or not need.plain or self.columns.cards or self.repulsion is not None:
            return False
        prefers = any(part.preferred_level != NONE for part in need.parts)
        return not prefers and not any(have.running[one] or have.waiting[one] for one in need.podgroups)

    def interchangeable(self, domains: Rows) -> Bools:
        """bool[D]: domains in which tasks of one shape are interchangeable, in the parts that go into one region each.

        There is no anti-affinity, and no other topology inside the domain.
        """
        topology, repulsion = self.snapshot.topology, self.repulsion
        if not (self.need.plain or self.parts) or (repulsion is not None and repulsion.among):
            return np.zeros(len(domains), bool)
        if repulsion is None:
            every = np.empty(len(domains), bool)
            every.fill(True)
            return every
        contested = np.append(0, np.cumsum(repulsion.contested))
        return np.asarray(contested[topology.stop[domains]] == contested[topology.start[domains]])


@writing("result")
def judged(task: Rows, candidate: Bools, status: Bytes, result: Bools) -> Rows:
    """int64[K]: which entries run and are no candidates; fills in which are (``result`` bool[M]).

    ``task`` int64[M] are their rows.
    """
    many = 0
    for entry in range(len(task)):
        may = candidate[np.uint64(task[entry])]
        result[entry] = may
        many += int(runs(status[entry]) & (not may))
    fixed, filled = np.empty(many, np.int64), 0
    for entry in range(len(task) if many > 0 else 0):
        if not result[entry] and runs(status[entry]):
            fixed[filled] = entry
            filled += 1
    return fixed


def _priority_levels(groups: Podgroups) -> Longs:
    """int64[G]: 1 for the lowest priority, without gaps."""
    return groups.once(priority_ranks)[1] + 1


def _priorities(groups: Podgroups) -> Longs:
    """int64[highest level + 1]: the priority of each level; 0 of level 0, which no podgroup has."""
    return np.append(0, groups.once(priority_ranks)[0])
