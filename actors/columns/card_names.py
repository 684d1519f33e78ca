"""Names of cards; in the columns a card is a position among those of its node."""

from __future__ import annotations

from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot


def card_names(snapshot: Snapshot, node: int) -> tuple[str, ...]:
    """The names of a node's cards, in the order of its columns."""
    return snapshot.vocabulary.card_sets[snapshot.nodes.card_set[node]]


def card_row(snapshot: Snapshot, node: int, name: str | None) -> int:
    """The position of a card among those of its node; NONE if the node has no card of that name, or for None."""
    names = card_names(snapshot, node)
    return names.index(name) if name in names else NONE
