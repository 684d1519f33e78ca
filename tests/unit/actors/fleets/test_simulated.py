"""The simulated fleet: it obeys, in its own time, and it does not trust."""

from typing import Any

import pytest

from actors.cluster_file.reader import read_leniently
from actors.documents.quantities import QuantityRefused
from actors.fleets.simulated import SimulatedFleet
from actors.protocol.bodies import Binding, Eviction, PlanCommitted
from actors.protocol.envelopes import Message, Outgoing
from tests.support.assembly import rack_cluster

NODE = {"name": "n0", "allocatable": {"cpu": 4, "pods": 8}}


def fleet_of(*podgroups: dict[str, Any], **more: Any) -> SimulatedFleet:
    cluster = {"version": 1, "nodes": [NODE], "queues": [{"name": "q"}], "podgroups": list(podgroups)}
    return SimulatedFleet(cluster, seed=1, grace_s=(10.0, 10.0), **more)


def group(name: str, *tasks: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "queue": "q", "tasks": [{"request": {"cpu": 2}, **task} for task in tasks]}


def decided(**made: Any) -> Message:
    return Message("plan_committed", "p", 1, PlanCommitted(plan_id="p", epoch=1, action="preempt", **made), "1-0", 0)


def kinds(events: list[Outgoing]) -> list[str]:
    return [event.kind for event in events]


def test_a_victim_ends_when_its_grace_is_over() -> None:
    fleet = fleet_of(group("g", {"name": "t", "status": "Running", "node": "n0"}))
    assert kinds(fleet.obey(decided(evictions=(Eviction(task="default/t", incarnation=0),)), 100.0)) == [
        "task_terminating"
    ]
    assert fleet.step(109.9) == []
    ended = fleet.step(110.0)
    assert kinds(ended) == ["task_ended"]
    assert ended[0].body == {"task": "default/t", "outcome": "Evicted", "incarnation": 0, "replaced": True}


def test_its_clock_may_run_faster_than_ours() -> None:
    fleet = fleet_of(group("g", {"name": "t", "status": "Running", "node": "n0"}), speed=5.0)
    fleet.obey(decided(evictions=(Eviction(task="default/t", incarnation=0),)), 100.0)
    assert fleet.next_at() == 102.0


def test_an_eviction_of_another_life_does_nothing() -> None:
    fleet = fleet_of(group("g", {"name": "t", "status": "Running", "node": "n0"}))
    assert fleet.obey(decided(evictions=(Eviction(task="default/t", incarnation=1),)), 0.0) == []


def test_the_same_decision_twice_is_obeyed_once() -> None:
    fleet = fleet_of(group("g", {"name": "t", "status": "Pending"}))
    binding = decided(bindings=(Binding(task="default/t", node="n0"),))
    assert kinds(fleet.obey(binding, 0.0)) == ["task_started"]
    assert fleet.obey(binding, 0.0) == []


def test_a_task_that_does_not_fit_fails_and_waits_again() -> None:
    running = {"name": "t", "status": "Running", "node": "n0", "request": {"cpu": "3500m"}}
    fleet = fleet_of(group("g", running), group("h", {"name": "u", "status": "Pending"}))
    refused = fleet.obey(decided(bindings=(Binding(task="default/u", node="n0"),)), 0.0)
    assert refused[0].body == {"task": "default/u", "outcome": "Failed", "incarnation": 0, "replaced": True}
    assert fleet.tally.misfits == 1


def test_a_task_that_is_gone_when_evicted_takes_its_podgroup_with_it() -> None:
    task = {"name": "t", "status": "Running", "node": "n0", "gone_when_evicted": True}
    fleet = fleet_of(group("g", task))
    fleet.obey(decided(evictions=(Eviction(task="default/t", incarnation=0),)), 0.0)
    assert kinds(fleet.step(10.0)) == ["task_ended", "podgroup_removed"]


def test_a_lost_node_ends_what_ran_there() -> None:
    fleet = fleet_of(group("g", {"name": "t", "status": "Running", "node": "n0"}))
    assert kinds(fleet.fail_node("n0")) == ["task_ended", "node_removed"]
    assert fleet.fail_node("n0") == []
    assert kinds(fleet.obey(decided(bindings=(Binding(task="default/t", node="n0"),)), 0.0)) == ["task_ended"]


def test_a_list_after_a_loss_names_no_node_that_is_gone() -> None:
    fleet = SimulatedFleet(rack_cluster(), seed=1)
    fleet.fail_node("n1")
    (part,) = fleet.listing("again")
    read = read_leniently({"version": 1, **part.body.cluster})  # type: ignore[union-attr]
    assert "n1" not in {node for domain in read.topology.domains or () for node in domain.nodes}  # type: ignore[union-attr]


def test_a_gang_finishes_after_its_time_and_leaves() -> None:
    fleet = fleet_of()
    fleet.submit(group("g", {"name": "t", "status": "Pending"}), runs_s=60.0)
    fleet.obey(decided(bindings=(Binding(task="default/t", node="n0"),)), 0.0)
    assert kinds(fleet.step(60.0)) == ["task_ended", "podgroup_removed"]
    assert (fleet.tally.started, fleet.tally.finished, fleet.used("cpu")) == (1, 1, 0.0)


def test_revisions_grow_by_one_count_for_the_whole_fleet() -> None:
    fleet = fleet_of(revision=41)
    assert [event.revision for event in fleet.listing("l")] == [42]
    assert fleet.submit(group("g", {"name": "t", "status": "Pending"}))[0].revision == 43


def test_amounts_are_kubernetes_quantities() -> None:
    nodes = [{"name": "n0", "allocatable": {"cpu": "1e1", "memory": "1Gi", "pods": "8"}}]
    tasks = [{"name": "t", "request": {"cpu": "2500m", "memory": "512Mi"}, "status": "Running", "node": "n0"}]
    fleet = SimulatedFleet({"nodes": nodes, "podgroups": [{"name": "g", "tasks": tasks}]}, seed=1)
    assert (fleet.used("cpu"), fleet.used("memory")) == (0.25, 0.5)
    with pytest.raises(
        QuantityRefused, match=r"cpu: expected a non-negative quantity such as 500m or 32Gi, found 'much'"
    ):
        fleet.submit({"name": "h", "tasks": [{"name": "u", "request": {"cpu": "much"}}]})


def test_tasks_that_start_over_do_so_in_another_life_on_the_same_node_again_and_again() -> None:
    fleet = fleet_of(group("g", *({"name": name, "status": "Running", "node": "n0"} for name in "ab")))
    fleet.restart_often(100.0, 0.5, 1)
    assert fleet.step(99.0) == []
    for at, said in ((100.0, 2), (100.4, 0), (100.5, 2), (102.0, 6)):
        events = fleet.step(at)
        assert kinds(events) == ["task_ended", "task_started"] * (said // 2)
        for ended, started in zip(events[::2], events[1::2], strict=True):
            assert ended.body["task"] == started.body["task"]
            assert ended.body["incarnation"] + 1 == started.body["incarnation"]
            assert started.body["node"] == "n0"


def test_a_task_that_is_not_running_any_more_does_not_start_over() -> None:
    fleet = fleet_of(group("g", {"name": "t", "status": "Running", "node": "n0"}))
    fleet.restart_often(100.0, 1.0, 1)
    fleet.obey(decided(evictions=(Eviction(task="default/t", incarnation=0),)), 99.0)
    assert fleet.step(101.5) == []
