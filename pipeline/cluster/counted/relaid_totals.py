"""The totals on nodes or queues that are numbered anew: moved, not counted again."""

from dataclasses import fields

import numpy as np

from pipeline.cluster.arrays import NONE, Ids, Longs, sealed
from pipeline.cluster.counted.counting import add_requests
from pipeline.cluster.counted.totals import Sums, Totals, Usage
from pipeline.cluster.tables import Nodes
from pipeline.records import replace


def on_nodes(totals: Totals, node_of: Ids, card_of: Ids, nodes: Nodes) -> Totals:
    """``totals`` on nodes numbered anew, if no task lost its node or card by it.

    Parameters
    ----------
    node_of: int32[N]
        Per known node its new row, NONE if it is gone.
    card_of: int32[N, D]
        Per known card its new position there.
    """
    kept = np.flatnonzero(node_of != NONE)
    node, card = np.nonzero(card_of[kept] != NONE)
    place = node_of[kept[node]], card_of[kept[node], card]

    def moved(column: Longs) -> Longs:
        result = np.zeros((len(nodes), column.shape[1]), np.int64)
        if column.any():  # mostly nothing is promised or ending, and memory of zeros costs nothing until it is written
            result[node_of[kept]] = column[kept]
        return sealed(result)

    def moved_cards(column: Longs) -> Longs:
        result = np.zeros(nodes.cards.shape, np.int64)
        result[place] = column[kept[node], card]
        return sealed(result)

    return replace(
        totals,
        nodes=Usage(*(moved(getattr(totals.nodes, one.name)) for one in fields(Usage))),
        cards=Usage(*(moved_cards(getattr(totals.cards, one.name)) for one in fields(Usage))),
    )


def on_queues(totals: Totals, queue: Ids, queues: int) -> Totals:
    """``totals`` on another table of queues: ``queue`` int32[G] is that of each podgroup."""
    owner, every = queue.astype(np.int64), np.arange(len(queue), dtype=np.int32)

    def summed(column: Longs) -> Longs:
        result = np.zeros((queues, column.shape[1]), np.int64)
        add_requests(result, owner, every, column, 1)
        return sealed(result)

    sums = totals.podgroup_sums
    return replace(totals, queue_sums=Sums(*(summed(getattr(sums, one.name)) for one in fields(Sums))))
