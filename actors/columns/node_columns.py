"""Nodes as columns: what they offer, their labels and taints interned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from actors.cluster_file.documents import NodeDocument
from actors.columns.interning import Interned
from actors.documents.quantities import Quantity, base_units, card_units
from pipeline.cluster.arrays import NONE, Longs, frozen
from pipeline.cluster.resources import PODS
from pipeline.cluster.tables import Nodes
from pipeline.cluster.vocabulary import Constraint, Taint

#: Every node has this label, its value the node's name. It takes a column only where a task asks for it.
HOSTNAME = "kubernetes.io/hostname"
#: Pods that a node takes if it does not say: what a kubelet says by default.
PODS_BY_DEFAULT = 110


@dataclass(frozen=True, slots=True)
class NodeColumns:
    """The table, and its part of the vocabulary."""

    nodes: Nodes
    label_keys: tuple[str, ...]
    label_values: tuple[tuple[str, ...], ...]
    taint_sets: tuple[tuple[Taint, ...], ...]
    card_sets: tuple[tuple[str, ...], ...]


def vector(resources: Sequence[str], quantities: dict[str, Quantity], absent: int = 0) -> list[int]:
    """Quantities on the resource axis, in base units; the word ``unlimited`` is ``UNLIMITED``."""
    return [
        base_units(resource, quantities[resource], unlimited=True) if resource in quantities else absent
        for resource in resources
    ]


def allocatable(resources: Sequence[str], node: NodeDocument) -> list[int]:
    """What a node offers, int[R]."""
    offered = vector(resources, node.allocatable)
    if resources[PODS] not in node.allocatable:
        offered[PODS] = PODS_BY_DEFAULT
    return offered


def hostname_asked(constraints: Iterable[Constraint]) -> bool:
    """Whether a selector or an affinity asks for the label that every node has."""
    return any(
        requirement.key == HOSTNAME
        for constraint in constraints
        for requirement in (*constraint.node_selector, *(each for term in constraint.node_affinity for each in term))
    )


def node_columns(
    nodes: Sequence[NodeDocument], resources: Sequence[str], hostname: bool, revisions: Longs | None = None
) -> NodeColumns:
    """Columns of nodes given in row order.

    Parameters
    ----------
    hostname
        Whether each node gets the label ``HOSTNAME``.
    revisions
        int64[N]; None: 0.
    """
    labels = [_labels(node, hostname) for node in nodes]
    keys = Interned(key for given in labels for key in sorted(given))
    values = [Interned[str]() for _ in range(len(keys))]
    codes = np.full((len(nodes), len(keys)), NONE, np.int32)
    taints = Interned[tuple[Taint, ...]]([()])
    taint_set = np.zeros(len(nodes), np.int32)
    for row, (node, given) in enumerate(zip(nodes, labels, strict=True)):
        for key in sorted(given):
            column = keys.row(key)
            codes[row, column] = values[column].row(given[key])
        distinct = {Taint(taint.key, taint.value, taint.effect) for taint in node.taints}
        taint_set[row] = taints.row(tuple(sorted(distinct, key=lambda taint: (taint.key, taint.value, taint.effect))))
    names = Interned[tuple[str, ...]]([()])
    card_set = [names.row(tuple(card.name for card in node.cards)) for node in nodes]
    cards = np.zeros((len(nodes), max(map(len, names.values))), np.int64)
    for row, node in enumerate(nodes):
        cards[row, : len(node.cards)] = [card_units(card.capacity) for card in node.cards]
    offered = [allocatable(resources, node) for node in nodes]
    table = Nodes(
        allocatable=frozen(np.array(offered, np.int64).reshape(len(nodes), len(resources)), np.int64),
        schedulable=frozen([not node.unschedulable for node in nodes], np.bool_),
        taint_set=frozen(taint_set, np.int32),
        labels=frozen(codes, np.int32),
        cards=frozen(cards, np.int64),
        card_set=frozen(card_set, np.int32),
        revision=frozen(np.zeros(len(nodes)) if revisions is None else revisions, np.int64),
    )
    return NodeColumns(table, keys.values, tuple(each.values for each in values), taints.values, names.values)


def _labels(node: NodeDocument, hostname: bool) -> dict[str, str]:
    return {HOSTNAME: node.name, **node.labels} if hostname else node.labels
