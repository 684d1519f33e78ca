"""Nodes and topologies that messages describe, and nodes that leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from actors.cluster_file.documents import NodeDocument, TopologyDocument
from actors.cluster_file.plain_data import ClusterFileRefused
from actors.cluster_file.reader import read_leniently
from actors.columns.card_names import card_names
from actors.columns.compile import compile_cluster
from actors.columns.node_columns import allocatable
from actors.columns.node_joins import join_nodes, same_cards
from actors.ingestion.known.kept_documents import plain
from actors.ingestion.known.state import LiveState, time_of
from actors.protocol.bodies import NodeRemoved, TopologyChanged
from actors.protocol.envelopes import Message
from pipeline.cluster.arrays import NONE, Ids, frozen
from pipeline.cluster.resources import axis
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING, TERMINATING
from pipeline.cluster.updates.events import Changes, Departures, NodeNews, NodesRelaid
from pipeline.cluster.updates.widen import widened
from pipeline.cluster.vocabulary import HOSTNAME

#: Keys of a node's document that do not decide its place; if only these change, it keeps its row.
_FIGURES = ("allocatable", "unschedulable")


@dataclass(frozen=True, slots=True)
class _Upsert:
    """A message about a node, its document, and the same as plain data."""

    message: Message
    document: NodeDocument
    said: Mapping[str, Any]


def take_nodes(state: LiveState, messages: Sequence[Message]) -> None:
    """Take nodes, each described once: first those that come or move, together; then those with new figures."""
    joining, figures = list[_Upsert](), list[_Upsert]()
    resources = set(state.snapshot.vocabulary.resources)
    for message in messages:
        body = message.body
        assert isinstance(body, NodeDocument)
        if message.revision <= state.documents.revision("nodes", body.name):
            continue
        one = _Upsert(message, body, plain(body))
        if _is_in_place(state, one) and resources.issuperset(body.allocatable):
            figures.append(one)
        else:
            joining.append(one)
            resources.update(body.allocatable)
    if joining:
        _join(state, joining)
    if figures:
        _take_figures(state, figures)


def _is_in_place(state: LiveState, one: _Upsert) -> bool:
    """Whether a node is known and only its figures are new."""
    name = one.document.name
    known = state.documents.names("nodes")
    return name in known and _without_figures(state.documents.read("nodes", name)) == _without_figures(one.said)


def _without_figures(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in _FIGURES and value}


def _take_figures(state: LiveState, upserts: Sequence[_Upsert]) -> None:
    """Give known nodes their new figures."""
    resources = state.snapshot.vocabulary.resources
    nodes = [one.document for one in upserts]
    news = NodeNews(
        frozen([state.names.row("nodes", node.name) for node in nodes], np.int64),
        frozen([allocatable(resources, node) for node in nodes], np.int64),
        frozen([not node.unschedulable for node in nodes], np.bool_),
        frozen([one.message.revision for one in upserts], np.int64),
    )
    state.fold(Changes(nodes=news))
    _keep(state, upserts)


def _keep(state: LiveState, upserts: Sequence[_Upsert]) -> None:
    for one in upserts:
        state.documents.keep("nodes", one.document.name, one.said)
        state.is_newer(one.message, "nodes", one.document.name)


# -- nodes that come or move -------------------------------------------------------------------------------------------


def _join(state: LiveState, upserts: Sequence[_Upsert]) -> None:
    """Put nodes in their places; if one of them is wrong, each by itself, so that only that one is refused."""
    snapshot, nodes = state.snapshot, [one.document for one in upserts]
    rows = [state.names.row("nodes", node.name) for node in nodes]
    joined = join_nodes(
        snapshot, state.names.node_order(snapshot.topology), state.documents.homes, nodes, rows, _departed(state)
    )
    moved = [row for row in rows if row != NONE]
    card_of = same_cards(snapshot, joined.vocabulary.card_sets, joined.nodes.card_set, joined.reordered.row_of)
    try:
        _refuse_lost_cards(state, card_of, moved)
    except ClusterFileRefused as refusal:
        if len(upserts) == 1:
            state.refuse(upserts[0].message, f"body: {refusal}")
            return
        for one in upserts:
            _join(state, [one])
        return
    revision = joined.nodes.revision.copy()
    revision[joined.reordered.placed] = [one.message.revision for one in upserts]
    relaid = NodesRelaid(
        vocabulary=joined.vocabulary,
        nodes=replace(joined.nodes, revision=frozen(revision, np.int64)),
        topology=joined.reordered.order.topology,
        node_of=joined.reordered.row_of,
        card_of=card_of,
        level_of=frozen(np.arange(len(snapshot.vocabulary.levels)), np.int32),
        news=len(upserts),
    )
    state.begin_epoch(relaid, state.names.with_nodes_reordered(joined.reordered))
    _keep(state, upserts)


def _departed(state: LiveState) -> list[int]:
    """Rows of nodes that left."""
    nodes, known = state.snapshot.nodes, state.documents.names("nodes")
    empty = np.flatnonzero(~nodes.schedulable & ~nodes.allocatable.any(axis=1))
    return [row for row in empty.tolist() if state.names.nodes[row] not in known]


def _refuse_lost_cards(state: LiveState, card_of: Ids, nodes: Sequence[int]) -> None:
    """Refuse a change that takes a card from a task that holds it.

    Parameters
    ----------
    nodes
        Rows of the nodes that may have lost one.

    Raises
    ------
    ClusterFileRefused
        If there is such a task.
    """
    snapshot = state.snapshot
    if not snapshot.nodes.cards.shape[1] or not nodes:
        return
    tasks = snapshot.tasks
    on = np.flatnonzero((tasks.card != NONE) & np.isin(tasks.status, (BOUND, RUNNING, TERMINATING)))
    lost = on[card_of[tasks.node[on], tasks.card[on]] == NONE]
    if len(lost):
        node, card = int(tasks.node[lost[0]]), int(tasks.card[lost[0]])
        raise ClusterFileRefused(
            f"nodes.{state.names.nodes[node]}.cards: expected {card_names(snapshot, node)[card]!r}, which "
            f"{state.names.tasks[lost[0]]} holds (with a capacity of 0 it takes no other task), found none"
        )


# -- another topology, and the label of the node's name ----------------------------------------------------------------


def take_topologies(state: LiveState, messages: Sequence[Message]) -> None:
    """Take topologies one after the other; each numbers all nodes anew."""
    for message in messages:
        body = message.body
        assert isinstance(body, TopologyChanged)
        if message.revision <= state.documents.revisions.get("topology", NONE):
            continue
        lost = _levels_lost(state.snapshot, body.topology)
        if lost:
            state.refuse(message, f"body.topology.levels: expected {lost[0]!r}, which podgroups want, found none")
            continue
        try:
            _number_anew(state, body.topology)
        except ClusterFileRefused as refusal:
            state.refuse(message, f"body: {refusal}")
            continue
        state.documents.topology = body.topology
        state.documents.revisions["topology"] = message.revision


def label_by_hostname(state: LiveState) -> None:
    """Give every node its own name as a label, because a task selects by it for the first time."""
    _number_anew(state, state.documents.present_topology, hostname=True)


def _number_anew(state: LiveState, topology: TopologyDocument | None, *, hostname: bool = False) -> None:
    """Compile all nodes from their documents.

    Parameters
    ----------
    hostname
        Whether a task is about to select by the label that every node has; once one did, the label stays.

    Raises
    ------
    ClusterFileRefused
        For a topology that names what is not there.
    """
    snapshot, names = state.snapshot, state.names
    nodes = state.documents.read_all("nodes")
    if hostname or HOSTNAME in snapshot.vocabulary.label_keys:
        nodes = [{**node, "labels": {HOSTNAME: node["name"], **node.get("labels", {})}} for node in nodes]
    said: dict[str, Any] = {"version": 1, "nodes": nodes}
    part, called = compile_cluster(read_leniently(said if topology is None else {**said, "topology": plain(topology)}))
    part = widened(part, axis({*part.vocabulary.resources, *snapshot.vocabulary.resources}))
    words = part.vocabulary
    node_of = frozen([called.node_row.get(name, NONE) for name in names.nodes], np.int32)
    revision = np.zeros(len(part.nodes), np.int64)
    revision[node_of[node_of != NONE]] = snapshot.nodes.revision[node_of != NONE]
    card_of = same_cards(snapshot, words.card_sets, part.nodes.card_set, node_of)
    relaid = NodesRelaid(
        vocabulary=replace(
            snapshot.vocabulary,
            resources=words.resources,
            levels=words.levels,
            label_keys=words.label_keys,
            label_values=words.label_values,
            taint_sets=words.taint_sets,
            card_sets=words.card_sets,
        ),
        nodes=replace(part.nodes, revision=frozen(revision, np.int64)),
        topology=part.topology,
        node_of=node_of,
        card_of=card_of,
        level_of=frozen(
            [words.levels.index(one) if one in words.levels else NONE for one in snapshot.vocabulary.levels], np.int32
        ),
        news=1,
    )
    state.begin_epoch(relaid, names.with_nodes(called))


def _levels_lost(snapshot: Snapshot, topology: TopologyDocument | None) -> list[str]:
    """Levels that podgroups ask for and a topology lacks; an unknown level is never ignored."""
    alive = snapshot.podgroups.alive
    inner = alive[snapshot.subgroups.podgroup] if len(snapshot.subgroups) else np.zeros(0, bool)
    wanted = np.concatenate(
        [
            snapshot.podgroups.required_level[alive], snapshot.podgroups.preferred_level[alive],
            snapshot.subgroups.required_level[inner], snapshot.subgroups.preferred_level[inner],
        ]
    )  # fmt: skip
    kept = topology.levels if topology is not None else ()
    gathers = snapshot.vocabulary.gathers
    said = [gathers[row] for row in np.unique(snapshot.podgroups.gather[alive]).tolist() if row != NONE]
    named = {level for one in said for level in (*one.layers, *(level for level, _ in one.multiples))}
    return [
        level
        for row, level in enumerate(snapshot.vocabulary.levels)
        if level not in kept and (level in named or (wanted == row).any())
    ]


# -- nodes that leave --------------------------------------------------------------------------------------------------


def remove_nodes(state: LiveState, messages: Sequence[Message]) -> None:
    """Remove nodes, with the tasks that run on them."""
    leaving = []
    for message in messages:
        assert isinstance(message.body, NodeRemoved)
        name = message.body.node
        if message.revision <= state.documents.revision("nodes", name):
            continue
        row = state.node(name)
        if row == NONE:
            state.refuse(message, f"body.node: expected the name of a node that is there, found {name!r}")
            continue
        state.is_newer(message, "nodes", name)
        leaving.append((row, message.revision, time_of(message)))
        state.documents.forget("nodes", name)
    if leaving:
        state.fold(Changes(left=departures(leaving)))


def departures(leaving: Sequence[tuple[int, int, float]]) -> Departures:
    """Rows that leave, with revision and time (seconds): each row once, with its newest revision."""
    last = {row: (revision, at) for row, revision, at in leaving}
    return Departures(
        frozen(list(last), np.int64),
        frozen([revision for revision, _ in last.values()], np.int64),
        frozen([at for _, at in last.values()], np.float64),
    )
