"""Nodes, topology, queues and budgets that messages describe, and nodes and podgroups that leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from actors.cluster_file.documents import DisruptionBudgetDocument, NodeDocument, QueueDocument
from actors.cluster_file.reader import ClusterFileRefused
from actors.ingestion.register import NONE
from actors.ingestion.relaying import (
    NodeUpsert,
    budgets_of,
    figures,
    in_place,
    levels_lost,
    nodes_relaid,
    queues_relaid,
    rename,
)
from actors.ingestion.state import LiveState, time_of
from actors.ingestion.upserts import plain
from actors.protocol.bodies import BudgetRemoved, NodeRemoved, PodgroupRemoved, QueueRemoved
from actors.protocol.envelopes import Message
from pipeline.cluster.arrays import frozen
from pipeline.cluster.updates.events import BudgetNews, Departures
from pipeline.cluster.updates.fold import fold


def lay_nodes(state: LiveState, held: list[Message]) -> None:
    """Take nodes and topologies, together if they are right, else each by itself."""
    upserts, topology, counted = [], state.names.topology, []
    for message in held:
        body = message.body
        if isinstance(body, NodeDocument):
            if message.revision > state.names.revisions.get(f"nodes/{body.name}", NONE):
                upserts.append(NodeUpsert(plain(body), message.revision))
                counted.append(message)
        elif message.revision > state.names.revisions.get("topology", NONE):
            document = body.topology  # type: ignore[attr-defined]
            topology = plain(document) if document is not None else None
            lost = levels_lost(state.snapshot, topology)
            if lost:
                state.refuse(message, f"body.topology.levels: expected {lost[0]!r}, which podgroups want, found none")
                topology = state.names.topology
            else:
                counted.append(message)
    if not counted:
        return
    try:
        _relay(state, upserts, topology, len(counted))
    except ClusterFileRefused as refusal:
        if len(counted) == 1:
            state.refuse(counted[0], f"body: {refusal}")
            return
        for message in counted:
            lay_nodes(state, [message])
        return
    for message in counted:
        state.names.is_news(_node_key(message), message.revision)


def _relay(state: LiveState, upserts: list[NodeUpsert], topology: Mapping[str, Any] | None, news: int) -> None:
    same = topology == state.names.topology and in_place(state.names, upserts)
    told = figures(state.snapshot, state.names, upserts) if same and upserts else None
    if told is not None:
        state.fold(nodes=told)
    else:
        relaid, called = nodes_relaid(state.snapshot, state.names, upserts, topology, news)
        state.begin_epoch(fold(state.snapshot, relaid))
        rename(state.names, called, ("nodes", "domains"))
        state.names.topology = dict(topology) if topology is not None else None
    for upsert in upserts:
        state.names.keep("nodes", upsert.document["name"], upsert.document)


def lay_hostnames(state: LiveState) -> None:
    """Give every node its own name as a label: a task selects by it, and so far none did."""
    relaid, called = nodes_relaid(state.snapshot, state.names, [], state.names.topology, 1, hostname=True)
    state.begin_epoch(fold(state.snapshot, relaid))
    rename(state.names, called, ("nodes", "domains"))


def lay_queues(state: LiveState, held: list[Message]) -> None:
    """Take queues, together if they are right, else each by itself."""
    news = [one for one in held if state.is_news(one, "queues", _queue(one).name)]
    if news and not _queues_laid(state, news):
        for message in news:
            _queues_laid(state, [message])


def _queues_laid(state: LiveState, news: list[Message]) -> bool:
    try:
        relaid, called = queues_relaid(state.snapshot, state.names, [plain(_queue(one)) for one in news])
    except ClusterFileRefused as refusal:
        if len(news) == 1:
            state.refuse(news[0], f"body: {refusal}")
        return len(news) == 1
    state.begin_epoch(fold(state.snapshot, relaid))
    rename(state.names, called, ("queues",))
    for one in news:
        state.names.keep("queues", _queue(one).name, plain(_queue(one)))
    return True


def _queue(message: Message) -> QueueDocument:
    assert isinstance(message.body, QueueDocument)
    return message.body


def remove_queues(state: LiveState, held: list[Message]) -> None:
    """Queues go that nobody is in."""
    for message in held:
        assert isinstance(message.body, QueueRemoved)
        name, names, groups = message.body.queue, state.names, state.snapshot.podgroups
        if message.revision <= names.revisions.get(f"queues/{name}", NONE):
            continue
        inside = int((groups.alive & (groups.queue == names.row("queues", name))).sum())
        if name not in names.documents["queues"]:
            state.refuse(message, f"body.queue: expected the name of a queue that is there, found {name!r}")
        elif inside or len(names.queues) == 1:
            found = f"{inside} podgroups in {name!r}" if inside else f"{name!r} alone"
            state.refuse(message, f"body.queue: expected no podgroups in it and other queues beside it, found {found}")
        else:
            try:
                relaid, called = queues_relaid(state.snapshot, names, [], without=name)
            except ClusterFileRefused as refusal:
                state.refuse(message, f"body.queue: {refusal}")
                continue
            state.begin_epoch(fold(state.snapshot, relaid))
            rename(state.names, called, ("queues",))
            del state.names.documents["queues"][name]
            state.is_news(message, "queues", name)


def lay_budgets(state: LiveState, held: list[Message]) -> None:
    """Take disruption budgets, and those that go."""
    counted, known = 0, state.names.documents["disruption_budgets"]
    for message in held:
        body = message.body
        assert isinstance(body, DisruptionBudgetDocument | BudgetRemoved)
        name = body.budget if isinstance(body, BudgetRemoved) else f"{body.namespace}/{body.name}"
        if isinstance(body, BudgetRemoved) and name not in known:
            state.refuse(message, f"body.budget: expected the name of a budget that is there, found {name!r}")
        elif state.is_news(message, "disruption_budgets", name):
            counted += 1
            if isinstance(body, BudgetRemoved):
                del known[name]
            else:
                state.names.keep("disruption_budgets", name, plain(body))
    if counted:
        table = budgets_of(state.snapshot, state.names.all_kept("disruption_budgets"))
        state.fold(budgets=BudgetNews(table, counted))


def remove_nodes(state: LiveState, held: list[Message]) -> None:
    """Nodes leave, and what runs on them with them."""
    leaving = []
    for message in held:
        assert isinstance(message.body, NodeRemoved)
        name, names = message.body.node, state.names
        if message.revision <= names.revisions.get(f"nodes/{name}", NONE):
            continue
        if state.node(name) == NONE:
            state.refuse(message, f"body.node: expected the name of a node that is there, found {name!r}")
            continue
        names.revisions[f"nodes/{name}"] = message.revision
        leaving.append((names.row("nodes", name), message.revision, time_of(message)))
        del names.documents["nodes"][name]
    if leaving:
        state.fold(left=_departures(leaving))


def remove_podgroups(state: LiveState, held: list[Message]) -> None:
    """Podgroups go, and their tasks with them."""
    leaving = []
    for message in held:
        assert isinstance(message.body, PodgroupRemoved)
        name = message.body.podgroup
        row = state.names.row("podgroups", name)
        if row == NONE:
            state.refuse(message, f"body.podgroup: expected the name of a podgroup that is known, found {name!r}")
        elif state.is_news(message, "podgroups", name):
            leaving.append((row, message.revision, time_of(message)))
    if leaving:
        state.fold(removed=_departures(leaving))


def _node_key(message: Message) -> str:
    return f"nodes/{message.body.name}" if isinstance(message.body, NodeDocument) else "topology"


def _departures(leaving: Sequence[tuple[int, int, float]]) -> Departures:
    """Each row once, with the newest revision it came with."""
    last = {row: (revision, at) for row, revision, at in leaving}
    return Departures(
        frozen(list(last), np.int64),
        frozen([revision for revision, _ in last.values()], np.int64),
        frozen([at for _, at in last.values()], np.float64),
    )
