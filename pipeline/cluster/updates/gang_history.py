"""The history of a podgroup: whether it was ever whole, and since when it has been broken."""

from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Counts, Rows
from pipeline.cluster.rules.minimum import Have, Minima, minima_of, parts_reach
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PHASE_RUNNING, RUNNING, SUCCEEDED
from pipeline.cluster.updates.copy_on_write import Draft
from pipeline.kernels import kernel


@kernel
def runs(status: int) -> int:
    """1 for a task that can be evicted (Bound or Running), else 0."""
    return int(status == RUNNING) + int(status == BOUND)


@kernel
def counts(status: int) -> int:
    """1 for a task that counts towards a minimum (Bound, Running or Succeeded), else 0."""
    return int(status == RUNNING) + int(status == BOUND) + int(status == SUCCEEDED)


def ready_now(snapshot: Snapshot) -> Have:
    """How many tasks of each podgroup, role and leaf subgroup count towards its minimum, as columns for writing."""
    counts, roles, leaves = snapshot.counts, snapshot.role_counts, snapshot.subgroup_counts
    return Have(counts.ready.copy(), roles.ready.copy(), leaves.ready.copy())


@kernel
def recount(have: Have, group: int, role: int, leaf: int, by: int) -> None:
    """Count a task ``by`` more (or less) towards the minima of its podgroup, role and subgroup."""
    have.group[group] += by
    if role != NONE:
        have.role[role] += by
    if leaf != NONE:
        have.leaf[leaf] += by


@kernel
def is_whole(minima: Minima, have: Have, group: int) -> bool:
    """Whether a podgroup has its minimum, at least one task, and its roles and subgroups have theirs."""
    return bool(have.group[group] >= max(minima.least[group], 1) and parts_reach(minima, have, group))


@kernel
def settle(group: int, at: float, minima: Minima, have: Have, running: Counts, history: tuple[Any, Any, Any]) -> None:
    """Bring ``history`` (phase, ``started``, ``stale_since``) of one podgroup up to date with its counts, in place.

    A podgroup is stale while some of its tasks run and it is not whole, whether or not it ever was whole. Without
    running tasks it is not stale: there is nothing to clear.
    """
    phase, started, stale = history
    if is_whole(minima, have, group):
        phase[group] = PHASE_RUNNING
        if np.isnan(started[group]):
            started[group] = at
        stale[group] = np.nan
    elif running[group] == 0:
        stale[group] = np.nan
    elif np.isnan(stale[group]):
        stale[group] = at


@kernel
def settle_all(
    groups: Rows, at: float, minima: Minima, have: Have, running: Counts, history: tuple[Any, Any, Any]
) -> None:
    """Do the same for several podgroups at one time."""
    for group in groups:
        settle(group, at, minima, have, running, history)


def listed(snapshot: Snapshot, at: float) -> Snapshot:
    """A state that was just listed: podgroups are stale since when they state it, else since ``at`` (seconds)."""
    stale = _stale(snapshot.once(minima_of), ready_now(snapshot), snapshot.counts.running)
    draft, said = Draft(snapshot.podgroups), snapshot.podgroups.stale_since
    draft["stale_since"] = np.where(stale, np.where(np.isnan(said), at, said), np.nan)
    return replace(snapshot, podgroups=draft.done()).following(snapshot, NO_ROWS)


@kernel
def _stale(minima: Minima, have: Have, running: Counts) -> Any:
    result = np.empty(len(running), np.bool_)
    for group in range(len(running)):
        result[group] = running[group] > 0 and not is_whole(minima, have, group)
    return result
