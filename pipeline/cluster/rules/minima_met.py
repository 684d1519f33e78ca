"""Which podgroups of a snapshot reach their minima: as a whole, in roles that bind, and in subgroups.

There is one question, asked with different counts. *Valid*: enough tasks exist. *Ready*: bound, running and succeeded
tasks, and pending ones without requests, reach the minimum. *Pipelined*: promised tasks count too. *Starving*: promised
and ready tasks do not reach it; best-effort tasks do not count towards the podgroup's own minimum here.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Rows, sealed
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.counted.minima import Have, Minima, subgroups_reach
from pipeline.cluster.counted.totals import TaskCounts
from pipeline.cluster.rules.minimum import minima_of, whole_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import inlined, kernel, linked
from pipeline.records import replace


class MinimaMet(NamedTuple):
    """Which podgroups reach their minima, bool[G] each, read-only.

    Attributes
    ----------
    exists, runs
        There are enough tasks for the roles and the subgroups; enough of them are bound, running or succeeded. The
        minimum of the whole is left out.
    valid, ready, pipelined, starving
        As the module says, with the minimum of the whole. Upstream calls a podgroup starving by its own minimum only,
        so one that lacks tasks of a role or subgroup never preempts (notes on Volcano, 1.8, item 20).
    """

    exists: Bools
    runs: Bools
    valid: Bools
    ready: Bools
    pipelined: Bools
    starving: Bools


def minima_met(snapshot: Snapshot) -> MinimaMet:
    """Which of its podgroups reach their minima; all is answered at once, since each search asks for most of it."""
    return snapshot.once(_in_one_pass)


def _in_one_pass(snapshot: Snapshot) -> MinimaMet:
    tables = snapshot.counts, snapshot.role_counts, snapshot.subgroup_counts
    answers = _minima_met(tuple(snapshot.once(minima_of)), snapshot.podgroups.alive, *map(_counted, tables))
    return MinimaMet(*map(sealed, answers))


def is_valid_without(snapshot: Snapshot, rows: Rows) -> Bools:
    """bool[G]: valid if the Pending tasks ``rows`` int64[K], without nominations, did not exist."""
    tasks = snapshot.tasks
    less = (
        _counted(replace(counts, pending=sealed(counts.pending - _counts_of(owner[rows], len(counts.pending)))))
        for counts, owner in (
            (snapshot.counts, tasks.podgroup),
            (snapshot.role_counts, tasks.role),
            (snapshot.subgroup_counts, tasks.subgroup),
        )
    )
    return MinimaMet(*_minima_met(tuple(snapshot.once(minima_of)), snapshot.podgroups.alive, *less)).valid


def is_whole(snapshot: Snapshot) -> Bools:
    """bool[G]: what is bound, running or succeeded is at least one task, and enough for all minima."""
    return minima_met(snapshot).runs & (snapshot.counts.ready >= np.maximum(snapshot.podgroups.min_available, 1))


def breaks_without(snapshot: Snapshot, podgroups: Rows, rows: Rows) -> Bools:
    """bool[P]: which of ``podgroups`` have their minimum now and lose it once ``rows`` are evicted.

    See ``whole_without``. A task that moves is not lost; it does not belong to ``rows``.
    """
    return np.asarray(minima_met(snapshot).pipelined[podgroups] & ~whole_without(snapshot, podgroups, rows))


class _Counted(NamedTuple):
    """Tasks by status (see ``TaskCounts``) of podgroups, roles or leaf subgroups, for kernels."""

    ready: Counts
    waiting: Counts
    pending: Counts
    pending_best_effort: Counts


#: Its columns, as kernels are given them.
_counted: Callable[[TaskCounts], Plain] = attrgetter(*_Counted._fields)


def _counts_of(owner: Ids, many: int) -> Counts:
    """int32[M]: how many tasks each of the ``many`` owners has among those with these owners."""
    return np.bincount(owner[owner != NONE], minlength=many).astype(np.int32)


@kernel
def _minima_met(plain: Plain, alive: Bools, of_group: Plain, of_role: Plain, of_leaf: Plain) -> Plain:
    """The columns of `MinimaMet`; ``plain`` are ``Minima``, and what follows is ``_Counted``."""
    minima, group, role, leaf = Minima(*plain), _Counted(*of_group), _Counted(*of_role), _Counted(*of_leaf)
    # Taking a column out of a record for each podgroup would cost twenty times as much as all the rest.
    least, ready, waiting = minima.least, group.ready, group.waiting
    pending, for_nothing = group.pending, group.pending_best_effort
    exists = minima.wanted_on_top <= 0
    runs, starts, comes = exists.copy(), exists.copy(), exists.copy()
    if minima.part_start[-1] > 0:
        _of_subgroups(minima, leaf, exists, runs, starts, comes)
    _of_roles(minima, role, exists, runs, starts, comes)
    valid, pipelined, starving = np.empty_like(exists), np.empty_like(exists), np.empty_like(exists)
    for at in range(len(least)):
        promised = ready[at] + waiting[at]
        valid[at] = exists[at] & (promised + pending[at] >= least[at])
        starts[at] &= ready[at] + for_nothing[at] >= least[at]
        pipelined[at] = comes[at] & (promised + for_nothing[at] >= least[at])
        starving[at] = alive[at] & ((not comes[at]) | (promised < least[at]))
    return exists, runs, valid, starts, pipelined, starving


@linked
def _of_subgroups(minima: Minima, leaf: _Counted, exists: Bools, runs: Bools, starts: Bools, comes: Bools) -> None:
    """Whether enough subgroups of the podgroups that have any are whole, by each kind of count."""
    start, none = minima.part_start, leaf.ready[:0]
    now = leaf.ready + leaf.pending_best_effort
    all_there, later = leaf.ready + leaf.waiting + leaf.pending, now + leaf.waiting
    for group in range(len(exists)):
        if start[group] < start[group + 1]:
            exists[group] = subgroups_reach(minima, Have(none, none, all_there), group)
            runs[group] = subgroups_reach(minima, Have(none, none, leaf.ready), group)
            starts[group] = subgroups_reach(minima, Have(none, none, now), group)
            comes[group] = subgroups_reach(minima, Have(none, none, later), group)


@inlined
def _of_roles(minima: Minima, role: _Counted, exists: Bools, runs: Bools, starts: Bools, comes: Bools) -> None:
    """Strike out podgroups that have too few tasks of a role that binds, by each kind of count."""
    binds, start, least, ready = minima.binds, minima.role_start, minima.role_least, role.ready
    group = 0
    for at in range(len(least)):
        # Mostly no role is short, or few are, and no count is below this one.
        if ready[at] >= least[at]:
            continue
        while start[group + 1] <= at:
            group += 1
        if binds[group]:
            now = ready[at] + role.pending_best_effort[at]
            runs[group] = False
            starts[group] &= now >= least[at]
            comes[group] &= now + role.waiting[at] >= least[at]
            exists[group] &= ready[at] + role.waiting[at] + role.pending[at] >= least[at]
