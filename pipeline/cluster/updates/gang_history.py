"""The history of a podgroup: whether it was ever whole, and since when it has been broken."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Counts, Floats, Ids
from pipeline.cluster.rules.minima_met import is_whole
from pipeline.cluster.rules.minimum import Have, Minima, minima_of, subgroups_reach
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PHASE_RUNNING, Podgroups
from pipeline.cluster.updates.copy_on_write import WritableTable
from pipeline.kernels import kernel
from pipeline.records import replace

Signs: TypeAlias = NDArray[np.int8]


class Recounted(NamedTuple):
    """Tasks that count otherwise, one after the other.

    Attributes
    ----------
    podgroup, role, subgroup: int32[K]
    ready, running: int8[K]
        By how much more the task counts towards a minimum, and among those that run: -1, 0 or 1.
    at: float64[K]
        When, in seconds.
    settles: bool[K]
        Whether its podgroup is looked at before the next one is counted.
    """

    podgroup: Ids
    role: Ids
    subgroup: Ids
    ready: Signs
    running: Signs
    at: Floats
    settles: Bools


@kernel
def settle(changed: Recounted, minima: Minima, have: Have, running: Counts, history: tuple[Any, Any, Any]) -> None:
    """Count tasks, and bring ``history`` (phase, ``started``, ``stale_since``) of their podgroups up to date, in place.

    A podgroup is whole if it has its minimum and at least one task, and its roles and subgroups have theirs. It is
    stale while some of its tasks run and it is not whole, whether or not it ever was whole. Without running tasks it is
    not stale: there is nothing to clear.
    """
    podgroup, roles, subgroups, ready_by, running_by, times, settles = changed
    phase, started, stale = history
    # Taking a column out of a record for each task would cost ten times as much as all the rest.
    least, has, has_role, has_leaf = minima.least, have.group, have.role, have.leaf
    binds, start, role_least = minima.binds, minima.role_start, minima.role_least
    part_start, on_top = minima.part_start, minima.wanted_on_top
    for k in range(len(podgroup)):
        group, role, leaf, at = podgroup[k], roles[k], subgroups[k], times[k]
        has[group] += ready_by[k]
        running[group] += running_by[k]
        if role != NONE:
            has_role[role] += ready_by[k]
        if leaf != NONE:
            has_leaf[leaf] += ready_by[k]
        if not settles[k]:
            continue
        whole = has[group] >= max(least[group], 1)
        if whole and binds[group]:
            for row in range(start[group], start[group + 1]):
                whole &= has_role[row] >= role_least[row]
        if whole and part_start[group] == part_start[group + 1]:
            whole = on_top[group] <= 0
        elif whole:
            whole = subgroups_reach(minima, have, group)
        if whole:
            phase[group] = PHASE_RUNNING
            if np.isnan(started[group]):
                started[group] = at
            stale[group] = np.nan
        elif running[group] == 0:
            stale[group] = np.nan
        elif np.isnan(stale[group]):
            stale[group] = at


def _ready_now(snapshot: Snapshot) -> Have:
    """How many tasks of each podgroup, role and leaf subgroup count towards its minimum, as columns for writing."""
    counts, roles, leaves = snapshot.counts, snapshot.role_counts, snapshot.subgroup_counts
    return Have(counts.ready.copy(), roles.ready.copy(), leaves.ready.copy())


def settle_news(changed: Recounted, snapshot: Snapshot, groups: WritableTable[Podgroups]) -> None:
    """Count tasks in ``groups``, the podgroups of the next snapshot."""
    running = snapshot.counts.running.copy()
    history = groups["phase"], groups["started"], groups["stale_since"]
    settle(changed, snapshot.once(minima_of), _ready_now(snapshot), running, history)


def settle_at_once(
    parts: tuple[Ids, Ids, Ids],
    by: tuple[Signs, Signs],
    at: float,
    snapshot: Snapshot,
    groups: WritableTable[Podgroups],
) -> None:
    """Count tasks that change at one time: a podgroup is looked at once all of them are counted.

    ``parts`` are the podgroup, role and subgroup of each task, ``by`` what it counts more as ready and as running.
    """
    order = np.argsort(parts[0], kind="stable")
    podgroup, role, subgroup = (column[order] for column in parts)
    ready, running = (column[order] for column in by)
    last = np.ones(len(order), bool)
    last[:-1] = podgroup[1:] != podgroup[:-1]
    times = np.full(len(order), at)
    settle_news(Recounted(podgroup, role, subgroup, ready, running, times, last), snapshot, groups)


def listed(snapshot: Snapshot, at: float) -> Snapshot:
    """A state that was just listed: podgroups are stale since when they state it, else since ``at`` (seconds)."""
    stale = (snapshot.counts.running > 0) & ~is_whole(snapshot)
    writable, said = WritableTable(snapshot.podgroups), snapshot.podgroups.stale_since
    writable["stale_since"] = np.where(stale, np.where(np.isnan(said), at, said), np.nan)
    return replace(snapshot, podgroups=writable.done()).following(snapshot, NO_ROWS)
