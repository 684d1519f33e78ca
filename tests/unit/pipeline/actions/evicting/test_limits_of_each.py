"""Limits on what one decision evicts hold for each of several podgroups that are served at once."""

import pytest

from tests.support.small_clusters import REST, Document, named, played, podgroup, world


def decided(profile: str, ratio: float) -> list[list[str]]:
    """Whom two single tasks evict: on two nodes runs a gang that breaks as a whole, twice as large as either."""
    runs = podgroup("low", [{"gpu": 4}] * 2, ["n0", "n1"], phase="Running", started=1.0, min_available=2)
    waits: list[Document] = [
        podgroup(f"high{at}", [{"gpu": 4}], priority=9, phase="Inqueue", min_available=1) for at in range(2)
    ]
    queues = {"q": {"deserved": {"gpu": 8, **(REST if profile == "kai" else {})}}}
    limits = {"evictionbudget": {"arguments": {"ratio": ratio}}}
    nodes = {f"n{at}": {"gpu": 4} for at in range(2)}
    (cycle,) = played(world(nodes, queues, [runs, *waits], profile=profile, actions=["preempt"], plugins=limits))
    return [named(cycle[kind]) for kind in ("evictions", "nominations")]


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_what_is_in_proportion_to_all_that_two_ask_for_is_too_much_for_one(profile: str) -> None:
    """The plan for both was dealt out, and the first evicted all of it."""
    assert decided(profile, 1.0) == [[], []]
    assert decided(profile, 2.0) == [["low-0", "low-1"], ["high0-0", "high1-0"]]
