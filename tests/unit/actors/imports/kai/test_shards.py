"""A SchedulingShard as a profile: what it overrides, what its flags set, and what is named."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.configuration.profiles import load_profile
from actors.imports.kai.config import run
from pipeline.policy import Policy
from tests.support.kai_objects import written


def shard(**spec: Any) -> str:
    return yaml.safe_dump(
        {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": "default"}, "spec": spec},
        sort_keys=False,
    )


def profile(folder: Path, **spec: Any) -> Policy:
    assert run(written(folder, shard(**spec)), folder / "ours.toml", None) == 0
    return load_profile(str(folder / "ours.toml"))


def arguments(policy: Policy, plugin: str) -> dict[str, Any]:
    (found,) = (one for one in policy.plugins if one.name == plugin)
    return dict(found.arguments)


def named(folder: Path, capsys: pytest.CaptureFixture[str], **spec: Any) -> list[str]:
    assert run(written(folder, shard(**spec)), None, None) == 2
    return [line.split(": ", maxsplit=2)[2] for line in capsys.readouterr().err.splitlines()]


def test_a_shard_that_says_nothing_is_what_kai_does_by_itself(tmp_path: Path) -> None:
    policy = profile(tmp_path)
    assert (policy.actions, policy.plugins) == (load_profile("kai").actions, load_profile("kai").plugins)


def test_a_shard_of_kais_manual_keeps_its_depths_and_minimum_runtimes(tmp_path: Path) -> None:
    policy = profile(
        tmp_path,
        partitionLabelValue="",
        args={"leader-elect": "true", "v": "3"},
        placementStrategy={"gpu": "binpack", "cpu": "binpack"},
        queueDepthPerAction={"preempt": 15, "reclaim": 8, "allocate": 25},
        minRuntime={"preemptMinRuntime": "10m", "reclaimMinRuntime": "5m"},
        kValue=0.25,
    )
    asked = ("allocate", "consolidation", "reclaim", "preempt")
    assert [policy.action_argument(name, "queue_depth", 0) for name in asked] == [25, 0, 8, 15]
    found = arguments(policy, "minruntime")
    assert (found["default_preempt"], found["default_reclaim"]) == (600.0, 300.0)
    assert arguments(policy, "fairshare") == {"k": 0.25}


def test_actions_are_switched_off_and_put_in_another_order(tmp_path: Path) -> None:
    policy = profile(tmp_path, actions={"consolidation": {"enabled": False}, "preempt": {"priority": 350}})
    assert policy.actions == ("allocate", "preempt", "reclaim", "stalegangeviction")


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_nothing_is_consolidated_where_tasks_spread_unless_the_shard_says_so(kind: str, tmp_path: Path) -> None:
    assert "consolidation" not in profile(tmp_path, placementStrategy={kind: "spread"}).actions
    told = {"consolidation": {"enabled": True}}
    assert "consolidation" in profile(tmp_path, placementStrategy={kind: "spread"}, actions=told).actions


def test_plugins_are_switched_off_and_put_in_another_order(tmp_path: Path) -> None:
    names = [one.name for one in profile(tmp_path, plugins={"topology": {"enabled": False}}).plugins]
    assert "network-topology-aware" not in names
    names = [one.name for one in profile(tmp_path, plugins={"elastic": {"priority": 1750}}).plugins]
    assert names[:2] == ["elastic", "priority"]


def test_arguments_of_a_plugin_replace_what_the_shard_sets_of_it(tmp_path: Path) -> None:
    told = {"proportion": {"arguments": {"relcaimerSaturationMultiplier": "1.5"}}}
    assert arguments(profile(tmp_path, kValue=0.5, plugins=told), "fairshare") == {"saturation_multiplier": 1.5}
    told = {"nodeplacement": {"arguments": {"gpu": "binpack", "cpu": "spread"}}}
    found = arguments(profile(tmp_path, plugins=told), "nodeplacement")
    assert found == {"strategy": "binpack", "cpu_strategy": "spread"}


def test_flags_set_what_has_a_counterpart(tmp_path: Path) -> None:
    flags = {"default-staleness-grace-period": "-1s", "max-consolidation-preemptees": "4"}
    policy = profile(tmp_path, args=flags | {"allow-consolidating-reclaim": "false", "full-hierarchy-fairness": "T"})
    assert (policy.stale_grace_s, policy.consolidation_max_victims) == (-1.0, 4)
    assert not policy.allow_consolidating_reclaim


def test_what_only_bounds_or_keeps_a_search_changes_nothing(tmp_path: Path) -> None:
    budgets = {"maxJobSearchDuration": "250ms"}
    policy = profile(
        tmp_path, scenarioSearchBudgets=budgets, scenarioSearchCheckpoints={"maxJobs": 17}, goMemLimit="6Gi"
    )
    assert policy.plugins == load_profile("kai").plugins


def test_a_plugin_or_an_action_that_is_unknown_may_stand_there_if_it_is_off(tmp_path: Path) -> None:
    off = {"mine": {"enabled": False, "priority": 5}}
    assert profile(tmp_path, plugins=off, actions=off).actions == load_profile("kai").actions


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"plugins": {"mine": {"priority": 1050}}}, "spec.plugins.mine: expected one of priority, elastic"),
        ({"actions": {"mine": {}}}, "spec.actions.mine: expected one of"),
        ({"actions": {"reclaim": {"depth": 3}}}, "spec.actions.reclaim.depth: expected one of enabled, priority;"),
        ({"actions": {"reclaim": {"enabled": "no"}}}, "spec.actions.reclaim.enabled: expected true or false"),
        ({"plugins": {"elastic": {"priority": "1"}}}, "spec.plugins.elastic.priority: expected a whole number"),
        ({"partitionLabelValue": "gpu-nodes"}, "spec.partitionLabelValue: expected none: give the nodes"),
        ({"usageDBConfig": {"clientType": "prometheus"}}, "spec.usageDBConfig: nothing here reads past use"),
        ({"kValue": -1}, "spec.kValue: expected a number, at least 0, found -1"),
        ({"minRuntime": {"reclaimMinRuntime": "soon"}}, "spec.minRuntime.reclaimMinRuntime: expected a duration"),
        ({"placementStrategy": {"cpu": "scatter"}}, "spec.placementStrategy.cpu: expected binpack or spread"),
        ({"queueDepthPerAction": {"reclaim": 0}}, "spec.queueDepthPerAction.reclaim: expected a whole number"),
        ({"args": {"full-hierarchy-fairness": "false"}}, "spec.args.full-hierarchy-fairness: expected true"),
        ({"args": {"stuck-in-releasing-threshold": "5m"}}, "spec.args.stuck-in-releasing-threshold: expected 2m"),
        ({"args": {"unheard": "1"}}, "spec.args.unheard: expected one of default-staleness-grace-period"),
        ({"resourceQuota": {}}, "spec.resourceQuota: expected one of actions, args"),
        ({"plugins": ["elastic"]}, "spec.plugins: expected a mapping"),
    ],
)  # fmt: skip
def test_a_line_of_a_shard_that_cannot_be_honoured_is_named(
    spec: dict[str, Any], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = named(tmp_path, capsys, **spec)
    assert all(one.startswith(f"SchedulingShard default: {told}") for one in said), said


def test_two_shards_are_two_configurations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(written(tmp_path, shard(), shard()), None, None) == 2
    assert "1.yaml, line 5: SchedulingShard default: spec: expected one scheduler" in capsys.readouterr().err
