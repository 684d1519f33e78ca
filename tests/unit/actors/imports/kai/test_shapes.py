"""A value of a wrong type in an object of KAI Scheduler is refused by both commands that read such objects."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.imports.kai import config as kai_config
from actors.imports.kubernetes.manifests import cluster_of
from actors.imports.volcano import config as volcano_config

VERSIONS = {"Queue": "scheduling.run.ai/v2", "PodGroup": "scheduling.run.ai/v2alpha2", "Topology": "kai.scheduler/v1"}


@pytest.mark.parametrize(
    ("kind", "spec", "told"),
    [
        ("Queue", [1], "spec: expected a mapping, found [1]"),
        ("Queue", {"resources": ["gpu"]}, 'spec.resources: expected a mapping, found ["gpu"]'),
        ("Queue", {"resources": {"gpu": 8}}, "spec.resources.gpu: expected a mapping, found 8"),
        ("Queue", {"resources": {"gpu": {"quota": float("inf")}}}, "spec.resources.gpu.quota: expected a whole number"),
        ("Queue", {"resources": {"gpu": {"overQuotaWeight": -1}}}, "spec.resources.gpu.overQuotaWeight: expected a"),
        ("Queue", {"priority": True}, "spec.priority: expected a whole number, found true"),
        ("Topology", {"levels": 3}, "spec.levels: expected a list, found 3"),
        ("Topology", {"levels": ["rack"]}, 'spec.levels[0]: expected a mapping, found "rack"'),
        ("Topology", {"levels": [{"alias": "rack"}]}, "spec.levels[0].nodeLabel: expected a value, found nothing"),
        ("PodGroup", {"minMember": -1}, "spec.minMember: expected at least 0, found -1"),
        ("PodGroup", {"subGroups": {"a": {}}}, 'spec.subGroups: expected a list, found {"a": {}}'),
        ("PodGroup", {"subGroups": [None]}, "spec.subGroups[0]: expected a mapping, found nothing"),
        ("PodGroup", {"subGroups": [{"name": "a"}] * 2}, "spec.subGroups[1].name: expected each name once"),
        (
            "PodGroup",
            {"subGroups": [{"name": "b", "parent": "a"}, {"name": "a", "parent": "a"}]},
            'spec.subGroups[1].parent: expected a subgroup that is not below this one, found "a"',
        ),
        (
            "PodGroup",
            {"subGroups": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]},
            'spec.subGroups[0].parent: expected a subgroup that is not below this one, found "b"',
        ),
        (
            "PodGroup",
            {"topologyConstraint": {"requiredTopologyLevel": {"nodeLabel": "rack"}}},
            "spec.topologyConstraint.requiredTopologyLevel: expected text",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_file_line_object_and_path(
    kind: str, spec: Any, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(
        yaml.safe_dump({"apiVersion": VERSIONS[kind], "kind": kind, "metadata": {"name": "x"}, "spec": spec})
    )
    assert kai_config.run([file], None, None) == 2
    told_by_one = capsys.readouterr().err.partition("\n")[0].partition("wrong.yaml, ")[2]
    assert told_by_one.partition(": ")[2].startswith(f"{kind} x: {told}")
    with pytest.raises(ClusterFileRefused) as refusal:
        cluster_of([file])
    assert str(refusal.value).partition("wrong.yaml, ")[2] == told_by_one


def test_each_wrong_value_is_named_and_not_only_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    levels = [{"nodeLabel": 1}, {"nodeLabel": "rack"}, {"alias": "node"}, {"nodeLabel": "", "alias": True}]
    body = {"kind": "Topology", "metadata": {"name": "x"}, "spec": {"levels": levels}}
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(body))
    assert kai_config.run([tmp_path / "wrong.yaml"], None, None) == 2
    told = {line.partition("spec.levels")[2] for line in capsys.readouterr().err.splitlines()}
    assert told == {
        "[0].nodeLabel: expected text, found 1",
        "[2].nodeLabel: expected a value, found nothing",
        "[3].alias: expected text, found true",
        '[3].nodeLabel: expected text that is not empty, found ""',
    }


def test_a_key_without_a_value_counts_as_absent(tmp_path: Path) -> None:
    file, spec = tmp_path / "null.yaml", {"resources": {"gpu": {"quota": None, "limit": None}}, "priority": None}
    about = {"name": "x", "namespace": None}
    file.write_text(yaml.safe_dump({"apiVersion": VERSIONS["Queue"], "kind": "Queue", "metadata": about, "spec": spec}))
    assert kai_config.run([file], None, tmp_path / "cluster.yaml") == 0
    (queue,) = yaml.safe_load((tmp_path / "cluster.yaml").read_text())["queues"]
    assert (queue["priority"], *(queue[key]["nvidia.com/gpu"] for key in ("deserved", "capability"))) == (100, 0, 0)
    document, _, findings = cluster_of([file])
    assert (document["queues"][0]["priority"], findings) == (100, [])


@pytest.mark.parametrize("name", [["predicates"], {"preempt": True}])
def test_a_name_that_is_no_text_is_refused(name: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "named.yaml"
    file.write_text(yaml.safe_dump({"actions": "allocate", "tiers": [{"plugins": [{"name": name}]}]}))
    assert kai_config.run([file], None, None) == 2
    file.write_text(yaml.safe_dump({"actions": "allocate", "configurations": [{"name": name}]}))
    assert volcano_config.run(file, None) == 2
    assert capsys.readouterr().err.count("name: expected one of") == 2
