"""What stands in the way of a plan: which plugin, queue, budget, node or task, and by how much."""

from collections.abc import Iterator

import numpy as np

from pipeline.cluster.tables import PENDING
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Explanation, Reason
from pipeline.decision.obstacle import Cause, Obstacle
from pipeline.placement.reasons.places import NO_PLACES_EVER, beyond_the_cluster, free_room, places
from pipeline.placement.reasons.question import Question
from pipeline.placement.reasons.quotas import entitlement, limits
from pipeline.placement.reasons.readiness import lacking_tasks
from pipeline.placement.reasons.staying import pace, staying
from pipeline.placement.refusal import delayed
from pipeline.plugins.host import Host
from pipeline.policy import ExtensionPoint, Purpose
from pipeline.records import replace

#: What the reason of an attempt says more exactly once it is known what stands in the way.
_EXACTLY = {
    Reason.NO_PACKING: {
        Cause.REPELLED: Reason.REPELLED, Cause.CARDS: Reason.CARDS, Cause.TORN: Reason.TORN,
        Cause.SHAPES: Reason.SHAPES, Cause.MIXED: Reason.SHAPES, Cause.TOTAL: Reason.SHAPES,
    },
    Reason.ILLEGAL: dict.fromkeys((Cause.CLOSED, Cause.CEILING, Cause.LASTING, Cause.SHARES), Reason.QUOTA),
    Reason.BOUND: {Cause.LEVEL: Reason.NO_DOMAIN, Cause.NEVER: Reason.NEVER, Cause.CARDS: Reason.CARDS},
}  # fmt: skip
_EXACTLY[Reason.UNPLACEABLE] = _EXACTLY[Reason.NO_PACKING] | _EXACTLY[Reason.ILLEGAL] | _EXACTLY[Reason.BOUND]
_EXACTLY[Reason.NO_CANDIDATES] = _EXACTLY[Reason.UNPLACEABLE]


def with_obstacles(attempt: Attempt, host: Host, why: Explanation, point: ExtensionPoint) -> Explanation:
    """The explanation of a failed attempt with what stands in the way, and the most exact reason that is known.

    Parameters
    ----------
    host
        The plugins on the attempt's snapshot, policy and clock.
    point
        Where the solver asks the plugins about victims.
    """
    asked = Question(attempt, host, point, why.reason)
    found = tuple(_obstacles(asked))
    why = replace(why, minimum=why.minimum or asked.need.minimum + asked.need.short)
    if attempt.purpose is Purpose.CONSOLIDATE and why.reason in (Reason.UNPLACEABLE, Reason.NO_CANDIDATES):
        return replace(why, reason=Reason.NO_MOVES, obstacles=found)
    exact = {_EXACTLY.get(why.reason, {}).get(one.cause) for one in found} - {None}
    if len(exact) != 1:
        return replace(why, obstacles=found)
    (reason,) = exact
    assert reason is not None
    tried = tuple(replace(one, reason=reason) if one.reason is why.reason else one for one in why.tried)
    return replace(why, reason=reason, tried=tried, obstacles=found)


def _obstacles(asked: Question) -> Iterator[Obstacle]:
    if asked.reason in (Reason.NOTHING_MISSING, Reason.SEVERAL_QUEUES, Reason.LASTS):  # the reason says it all
        return
    alone = {  # where one question explains the reason
        Reason.TOO_FEW_TASKS: lacking_tasks,
        Reason.NO_DOMAIN: _level,
        Reason.NEVER: _without_evictions,
        Reason.DELAY: _without_evictions,
        Reason.TAKEN_AGAIN: entitlement,
    }
    if asked.reason in alone:
        yield from alone[asked.reason](asked)
        return
    paced = list(pace(asked))
    yield from paced
    if asked.purpose is Purpose.CONSOLIDATE and (short := list(free_room(asked))):
        yield from short
        return
    of_queue = list(limits(asked))
    if asked.purpose is Purpose.RECLAIM and asked.reason is Reason.QUOTA and not _has(of_queue, Cause.CLOSED):
        lasts = _has(of_queue, Cause.LASTING)  # then it says already what its queue deserves too little of
        of_queue += [one for one in entitlement(asked) if one.what or not lasts]
    yield from of_queue
    if asked.by_task:
        yield from _never(asked)
    if of_queue and (asked.reason is Reason.QUOTA or of_queue[0].cause is Cause.CLOSED):
        yield from beyond_the_cluster(asked)
        return
    if len(asked.domains) == 0:
        yield from _level(asked)
        return
    lacking = list(places(asked))
    yield from lacking
    # Where more tasks wait than the minimum needs, a solver may make it up from others.
    others = asked.snapshot.counts.pending[list(asked.attempt.podgroups)].sum() > len(asked.need.tasks)
    if others or not any(one.cause in NO_PLACES_EVER for one in lacking):  # else nothing helps that goes
        yield from staying(asked, {one.plugin for one in (*of_queue, *paced)})


def _has(obstacles: list[Obstacle], cause: Cause) -> bool:
    return any(one.cause is cause for one in obstacles)


def _level(asked: Question) -> Iterator[Obstacle]:
    groups, levels = asked.snapshot.podgroups, asked.snapshot.vocabulary.levels
    for podgroup in asked.attempt.podgroups:
        level = int(groups.required_level[podgroup])
        if 0 <= level < len(levels):
            yield Obstacle(Cause.LEVEL, podgroup=podgroup, what=levels[level])


def _without_evictions(asked: Question) -> Iterator[Obstacle]:
    """Why it may not evict, and what keeps it from starting in room that is free."""
    yield from _never(asked) if asked.reason is Reason.NEVER else _delay(asked)
    of_queue = list(limits(asked))
    yield from of_queue
    if of_queue:
        yield from beyond_the_cluster(asked)
    elif len(asked.domains):
        yield from places(asked)


def _never(asked: Question) -> Iterator[Obstacle]:
    """The first task that may not preempt: of the minimum, or where a solver asks all that wait, of those."""
    snapshot, tasks, groups = asked.snapshot, asked.snapshot.tasks, asked.snapshot.podgroups
    members, _ = snapshot.tasks_of_all(np.array(asked.attempt.podgroups))
    for waiting in (asked.need.tasks, members[tasks.status[members] == PENDING]):
        may = tasks.may_preempt[waiting]
        if not asked.by_task:  # else each task says so itself
            may = may & groups.may_preempt[tasks.podgroup[waiting]]
        for task in waiting[~may][:1].tolist():
            yield Obstacle(Cause.NEVER, task=task)
            return
        if asked.by_task:
            return


def _delay(asked: Question) -> Iterator[Obstacle]:
    groups, now, rows = asked.snapshot.podgroups, asked.attempt.now, np.array(asked.attempt.podgroups, np.int64)
    for podgroup in rows[delayed(groups, rows, now)].tolist():
        until = float(groups.created[podgroup] + groups.preemption_delay_s[podgroup])
        yield Obstacle(Cause.DELAY, podgroup=podgroup, wanted=until, found=now)
