"""Koordinator's match policies: what counts when a podgroup asks whether it may start.

``waiting-and-running``: what runs and what is placed now reach the minimum together. ``once-satisfied``: the same holds
until the podgroup, or one with the same gang group, has run for the first time; from then on its tasks start one by
one. ``only-waiting``: what is placed now reaches the minimum by itself, whatever runs already.

A policy is followed by looking at the snapshot with another minimum, for starting alone: whether a gang is whole, what
it can spare, and whether it is stale depend on its own minimum.

In the same way it is followed that a waiting task which asks for nothing but a pod needs a place like any other. In
Volcano it counts towards the minimum as it is ("Gang Plugin", section 3.2), so where pods are short a gang starts and
stays below its minimum.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Bytes, Rows, any_true, is_among, sealed
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import (
    MATCH_POLICY_NAMES,
    ONCE_SATISFIED,
    ONLY_WAITING,
    PHASE_RUNNING,
    UNSTATED,
    Podgroups,
)
from pipeline.policy import Policy
from pipeline.records import replace

#: The match policies under which not all that runs and is placed counts together.
_NOT_TOGETHER = ONCE_SATISFIED, ONLY_WAITING


def to_start(snapshot: Snapshot, policy: Policy) -> Snapshot:
    """The snapshot with the minima that podgroups need to start, and with what counts towards them.

    Podgroups that state no match policy have that of the policy.
    """
    return _counting(snapshot.once(_TO_START[policy.match_policy]), policy)


def to_make_room(snapshot: Snapshot, policy: Policy) -> Snapshot:
    """The snapshot with the minima for which room may be made: a gang that has run before is restored as a whole.

    One that was satisfied once and has fewer tasks by now is restored as far as they go.
    """
    return _counting(snapshot.once(_TO_MAKE_ROOM[policy.match_policy]), policy)


def _counting(snapshot: Snapshot, policy: Policy) -> Snapshot:
    return snapshot if policy.best_effort_counts else snapshot.once(needing_places)


def needing_places(snapshot: Snapshot) -> Snapshot:
    """The snapshot with all that wait as tasks that need a place; mostly the snapshot itself: none asks for nothing."""
    tasks, groups = snapshot.tasks, snapshot.counts.pending_best_effort.nonzero()[0]
    if len(groups) == 0:
        return snapshot
    every, best_effort = snapshot.tasks_of_all(groups)[0], tasks.best_effort.copy()
    rows = np.sort(every[tasks.waits(every, promised=False) & best_effort[every]])
    best_effort[rows] = False
    return replace(snapshot, tasks=replace(tasks, best_effort=sealed(best_effort))).following(snapshot, rows)


def starts_freely(snapshot: Snapshot, otherwise: str) -> Bools:
    """bool[G]: podgroups that were satisfied once, if that is enough for them: each task starts by itself."""
    groups = snapshot.podgroups
    return np.asarray((stated_policy(groups.match_policy, otherwise) == ONCE_SATISFIED) & has_run(snapshot))


def start_after(snapshot: Snapshot, otherwise: str, podgroups: Sequence[int], begun: Rows, rest: Rows) -> bool:
    """Whether waiting tasks ``rest`` of podgroups that start together can start by themselves once ``begun`` have.

    Under ``only-waiting`` what has begun does not count any more: fewer than the minimum would wait without end. Both
    are int64[K], task rows.
    """
    groups, counts, owner = snapshot.podgroups, snapshot.counts, snapshot.tasks.podgroup
    anew = stated_policy(groups.match_policy[list(podgroups)], otherwise) == ONLY_WAITING
    for podgroup in np.array(podgroups)[anew].tolist():
        left = counts.pending[podgroup] + counts.waiting[podgroup] - np.count_nonzero(owner[begun] == podgroup)
        if left > 0 and np.count_nonzero(owner[rest] == podgroup) < groups.min_available[podgroup]:
            return False
    return True


def keep_up(snapshot: Snapshot, otherwise: str, podgroups: Sequence[int], begun: Rows) -> bool:
    """Whether what podgroups that start together were promised before can start once ``begun`` (int64[K]) have."""
    promised = [podgroup for podgroup in podgroups if snapshot.counts.waiting[podgroup]]
    if not promised:
        return True
    tasks, (rows, _) = snapshot.tasks, snapshot.tasks_of_all(np.array(promised))
    rest = rows[tasks.waits(rows, promised=True) & ~is_among(rows, begun)]
    return len(rest) == 0 or start_after(snapshot, otherwise, promised, begun, rest)


def stated_policy(policy: Bytes, otherwise: str) -> Bytes:
    """uint8[M]: the match policies ``policy`` uint8[M], with ``otherwise`` where none is stated."""
    return np.where(policy == UNSTATED, MATCH_POLICY_NAMES.index(otherwise), policy).astype(np.uint8)


def _view(snapshot: Snapshot, otherwise: str, *, room: bool) -> Snapshot:
    """The snapshot with the minima to start with, or with those for which ``room`` is made.

    Where any podgroup starts with others, those without a waiting task count too: the others ask about them.
    """
    groups, counts, least = snapshot.podgroups, snapshot.counts, snapshot.podgroups.min_available
    if MATCH_POLICY_NAMES.index(otherwise) not in _NOT_TOGETHER and not groups.once(_states_one_of_them):
        return snapshot  # as it mostly is
    stated, asked = stated_policy(groups.match_policy, otherwise), groups.alive
    if not (groups.gang_group != NONE).any():
        asked = asked & ((counts.pending > 0) | (counts.waiting > 0))
    once = asked & (stated == ONCE_SATISFIED) & ((counts.valid if room else counts.ready) < least)
    if once.any():
        once &= has_run(snapshot)
    only = asked & (stated == ONLY_WAITING) & (counts.ready > 0)
    if not (once | only).any():
        return snapshot
    enough = np.where(once, counts.valid if room else 0, least)
    anew = np.minimum(least, np.iinfo(np.int32).max - counts.ready) + counts.ready  # the most that a minimum can be
    needed = np.where(only, anew, enough).astype(np.int32)
    return replace(snapshot, podgroups=replace(groups, min_available=sealed(needed))).following(snapshot, NO_ROWS)


def _states_one_of_them(groups: Podgroups) -> bool:
    return any_true(groups.match_policy >= min(_NOT_TOGETHER))


def has_run(snapshot: Snapshot) -> Bools:
    """bool[G]: was whole once or has ready tasks now, or this is true of a podgroup of the same gang group."""
    groups = snapshot.podgroups
    run = groups.alive & (~np.isnan(groups.started) | (groups.phase == PHASE_RUNNING) | (snapshot.counts.ready > 0))
    numbers = groups.gang_group[run]
    together = np.isin(groups.gang_group, numbers[numbers != NONE])
    return np.asarray(run | together)


#: What is asked of a snapshot ``once``, by the policy of podgroups that state none.
_TO_START = {one: partial(_view, otherwise=one, room=False) for one in MATCH_POLICY_NAMES[1:]}
_TO_MAKE_ROOM = {one: partial(_view, otherwise=one, room=True) for one in MATCH_POLICY_NAMES[1:]}
