"""Manifests that are odd and valid: what the API server would fill in, and what is only said elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import NODE, imported, manifest, pod
from tests.support.simulating import simulate


def workload(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    template = {"spec": pod()["spec"], "metadata": {"labels": {"app": name}}}
    return manifest("apps/v1", kind, name, {"template": template, **spec})


def test_a_node_that_states_its_capacity_alone_gives_all_of_it(tmp_path: Path) -> None:
    node = {**NODE, "status": {"capacity": {"cpu": "4", "pods": "10"}}}
    document, findings = imported(tmp_path, node)
    assert (document["nodes"][0]["allocatable"], findings) == ({"cpu": "4", "pods": "10"}, [])


def test_the_critical_classes_are_in_every_cluster_and_their_pods_are_never_victims(tmp_path: Path) -> None:
    document, findings = imported(tmp_path, NODE, pod(priorityClassName="system-node-critical"))
    assert document["podgroups"][0]["priority_class"] == "system-node-critical"
    assert findings == []


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_replicas_without_pods_stand_for_them(tmp_path: Path, kind: str) -> None:
    document, findings = imported(tmp_path, NODE, workload(kind, "w", replicas=3, serviceName="s"))
    (task,) = document["podgroups"][0]["tasks"]
    assert (task["name"], task["count"], task.get("gone_when_evicted", False)) == ("w", 3, kind == "ReplicaSet")
    assert [each for each in findings if "serviceName" not in each] == []


def test_a_replica_set_of_a_deployment_stands_in_for_it_once(tmp_path: Path) -> None:
    replicas = workload("ReplicaSet", "web-1", replicas=2)
    replicas["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "web", "controller": True}]
    document, _ = imported(tmp_path, NODE, workload("Deployment", "web", replicas=2), replicas)
    assert sum(task.get("count", 1) for group in document["podgroups"] for task in group["tasks"]) == 2


def test_an_object_that_states_the_beginning_of_a_name_is_called_by_that(tmp_path: Path) -> None:
    job = workload("Job", "")
    job |= {"apiVersion": "batch/v1", "metadata": {"generateName": "sample-job-"}}
    document, findings = imported(tmp_path, NODE, job)
    assert [group["name"] for group in document["podgroups"]] == ["sample-job"]
    (note,) = findings
    assert note.endswith("Job sample-job: metadata.generateName: read as metadata.name")


def test_a_kind_that_is_not_read_is_told_with_its_group(tmp_path: Path) -> None:
    job = {**workload("Job", "mine"), "apiVersion": "batch.volcano.sh/v1alpha1"}
    _, (left_out,) = imported(tmp_path, NODE, job)
    assert left_out.endswith("Job mine: nothing here reads this kind of batch.volcano.sh")


def gathered(**annotations: Any) -> dict[str, Any]:
    known = "gang.scheduling.koordinator.sh"
    about = {"annotations": {f"{known}/{key}": value for key, value in annotations.items()}}
    spec = {"minMember": 2, "scheduleTimeoutSeconds": 90}
    return manifest("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", "g", spec, about=about)


def network() -> dict[str, Any]:
    layers = [
        {"topologyLayer": "Spine", "labelKey": ["net/spine"]},
        {"topologyLayer": "Block", "labelKey": ["net/block"], "parentTopologyLayer": "Spine"},
        {"topologyLayer": "Rack", "labelKey": ["net/rack"], "parentTopologyLayer": "Block"},
        {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "Rack"},
    ]
    spec = {"networkTopologySpec": layers}
    return manifest("scheduling.koordinator.sh/v1alpha1", "ClusterNetworkTopology", "default", spec)


def test_match_policy_and_waiting_time_of_a_gang_are_kept(tmp_path: Path) -> None:
    said = {"match-policy": "only-waiting", "mode": "NonStrict"}
    document, findings = imported(tmp_path, NODE, gathered(**said))
    group = document["podgroups"][0]
    assert (group["match_policy"], group["wait_seconds"], findings) == ("only-waiting", 90.0, [])


def test_a_match_policy_that_does_not_exist_is_told_and_the_default_counts(tmp_path: Path) -> None:
    document, findings = imported(tmp_path, NODE, gathered(**{"match-policy": "always"}))
    assert "match_policy" not in document["podgroups"][0]
    assert any("'always'" in each for each in findings)


def test_preferred_layers_that_leave_one_out_and_multiples_are_kept(tmp_path: Path) -> None:
    wishes = [
        {"layer": "Spine", "strategy": "PreferGather"},
        {"layer": "Rack", "strategy": "PreferGather", "podCountMultiple": 4},
    ]
    spec = {"network-topology-spec": json.dumps({"gatherStrategy": wishes})}
    document, findings = imported(tmp_path, NODE, network(), gathered(**spec))
    assert document["podgroups"][0]["topology"] == {
        "preferred": "Rack", "layers": ["Spine", "Rack"], "multiples": {"Rack": 4},
    }  # fmt: skip
    assert findings == []


def test_preferred_layers_without_a_gap_need_no_list(tmp_path: Path) -> None:
    wishes = [{"layer": layer, "strategy": "PreferGather"} for layer in ("Block", "Spine")]
    spec = {"network-topology-spec": json.dumps({"gatherStrategy": wishes})}
    document, _ = imported(tmp_path, NODE, network(), gathered(**spec))
    assert document["podgroups"][0]["topology"] == {"preferred": "Block"}


def test_pods_that_name_tasks_to_be_near_to_make_it_their_podgroups_wish(tmp_path: Path) -> None:
    near = {"annotations": {"scheduling.koordinator.sh/network-topology-selector": "run-7"}}
    document, findings = imported(tmp_path, NODE, pod(about=near, schedulerName="koord-scheduler"))
    assert (document["podgroups"][0]["topology"], findings) == ({"near": "run-7"}, [])


def test_shares_that_differ_by_resource_are_weights_for_each(tmp_path: Path) -> None:
    wants = {name: {"min": {"cpu": 1}, "max": {"cpu": 10, "nvidia.com/gpu": gpu}} for name, gpu in (("a", 1), ("b", 3))}
    quotas = [manifest("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", *one) for one in wants.items()]
    document, findings = imported(tmp_path, NODE, *quotas)
    weights = {each["name"]: each["over_quota_weight"] for each in document["queues"] if "over_quota_weight" in each}
    assert weights == {"a": {"cpu": 10000.0, "nvidia.com/gpu": 1.0}, "b": {"cpu": 10000.0, "nvidia.com/gpu": 3.0}}
    assert findings == []


def test_nothing_new_starts_on_a_node_that_is_cordoned(tmp_path: Path) -> None:
    document, findings = imported(tmp_path, {**NODE, "spec": {"unschedulable": True}}, pod())
    assert (document["nodes"][0]["unschedulable"], findings) == (True, [])
    assert simulate(document)["cycles"][0]["bindings"] == []


def test_a_gang_group_with_a_member_that_is_not_there_cannot_start_and_is_told(tmp_path: Path) -> None:
    group = gathered(groups=json.dumps(["default/g", "default/away"]))
    marks = {"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}
    pods = [pod(f"p{at}", about=marks, schedulerName="koord-scheduler") for at in range(2)]
    document, findings = imported(tmp_path, NODE, group, *pods)
    assert [(each["name"], each["min_available"]) for each in document["podgroups"]] == [("away", 1), ("g", 2)]
    told = "there is no podgroup 'default/away' among the manifests, so default/g cannot start"
    assert findings == [f"PodGroup g: {told}"]
    assert simulate(document, 1, "koordinator")["cycles"][0]["bindings"] == []


def test_a_pod_that_is_promised_a_node_that_is_not_there_waits_without_a_promise(tmp_path: Path) -> None:
    promised = pod(status={"phase": "Pending", "nominatedNodeName": "away"})
    document, findings = imported(tmp_path, NODE, promised)
    assert "nominated_node" not in document["podgroups"][0]["tasks"][0]
    assert findings == ["Pod p: status.nominatedNodeName: there is no node 'away' among the manifests"]


@pytest.mark.parametrize(
    "more",
    [
        {"status": {"completionTime": "2026-01-01T00:00:00Z"}},
        {"status": {"conditions": [{"type": "Failed", "status": "True"}]}},
        {"suspended": True},
    ],
    ids=["complete", "failed", "suspended"],
)
def test_a_job_that_is_over_or_suspended_stands_for_no_pods(tmp_path: Path, more: dict[str, Any]) -> None:
    job = {**workload("Job", "j", suspend="suspended" in more), "apiVersion": "batch/v1"}
    document, _ = imported(tmp_path, NODE, job | {"status": more.get("status", {})})
    assert "podgroups" not in document


def test_a_job_set_that_is_suspended_stands_for_no_pods(tmp_path: Path) -> None:
    inside = [{"name": "w", "replicas": 2, "template": {"spec": {"template": {"spec": pod()["spec"]}}}}]
    made = [
        imported(
            tmp_path, NODE, manifest("jobset.x-k8s.io/v1alpha2", "JobSet", "s", {"replicatedJobs": inside, **more})
        )[0]
        for more in ({}, {"suspend": True})
    ]
    assert [[task["count"] for group in each.get("podgroups", ()) for task in group["tasks"]] for each in made] == [
        [2],
        [],
    ]
