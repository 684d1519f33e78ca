"""News of tasks: they started, were told to end, or have ended."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from actors.columns.card_names import card_names, card_row
from actors.documents.messages import shown
from actors.ingestion.known.state import LiveState, TaskRow, task_news, time_of
from actors.protocol.bodies import TaskEnded, TaskStarted, TaskTerminating
from actors.protocol.envelopes import Message
from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import BOUND, FAILED, PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.cluster.updates.events import CURRENT, EVICTED, REPLACED, Changes, TaskNews

log = logging.getLogger(__name__)

_OUTCOMES = {"Succeeded": SUCCEEDED, "Failed": FAILED, "Evicted": EVICTED}


@dataclass(slots=True)
class _Heard:
    """News that was taken and is not folded yet."""

    rows: list[TaskRow] = field(default_factory=list)
    _newest: dict[int, int] = field(default_factory=dict)
    _counted: int = 0

    def revision(self, state: LiveState, row: int) -> int:
        """The newest revision of a task. It is asked only where news may be refused: what is old never is."""
        for one in self.rows[self._counted :]:
            self._newest[one[0]] = max(one[5], self._newest.get(one[0], NONE))
        self._counted = len(self.rows)
        return max(self._newest.get(row, NONE), int(state.snapshot.tasks.revision[row]))


def take_tasks(state: LiveState, messages: Sequence[Message]) -> None:
    """Take news of tasks, one after the other."""
    heard = _Heard()
    for message in messages:
        row = _row(state, message, heard)
        if row is not None:
            heard.rows.append(row)
    if heard.rows:
        news = task_news(heard.rows)
        _count_elsewhere(state, news)
        state.fold(Changes(tasks=news))


def _count_elsewhere(state: LiveState, news: TaskNews) -> None:
    """Count tasks that the fleet has started on another node than they were bound to, or promised."""
    tasks, row = state.snapshot.tasks, news.row
    status = tasks.status[row]
    decided = np.where(status == BOUND, tasks.node[row], np.where(status == PENDING, tasks.nominated[row], NONE))
    other = (news.status == RUNNING) & (decided != NONE) & (decided != news.node)
    if other.any():
        same = (news.incarnation == CURRENT) | (news.incarnation == tasks.incarnation[row])
        other &= same & (news.revision > tasks.revision[row])
        _, first = np.unique(row[other], return_index=True)  # what is sent again counts once
        for at in np.flatnonzero(other)[np.sort(first)][:1].tolist():
            nodes, name = state.names.nodes, state.names.tasks[row[at]]
            said = "%d tasks started elsewhere than was decided, such as %s on %s, not on %s"
            log.warning(said, len(first), name, nodes[news.node[at]], nodes[decided[at]])
        state.elsewhere += len(first)


def _row(state: LiveState, message: Message, heard: _Heard) -> TaskRow | None:
    """A message about a task, in rows; None if it names something unknown."""
    body = message.body
    assert isinstance(body, (TaskStarted, TaskTerminating, TaskEnded))
    row = state.names.row("tasks", body.task)
    if row == NONE:
        state.refuse(message, f"body.task: expected the name of a task that is known, found {body.task!r}")
        return None
    if isinstance(body, TaskStarted):
        return _started(state, message, body, row, heard)
    if isinstance(body, TaskTerminating):
        status = TERMINATING
    else:
        status = REPLACED if body.replaced else _OUTCOMES[body.outcome]
    return row, status, NONE, NONE, body.incarnation, message.revision, time_of(message)


def _started(state: LiveState, message: Message, body: TaskStarted, row: int, heard: _Heard) -> TaskRow | None:
    snapshot, node = state.snapshot, state.node(body.node)
    if node == NONE:
        if message.revision > heard.revision(state, row):  # old news may name a node that has left since
            state.refuse(message, f"body.node: expected the name of a node that is there, found {body.node!r}")
        return None
    card, asks = card_row(snapshot, node, body.card), bool(snapshot.shapes.on_card[snapshot.tasks.shape[row]])
    if card == NONE if asks else body.card is not None:
        if message.revision <= heard.revision(state, row):
            return None
        known = ", ".join(card_names(snapshot, node)) or "it has none"
        expected = f"the name of a card of {body.node} ({known})" if asks else "none without card_request"
        state.refuse(message, f"body.card: expected {expected}, found {shown(body.card)}")
        return None
    at = body.at if body.at is not None else time_of(message)
    return row, RUNNING, node, card, body.incarnation, message.revision, at
