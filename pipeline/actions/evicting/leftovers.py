"""Room that evictions of a cycle left over, and that has to wait until the next cycle deals it out in order.

A policy that leaves the rest to allocate (KAI Scheduler's) gives such room to no podgroup whose turn comes while
others are still to be served.
"""

from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from pipeline.actions.backoff import GangGroup
from pipeline.actions.evicting.lawful_in_turn import lawful_in_turn
from pipeline.actions.progress import Progress
from pipeline.actions.searching import Outcome
from pipeline.cluster.arrays import NO_ROWS, NONE, Rows, distinct
from pipeline.cluster.orders import kinds_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.plan import Plan
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.records import replace


def resting(progress: Progress, host: Host, outcome: Outcome, gang_group: GangGroup) -> Progress:
    """Progress in which all leftover room waits, as soon as a gang group that has its minimum would grow by it."""
    grows = _takes_leftovers(progress, outcome) and _evicted(progress) and host.pipelined[list(gang_group)].all()
    return replace(progress, rest_waits=True) if grows else progress


def waits(progress: Progress, host: Host, plan: Plan, gang_group: GangGroup) -> bool:
    """Whether a plan only takes leftover room, and that room has to wait.

    All of it may wait already. It also waits if a victim of the cycle, which will be pending again, could reclaim it
    from the gang group.
    """
    if not _takes_leftovers(progress, plan):
        return False
    if progress.rest_waits or not _evicted(progress):
        return progress.rest_waits
    placed = plan.statement.placed
    return not _may_reclaim(progress, host, gang_group, placed) and _victim_returns(progress, host, gang_group)


def in_turn(progress: Progress, host: Host, plans: Sequence[Plan]) -> Sequence[Plan]:
    """The leading plans of podgroups alike that hold one after the other, as if each had been searched for in its turn.

    Plans without victims end there if leftover room may have to wait. All of them were found to be lawful together; but
    the rule of fair shares looks at victims one after the other, and where they differ another order can be refused.
    """
    if not plans or not progress.policy.leaves_rest_to_allocate:
        return plans
    reclaims = plans[0].statement.purpose is Purpose.RECLAIM
    if progress.rest_waits or (not reclaims and _evicted(progress)):
        plans = tuple(takewhile(lambda plan: len(plan.statement.evictions), plans))
    if not reclaims or _alike(progress.snapshot, plans):
        return plans
    statements = [plan.statement for plan in plans]
    return plans[: lawful_in_turn(progress.snapshot, host, statements, sets=True, rooms=False)]


def _alike(snapshot: Snapshot, plans: Sequence[Plan]) -> bool:
    """Whether all victims are single tasks of one queue and shape, so that their order decides nothing."""
    tasks, groups = snapshot.tasks, snapshot.podgroups
    gone = np.concatenate([NO_ROWS, *(plan.statement.evictions for plan in plans)])
    owner = tasks.podgroup[gone]
    same = all(len(kinds_of(of)[0]) <= 1 for of in (tasks.shape[gone], groups.queue[owner]))
    return same and bool((snapshot.counts.running[owner] == 1).all())


def _takes_leftovers(progress: Progress, outcome: Outcome) -> bool:
    """Whether it evicts nothing and nominates no task without a node, under a policy for which that matters."""
    if not isinstance(outcome, Plan) or not progress.policy.leaves_rest_to_allocate:
        return False
    return len(outcome.statement.evictions) == 0 and not (outcome.statement.nominated_node == NONE).any()


def _evicted(progress: Progress) -> bool:
    return any(len(made.evictions) for made in progress.statements)


def _may_reclaim(progress: Progress, host: Host, gang_group: GangGroup, rows: Rows) -> bool:
    """Whether the gang group's queue may take the room of the tasks ``rows`` from others."""
    snapshot = progress.snapshot
    request = snapshot.shapes.request[snapshot.tasks.shape[rows]].sum(axis=0)
    return host.preemptive(Preemptor(gang_group, request, Purpose.RECLAIM))


def _victim_returns(progress: Progress, host: Host, gang_group: GangGroup) -> bool:
    """Whether a podgroup of another queue that lost tasks in this cycle may reclaim the room of its minimum."""
    groups, owner = progress.snapshot.podgroups, progress.snapshot.tasks.podgroup
    gone = np.concatenate([made.evictions for made in progress.statements])
    gone = gone[groups.queue[owner[gone]] != groups.queue[gang_group[0]]]
    for row in distinct(owner[gone]).tolist():
        lacks, mine = 1 if host.ready[row] else int(groups.min_available[row]), gone[owner[gone] == row]
        if _may_reclaim(progress, host, (row,), mine[np.argsort(host.task_ranks(mine))][:lacks]):
            return True
    return False
