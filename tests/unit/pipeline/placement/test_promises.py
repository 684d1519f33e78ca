"""Which promised tasks have their room: each beside those before it."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.resources import fits
from pipeline.placement.promises import fitting
from tests.support.builders import Gang, Task, cluster

NODES, CARDS, MANY = 3, 2, 24


def test_each_task_fits_what_those_before_it_leave_and_one_that_does_not_fit_leaves_its_room_to_later_ones():
    draw = np.random.default_rng(0)
    tasks = [Task(cpu=cpu, memory=memory, gpu=gpu) for cpu in (0, 1, 3) for memory in (0, 2) for gpu in (0, 1)]
    snapshot = cluster([{}] * NODES, [Gang(tasks * 2)])
    request, kind = snapshot.shapes.request, snapshot.tasks.shape
    for _ in range(100):
        on_card = draw.integers(0, 3, len(request)) * (request[:, -1] > 0)
        snapshot = replace(snapshot, shapes=replace(snapshot.shapes, on_card=frozen(on_card, np.int64)))
        rows = draw.permutation(MANY)[: draw.integers(0, MANY)]
        node, card = draw.integers(0, NODES, len(rows)), draw.integers(NONE, CARDS, len(rows))
        room = draw.integers(-1, 9, (NODES, request.shape[1]))
        on_cards = draw.integers(0, 4, (NODES, CARDS))
        found = fitting(snapshot, rows, node, card, room, on_cards)
        left, left_on, expected = room.copy(), on_cards.copy(), list[bool]()
        for shape, at, on in zip(kind[rows].tolist(), node.tolist(), card.tolist(), strict=True):
            amount = on_card[shape]
            has = bool((amount == 0 or (on != NONE and left_on[at, on] >= amount)) and fits(request[shape], left[at]))
            left[at] -= has * request[shape]
            left_on[at, on] -= has * amount
            expected.append(has)
        assert found.tolist() == expected
        assert found.dtype == bool
