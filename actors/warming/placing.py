"""A search for places on its own, so that the kernels are compiled that few decisions reach."""

import numpy as np

from actors.fleets.generated import NOW, GangSpec, generate
from actors.fleets.mixed import with_shapes, with_subgroups
from actors.warming.local_search import all_but_one
from pipeline.cluster.arrays import NO_ROWS, NONE, Rows
from pipeline.cluster.topology import ROOT
from pipeline.decision.attempt import Attempt
from pipeline.placement.layout.regions_of_parts import asked_of_regions
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import need_of
from pipeline.placement.room.ground import come_back
from pipeline.policy import Policy, Purpose
from pipeline.propose import host_of, propose
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.cost import is_cheaper
from pipeline.solvers.bundles.bundling.records import Units
from pipeline.solvers.bundles.bundling.surplus import stays_whole
from pipeline.solvers.bundles.covering.chosen import NO_VICTIMS
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.sets import outcome_of
from pipeline.solvers.bundles.solver import search_of

#: So few that a gang that finds no place is tried task by task.
_NODES, _TASKS = 16, 8
#: Enough for a rack for each subgroup.
_RACKED = 40
#: So few that every set of candidates is tried where quotas permit too little.
_FEWEST, _SMALL = 3, 2


def refuse_regions() -> None:
    """Look for places for a small gang of subgroups in regions that have no room."""
    fleet = with_subgroups(with_shapes(generate(_NODES, GangSpec(_TASKS)), gang=True), gang=True)
    need, snapshot = need_of(fleet.snapshot, (fleet.gang,)), fleet.snapshot
    room, asked = np.zeros((_NODES, need.request.shape[1]), np.int64), asked_of_regions(need, need.request, snapshot)
    Packings(need, np.ones((len(need.shapes), _NODES), bool), snapshot, asked=asked).on(0, _NODES).may_fit(room)


def place_task_by_task() -> None:
    """Look for places for a small gang of several shapes where there is no room: in groups, and then task by task."""
    fleet = with_shapes(generate(_NODES, GangSpec(_TASKS)), gang=True)
    need = need_of(fleet.snapshot, (fleet.gang,))
    room = np.zeros((_NODES, need.request.shape[1]), np.int64)
    Packings(need, np.ones((len(need.shapes), _NODES), bool), fleet.snapshot).on(0, _NODES).places(room, NO_ROWS)


def let_return(policy: Policy) -> None:
    """Make room for small gangs of several shapes, also in subgroups; then let all leave, and permit none to return."""
    shaped = with_shapes(generate(_RACKED, GangSpec(2 * _TASKS), queues=0), gang=True)
    propose(Attempt(shaped.snapshot, policy, Purpose.PREEMPT, (shaped.gang,), None, NOW, "preempt"))
    fleet = with_subgroups(shaped, gang=True)
    attempt = Attempt(fleet.snapshot, policy, Purpose.PREEMPT, (fleet.gang,), None, NOW, "preempt")
    propose(attempt)
    search = search_of(attempt, host_of(attempt), need_of(attempt.snapshot, attempt.podgroups, surplus=False))
    free, gone = FreeRoom(search, ROOT), all_but_one(search)
    free.leave(gone.entry)
    _ask_alone(search, free, gone.entry)
    every = np.arange(len(gone.entry))
    units = Units(every + 1, gone.entry, np.full(len(every), NONE, np.int64), every)
    free.reprieve(units, lambda _: gone, lambda _: False)


def reclaim_among_few(policy: Policy) -> None:
    """Reclaim for a small gang on a few nodes, of queues that can lose little."""
    fleet = generate(_FEWEST, GangSpec(_SMALL), queues=2)
    propose(Attempt(fleet.snapshot, policy, Purpose.RECLAIM, (fleet.gang,), None, NOW, Purpose.RECLAIM.value))


def _ask_alone(search: BundleSearch, free: FreeRoom, gone: Rows) -> None:
    """Call what otherwise only kernels call, but for a few decisions."""
    come_back(gone, free.ground)
    free.leave(gone)
    stays_whole(gone, search.terms.entries, search.surplus)
    is_cheaper(NO_VICTIMS.cost, NO_VICTIMS.cost)
    outcome_of(NO_VICTIMS.bundles, search.terms, search.seats())
