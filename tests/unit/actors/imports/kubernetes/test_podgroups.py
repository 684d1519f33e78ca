"""Podgroups of each scheduler: their minima, and what else they state."""

import re
from pathlib import Path
from typing import Any

import pytest

from actors.cluster_file.plain_data import ClusterFileRefused
from tests.support.manifests import NODE, imported, manifest, pod
from tests.support.simulating import simulate
from tests.support.small_clusters import played, world


def test_what_a_quota_would_count_is_no_resource_of_a_podgroup_of_volcano(tmp_path: Path) -> None:
    counted = {"cpu": "4", "memory": "1Gi", "pods": "1", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"}
    by_quota = {
        "count/pods": "1", "requests.cpu": "1500m", "limits.cpu": "4", "requests.nvidia.com/gpu": "2", "services": "1",
    }  # fmt: skip
    spec = {"minMember": 1, "minResources": counted | by_quota}
    document, findings = imported(tmp_path, NODE, manifest("scheduling.volcano.sh/v1beta1", "PodGroup", "g", spec))
    assert (document["podgroups"][0]["min_resources"], findings) == (counted, [])


def divided(
    folder: Path, pods: dict[str, dict[str, str]], *policies: dict[str, Any], **spec: Any
) -> tuple[Any, list[str]]:
    """A podgroup of Volcano with these policies and pods, given by name with their labels, as it is imported."""
    group = manifest("scheduling.volcano.sh/v1beta1", "PodGroup", "g", {"subGroupPolicy": list(policies), **spec})
    about = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
    made = [pod(name, about={**about, "labels": labels}, schedulerName="volcano") for name, labels in pods.items()]
    document, findings = imported(folder, NODE, group, *made)
    return document["podgroups"][0], findings


def test_a_policy_of_volcano_makes_a_subgroup_of_each_combination_of_its_keys_values(tmp_path: Path) -> None:
    policy = {
        "name": "prefill", "labelSelector": {"matchLabels": {"role": "prefill"}}, "matchLabelKeys": ["at", "in"],
        "subGroupSize": 2, "minSubGroups": 1,
    }  # fmt: skip
    pods = {f"p{at}": {"role": "prefill", "at": str(at // 2), "in": "x"} for at in range(4)}
    podgroup, findings = divided(tmp_path, pods, policy, minMember=2)
    assert findings == []
    assert podgroup["subgroups"] == [
        {
            "name": "prefill", "min_subgroups": 1,
            "children": [{"name": "prefill-0-x", "min_available": 2}, {"name": "prefill-1-x", "min_available": 2}],
        }
    ]  # fmt: skip
    assert [task["subgroup"] for task in podgroup["tasks"]] == ["prefill-0-x"] * 2 + ["prefill-1-x"] * 2


@pytest.mark.parametrize(
    "labels", [{"role": "prefill"}, {"role": "prefill", "at": ""}, {"role": "decode", "at": "0"}, {}], ids=str
)
def test_a_pod_that_lacks_a_label_or_a_key_of_a_policy_is_in_none_of_its_subgroups(
    tmp_path: Path, labels: dict[str, str]
) -> None:
    policy = {"name": "prefill", "labelSelector": {"matchLabels": {"role": "prefill"}}, "matchLabelKeys": ["at"]}
    podgroup, _ = divided(tmp_path, {"p": labels, "q": {"role": "prefill", "at": "0"}}, policy)
    assert [task.get("subgroup") for task in podgroup["tasks"]] == [None, "prefill-0"]


def test_a_pod_belongs_to_the_first_policy_that_selects_it(tmp_path: Path) -> None:
    first, second = {"name": "a", "matchLabelKeys": ["x"]}, {"name": "b", "matchLabelKeys": ["y"]}
    podgroup, _ = divided(tmp_path, {"p": {"x": "0", "y": "0"}, "q": {"y": "1"}}, first, second)
    assert [task["subgroup"] for task in podgroup["tasks"]] == ["a-0", "b-1"]
    assert [inner["name"] for inner in podgroup["subgroups"]] == ["a", "b"]


def test_a_policy_without_keys_selects_no_pod_and_is_told(tmp_path: Path) -> None:
    policy = {"name": "a", "labelSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
    podgroup, findings = divided(tmp_path, {"p": {"x": "0"}}, policy)
    assert "subgroups" not in podgroup
    here = "PodGroup g: spec.subGroupPolicy[0]"
    assert findings == [
        f"{here}.labelSelector.matchExpressions: pods are cut into subgroups by labels alone",
        f"{here}: without matchLabelKeys it selects no pod",
    ]


@pytest.mark.parametrize(("least", "bound"), [({}, 2), ({"minSubGroups": 2}, 0)])
def test_subgroups_of_volcano_need_be_whole_only_as_many_as_it_says(
    tmp_path: Path, least: dict[str, int], bound: int
) -> None:
    """The node has eight cores and each of two subgroups needs two tasks of four: there is room for one of them."""
    policy = {"name": "a", "matchLabelKeys": ["x"], "subGroupSize": 2, **least}
    group = manifest("scheduling.volcano.sh/v1beta1", "PodGroup", "g", {"minMember": 2, "subGroupPolicy": [policy]})
    about = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
    pods = [
        pod(f"p{at}", about={**about, "labels": {"x": str(at // 2)}}, asks={"cpu": 4}, schedulerName="volcano")
        for at in range(4)
    ]
    document, _ = imported(tmp_path, NODE, group, *pods)
    assert len(simulate(document, 1, "volcano")["cycles"][0]["bindings"]) == bound


@pytest.mark.parametrize(("least", "bound"), [({}, 2), ({"minSubGroups": 0}, 2), ({"minSubGroups": 1}, 0)])
def test_a_podgroup_of_volcano_does_not_start_without_the_subgroups_that_it_needs(
    tmp_path: Path, least: dict[str, int], bound: int
) -> None:
    """No pod has the label that makes a subgroup."""
    podgroup, _ = divided(tmp_path, {"p": {}, "q": {}}, {"name": "a", "matchLabelKeys": ["x"], **least}, minMember=2)
    needed = [{"name": "a", "min_subgroups": 1, "children": []}]
    assert podgroup.get("subgroups", []) == (needed if bound == 0 else [])
    document = world({"n": {"cpu": 8}}, {podgroup["queue"]: {}}, [podgroup], profile="volcano")
    assert len(played(document)[0]["bindings"]) == bound


def hypernode(name: str, tier: int, *members: str, **more: Any) -> dict[str, Any]:
    kind = "Node" if tier == 1 else "HyperNode"
    inside = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    return manifest("topology.volcano.sh/v1alpha1", "HyperNode", name, {"tier": tier, "members": inside, **more})


NETWORK = [hypernode("rack", 1, "n", tierName="rack"), hypernode("pod", 2, "rack", tierName="pod")]


def wanting(**wanted: Any) -> dict[str, Any]:
    spec = {"minMember": 1, "networkTopology": wanted}
    return manifest("scheduling.volcano.sh/v1beta1", "PodGroup", "g", spec)


@pytest.mark.parametrize(
    ("wanted", "topology"),
    [
        ({"highestTierAllowed": 1}, {"required": "tier-1"}),
        ({"highestTierName": "pod"}, {"required": "tier-2"}),
        ({"highestTierAllowed": 7}, None),
        ({"mode": "soft"}, {"preferred": "tier-1"}),
        ({"mode": "hard"}, None),
    ],
    ids=str,
)
def test_a_podgroup_of_volcano_stays_within_the_widest_tier_that_it_allows(
    tmp_path: Path, wanted: dict[str, Any], topology: dict[str, str] | None
) -> None:
    document, findings = imported(tmp_path, NODE, *NETWORK, wanting(**wanted))
    assert (document["podgroups"][0].get("topology"), findings) == (topology, [])


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"highestTierName": "row"}, "highestTierName: expected a tier, one of pod, rack, found 'row'"),
        ({"highestTierAllowed": 0}, "highestTierAllowed: expected a tier of at least 1, found 0"),
    ],
)
def test_a_tier_that_no_hypernode_has_is_refused(tmp_path: Path, wanted: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ClusterFileRefused, match=re.escape(f"PodGroup g: spec.networkTopology.{sentence}")):
        imported(tmp_path, NODE, *NETWORK, wanting(**wanted))


def test_each_subgroup_of_a_policy_stays_within_the_tier_of_the_policy(tmp_path: Path) -> None:
    policy = {"name": "a", "matchLabelKeys": ["x"], "networkTopology": {"highestTierAllowed": 1}}
    group = manifest("scheduling.volcano.sh/v1beta1", "PodGroup", "g", {"subGroupPolicy": [policy]})
    about = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
    pods = [pod(f"p{at}", about={**about, "labels": {"x": str(at)}}, schedulerName="volcano") for at in range(2)]
    document, findings = imported(tmp_path, NODE, *NETWORK, group, *pods)
    (inner,) = document["podgroups"][0]["subgroups"]
    assert [leaf["topology"] for leaf in inner["children"]] == [{"required": "tier-1"}] * 2
    assert findings == []


def test_a_member_that_is_not_there_or_in_another_hypernode_already_is_told(tmp_path: Path) -> None:
    document, findings = imported(tmp_path, NODE, hypernode("a", 1, "n"), hypernode("b", 1, "n", "away"), wanting())
    assert [(each["name"], each.get("nodes")) for each in document["topology"]["domains"]] == [
        ("a", ["n"]),
        ("b", None),
    ]
    assert findings == [
        "HyperNode b: spec.members[0]: n is in a already",
        "HyperNode b: spec.members[1].selector.exactMatch.name: there is no 'away' among the manifests",
    ]
