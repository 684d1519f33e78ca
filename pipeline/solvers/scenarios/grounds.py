"""The slices of nodes in which the need may lie, and the queue of victims for each of them."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows, all_true
from pipeline.cluster.counted.task_index import grouped
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.keeping import cached_property
from pipeline.kernels import kernel
from pipeline.placement.domains import domains_of
from pipeline.placement.need import Need
from pipeline.placement.room.counted_need import CountedNeed
from pipeline.solvers.scenarios.accumulating import Scenario
from pipeline.solvers.scenarios.law import Law
from pipeline.solvers.scenarios.slices.lead_bounds import leads
from pipeline.solvers.scenarios.slices.node_slice import NodeSlice
from pipeline.solvers.scenarios.units import VictimUnits


@dataclass(frozen=True)
class Grounds:
    """Slices of nodes, those of domains, in order of preference; without those that all units leave too few slots.

    Attributes
    ----------
    counted
        The need.
    units
        The queue of victims.
    domains: int64[D]
    leads: int64[D]
        The turn of the unit with which the need can fit in each domain at the earliest; NONE if it can without any.
    """

    counted: CountedNeed
    law: Law
    units: VictimUnits
    domains: Rows
    leads: Longs

    def offered(self) -> list[tuple[int, int]]:
        """The domains with their leads."""
        return [*zip(self.domains.tolist(), self.leads.tolist(), strict=True)]

    def scenario(self, domain: int, *, keeps: bool = False) -> Scenario:
        """All units that are of use in one domain; ``keeps``: see ``NodeSlice``."""
        snapshot, units = self.counted.snapshot, self.units
        start, stop = snapshot.topology.slice_of(domain)
        ground = NodeSlice(self.counted, domain, start, stop, keeps)
        if stop - start == len(snapshot.nodes) and all_true(self.counted.open):  # each has tasks on nodes
            return Scenario(ground, self.law, units)
        useful = _useful(*self._by_node, start, stop, self.counted.open, units.podgroup, units.whole)
        return Scenario(ground, self.law, units.only(useful))

    @cached_property
    def _by_node(self) -> tuple[Rows, Longs]:
        return _units_by_node(self.counted.snapshot, self.units)


def grounds_of(attempt: Attempt, law: Law, need: Need, units: VictimUnits) -> Grounds:
    """All slices in which the need can fit once the units have gone, or some of them."""
    host = law.host
    offered = domains_of(host, attempt.podgroups, attempt.purpose) if attempt.domains is None else attempt.domains
    counted = CountedNeed(attempt.snapshot, need, host.allowed(need.shapes), units.rows)
    first = leads(counted, units, offered)
    kept = first < len(units)
    return Grounds(counted, law, units, offered[kept], first[kept])


def _units_by_node(snapshot: Snapshot, units: VictimUnits) -> tuple[Rows, Longs]:
    """The unit of each task, by node, int64[V]; those of node ``n`` are from ``[n]`` up to ``[n + 1]`` of the other."""
    at, order = grouped(snapshot.tasks.node[units.rows], len(snapshot.nodes))
    return np.arange(len(units)).repeat(np.diff(units.start))[order], at


@kernel
def _useful(unit: Rows, at: Longs, first: int, stop: int, allowed: Bools, podgroup: Rows, whole: Bools) -> Bools:
    """bool[U]: units with a task on a node of a slice that the need may use.

    Also surplus that has none, where the rest of its podgroup has: if that goes, no task of it may stay.
    """
    useful, falls = np.zeros(len(podgroup), np.bool_), np.zeros(podgroup.max() + 1 if len(podgroup) else 0, np.bool_)
    for n in range(first, stop):
        usable = False
        for s in range(len(allowed)):
            usable |= allowed[s, n]
        if usable:
            for one in unit[at[n] : at[n + 1]]:
                useful[one] = True
                if whole[one]:
                    falls[podgroup[one]] = True
    for one in range(len(podgroup)):
        useful[one] |= falls[podgroup[one]]
    return useful
