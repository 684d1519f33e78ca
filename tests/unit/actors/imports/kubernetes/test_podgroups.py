"""Podgroups of each scheduler: their minima, and what else they state."""

from pathlib import Path
from typing import Any

from tests.support.manifests import NODE, imported


def podgroup(name: str = "g", about: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A podgroup of Volcano."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name, **(about or {})},
        "spec": {"minMember": 1, **spec},
    }  # fmt: skip


def test_what_a_quota_would_count_is_no_resource_of_a_podgroup_of_volcano(tmp_path: Path) -> None:
    counted = {"cpu": "4", "memory": "1Gi", "pods": "1", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"}
    by_quota = {
        "count/pods": "1", "requests.cpu": "1500m", "limits.cpu": "4", "requests.nvidia.com/gpu": "2", "services": "1",
    }  # fmt: skip
    document, findings = imported(tmp_path, NODE, podgroup(minResources=counted | by_quota))
    assert (document["podgroups"][0]["min_resources"], findings) == (counted, [])
