"""Queues and quotas of each scheduler as queues of a cluster file."""

from pathlib import Path
from typing import Any

import pytest

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.imports.kubernetes.manifests import cluster_of, report
from tests.support.manifests import NODE, imported, manifest, pod


def quota(name: str, **spec: Any) -> dict[str, Any]:
    return manifest("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", name, spec)


def test_a_maximum_beyond_any_cluster_is_no_bound_and_noted(tmp_path: Path) -> None:
    """Koordinator makes its default quota with a fifth of the largest 64-bit number."""
    document, findings = imported(tmp_path, NODE, quota("koordinator-default-quota", max={"cpu": str(2**63 // 5)}))
    assert document["queues"][0]["capability"] == {"cpu": "unlimited"}
    told = "spec.max.cpu: 1844674407370955161 is more than any cluster has, so it is no bound"
    assert findings == [f"ElasticQuota koordinator-default-quota: {told}"]
    assert report(cluster_of([tmp_path]).findings) == 0


@pytest.mark.parametrize("amount", [str(2**63), "-1", "many", [1], None])
def test_a_minimum_beyond_any_cluster_and_a_maximum_that_is_no_amount_are_refused(tmp_path: Path, amount: Any) -> None:
    key = "min" if amount == str(2**63) else "max"
    with pytest.raises(ClusterFileRefused, match=rf"ElasticQuota q: spec\.{key}\.cpu: expected"):
        imported(tmp_path, NODE, quota("q", **{key: {"cpu": amount}}))


@pytest.mark.parametrize(
    ("version", "kind", "more"),
    [
        ("scheduling.run.ai/v2", "Queue", {"spec": {"parentQueue": "dept"}}),
        ("scheduling.volcano.sh/v1beta1", "Queue", {"spec": {"parent": "dept"}}),
        ("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", {}),
    ],
)
def test_a_parent_without_an_object_is_made_and_reported(
    version: str, kind: str, more: dict[str, Any], tmp_path: Path
) -> None:
    named = {"quota.scheduling.koordinator.sh/parent": "dept"} if kind == "ElasticQuota" else {}
    both = [manifest(version, kind, name, about={"labels": named}, **more) for name in ("a", "b")]
    document, findings = imported(tmp_path, NODE, *both)
    assert {queue["name"]: queue.get("parent") for queue in document["queues"]} == {
        "a": "dept",
        "b": "dept",
        "dept": None,
    }
    assert findings == [f"{kind} a: there is no queue 'dept' among the manifests, so it is entitled to nothing"]


PREFIX = "quota.scheduling.koordinator.sh"


def weights(folder: Path, *objects: dict[str, Any]) -> dict[str, Any]:
    """By queue: its weight, or that of each resource."""
    document, findings = imported(folder, NODE, *objects)
    assert findings == []
    return {each["name"]: each.get("over_quota_weight", each.get("weight")) for each in document["queues"]}


def shared(name: str, said: str, **most: Any) -> dict[str, Any]:
    made = quota(name, min={}, max=most)
    made["metadata"]["annotations"] = {f"{PREFIX}/shared-weight": said}
    return made


@pytest.mark.parametrize("said", ["{}", '{"cpu": 0}', '{"cpu": 0, "memory": "0"}'])
def test_a_shared_weight_of_nothing_but_zeros_is_the_maximum(said: str, tmp_path: Path) -> None:
    assert weights(tmp_path, shared("a", said, cpu=40), quota("b", max={"cpu": 20})) == {"a": 40.0, "b": 20.0}


def test_a_resource_that_a_shared_weight_does_not_name_has_none(tmp_path: Path) -> None:
    found = weights(tmp_path, shared("a", '{"cpu": 3}', cpu=40, memory=8), quota("b", max={"cpu": 20, "memory": 8}))
    assert found == {"a": {"cpu": 3000.0, "memory": 0.0}, "b": {"cpu": 20000.0, "memory": 8.0}}


def test_weights_of_two_resources_are_not_one_number_because_the_first_quota_may_hold_nothing(tmp_path: Path) -> None:
    none, *others = [quota(name, max={"cpu": cpu, "memory": memory}) for name, cpu, memory in
                     (("a", 0, 0), ("b", 40, 10), ("c", 40, 30))]  # fmt: skip
    found = weights(tmp_path, none, *others)
    assert found["b"] == {"cpu": 40000.0, "memory": 10.0}
    assert found["c"] == {"cpu": 40000.0, "memory": 30.0}


def test_a_resource_with_weights_is_shared_although_no_quota_has_a_weight_for_another(tmp_path: Path) -> None:
    said = [shared(name, f'{{"cpu": 0, "memory": {memory}}}', cpu=4, memory=8) for name, memory in (("a", 1), ("b", 3))]
    assert weights(tmp_path, *said) == {"a": {"cpu": 0.0, "memory": 1.0}, "b": {"cpu": 0.0, "memory": 3.0}}


def test_what_is_guaranteed_beyond_a_minimum_that_is_not_lent_stays_guaranteed(tmp_path: Path) -> None:
    made = quota("a", min={"cpu": 40, "memory": 8}, max={"cpu": 96})
    made["metadata"]["annotations"] = {f"{PREFIX}/guaranteed": '{"cpu": 50, "memory": 2}'}
    made["metadata"]["labels"] = {f"{PREFIX}/allow-lent-resource": "false"}
    document, _ = imported(tmp_path, NODE, made)
    assert {key: float(one) for key, one in document["queues"][0]["guarantee"].items()} == {"cpu": 50, "memory": 8}


def test_the_quota_of_a_namespace_is_the_one_in_it_of_its_name_before_one_that_lists_it(tmp_path: Path) -> None:
    def kept(name: str, namespace: str, listed: str = "[]") -> dict[str, Any]:
        made = quota(name, max={"cpu": 1})
        made["metadata"] |= {"namespace": namespace, "annotations": {f"{PREFIX}/namespaces": listed}}
        return made

    quotas = [kept("team", "team"), kept("other", "system", '["team", "lab"]'), kept("elsewhere", "system")]
    asked = {"team": "team", "lab": "other", "elsewhere": "koordinator-default-quota"}
    pods = [pod("p", about={"namespace": name}, schedulerName="koord-scheduler") for name in asked]
    for order in (quotas, quotas[::-1]):
        document, _ = imported(tmp_path, NODE, *order, *pods)
        assert {each["namespace"]: each["queue"] for each in document["podgroups"]} == asked


def test_pods_of_one_podgroup_in_two_quotas_are_reported(tmp_path: Path) -> None:
    group = manifest("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", "g", {"minMember": 2})
    pods = [
        pod(f"p-{name}", about={"labels": {f"{PREFIX}/name": name, "pod-group.scheduling.sigs.k8s.io": "g"}})
        for name in ("a", "b")
    ]
    document, findings = imported(tmp_path, NODE, group, quota("a"), quota("b"), *pods)
    assert [each["queue"] for each in document["podgroups"]] == ["a"]
    told = "a podgroup has one queue, and others of it name 'a'"
    assert findings == [f"Pod p-b: metadata.labels.{PREFIX}/name: {told}"]
