"""Queues and quotas of each scheduler as queues of a cluster file."""

from pathlib import Path
from typing import Any

import pytest

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.imports.kubernetes.manifests import cluster_of, report
from tests.unit.actors.imports.kubernetes.test_pods import NODE, imported


def quota(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_a_maximum_beyond_any_cluster_is_no_bound_and_noted(tmp_path: Path) -> None:
    """Koordinator makes its default quota with a fifth of the largest 64-bit number."""
    document, findings = imported(tmp_path, NODE, quota("koordinator-default-quota", max={"cpu": str(2**63 // 5)}))
    assert document["queues"][0]["capability"] == {"cpu": "unlimited"}
    told = "spec.max.cpu: 1844674407370955161 is more than any cluster has, so it is no bound"
    assert findings == [f"ElasticQuota koordinator-default-quota: {told}"]
    assert report(cluster_of([tmp_path])[1]) == 0


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
    both = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": named}, **more}
        for name in ("a", "b")
    ]
    document, findings = imported(tmp_path, NODE, *both)
    assert {queue["name"]: queue.get("parent") for queue in document["queues"]} == {
        "a": "dept",
        "b": "dept",
        "dept": None,
    }
    assert findings == [f"{kind} a: there is no queue 'dept' among the manifests, so it is entitled to nothing"]
