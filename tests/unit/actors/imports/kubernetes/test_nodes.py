"""Nodes are matched by their names, whatever their hostnames are."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import imported, pod
from tests.support.simulating import simulate


def node(name: str, hostname: str | None) -> dict[str, Any]:
    labels = {} if hostname is None else {"kubernetes.io/hostname": hostname}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": 8, "pods": 10}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("hostnames", "key"),
    [
        ((None, None), "kubernetes.io/hostname"),
        (("n1.example.com", "n2.example.com"), "kubernetes.io/hostname"),
        (("n1", "n2"), "metadata.name"),
        (("n2.example.com", "n1.example.com"), "metadata.name"),
        (("same", "same"), "metadata.name"),
    ],
)
@pytest.mark.parametrize(("operator", "there"), [("In", "n2.example.com"), ("NotIn", "n1.example.com")])
def test_a_pod_that_wants_a_node_by_name_gets_it(
    hostnames: tuple[str | None, str | None], key: str, operator: str, there: str, tmp_path: Path
) -> None:
    field = {"key": "metadata.name", "operator": operator, "values": ["n2.example.com"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    nodes = [node(f"n{at}.example.com", hostname) for at, hostname in enumerate(hostnames, 1)]
    document, findings = imported(tmp_path, *nodes, pod(affinity=affinity))
    assert findings == []
    assert document["podgroups"][0]["tasks"][0]["node_affinity"][0][0]["key"] == key
    (bound,) = simulate(document)["cycles"][0]["bindings"]
    assert bound["node"] == there
