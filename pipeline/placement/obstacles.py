"""What stands in the way of a plan: which plugin, queue or task, and by how much. Asked after a search has failed."""

from collections.abc import Iterator
from typing import Any  # the fields of a record by name

import numpy as np

from pipeline.cluster.arrays import UNLIMITED, Bools, Rows
from pipeline.cluster.resources import PODS
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Cause, Explanation, Obstacle, Reason
from pipeline.placement.need import Need, need_of
from pipeline.plugins.extension_points import BUNDLE_QUOTA, OVERUSED, PREEMPTIVE, SHIELD, VICTIM_SET, Preemptor
from pipeline.plugins.host import Host
from pipeline.policy import ExtensionPoint, Purpose


def obstacles_of(attempt: Attempt, host: Host, why: Explanation) -> tuple[Obstacle, ...]:
    """What stands in the way of the attempt's podgroups.

    Parameters
    ----------
    host
        Of the attempt's snapshot, policy and clock.
    why
        The explanation without obstacles.
    """
    need = need_of(attempt.snapshot, attempt.podgroups, surplus=False)
    told = {
        Reason.TOO_FEW_TASKS: _tasks,
        Reason.NO_DOMAIN: _level,
        Reason.QUOTA: _queue,
        Reason.NEVER: _never,
        Reason.DELAY: _delay,
    }
    if why.reason is Reason.NOTHING_MISSING:
        return ()
    if why.reason in told:
        return tuple(told[why.reason](attempt, host, need))
    return (*_shapes(attempt, host, need), *_kept(attempt, host, need))


def _tasks(attempt: Attempt, _host: Host, _need: Need) -> Iterator[Obstacle]:
    groups, valid = attempt.snapshot.podgroups, attempt.snapshot.counts.valid
    for podgroup in attempt.podgroups:
        wanted, found = int(groups.min_available[podgroup]), int(valid[podgroup])
        if found < wanted:
            yield Obstacle(Cause.TASKS, podgroup=podgroup, wanted=wanted, found=found)


def _level(attempt: Attempt, _host: Host, _need: Need) -> Iterator[Obstacle]:
    groups, levels = attempt.snapshot.podgroups, attempt.snapshot.vocabulary.levels
    for podgroup in attempt.podgroups:
        level = int(groups.required_level[podgroup])
        if 0 <= level < len(levels):
            yield Obstacle(Cause.LEVEL, podgroup=podgroup, what=levels[level])


def _never(attempt: Attempt, _host: Host, need: Need) -> Iterator[Obstacle]:
    snapshot = attempt.snapshot
    waiting = need.tasks
    may = snapshot.tasks.may_preempt[waiting] & snapshot.podgroups.may_preempt[snapshot.tasks.podgroup[waiting]]
    for task in waiting[~may][:1].tolist():
        yield Obstacle(Cause.NEVER, task=task)


def _delay(attempt: Attempt, _host: Host, _need: Need) -> Iterator[Obstacle]:
    groups = attempt.snapshot.podgroups
    for podgroup in attempt.podgroups:
        until = float(groups.created[podgroup] + groups.preemption_delay_s[podgroup])
        if until > attempt.now:
            yield Obstacle(Cause.DELAY, podgroup=podgroup, wanted=until, found=attempt.now)


def _queue(attempt: Attempt, host: Host, need: Need) -> Iterator[Obstacle]:
    """The plugins that object, and what the queue would hold compared with what it is entitled to."""
    snapshot, preemptor = attempt.snapshot, _preemptor(attempt, need)
    queue = int(snapshot.podgroups.queue[attempt.podgroups[0]])
    objecting = [name for name, plugin in host.named(OVERUSED) if plugin.overused()[queue]]
    objecting += [name for name, plugin in host.named(PREEMPTIVE) if plugin.preemptive(preemptor) is False]
    share, after = host.fair_share(), snapshot.allocated[queue] + preemptor.request
    short: list[dict[str, Any]] = [{}]
    if share is not None:
        over = (preemptor.request > 0) & (share[queue] > 0) & (share[queue] < UNLIMITED) & (after > share[queue])
        over[PODS] = False
        names = snapshot.vocabulary.resources
        short = [
            {"what": names[row], "wanted": float(after[row]), "found": float(share[queue, row])}
            for row in np.flatnonzero(over).tolist()
        ] or short
    for plugin in dict.fromkeys(objecting):
        for one in short:
            yield Obstacle(Cause.QUEUE, plugin, queue, **one)


def _shapes(attempt: Attempt, host: Host, need: Need) -> Iterator[Obstacle]:
    """Tasks that no node admits, whatever is evicted; or that are larger than every node that admits them."""
    snapshot = attempt.snapshot
    first = [int(need.tasks[np.argmax(need.shape == row)]) for row in range(len(need.shapes))]
    for shape, task, open_to in zip(need.shapes.tolist(), first, host.allowed(need.shapes), strict=True):
        if not open_to.any():
            yield Obstacle(Cause.NODES, task=task, wanted=1)
            continue
        request, most = snapshot.shapes.request[shape], snapshot.nodes.allocatable[open_to].max(axis=0)
        for row in np.flatnonzero(request > most).tolist():
            what = snapshot.vocabulary.resources[row]
            yield Obstacle(Cause.SIZE, task=task, what=what, wanted=float(request[row]), found=float(most[row]))


def _kept(attempt: Attempt, host: Host, need: Need) -> Iterator[Obstacle]:
    """Why running tasks may not be evicted: each counts for its first cause; then quotas and sets."""
    snapshot, preemptor = attempt.snapshot, _preemptor(attempt, need)
    tasks, groups = snapshot.tasks, snapshot.podgroups
    queue, owner = groups.queue[attempt.podgroups[0]], tasks.podgroup
    left = np.isin(tasks.status, (BOUND, RUNNING)) & ~np.isin(owner, attempt.podgroups)
    same = (groups.queue == queue)[owner]
    rules: list[tuple[Cause, str, Bools]] = []
    if attempt.purpose is Purpose.RECLAIM:
        rules.append((Cause.SAME_QUEUE, "", same))
        rules.append((Cause.UNRECLAIMABLE, "", ~snapshot.queues.reclaimable[groups.queue][owner]))
    else:
        rules.append((Cause.OTHER_QUEUES, "", ~same))
        rules.append((Cause.PRIORITY, "", (groups.priority >= groups.priority[list(attempt.podgroups)].min())[owner]))
    rules.append((Cause.UNPREEMPTIBLE, "", ~(tasks.preemptible & groups.preemptible[owner])))
    for name, plugin in host.named(SHIELD, ExtensionPoint.EVICTABLE):
        opinion = plugin.evictable(preemptor)
        if opinion is not None and opinion is not True:
            rules.append((Cause.SHIELDED, name, ~np.broadcast_to(opinion, left.shape)))
    for cause, plugin_name, holds in rules:
        count = int((left & holds).sum())
        left &= ~holds
        if count:
            yield Obstacle(cause, plugin_name, found=count)
    yield from _counted(host, preemptor, np.flatnonzero(left & host.candidates(preemptor)))


def _counted(host: Host, preemptor: Preemptor, rows: Rows) -> Iterator[Obstacle]:
    """Quotas that refuse candidates, and plugins that refuse all of them together."""
    if len(rows) == 0:
        return
    for name, quota in host.named(BUNDLE_QUOTA):
        refused = int((~quota.bundle_quota_filter(preemptor, rows)).sum()) if quota.has_quota(preemptor) else 0
        if refused:
            yield Obstacle(Cause.QUOTA, name, found=refused)
    for name, law in host.named(VICTIM_SET):
        if not law.validate_set(preemptor, rows):
            yield Obstacle(Cause.TOGETHER, name, found=len(rows))


def _preemptor(attempt: Attempt, need: Need) -> Preemptor:
    return Preemptor(attempt.podgroups, need.total, attempt.purpose)
