"""Preempt makes no room that another queue would reclaim from the preemptor as soon as it runs.

KAI Scheduler's preempt looks at priorities within a queue and not at what the queue holds. So a gang can take its queue
above its share, is reclaimed from in the next cycle, and two queues may do so in turn without end (decision 40).
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from pipeline.cluster.arrays import NONE, Rows, distinct, is_among, with_rows
from pipeline.cluster.orders import first_of
from pipeline.cluster.rules.gang_groups import GangGroup, gang_group_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, TERMINATING, Podgroups
from pipeline.decision.attempt import Attempt
from pipeline.decision.decided import carried_out, what_if_of
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.statement import Statement, statement
from pipeline.placement.kinds import podgroup_kind
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.records import replace

_RECLAIM = Purpose.RECLAIM.value
Propose = Callable[[Attempt, Host], Plan | NoPlan]


def taken_again(attempt: Attempt, host: Host, plan: Plan, propose: Propose) -> bool:
    """Whether a podgroup of another queue would reclaim what a plan of preempt gives to the preemptor.

    Asked of podgroups that wait, and of victims that will wait again; ``propose`` searches for one of them.
    """
    made = plan.statement
    if attempt.purpose is not Purpose.PREEMPT or _RECLAIM not in attempt.policy.actions or len(made.placed) == 0:
        return False
    queues = list(_rivals(attempt.snapshot, host, made))
    if not queues:
        return False
    later = _once_it_runs(attempt.snapshot, made, attempt.now)
    again = replace(attempt, snapshot=later, purpose=Purpose.RECLAIM, action=_RECLAIM, domains=None, among=None)
    then = Host(replace(host.context, snapshot=later, among=None))
    asking = then.starving & then.valid & is_among(later.podgroups.queue, np.array(queues))
    for gang_group in _one_of_each_kind(later, np.flatnonzero(asking)):
        found = propose(replace(again, podgroups=gang_group), then)
        if isinstance(found, Plan) and is_among(made.placed, found.statement.evictions).any():
            return True
    return False


def _one_of_each_kind(snapshot: Snapshot, podgroups: Rows) -> Iterable[GangGroup]:
    """The gang groups of some podgroups, without those of the kind of another."""
    gang_groups = dict.fromkeys(gang_group_of(snapshot, row) for row in podgroups.tolist())
    return {podgroup_kind(snapshot, one) or one: one for one in gang_groups}.values()


def one_of_each_queue(groups: Podgroups, asking: Rows) -> Rows:
    """int64[K]: of some podgroups one of each queue, which speaks for it: one that may be evicted, if there is any."""
    asking = asking[np.argsort(~groups.preemptible[asking], kind="stable")]
    return asking[first_of(groups.queue[asking])[0]]


def _rivals(snapshot: Snapshot, host: Host, made: Statement) -> Iterator[int]:
    """Other queues with work that waits or is ending, which might reclaim the room if they asked for very little."""
    then, groups, tasks = host.on(what_if_of(made, snapshot), made.evictions), snapshot.podgroups, snapshot.tasks
    waits = tasks.waits(slice(None), promised=False)
    asking = distinct(tasks.podgroup[waits | ((tasks.status == TERMINATING) & ~tasks.gone_when_evicted)])
    asking = one_of_each_queue(groups, asking[groups.queue[asking] != groups.queue[made.preemptor]])
    nothing = np.zeros(len(snapshot.vocabulary.resources), np.int64)
    for queue, podgroup in zip(groups.queue[asking].tolist(), asking.tolist(), strict=True):
        if then.validate_set(Preemptor((podgroup,), nothing, Purpose.RECLAIM), made.placed[:1]):
            yield queue


def _once_it_runs(snapshot: Snapshot, made: Statement, now: float) -> Snapshot:
    """The snapshot in which all that was promised a node has started, and victims that start over wait."""
    promised = carried_out(made, snapshot, now)
    tasks = promised.tasks
    rows = np.flatnonzero(tasks.waits(slice(None), promised=True))
    node, card = tasks.promised(rows)
    after = carried_out(statement(made.action, bound=rows, bound_node=node, bound_card=card), promised, now)
    tasks = after.tasks
    over = (tasks.status == TERMINATING) & (tasks.nominated == NONE) & ~tasks.gone_when_evicted
    ended = np.flatnonzero(over)
    waiting = replace(
        tasks, status=with_rows(tasks.status, ended, PENDING), node=with_rows(tasks.node, ended, NONE),
        card=with_rows(tasks.card, ended, NONE),
    )  # fmt: skip
    return replace(after, tasks=waiting)
