"""One podgroup in place of others of its priority, where another queue loses them."""

from typing import Any

import numpy as np
import pytest

from pipeline.solvers.scenarios.cheapest import _all_by_priority, _different_orders
from tests.support.small_clusters import named, played, podgroup, world

GPU = "nvidia.com/gpu"


def group(name: str, queue: str, *tasks: tuple[int, str | None], priority: int = 10) -> dict[str, Any]:
    """Each task with its devices and its node; None: it waits."""
    requests = [{GPU: gpus} for gpus, _ in tasks]
    said = {"queue": queue, "priority": priority, "min_available": len(tasks)}
    return podgroup(name, requests, [node for _, node in tasks], **said)


def reclaimed(gpus: dict[str, int], due: dict[str, int], *groups: dict[str, Any]) -> list[str]:
    """What is evicted where the nodes have devices and the queues deserve some."""
    nodes = {name: {GPU: many} for name, many in gpus.items()}
    queues = {name: {"deserved": {GPU: many}} for name, many in due.items()}
    return named(played(world(nodes, queues, groups, now=1e5, profile="kai", actions=["reclaim"]))[0]["evictions"])


def test_a_podgroup_that_the_law_refuses_beside_the_others_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two podgroups of the queue ``v0`` would hold less than these two, but the second is what ``v0`` deserves.

    So few tasks would have all their sets tried, which would find the same.
    """
    monkeypatch.setattr("pipeline.solvers.scenarios.small_sets._TASKS", 0)
    groups = [
        group("g0", "v1", (3, "n0")), group("g1", "v0", (2, "n1"), (3, "n2")), group("g3", "v1", (1, "n1")),
        group("g4", "v1", (1, "n0"), (1, "n1")), group("g5", "v0", (1, "n2")),
        group("p", "q", (2, None), (2, None), (2, None), priority=90),
    ]  # fmt: skip
    victims = reclaimed({f"n{at}": 4 for at in range(3)}, {"q": 12, "v0": 5, "v1": 1}, *groups)
    assert sorted(victims) == ["g0-0", "g1-0", "g1-1"]


@pytest.mark.parametrize(("most", "other"), [(0, "b2-1"), (64, "b2-0")])
def test_what_is_lawful_only_beside_victims_of_the_same_department_goes_with_them(
    most: int, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``a`` is above its share and takes from ``b`` only beside its own, whether all sets are tried or not.

    ``b1`` makes room without ``kin0`` and ``kin1``, so it is lawful with no set of which all is needed.
    """
    monkeypatch.setattr("pipeline.solvers.scenarios.small_sets._TASKS", most)
    above = {"mine": "a", "kin0": "a", "kin1": "a", "over": "b"}
    due = {"a": 2, "b": 5, "mine": 7, "kin0": 1, "kin1": 0, "over": 3}
    queues = {name: {"deserved": {GPU: many}, "parent": above.get(name)} for name, many in due.items()}
    groups = [
        group("b0", "over", (2, "n2"), priority=1),
        group("b1", "over", (1, "n2"), (1, "n1"), (1, "n0"), (1, "n1"), priority=0),
        group("a0", "kin0", (1, "n2"), (1, "n2"), priority=1) | {"created": 3.0},
        group("a1", "kin1", (1, "n0"), priority=1) | {"created": 2.0},
        group("b2", "over", (1, "n2"), (1, "n2"), priority=1) | {"created": 3.0, "min_available": 1},
        group("p", "mine", (1, None), (1, None), (2, None), (1, None), priority=0),
    ]
    nodes = {"n0": {GPU: 2}, "n1": {GPU: 3}, "n2": {GPU: 7}}
    found = played(world(nodes, queues, groups, now=1e5, profile="kai", actions=["reclaim"]))[0]
    assert sorted(named(found["evictions"])) == ["a0-0", "a0-1", "a1-0", other]


@pytest.mark.parametrize(("hours", "expected"), [(0, ["big-0"]), (1, [f"s{at}-0" for at in range(8)])])
def test_in_reclaim_one_podgroup_goes_in_place_of_many_less_important_ones(hours: int, expected: list[str]) -> None:
    """No set breaks less priority by priority than the eight; one more important one is enough, if it ran no longer."""
    small = [group(f"s{at}", "over", (1, "n0"), priority=0) for at in range(8)]
    big = group("big", "over", (9, "n0"), priority=1) | {"started": 1e5 - 3600 * hours}
    assert reclaimed({"n0": 17}, {"over": 0, "due": 8}, *small, big, group("p", "due", (8, None))) == expected


@pytest.mark.parametrize("seed", range(20))
def test_orders_of_return_are_those_of_their_keys_each_once(seed: int) -> None:
    rng, by_size = np.random.default_rng(seed), bool(seed % 2)
    many = int(rng.integers(1, 9))
    held, whole, late = rng.integers(0, 3, many) / 3, rng.random(many) < 0.7, -np.arange(many)
    priority = rng.choice(np.array([-(1 << 31), 0, 7], np.int32), many)
    before = -priority.astype(np.int64)
    orders = [np.lexsort(keys) for keys in ((late,), (late, held, ~whole, before), (late, -held, ~whole, before))]
    orders += [np.lexsort((late, before, held, ~whole))] if by_size else []
    expected = list(dict.fromkeys(tuple(order.tolist()) for order in orders))
    assert [tuple(order) for order in _different_orders(held, whole, priority, by_size).tolist()] == expected
    both = _all_by_priority(np.array([held, -held]), whole, priority).tolist()
    assert both == [order.tolist() for order in orders[1:3]]
