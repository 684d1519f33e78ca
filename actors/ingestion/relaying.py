"""Nodes, queues, budgets and whole lists, compiled apart and put in place of what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from actors.cluster_file.documents import ClusterDocument
from actors.cluster_file.reader import ClusterFileRefused, read_leniently
from actors.columns.compile import budgets, compile_cluster
from actors.columns.names import Names
from actors.columns.node_columns import HOSTNAME, allocatable
from actors.ingestion.register import NONE, Register
from actors.ingestion.upserts import add_task, described, plain
from pipeline.cluster.arrays import Ids, Rows, frozen
from pipeline.cluster.resources import axis
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING, TERMINATING, Budgets
from pipeline.cluster.updates.events import Listed, NodeNews, NodesRelaid, QueuesRelaid
from pipeline.cluster.updates.widen import widened

#: Keys of a node's document that change where it stands; without them it is the same node with other figures.
_FIGURES = ("allocatable", "unschedulable")


@dataclass(frozen=True, slots=True)
class NodeUpsert:
    """A node's document as it came, and its revision."""

    document: Mapping[str, Any]
    revision: int


def in_place(names: Register, upserts: Sequence[NodeUpsert]) -> bool:
    """Whether the nodes are known and nothing but their figures is new."""
    for upsert in upserts:
        name = upsert.document["name"]
        if name not in names.documents["nodes"] or _standing(names.kept("nodes", name)) != _standing(upsert.document):
            return False
    return True


def _standing(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in _FIGURES and value}


def figures(snapshot: Snapshot, names: Register, upserts: Sequence[NodeUpsert]) -> NodeNews | None:
    """Known nodes with other figures; None where one has a resource that is new to the state."""
    last = {upsert.document["name"]: upsert for upsert in upserts}
    documents = read_leniently({"version": 1, "nodes": [one.document for one in last.values()]}).nodes
    resources = snapshot.vocabulary.resources
    if any(set(node.allocatable) - set(resources) for node in documents):
        return None
    return NodeNews(
        frozen([names.row("nodes", node.name) for node in documents], np.int64),
        frozen([allocatable(resources, node) for node in documents], np.int64),
        frozen([not node.unschedulable for node in documents], np.bool_),
        frozen([last[node.name].revision for node in documents], np.int64),
    )


def nodes_relaid(
    snapshot: Snapshot,
    names: Register,
    upserts: Sequence[NodeUpsert],
    topology: Mapping[str, Any] | None,
    news: int,
    hostname: bool = False,
) -> tuple[NodesRelaid, Names]:
    """All nodes numbered anew with ``upserts`` among them.

    Parameters
    ----------
    hostname
        Whether a task is about to select by the label that every node has; once one did, the label stays.

    Raises
    ------
    ClusterFileRefused
        For a topology that names what is not there, or a node without a card that a task holds.
    """
    documents = {document["name"]: document for document in names.all_kept("nodes")}
    documents |= {upsert.document["name"]: upsert.document for upsert in upserts}
    nodes = list(documents.values())
    if hostname or HOSTNAME in snapshot.vocabulary.label_keys:
        nodes = [{**node, "labels": {HOSTNAME: node["name"], **node.get("labels", {})}} for node in nodes]
    said = {"version": 1, "nodes": nodes}
    part, called = compile_cluster(read_leniently(said if topology is None else {**said, "topology": topology}))
    part = widened(part, axis({*part.vocabulary.resources, *snapshot.vocabulary.resources}))
    revision = {name: int(known) for name, known in zip(names.nodes, snapshot.nodes.revision, strict=True)}
    revision |= {upsert.document["name"]: upsert.revision for upsert in upserts}
    words, node_of = part.vocabulary, frozen([called.node_row.get(name, NONE) for name in names.nodes], np.int32)
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
        nodes=replace(part.nodes, revision=frozen([revision[name] for name in called.nodes], np.int64)),
        topology=part.topology,
        node_of=node_of,
        card_of=_card_of(snapshot, names, part, node_of),
        level_of=frozen(
            [words.levels.index(one) if one in words.levels else NONE for one in snapshot.vocabulary.levels], np.int32
        ),
        news=news,
    )
    return relaid, called


def _card_of(snapshot: Snapshot, names: Register, part: Snapshot, node_of: Ids, *, held: bool = True) -> Ids:
    """int32[N, D]: per known card its position by its name among those of the node's new row.

    Raises
    ------
    ClusterFileRefused
        For a card that a task holds and that is not there any more, if that matters (``held``).
    """
    result = np.full(snapshot.nodes.cards.shape, NONE, np.int32)
    for node in np.flatnonzero((snapshot.nodes.card_set > 0) & (node_of != NONE)).tolist():
        for card, name in enumerate(snapshot.card_names(node)):
            result[node, card] = part.card_row(int(node_of[node]), name)
    tasks = snapshot.tasks
    on = np.flatnonzero((tasks.card != NONE) & np.isin(tasks.status, (BOUND, RUNNING, TERMINATING)))
    lost = on[result[tasks.node[on], tasks.card[on]] == NONE]
    if held and len(lost):
        node, card = int(tasks.node[lost[0]]), int(tasks.card[lost[0]])
        raise ClusterFileRefused(
            f"nodes.{names.nodes[node]}.cards: expected {snapshot.card_names(node)[card]!r}, which "
            f"{names.tasks[lost[0]]} holds (with a capacity of 0 it takes nobody else), found none"
        )
    return frozen(result, np.int32)


def levels_lost(snapshot: Snapshot, topology: Mapping[str, Any] | None) -> list[str]:
    """Levels that podgroups want and a topology lacks: an unknown level is never ignored."""
    alive = snapshot.podgroups.alive
    inner = alive[snapshot.subgroups.podgroup] if len(snapshot.subgroups) else np.zeros(0, bool)
    wanted = np.concatenate(
        [
            snapshot.podgroups.required_level[alive], snapshot.podgroups.preferred_level[alive],
            snapshot.subgroups.required_level[inner], snapshot.subgroups.preferred_level[inner],
        ]
    )  # fmt: skip
    kept = topology["levels"] if topology is not None else ()
    return [
        level for row, level in enumerate(snapshot.vocabulary.levels) if level not in kept and (wanted == row).any()
    ]


def queues_relaid(
    snapshot: Snapshot, names: Register, upserts: Sequence[Mapping[str, Any]], without: str | None = None
) -> tuple[QueuesRelaid, Names]:
    """All queues with ``upserts`` among them, and ``without`` one of which only podgroups that are gone were part.

    Raises
    ------
    ClusterFileRefused
        For a parent that is not there, or a cycle.
    """
    documents = {one["name"]: one for one in [*names.all_kept("queues"), *upserts]}
    documents.pop(without or "", None)
    part, called = compile_cluster(read_leniently({"version": 1, "queues": list(documents.values())}))
    part = widened(part, axis({*part.vocabulary.resources, *snapshot.vocabulary.resources}))
    row = {name: at for at, name in enumerate(called.queues)}
    # Rows of podgroups that are gone must still point to a queue: any.
    queue_of = frozen([row.get(name, 0) for name in names.queues], np.int32)
    return QueuesRelaid(part.vocabulary.resources, part.queues, queue_of, max(1, len(upserts))), called


def budgets_of(snapshot: Snapshot, documents: Sequence[Mapping[str, Any]]) -> Budgets:
    """The budgets over the words of the state."""
    cluster = read_leniently({"version": 1, "disruption_budgets": list(documents)})
    words = snapshot.vocabulary
    return budgets(cluster.disruption_budgets, words.namespaces, words.label_sets)


# -- a full list -------------------------------------------------------------------------------------------------------


def listed(snapshot: Snapshot, names: Register, cluster: ClusterDocument) -> tuple[Listed, Register]:
    """The state that a full list is, and the names that go with it; what must be counted on is taken from ``names``."""
    part, called = compile_cluster(cluster)
    row = {name: at for at, name in enumerate(called.nodes)}
    podgroup_of = _rows(names, "podgroups", called.podgroups)
    podgroup_of[podgroup_of != NONE] = np.where(
        snapshot.podgroups.alive[podgroup_of[podgroup_of != NONE]], podgroup_of[podgroup_of != NONE], NONE
    )
    task_of = _rows(names, "tasks", called.tasks)
    known = np.flatnonzero(task_of != NONE)
    lives_on = podgroup_of[part.tasks.podgroup[known]] == snapshot.tasks.podgroup[task_of[known]]
    task_of[known[~lives_on]] = NONE
    node_of = frozen([row.get(name, NONE) for name in names.nodes], np.int32)
    lives = any(task.incarnation is not None for podgroup in cluster.podgroups for task in podgroup.tasks)
    news = Listed(part, task_of, podgroup_of, node_of, _card_of(snapshot, names, part, node_of, held=False), lives)
    return news, registered(cluster, called, names)


def _rows(names: Register, section: str, called: Sequence[str]) -> Rows:
    return np.array([names.row(section, name) for name in called], np.int64)


def registered(cluster: ClusterDocument, called: Names, before: Register) -> Register:
    """The names and documents of a list; revisions, plans and the sequence go on as they were."""
    made = Register(
        plans=before.plans, claims=before.claims, overdue=before.overdue, sequence=before.sequence, listed=True
    )
    rename(made, called, ("nodes", "domains", "queues", "podgroups", "tasks"))
    made.topology = plain(cluster.topology) if cluster.topology is not None else None
    for section in ("nodes", "queues", "priority_classes"):
        for document in getattr(cluster, section):
            made.keep(section, document.name, plain(document))
    for budget in cluster.disruption_budgets:
        made.keep("disruption_budgets", f"{budget.namespace}/{budget.name}", plain(budget))
    for podgroup in cluster.podgroups:
        group = described(None, None, podgroup.model_copy(update={"tasks": ()}), 0)
        for task in podgroup.tasks:
            if task.role is not None:
                add_task(group, task.model_copy(update={"count": None}), 0)
        made.keep("podgroups", podgroup.full_name, group.document)
    kept = {f"{section}/{name}" for section, documents in made.documents.items() for name in documents}
    made.revisions = {key: revision for key, revision in before.revisions.items() if key in kept or "/" not in key}
    return made


def rename(names: Register, called: Names, sections: Sequence[str]) -> None:
    """Name all rows of some sections anew."""
    for section in sections:
        names.rename(section, getattr(called, section))
