"""Puts nodes that join or move among the columns of the others; the cost in Python is proportional to what is new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.cluster_file.documents import NodeDocument
from actors.columns.node_columns import NodeWords, node_columns
from actors.columns.node_order import Homes, Reordered, Reordering, TopologyOrder
from pipeline.cluster.arrays import NONE, Ids, frozen
from pipeline.cluster.resources import axis
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Nodes
from pipeline.cluster.updates.widen import widened
from pipeline.cluster.vocabulary import HOSTNAME, Vocabulary

#: The value of a node in a column that other nodes made wider.
_ABSENT = {"labels": NONE, "cards": 0}


@dataclass(frozen=True, slots=True)
class JoinedNodes:
    """The table of all nodes; nodes that joined or moved have revision 0."""

    vocabulary: Vocabulary
    nodes: Nodes
    reordered: Reordered


def join_nodes(
    snapshot: Snapshot,
    order: TopologyOrder,
    homes: Homes,
    nodes: Sequence[NodeDocument],
    rows: Sequence[int],
    departed: Sequence[int],
) -> JoinedNodes:
    """Put nodes in their place in the order of the topology.

    Parameters
    ----------
    order
        The order of the snapshot's nodes.
    rows
        The present row of each of ``nodes``; NONE for a new one.
    departed
        Rows of nodes that left.
    """
    resources = axis({*snapshot.vocabulary.resources, *(name for node in nodes for name in node.allocatable)})
    snapshot = widened(snapshot, resources)
    reordering = Reordering(order, homes)
    reordering.take_out(np.array(sorted({*departed, *(row for row in rows if row != NONE)}), np.int64))
    placed = reordering.put_in(nodes)
    moves = [(was, now) for was, now in zip(rows, placed.tolist(), strict=True) if was != NONE]
    reordered = reordering.done(placed, moves)
    words = NodeWords.of(snapshot.vocabulary)
    fresh = node_columns(nodes, resources, words, hostname=HOSTNAME in snapshot.vocabulary.label_keys)
    columns = {
        field.name: _merged(
            getattr(snapshot.nodes, field.name), getattr(fresh, field.name), reordered, _ABSENT.get(field.name, 0)
        )
        for field in fields(Nodes)
    }
    return JoinedNodes(words.into(snapshot.vocabulary), replace(fresh, **columns), reordered)


def _merged(known: NDArray[Any], fresh: NDArray[Any], made: Reordered, absent: int) -> NDArray[Any]:
    """A column of all nodes."""
    shape = (len(made.order.nodes), *np.maximum(known.shape, fresh.shape)[1:])
    result = np.full(shape, absent, known.dtype)
    kept = known if made.kept.all() else known[made.kept]
    if known.ndim == 1:
        result[made.kept_at], result[made.placed] = kept, fresh
    else:
        result[made.kept_at, : known.shape[1]] = kept
        result[made.placed, : fresh.shape[1]] = fresh
    result.flags.writeable = False
    return result


def same_cards(snapshot: Snapshot, card_sets: Sequence[tuple[str, ...]], card_set: Ids, node_of: Ids) -> Ids:
    """int32[N, D]: for each known card, its position on the new row of its node by name; NONE if it is gone.

    Parameters
    ----------
    card_sets, card_set
        Sets of names of cards by code, and the code of each node, after the change.
    node_of
        New row of each known node; NONE for one that left.
    """
    result = np.full(snapshot.nodes.cards.shape, NONE, np.int32)
    on = np.flatnonzero((snapshot.nodes.card_set > 0) & (node_of != NONE))
    pairs = np.stack([snapshot.nodes.card_set[on], card_set[node_of[on]]], axis=1)
    kinds, kind = np.unique(pairs, axis=0, return_inverse=True)
    for at, (was, now) in enumerate(kinds.tolist()):
        names = card_sets[now]
        for card, name in enumerate(snapshot.vocabulary.card_sets[was]):
            if name in names:
                result[on[kind.reshape(-1) == at], card] = names.index(name)
    return frozen(result, np.int32)
