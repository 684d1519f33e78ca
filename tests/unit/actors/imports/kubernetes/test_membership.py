"""What follows for pods and podgroups from one another: priority, and what is spared."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.actors.imports.kubernetes.test_pods import NODE, imported, pod

CLASSES = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in (("low", 10), ("build", 100))
]


def of_kai(name: str, **spec: Any) -> dict[str, Any]:
    annotations = {"annotations": {"pod-group-name": "g"}}
    return pod(name, about=annotations, schedulerName="kai-scheduler", **spec)


def podgroup(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "g"},
        "spec": {"minMember": 1, **spec},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "usual", "said"),
    [
        ({}, None, (50, True)),
        ({}, "build", (100, False)),
        ({"priorityClassName": "low"}, "build", (10, True)),
        ({"priorityClassName": "build"}, None, (100, False)),
        ({"priorityClassName": "absent"}, None, (50, True)),
        ({"priorityClassName": "system-node-critical"}, None, (2_000_001_000, False)),
    ],
)
def test_the_priority_of_a_podgroup_of_kai_is_its_class_or_the_usual_one(
    spec: dict[str, Any], usual: str | None, said: tuple[int, bool], tmp_path: Path
) -> None:
    """What pods state does not count: the API server writes 0 into those without a class."""
    classes = [{**each, "globalDefault": each["metadata"] == {"name": usual}} for each in CLASSES]
    document, findings = imported(tmp_path, NODE, *classes, podgroup(**spec), of_kai("a", priority=0))
    made = document["podgroups"][0]
    assert (made["priority"], made["preemptible"]) == said
    assert len(findings) == (spec.get("priorityClassName") == "absent")


def test_pods_of_kai_without_a_podgroup_have_the_priority_of_their_class_or_the_usual_one(tmp_path: Path) -> None:
    alone = {"schedulerName": "kai-scheduler"}
    pods = [pod("a", priority=0, **alone), pod("b", priority=10, priorityClassName="low", **alone)]
    document, _ = imported(tmp_path, NODE, *CLASSES, *pods)
    assert {made["name"]: made["priority"] for made in document["podgroups"]} == {"a": 50, "b": 10}
