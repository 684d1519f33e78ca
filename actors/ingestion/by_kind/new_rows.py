"""Described podgroups as new rows of a state: compiled by themselves, then joined to it.

Only the descriptions are checked and compiled; what they refer to is looked up in the state.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from actors.cluster_file.cross_references import Nameable, podgroup_offences
from actors.cluster_file.plain_data import ClusterFileRefused
from actors.cluster_file.reader import refuse_first
from actors.columns.card_names import card_row
from actors.columns.compile import budgets, podgroup_resources
from actors.columns.podgroup_columns import PodgroupColumns
from actors.columns.task_columns import Surroundings
from actors.ingestion.by_kind.descriptions import Described, DescribedTasks
from actors.ingestion.known.state import LiveState
from pipeline.cluster.arrays import NONE, Longs, Rows, frozen
from pipeline.cluster.counted.recent_evictions import NO_EVICTIONS
from pipeline.cluster.resources import axis
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE, PENDING, TERMINATING, Tasks
from pipeline.cluster.updates.copy_on_write import WritableTable
from pipeline.cluster.updates.events import NewRows
from pipeline.cluster.updates.merge_rows import CompiledPart, new_rows_from
from pipeline.records import replace

Groups = Mapping[str, Described]


class StatusSaid(NamedTuple):
    """What a message says of a task that does not only wait; ``place`` is that of the message among those taken."""

    place: int
    row: int
    status: int
    node: int
    card: int
    revision: int


class DescribedRows(NamedTuple):
    """The new rows for described podgroups.

    Attributes
    ----------
    podgroups, tasks
        Names of the podgroups and tasks that are new, by row.
    begun
        What is said of new tasks that do not only wait.
    """

    rows: NewRows
    podgroups: list[str]
    tasks: list[str]
    begun: list[StatusSaid]


def new_rows_of(state: LiveState, groups: Groups, news: int) -> DescribedRows:
    """The new rows for described podgroups.

    New tasks wait: one that has started or ended already does so by the news that follows, in its message's turn, so
    that its podgroup has the same history as if the task had been known before.

    Parameters
    ----------
    groups
        Podgroups by full name, as the messages describe them.
    news
        How many messages they come from, by which the revision of the state grows.

    Raises
    ------
    ClusterFileRefused
        For a name that is not known, or a description that is wrong.
    """
    snapshot, names = state.snapshot, state.names
    groups = _with_named(state, groups)
    part, podgroups, tasks = _compiled(state, groups)
    podgroup_of = np.array([state.podgroup(name) for name in podgroups], np.int64)
    task_of = _task_rows(state, tasks, part, podgroup_of)
    role_of, subgroup_of = _parts_of(state, part, podgroups, groups, podgroup_of)
    begun = _begun(part.tasks, task_of, len(snapshot.tasks), groups)
    again = _again(snapshot.tasks, part.tasks, task_of)
    part = replace(part, tasks=_waiting(part.tasks))
    made = new_rows_from(
        snapshot,
        CompiledPart(
            part=part,
            queue_of=frozen(np.arange(len(snapshot.queues)), np.int32),
            podgroup_of=podgroup_of,
            task_of=task_of,
            again=again,
            role_of=role_of,
            subgroup_of=subgroup_of,
            podgroups_before=_before(snapshot.podgroups, names.podgroups, part.podgroups.created, podgroups),
            tasks_before=_before(snapshot.tasks, names.tasks, part.tasks.created, tasks),
            revision=frozen([groups[name].revision for name in podgroups], np.int64),
            at=frozen([groups[name].at for name in podgroups], np.float64),
            news=news,
        ),
    )
    replaced = {int(row) for row in made.podgroups_from}
    fresh = [name for name, row in zip(podgroups, podgroup_of.tolist(), strict=True) if row == NONE or row in replaced]
    new_tasks = [name for name, row in zip(tasks, task_of.tolist(), strict=True) if row == NONE]
    return DescribedRows(made, fresh, new_tasks, begun)


def _in_turn(groups: Groups) -> list[tuple[DescribedTasks, int]]:
    """Lists of tasks with the position of their podgroup, in the order in which they came.

    So tasks have the same rows, and their shapes and words as well, however the news was cut into batches.
    """
    lists = [(tasks, at) for at, group in enumerate(groups.values()) for tasks in group.tasks]
    return sorted(lists, key=lambda one: one[0].place)


def _begun(tasks: Tasks, task_of: Rows, known: int, groups: Groups) -> list[StatusSaid]:
    """What is said of new tasks that do not wait; they get rows behind ``known`` others."""
    new = np.flatnonzero(task_of == NONE)
    at = np.flatnonzero(tasks.status[new] != PENDING)
    if len(at) == 0:
        return []
    rows = new[at]
    places = np.array([place for one, _ in _in_turn(groups) for place in one.places], np.int64)
    columns = places[rows], known + at, *(getattr(tasks, name)[rows] for name in ("status", "node", "card", "revision"))
    return [StatusSaid(*one) for one in zip(*(column.tolist() for column in columns), strict=True)]


def _again(known: Tasks, said: Tasks, task_of: Rows) -> Rows:
    """Rows of known tasks that are gone and wait again, since their podgroup is described with them.

    What a message about a single task says of its status is news by itself.
    """
    waits = task_of[(task_of != NONE) & (said.status == PENDING) & (said.revision == 0)]
    return frozen(waits[known.status[waits] == GONE], np.int64)


def _waiting(tasks: Tasks) -> Tasks:
    """The tasks as they were before they started: the news that they did has the revision that they have here."""
    begun = np.flatnonzero(tasks.status != PENDING)
    if len(begun) == 0:
        return tasks
    after = WritableTable(tasks)
    after["status"][begun] = PENDING
    after["node"][begun] = after["card"][begun] = NONE
    after["revision"][begun] -= 1
    return after.done()


def _compiled(state: LiveState, groups: Groups) -> tuple[Snapshot, Sequence[str], Sequence[str]]:
    """The podgroups as a snapshot of their own, with the state's queues and nodes; and the names of their rows.

    Raises
    ------
    ClusterFileRefused
        As for ``new_rows_of``.
    """
    snapshot, documents = state.snapshot, state.documents
    described = [group.whole() for group in groups.values()]
    levels = snapshot.vocabulary.levels
    nameable = Nameable(documents.names("queues"), documents.names("priority_classes"), levels)
    refuse_first(podgroup_offences(described, nameable))
    asked = {name for podgroup in described for amounts in podgroup_resources(podgroup) for name in amounts}
    resources = axis({*snapshot.vocabulary.resources, *asked})
    columns = PodgroupColumns(
        Surroundings(
            resources,
            levels,
            documents.classes(),
            lambda name: state.names.row("queues", name),
            state.node,
            partial(card_row, snapshot),
        ),
        snapshot.vocabulary,
    )
    members = [columns.add_podgroup(podgroup) for podgroup in described]
    for one, at in _in_turn(groups):
        columns.add_tasks(members[at], one.tasks, one.revisions)
    part = Snapshot(
        revision=0,
        epoch=0,
        decided=0,
        vocabulary=columns.words(),
        nodes=snapshot.nodes,
        topology=snapshot.topology,
        shapes=columns.shapes(),
        queues=snapshot.queues,
        podgroups=columns.podgroups(),
        roles=columns.roles(),
        subgroups=columns.subgroups(),
        tasks=columns.tasks(),
        budgets=budgets(documents.budgets(), columns.namespaces, columns.label_sets),
        recent=NO_EVICTIONS,
    )
    return part, *columns.names


def _task_rows(state: LiveState, tasks: Sequence[str], part: Snapshot, podgroup_of: Rows) -> Rows:
    """Rows of the tasks that are known, of podgroups that are there.

    Raises
    ------
    ClusterFileRefused
        For a task that waits or holds room in another podgroup: no news could be about that one any more.
    """
    known = state.snapshot
    rows = np.array([state.names.row("tasks", name) for name in tasks], np.int64)
    at = np.flatnonzero(rows != NONE)
    was = known.tasks.podgroup[rows[at]]
    same = was == podgroup_of[part.tasks.podgroup[at]]
    lives = known.podgroups.alive[was] & (known.tasks.status[rows[at]] <= TERMINATING)
    for twice in at[lives & ~same].tolist():
        other = state.names.podgroups[known.tasks.podgroup[rows[twice]]]
        raise ClusterFileRefused(f"tasks: expected a task of no other podgroup, found {tasks[twice]!r} of {other}")
    found = np.full(len(rows), NONE, np.int64)
    found[at[same]] = rows[at[same]]
    return found


def _parts_of(
    state: LiveState, part: Snapshot, podgroups: Sequence[str], groups: Groups, podgroup_of: Rows
) -> tuple[Rows, Rows]:
    """The state's rows of the part's roles and subgroups, by their names in the documents of then and now."""
    snapshot = state.snapshot
    roles, subgroups = np.full(len(part.roles), NONE), np.full(len(part.subgroups), NONE)
    for row, name in enumerate(podgroups):
        known = int(podgroup_of[row])
        if known == NONE:
            continue
        was, now = Described.kept(state.documents.read("podgroups", name), 0), groups[name]
        for target, then_names, now_names, first, then in (
            (roles, was.roles, now.roles, part.role_start[row], snapshot.role_start[known]),
            (subgroups, was.subgroups, now.subgroups, part.subgroup_start[row], snapshot.subgroup_start[known]),
        ):
            before = {one: int(then) + at for at, one in enumerate(then_names)}
            for at, one in enumerate(now_names):
                target[int(first) + at] = before.get(one, NONE)
    return roles, subgroups


def _with_named(state: LiveState, groups: Groups) -> Groups:
    """The podgroups, and known ones that a gang group names for the first time."""
    known = state.snapshot.podgroups
    named = dict.fromkeys(member for group in groups.values() for member in group.document.gang_group)
    rows = {name: state.podgroup(name) for name in named if name not in groups}
    return {
        **groups,
        **{
            name: Described.kept(state.documents.read("podgroups", name), int(known.revision[row]))
            for name, row in rows.items()
            if row != NONE and known.gang[row] == NONE
        },
    }


def _before(table: Any, known: Sequence[str], created: Any, called: Sequence[str]) -> Longs:
    """For each new row, how many known rows come before it by (created, name)."""
    if _come_last(table, known, created, called):
        return frozen(np.full(len(called), len(table)), np.int64)
    row_at = np.empty(len(table), np.int64)
    row_at[table.order] = np.arange(len(table))

    def key(rank: int) -> tuple[float, str]:
        row = row_at[rank]
        return float(table.created[row]), known[row]

    ranks = range(len(table))
    return frozen(
        [bisect_left(ranks, (float(when), name), key=key) for when, name in zip(created, called, strict=True)], np.int64
    )


def _come_last(table: Any, known: Sequence[str], created: Any, called: Sequence[str]) -> bool:
    """Whether all new rows come after all known ones, as they mostly do."""
    if len(table) == 0:
        return True
    last = int(np.argmax(table.order))
    end = float(table.created[last]), known[last]
    return all((float(when), name) > end for when, name in zip(created, called, strict=True))
