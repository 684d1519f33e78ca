"""From a small snapshot to new rows: what was compiled on its own gets the numbering of the state that it joins.

The edge compiles new podgroups and tasks as a cluster of their own, with the same code that compiles a whole cluster
file; here its rows, and the strings that they refer to, are translated. A description that changes nothing adds
nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Ids, Longs, Rows, frozen, mask_of
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.orders import dense_rank
from pipeline.cluster.resources import axis
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Podgroups, Shapes, Subgroups, Tasks
from pipeline.cluster.updates.append import LASTING
from pipeline.cluster.updates.copy_on_write import WritableTable, picked
from pipeline.cluster.updates.events import NewRows
from pipeline.cluster.updates.foreign_keys import translated
from pipeline.cluster.updates.widen import widened
from pipeline.cluster.vocabulary import Vocabulary
from pipeline.records import replace

Item = TypeVar("Item")
#: Columns of a podgroup that are not its description.
_NOT_DESCRIBED = frozenset({"started", "stale_since", "order", "alive", "revision"})


@dataclass(frozen=True)
class CompiledPart:
    """A small snapshot, and which of its rows the state has already.

    Attributes
    ----------
    part
        Of the same levels as the state, without nodes; its gang groups and wishes for closeness begin with the state's.
    queue_of: int32[Q']
        The state's row of each of its queues.
    podgroup_of, task_of: int64[G'], int64[T']
        The state's row of each of its podgroups and tasks, NONE for new ones.
    again: int64[A]
        The state's rows of tasks that are gone and wait again.
    role_of, subgroup_of: int64[L'], int64[U']
        The state's rows of its roles and subgroups, if a known podgroup has them under the same name, else NONE.
    podgroups_before, tasks_before: int64[G'], int64[T']
        For new rows, how many rows of the state each comes after by (created, name).
    revision: int64[G']
        Of each podgroup's description.
    at: float64[G']
        When each of its podgroups was described, in seconds; NaN if only its tasks were.
    news
        The number of messages that this came from.
    """

    part: Snapshot
    queue_of: Ids
    podgroup_of: Rows
    task_of: Rows
    again: Rows
    role_of: Rows
    subgroup_of: Rows
    podgroups_before: Longs
    tasks_before: Longs
    revision: Longs
    at: Floats
    news: int


def new_rows_from(base: Snapshot, joined: CompiledPart) -> NewRows:
    """The rows that ``joined`` adds to ``base``."""
    resources = axis({*base.vocabulary.resources, *joined.part.vocabulary.resources})
    base, part = widened(base, resources), widened(joined.part, resources)
    vocabulary, namespaces, label_sets, constraints = _words(base.vocabulary, part.vocabulary)
    shapes, shape_of = _shapes(base.shapes, replace(part.shapes, constraint=constraints[part.shapes.constraint]))
    described = _podgroups(part, joined, namespaces)
    changed = _changed(base, part, described, joined)
    new, place = _placed(changed, joined.podgroup_of, len(base.podgroups))
    roles, role_at = _placed(changed[part.roles.podgroup], joined.role_of, len(base.roles))
    parts, part_at = _placed(changed[part.subgroups.podgroup], joined.subgroup_of, len(base.subgroups))
    ready = _tasks(part.tasks, place, role_at, part_at, shape_of, label_sets)
    fresh, known = np.flatnonzero(joined.task_of == NONE), _otherwise(base.tasks, ready, joined.task_of)
    appended = picked(ready, fresh)
    appended = replace(appended, order=dense_rank(appended.order) if len(fresh) else appended.order)
    groups = picked(described, new)
    moved = new[joined.podgroup_of[new] != NONE]
    gone = mask_of(joined.podgroup_of[moved], len(base.podgroups))
    return NewRows(
        vocabulary=vocabulary,
        shapes=shapes,
        podgroups=replace(groups, order=dense_rank(groups.order) if len(new) else groups.order),
        roles=replace(picked(part.roles, roles), podgroup=_in(place, part.roles.podgroup[roles])),
        subgroups=_subgroups(part.subgroups, parts, place, part_at),
        tasks=appended,
        podgroups_before=joined.podgroups_before[new],
        tasks_before=joined.tasks_before[fresh],
        edited=joined.task_of[known],
        edits=picked(ready, known),
        again=joined.again,
        podgroups_from=joined.podgroup_of[moved],
        podgroups_to=place[moved],
        **_moves("roles", np.flatnonzero(gone[base.roles.podgroup]), joined.role_of[roles], role_at[roles]),
        **_moves("subgroups", np.flatnonzero(gone[base.subgroups.podgroup]), joined.subgroup_of[parts], part_at[parts]),
        budgets=_budgets(base, part, vocabulary, namespaces, label_sets),
        at=joined.at[moved],
        news=joined.news,
    )


def _placed(new: Bools, known: Rows, many: int) -> tuple[Rows, Rows]:
    """The rows of the part that are ``new``; and of all its rows those of the state, which has ``many`` before."""
    rows, place = np.flatnonzero(new), known.copy()
    place[rows] = many + np.arange(len(rows))
    return rows, place


def _tasks(table: Tasks, place: Rows, role_at: Rows, part_at: Rows, shape_of: Ids, label_sets: Ids) -> Tasks:
    """The part's tasks in the numbering of the state."""
    writable = WritableTable(table)
    writable["podgroup"] = translated(table.podgroup, place.astype(np.int32))
    writable["role"] = translated(table.role, role_at.astype(np.int32))
    writable["subgroup"] = translated(table.subgroup, part_at.astype(np.int32))
    writable["shape"] = shape_of[table.shape]
    writable["label_set"] = label_sets[table.label_set]
    return writable.done()


def _moves(what: str, gone: Rows, known: Rows, at: Rows) -> dict[str, Rows]:
    """Old rows of what was described anew, and the rows that replace them (NONE: none does)."""
    to = np.full(len(gone), NONE, np.int64)
    has = known != NONE
    to[np.searchsorted(gone, known[has])] = at[has]
    return {f"{what}_from": gone, f"{what}_to": to}


def _in(place: Rows, column: Ids) -> Ids:
    return frozen(translated(column, place.astype(np.int32)), np.int32)


def _subgroups(table: Subgroups, rows: Rows, place: Rows, part_at: Rows) -> Subgroups:
    taken = picked(table, rows)
    return replace(taken, podgroup=_in(place, taken.podgroup), parent=_in(part_at, taken.parent))


def _podgroups(part: Snapshot, joined: CompiledPart, namespaces: Ids) -> Podgroups:
    """The part's podgroups in the state's vocabulary, ranked among themselves."""
    writable = WritableTable(part.podgroups)
    writable["queue"] = joined.queue_of[part.podgroups.queue]
    writable["namespace"] = namespaces[part.podgroups.namespace]
    writable["revision"] = joined.revision
    return writable.done()


def _changed(base: Snapshot, part: Snapshot, described: Podgroups, joined: CompiledPart) -> Bools:
    """bool[G']: podgroups that are new, or whose description has changed."""
    known = joined.podgroup_of
    changed = known == NONE
    at = np.flatnonzero(~changed)
    if len(at) == 0:
        return np.asarray(changed)
    for field in fields(Podgroups):
        if field.name not in _NOT_DESCRIBED:
            was, now = getattr(base.podgroups, field.name)[known[at]], getattr(described, field.name)[at]
            if field.name == "phase":  # it keeps the phase that it has reached
                now = np.maximum(was, now)
            changed[at] |= ~_same(was, now).reshape(len(at), -1).all(axis=1)
    for group in at[~changed[at]]:
        changed[group] = not _alike(base, part, joined, int(group))
    return np.asarray(changed)


def _otherwise(base: Tasks, ready: Tasks, task_of: Rows) -> Rows:
    """The known tasks whose description has changed."""
    known = np.flatnonzero(task_of != NONE)
    differs = np.zeros(len(known), bool)
    for field in fields(Tasks):
        if field.name not in LASTING:
            differs |= getattr(base, field.name)[task_of[known]] != getattr(ready, field.name)[known]
    return known[differs]


def _same(was: Any, now: Any) -> Bools:
    """Equal, or both not stated."""
    equal = was == now
    return np.asarray(equal | (np.isnan(was) & np.isnan(now)) if was.dtype.kind == "f" else equal)


def _alike(base: Snapshot, part: Snapshot, joined: CompiledPart, group: int) -> bool:
    """Whether the roles and subgroups of a known podgroup have not changed."""
    known = int(joined.podgroup_of[group])
    for table, was_start, now_start, of in (
        ("roles", base.role_start, part.role_start, joined.role_of),
        ("subgroups", base.subgroup_start, part.subgroup_start, joined.subgroup_of),
    ):
        was, now = slice(was_start[known], was_start[known + 1]), slice(now_start[group], now_start[group + 1])
        if not np.array_equal(of[now], np.arange(was.start, was.stop)):
            return False
        for field in fields(getattr(base, table)):
            old, new = getattr(getattr(base, table), field.name)[was], getattr(getattr(part, table), field.name)[now]
            if field.name == "parent":
                new = translated(new, joined.subgroup_of.astype(np.int32))
            if field.name != "podgroup" and not np.array_equal(old, new):
                return False
    return True


def _budgets(base: Snapshot, part: Snapshot, vocabulary: Vocabulary, namespaces: Ids, label_sets: Ids) -> Budgets:
    """The budgets over the new vocabulary. For a label set that no task has it may be left at False."""
    covers = np.zeros((len(part.budgets), len(vocabulary.label_sets)), bool)
    namespace = translated(part.budgets.namespace, namespaces)
    if len(base.budgets) == len(covers):
        covers[:, : base.budgets.covers.shape[1]] = base.budgets.covers
        namespace = np.where(namespace == NONE, base.budgets.namespace, namespace)
    covers[:, label_sets] = part.budgets.covers
    return Budgets(part.budgets.allowed, frozen(namespace, np.int32), frozen(covers, bool))


# -- words -------------------------------------------------------------------------------------------------------------


def _words(base: Vocabulary, part: Vocabulary) -> tuple[Vocabulary, Ids, Ids, Ids]:
    """The state's vocabulary with what the part adds, and the rows of its namespaces, label sets and constraints."""
    namespaces, ns_of = _merged(base.namespaces, part.namespaces)
    label_sets, labels_of = _merged(base.label_sets, part.label_sets)
    said = [replace(one, namespace=int(ns_of[one.namespace])) if len(ns_of) else one for one in part.constraints]
    constraints, constraint_of = _merged(base.constraints, said)
    cooldowns = {**dict(base.cooldowns), **{int(labels_of[row]): seconds for row, seconds in part.cooldowns}}
    merged = replace(
        base,
        resources=part.resources,
        namespaces=namespaces,
        label_sets=label_sets,
        constraints=constraints,
        cooldowns=tuple(sorted(cooldowns.items())),
        gangs=part.gangs,
        gang_groups=part.gang_groups,
        gathers=part.gathers,
    )
    return merged, ns_of, labels_of, constraint_of


def _merged(known: tuple[Item, ...], more: Sequence[Item]) -> tuple[tuple[Item, ...], Ids]:
    at: dict[Any, int] = {item: row for row, item in enumerate(known)}
    rows = [at.setdefault(item, len(at)) for item in more]
    return (known if len(at) == len(known) else tuple(at)), np.array(rows, np.int32)


def _shapes(base: Shapes, part: Shapes) -> tuple[Shapes, Ids]:
    """The part's shapes that the state lacks, and the row of each of the part's."""
    at = {_key(base, row): row for row in range(len(base))}
    rows = np.array([at.setdefault(_key(part, row), len(at)) for row in range(len(part))], np.int32)
    _, first = np.unique(rows, return_index=True)
    return picked(part, first[rows[first] >= len(base)]), rows


def _key(shapes: Shapes, row: int) -> tuple[bytes, int, int]:
    return shapes.request[row].tobytes(), int(shapes.constraint[row]), int(shapes.on_card[row])
