"""Whether a podgroup has its minimum: as a whole, in its roles (unless it is elastic) and in its subgroups.

There is one answer, asked with different counts. *Valid*: enough tasks exist. *Ready*: bound, running and succeeded
tasks, and waiting ones without requests, reach the minimum. *Pipelined*: promised ones count too. *Starving*: promised
and ready ones do not reach it (of the podgroup's own minimum, the best-effort ones left out).
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.subgroups import whole_upwards
from pipeline.cluster.totals import Standing
from pipeline.cluster.what_if import WhatIf
from pipeline.kernels import kernel


class _Minima(NamedTuple):
    """What some podgroups need; the first subgroup is row ``base`` of its table.

    ``binds``: role minima count. ``role_start`` and ``part_start`` int64[G + 1] are offsets of roles and subgroups.
    """

    least: Counts
    binds: Bools
    role_start: Longs
    role_least: Counts
    part_start: Longs
    parent: Ids
    part_least: Counts
    wanted: Counts
    wanted_on_top: Counts
    base: int


class _Have(NamedTuple):
    """What podgroups, roles and leaf subgroups have towards their minima."""

    group: Counts
    role: Counts
    leaf: Counts


def is_valid(snapshot: Snapshot) -> Bools:
    """bool[G]: enough tasks exist for the roles, the subgroups and the whole."""
    return parts_valid(snapshot) & (snapshot.standing.valid >= snapshot.podgroups.min_available)


def parts_valid(snapshot: Snapshot) -> Bools:
    """bool[G]: enough tasks exist for the roles and the subgroups."""
    standing, role, leaf = snapshot.standing, snapshot.role_standing, snapshot.subgroup_standing
    return _parts_reach(_minima(snapshot), _Have(standing.valid, role.valid, leaf.valid))


def is_ready(snapshot: Snapshot) -> Bools:
    """bool[G]: could run now."""
    return _all_reach(snapshot, promised=False)


def is_pipelined(snapshot: Snapshot) -> Bools:
    """bool[G]: could run once what was promised comes free."""
    return _all_reach(snapshot, promised=True)


def is_starving(snapshot: Snapshot) -> Bools:
    """bool[G]: below the minimum even with what was promised; best-effort tasks do not count.

    Upstream looks at the podgroup's minimum alone, so that a podgroup short of a role or subgroup never preempts
    (notes-volcano 1.8, 20); here such a podgroup starves too.
    """
    standing, groups = snapshot.standing, snapshot.podgroups
    below: Bools = standing.waiting + standing.ready < groups.min_available
    return (below | ~_parts_reach(_minima(snapshot), _have(snapshot, promised=True))) & groups.alive


def has_minimum(state: Snapshot | WhatIf, podgroup: int, subgroup: int, placed: Rows) -> bool:
    """Whether the minimum is reached, counting what is ready, promised, without requests, or ``placed``.

    Parameters
    ----------
    subgroup
        Row of the subgroup that is asked about; NONE: the podgroup, with its roles and subgroups.
    placed
        Waiting task rows that count as promised; those of other podgroups do not matter.
    """
    return _has(state, podgroup, subgroup, placed, promised=True)


def starts_with(state: Snapshot | WhatIf, podgroup: int, rows: Rows) -> bool:
    """Whether the podgroup can start once ``rows`` are bound; what is merely promised does not count."""
    return _has(state, podgroup, NONE, rows, promised=False)


def _all_reach(snapshot: Snapshot, *, promised: bool) -> Bools:
    have = _have(snapshot, promised=promised)
    return _parts_reach(_minima(snapshot), have) & (have.group >= snapshot.podgroups.min_available)


def _has(state: Snapshot | WhatIf, podgroup: int, subgroup: int, placed: Rows, *, promised: bool) -> bool:
    snapshot = state.snapshot if isinstance(state, WhatIf) else state
    role, part = _run(snapshot.role_start, podgroup), _run(snapshot.subgroup_start, podgroup)
    tasks, counted = snapshot.tasks, state.standing_of(podgroup)
    mine = placed[tasks.podgroup[placed] == podgroup]
    # Those that ask for nothing are counted already as long as no node is promised to them.
    mine = mine[~tasks.best_effort[mine] | (state.nominated_of(mine) != NONE)]
    have = _Have(
        _towards(counted.podgroup, promised=promised) + np.int32(len(mine)),
        _towards(counted.roles, promised=promised) + _tally(tasks.role[mine], role),
        _towards(counted.subgroups, promised=promised) + _tally(tasks.subgroup[mine], part),
    )
    minima = _minima(snapshot, slice(podgroup, podgroup + 1), role, part)
    if subgroup != NONE:
        return bool(_whole_parts(minima, have)[subgroup - part.start])
    return bool(have.group[0] >= minima.least[0] and _parts_reach(minima, have)[0])


def _run(start: Longs, podgroup: int) -> slice:
    return slice(int(start[podgroup]), int(start[podgroup + 1]))


def _tally(owner: Ids, rows: slice) -> Counts:
    """int32[rows]: how many of the tasks belong to each row."""
    inside = owner[(owner >= rows.start) & (owner < rows.stop)] - rows.start
    return np.bincount(inside, minlength=rows.stop - rows.start).astype(np.int32)


def _have(snapshot: Snapshot, *, promised: bool) -> _Have:
    return _Have(
        _towards(snapshot.standing, promised=promised),
        _towards(snapshot.role_standing, promised=promised),
        _towards(snapshot.subgroup_standing, promised=promised),
    )


def _towards(standing: Standing, *, promised: bool) -> Counts:
    """int32[M]: what counts towards a minimum; a best-effort task with a promise counts once."""
    have = standing.ready + standing.pending_best_effort
    return np.asarray(have + standing.waiting if promised else have)


def _minima(
    snapshot: Snapshot, group: slice = slice(None), role: slice = slice(None), part: slice = slice(None)
) -> _Minima:
    """The minima of all podgroups, or of one, given by the rows of it, its roles and its subgroups."""
    groups, table = snapshot.podgroups, snapshot.subgroups
    ends = slice(group.start, None if group.stop is None else group.stop + 1)
    return _Minima(
        least=groups.min_available[group],
        binds=snapshot.roles_bind[group],
        role_start=snapshot.role_start[ends] - (role.start or 0),
        role_least=snapshot.roles.min_available[role],
        part_start=snapshot.subgroup_start[ends] - (part.start or 0),
        parent=table.parent[part],
        part_least=table.min_available[part],
        wanted=table.min_subgroups[part],
        wanted_on_top=groups.min_subgroups[group],
        base=part.start or 0,
    )


@kernel
def _parts_reach(minima: _Minima, have: _Have) -> Bools:
    """bool[G]: no role that binds is below its minimum, and enough subgroups are whole, level by level."""
    result = np.empty(len(minima.least), np.bool_)
    for group in range(len(result)):
        result[group] = True
        if minima.binds[group]:
            for role in range(minima.role_start[group], minima.role_start[group + 1]):
                if have.role[role] < minima.role_least[role]:
                    result[group] = False
        first, stop = minima.part_start[group], minima.part_start[group + 1]
        if first < stop:
            result[group] &= _tree(minima, have, group)[1][stop - first] >= 0
        else:
            result[group] &= minima.wanted_on_top[group] <= 0
    return result


@kernel
def _whole_parts(minima: _Minima, have: _Have) -> Bools:
    """bool[U]: the subgroups of one podgroup that are whole."""
    return _tree(minima, have, 0)[0]


@kernel
def _tree(minima: _Minima, have: _Have, group: int) -> tuple[Bools, Counts]:
    """Which subgroups of a podgroup are whole, and what each of them, and the podgroup behind them, can spare."""
    first, stop = minima.part_start[group], minima.part_start[group + 1]
    count = stop - first
    holder, wanted = np.empty(count, np.int32), np.empty(count + 1, np.int32)
    for at in range(count):
        parent = minima.parent[first + at]
        holder[at] = count if parent == NONE else parent - minima.base - first
        wanted[at] = minima.wanted[first + at]
    wanted[count] = minima.wanted_on_top[group]
    return whole_upwards(holder, wanted, have.leaf[first:stop], minima.part_least[first:stop])
