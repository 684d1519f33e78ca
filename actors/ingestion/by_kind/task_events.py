"""News of tasks: they started, were told to end, or have ended."""

from __future__ import annotations

from collections.abc import Sequence

from actors.columns.card_names import card_names, card_row
from actors.ingestion.known.state import LiveState, TaskRow, task_news, time_of
from actors.protocol.bodies import TaskEnded, TaskStarted, TaskTerminating
from actors.protocol.envelopes import Message
from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import FAILED, RUNNING, SUCCEEDED, TERMINATING
from pipeline.cluster.updates.events import EVICTED, REPLACED, Changes

_OUTCOMES = {"Succeeded": SUCCEEDED, "Failed": FAILED, "Evicted": EVICTED}


def take_tasks(state: LiveState, messages: Sequence[Message]) -> None:
    """Take news of tasks, one after the other."""
    rows = [row for message in messages if (row := _row(state, message)) is not None]
    if rows:
        state.fold(Changes(tasks=task_news(rows)))


def _row(state: LiveState, message: Message) -> TaskRow | None:
    """A message about a task, in rows; None if it names something unknown."""
    body = message.body
    assert isinstance(body, (TaskStarted, TaskTerminating, TaskEnded))
    row = state.names.row("tasks", body.task)
    if row == NONE:
        state.refuse(message, f"body.task: expected the name of a task that is known, found {body.task!r}")
        return None
    if isinstance(body, TaskStarted):
        return _started(state, message, body, row)
    if isinstance(body, TaskTerminating):
        status = TERMINATING
    else:
        status = REPLACED if body.replaced else _OUTCOMES[body.outcome]
    return row, status, NONE, NONE, body.incarnation, message.revision, time_of(message)


def _started(state: LiveState, message: Message, body: TaskStarted, row: int) -> TaskRow | None:
    snapshot, node = state.snapshot, state.node(body.node)
    if node == NONE:
        if message.revision > snapshot.tasks.revision[row]:  # old news may name a node that has left since
            state.refuse(message, f"body.node: expected the name of a node that is there, found {body.node!r}")
        return None
    card, asks = card_row(snapshot, node, body.card), bool(snapshot.shapes.on_card[snapshot.tasks.shape[row]])
    if card == NONE if asks else body.card is not None:
        if message.revision <= snapshot.tasks.revision[row]:
            return None
        known = ", ".join(card_names(snapshot, node)) or "it has none"
        expected = f"the name of a card of {body.node} ({known})" if asks else "none without card_request"
        state.refuse(message, f"body.card: expected {expected}, found {body.card!r}")
        return None
    at = body.at if body.at is not None else time_of(message)
    return row, RUNNING, node, card, body.incarnation, message.revision, at
