"""Which of their waiting tasks bring podgroups to their minima, and which come next.

Those of roles and subgroups come first, then others in order. A subgroup that a gang can spare starts with its own
minimum or not at all. Where the subgroups that the gang needs have too few tasks for its minimum, others are added
whole. Beyond the minimum the emptiest subgroup grows first, as the fullest is the first to lose.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Longs, Rows
from pipeline.cluster.counted.minima import lacking_leaves, of_use_by_each
from pipeline.cluster.rules.minimum import minima_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import writing

#: Leaf subgroups, and the tasks that each lacks.
_Leaves = list[tuple[int, int]]
#: Up to this number of leaves all sets of them are compared.
_FEW = 12


def minimum_of(snapshot: Snapshot, podgroup: int, rows: Rows) -> tuple[Bools, int]:
    """Which of the pending ``rows`` (bool[K], in placement order) reach the minimum, and how many it still lacks.

    Roles and subgroups that are short come first, then tasks in order until ``min_available`` is reached. Best-effort
    tasks are included: each needs a place for its pod, and a gang starves until it has one.
    """
    chosen, lacking = reaching_minima(snapshot, np.array([podgroup]), rows, np.zeros(len(rows), np.int64))
    return chosen, int(lacking[0])


def reaching_minima(snapshot: Snapshot, podgroups: Rows, rows: Rows, owner: Rows) -> tuple[Bools, Longs]:
    """The same for several podgroups: bool[K], and int64[P].

    Parameters
    ----------
    podgroups: int64[P]
    rows, owner: int64[K]
        Pending tasks of one podgroup after the other, each in placement order, and positions of their podgroups in
        ``podgroups``.
    """
    counts, least = snapshot.counts, snapshot.podgroups.min_available
    chosen, lacking = np.zeros(len(rows), bool), np.zeros(len(podgroups), np.int64)
    is_open = np.ones(len(rows), bool)
    for at in _with_parts(snapshot, podgroups):
        mine = slice(*owner.searchsorted((at, at + 1)).tolist())
        chosen[mine], is_open[mine], lacking[at] = _leading_of_parts(snapshot, int(podgroups[at]), rows[mine])
    _fill_up(podgroups, owner, least, counts.ready, counts.waiting, is_open, chosen, lacking)
    return chosen, lacking


def _with_parts(snapshot: Snapshot, podgroups: Rows) -> list[int]:
    """The positions of podgroups with roles that bind or with subgroups."""
    if len(snapshot.roles) == len(snapshot.subgroups) == 0:
        return []
    after = podgroups + 1
    roles = snapshot.roles_bind[podgroups] & (snapshot.role_start[after] > snapshot.role_start[podgroups])
    inner = roles | (snapshot.subgroup_start[after] > snapshot.subgroup_start[podgroups])
    return list(inner.nonzero()[0].tolist())


@writing("chosen", "lacking")
def _fill_up(
    podgroups: Rows, owner: Rows, least: Counts, ready: Counts, waiting: Counts, is_open: Bools,
    chosen: Bools, lacking: Longs,
) -> None:  # fmt: skip
    """Choose tasks in order, of those that are open, until each podgroup has its minimum.

    ``lacking`` becomes at least what it lacks then.
    """
    missing = np.empty(len(podgroups), np.int64)
    for at in range(len(podgroups)):
        group = podgroups[at]
        missing[at] = least[group] - ready[group] - waiting[group]
    for task in range(len(owner)):
        missing[owner[task]] -= chosen[task]
    for task in range(len(owner)):
        if is_open[task] and not chosen[task] and missing[owner[task]] > 0:
            chosen[task] = True
            missing[owner[task]] -= 1
    for at in range(len(podgroups)):
        lacking[at] = max(lacking[at], missing[at])


def _leading_of_parts(snapshot: Snapshot, podgroup: int, rows: Rows) -> tuple[Bools, Bools, int]:
    """Which of the pending ``rows`` make the roles and subgroups of a podgroup whole, and how many these still lack.

    Returns
    -------
    bool[K], bool[K], int: the second says which are open, that is in no subgroup that starts in part.
    """
    chosen, lacking, tasks, counts = np.zeros(len(rows), bool), 0, snapshot.tasks, snapshot.counts
    if snapshot.roles_bind[podgroup]:
        have = snapshot.role_counts
        for role in range(snapshot.role_start[podgroup], snapshot.role_start[podgroup + 1]):
            short = snapshot.roles.min_available[role] - have.ready[role] - have.waiting[role]
            lacking += _take(rows, tasks.role, role, int(short), chosen)
    closest, before = _short_subgroups(snapshot, podgroup, rows), chosen.copy()
    lacking += _take_leaves(snapshot, rows, closest, chosen)
    missing = int(snapshot.podgroups.min_available[podgroup] - counts.ready[podgroup] - counts.waiting[podgroup])
    if lacking or missing <= chosen.sum():
        return chosen, np.ones(len(rows), bool), lacking
    is_open = _Parts(snapshot, podgroup, rows, chosen).open_now()
    if int((is_open | chosen).sum()) < missing:
        chosen = before
        _take_leaves(snapshot, rows, _Parts(snapshot, podgroup, rows, chosen).enough(closest, missing), chosen)
        is_open = _Parts(snapshot, podgroup, rows, chosen).open_now()
    return chosen, is_open, 0


class _Parts:
    """The subgroups of a podgroup, P of them, whose pending ``rows`` are ``chosen`` in part."""

    def __init__(self, snapshot: Snapshot, podgroup: int, rows: Rows, chosen: Bools) -> None:
        first, last = int(snapshot.subgroup_start[podgroup]), int(snapshot.subgroup_start[podgroup + 1])
        table, have, of = snapshot.subgroups, snapshot.subgroup_counts, snapshot.tasks.subgroup[rows]
        self._snapshot, self._podgroup, self._first, self._rows = snapshot, podgroup, first, rows
        self._waiting, self._taken = (
            np.bincount(some[some != NONE] - first, minlength=last - first) for some in (of, of[chosen])
        )
        self._have = (have.ready + have.waiting)[first:last] + self._taken.astype(np.int32)
        is_leaf = ~np.isin(np.arange(first, last), table.parent[first:last])
        self._lacks = np.where(is_leaf, table.min_available[first:last] - self._have, 0).clip(0)

    def open_now(self) -> Bools:
        """bool[K]: which rows are in no subgroup that is below its minimum."""
        return in_whole_subgroups(self._snapshot, self._podgroup, self._rows, self._have)

    def enough(self, closest: _Leaves, missing: int) -> _Leaves:
        """Leaves that have ``missing`` tasks, together with what is open besides, once they are whole.

        Those with which the minimum takes fewest tasks, then the fewest leaves, then those that lack least. All sets of
        a few leaves are compared; of many the ``closest`` ones with more in the order of what they lack. The closest if
        no set is enough.
        """
        some = np.flatnonzero((self._lacks > 0) & (self._lacks <= self._waiting - self._taken))
        some = some[self._lacks[some].argsort(kind="stable")]
        known = np.isin(some + self._first, [leaf for leaf, _ in closest])
        sets = known | np.tri(len(some) + 1, len(some), -1, bool)
        if len(some) <= _FEW:
            sets = ((np.arange(1 << len(some))[:, np.newaxis] >> np.arange(len(some))) & 1).astype(bool)
        have = np.tile(self._have, (len(sets), 1))
        have[:, some] += sets * self._lacks[some]
        is_whole, is_open = of_use_by_each(self._snapshot.once(minima_of), self._podgroup, have)
        alone = len(self._rows) - int(self._waiting.sum())
        is_enough = is_whole & ~(sets & ~is_open[:, some]).any(axis=1) & (alone + is_open @ self._waiting >= missing)
        sets = sets[is_enough]
        best = np.lexsort((*~sets.T[::-1], sets.sum(axis=1), np.maximum(sets @ self._lacks[some], missing)))[:1]
        if len(best) == 0:
            return closest
        found = some[sets[best[0]]]
        return list(zip((found + self._first).tolist(), (self._lacks + self._taken)[found].tolist(), strict=True))


def in_whole_subgroups(snapshot: Snapshot, podgroup: int, rows: Rows, have: Counts) -> Bools:
    """bool[K]: which tasks of a podgroup are in no subgroup, or in one that is whole with all that it is in.

    ``have`` int32[P] is what its leaf subgroups have. The other tasks would start a subgroup only in part.
    """
    of = snapshot.tasks.subgroup[rows]
    alone = of == NONE
    if alone.all():
        return np.asarray(alone)
    _, is_open = of_use_by_each(snapshot.once(minima_of), podgroup, have[np.newaxis])
    return np.asarray(alone | is_open[0, np.where(alone, 0, of - snapshot.subgroup_start[podgroup])])


def _take_leaves(snapshot: Snapshot, rows: Rows, leaves: _Leaves, chosen: Bools) -> int:
    """Mark tasks that leaf subgroups lack, besides those that are chosen for a role; returns how many are missing."""
    of, lacking = snapshot.tasks.subgroup, 0
    for leaf, short in leaves:
        lacking += _take(rows, of, leaf, short - int(chosen[of[rows] == leaf].sum()), chosen)
    return lacking


def _take(rows: Rows, of: Ids, row: int, wanted: int, chosen: Bools) -> int:
    """Mark the first ``wanted`` tasks of one owner that are not chosen yet; returns how many are missing."""
    if wanted <= 0:
        return 0
    found = np.flatnonzero((of[rows] == row) & ~chosen)[:wanted]
    chosen[found] = True
    return wanted - len(found)


def lacking_in_subgroups(
    snapshot: Snapshot, podgroups: Rows, have: Counts, waiting: Counts | None = None
) -> tuple[Longs, Rows, Longs]:
    """What the subgroups of some podgroups lack at least, in which leaves, and how much there: see ``lacking_leaves``.

    ``have``, ``waiting`` int32[U]: how many tasks each has, and how many more may come; None: all that it lacks.
    """
    if waiting is None:
        waiting = np.broadcast_to(snapshot.subgroups.min_available, have.shape)
    return lacking_leaves(tuple(snapshot.once(minima_of)), podgroups, have, np.ascontiguousarray(waiting))


def _short_subgroups(snapshot: Snapshot, podgroup: int, rows: Rows) -> _Leaves:
    """Leaf subgroups that must still become whole with the pending ``rows``, and by how many tasks."""
    if snapshot.subgroup_start[podgroup] == snapshot.subgroup_start[podgroup + 1]:
        return []
    have, of = snapshot.subgroup_counts, snapshot.tasks.subgroup[rows]
    waiting = np.bincount(of[of != NONE], minlength=len(snapshot.subgroups)).astype(np.int32)
    _, leaves, short = lacking_in_subgroups(snapshot, np.array([podgroup]), have.ready + have.waiting, waiting)
    return list(zip(leaves.tolist(), short.tolist(), strict=True))


class Growing:
    """The subgroups of a podgroup that has its minima, and to which more tasks come; below by position, then itself."""

    def __init__(self, snapshot: Snapshot, podgroup: int) -> None:
        first, last = snapshot.subgroup_start[podgroup : podgroup + 2].tolist()
        table, top = snapshot.subgroups, last - first
        parent = table.parent[first:last].astype(np.int64)
        self._first, self._top, self._up = first, top, np.where(parent == NONE, top, parent - first)
        many = np.bincount(self._up, minlength=top + 1)
        self._is_leaf = many == 0
        wanted = np.append(table.min_subgroups[first:last], snapshot.podgroups.min_subgroups[podgroup])
        tasks = np.append(table.min_available[first:last], 0)
        self._least = np.where(self._is_leaf, tasks, np.where(wanted == NONE, many, wanted)).astype(np.int64)
        self._children = np.split(self._up.argsort(kind="stable"), np.cumsum(many)[:-1])
        self._levels = _deepest_first(self._up, top)

    def next_leaves(self, have: Counts, waiting: Longs) -> _Leaves:
        """The leaves that grow next, and by how many tasks; none where no waiting task would be of use.

        At each level the emptiest child that can grow does so: one that is not whole, else the one that is least above
        what it needs, of equals the first. A leaf grows by one task; one that is not whole becomes so at once.

        Parameters
        ----------
        have: int32[P]
            What the leaf subgroups have towards their minima.
        waiting: int64[P]
            How many tasks may still come to each of them.
        """
        has = np.where(self._is_leaf, np.append(have, 0), 0).astype(np.int64)
        grows = self._is_leaf & (np.append(waiting, 0) >= np.maximum(self._least - has, 1))
        for rows in self._levels:
            np.add.at(has, self._up[rows], has[rows] >= self._least[rows])
            np.logical_or.at(grows, self._up[rows], grows[rows])
        return self._below(self._top, has, grows)

    def _below(self, row: int, has: Longs, grows: Bools) -> _Leaves:
        """What grows next in a subgroup, or in the podgroup.

        ``has`` int64[P + 1]: how many tasks each leaf has, and others whole children; ``grows`` says which may grow.
        """
        missing = int(self._least[row] - has[row])
        if self._is_leaf[row]:
            return [(self._first + row, max(missing, 1))] if grows[row] else []
        some = self._children[row]
        some = some[grows[some]]
        whole = has[some] >= self._least[some]
        if missing > 0:
            found = [each for child in some[~whole].tolist() if (each := self._below(child, has, grows))]
            found = sorted(found, key=lambda leaves: sum(short for _, short in leaves))[:missing]
            return [leaf for leaves in found for leaf in leaves] if len(found) == missing else []
        fullness = np.where(whole, has[some] / np.maximum(self._least[some], 1), 0.0)  # others are alike
        ranked = some[np.lexsort((some, fullness, whole))].tolist()
        return next((each for child in ranked if (each := self._below(child, has, grows))), [])


def _deepest_first(up: Longs, top: int) -> list[Rows]:
    """Rows by depth, the deepest first, where ``up`` int64[P] are the parents, ``top`` for none."""
    depth, above, parents = np.zeros(len(up), np.int64), up, np.append(up, top)
    while (above != top).any():
        depth += above != top
        above = parents[above]
    return [np.flatnonzero(depth == level) for level in range(int(depth.max(initial=-1)), -1, -1)]
