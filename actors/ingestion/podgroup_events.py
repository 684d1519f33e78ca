"""Podgroups and tasks that messages describe: gathered, compiled together, joined to the state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from actors.cluster_file.documents import PodgroupDocument, TaskDocument
from actors.cluster_file.reader import ClusterFileRefused
from actors.columns.node_columns import HOSTNAME
from actors.ingestion.node_events import lay_hostnames
from actors.ingestion.register import NONE
from actors.ingestion.state import LiveState, TaskRow, task_news, time_of
from actors.ingestion.upserts import Described, add_task, described, growth_of, selects_by_hostname
from actors.protocol.envelopes import Message
from pipeline.cluster.tables import GONE, STATUS_NAMES
from pipeline.cluster.updates.events import CURRENT


def grow(state: LiveState, held: list[Message]) -> None:
    """Join what was described; where some of it is wrong, each message by itself, so that only that is refused."""
    groups: dict[str, Described] = {}
    counted = [message for message in held if _describe(state, groups, message)]
    if not counted:
        return
    if selects_by_hostname(groups) and HOSTNAME not in state.snapshot.vocabulary.label_keys:
        lay_hostnames(state)
    at, news = time_of(counted[-1]), _statuses(state, counted)
    try:
        growth, podgroups, tasks = growth_of(state.snapshot, state.names, groups, at, len(counted))
    except ClusterFileRefused as refusal:
        if len(counted) == 1:
            state.refuse(counted[0], f"body: {refusal}")
            return
        for message in counted:
            grow(state, [message])
        return
    for message in counted:
        if isinstance(message.body, PodgroupDocument):
            state.is_news(message, "podgroups", message.body.full_name)
    state.fold(growth=growth, tasks=task_news(news) if news else None)
    state.names.append("podgroups", podgroups)
    state.names.append("tasks", tasks)
    for name, group in groups.items():
        state.names.keep("podgroups", name, group.document)


def _describe(state: LiveState, groups: dict[str, Described], message: Message) -> bool:
    """Add a message to what it describes; False where it is old or names what is not there."""
    body = message.body
    if isinstance(body, PodgroupDocument):
        name = body.full_name
        known = groups.get(name)
        seen = known.revision if known is not None else state.names.revisions.get(f"podgroups/{name}", NONE)
        if message.revision <= seen or not _places_known(state, message, body.tasks):
            return False
        kept = state.names.kept("podgroups", name) if name in state.names.documents["podgroups"] else None
        groups[name] = described(known, kept, body, message.revision)
        return True
    name, task = body.podgroup, body.task  # type: ignore[attr-defined]
    row = state.names.row("podgroups", name)
    if name not in groups:
        if row == NONE or not state.snapshot.podgroups.alive[row]:
            state.refuse(message, f"body.podgroup: expected the name of a podgroup that is there, found {name!r}")
            return False
        known_as = state.names.kept("podgroups", name)
        groups[name] = Described(known_as, int(state.snapshot.podgroups.revision[row]))
    if not _places_known(state, message, [task]) or _is_old(state, task, name, message.revision):
        return False
    add_task(groups[name], task, message.revision)
    return True


def _places_known(state: LiveState, message: Message, tasks: Iterable[TaskDocument]) -> bool:
    for task in tasks:
        for node, card in ((task.node, task.card), (task.nominated_node, task.nominated_card)):
            row = state.node(node) if node is not None else NONE
            if node is not None and row == NONE:
                state.refuse(message, f"body: expected the name of a node that is there, found {node!r}")
                return False
            if card is not None and state.snapshot.card_row(row, card) == NONE:
                state.refuse(message, f"body: expected the name of a card of {node}, found {card!r}")
                return False
    return True


def _is_old(state: LiveState, task: TaskDocument, podgroup: str, revision: int) -> bool:
    namespace = podgroup.split("/", 1)[0]
    rows = [state.names.row("tasks", f"{namespace}/{name}") for name, _ in task.expanded()]
    return all(row != NONE and state.snapshot.tasks.revision[row] >= revision for row in rows)


def _statuses(state: LiveState, messages: list[Message]) -> list[TaskRow]:
    """What messages about single, known tasks say of their status."""
    news = []
    for message in messages:
        if isinstance(message.body, PodgroupDocument):
            continue
        body: Any = message.body
        namespace = body.podgroup.split("/", 1)[0]
        status = STATUS_NAMES.index(body.task.status)
        node = state.node(body.task.node) if body.task.node is not None else NONE
        card = state.snapshot.card_row(node, body.task.card) if node != NONE else NONE
        for name, _ in body.task.expanded():
            row = state.names.row("tasks", f"{namespace}/{name}")
            if row != NONE and state.snapshot.tasks.status[row] != GONE:
                news.append((row, status, node, card, CURRENT, message.revision, time_of(message)))
    return news
