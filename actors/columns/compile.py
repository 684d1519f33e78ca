"""Compiles the documents of a cluster file to a snapshot and the names of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from actors.cluster_file.documents import (
    ClusterDocument,
    DisruptionBudgetDocument,
    PodgroupDocument,
    PriorityClassDocument,
)
from actors.cluster_file.task_documents import NEVER
from actors.columns.names import Names
from actors.columns.node_columns import NodeWords, cards_in_order, hostname_asked, node_columns
from actors.columns.node_order import Homes, order_nodes
from actors.columns.podgroup_columns import PodgroupColumns
from actors.columns.queue_columns import queue_columns, recent_evictions
from actors.columns.task_columns import PriorityClass, Surroundings
from actors.documents.collector import collector_paused
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.resources import axis
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.gang_history import history_of_list


@collector_paused()
def compile_cluster(cluster: ClusterDocument) -> tuple[Snapshot, Names]:
    """Compile a cluster file.

    Parameters
    ----------
    cluster
        Its names must exist, as in the result of ``cluster_file.read_cluster``.

    Returns
    -------
    The snapshot, revision and epoch 0, and the names of its rows. The order of nodes, of their cards, of domains, of
    queues, of roles and of subgroups in the file does not matter; podgroups and tasks keep their order.
    """
    resources = axis(resource_names(cluster))
    order, rows = order_nodes(cluster.nodes, Homes(cluster.topology))
    nodes = cluster.nodes.taken(rows)
    queues = queue_columns(cluster.queues, resources)
    covering = tuple(f"{one.namespace}/{one.name}" for one in cluster.disruption_budgets)
    names = Names(order.nodes, queues.names, order.domains, paths=order.paths, budgets=covering)
    cards = [[card.name for card in cards_in_order(node)] for node in nodes.kinds]
    columns = PodgroupColumns(
        Surroundings(
            resources,
            cluster.topology.levels if cluster.topology is not None else (),
            priority_classes(cluster.priority_classes),
            names.queue_row.__getitem__,
            names.node_row.__getitem__,
            lambda node, card: cards[nodes.kind[node]].index(card),
        )
    )
    for podgroup in cluster.podgroups:
        columns.add_tasks(columns.add_podgroup(podgroup), podgroup.tasks)
    words = columns.words()
    node_words = NodeWords.of(words)
    table = node_columns(nodes, resources, node_words, hostname=hostname_asked(words.constraints))
    snapshot = Snapshot(
        revision=0,
        epoch=0,
        decided=0,
        vocabulary=node_words.into(words),
        nodes=table,
        topology=order.topology,
        shapes=columns.shapes(),
        queues=queues.queues,
        podgroups=columns.podgroups(),
        roles=columns.roles(),
        subgroups=columns.subgroups(),
        tasks=columns.tasks(),
        budgets=budgets(cluster.disruption_budgets, columns.namespaces, columns.label_sets),
        recent=recent_evictions(cluster.recent_evictions, names.queue_row, cluster.now),
    )
    podgroups, tasks = columns.names
    return history_of_list(snapshot, float(cluster.now)), replace(names, podgroups=podgroups, tasks=tasks)


def resource_names(cluster: ClusterDocument) -> set[str]:
    """All resources that a cluster file names."""
    found: set[str] = set()
    for node in cluster.nodes.kinds:
        found.update(node.allocatable)
    for queue in cluster.queues:
        found.update(queue.guarantee, queue.deserved, queue.capability)
        for parts in (queue.over_quota_weight, queue.usage):
            found.update(parts if isinstance(parts, dict) else ())
    for podgroup in cluster.podgroups:
        found.update(*podgroup_resources(podgroup))
    return found


def podgroup_resources(podgroup: PodgroupDocument) -> Iterator[Mapping[str, object]]:
    """The mappings of a podgroup that name resources."""
    yield podgroup.min_resources
    yield from (task.request for task in podgroup.tasks.kinds)


def priority_classes(documents: Sequence[PriorityClassDocument]) -> dict[str, PriorityClass]:
    """Priority classes by name."""
    return {known.name: PriorityClass(known.value, known.preemption_policy != NEVER) for known in documents}


def budgets(
    documents: Sequence[DisruptionBudgetDocument],
    namespaces: Sequence[str],
    label_sets: Sequence[tuple[tuple[str, str], ...]],
) -> Budgets:
    """Disruption budgets as columns over namespaces and sets of labels."""
    row_of = {name: row for row, name in enumerate(namespaces)}
    known = {wanted for document in documents for wanted in document.match_labels.items()}
    having: dict[tuple[str, str], set[int]] = {wanted: set() for wanted in known}
    for at, labels in enumerate(label_sets if known else ()):
        for label in known.intersection(labels):
            having[label].add(at)
    covers = np.zeros((len(documents), len(label_sets)), bool)
    for row, document in enumerate(documents):
        wanted = sorted((having[label] for label in document.match_labels.items()), key=len)
        covers[row, sorted(wanted[0].intersection(*wanted[1:])) if wanted else slice(None)] = True
    allowed = [document.disruptions_allowed for document in documents]
    of = [row_of.get(document.namespace, NONE) for document in documents]
    return Budgets(frozen(allowed, np.int32), frozen(of, np.int32), frozen(covers, np.bool_))
