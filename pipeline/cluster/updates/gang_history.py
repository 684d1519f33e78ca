"""The history of a podgroup: whether it was ever whole, and since when it has been broken."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Counts, Floats, Ids, Longs, Rows
from pipeline.cluster.counted.minima import Have, Minima, subgroups_reach, writable
from pipeline.cluster.rules.minima_met import is_whole
from pipeline.cluster.rules.minimum import minima_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PHASE_RUNNING, Podgroups
from pipeline.cluster.updates.copy_on_write import WritableTable
from pipeline.kernels import inlined, kernel
from pipeline.records import replace

Columns: TypeAlias = tuple[Any, ...]
#: The columns that say what became of a podgroup.
_HISTORY = "phase", "started", "stale_since"
_history_of: Callable[[Podgroups], Columns] = attrgetter(*_HISTORY)


def with_gang_history(
    snapshot: Snapshot, counted: Longs, at: Floats, *, at_once: bool, spared: Rows | Ids = NO_ROWS
) -> Podgroups:
    """The podgroups once tasks are counted; a column in which nothing changed stays the same array.

    Parameters
    ----------
    counted: int64[K, 5]
        Of each task that counts otherwise its podgroup, role and subgroup, and by how much more it counts towards a
        minimum and among those that run (-1, 0 or 1).
    at: float64[K]
        When, in seconds.
    at_once
        Whether a podgroup is looked at once all tasks are counted; else after each of its tasks.
    spared: int64[M] or int32[M]
        Podgroups of tasks that were told to end and run on: to be whole again with them is no start.
    """
    groups, counts = snapshot.podgroups, snapshot.counts
    rows, differs, values = _settle(
        counted, at, at_once, tuple(snapshot.once(minima_of)),
        (counts.ready, snapshot.role_counts.ready, snapshot.subgroup_counts.ready), counts.running,
        _history_of(groups), spared,
    )  # fmt: skip
    if len(rows) == 0:
        return groups
    after = WritableTable(groups)
    for name, column, differ in zip(_HISTORY, values, differs.tolist(), strict=True):
        if differ:
            after[name][rows] = column
    return after.done()


@kernel
def _settle(
    counted: Longs, times: Floats, at_once: bool,
    minima: Columns, known: Columns, known_running: Counts, history: Columns, spared: Rows | Ids,
) -> tuple[Rows, Bools, Columns]:  # fmt: skip
    """The podgroups (int64[M]) whose history changes, in which of its columns (bool[3]), and what these are now.

    A podgroup is whole if it has its minimum and at least one task, and its roles and subgroups have theirs. It is
    stale while some of its tasks run and it is not whole, whether or not it ever was whole. Without running tasks it is
    not stale: there is nothing to clear.

    It starts as it becomes whole. One that was whole already started earlier: if that is unknown it stays so. So what
    loses surplus does not become young. It was whole if its phase says so, some of it ran and it was not stale.

    ``minima`` are ``Minima``; ``known`` (``Have``) and ``known_running`` are the counts before.
    """
    needs, have, running = Minima(*minima), writable(Have(*known)), known_running.copy()
    spares = np.zeros(len(running) if len(spared) else 0, np.bool_)
    spares[spared] = True
    phase, started, stale = history[0].copy(), history[1].copy(), history[2].copy()
    # Taking a column out of a record for each task would cost ten times as much as all the rest.
    least, has, has_role, has_leaf = needs.least, have.group, have.role, have.leaf
    binds, start, role_least = needs.binds, needs.role_start, needs.role_least
    part_start, on_top = needs.part_start, needs.wanted_on_top
    many, fresh, looked_at, looks = len(counted), np.ones(len(has), np.bool_), np.empty(len(counted), np.int64), 0
    for step in range(2 * many if at_once else many):
        k = step if step < many else step - many
        group, role, leaf, more, at = counted[k, 0], counted[k, 1], counted[k, 2], counted[k, 3], times[k]
        ran = known_running[group] if at_once else running[group]
        if step < many:
            has[group] += more
            running[group] += counted[k, 4]
            fresh[group] |= more != 0 or counted[k, 4] != 0
            if role != NONE:
                has_role[role] += more
            if leaf != NONE:
                has_leaf[leaf] += more
        # Where no task counts otherwise since it was last looked at, nothing else would be found.
        if (at_once and step < many) or not fresh[group]:
            continue
        fresh[group], looked_at[looks], looks = False, group, looks + 1
        whole = has[group] >= max(least[group], 1)
        if whole and binds[group]:
            for row in range(start[group], start[group + 1]):
                whole &= has_role[row] >= role_least[row]
        if whole and part_start[group] == part_start[group + 1]:
            whole = on_top[group] <= 0
        elif whole:
            whole = subgroups_reach(needs, have, group)
        if whole:
            was_whole = (ran > 0 and np.isnan(stale[group])) or (len(spares) > 0 and spares[group])
            if np.isnan(started[group]) and not (was_whole and phase[group] == PHASE_RUNNING):
                started[group] = at
            phase[group] = PHASE_RUNNING
            stale[group] = np.nan
        elif running[group] == 0:
            stale[group] = np.nan
        elif np.isnan(stale[group]):
            stale[group] = at
    return _rewritten(looked_at[:looks], history, (phase, started, stale))


@inlined
def _rewritten(podgroups: Longs, before: Columns, after: Columns) -> tuple[Rows, Bools, Columns]:
    """Which of ``podgroups`` have another history, in which columns, and what these are."""
    (phase, started, stale), (phase_before, started_before, stale_before) = after, before
    differs, rows, many = np.zeros(len(after), np.bool_), np.empty(len(podgroups), np.int64), 0
    for group in podgroups:
        of_phase = phase[group] != phase_before[group]
        of_start, of_stale = _differ(started[group], started_before[group]), _differ(stale[group], stale_before[group])
        differs[0], differs[1], differs[2] = differs[0] | of_phase, differs[1] | of_start, differs[2] | of_stale
        if of_phase or of_start or of_stale:
            rows[many] = group
            many += 1
    rows = rows[:many].copy()
    return rows, differs, (phase[rows], started[rows], stale[rows])


@inlined
def _differ(time: float, other: float) -> bool:
    return time != other and not (np.isnan(time) and np.isnan(other))


def history_of_list(snapshot: Snapshot, at: float) -> Snapshot:
    """A state that was just listed.

    Podgroups are stale since when they state it, else since ``at`` (seconds). The phase of what is whole says so. Since
    when, only the list can say.
    """
    whole = is_whole(snapshot)
    stale = (snapshot.counts.running > 0) & ~whole
    after, said = WritableTable(snapshot.podgroups), snapshot.podgroups.stale_since
    after["phase"][whole] = PHASE_RUNNING
    after["stale_since"] = np.where(stale, np.where(np.isnan(said), at, said), np.nan)
    return replace(snapshot, podgroups=after.done()).following(snapshot, NO_ROWS)
