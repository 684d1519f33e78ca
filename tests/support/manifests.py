"""Manifests of Kubernetes, and the cluster file that they become."""

from pathlib import Path
from typing import Any

import yaml

from actors.cluster_file.reader import read_cluster
from actors.imports.kubernetes.manifests import cluster_of
from actors.imports.manifest_files import sentence

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 8}}}


def pod(name: str = "p", *, about: dict[str, Any] | None = None, status: Any = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": 1}}}]
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(about or {})},
        "spec": {"containers": containers, **spec}, "status": status or {"phase": "Pending"},
    }  # fmt: skip


def imported(folder: Path, *objects: dict[str, Any], **asked: Any) -> tuple[dict[str, Any], list[str]]:
    """The cluster file of objects, and what was left out, without file and line."""
    (folder / "m.yaml").write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    document, _, findings = cluster_of([folder], **asked)
    read_cluster(document)
    return document, [sentence(each).partition(": ")[2] for each in findings]


def queue(document: dict[str, Any], name: str) -> dict[str, Any]:
    """A queue of a cluster file."""
    (found,) = (each for each in document["queues"] if each["name"] == name)
    return dict(found)
