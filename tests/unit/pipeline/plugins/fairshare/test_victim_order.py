"""From which queue the next victims go, in profile `kai`."""

from typing import Any

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.plugins.fairshare.order import Compared, dominant_share, keys_of, less
from pipeline.plugins.fairshare.victim_order import across_queues
from tests.support.fair_shares import file, group, queue
from tests.support.simulating import simulate

RECLAIM: dict[str, Any] = {"actions": ["reclaim"]}


def evicted(queues: list[dict[str, Any]], groups: list[dict[str, Any]], gpus: int = 8) -> list[str]:
    result = simulate(file(queues, groups, gpus, **RECLAIM))
    return sorted(one["task"].removeprefix("default/") for one in result["cycles"][0]["evictions"])


def lone(name: str, of: str, many: int) -> list[dict[str, Any]]:
    return [group(f"{name}{at}", of, running=1, created=float(at)) for at in range(many)]


def test_queues_that_are_equally_full_lose_in_turn() -> None:
    queues = [queue("a", 2), queue("b", 2), queue("c", 4)]
    groups = [*lone("one", "a", 4), *lone("two", "b", 4), group("new", "c", waiting=2, min_available=2)]
    assert evicted(queues, groups) == ["one3-r0", "two3-r0"]


def test_the_fuller_queue_loses_until_it_is_as_full_as_the_other() -> None:
    queues = [queue("a", 2), queue("b", 2), queue("c", 6)]
    groups = [*lone("one", "a", 6), *lone("two", "b", 4), group("new", "c", waiting=4, min_available=4)]
    assert evicted(queues, groups, 10) == ["one3-r0", "one4-r0", "one5-r0", "two3-r0"]


def test_departments_lose_in_turn_and_so_do_their_queues() -> None:
    queues = [queue("x", 2), queue("y", 2), queue("z", 4)]
    queues += [queue("x1", 1, "x"), queue("x2", 1, "x"), queue("y1", 2, "y"), queue("z1", 4, "z")]
    groups = [*lone("one", "x1", 2), *lone("two", "x2", 2), *lone("three", "y1", 4)]
    groups += [group("new", "z1", waiting=3, min_available=3)]
    assert evicted(queues, groups) == ["three2-r0", "three3-r0", "two1-r0"]


def test_victims_are_judged_without_those_that_return() -> None:
    """Four devices of one queue come first in its order, but with them it would fall below its share of two."""
    queues = [queue("a", 1), queue("b", 1, priority=1)]
    groups = [
        group("lasting", "b", running=3, min_available=3, preemptible=False, created=1.0),
        group("elastic", "a", running=3, created=2.0),
        group("gang", "a", running=2, min_available=2, created=3.0),
        group("new", "b", waiting=1, gpus=3),
    ]
    assert evicted(queues, groups) == ["elastic-r2", "gang-r0", "gang-r1"]


def one_by_one(queues: Compared, queue: list[int], held: np.ndarray, rest: np.ndarray) -> list[int]:
    """The same order, with every key worked out anew for every unit."""
    gone, left, order = np.zeros_like(queues.fair), list(range(len(queue))), []
    count = len(queues.parent)

    def following(one: int, keys: np.ndarray) -> int | None:
        own = next((unit for unit in left if queue[unit] == one), None)
        return own if own is not None else best(one, keys)

    def best(above: int, keys: np.ndarray) -> int | None:
        last, chosen = None, None
        for child in [one for one in range(count) if queues.parent[one] == above]:
            unit = following(child, keys)
            if unit is None:
                continue
            keys[child, 4] = dominant_share(queues, child, -gone[child] - rest[unit])
            if last is None or less(keys[last], keys[child]):
                last, chosen = child, unit
        return chosen

    while left:
        keys = keys_of(queues, np.zeros(queues.fair.shape), np.zeros(count, bool))
        unit = best(NONE, keys)
        assert unit is not None
        one = queue[unit]
        while one != NONE:
            gone[one] += held[unit]
            one = int(queues.parent[one])
        left.remove(unit)
        order.append(unit)
    return order


@pytest.mark.parametrize("seed", range(40))
def test_the_merged_order_is_that_of_choosing_anew_every_time(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count, units = int(draw.integers(1, 9)), int(draw.integers(1, 25))
    parent = np.array(
        [NONE if at == 0 or draw.random() < 0.4 else draw.integers(0, at) for at in range(count)], np.int32
    )
    leaves = np.setdiff1d(np.arange(count), parent)

    def some(top: int) -> np.ndarray:
        return draw.integers(0, top, (count, 2)).astype(float)

    queues = Compared(
        parent, draw.integers(0, 2, count).astype(np.int32), np.arange(count), some(9), some(5), some(9), some(20),
        np.array([40.0, 40.0]), np.array([True, True]),
    )  # fmt: skip
    queue = draw.choice(leaves, units).astype(np.int64)
    held = draw.integers(1, 4, (units, 2)).astype(float)
    rest = held + draw.integers(0, 4, (units, 2))
    assert across_queues(queues, queue, held, rest).tolist() == one_by_one(queues, queue.tolist(), held, rest)
