"""Which victims a reclaim takes where the quota does not last for all candidates in the order of return."""

from typing import Any

import pytest

from pipeline.decision.plan import Plan
from pipeline.policy import Purpose
from pipeline.propose import propose
from tests.support.brute_force import attempt_of, crowded
from tests.support.gathering import Outcome, cluster_file, running, waiting
from tests.support.lending_clusters import LendingCluster

NODES = [f"n{at}" for at in range(8)]
#: Four podgroups with half a node each; the other halves never go.
HALVES = [
    running(f"{name}{at}", [NODES[at]], 2, queue="a", priority=1, preemptible=name == "half")
    for name in ("half", "kept")
    for at in range(4)
]


def reclaimed(podgroups: list[dict[str, Any]], nodes: int, *, cpu: int = 4, keeps: int = 8) -> Outcome:
    """A gang with a task for each of some nodes of four cores reclaims from queue ``a``, which keeps so many cores."""
    queues = [{"name": "a", "deserved": {"cpu": keeps}}, {"name": "c", "deserved": {"cpu": cpu * nodes}}]
    job = waiting("job", [cpu] * nodes, queue="c", priority=1)
    return Outcome(cluster_file({"s": {"b": NODES}}, 4, [*podgroups, job], queues=queues))


def test_podgroups_that_free_no_node_do_not_use_the_quota_up() -> None:
    """Queue ``a`` may lose eight cores: as much as the halves hold, which come first, or the larger podgroup."""
    large = running("large", NODES[4:6], 4, queue="a", priority=5)
    last = running("last", NODES[6:], 4, queue="a", priority=9)
    assert reclaimed([*HALVES, large, last], 2).evicted == ["large-0", "large-1"]


def test_one_podgroup_that_is_enough_goes_where_it_must_be_the_last() -> None:
    """Only one podgroup may go; the usual order takes one that frees a node too few, though all can be spared."""
    few = running("few", NODES[4:5], 4, queue="a", priority=1)
    enough = running("enough", NODES[5:], 4, queue="a", priority=5)
    assert reclaimed([*HALVES, few, enough], 3).evicted == ["enough-0", "enough-1", "enough-2"]


def test_the_podgroup_that_repels_the_gang_goes_though_less_important_ones_would_use_the_quota_up() -> None:
    """One node has room for the gang, which a small task there repels; on the others no half makes enough room."""
    noisy = running("noisy", NODES[4:5], 1, queue="a", priority=5)
    noisy["tasks"][0]["labels"] = {"app": "noisy"}
    job = waiting("job", [3], queue="c", priority=1)
    apart = {"topology_key": "kubernetes.io/hostname", "match_labels": {"app": "noisy"}}
    job["tasks"][0]["pod_anti_affinity"] = [apart]
    hopeless = waiting("hopeless", [2], queue="c", priority=0)
    hopeless["tasks"][0]["node_selector"] = {"zone": "none"}
    queues = [{"name": "a", "deserved": {"cpu": 15}}, {"name": "c", "deserved": {"cpu": 5}}]
    found = Outcome(cluster_file({"s": {"b": NODES[:5]}}, 4, [*HALVES, noisy, job, hopeless], queues=queues))
    assert found.evicted == ["noisy-0"]


def test_one_podgroup_that_is_enough_by_itself_goes_from_the_queue_that_can_lose_it() -> None:
    """Of two queues, one can lose its only podgroup and no other; the other, small ones or one that is enough."""
    nodes = [f"m{at:02}" for at in range(15)]
    podgroups = [
        running("one", nodes[:1], 4, queue="b", priority=1),
        running("three", nodes[1:4], 4, queue="b", priority=1),
        running("five", nodes[4:9], 4, queue="a", priority=1),
        running("six", nodes[9:], 4, queue="b", priority=2),
        waiting("job", [4] * 6, queue="c", priority=1),
    ]
    queues = [{"name": name, "deserved": {"cpu": cpu}} for name, cpu in (("a", 9), ("b", 16), ("c", 24))]
    case = Outcome(cluster_file({"s": {"b": nodes}}, 4, podgroups, queues=queues))
    assert case.evicted == [f"six-{at}" for at in range(6)]


def test_a_queue_is_never_taken_below_what_it_keeps() -> None:
    """Two nodes of four cores have to go for two tasks of three."""
    large = running("large", NODES[4:], 4, queue="a", priority=5)
    assert reclaimed([*HALVES, large], 2, cpu=3, keeps=25).evicted == []
    assert len(reclaimed([*HALVES, large], 2, cpu=3, keeps=24).evicted) == 2


def test_a_part_of_each_of_two_podgroups_goes_where_no_queue_may_lose_one_of_them_whole() -> None:
    podgroups = [
        running("one", NODES[:2], 4, queue="a", priority=1),
        running("two", NODES[2:4], 4, queue="b", priority=1),
        waiting("job", [4, 4], queue="c", priority=1),
    ]
    queues = [{"name": name, "deserved": {"cpu": cpu}} for name, cpu in (("a", 4), ("b", 4), ("c", 8))]
    case = Outcome(cluster_file({"s": {"b": NODES[:4]}}, 4, podgroups, queues=queues))
    assert [one.partition("-")[0] for one in case.evicted] == ["one", "two"]


@pytest.mark.parametrize("seed", [2, 568, 651, 1908, 2186, 2908])
def test_what_a_queue_may_not_lose_stays_and_another_queue_loses_as_much(seed: int) -> None:
    """By brute force some lawful set makes room; tasks that repel each other unevenly bring no slots by themselves."""
    assert isinstance(propose(attempt_of(crowded(seed, Purpose.RECLAIM, "koordinator"), Purpose.RECLAIM)), Plan)


@pytest.mark.parametrize(
    ("seed", "goes"),
    [(923989, ["v3-0", "v3-1"]), (923298, ["v0-0", "v2-0"])],
)
def test_of_few_candidates_every_set_is_tried_where_no_order_leaves_one_that_quotas_permit(
    seed: int, goes: list[str]
) -> None:
    assert Outcome(LendingCluster(seed, "reclaim").document()).evicted == goes


def test_every_set_is_tried_in_a_narrower_layer_before_a_wider_one_makes_room() -> None:
    """In the other block, or in both together, less important work would do."""
    found = Outcome(LendingCluster(922553, "reclaim").document())
    assert (found.evicted, set(found.nominated.values())) == (["v0-0", "v1-0"], {"n0"})
