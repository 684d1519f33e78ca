"""Podgroups and tasks that messages describe, and podgroups that go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from actors.cluster_file.documents import PodgroupDocument, TaskDocument
from actors.cluster_file.plain_data import ClusterFileRefused
from actors.columns.card_names import card_row
from actors.documents.alike import Alike
from actors.ingestion.by_kind.descriptions import Described
from actors.ingestion.by_kind.new_rows import StatusSaid, new_rows_of
from actors.ingestion.by_kind.node_events import departures, label_by_hostname
from actors.ingestion.known.state import LiveState, task_news, time_of
from actors.protocol.bodies import PodgroupRemoved, TaskUpserted
from actors.protocol.envelopes import Message
from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import STATUS_NAMES, Tasks
from pipeline.cluster.updates.events import CURRENT, Changes, NewRows
from pipeline.cluster.updates.foreign_keys import replaced
from pipeline.cluster.vocabulary import HOSTNAME


def take_descriptions(state: LiveState, messages: Sequence[Message]) -> None:
    """Join described podgroups.

    If one is wrong, each message is taken by itself, so that only that one is refused; likewise if a task changes its
    role or subgroup: the history of its podgroup is asked for after each message.
    """
    groups: dict[str, Described] = {}
    counted: list[Message] = []
    for message in messages:
        if _describe(state, groups, message, len(counted)):
            counted.append(message)
    if not counted:
        return
    if HOSTNAME not in state.snapshot.vocabulary.label_keys and any(
        group.selects_by_hostname for group in groups.values()
    ):
        label_by_hostname(state)
    statuses = _statuses(state, counted)
    try:
        new = new_rows_of(state, groups, len(counted))
    except ClusterFileRefused as refusal:
        if len(counted) == 1:
            state.refuse(counted[0], f"body: {refusal}")
            return
        _take_each(state, counted)
        return
    if len(counted) > 1 and _parts_differ(state.snapshot.tasks, new.rows):
        _take_each(state, counted)
        return
    for message in counted:
        if isinstance(message.body, PodgroupDocument):
            state.is_newer(message, "podgroups", message.body.full_name)
    state.append(new.rows)
    statuses = sorted([*statuses, *new.begun], key=lambda one: one.place)
    if statuses:
        rows = [
            (one.row, one.status, one.node, one.card, CURRENT, one.revision, time_of(counted[one.place]))
            for one in statuses
        ]
        state.fold(Changes(tasks=task_news(rows)))
    state.names.append(new.podgroups, new.tasks)
    for name, group in groups.items():
        state.documents.keep("podgroups", name, group.to_keep())


def _take_each(state: LiveState, messages: Sequence[Message]) -> None:
    for message in messages:
        take_descriptions(state, [message])


def _parts_differ(tasks: Tasks, made: NewRows) -> bool:
    """Whether a known task has another role or subgroup."""
    moves = {"role": (made.roles_from, made.roles_to), "subgroup": (made.subgroups_from, made.subgroups_to)}
    return any(
        not np.array_equal(replaced(getattr(tasks, column)[made.edited], *rows), getattr(made.edits, column))
        for column, rows in moves.items()
    )


def _describe(state: LiveState, groups: dict[str, Described], message: Message, place: int) -> bool:
    """Add a message to its podgroup's description; False if it is old or names something unknown."""
    body = message.body
    if isinstance(body, PodgroupDocument):
        name = body.full_name
        before = groups.get(name)
        seen = before.revision if before is not None else state.documents.revision("podgroups", name)
        if message.revision <= seen or not _places_known(state, message, body.tasks):
            return False
        if before is None and name in state.documents.names("podgroups"):
            before = Described.kept(state.documents.read("podgroups", name), 0)
        groups[name] = Described.anew(body, before, message.revision, time_of(message), place)
        return True
    assert isinstance(body, TaskUpserted)
    name = body.podgroup
    known = groups.get(name)
    if known is None:
        row = state.podgroup(name)
        if row == NONE:
            if not _is_old(state, body, message.revision):
                state.refuse(message, f"body.podgroup: expected the name of a podgroup that is there, found {name!r}")
            return False
        revision = int(state.snapshot.podgroups.revision[row])
        known = Described.kept(state.documents.read("podgroups", name), revision)
        groups[name] = known
    if _is_old(state, body, message.revision) or not _places_known(state, message, [body.task]):
        return False
    known.add(Alike.of((body.task,)), message.revision, place)
    return True


def _places_known(state: LiveState, message: Message, tasks: Iterable[TaskDocument]) -> bool:
    for task in tasks:
        if task.status != "Pending" and task.nominated_node is not None:  # only a file or a list says that it moves
            expected = f"expected none while {task.status}"
            state.refuse(message, f"body: nominated_node: {expected}, found {task.nominated_node!r}")
            return False
        for node, card in ((task.node, task.card), (task.nominated_node, task.nominated_card)):
            row = state.node(node) if node is not None else NONE
            if node is not None and row == NONE:
                state.refuse(message, f"body: expected the name of a node that is there, found {node!r}")
                return False
            if card is not None and card_row(state.snapshot, row, card) == NONE:
                state.refuse(message, f"body: expected the name of a card of {node}, found {card!r}")
                return False
    return True


def _rows(state: LiveState, body: TaskUpserted) -> list[int]:
    """Rows of the tasks that a message describes, NONE for those that are new."""
    namespace = body.podgroup.split("/", 1)[0]
    return [state.names.row("tasks", f"{namespace}/{name}") for name, _ in body.task.expanded()]


def _is_old(state: LiveState, body: TaskUpserted, revision: int) -> bool:
    known = state.snapshot.tasks.revision
    return all(row != NONE and known[row] >= revision for row in _rows(state, body))


def _statuses(state: LiveState, messages: Sequence[Message]) -> list[StatusSaid]:
    """The statuses in messages about single, known tasks."""
    news: list[StatusSaid] = []
    for place, message in enumerate(messages):
        body = message.body
        if not isinstance(body, TaskUpserted):
            continue
        status = STATUS_NAMES.index(body.task.status)
        node = state.node(body.task.node) if body.task.node is not None else NONE
        card = card_row(state.snapshot, node, body.task.card) if node != NONE else NONE
        news += [
            StatusSaid(place, row, status, node, card, message.revision) for row in _rows(state, body) if row != NONE
        ]
    return news


def remove_podgroups(state: LiveState, messages: Sequence[Message]) -> None:
    """Remove podgroups, with their tasks."""
    leaving = []
    for message in messages:
        assert isinstance(message.body, PodgroupRemoved)
        name = message.body.podgroup
        row = state.names.row("podgroups", name)
        if row == NONE:
            state.refuse(message, f"body.podgroup: expected the name of a podgroup that is known, found {name!r}")
        elif state.is_newer(message, "podgroups", name):
            leaving.append((row, message.revision, time_of(message)))
    if leaving:
        state.fold(Changes(removed=departures(leaving)))
