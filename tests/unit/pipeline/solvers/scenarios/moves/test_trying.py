"""Reclaims from a queue that holds little more than its share, where every victim counts as taken, moved or not.

There are more candidates than those of which every set is tried.
"""

from typing import Any

from tests.support.fair_shares import GPU, file, group, queue
from tests.support.simulating import simulate

_SMALL = 12


def evicted(lone: dict[str, tuple[int, int]], over: int, waiting: int) -> list[str]:
    """Who goes for a gang whose tasks ask for two devices each.

    Queue `a` has podgroups of one task each: ``lone`` says their nodes and sizes, the youngest first. On further nodes
    with one device each it has older ones, which are of no use. It holds ``over`` more than its share.
    """
    groups, nodes = list[dict[str, Any]](), dict[str, int]()
    small = {f"small{at}": (10 + at, 1) for at in range(_SMALL)}
    for age, (name, (node, gpus)) in enumerate((lone | small).items()):
        podgroup = group(name, "a", running=1, gpus=gpus, created=float(-age))
        podgroup["tasks"][0]["node"] = f"n{node}"
        nodes[f"n{node}"] = nodes.get(f"n{node}", 0) + gpus
        groups.append(podgroup)
    groups.append(group("new", "b", waiting=waiting, gpus=2, min_available=waiting))
    held = sum(nodes.values())
    policy = {"actions": ["reclaim"], "allow_consolidating_reclaim": False}
    cluster = file([queue("a", held - over), queue("b", 2 * waiting)], groups, **policy)
    rest = {"cpu": 90, "memory": "90G", "pods": 90}
    cluster["nodes"] = [{"name": name, "allocatable": {**rest, GPU: gpus}} for name, gpus in nodes.items()]
    return [one["podgroup"].removeprefix("default/") for one in simulate(cluster)["cycles"][0]["evictions"]]


def test_a_podgroup_goes_alone_where_those_before_it_may_not_go_together() -> None:
    """The two youngest make room on the first node, but the queue may lose only one podgroup."""
    assert evicted({"one": (0, 1), "two": (0, 1), "alone": (1, 2)}, over=1, waiting=1) == ["alone"]


def test_more_podgroups_are_looked_at_where_those_that_suffice_may_not_go_together() -> None:
    """With the first and the last on a node each the queue stays above its share until the last goes."""
    lone = {"first": (0, 2), "one": (1, 1), "two": (1, 1), "last": (2, 2)}
    assert evicted(lone, over=3, waiting=2) == ["first", "last"]


def test_a_queue_that_holds_no_more_than_its_share_loses_nothing() -> None:
    assert evicted({"one": (0, 1), "two": (0, 1), "alone": (1, 2)}, over=0, waiting=1) == []
