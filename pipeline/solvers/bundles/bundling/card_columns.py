"""Cards as resources of nodes, for a gang whose tasks ask for parts of cards.

What all cards of a node have together is one more resource: nothing fits that asks for more, and it says how much must
be freed. Where tasks are of one shape each card is a resource as well. A task asks for its part of any one of them,
which is said by a request below 0, see ``slots_at``: a node takes as many as its cards do, one by one. So slots decide,
and the same kernels serve.
"""

import numpy as np

from pipeline.cluster.arrays import Longs, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.need import Need
from pipeline.solvers.bundles.bundling.room_columns import RoomColumns, wider


def asks_for_cards(snapshot: Snapshot, need: Need) -> bool:
    """Whether tasks of the need ask for parts of cards."""
    return bool(snapshot.shapes.on_card[need.shapes].any())


def cards_scarcer(snapshot: Snapshot, need: Need, resource: int) -> bool:
    """Whether tasks of the need ask for a larger part of what cards have for them than of what nodes have of a resource."""
    asked, free = snapshot.shapes.on_card[need.shapes], snapshot.card_room.future
    least = max(int(asked[asked > 0].min()), 1)
    there = int((np.maximum(free, 0) // least).sum()) * least
    return bool((asked @ need.count) / (there + 1.0) >= need.total[resource] / (snapshot.room.free[resource] + 1.0))


def with_cards(columns: RoomColumns, snapshot: Snapshot, need: Need) -> RoomColumns:
    """The columns, one for what all cards of a node have, and for tasks of one shape one for each card."""
    room, on_card = snapshot.card_room, snapshot.shapes.on_card
    cards, each = room.future.shape[1], np.arange(room.future.shape[1])
    more = 1 + cards * (len(need.shapes) == 1)
    on = snapshot.tasks.card[snapshot.occupancy.task].astype(np.int64)
    of, card, form = columns.told_apart(on + 1, cards + 1)
    part = on_card[columns.shape[of]][:, None] * (card[:, None] == each + 1)
    asked = on_card[need.shapes][:, None]
    # What was promised beyond a card is missing there, and on no other one.
    there = np.maximum(room.future, 0).sum(axis=1, keepdims=True)

    def with_more(rows: Longs, sums: Longs, on_cards: Longs) -> Longs:
        return wider(rows, np.hstack([sums, on_cards])[:, :more])

    none = np.zeros((len(columns.held), 1 + cards), np.int64)
    return columns._replace(
        request=with_more(columns.request, asked, -asked.repeat(cards, axis=1)),
        held=frozen(
            np.vstack(
                [
                    with_more(columns.held, none[:, :1], none[:, 1:]),
                    with_more(columns.held[of], part.sum(axis=1, keepdims=True), part),
                ]
            ),
            np.int64,
        ),
        shape=np.append(columns.shape, columns.shape[of]),
        form=form,
        future=with_more(columns.future, there, room.future),
        capacity=with_more(columns.capacity, room.capacity.sum(axis=1, keepdims=True), room.capacity),
        nominated=with_more(columns.nominated, np.zeros_like(there), room.nominated),
        cards=more,
    )
