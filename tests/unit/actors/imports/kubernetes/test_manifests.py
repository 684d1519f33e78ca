"""A mistake that only shows in the cluster file is told with the object that it comes from."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.imports.kubernetes.manifests import cluster_of
from tests.support.manifests import NODE, pod


def of_kai(kind: str, name: str, version: str = "v2", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"scheduling.run.ai/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


GROUP = of_kai("PodGroup", "g", "v2alpha2", subGroups=[{"name": "a", "minMember": 1}])
CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "c"}, "value": 2**40}
LOST = {"labels": {"kai.scheduler/subgroup-name": "b"}, "annotations": {"pod-group-name": "g"}}


@pytest.mark.parametrize(
    ("objects", "line", "told"),
    [
        ([{**NODE, "spec": {"taints": [{"key": "a"}]}}], 1, "Node n: {}nodes[0].taints[0].effect: expected a value"),
        ([NODE, GROUP, pod("p", about=LOST)], 3, "Pod p: {}podgroups[0].tasks[0].subgroup: expected the name of"),
        (
            [NODE, of_kai("Queue", "b", parentQueue="a"), of_kai("Queue", "a", parentQueue="b")],
            3,
            "Queue a: {}queues[0].parent: expected a queue that is not below this one",
        ),
        ([NODE, CLASS], 2, "PriorityClass c: {}priority_classes[0].value: expected at most"),
    ],
)
def test_the_object_that_a_mistake_comes_from_is_named(
    objects: list[dict[str, Any]], line: int, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "m.yaml"
    written = [yaml.safe_dump(each) for each in objects]
    file.write_text("---\n".join(written))
    with pytest.raises(ClusterFileRefused) as refusal:
        cluster_of([file])
    at = 1 + sum(text.count("\n") + 1 for text in written[: line - 1])
    expected = told.format("in the cluster file made of it, ")
    assert str(refusal.value).startswith(f"{file}, line {at}: {expected}")
