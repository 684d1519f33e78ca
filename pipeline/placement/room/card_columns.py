"""Cards as resources of nodes, for a gang whose tasks ask for parts of cards.

What all cards of a node have together is one more resource: nothing fits that asks for more, and it says how much must
be freed. Each card is a resource as well, which tasks hold and nodes have; the gang asks for nothing of a certain one.
A node takes as many tasks as its cards do, one by one: see ``most_on_cards``. So slots decide where tasks are of one
shape, and say what each of several can have at most; the same kernels serve.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Longs
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.need import Need
from pipeline.placement.room.room_columns import RoomColumns, wider


def asks_for_cards(snapshot: Snapshot, need: Need) -> bool:
    """Whether tasks of the need ask for parts of cards."""
    return bool(snapshot.shapes.on_card[need.shapes].any())


def cards_scarcer(snapshot: Snapshot, need: Need, resource: int) -> bool:
    """Whether the need asks for a larger part of what cards have for its tasks than of what is free of a resource."""
    asked, free = snapshot.shapes.on_card[need.shapes], snapshot.card_room.future
    least = int(asked[asked > 0].min())
    there = int((free[free >= least] // least).sum()) * least
    return bool((asked @ need.count) / (there + 1.0) >= need.total[resource] / (snapshot.room.free[resource] + 1.0))


def with_cards(columns: RoomColumns, snapshot: Snapshot, need: Need) -> RoomColumns:
    """The columns, one for what all cards of a node have, and one for each card."""
    room, on_card, cards = snapshot.card_room, snapshot.shapes.on_card, snapshot.nodes.cards.shape[1]
    some = np.flatnonzero((on_card > 0)[snapshot.placed.shape])
    card = snapshot.tasks.card[snapshot.occupancy.task[some]].astype(np.int64)
    of, card, form = columns.told_apart(some, card - NONE, cards - NONE)
    part = on_card[columns.shape[of]][:, None] * (card[:, None] == np.arange(cards) - NONE)

    def with_more(rows: Longs, sums: Longs, each: Longs) -> Longs:
        return wider(rows, sums[:, None], each)

    none = np.zeros((len(columns.held), cards), np.int64)
    return columns._replace(
        request=wider(columns.request, on_card[need.shapes][:, None]),
        held=with_more(
            np.concatenate([columns.held, columns.held[of]]),
            np.concatenate([np.zeros(len(none), np.int64), part.sum(axis=1)]),
            np.concatenate([none, part]),
        ),
        shape=np.append(columns.shape, columns.shape[of]),
        form=form,
        # What was promised beyond a card is missing there, and on no other one.
        future=with_more(columns.future, np.maximum(room.future, 0).sum(axis=1), room.future),
        capacity=with_more(columns.capacity, room.capacity.sum(axis=1), room.capacity),
        nominated=with_more(columns.nominated, np.zeros(len(room.nominated), np.int64), room.nominated),
        cards=1 + cards,
    )
