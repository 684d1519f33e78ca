"""Evict: every starving podgroup takes the room that it needs from others, in the policy's order.

Preempt takes from work of lower priority in the same queue, reclaim from queues that use more than they deserve
("Gang-Aware Preemption and Reclaim", sections 3.5.2 and 3.5.3). The policy says
whether ``preempt`` and ``reclaim`` take whole gangs or single tasks.

Searching in parallel is speculation on the serial order: the next gang groups are searched for at once on the snapshot
as it is, and an outcome counts only if no plan was taken before its turn came; otherwise it is searched for again. So
the decisions are those of serving one gang group after the other, each on what those before it left.
"""

from dataclasses import replace
from itertools import dropwhile, islice, takewhile

import numpy as np

from pipeline.actions.backoff import GangGroup
from pipeline.actions.claims import closed_to
from pipeline.actions.progress import Progress
from pipeline.actions.searching import Outcome
from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.placement.cordoning import without
from pipeline.placement.starving import alike, in_order
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.solvers.registry import solver_of

#: How many gang groups are searched for ahead at first; doubled each time that all outcomes counted.
_AHEAD = 4
#: For at most this many gangs of one kind room is sought at once.
_TOGETHER = 64


def evict(progress: Progress, action: str, purpose: Purpose) -> Progress:
    """Serve every starving podgroup in each of the action's passes, in order."""
    for own in solver_of(progress.policy, action).passes(purpose):
        if not progress.lost and len(progress.retaken) == 0:
            progress = _Pass(progress, action, purpose, own=own).run()
    return progress


def admitted(progress: Progress, starving: list[GangGroup]) -> tuple[Progress, list[GangGroup]]:
    """The gang groups that have a turn in this cycle, in order: they do not pause, up to the setup's limit."""
    setup, searched = progress.setup, progress.searched
    awake = [one for one in starving if not setup.backoff.holds(one, progress.snapshot, progress.now)]
    fresh = [one for one in awake if one not in searched]
    turn = searched.union(fresh[: max(0, setup.gang_groups - len(searched))] if setup.gang_groups else fresh)
    seen = set(progress.starving)
    progress = replace(
        progress,
        starving=(*progress.starving, *(one for one in starving if one not in seen)),
        searched=turn,
        more=progress.more or any(one not in turn for one in fresh),
    )
    return progress, [one for one in awake if one in turn]


class _Pass:
    """One pass of an action over the starving gang groups."""

    def __init__(self, progress: Progress, action: str, purpose: Purpose, *, own: bool) -> None:
        self._action, self._purpose, self._own = action, purpose, own
        self._host = progress.host_for(purpose)
        with progress.setup.observer.step("starving", action=action) as notes:
            starving = in_order(self._host, self._waiting(progress))
            self._progress, self._gang_groups = admitted(progress, starving)
            notes.set(starving=len(starving), searched=len(self._gang_groups))
        self._shut: list[Rows] = closed_to(self._host, progress.setup.closed, self._gang_groups)
        self._found: dict[int, Outcome] = {}
        self._without: dict[bytes, Snapshot] = {}
        self._window = _AHEAD
        #: Gangs for which room was sought together, and the running tasks that this spares.
        self._spared: dict[GangGroup, Rows] = {}

    def run(self) -> Progress:
        """Serve one gang group after the other."""
        for at, gang_group in enumerate(self._gang_groups):
            outcome = self._outcome(at)
            if outcome is None:
                return replace(self._progress, lost=True, more=True)
            if isinstance(outcome, Plan) and not self._left_to_allocate(outcome, gang_group):
                back = np.intersect1d(outcome.statement.evictions, self._progress.starting)
                if len(back):
                    return replace(self._progress, retaken=back, taker=gang_group[0])
                self._progress = self._progress.planned(outcome, gang_group)
                self._host, self._found, self._without, self._window = self._progress.host_for(self._purpose), {}, {}, 1
                self._again(at)
            else:
                self._progress = self._progress.without_plan(gang_group, self._action, outcome.explanation)
        return self._progress

    def _left_to_allocate(self, plan: Plan, gang_group: GangGroup) -> bool:
        """Whether a plan only takes room that evictions of the cycle left over, and that room has to wait.

        The room waits as soon as a gang group that has its minimum would grow by it: the next cycle deals it out in
        order. It also waits if a victim of the cycle, which will be pending again, could reclaim it from the gang
        group.
        """
        progress = self._progress
        takes = len(plan.statement.evictions) > 0 or bool((plan.statement.nominated_node == NONE).any())
        if takes or not progress.policy.leaves_rest_to_allocate:
            return False
        if not any(len(made.evictions) for made in progress.statements):
            return progress.rest_waits
        if self._host.pipelined[list(gang_group)].all():
            self._progress = replace(progress, rest_waits=True)
        return self._progress.rest_waits or (
            not self._may_reclaim(gang_group, plan.statement.placed) and self._victim_returns(gang_group)
        )

    def _may_reclaim(self, gang_group: GangGroup, rows: Rows) -> bool:
        """Whether the gang group's queue may take the room of its tasks ``rows`` from others."""
        snapshot = self._progress.snapshot
        request = snapshot.shapes.request[snapshot.tasks.shape[rows]].sum(axis=0)
        return self._host.preemptive(Preemptor(gang_group, request, Purpose.RECLAIM))

    def _victim_returns(self, gang_group: GangGroup) -> bool:
        """Whether a podgroup of another queue that lost tasks in this cycle may reclaim the room of its minimum."""
        snapshot = self._progress.snapshot
        groups, owner = snapshot.podgroups, snapshot.tasks.podgroup
        gone = np.concatenate([made.evictions for made in self._progress.statements])
        gone = gone[groups.queue[owner[gone]] != groups.queue[gang_group[0]]]
        for row in np.unique(owner[gone]).tolist():
            lacks = 1 if self._host.ready[row] else int(groups.min_available[row])
            if self._may_reclaim((row,), gone[owner[gone] == row][:lacks]):
                return True
        return False

    def _waiting(self, progress: Progress) -> Bools:
        """bool[G]: podgroups that starve and are not held back."""
        waiting: Bools = self._host.starving & self._host.valid
        waiting[list(progress.held)] = False
        return waiting

    def _again(self, at: int) -> None:
        """Give the gang group that just got its plan another turn, if it asks for more, before those behind it."""
        gang_group, snapshot = self._gang_groups[at], self._progress.snapshot
        if not self._host.starving[list(gang_group)].all() or not snapshot.counts.pending[list(gang_group)].any():
            return
        wanted = np.zeros(len(snapshot.podgroups), bool)
        wanted[[row for one in self._gang_groups[at:] for row in one]] = True
        after = set(dropwhile(lambda one: one != gang_group, in_order(self._host, wanted)))
        last = len(self._gang_groups)
        place = next((n for n in range(at + 1, last) if self._gang_groups[n] in after), last)
        self._gang_groups.insert(place, gang_group)
        self._shut = closed_to(self._host, self._progress.setup.closed, self._gang_groups)

    def _outcome(self, at: int) -> Outcome:
        """The outcome of the search for a gang group on the snapshot as it is by now."""
        spared = self._spared_by_all(at)
        if len(spared):
            attempt = self._attempt(at)
            attempt = replace(attempt, starting=np.union1d(attempt.starting, spared))
            host = self._host.on(attempt.snapshot, starting=attempt.starting)
            found = self._progress.setup.search.one(attempt, host)
            if isinstance(found, Plan):
                return found
        if at not in self._found:
            self._look_ahead(at)
        if at in self._found:
            return self._found[at]
        attempt = self._attempt(at)
        return self._progress.setup.search.one(attempt, self._host_of(attempt))

    def _spared_by_all(self, at: int) -> Rows:
        """int64[K]: running tasks that stay because room is made for all gangs of one kind at once.

        If gangs of one kind were served one after the other, each would break what is cheapest for it alone. So the
        room for all of them is sought first, as if they were one gang, and each then takes what it needs of those
        victims.
        """
        gang, progress = self._gang_groups[at], self._progress
        if gang not in self._spared:
            rest = range(at, len(self._gang_groups))
            same = takewhile(lambda one: np.array_equal(self._shut[one], self._shut[at]), rest)
            some = [self._gang_groups[one] for one in islice(same, _TOGETHER)] if progress.policy.cheapest_set else []
            some = some[: alike(progress.snapshot, some)]
            spared = NO_ROWS
            if len(some) > 1:
                attempt = replace(self._attempt(at), podgroups=tuple(row for one in some for row in one))
                found = progress.setup.search.one(attempt, self._host_of(attempt))
                if isinstance(found, Plan) and len(found.statement.evictions):
                    running = np.flatnonzero(progress.snapshot.tasks.node != NONE)
                    spared = np.setdiff1d(running, found.statement.evictions)
            self._spared.update(dict.fromkeys(some or [gang], spared))
        return self._spared[gang]

    def _look_ahead(self, at: int) -> None:
        """Search for the next gang groups on one snapshot at once: those with the same closed nodes."""
        same = (one for one in range(at, len(self._gang_groups)) if np.array_equal(self._shut[one], self._shut[at]))
        ahead, self._window = list(islice(same, self._window)), self._window * 2
        if len(ahead) > 1:
            attempts = [self._attempt(one) for one in ahead]
            found = self._progress.setup.search.ahead(attempts, self._host_of(attempts[0]))
            self._found.update(zip(ahead, found, strict=False))

    def _attempt(self, at: int) -> Attempt:
        attempt = self._progress.attempt(self._purpose, self._gang_groups[at], self._action, own=self._own)
        return replace(attempt, snapshot=self._closed_to(at))

    def _closed_to(self, at: int) -> Snapshot:
        """The snapshot as it is by now without the nodes closed to a gang group; the same one for the same nodes."""
        key = self._shut[at].tobytes()
        if key not in self._without:
            self._without[key] = without(self._progress.snapshot, self._shut[at])
        return self._without[key]

    def _host_of(self, attempt: Attempt) -> Host:
        if attempt.snapshot is self._progress.snapshot:
            return self._host
        return self._host.on(attempt.snapshot)
