"""Podgroups of each scheduler: their minima, and what else they state."""

from pathlib import Path

from tests.support.manifests import NODE, imported, manifest


def test_what_a_quota_would_count_is_no_resource_of_a_podgroup_of_volcano(tmp_path: Path) -> None:
    counted = {"cpu": "4", "memory": "1Gi", "pods": "1", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"}
    by_quota = {
        "count/pods": "1", "requests.cpu": "1500m", "limits.cpu": "4", "requests.nvidia.com/gpu": "2", "services": "1",
    }  # fmt: skip
    spec = {"minMember": 1, "minResources": counted | by_quota}
    document, findings = imported(tmp_path, NODE, manifest("scheduling.volcano.sh/v1beta1", "PodGroup", "g", spec))
    assert (document["podgroups"][0]["min_resources"], findings) == (counted, [])
