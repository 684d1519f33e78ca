"""A local search on its own, so that its kernels are compiled beside those of all that comes before it."""

import numpy as np

from actors.fleets.generated import NOW, GangSpec, generate
from pipeline.cluster.arrays import NO_ROWS, is_among, with_rows
from pipeline.cluster.orders import first_of
from pipeline.decision.attempt import Attempt
from pipeline.decision.price import Price
from pipeline.placement.need import need_of
from pipeline.policy import Policy, Purpose
from pipeline.propose import host_of
from pipeline.records import replace
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.covering.cheaper import of_local_search
from pipeline.solvers.bundles.covering.chosen import NO_VICTIMS, Selection
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.put_right.task_priorities import by_task_priority
from pipeline.solvers.bundles.solver import search_of

#: Nodes of a fleet in which a local search makes all that it makes anywhere.
_NODES = 128


def search_locally(policy: Policy) -> None:
    """Look for cheaper victims than all there are, in preempt and in reclaim; and for some of lower task priority."""
    for queues, purpose in ((0, Purpose.PREEMPT), (3, Purpose.RECLAIM)):
        fleet = generate(_NODES, GangSpec(16), queues=queues)
        attempt = Attempt(fleet.snapshot, policy, purpose, (fleet.gang,), None, NOW, purpose.value)
        host, need = host_of(attempt), need_of(attempt.snapshot, attempt.podgroups, surplus=False)
        search = search_of(attempt, host, need)
        of_local_search(DomainBundles(search, 0), all_but_one(search))
        _raise_priorities(attempt, search)


def _raise_priorities(attempt: Attempt, search: BundleSearch) -> None:
    """Look for tasks of lower priority in place of the first candidate of each podgroup, raised above all others."""
    tasks, victims = attempt.snapshot.tasks, np.flatnonzero(search.candidate)
    rows = victims[first_of(tasks.podgroup[victims])[0]]
    higher = with_rows(tasks.priority, rows, int(tasks.priority.max()) + 1)
    other = replace(attempt, snapshot=replace(attempt.snapshot, tasks=replace(tasks, priority=higher)))
    found = replace(
        all_but_one(search), entry=np.flatnonzero(is_among(search.terms.entries.task, rows)), broken=NO_ROWS
    )
    need = need_of(other.snapshot, other.podgroups, surplus=False)
    by_task_priority(DomainBundles(search_of(other, host_of(other), need), 0), found)


def all_but_one(search: BundleSearch) -> Selection:
    """All candidates but one as victims, at a price that any other is below; with all, there might be no other set."""
    groups, victims = search.snapshot.podgroups, np.flatnonzero(search.candidate)[1:]
    owners = np.unique(search.snapshot.tasks.podgroup[victims]).astype(np.int64)
    highest, rank = int(groups.priority.max()), int(search.queue_rank.max())
    price = Price(0, rank, ((highest, np.inf),), (), highest, len(victims), 0, 0, len(owners))
    entry = np.flatnonzero(search.terms.entries.candidate)[1:]
    return Selection(victims, entry, owners, NO_ROWS, price, NO_VICTIMS, 0, FreeRoom(search, 0, entry))
