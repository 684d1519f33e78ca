"""Stale gang eviction: what is left of a gang that fell below its minimum, and stayed there, is cleared.

It holds room and does no work; once it is gone the gang waits as a whole and starts as a whole. KAI Scheduler evicts
such gangs without any of the checks of other evictions; here each podgroup is one statement like any other. Tasks that
have succeeded count towards the minimum, in their role and subgroup too: a gang that completes is left alone, and one
that can never be whole again is not. Promised tasks count as well: a gang that is about to be whole again stays. So
does one whose tasks may start one by one (match policy ``once-satisfied``): they would be started and cleared in turn.
"""

import math

import numpy as np

from pipeline.actions.progress import Progress
from pipeline.cluster.arrays import NO_ROWS, Floats, Rows
from pipeline.cluster.rules.match_policy import starts_freely
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.law import why_unlawful
from pipeline.decision.statement import statement
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.policy import Policy, Purpose

NAME = "stalegangeviction"


def stale_gang_eviction(progress: Progress) -> Progress:
    """Evict what runs of each podgroup whose grace is over, the one that has been stale for longest first.

    A podgroup is cleared whole or not at all: it stays if one of its tasks may not be evicted, or if the policy does
    not allow that many evictions now.
    """
    for podgroup in _overdue(progress.snapshot, progress.policy, progress.now).tolist():
        made = statement(NAME, purpose=Purpose.CLEAR, evictions=_running(progress.snapshot, podgroup))
        if why_unlawful(progress.host, made) is None:
            progress = progress.decided(made)
    return progress


def next_grace_over(snapshot: Snapshot, policy: Policy, now: float) -> float | None:
    """When there is something to clear after ``now`` even without news, seconds; None: never.

    A grace period ends, or more may be evicted than now.
    """
    ends = _ends(snapshot, policy)
    coming = ends[(ends > now) & snapshot.podgroups.alive]  # NaN is never more
    due = min(float(coming.min(initial=math.inf)), _pace_changes_at(snapshot, policy, now))
    return due if due < math.inf else None


def _pace_changes_at(snapshot: Snapshot, policy: Policy, now: float) -> float:
    """When more may be evicted, if that holds an overdue podgroup back; seconds, infinite: never."""
    held = _overdue(snapshot, policy, now)
    if len(held) == 0:
        return math.inf
    host = Host(Context(snapshot, policy, now))
    return min(host.pace_changes_at(_running(snapshot, podgroup)) for podgroup in held.tolist())


def _ends(snapshot: Snapshot, policy: Policy) -> Floats:
    """float64[G], seconds: when the grace of each podgroup ends; NaN for one that is not stale or may stay so."""
    groups = snapshot.podgroups
    grace = np.where(np.isnan(groups.stale_grace_s), policy.stale_grace_s, groups.stale_grace_s)
    return np.where(grace >= 0, groups.stale_since + grace, np.nan)


def _overdue(snapshot: Snapshot, policy: Policy, now: float) -> Rows:
    """int64[K]: podgroups that have been stale for their whole grace, the one that was stale first in front."""
    groups = snapshot.podgroups
    over = (_ends(snapshot, policy) <= now) & groups.alive  # NaN is never less
    if not over.any():
        return NO_ROWS
    rows = np.flatnonzero(over & ~minima_met(snapshot).pipelined & ~starts_freely(snapshot, policy.match_policy))
    return np.asarray(rows[np.lexsort((groups.order[rows], groups.stale_since[rows]))], np.int64)


def _running(snapshot: Snapshot, podgroup: int) -> Rows:
    rows = snapshot.tasks_of(podgroup)
    return np.asarray(rows[snapshot.tasks.runs(rows)], np.int64)
