"""Queue priority in reclaim: surplus is not taken from a sibling of higher priority, for surplus."""

from typing import Any

import pytest

from tests.support import fair_shares
from tests.support.fair_shares import GPU, file
from tests.support.small_clusters import named, played, task


def queue(name: str, gpus: int, weight: int, priority: int, **more: Any) -> dict[str, Any]:
    weights = {"cpu": 1, "memory": 1, GPU: weight}
    return fair_shares.queue(name, gpus, priority=priority, over_quota_weight=weights, **more)


def group(name: str, of: str, runs: bool = True, gpus: int = 1, **request: Any) -> dict[str, Any]:
    one = task(name, {"cpu": 1, "memory": "1G", GPU: gpus, **request}, "n0" if runs else None)
    return {"name": name, "queue": of, "phase": "Inqueue", "tasks": [one]}


def evicted(queues: list[dict[str, Any]], groups: list[dict[str, Any]], gpus: int) -> list[str]:
    return named(played(file(queues, groups, gpus, actions=["reclaim"]))[0]["evictions"])


@pytest.mark.parametrize("above", [None, "all"])
@pytest.mark.parametrize(("priority", "victims"), [(101, []), (100, ["theirs-1"]), (99, ["theirs-1"])])
def test_surplus_is_taken_for_surplus_only_from_a_queue_of_no_higher_priority(
    priority: int, victims: list[str], above: str | None
):
    top = [queue("all", 2, 1, 0)] if above else []
    queues = [*top, queue("mine", 1, 1, 100, parent=above), queue("theirs", 1, 0, priority, parent=above)]
    queues.append(queue("idle", 0, 0, 7, parent=above))
    groups = [group("mine-0", "mine"), group("mine-1", "mine", runs=False)]
    theirs = [group(f"theirs-{at}", "theirs", memory=0) for at in range(2)]
    assert evicted(queues, [*groups, *theirs], 3) == victims


def test_what_a_queue_deserves_is_taken_from_a_queue_of_higher_priority():
    queues = [queue("mine", 2, 1, 100), queue("theirs", 1, 0, 101)]
    groups = [group("mine-0", "mine"), group("mine-1", "mine", runs=False)]
    assert evicted(queues, [*groups, group("theirs-0", "theirs"), group("theirs-1", "theirs")], 3) == ["theirs-1"]


def test_a_queue_above_its_share_of_everything_comes_last_whatever_its_priority():
    bounded = {"deserved": {"cpu": 1, "memory": "1G", GPU: 1}, "over_quota_weight": 0}
    queues = [queue("mine", 1, 1, 100), queue("theirs", 1, 0, 101) | bounded]
    groups = [group("mine-0", "mine"), group("mine-1", "mine", runs=False)]
    theirs = [group(f"theirs-{at}", "theirs") for at in range(3)]
    assert evicted(queues, [*groups, *theirs], 4) == ["theirs-2"]
    assert evicted(queues, [*groups, *theirs[:2]], 3) == []


@pytest.mark.parametrize("deserved", [1, 2])
def test_priorities_are_compared_where_the_ancestors_of_two_queues_differ(deserved: int):
    """Also where the queue deserves what it asks for by itself: what its department does not deserve is surplus."""

    def tree(mine: int, theirs: int) -> list[dict[str, Any]]:
        above = [queue("a", 1, 1, mine), queue("b", 1, 0, theirs)]
        return [*above, queue("mine", deserved, 1, 100, parent="a"), queue("theirs", 1, 0, 201 - theirs, parent="b")]

    groups = [group("mine-0", "mine"), group("mine-1", "mine", runs=False)]
    groups += [group("theirs-0", "theirs"), group("theirs-1", "theirs")]
    assert evicted(tree(100, 101), groups, 3) == []
    assert evicted(tree(101, 100), groups, 3) == ["theirs-1"]


@pytest.mark.parametrize(("limit", "victims"), [(2, []), (1, ["theirs-1"]), (0, ["theirs-1"])])
@pytest.mark.parametrize("above", [False, True])
def test_what_a_lowered_limit_lets_in_no_more_is_taken_whatever_the_priority(
    limit: int, victims: list[str], above: bool
):
    """A victim that comes back before the podgroup that reclaims makes no room; one that may not come back does."""
    bound = {"capability": {GPU: limit}}
    top = [queue("all", 1, 0, 101, **bound if above else {})]
    queues = [queue("mine", 1, 1, 100), *top, queue("theirs", 1, 0, 100, parent="all", **{} if above else bound)]
    groups = [group("mine-0", "mine"), group("mine-1", "mine", runs=False)]
    assert evicted(queues, [*groups, group("theirs-0", "theirs"), group("theirs-1", "theirs")], 3) == victims


def test_of_two_that_are_above_their_shares_of_everything_the_one_of_higher_priority_comes_first():
    """The queue itself holds nothing, but its department holds more than its share, as the other does."""
    bounded = {"deserved": {"cpu": 1, "memory": "1G", GPU: 1}, "over_quota_weight": 0}

    def taken(beside: int) -> list[str]:
        above = [queue("a", 1, 0, 100) | bounded, queue("b", 1, 0, 101) | bounded]
        queues = [*above, queue("mine", 1, 0, 100, parent="a")]
        queues.append(queue("beside", 1, 0, 100, parent="a", reclaimable=False))
        groups = [group("mine-0", "mine", runs=False), *(group(f"beside-{at}", "beside") for at in range(beside))]
        theirs = [group(f"theirs-{at}", "theirs") for at in range(5)]
        return evicted([*queues, queue("theirs", 1, 0, 100, parent="b")], [*groups, *theirs], 5 + beside)

    assert taken(2) == []
    assert taken(1) == ["theirs-4"]


def test_what_holds_nothing_of_what_a_lowered_limit_is_about_may_come_back_so_another_task_goes():
    queues = [queue("mine", 1, 1, 100), queue("theirs", 1, 0, 101, capability={"memory": "1G"})]
    groups = [group("mine-0", "mine"), group("mine-1", "mine", runs=False)]
    theirs = [group(f"theirs-{at}", "theirs") for at in range(2)]
    assert evicted(queues, [*groups, *theirs, group("theirs-2", "theirs", memory=0)], 4) == ["theirs-1"]
    assert evicted(queues, [*groups, *theirs, group("theirs-2", "theirs")], 4) == ["theirs-2"]


def test_what_goes_beyond_a_lowered_limit_is_kept_where_some_of_it_may_come_back():
    """Either of the two may come back, though not both: so no room for two would be made."""
    queues = [queue("mine", 1, 1, 100), queue("theirs", 1, 0, 101, capability={GPU: 2})]
    theirs = [group(f"theirs-{at}", "theirs") for at in range(3)]
    assert evicted(queues, [group("mine-0", "mine", runs=False, gpus=2), *theirs], 3) == []
    queues[1]["capability"] = {GPU: 1}
    assert evicted(queues, [group("mine-0", "mine", runs=False, gpus=2), *theirs], 3) == ["theirs-1", "theirs-2"]
