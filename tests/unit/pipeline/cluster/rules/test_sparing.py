"""Which candidates queues can spare, one after the other, against the rule in words."""

from itertools import groupby

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, Bools, Longs
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.sparing import Asking, Entitled, spared

#: The queue above each: 0 is above 1 and 2, and 2 above 3.
PARENT = (NONE, 0, 0, 2)
REST = np.arange(4) != PODS


def may_go(taken: Longs, queue: int, left: Longs, entitled: Entitled, asking: Asking, strict: bool) -> bool:
    """Whether a queue, and those that answer for it, can lose this."""
    holds = taken > 0
    if not strict and not (asking.asked & holds).any():
        return False
    guarded = holds & REST if strict else np.ones(4, bool)
    if (left[queue] - taken < entitled.guarantee[queue])[guarded].any():
        return False
    if asking.related[queue] and not (holds & (entitled.deserved[queue] > 0)).any():
        return False
    for row in asking.answer[queue]:
        if row == NONE:
            break
        counted, deserved = holds & entitled.counts[row] & REST, entitled.deserved[row]
        if strict and (left[row] - taken < deserved)[counted].any():
            return False
        if not strict and not (left[row] > deserved)[counted].any() and (holds & (deserved > 0)).any():
            return False
    return True


def plainly(
    queue: Longs, held: Longs, unit: Longs, allocated: Longs, entitled: Entitled, asking: Asking, strict: bool
) -> Bools:
    """Unit by unit: it goes if all that it holds may go, one after the other."""
    result, left = np.zeros(len(queue), bool), allocated.copy()
    for _, together in groupby(range(len(queue)), key=lambda at: int(unit[at]) if unit[at] != NONE else -2 - at):
        after, rows = left.copy(), list(together)
        for at in rows:
            result[at] = may_go(held[at], queue[at], after, entitled, asking, strict)
            if not result[at]:
                break
            row = int(queue[at])
            while row != NONE:
                after[row] -= held[at]
                row = PARENT[row]
        result[rows] = result[rows].all()
        left = after if result[rows].all() else left
    return result


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_a_candidate_may_go_as_far_as_all_who_answer_for_its_queue_can_lose_it(seed: int, strict: bool) -> None:
    rng = np.random.default_rng(seed)
    held, allocated = rng.integers(0, 3, (10, 4)), rng.integers(4, 12, (4, 4))
    entitled = Entitled(
        rng.integers(0, 6, (4, 4)) * (rng.random((4, 4)) < 0.7), rng.random((4, 4)) < 0.8,
        rng.integers(0, 5, (4, 4)) * (rng.random((4, 4)) < 0.4), np.array(PARENT, np.int32),
    )  # fmt: skip
    answer = np.array([[0, NONE], [1, NONE], [2, 0], [3, 2]], np.int32)
    asking = Asking(rng.random(4) < 0.6, answer, rng.random(4) < 0.3)
    unit = np.sort(rng.integers(0, 5, 10))
    unit[unit < 2] = NONE
    asked = rng.integers(1, 4, 10).astype(np.int32), held, unit, allocated, entitled, asking, strict
    assert spared(*asked).tolist() == plainly(*asked).tolist()
