"""New rows: podgroups, tasks and shapes are appended, so that known row numbers stay. Also tasks described anew."""

from dataclasses import fields

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Longs, Rows, distinct
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, Podgroups, Tasks
from pipeline.cluster.updates.copy_on_write import Table, WritableTable, appended
from pipeline.cluster.updates.events import NewRows
from pipeline.cluster.updates.foreign_keys import replaced
from pipeline.cluster.updates.gang_history import with_gang_history
from pipeline.cluster.updates.widen import widened
from pipeline.records import replace

#: Columns of a task that a new description leaves as they are: its fate, its age and its order.
LASTING = frozenset(
    {"status", "node", "nominated", "card", "nominated_card", "created", "order", "incarnation", "revision"}
)


def with_new_rows(snapshot: Snapshot, new_rows: NewRows) -> Snapshot:
    """The snapshot with the rows of ``new_rows`` appended and its descriptions in place."""
    snapshot = widened(snapshot, new_rows.vocabulary.resources)
    podgroups = _podgroups(snapshot, new_rows)
    tasks = _waiting_again(_described(_repointed(snapshot.tasks, new_rows), new_rows), new_rows.again)
    result = replace(
        snapshot,
        revision=snapshot.revision + new_rows.news,
        vocabulary=new_rows.vocabulary,
        shapes=appended(snapshot.shapes, new_rows.shapes),
        podgroups=podgroups,
        roles=appended(snapshot.roles, new_rows.roles),
        subgroups=appended(snapshot.subgroups, new_rows.subgroups),
        tasks=_ranked_in(tasks, new_rows.tasks, new_rows.tasks_before),
        budgets=new_rows.budgets,
    )
    return _settled(result.following(snapshot, _changed(snapshot.tasks, new_rows)), new_rows)


def _changed(tasks: Tasks, new_rows: NewRows) -> Rows:
    """Rows of tasks that are new, described anew, or of podgroups described anew: ascending, each once."""
    changed = np.concatenate([len(tasks) + np.arange(len(new_rows.tasks)), new_rows.edited, new_rows.again])
    if len(new_rows.podgroups_from) == 0:
        return distinct(changed)
    anew = np.zeros(int(tasks.podgroup.max(initial=NONE)) + 1, bool)
    anew[new_rows.podgroups_from[new_rows.podgroups_from < len(anew)]] = True
    return distinct(np.concatenate([changed, np.flatnonzero(anew[tasks.podgroup])]))


def _podgroups(snapshot: Snapshot, new_rows: NewRows) -> Podgroups:
    """Append podgroups; one that is described anew keeps its history."""
    old, new = WritableTable(snapshot.podgroups), WritableTable(new_rows.podgroups)
    known, fresh = new_rows.podgroups_from, new_rows.podgroups_to - len(snapshot.podgroups)
    if len(known):
        old["alive"][known] = False
        new["phase"][fresh] = np.maximum(new["phase"][fresh], snapshot.podgroups.phase[known])
        for column in ("started", "stale_since"):
            was = getattr(snapshot.podgroups, column)[known]
            new[column][fresh] = np.where(np.isnan(new[column][fresh]), was, new[column][fresh])
        old["stale_since"][known] = np.nan
    return _ranked_in(old.done(), new.done(), new_rows.podgroups_before)


def _ranked_in(table: Table, rows: Table, before: Longs) -> Table:
    """Append ``rows`` and rank them among the known rows, whose ranks move up."""
    if len(rows) == 0:
        return table
    old, new = WritableTable(table), WritableTable(rows)
    if before.min() < len(table):
        old["order"] = table.order + np.searchsorted(np.sort(before), table.order, side="right")
    new["order"] = before + rows.order
    result: Table = appended(old.done(), new.done())
    return result


def _repointed(tasks: Tasks, new_rows: NewRows) -> Tasks:
    """Tasks of podgroups described anew belong to the new rows."""
    if len(new_rows.podgroups_from) == 0:
        return tasks
    writable = WritableTable(tasks)
    moves = {
        "podgroup": (new_rows.podgroups_from, new_rows.podgroups_to),
        "role": (new_rows.roles_from, new_rows.roles_to),
        "subgroup": (new_rows.subgroups_from, new_rows.subgroups_to),
    }
    for column, (known, fresh) in moves.items():
        if len(known):
            writable[column] = replaced(writable[column], known, fresh)
    return writable.done()


def _described(tasks: Tasks, new_rows: NewRows) -> Tasks:
    if len(new_rows.edited) == 0:
        return tasks
    writable = WritableTable(tasks)
    for field in fields(Tasks):
        if field.name not in LASTING:
            writable[field.name][new_rows.edited] = getattr(new_rows.edits, field.name)
    return writable.done()


def _waiting_again(tasks: Tasks, rows: Rows) -> Tasks:
    if len(rows) == 0:
        return tasks
    writable = WritableTable(tasks)
    writable["status"][rows] = PENDING
    writable["node"][rows] = writable["card"][rows] = NONE
    writable["incarnation"][rows] += 1
    return writable.done()


def _settled(snapshot: Snapshot, new_rows: NewRows) -> Snapshot:
    """A podgroup described anew may become whole, or fall below its minimum, by its description alone."""
    described = np.flatnonzero(~np.isnan(new_rows.at))
    if len(described) == 0:
        return snapshot
    looked_at = np.zeros((len(described), 5), np.int64)
    looked_at[:, 0], looked_at[:, 1:3] = new_rows.podgroups_to[described], NONE
    groups = with_gang_history(snapshot, looked_at, new_rows.at[described], at_once=True)
    return replace(snapshot, podgroups=groups).following(snapshot, NO_ROWS)
