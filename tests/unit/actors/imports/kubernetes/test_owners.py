"""Owners of pods are told apart by their API group too."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import NODE, imported, manifest, pod


def owned(version: str, kind: str = "Job") -> dict[str, Any]:
    said = {"apiVersion": version} if version else {}
    about = {"ownerReferences": [{**said, "kind": kind, "name": "train", "controller": True}]}
    return pod("train-worker-0", about=about, status={"phase": "Running"}, nodeName="n")


@pytest.mark.parametrize(
    ("version", "kind", "gone"),
    [
        ("batch/v1", "Job", True),
        ("", "Job", True),
        ("batch.volcano.sh/v1alpha1", "Job", False),
        ("apps/v1", "ReplicaSet", True),
        ("apps/v1", "StatefulSet", False),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", True),
    ],
)
def test_a_pod_is_gone_when_evicted_if_its_owner_makes_one_of_another_name(
    version: str, kind: str, gone: bool, tmp_path: Path
) -> None:
    document, _ = imported(tmp_path, NODE, owned(version, kind))
    assert document["podgroups"][0]["tasks"][0].get("gone_when_evicted", False) == gone


def test_a_job_of_volcano_does_not_stand_in_for_a_job_of_the_same_name(tmp_path: Path) -> None:
    job = manifest("batch/v1", "Job", "train", {"template": {"spec": pod()["spec"]}})
    document, _ = imported(tmp_path, NODE, job, owned("batch.volcano.sh/v1alpha1"))
    assert {task["name"] for group in document["podgroups"] for task in group["tasks"]} == {"train", "train-worker-0"}
    document, _ = imported(tmp_path, NODE, job, owned("batch/v1"))
    assert {task["name"] for group in document["podgroups"] for task in group["tasks"]} == {"train-worker-0"}
