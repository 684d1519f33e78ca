"""Pods as tasks: where they are, where they may run, and what holds them back."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.imports.kubernetes.manifests import cluster_of, report
from tests.support.manifests import NODE, imported, manifest, pod


def task(folder: Path, *objects: dict[str, Any]) -> dict[str, Any]:
    document, _ = imported(folder, NODE, *objects)
    return document["podgroups"][0]["tasks"][0]


@pytest.mark.parametrize(
    ("phase", "node", "ending", "status"),
    [
        ("Pending", None, False, "Pending"),
        ("Pending", "n", False, "Bound"),
        ("Running", "n", False, "Running"),
        ("Unknown", "n", False, "Running"),
        ("Running", "n", True, "Terminating"),
        ("Succeeded", "n", False, "Succeeded"),
        ("Failed", None, True, "Failed"),
    ],
)
def test_status_follows_from_phase_node_and_deletion(
    phase: str, node: str | None, ending: bool, status: str, tmp_path: Path
) -> None:
    about = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if ending else {}
    spec = {"nodeName": node} if node else {}
    assert task(tmp_path, pod(about=about, status={"phase": phase}, **spec))["status"] == status


def test_a_pod_that_ends_without_a_node_is_gone(tmp_path: Path) -> None:
    document, found = imported(tmp_path, NODE, pod(about={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert ("podgroups" in document, found) == (False, [])


def test_a_pod_on_a_node_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    document, found = imported(tmp_path, NODE, pod(status={"phase": "Running"}, nodeName="m"))
    assert "podgroups" not in document
    assert found == ["Pod p: spec.nodeName: there is no node 'm' among the manifests"]


def test_where_a_pod_may_run_is_kept(tmp_path: Path) -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}, {}]
    apart = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {
        "nodeAffinity": {required: {"nodeSelectorTerms": terms}}, "podAntiAffinity": {required: apart},
    }  # fmt: skip
    found = task(
        tmp_path, pod(nodeSelector={"disk": "ssd"}, affinity=affinity, tolerations=[{"operator": "Exists", "key": "k"}])
    )
    assert found["node_selector"] == {"disk": "ssd"}
    assert found["node_affinity"] == [[{"key": "zone", "operator": "In", "values": ["a"]}]]
    assert found["pod_anti_affinity"] == [{"topology_key": "zone", "match_labels": {"app": "x"}}]
    assert found["tolerations"] == [{"key": "k", "operator": "Exists"}]
    assert "scheduling_gated" not in found


@pytest.mark.parametrize(
    ("term", "read"),
    [
        (
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]}},
            {"match_labels": {}, "match_expressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]},
        ),
        (
            {"labelSelector": {}, "matchLabelKeys": ["job", "none"], "mismatchLabelKeys": ["job"]},
            {
                "match_labels": {},
                "match_expressions": [
                    {"key": "job", "operator": "In", "values": ["j"]},
                    {"key": "job", "operator": "NotIn", "values": ["j"]},
                ],
            },
        ),
        ({"labelSelector": {}, "namespaces": ["a", "b"]}, {"match_labels": {}, "namespaces": ["a", "b"]}),
        ({"labelSelector": {}, "namespaces": ["default"]}, {"match_labels": {}}),
        ({"labelSelector": {}, "namespaceSelector": {}}, {"match_labels": {}, "namespaces": ["*"]}),
    ],
)
def test_anti_affinity_is_read_with_expressions_keys_and_namespaces(
    term: dict[str, Any], read: dict[str, Any], tmp_path: Path
) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", **term}]}
    labelled = pod(affinity={"podAntiAffinity": required})
    labelled["metadata"]["labels"] = {"job": "j"}
    document, found = imported(tmp_path, NODE, labelled)
    assert (document["podgroups"][0]["tasks"][0]["pod_anti_affinity"], found) == (
        [{"topology_key": "zone", **read}],
        [],
    )


def test_a_term_without_a_selector_repels_no_pod(tmp_path: Path) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
    assert "pod_anti_affinity" not in task(tmp_path, pod(affinity={"podAntiAffinity": required}))


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (
            {
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "z",
                                "labelSelector": {},
                                "namespaceSelector": {"matchLabels": {"team": "a"}},
                            }
                        ]
                    }
                }
            },
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector",
        ),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}]}, "spec.topologySpreadConstraints[0]"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]}, "spec.volumes[0]."),
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims"),
        ({"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}, "spec.containers[0].ports[0].hostPort"),
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}}},
            "spec.affinity.podAffinity",
        ),
        ({"tolerations": [{"key": "k", "operator": "Gt", "value": "5"}]}, "spec.tolerations[0].operator"),
    ],
)
def test_what_binds_a_pod_and_has_no_place_holds_it_back_and_is_told(
    spec: dict[str, Any], path: str, tmp_path: Path
) -> None:
    document, found = imported(tmp_path, NODE, pod(**spec))
    assert document["podgroups"][0]["tasks"][0]["scheduling_gated"]
    assert len(found) == 1
    assert found[0].startswith(f"Pod p: {path}")


def test_a_field_that_is_not_known_is_told_with_file_line_and_path(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "m.yaml").write_text(yaml.safe_dump_all([NODE, pod(futureField={"x": 1})]), encoding="utf-8")
    findings = cluster_of([tmp_path]).findings
    assert report(findings) == 1
    file = tmp_path / "m.yaml"
    assert f"clearway: left out: {file}, line 1" in (said := capsys.readouterr().err)
    assert said.rstrip().endswith("Pod p: spec.futureField: nothing here reads this")


def test_a_mark_of_a_scheduler_without_a_row_is_told(tmp_path: Path) -> None:
    _, found = imported(tmp_path, NODE, pod(about={"annotations": {"volcano.sh/new-thing": "1", "mine/other": "2"}}))
    assert found == ["Pod p: metadata.annotations.volcano.sh/new-thing: '1' has no counterpart here"]


def test_what_cannot_be_meant_is_refused_with_file_line_and_path(tmp_path: Path) -> None:
    with pytest.raises(ClusterFileRefused, match=r"m\.yaml, line \d+: Pod p: spec\.priority: expected a whole number"):
        imported(tmp_path, NODE, pod(priority="high"))
    with pytest.raises(ClusterFileRefused, match=r"m\.yaml, line \d+: Pod p: spec\.nodeName: expected the node"):
        imported(tmp_path, NODE, pod(status={"phase": "Running"}))
    for text, more in (("a: 1\n", "a$"), ("version: 1\n", "version; a cluster file is given alone$")):
        (tmp_path / "m.yaml").write_text(text)
        with pytest.raises(ClusterFileRefused, match=f"expected an object with apiVersion and kind, found keys {more}"):
            cluster_of([tmp_path])


def test_priority_comes_from_the_pod_its_class_or_the_usual_class(tmp_path: Path) -> None:
    given = {"high": {"value": 9, "preemptionPolicy": "Never"}, "usual": {"value": 3, "globalDefault": True}}
    classes = [manifest("scheduling.k8s.io/v1", "PriorityClass", name, **more) for name, more in given.items()]
    pods = [pod("own", priority=7), pod("classed", priorityClassName="high"), pod("plain")]
    document, found = imported(tmp_path, NODE, *classes, *pods)
    said = {each["name"]: (each["priority"], each["preemption_policy"]) for each in document["podgroups"]}
    assert said == {
        "own": (7, "PreemptLowerPriority"), "classed": (9, "Never"), "plain": (3, "PreemptLowerPriority"),
    }  # fmt: skip
    assert not found


def test_a_budget_counts_only_while_its_status_is_up_to_date(tmp_path: Path) -> None:
    def budget(name: str, observed: int) -> dict[str, Any]:
        spec = {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 1}
        status = {"observedGeneration": observed, "disruptionsAllowed": 3}
        return manifest("policy/v1", "PodDisruptionBudget", name, spec, about={"generation": 2}, status=status)

    document, found = imported(tmp_path, NODE, budget("new", 2), budget("old", 1))
    assert {each["name"]: each["disruptions_allowed"] for each in document["disruption_budgets"]} == {
        "new": 3,
        "old": 0,
    }
    assert len(found) == 1


def test_owners_without_pods_stand_for_them_and_say_what_becomes_of_the_evicted(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod()["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    deployment = manifest("apps/v1", "Deployment", "web", spec)
    jobs = {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 4, "template": template}}}
    job_set = manifest("jobset.x-k8s.io/v1alpha2", "JobSet", "set", {"replicatedJobs": [jobs]})
    document, found = imported(tmp_path, NODE, deployment, job_set)
    counts = {each["name"]: [(one["name"], one["count"]) for one in each["tasks"]] for each in document["podgroups"]}
    assert counts == {"set": [("set-w", 8)], "web": [("web", 3)]}
    assert not found
    again, _ = imported(tmp_path, NODE, deployment, pod("web-1", about={"labels": {"app": "web"}}))
    assert [each["name"] for each in again["podgroups"]] == ["web-1"]


def test_a_pod_of_a_gang_that_nothing_describes_is_held_back(tmp_path: Path) -> None:
    label = {"labels": {"pod-group.scheduling.sigs.k8s.io": "gang"}}
    document, found = imported(tmp_path, NODE, pod("a", about=label), pod("b", about=label))
    assert [each["scheduling_gated"] for each in document["podgroups"][0]["tasks"]] == [True, True]
    assert len(found) == 2


@pytest.mark.parametrize("annotation", ["gpu-fraction", "gpu-memory"])
def test_a_pod_that_asks_for_a_part_of_a_gpu_is_told_and_held_back(tmp_path: Path, annotation: str) -> None:
    part = {"annotations": {annotation: "0.5"}}
    document, findings = imported(tmp_path, NODE, pod(about=part, schedulerName="kai-scheduler"))
    assert document["podgroups"][0]["tasks"][0]["scheduling_gated"] is True
    told = "'0.5' has no counterpart here; while it waits the pod is held back"
    assert findings == [f"Pod p: metadata.annotations.{annotation}: {told}"]


def test_parts_of_gpus_that_are_resources_are_told_where_quotas_count_them_as_gpus(tmp_path: Path) -> None:
    asks = [{"name": "c", "resources": {"limits": {"nvidia.com/mig-1g.5gb": "2"}}}]
    document, findings = imported(tmp_path, NODE, pod(containers=asks, schedulerName="kai-scheduler"))
    assert document["podgroups"][0]["tasks"][0]["request"] == {"nvidia.com/mig-1g.5gb": 2}
    told = "quotas of kai-scheduler count nvidia.com/mig-1g.5gb as GPUs; here no quota does"
    assert findings == [f"Pod p: spec.containers: {told}"]
    assert imported(tmp_path, NODE, pod(containers=asks, schedulerName="default-scheduler"))[1] == []


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_time_without_an_offset_is_in_utc(zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    said = ("2026-01-01T00:00:00", "2026-01-01T00:00:00Z", "2026-01-01T09:00:00+09:00")
    found = {task(tmp_path, pod(about={"creationTimestamp": one}))["created"] for one in said}
    monkeypatch.undo()
    time.tzset()
    assert found == {1767225600.0}
