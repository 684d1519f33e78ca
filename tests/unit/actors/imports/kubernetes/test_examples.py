"""YAML as the pages of "Job Scheduling & Network-Topology Aware" print it, gaps and slips included."""

from pathlib import Path

from actors.imports.kubernetes.manifests import cluster_of
from actors.imports.manifest_files import sentence

EXAMPLES = Path(__file__).parent / "manifests" / "job_scheduling"


def test_dots_that_stand_for_something_are_passed_over_and_kinds_may_be_small() -> None:
    document, _, findings = cluster_of([EXAMPLES / "pods_with_gaps.yaml"])
    (gang,) = document["podgroups"]
    assert (gang["min_available"], [each["name"] for each in gang["tasks"]]) == (2, ["one", "two"])
    assert gang["tasks"][1]["index"] == 2
    assert [sentence(each).partition(": ")[2] for each in findings] == [
        "line 9: ... stands for something that is not there"
    ]
    assert not any(each.left_out for each in findings)


def test_metadata_that_are_not_indented_and_fields_in_small_letters_are_read_and_told() -> None:
    document, _, findings = cluster_of([EXAMPLES / "nominated.yaml"])
    tasks = {each["name"]: each for podgroup in document["podgroups"] for each in podgroup["tasks"]}
    assert tasks["preemptor-1"]["nominated_node"] == "node-1"
    assert tasks["preemptor-1"]["labels"] == {"pod-group.scheduling.sigs.k8s.io": "hello"}
    notes = [sentence(each) for each in findings if not each.left_out]
    assert [note.rpartition(": ")[2] for note in notes] == [
        "read as metadata.name", "read as metadata.namespace", "read as metadata.labels", "read as nominatedNodeName",
    ]  # fmt: skip
    assert f"{EXAMPLES / 'nominated.yaml'}, line 9: Pod default/preemptor-1: status.nominatednodeName" in notes[-1]


def test_a_gang_group_may_be_a_list_or_its_text() -> None:
    document, _, findings = cluster_of([EXAMPLES / "gang_group.yaml", EXAMPLES / "network.yaml"])
    assert not findings
    assert {each["min_available"] for each in document["podgroups"]} == {1, 2}


def test_without_a_network_its_layers_are_left_out_not_refused() -> None:
    document, _, findings = cluster_of([EXAMPLES / "gang_group.yaml"])
    assert "topology" not in document["podgroups"][0]
    assert findings
    assert all("network-topology-spec" in sentence(each) for each in findings)
