"""Victims of one domain as they are chosen: which tasks go, whether they may go together, what they cost."""

from dataclasses import dataclass, field

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Bools, Counts, Ids, Longs, Rows, frozen, sizes
from pipeline.decision.explanation import VictimBundle, victim_bundles
from pipeline.decision.price import NO_PRIORITY, Price
from pipeline.keeping import cached_property
from pipeline.kernels import kernel
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.bundles import NO_BUNDLES
from pipeline.solvers.bundles.bundling.records import Bundles, Cost, Outcome, Units
from pipeline.solvers.bundles.covering.free_room import FreeRoom


@dataclass(frozen=True)
class Selection:
    """Victims in one domain, and a node for every task of the minimum.

    Attributes
    ----------
    victims: int64[V]
        Task rows, ascending, those outside the domain included.
    entry: int64[C]
        The entries of those in the domain.
    broken: int64[K]
        Podgroups that break.
    node: int64[minimum]
        Node rows, in the order of ``need.tasks``.
    outcome
        The bundles that they were chosen from.
    free
        The nodes of the domain without them.
    """

    victims: Rows
    entry: Rows
    broken: Rows
    node: Rows
    price: Price
    outcome: Outcome = field(repr=False)
    given_back: int
    free: FreeRoom = field(repr=False)


_NO_WORK = frozen([], np.float64)
#: No victims.
NO_VICTIMS = Outcome(
    True, NO_BUNDLES, Units(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS), frozen([], np.bool_),
    Cost(0, 0, NO_ROWS, _NO_WORK, NO_ROWS, _NO_WORK, NO_PRIORITY, 0, 0),
)  # fmt: skip


@kernel
def _members(
    podgroups: Rows, start: Longs, rows: Rows, candidate: Bools, node: Ids, nodes: tuple[int, int], running: Counts
) -> Rows:
    """Members of the podgroups that are candidates outside the ``nodes``; ``running`` int32[G]: how many run at all."""
    found, many = np.empty(running[podgroups].sum(), np.int64), 0
    for group in podgroups:
        for row in rows[start[group] : start[group + 1]]:
            if candidate[row] and not nodes[0] <= node[row] < nodes[1]:
                found[many] = row
                many += 1
    return found[:many]


@dataclass(frozen=True)
class Chosen:
    """Victims of one domain: their entries int64[C], and the podgroups that break int64[K]."""

    search: BundleSearch
    domain: int
    entry: Rows
    broken: Rows

    @cached_property
    def victims(self) -> Rows:
        """int64[V]: all victims, ascending: those of the domain, and members elsewhere that go along."""
        snapshot = self.search.snapshot
        here = snapshot.occupancy.task[self.entry]
        if not self.search.rules.cluster_wide or len(self.broken) == 0:
            return np.sort(here)
        nodes, running = self.search.nodes_of(self.domain), self.search.terms.groups.running
        along = _members(self.broken, *snapshot.by_podgroup, self.search.candidate, snapshot.tasks.node, nodes, running)
        found = np.concatenate((here, along))
        found.sort()
        return found

    def relieves(self) -> bool:
        """Whether the queue may take the need once the victims have gone; true where its limits are not known."""
        search = self.search
        return search.exceeded is None or search.exceeded.take(search.need.total, search.snapshot, self.victims)

    def lawful(self) -> bool:
        """Whether the victims may go together."""
        return self.search.validate_set(self.victims)


def all_chosen(search: BundleSearch, domain: int, bundles: Bundles) -> Chosen:
    """All entries of the bundles."""
    return Chosen(search, domain, bundles.entry, bundles.podgroup[~bundles.safe])


def left_by(search: BundleSearch, domain: int, outcome: Outcome) -> Chosen:
    """The victims of an outcome."""
    return left_of(search, domain, outcome.bundles, outcome.units, outcome.returned)


def left_of(search: BundleSearch, domain: int, bundles: Bundles, units: Units, returned: Bools) -> Chosen:
    """The victims of some bundles after some of their units have ``returned`` (bool[U])."""
    goes = ~returned
    gone = units.bundle[goes]
    broken = bundles.podgroup[gone[~bundles.safe[gone]]]
    return Chosen(search, domain, units.entry[goes.repeat(sizes(units.stop))], broken)


def victims_by_bundle(search: BundleSearch, outcome: Outcome) -> tuple[VictimBundle, ...]:
    """The bundles of the final victims, in the order in which they were chosen."""
    bundles, size = outcome.bundles, sizes(outcome.units.stop)
    tasks = np.zeros(bundles.many, np.int64)
    np.add.at(tasks, outcome.units.bundle[~outcome.returned], size[~outcome.returned])
    some = tasks.nonzero()[0]
    podgroup, safe = bundles.podgroup[some], bundles.safe[some]
    efficiency = np.round(np.where(safe, 0.0, bundles.efficiency[some]), 6)
    priority = search.snapshot.podgroups.priority[podgroup]
    return victim_bundles(podgroup, safe, tasks[some], bundles.elsewhere[some], priority, efficiency)


def placed(outcome: Outcome, chosen: Chosen, free: FreeRoom) -> Selection | None:
    """Place the gang and price the victims of an outcome; None if no placement is found."""
    node = free.placed_nodes(chosen.victims)
    if node is None:
        return None
    price = price_in_domain(chosen.search, chosen.domain, outcome.cost)
    given_back = len(outcome.units.entry) - len(chosen.entry)
    return Selection(chosen.victims, chosen.entry, chosen.broken, node, price, outcome, given_back, free)


def price_in_domain(search: BundleSearch, domain: int, cost: Cost) -> Price:
    """The price of lawful victims in a domain."""
    return Price(
        budgets_violated=0,
        queue_rank=int(cost.queue_rank),
        broken=tuple(zip(cost.broken_level.tolist(), cost.broken_work.tolist(), strict=True)),
        surplus=tuple(zip(cost.surplus_level.tolist(), cost.surplus_work.tolist(), strict=True)),
        highest_priority=int(cost.highest_priority),
        victims=int(cost.victims),
        tier=int(search.snapshot.topology.tier[domain]),
        domain=domain,
        gangs_broken=int(cost.gangs_broken),
    )
