"""Manifests of Kubernetes, and the cluster file that they become."""

from pathlib import Path
from typing import Any

import yaml

from actors.cluster_file.reader import read_cluster
from actors.imports.kubernetes.manifests import cluster_of
from actors.imports.manifest_files import sentence

Object = dict[str, Any]


def manifest(
    version: str, kind: str, name: str, spec: Any = None, *, about: Object | None = None, **more: Any
) -> Object:
    """An object; ``about`` goes into its metadata, and ``more`` stands beside its spec."""
    said = {} if spec is None else {"spec": spec}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **(about or {})}, **said, **more}


def node(name: str, labels: Object | None = None, spec: Any = None, **allocatable: Any) -> Object:
    return manifest("v1", "Node", name, spec, about={"labels": labels or {}}, status={"allocatable": allocatable})


NODE = manifest("v1", "Node", "n", status={"allocatable": {"cpu": 8}})


def pod(name: str = "p", *, about: Object | None = None, status: Any = None, asks: Any = None, **spec: Any) -> Object:
    """A pod of one container, which asks for a core unless ``asks`` says otherwise."""
    containers = [{"name": "c", "resources": {"requests": asks or {"cpu": 1}}}]
    said = {"containers": containers, **spec}
    return manifest("v1", "Pod", name, said, about=about, status=status or {"phase": "Pending"})


def imported(folder: Path, *objects: Object, **asked: Any) -> tuple[Object, list[str]]:
    """The cluster file of objects, and what was left out, without file and line."""
    (folder / "m.yaml").write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    document, _, findings = cluster_of([folder], **asked)
    read_cluster(document)
    return document, [sentence(each).partition(": ")[2] for each in findings]


def queue(document: Object, name: str) -> Object:
    """A queue of a cluster file."""
    (found,) = (each for each in document["queues"] if each["name"] == name)
    return dict(found)
