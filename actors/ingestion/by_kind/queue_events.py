"""Queues, priority classes and disruption budgets that messages describe, and those that go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from actors.cluster_file.cross_references import ROOT_QUEUE
from actors.cluster_file.documents import DisruptionBudgetDocument, PriorityClassDocument, QueueDocument
from actors.cluster_file.plain_data import ClusterFileRefused
from actors.cluster_file.reader import read_leniently
from actors.columns.compile import budgets, compile_cluster
from actors.ingestion.known.kept_documents import plain
from actors.ingestion.known.state import LiveState
from actors.protocol.bodies import BudgetRemoved, QueueRemoved
from actors.protocol.envelopes import Message
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.resources import axis
from pipeline.cluster.updates.events import BudgetNews, Changes, QueuesRelaid
from pipeline.cluster.updates.widen import widened

# -- queues ------------------------------------------------------------------------------------------------------------


def take_queues(state: LiveState, messages: Sequence[Message]) -> None:
    """Take queues: together where that says the same as one after the other, else each by itself."""
    newer = _newer(state, messages)
    if newer and not (_no_queue_moves(state, newer) and _taken(state, newer)):
        for message in messages:
            if _newer(state, [message]):
                _taken(state, [message])


def _newer(state: LiveState, messages: Sequence[Message]) -> list[Message]:
    """Those that are newer than the last one about their queue. One that was refused may be said again."""
    newer, seen = list[Message](), dict[str, int]()
    for one in messages:
        name = _queue(one).name
        if one.revision > seen.get(name, state.documents.revision("queues", name)):
            seen[name] = one.revision
            newer.append(one)
    return newer


def _no_queue_moves(state: LiveState, messages: Sequence[Message]) -> bool:
    """Whether each queue stays below its parent, which is there when it comes: then no order of them makes a cycle."""
    known, below = state.documents.names("queues"), dict[str, str | None]()
    for one in messages:
        queue = _queue(one)
        name, parent = queue.name, queue.parent
        if not (parent is None or parent == ROOT_QUEUE or parent in below or parent in known):
            return False
        if name not in below:
            below[name] = state.documents.read("queues", name).get("parent") if name in known else parent
        if below[name] != parent:
            return False
    return True


def _taken(state: LiveState, messages: Sequence[Message]) -> bool:
    """Whether they are taken, or the only one is refused."""
    try:
        _number_anew(state, [plain(_queue(one)) for one in messages])
    except ClusterFileRefused as refusal:
        if len(messages) == 1:
            state.refuse(messages[0], f"body: {refusal}")
        return len(messages) == 1
    for one in messages:
        state.documents.keep("queues", _queue(one).name, plain(_queue(one)))
        state.is_newer(one, "queues", _queue(one).name)
    return True


def _queue(message: Message) -> QueueDocument:
    assert isinstance(message.body, QueueDocument)
    return message.body


def remove_queues(state: LiveState, messages: Sequence[Message]) -> None:
    """Remove queues that hold no podgroups."""
    for message in messages:
        assert isinstance(message.body, QueueRemoved)
        name, groups = message.body.queue, state.snapshot.podgroups
        if message.revision <= state.documents.revision("queues", name):
            continue
        if name not in state.documents.names("queues"):
            state.refuse(message, f"body.queue: expected the name of a queue that is there, found {name!r}")
            continue
        inside = int((groups.alive & (groups.queue == state.names.row("queues", name))).sum())
        if inside or len(state.names.queues) == 1:
            found = f"{inside} podgroups in {name!r}" if inside else f"{name!r} alone"
            state.refuse(message, f"body.queue: expected no podgroups in it and other queues beside it, found {found}")
            continue
        try:
            _number_anew(state, [], without=name)
        except ClusterFileRefused as refusal:
            state.refuse(message, f"body.queue: {refusal}")
            continue
        state.documents.forget("queues", name)
        state.is_newer(message, "queues", name)


def _number_anew(state: LiveState, upserts: Sequence[Mapping[str, Any]], without: str = "") -> None:
    """Compile all queues, with ``upserts`` and without the queue ``without``, which may hold podgroups that are gone.

    Raises
    ------
    ClusterFileRefused
        For a parent that is not there, or a cycle.
    """
    snapshot, names = state.snapshot, state.names
    documents = {one["name"]: one for one in [*state.documents.read_all("queues"), *upserts]}
    documents.pop(without, None)
    part, called = compile_cluster(read_leniently({"version": 1, "queues": list(documents.values())}))
    part = widened(part, axis({*part.vocabulary.resources, *snapshot.vocabulary.resources}))
    queue_of = frozen([called.queue_row.get(name, NONE) for name in names.queues], np.int32)
    relaid = QueuesRelaid(part.vocabulary.resources, part.queues, queue_of, max(1, len(upserts)))
    state.begin_epoch(relaid, names.with_queues(called.queues))


# -- priority classes --------------------------------------------------------------------------------------------------


def take_classes(state: LiveState, messages: Sequence[Message]) -> None:
    """Keep priority classes; a class counts for podgroups that are described after it."""
    for message in messages:
        body = message.body
        assert isinstance(body, PriorityClassDocument)
        if state.is_newer(message, "priority_classes", body.name):
            state.documents.keep("priority_classes", body.name, plain(body))


# -- disruption budgets ------------------------------------------------------------------------------------------------


def take_budgets(state: LiveState, messages: Sequence[Message]) -> None:
    """Take disruption budgets, and remove those that go."""
    counted = 0
    for message in messages:
        body = message.body
        assert isinstance(body, DisruptionBudgetDocument | BudgetRemoved)
        name = body.budget if isinstance(body, BudgetRemoved) else f"{body.namespace}/{body.name}"
        if message.revision <= state.documents.revision("disruption_budgets", name):
            continue
        if isinstance(body, BudgetRemoved) and name not in state.documents.names("disruption_budgets"):
            state.refuse(message, f"body.budget: expected the name of a budget that is there, found {name!r}")
            continue
        state.is_newer(message, "disruption_budgets", name)
        counted += 1
        if isinstance(body, BudgetRemoved):
            state.documents.forget("disruption_budgets", name)
        else:
            state.documents.keep("disruption_budgets", name, plain(body))
    if counted:
        words = state.snapshot.vocabulary
        table = budgets(state.documents.budgets(), words.namespaces, words.label_sets)
        state.fold(Changes(budgets=BudgetNews(table, counted)))
