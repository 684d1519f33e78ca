"""Tasks that hold parts of cards make room too: they move to a card that has their part, on the node or on another."""

from typing import Any

import pytest

from tests.support.carded import carded, holder, node, waiting
from tests.support.simulating import simulate


def world(*holders: dict[str, Any], nodes: int = 2, actions: tuple[str, ...] = ("allocate", "consolidation")) -> Any:
    """Nodes with two cards of 8Gi each; a task waits for a whole card."""
    made = carded(list(holders), waiting("whole", "8Gi"), nodes=[node(f"n{at}") for at in range(nodes)])
    return made | {"now": 1000.0, "policy": {"profile": "kai", "actions": list(actions)}}


def played(document: dict[str, Any], cycles: int = 4) -> tuple[list[str], dict[str, tuple[str, str]]]:
    """Who was evicted in any cycle, and where each task runs in the end: node and card."""
    done = simulate(document, cycles)
    assert done["error"] is None, done["error"]
    evicted = [one["task"] for cycle in done["cycles"] for one in cycle["evictions"]]
    ends = {name: (one["node"], one.get("card")) for name, one in done["final"].items() if one["status"] == "Running"}
    return [one.removeprefix("default/") for one in evicted], {
        name.removeprefix("default/"): place for name, place in ends.items()
    }


def halves(*places: tuple[str, str], part: str = "4Gi", priority: int = 50) -> list[dict[str, Any]]:
    return [holder(f"h{at}", part, card, priority, on) for at, (on, card) in enumerate(places)]


def test_a_task_moves_to_a_card_of_another_node_so_that_a_whole_card_is_free() -> None:
    full = [holder(f"full-{at}", "8Gi", "gpu-1", 100, f"n{at}") for at in range(2)]
    evicted, ends = played(world(*full, *halves(("n0", "gpu-0"), ("n1", "gpu-0"))))
    (moved,) = evicted
    assert len(ends) == 5  # nothing lost its place, and the new task runs
    assert ends["h0"] == ends["h1"] != ends["whole-0"]
    assert ends["whole-0"] == {"h0": ("n0", "gpu-0"), "h1": ("n1", "gpu-0")}[moved]


def test_a_task_moves_to_another_card_of_its_node() -> None:
    evicted, ends = played(world(*halves(("n0", "gpu-0"), ("n0", "gpu-1")), nodes=1))
    (moved,) = evicted
    assert ends["whole-0"] != ends[moved]
    assert ends["h0"] == ends["h1"]


def test_no_part_moves_where_no_card_has_room_for_it() -> None:
    places = [(f"n{at}", f"gpu-{card}") for at in range(2) for card in range(2)]
    assert played(world(*halves(*places, part="5Gi")))[0] == []


def test_a_part_does_not_move_to_two_halves_of_its_size() -> None:
    holders = [holder("big", "6Gi", "gpu-0", 50, "n0"), *halves(("n0", "gpu-1"), ("n1", "gpu-0"), ("n1", "gpu-1"))]
    evicted, ends = played(world(*holders))
    assert "big" not in evicted
    assert ends["whole-0"] not in [place for name, place in ends.items() if name != "whole-0"]


@pytest.mark.parametrize("profile", ["kai", "default"])
def test_a_victim_that_finds_another_card_is_moved_and_not_lost(profile: str) -> None:
    """Reclaim and preempt leave a victim its place elsewhere where the profile looks for one."""
    document = world(*halves(("n0", "gpu-0"), ("n0", "gpu-1"), priority=1), nodes=1, actions=("allocate", "preempt"))
    document["policy"]["profile"] = profile
    evicted, ends = played(document)
    assert len(evicted) == 1
    assert "whole-0" in ends
