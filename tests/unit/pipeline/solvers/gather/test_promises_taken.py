"""Promises of less important podgroups: taken where that spares running work, or brings the job closer together."""

from typing import Any

import pytest

from tests.support.gathering import Outcome, cluster_file, running, waiting

APART = {"s1": {"b1": ["n1"], "b2": ["n2"]}}
SPREAD = {"s1": {"b1": ["n1"], "b2": ["n2"], "b3": ["n3"]}}


def promised(name: str, node: str, cpu: int) -> list[dict[str, Any]]:
    """A podgroup that was promised the room of another that is ending."""
    ending, job = running(f"{name}-before", [node], cpu), waiting(name, [cpu], priority=10)
    ending["tasks"][0] |= {"status": "Terminating", "gone_when_evicted": True}
    job["tasks"][0]["nominated_node"] = node
    return [ending, job]


@pytest.mark.parametrize("topology", [{}, {"topology": {"required": "block"}}, {"topology": {"preferred": "block"}}])
def test_a_promise_stays_where_another_place_at_the_same_loss_needs_none(topology: dict[str, Any]) -> None:
    low = [running("low1", ["n1"], 4), running("low2", ["n2"], 4)]
    found = Outcome(cluster_file(APART, 8, [*promised("mid", "n1", 4), *low, waiting("hp", [8], **topology)]))
    assert (found.evicted, found.nominated) == (["low2-0"], {"hp-0": "n2", "mid-0": "n1"})


@pytest.mark.parametrize("topology", [{}, {"topology": {"required": "spine"}}])
def test_a_job_of_two_leaves_a_promise_where_two_other_nodes_cost_the_same(topology: dict[str, Any]) -> None:
    low = [running(f"low{at}", [f"n{at}"], 4) for at in (1, 2, 3)]
    found = Outcome(cluster_file(SPREAD, 8, [*promised("mid", "n1", 4), *low, waiting("hp", [8, 8], **topology)]))
    assert found.evicted == ["low2-0", "low3-0"]
    assert found.nominated == {"hp-0": "n2", "hp-1": "n3", "mid-0": "n1"}


def test_a_promise_is_taken_where_that_spares_a_running_task() -> None:
    low = [running("low1", ["n1"], 4), running("low2", ["n2"], 8, priority=20)]
    found = Outcome(cluster_file(APART, 8, [*promised("mid", "n1", 4), *low, waiting("hp", [8])]))
    assert (found.evicted, found.nominated) == (["low1-0"], {"hp-0": "n1"})


def test_a_promise_is_taken_where_no_other_block_could_hold_the_job() -> None:
    spines = {"s1": {"b1": ["n1", "n2"], "b2": ["n3"], "b3": ["n4"]}}
    low = [running(f"low{at}", [f"n{at}"], 8, priority=20) for at in (2, 3, 4)]
    closer = waiting("hp", [8, 8], topology={"preferred": "block"})
    found = Outcome(cluster_file(spines, 8, [*promised("mid", "n1", 8), *low, closer]))
    assert (found.evicted, found.nominated) == (["low2-0"], {"hp-0": "n1", "hp-1": "n2"})


def test_a_promise_elsewhere_is_withdrawn_with_the_quota_that_it_holds() -> None:
    """The queue has quota for one of the two: the node is free, the quota is promised."""
    queues = [{"name": "default", "deserved": {"cpu": 4}, "capability": {"cpu": 4}}, {"name": "other"}]
    ending, mid = promised("mid", "n2", 4)
    found = Outcome(cluster_file(APART, 4, [ending | {"queue": "other"}, mid, waiting("hp", [4])], queues=queues))
    assert (found.evicted, found.nominated) == ([], {"hp-0": "n1"})


@pytest.mark.parametrize(("key", "left"), [("zone", {}), ("kubernetes.io/hostname", {"mid-0": "n2"})])
def test_a_promise_elsewhere_is_withdrawn_if_its_task_repels_the_job_in_a_region_of_both(
    key: str, left: dict[str, str]
) -> None:
    ending, mid = promised("mid", "n2", 4)
    mid["tasks"][0]["labels"] = {"app": "mid"}
    job = waiting("hp", [8])
    job["tasks"][0]["pod_anti_affinity"] = [{"topology_key": key, "match_labels": {"app": "mid"}}]
    low = [running("low1", ["n1"], 8), running("stays", ["n2"], 4, priority=200)]
    document = cluster_file(APART, 8, [ending, mid, *low, job])
    for node in document["nodes"]:
        node["labels"] = {"zone": "z", "kubernetes.io/hostname": node["name"]}
    found = Outcome(document)
    assert (found.evicted, found.nominated) == (["low1-0"], {"hp-0": "n1", **left})
