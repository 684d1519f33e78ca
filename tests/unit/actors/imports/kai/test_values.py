"""Values of KAI's Helm chart as a profile and a cluster file."""

from pathlib import Path

import pytest
import yaml

from actors.configuration.profiles import load_profile
from actors.imports.kai.config import run
from tests.support.kai_objects import written

#: As a manual of NVIDIA asks for, with sections of other parts.
VALUES = """
global:
  leaderElection: true
operator: {replicaCount: 2}
scheduler:
  image: {tag: v0.14.0}
  ports: {metricsPort: 8080}
  placementStrategy: binpack
  plugins:
    nodeplacement:
      arguments: {gpu: binpack, cpu: spread}
  actions:
    preempt: {enabled: false}
    consolidation: {enabled: false}
defaultQueue:
  createDefaultQueue: true
  parentName: default-parent-queue
  childName: default-queue
  parentResources:
    cpu: {quota: -1, limit: -1, overQuotaWeight: 1}
    gpu: {quota: -1}
  childResources:
    gpu: {quota: 4, limit: 8}
"""


def imported(folder: Path, text: str) -> int:
    return run(written(folder, text), folder / "ours.toml", folder / "cluster.yaml")


def refused(folder: Path, capsys: pytest.CaptureFixture[str], text: str) -> list[str]:
    assert run(written(folder, text), None, folder / "cluster.yaml") == 2
    return [line.removeprefix("clearway: 0.yaml, ") for line in capsys.readouterr().err.splitlines()]


def test_the_schedulers_section_becomes_a_profile(tmp_path: Path) -> None:
    assert imported(tmp_path, VALUES) == 0
    policy = load_profile(str(tmp_path / "ours.toml"))
    assert policy.actions == ("allocate", "reclaim", "stalegangeviction")
    (placing,) = (one for one in policy.plugins if one.name == "nodeplacement")
    assert dict(placing.arguments) == {"strategy": "binpack", "cpu_strategy": "spread"}


def test_the_usual_queues_become_queues_with_what_the_chart_fills_in(tmp_path: Path) -> None:
    assert imported(tmp_path, VALUES) == 0
    parent, child = yaml.safe_load((tmp_path / "cluster.yaml").read_text())["queues"]
    assert parent == {
        "name": "default-parent-queue", "priority": 100, "capability": {},
        "over_quota_weight": {"cpu": 1, "memory": 1, "nvidia.com/gpu": 1},
        "deserved": {"cpu": "unlimited", "memory": "0M", "nvidia.com/gpu": "unlimited"},
    }  # fmt: skip
    assert (child["parent"], child["deserved"]["nvidia.com/gpu"]) == ("default-parent-queue", 4)
    assert child["capability"] == {"nvidia.com/gpu": 8}


def test_one_strategy_counts_for_cpu_and_gpu_and_spreading_consolidates_nothing(tmp_path: Path) -> None:
    assert run(written(tmp_path, "scheduler: {placementStrategy: spread}\n"), tmp_path / "ours.toml", None) == 0
    policy = load_profile(str(tmp_path / "ours.toml"))
    (placing,) = (one for one in policy.plugins if one.name == "nodeplacement")
    assert (dict(placing.arguments), "consolidation" in policy.actions) == ({"strategy": "spread"}, False)


@pytest.mark.parametrize(
    ("listed", "actions"), [("[]", load_profile("kai").actions), ("[reclaim, allocate]", ("reclaim", "allocate"))]
)
def test_older_values_list_the_actions_in_order(listed: str, actions: tuple[str, ...], tmp_path: Path) -> None:
    assert run(written(tmp_path, f"scheduler: {{actions: {listed}}}\n"), tmp_path / "ours.toml", None) == 0
    assert load_profile(str(tmp_path / "ours.toml")).actions == actions


def test_no_queues_are_made_where_the_chart_makes_none(tmp_path: Path) -> None:
    text = "scheduler: {}\ndefaultQueue: {createDefaultQueue: false}\n"
    assert run(written(tmp_path, text), tmp_path / "ours.toml", None) == 0


def test_a_line_of_the_values_that_cannot_be_honoured_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "scheduler:\n  tuning: fast\n  plugins:\n    mine: {}\nmine: {}\n"
        "defaultQueue:\n  parentResources:\n    gpu: {quota: many}\n  more: 1\n"
    )
    said = refused(tmp_path, capsys, text)
    assert [one.split(": expected", maxsplit=1)[0] for one in said] == [
        "line 2: scheduler.tuning",
        "line 4: scheduler.plugins.mine",
        "line 5: mine",
        "line 8: Queue default-parent-queue: defaultQueue.parentResources.gpu.quota",
        "line 9: defaultQueue.more",
    ]
