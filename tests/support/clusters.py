"""Cluster files for tests: a small whole one, and changes to it by path."""

import copy
from typing import Any

import pytest

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.cluster_file.reader import read_cluster
from actors.columns.compile import compile_cluster
from actors.columns.names import Names
from pipeline.cluster.snapshot import Snapshot


def small_file() -> dict[str, Any]:
    """Two racks of two nodes, a tree of queues, a gang with parts that runs and one that waits."""
    node = {"allocatable": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": 4, "pods": 110}}
    return {
        "version": 1,
        "id": "small",
        "now": 1000.0,
        "nodes": [{"name": f"n{at}", **copy.deepcopy(node)} for at in range(4)],
        "topology": {
            "levels": ["rack"],
            "domains": [
                {"name": "r0", "level": "rack", "nodes": ["n0", "n1"]},
                {"name": "r1", "level": "rack", "nodes": ["n2", "n3"]},
            ],
        },
        "queues": [{"name": "ml", "deserved": {"cpu": 8}}, {"name": "nlp", "parent": "ml"}],
        "priority_classes": [{"name": "high", "value": 100, "preemption_policy": "Never"}],
        "podgroups": [
            {
                "name": "old",
                "queue": "nlp",
                "roles": {"driver": {"min": 1}, "worker": {"min": 1}},
                "subgroups": [{"name": "all", "min_subgroups": 1, "children": [{"name": "half", "min_available": 1}]}],
                "tasks": [
                    {"name": "driver", "role": "driver", "status": "Running", "node": "n0", "request": {"cpu": "500m"}},
                    {
                        "name": "worker",
                        "count": 2,
                        "role": "worker",
                        "subgroup": "half",
                        "request": {"nvidia.com/gpu": 1},
                    },
                ],
            },
            {
                "name": "new",
                "namespace": "lab",
                "queue": "ml",
                "priority_class": "high",
                "gang_group": ["lab/new", "default/old"],
                "topology": {"required": "rack"},
                "tasks": [{"name": "worker", "count": 3, "request": {"nvidia.com/gpu": 4}}],
            },
        ],
        "disruption_budgets": [{"name": "b", "match_labels": {"app": "x"}, "disruptions_allowed": 1}],
    }


def changed(path: str, value: Any) -> dict[str, Any]:
    """The small file with ``value`` at a path such as ``podgroups.0.tasks.1.node``; keys on the way are made."""
    document = small_file()
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    inner: Any = document
    for step in way:
        inner = inner[step] if isinstance(step, int) else inner.setdefault(step, {})
    if isinstance(inner, list) and last == len(inner):
        inner.append(value)
    else:
        inner[last] = value
    return document


def refusal(document: Any) -> str:
    """The sentence with which a document is refused."""
    with pytest.raises(ClusterFileRefused) as refused:
        read_cluster(document)
    return str(refused.value)


def compiled(document: dict[str, Any]) -> tuple[Snapshot, Names]:
    """Read and compile plain data."""
    return compile_cluster(read_cluster(document))
