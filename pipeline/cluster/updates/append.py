"""New rows: podgroups, tasks and shapes are appended, so that known row numbers stay. Also tasks described anew."""

from dataclasses import fields, replace

import numpy as np

from pipeline.cluster.arrays import NONE, Longs, Rows
from pipeline.cluster.rules.minimum import minima_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Podgroups, Tasks
from pipeline.cluster.updates.copy_on_write import Draft, Table, appended
from pipeline.cluster.updates.events import Growth
from pipeline.cluster.updates.foreign_keys import replaced
from pipeline.cluster.updates.gang_history import ready_now, settle_all
from pipeline.cluster.updates.widen import widened

#: Columns of a task that a new description leaves as they are: its fate, its age and its order.
LASTING = frozenset({"status", "node", "nominated", "card", "created", "order", "incarnation", "revision"})


def grown(snapshot: Snapshot, growth: Growth) -> Snapshot:
    """The snapshot with the rows of ``growth`` appended and its descriptions in place."""
    snapshot = widened(snapshot, growth.vocabulary.resources)
    podgroups = _podgroups(snapshot, growth)
    tasks = _described(_repointed(snapshot.tasks, growth), growth)
    result = replace(
        snapshot,
        revision=snapshot.revision + growth.news,
        vocabulary=growth.vocabulary,
        shapes=appended(snapshot.shapes, growth.shapes),
        podgroups=podgroups,
        roles=appended(snapshot.roles, growth.roles),
        subgroups=appended(snapshot.subgroups, growth.subgroups),
        tasks=_ranked_in(tasks, growth.tasks, growth.tasks_before),
        budgets=growth.budgets,
    )
    return _settled(result.following(snapshot, _changed(snapshot.tasks, growth)), growth)


def _changed(tasks: Tasks, growth: Growth) -> Rows:
    """Rows of tasks that are new, described anew, or of podgroups described anew."""
    fresh = len(tasks) + np.arange(len(growth.tasks))
    anew = np.zeros(int(tasks.podgroup.max(initial=NONE)) + 1, bool)
    anew[growth.podgroups_from[growth.podgroups_from < len(anew)]] = True
    moved = np.flatnonzero(anew[tasks.podgroup]) if anew.any() else growth.podgroups_from[:0]
    return np.concatenate([fresh, growth.edited, moved])


def _podgroups(snapshot: Snapshot, growth: Growth) -> Podgroups:
    """Append podgroups; one that is described anew keeps its history."""
    old, new = Draft(snapshot.podgroups), Draft(growth.podgroups)
    known, fresh = growth.podgroups_from, growth.podgroups_to - len(snapshot.podgroups)
    if len(known):
        old["alive"][known] = False
        new["phase"][fresh] = np.maximum(new["phase"][fresh], snapshot.podgroups.phase[known])
        for column in ("started", "stale_since"):
            was = getattr(snapshot.podgroups, column)[known]
            new[column][fresh] = np.where(np.isnan(new[column][fresh]), was, new[column][fresh])
        old["stale_since"][known] = np.nan
    return _ranked_in(old.done(), new.done(), growth.podgroups_before)


def _ranked_in(table: Table, rows: Table, before: Longs) -> Table:
    """Append ``rows`` and rank them among the known rows, whose ranks move up."""
    if len(rows) == 0:
        return table
    old, new = Draft(table), Draft(rows)
    if before.min() < len(table):
        old["order"] = table.order + np.searchsorted(np.sort(before), table.order, side="right")
    new["order"] = before + rows.order
    result: Table = appended(old.done(), new.done())
    return result


def _repointed(tasks: Tasks, growth: Growth) -> Tasks:
    """Tasks of podgroups described anew belong to the new rows."""
    if len(growth.podgroups_from) == 0:
        return tasks
    draft = Draft(tasks)
    moves = {
        "podgroup": (growth.podgroups_from, growth.podgroups_to),
        "role": (growth.roles_from, growth.roles_to),
        "subgroup": (growth.subgroups_from, growth.subgroups_to),
    }
    for column, (known, fresh) in moves.items():
        if len(known):
            draft[column] = replaced(draft[column], known, fresh)
    return draft.done()


def _described(tasks: Tasks, growth: Growth) -> Tasks:
    if len(growth.edited) == 0:
        return tasks
    draft = Draft(tasks)
    for field in fields(Tasks):
        if field.name not in LASTING:
            draft[field.name][growth.edited] = getattr(growth.edits, field.name)
    return draft.done()


def _settled(snapshot: Snapshot, growth: Growth) -> Snapshot:
    """A podgroup described anew may become whole, or fall below its minimum, by its description alone."""
    if len(growth.podgroups_to) == 0:
        return snapshot
    draft, have, running = Draft(snapshot.podgroups), ready_now(snapshot), snapshot.counts.running
    history = draft["phase"], draft["started"], draft["stale_since"]
    settle_all(growth.podgroups_to, growth.at, snapshot.once(minima_of), have, running, history)
    return replace(snapshot, podgroups=draft.done()).following(snapshot, growth.edited[:0])
