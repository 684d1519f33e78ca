"""Koordinator's quota trees: what a tree has follows from its nodes, and nothing crosses from one tree to another."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import manifests
from tests.support.manifests import Object, imported, manifest, queue
from tests.support.simulating import simulate

POOL, QUOTA = "node-pool", "quota.scheduling.koordinator.sh"


def node(name: str, pool: str) -> Object:
    return manifests.node(name, {POOL: pool}, cpu="10", memory="10Gi", pods="110")


def quota(name: str, least: Any = None, most: Any = None, *, notes: Any = None, **labels: str) -> Object:
    """An ElasticQuota; keywords are its labels, with _ for -."""
    about: Object = {"namespace": "kube-system"}
    about["labels"] = {f"{QUOTA}/{key.replace('_', '-')}": value for key, value in labels.items()}
    about["annotations"] = {f"{QUOTA}/{key}": value for key, value in (notes or {}).items()}
    spec = {"min": least or {}, "max": most or {}}
    return manifest("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", name, spec, about=about)


def root(name: str, tree: str, **notes: str) -> Object:
    """The root quota of a tree as Koordinator's controller writes it."""
    most = {"cpu": "4611686018427387", "memory": "4611686018427387"}
    labels = {"is_root": "true", "is_parent": "true", "parent": "koordinator-root-quota", "tree_id": tree}
    return quota(name, {"cpu": "10", "memory": "10Gi"}, most, notes=notes, profile=name, **labels)


def profile(quota_name: str, pool: str, **more: Any) -> Object:
    spec = {"quotaName": quota_name, "nodeSelector": {"matchLabels": {POOL: pool}}, "quotaLabels": {"a": "b"}, **more}
    about = {"namespace": "kube-system", "labels": {f"{QUOTA}/tree-id": pool}}
    return manifest("quota.koordinator.sh/v1alpha1", "ElasticQuotaProfile", pool, spec, about=about)


def pod(name: str, of: str, cpu: int, on: str = "", **spec: Any) -> Object:
    spec |= {"schedulerName": "koord-scheduler", **({"nodeName": on} if on else {})}
    about, status = {"labels": {f"{QUOTA}/name": of}}, {"phase": "Running" if on else "Pending"}
    return manifests.pod(name, about=about, status=status, asks={"cpu": cpu}, **spec)


MOST = {"cpu": "100", "memory": "100Gi"}
LEAF = quota("team", {"cpu": "2"}, MOST, parent="arm-root", tree_id="arm")


def test_a_root_quota_is_entitled_to_exactly_what_its_nodes_have(tmp_path: Path) -> None:
    total = json.dumps({"cpu": "9500m", "memory": "9Gi", "pods": "110"})
    document, findings = imported(
        tmp_path, node("a", "arm"), root("arm-root", "arm", **{"total-resource": total}), LEAF
    )
    found = queue(document, "arm-root")
    expected = {"cpu": "9500m", "memory": 9 << 30}
    assert (found["deserved"], found["capability"], found["guarantee"]) == (expected, expected, expected)
    assert queue(document, "team")["parent"] == "arm-root"
    assert findings == []


@pytest.mark.parametrize(("ratio", "cpu"), [({}, 20), ({"resourceRatio": "0.9"}, 18)])
def test_without_a_total_the_nodes_of_the_profile_are_added_up(tmp_path: Path, ratio: Object, cpu: int) -> None:
    nodes = [node("a", "arm"), node("b", "arm"), node("c", "amd")]
    document, findings = imported(tmp_path, *nodes, profile("arm-root", "arm", **ratio), LEAF)
    assert queue(document, "arm-root")["capability"]["cpu"] == cpu
    assert findings == []


def test_a_profile_may_select_its_nodes_by_expressions(tmp_path: Path) -> None:
    expressions = [{"key": POOL, "operator": "NotIn", "values": ["amd"]}]
    selected = profile("arm-root", "arm", nodeSelector={"matchExpressions": expressions})
    objects = [node("a", "arm"), node("c", "amd"), selected, LEAF, pod("w", "team", 1)]
    document, _ = imported(tmp_path, *objects)
    assert queue(document, "arm-root")["capability"]["cpu"] == 10
    assert document["podgroups"][0]["tasks"][0]["node_affinity"] == [expressions]


def test_waiting_pods_of_a_tree_use_its_nodes_only(tmp_path: Path) -> None:
    nodes = [node("a", "amd"), node("b", "arm")]
    document, _ = imported(tmp_path, *nodes, profile("arm-root", "arm"), LEAF, pod("w", "team", 10))
    assert document["podgroups"][0]["tasks"][0]["node_selector"] == {POOL: "arm"}
    assert simulate(document, 1, "koordinator")["cycles"][0]["bindings"] == [{"task": "default/w", "node": "b"}]


def test_trees_neither_lend_nor_borrow(tmp_path: Path) -> None:
    """The arm nodes stand idle; a quota outside has its minimum of 10 and gets no more than the 10 that are left."""
    nodes = [node("a", "amd"), node("b", "arm")]
    outside = [quota("outside", {"cpu": "10"}, MOST)]
    objects = [*nodes, profile("arm-root", "arm"), LEAF, *outside]
    document, _ = imported(tmp_path, *objects, pod("v", "outside", 10, "a"), pod("w", "outside", 5))
    said = simulate(document, 1, "koordinator")
    assert said["cycles"][0]["bindings"] == []
    assert said["fair_share"]["outside"]["cpu"] == 10
    assert said["fair_share"]["arm-root"]["cpu"] == 10


def test_within_a_tree_what_is_used_beyond_the_runtime_quota_is_reclaimed(tmp_path: Path) -> None:
    nodes = [node("a", "amd"), node("b", "arm")]
    other = quota("other", {"cpu": "5"}, MOST, parent="arm-root", tree_id="arm")
    held = [pod(f"old{at}", "team", 5, "b") for at in range(2)]
    document, _ = imported(tmp_path, *nodes, profile("arm-root", "arm"), LEAF, other, *held, pod("w", "other", 5))
    (cycle,) = simulate(document, 1, "koordinator")["cycles"]
    assert len(cycle["evictions"]) == 1
    assert cycle["nominations"] == [{"task": "default/w", "node": "b"}]


def test_a_quota_whose_root_is_not_there_is_told(tmp_path: Path) -> None:
    _, findings = imported(tmp_path, node("a", "arm"), quota("team", {"cpu": "2"}, MOST, tree_id="arm"))
    told = "no root quota of the tree 'arm' is among the manifests: it shares with all"
    assert findings == [f"ElasticQuota kube-system/team: {told}"]


def test_a_tree_that_the_others_share_too_is_told(tmp_path: Path) -> None:
    shared = root("arm-root", "arm")
    shared["metadata"]["labels"][f"{QUOTA}/ignore-default-tree"] = "true"
    _, findings = imported(tmp_path, node("a", "arm"), shared)
    assert len(findings) == 1
    assert "ignore-default-tree" in findings[0]
