"""What follows for pods and podgroups from one another: priority, and what is spared."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import NODE, imported, manifest, pod
from tests.support.simulating import simulate

CLASSES = [
    manifest("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
    for name, value in (("low", 10), ("build", 100))
]


def of_kai(name: str, **spec: Any) -> dict[str, Any]:
    annotations = {"annotations": {"pod-group-name": "g"}}
    return pod(name, about=annotations, schedulerName="kai-scheduler", **spec)


def podgroup(**spec: Any) -> dict[str, Any]:
    return manifest("scheduling.run.ai/v2alpha2", "PodGroup", "g", {"minMember": 1, **spec})


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


def test_the_index_of_a_task_of_volcano_is_kept_and_may_be_that_of_a_task_of_another_role(tmp_path: Path) -> None:
    def task(role: str, place: str) -> dict[str, Any]:
        about = {"annotations": {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": role}}
        about.setdefault(place, {})["volcano.sh/task-index"] = "1"
        about[place]["volcano.sh/job-retry-count"] = "0"
        return pod(role, about=about, schedulerName="volcano")

    group = {**podgroup(queue="default"), "apiVersion": "scheduling.volcano.sh/v1beta1"}
    document, findings = imported(tmp_path, NODE, group, task("ps", "labels"), task("worker", "annotations"))
    assert [task["index"] for task in document["podgroups"][0]["tasks"]] == [1, 1]
    assert findings == []


@pytest.mark.parametrize(
    ("version", "annotations"),
    [
        (
            "scheduling.run.ai/v2alpha2",
            {
                "kai.scheduler/last-start-timestamp": "2026-01-01T00:00:00Z",
                "kai.scheduler/stale-podgroup-timestamp": "2026-01-01T00:00:00Z",
            },
        ),
        ("scheduling.sigs.k8s.io/v1alpha1", {"gang.scheduling.koordinator.sh/total-number": "2"}),
    ],
)
def test_annotations_of_a_podgroup_that_are_read_or_decide_nothing_are_not_told(
    version: str, annotations: dict[str, str], tmp_path: Path
) -> None:
    group = {**podgroup(), "apiVersion": version, "metadata": {"name": "g", "annotations": annotations}}
    assert imported(tmp_path, NODE, group)[1] == []


@pytest.mark.parametrize(
    ("marks", "bound", "told"),
    [
        (("false", "false"), [], 0),
        (("false", None), ["default/b"], 1),
        (("false", "true"), ["default/b"], 1),
        ((None, None), ["default/b"], 0),
    ],
)
def test_pods_of_koordinator_that_never_go_take_no_more_than_the_minimum_of_their_quota(
    marks: tuple[str | None, str | None], bound: list[str], told: int, tmp_path: Path
) -> None:
    """The minimum is one core: the first pod holds it, the second waits beside it where neither may be evicted."""
    spec = {"min": {"cpu": "1"}, "max": {"cpu": "4"}}
    quota = manifest("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", "team", spec)
    group = {**podgroup(), "apiVersion": "scheduling.sigs.k8s.io/v1alpha1"}

    def of_team(name: str, mark: str | None, **spec: Any) -> dict[str, Any]:
        labels = {"quota.scheduling.koordinator.sh/name": "team", "pod-group.scheduling.sigs.k8s.io": "g"}
        kept = {"quota.scheduling.koordinator.sh/preemptible": mark} if mark is not None else {}
        return pod(name, about={"labels": {**labels, **kept}}, schedulerName="koord-scheduler", **spec)

    pods = [of_team("a", marks[0], nodeName="n"), of_team("b", marks[1])]
    document, findings = imported(tmp_path, NODE, quota, group, *pods)
    assert len(findings) == told
    assert [each["task"] for each in simulate(document, 1, "koordinator")["cycles"][0]["bindings"]] == bound
