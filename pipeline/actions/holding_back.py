"""Starts that are held back: a task that another podgroup would evict in the same cycle does not start first.

A podgroup that finds no room in ``allocate`` may take, later in the same cycle, the room that a podgroup of lower
priority was given there. KAI Scheduler starts that one and evicts it again. Here it does not start: the cycle begins
anew without it. The same holds for a podgroup for which one action evicts and whose room a later action takes
(`undone`), and for one that would start on room that it was promised in an earlier cycle, and be evicted in the next.
"""

from collections.abc import Callable
from itertools import product

import numpy as np

from pipeline.actions.progress import HoldingBack, Progress
from pipeline.cluster.arrays import NONE, Bools, Ids, Rows, distinct, is_among
from pipeline.cluster.orders import first_of
from pipeline.cluster.rules.gang_groups import starting_with
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING
from pipeline.placement.taken_again import one_of_each_queue
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.records import replace

#: Turns in which only what was taken is held back; seldom there are more.
_ONE_BY_ONE = 2


def with_starts_held_back(run: Callable[[Progress], Progress], fresh: Progress) -> Progress:
    """The outcome of the actions, with every start held back that a later action would take.

    If the podgroup that would have taken the room gets nothing then, what starts elsewhere than at first is held back
    as well. If it still gets nothing, starts on promised room are not taken; and if it gets nothing without those,
    nothing is held back, and no start is taken.
    """
    if not fresh.policy.takes_back_starts:
        return run(fresh)
    for takes_redeemed in (True, False):
        nothing_yet = HoldingBack(takes_starts=True, takes_redeemed=takes_redeemed)
        done, serves = _held_back(run, replace(fresh, held_back=nothing_yet))
        if serves:
            return done
        if not done.held_back.promises:
            break
    return run(fresh)


def _held_back(run: Callable[[Progress], Progress], fresh: Progress) -> tuple[Progress, bool]:
    """The outcome with starts held back, and whether that serves all for which they were.

    A podgroup whose start is held back gives up the promised room on which it would start. What it gets after all
    others and another one takes even then it does not get: it waits for the next cycle. Podgroups are held back with
    all that start only with them. Each turn holds back more, so there is a last one; if an action started what is held
    back all the same, it would be of no use.

    Where a podgroup is held back the next one in order may start in its place and be taken as well, and so on through
    all that wait. So after `_ONE_BY_ONE` turns all that come behind are held back together.
    """
    tasks, held, takers, turn = fresh.snapshot.tasks, fresh.held_back, set[int](), 0
    done = first = run(fresh)
    while True:
        found = _to_hold_back(tasks.podgroup, done, first, takers)
        behind = _behind(fresh.snapshot, found) - held.podgroups - takers if turn >= _ONE_BY_ONE else set()
        more = starting_with(fresh.snapshot, [*found, *behind])
        losing = tasks.podgroup[done.retaken[tasks.nominated[done.retaken] != NONE]].tolist()
        if held.whole_cycle.issuperset(more) and held.promises.issuperset(losing):
            return done, len(done.retaken) == 0 and _serves(done, takers)
        held = replace(
            held,
            podgroups=held.podgroups | more,
            whole_cycle=held.whole_cycle | (more & held.podgroups),
            promises=held.promises.union(losing),
        )
        takers |= {done.taker} - {NONE}
        done = run(replace(fresh, held_back=held))
        turn += 1


def _to_hold_back(owner: Ids, done: Progress, first: Progress, takers: set[int]) -> list[int]:
    """The podgroups of what was taken again; if a taker gets nothing then, of what starts elsewhere than at first."""
    if len(done.retaken) or _serves(done, takers):
        return list(owner[done.retaken].tolist())
    return [int(owner[row]) for row, _ in sorted(_starts(done) - _starts(first))]


def _behind(snapshot: Snapshot, found: list[int]) -> set[int]:
    """Podgroups that have tasks waiting and are no more important than one in ``found`` of the same queue."""
    groups, tasks = snapshot.podgroups, snapshot.tasks
    most = np.full(len(snapshot.queues), np.iinfo(np.int64).min)
    np.maximum.at(most, groups.queue[found], groups.priority[found])
    waits = distinct(tasks.podgroup[tasks.status == PENDING])
    return set(waits[groups.priority[waits] <= most[groups.queue[waits]]].tolist())


def _starts(done: Progress) -> set[tuple[int, int]]:
    """Tasks that start or are promised room without evictions, each with its node."""
    places = [made.places for made in done.statements if made.purpose is Purpose.ALLOCATE]
    return {pair for rows, nodes, _ in places for pair in zip(rows.tolist(), nodes.tolist(), strict=True)}


def _serves(done: Progress, takers: set[int]) -> bool:
    """Whether all of some podgroups are served, or do not starve: the promise of one may not be taken any more."""
    left = takers - {made.preemptor for made in done.statements}
    return not left or not done.host.starving[list(left)].any()


# -- starts that nothing decided later in the cycle changes ------------------------------------------------------------


def certain(progress: Progress, rows: Rows) -> Rows:
    """int64[K]: those of some tasks that start which no podgroup that starves by now might take as soon as they run."""
    if not progress.held_back.takes_redeemed or len(rows) == 0:
        return rows
    asking = _asking(progress)
    if len(asking) == 0:
        return rows
    return rows[~(_outranked(progress, rows, asking) | _reclaimed(progress, rows, asking))]


def _asking(progress: Progress) -> Rows:
    """int64[K]: podgroups that starve and will be searched for in this cycle."""
    host, pausing = progress.host, progress.setup.backoff.held(progress.snapshot, progress.now)
    asking: Bools = host.starving & host.valid
    asking[[*progress.held_back.whole_cycle, *(row for gang_group in pausing for row in gang_group)]] = False
    return np.flatnonzero(asking)


def _outranked(progress: Progress, rows: Rows, asking: Rows) -> Bools:
    """bool[K]: tasks of podgroups of lower priority than one of the same queue that asks."""
    snapshot, groups = progress.snapshot, progress.snapshot.podgroups
    highest = np.full(len(snapshot.queues), np.iinfo(np.int64).min)
    np.maximum.at(highest, groups.queue[asking], groups.priority[asking])
    owner = snapshot.tasks.podgroup[rows]
    return np.asarray(groups.priority[owner] < highest[groups.queue[owner]])


def _reclaimed(progress: Progress, rows: Rows, asking: Rows) -> Bools:
    """bool[K]: tasks that another queue might reclaim if it asked for very little, or for what such a task holds.

    Asking for less than is taken may be refused where an ancestor of both queues would lose the rest.
    """
    snapshot, groups, host = progress.snapshot, progress.snapshot.podgroups, progress.host
    queue, parent = snapshot.queue_of(rows), snapshot.queues.parent
    some = first_of(queue)[0]
    nothing, wanted = np.zeros(len(snapshot.vocabulary.resources), np.int64), set[int]()
    for podgroup, at in product(one_of_each_queue(groups, asking).tolist(), some.tolist()):
        own, other, row = int(groups.queue[podgroup]), int(queue[at]), rows[at : at + 1]
        if other == own or other in wanted:
            continue
        asked = (nothing,) if parent[own] == NONE else (nothing, snapshot.request_of(row)[0])
        if any(host.validate_set(Preemptor((podgroup,), one, Purpose.RECLAIM), row) for one in asked):
            wanted.add(other)
    return is_among(queue, list(wanted))
