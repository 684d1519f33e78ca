"""Manifests of five schedulers, written after their public APIs, through import and simulate."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from actors.cli.commands import app
from actors.imports.kubernetes.manifests import cluster_of
from tests.support.simulating import simulate

FOLDER = Path(__file__).parent / "manifests"
#: By file: the profile, who goes, and where the gang comes to stand.
EXPECTED = {
    "volcano": ("volcano", {"old-b-0"}, {"new-worker-0": "n2", "new-worker-1": "n3"}),
    "kai": ("kai", {f"old-{at}" for at in range(4)}, {"new-left": "n0", "new-right": "n1"}),
    "koordinator": ("koordinator", {"old-e"}, {"master-0": "e", "worker-0": "f"}),
    "kueue": ("default", {"borrower-2-x"}, {"train-0": "n2", "train-1": "n3"}),
    "kube_scheduler": ("default", {"batch-1"}, {"job-1-0": "n1", "job-1-1": "n1"}),
}


@pytest.mark.parametrize("scheduler", EXPECTED)
def test_a_gang_makes_room_for_itself_as_its_manifests_say(scheduler: str) -> None:
    profile, victims, places = EXPECTED[scheduler]
    document, _, findings = cluster_of([FOLDER / f"{scheduler}.yaml"])
    assert not findings
    first, _ = simulate(document, 2, profile)["cycles"]
    assert {each["task"] for each in first["evictions"]} == {f"default/{name}" for name in victims}
    placed = {each["task"]: each["node"] for each in first["nominations"]}
    assert placed == {f"default/{name}": node for name, node in places.items()}


@pytest.mark.parametrize("scheduler", EXPECTED)
def test_manifests_are_simulated_as_the_cluster_file_that_they_become(scheduler: str, tmp_path: Path) -> None:
    profile, manifests, imported = EXPECTED[scheduler][0], FOLDER / f"{scheduler}.yaml", tmp_path / "cluster.yaml"
    assert CliRunner().invoke(app, ["import", "k8s", str(manifests), "--out", str(imported)]).exit_code == 0
    told = [
        CliRunner().invoke(app, ["simulate", str(file), "--profile", profile, "--cycles", "2"])
        for file in (manifests, imported)
    ]
    assert [each.exit_code for each in told] == [0, 0]
    assert told[0].stdout == told[1].stdout


def test_a_dump_of_kubectl_is_read_as_the_objects_in_it(tmp_path: Path) -> None:
    text = (FOLDER / "volcano.yaml").read_text(encoding="utf-8")
    items = list(yaml.safe_load_all(text))
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}, default=str), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert cluster_of([tmp_path]).plain == cluster_of([FOLDER / "volcano.yaml"]).plain


def test_objects_of_one_name_in_two_files_count_once(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text((FOLDER / "kai.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    document, _, findings = cluster_of([tmp_path])
    assert document == cluster_of([FOLDER / "kai.yaml"]).plain
    assert {finding.manifest.file for finding in findings} == {str(tmp_path / "b.yaml")}


def test_pods_of_other_schedulers_take_room_and_are_left_alone() -> None:
    document = cluster_of([FOLDER / "kueue.yaml"], schedulers=["clearway"]).plain
    tasks = [task for podgroup in document["podgroups"] for task in podgroup["tasks"]]
    assert all(task["preemptible"] is False for task in tasks)
    assert not any(simulate(document, 1)["cycles"][0].values())
