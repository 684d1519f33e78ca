"""Nodes as columns: allocatable resources, and labels and taints as codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from actors.cluster_file.documents import CardDocument, NodeDocument
from actors.columns.row_builder import Interned
from actors.documents.alike import Alike
from actors.documents.quantities import Quantity, base_units, card_units
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.resources import PODS
from pipeline.cluster.tables import Nodes
from pipeline.cluster.updates.copy_on_write import picked
from pipeline.cluster.vocabulary import HOSTNAME, Constraint, Taint, Vocabulary

#: Number of pods that a node takes if it does not state it: the default of a kubelet.
PODS_BY_DEFAULT = 110


def vector(resources: Sequence[str], quantities: dict[str, Quantity], absent: int = 0) -> list[int]:
    """Quantities on the resource axis, in base units; the word ``unlimited`` becomes ``UNLIMITED``."""
    return [
        base_units(resource, quantities[resource], unlimited=True) if resource in quantities else absent
        for resource in resources
    ]


def allocatable(resources: Sequence[str], node: NodeDocument) -> list[int]:
    """The allocatable resources of a node, int[R]."""
    offered = vector(resources, node.allocatable)
    if resources[PODS] not in node.allocatable:
        offered[PODS] = PODS_BY_DEFAULT
    return offered


def cards_in_order(node: NodeDocument) -> list[CardDocument]:
    """The cards of a node by name, as its columns are: the order of a file decides nothing."""
    return sorted(node.cards, key=lambda card: card.name)


def hostname_asked(constraints: Iterable[Constraint]) -> bool:
    """Whether a selector or an affinity asks for the label that every node has."""
    return any(
        requirement.key == HOSTNAME
        for constraint in constraints
        for requirement in (*constraint.node_selector, *(each for term in constraint.node_affinity for each in term))
    )


@dataclass(slots=True)
class NodeWords:
    """Codes of labels, sets of taints and sets of cards; known ones keep their codes."""

    keys: Interned[str]
    values: list[Interned[str]]
    taint_sets: Interned[tuple[Taint, ...]]
    card_sets: Interned[tuple[str, ...]]

    @classmethod
    def of(cls, words: Vocabulary) -> NodeWords:
        """The codes of a vocabulary, to which more can be added."""
        values = [Interned(known) for known in words.label_values]
        return cls(Interned(words.label_keys), values, Interned(words.taint_sets), Interned(words.card_sets))

    def label(self, key: str, value: str) -> tuple[int, int]:
        """The column and the code of a label."""
        column = self.keys.row(key)
        if column == len(self.values):
            self.values.append(Interned())
        return column, self.values[column].row(value)

    def into(self, vocabulary: Vocabulary) -> Vocabulary:
        """The vocabulary with these words."""
        return replace(
            vocabulary,
            label_keys=self.keys.values,
            label_values=tuple(each.values for each in self.values),
            taint_sets=self.taint_sets.values,
            card_sets=self.card_sets.values,
        )


def node_columns(nodes: Sequence[NodeDocument], resources: Sequence[str], words: NodeWords, *, hostname: bool) -> Nodes:
    """Columns of nodes, in the order given; revisions are 0.

    Parameters
    ----------
    words
        New words are added to it.
    hostname
        Whether each node gets the label ``HOSTNAME``.
    """
    kinds, kind = _kinds(nodes, hostname)
    return picked(_columns_of(kinds, resources, words, hostname), np.array(kind, np.int64))


def _kinds(nodes: Sequence[NodeDocument], hostname: bool) -> tuple[Sequence[NodeDocument], Sequence[int]]:
    """One node of each kind, in the order of their first rows, and the kind of each."""
    if isinstance(nodes, Alike) and not hostname:
        return nodes.kinds, nodes.kind
    # Nodes that were read as alike share their parts.
    first: dict[tuple[object, ...], NodeDocument] = {}
    parts = [_parts(node, hostname) for node in nodes]
    for part, node in zip(parts, nodes, strict=True):
        first.setdefault(part, node)
    number = {part: at for at, part in enumerate(first)}
    return [*first.values()], [number[part] for part in parts]


def _parts(node: NodeDocument, hostname: bool) -> tuple[object, ...]:
    """The parts of a node that make a row of columns, large ones by identity."""
    large = id(node.allocatable), id(node.labels), id(node.taints), id(node.cards)
    return (*large, node.unschedulable, node.name if hostname else None)


def _columns_of(nodes: Sequence[NodeDocument], resources: Sequence[str], words: NodeWords, hostname: bool) -> Nodes:
    labels = [_labels(node, hostname) for node in nodes]
    for given in labels:
        for key in sorted(given):
            words.keys.row(key)
    codes = [[words.label(key, given[key]) for key in sorted(given)] for given in labels]
    table = np.full((len(nodes), len(words.keys)), NONE, np.int32)
    for row, pairs in enumerate(codes):
        for column, code in pairs:
            table[row, column] = code
    taint_set = [words.taint_sets.row(_taints(node)) for node in nodes]
    on_node = [cards_in_order(node) for node in nodes]
    card_set = [words.card_sets.row(tuple(card.name for card in those)) for those in on_node]
    cards = np.zeros((len(nodes), max(map(len, words.card_sets.values))), np.int64)
    for row, those in enumerate(on_node):
        cards[row, : len(those)] = [card_units(card.capacity) for card in those]
    offered = [allocatable(resources, node) for node in nodes]
    return Nodes(
        allocatable=frozen(np.array(offered, np.int64).reshape(len(nodes), len(resources)), np.int64),
        schedulable=frozen([not node.unschedulable for node in nodes], np.bool_),
        taint_set=frozen(taint_set, np.int32),
        labels=frozen(table, np.int32),
        cards=frozen(cards, np.int64),
        card_set=frozen(card_set, np.int32),
        revision=frozen(np.zeros(len(nodes)), np.int64),
    )


def _labels(node: NodeDocument, hostname: bool) -> dict[str, str]:
    return {HOSTNAME: node.name, **node.labels} if hostname else node.labels


def _taints(node: NodeDocument) -> tuple[Taint, ...]:
    distinct = {Taint(taint.key, taint.value, taint.effect) for taint in node.taints}
    return tuple(sorted(distinct, key=lambda taint: (taint.key, taint.value, taint.effect)))
