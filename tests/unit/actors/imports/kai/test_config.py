"""What KAI Scheduler is told, as a profile and a cluster file: what becomes of each line, and which are named."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.configuration.profiles import load_profile
from actors.imports.kai.config import run
from pipeline.policy import Policy
from tests.support.kai_objects import imported, written

#: As KAI's chart writes it.
CONFIGURATION = """
actions: "allocate, consolidation, reclaim, preempt, stalegangeviction"
tiers:
- plugins:
  - name: predicates
  - name: proportion
    arguments: {kValue: "0.5", relcaimerSaturationMultiplier: "1.5"}
  - name: priority
  - name: nodeavailability
  - name: elastic
  - name: subgrouporder
  - name: taskorder
  - name: gpupack
  - name: nodeplacement
    arguments: {cpu: binpack, gpu: binpack}
  - name: minruntime
    arguments: {defaultPreemptMinRuntime: 0s, reclaimResolveMethod: lca}
  - name: topology
  - name: sg-nodelocalgreedy
  - name: sg-multinodegang
"""
OBJECTS = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: research, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  displayName: Research
  resources:
    cpu: {quota: -1, limit: -1, overQuotaWeight: 1}
    memory: {quota: 64000, limit: 128000, overQuotaWeight: 2}
    gpu: {quota: 8, limit: 16, overQuotaWeight: 0}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: vision}
spec:
  parentQueue: research
  priority: 200
  preemptMinRuntime: 20s
  reclaimMinRuntime: 1h30m
  resources: {cpu: {quota: 1500}, gpu: {quota: 4}}
---
apiVersion: kai.scheduler/v1alpha1
kind: Topology
metadata: {name: network}
spec:
  levels:
  - nodeLabel: net/block
    alias: block
  - nodeLabel: net/rack
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: train}
value: 50
---
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata:
  name: serve
  namespace: lab
  annotations: {kai.scheduler/stale-podgroup-timestamp: "2026-01-01T00:01:00Z"}
spec:
  queue: vision
  minMember: 6
  priorityClassName: train
  preemptibility: non-preemptible
  stalenessGracePeriod: 90s
  markUnschedulable: true
  topologyConstraint: {topology: network, requiredTopologyLevel: block}
  minSubGroup: 1
  subGroups:
  - {name: replicas, minSubGroup: 2}
  - name: r0
    parent: replicas
    minMember: 3
    topologyConstraint: {topology: network, preferredTopologyLevel: net/rack}
  - {name: r1, parent: replicas, minMember: 3}
"""
LISTED = "actions: allocate\ntiers:\n- plugins:\n  - name: "


def profile(folder: Path, text: str) -> Policy:
    assert run(written(folder, text), folder / "ours.toml", None) == 0
    return load_profile(str(folder / "ours.toml"))


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *texts: str) -> list[str]:
    """What is named."""
    assert run(written(folder, *texts), None, None) == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.splitlines()


def test_a_configuration_becomes_a_profile_that_the_program_reads(tmp_path: Path) -> None:
    policy = profile(tmp_path, CONFIGURATION)
    assert policy.actions == ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
    assert [plugin.name for plugin in policy.plugins] == [plugin.name for plugin in load_profile("kai").plugins]
    fair = next(plugin for plugin in policy.plugins if plugin.name == "fairshare")
    assert dict(fair.arguments) == {"k": 0.5, "saturation_multiplier": 1.5}
    assert policy.solvers == load_profile("kai").solvers


def test_a_plugin_that_is_not_listed_is_not_asked_and_gangs_always_are(tmp_path: Path) -> None:
    text = 'actions: "allocate, reclaim"\ntiers: [{plugins: [{name: proportion}, {name: predicates}]}]\n'
    policy = profile(tmp_path, text)
    assert [plugin.name for plugin in policy.plugins] == ["gang", "fairshare", "predicates"]
    assert dict(policy.solvers) == {"reclaim": "scenarios"}


@pytest.mark.parametrize("tiers", ["", "tiers: []\n", "tiers:\n"])
def test_without_tiers_all_plugins_are_asked(tiers: str, tmp_path: Path) -> None:
    assert profile(tmp_path, f'actions: "allocate, reclaim"\n{tiers}').plugins == load_profile("kai").plugins


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("cpu: spread", {"strategy": "binpack", "cpu_strategy": "spread"}),
        ("gpu: spread", {"strategy": "spread", "cpu_strategy": "binpack"}),
        ("gpu: spread, cpu: spread", {"strategy": "spread"}),
        ("gpu: binpack, cpu: spread", {"strategy": "binpack", "cpu_strategy": "spread"}),
    ],
)
def test_tasks_without_devices_are_placed_in_their_own_way(given: str, ours: dict[str, str], tmp_path: Path) -> None:
    """What is not stated of cpu or gpu is binpack in KAI, whatever the other one is."""
    (placing,) = (
        one
        for one in profile(tmp_path, LISTED + f"nodeplacement\n    arguments: {{{given}}}\n").plugins
        if one.name == "nodeplacement"
    )
    assert dict(placing.arguments) == ours


@pytest.mark.parametrize("first", ["priority", "elastic"])
def test_of_plugins_that_order_podgroups_the_one_listed_first_comes_first(first: str, tmp_path: Path) -> None:
    second = {"priority": "elastic", "elastic": "priority"}[first]
    policy = profile(tmp_path, LISTED + f"proportion\n  - name: {first}\n  - name: {second}\n")
    assert [plugin.name for plugin in policy.plugins] == [first, second, "gang", "fairshare"]


def test_the_depth_of_queues_becomes_an_argument_of_each_action_that_runs(tmp_path: Path) -> None:
    depths = "queueDepthPerAction: {allocate: 7, reclaim: 5, preempt: 3}\n"
    policy = profile(tmp_path, f'actions: "allocate, reclaim"\ntiers: []\n{depths}')
    assert [policy.action_argument(name, "queue_depth", 0) for name in ("allocate", "reclaim", "preempt")] == [7, 5, 0]


@pytest.mark.parametrize("method", ["lca", "queue"])
def test_minimum_runtimes_where_no_queue_states_any_are_kept(method: str, tmp_path: Path) -> None:
    given = f"{{defaultPreemptMinRuntime: 90s, defaultReclaimMinRuntime: 10m, reclaimResolveMethod: {method}}}"
    (ours,) = (
        one
        for one in profile(tmp_path, LISTED + f"minruntime\n    arguments: {given}\n").plugins
        if one.name == "minruntime"
    )
    assert dict(ours.arguments) == {
        "elastic": True, "reclaim_from": method, "default_preempt": 90.0, "default_reclaim": 600.0
    }  # fmt: skip


@pytest.mark.parametrize(("text", "seconds"), [("2d4h30m", 189000.0), ("1w", 604800.0), ("0.5d", 43200.0)])
def test_a_minimum_runtime_may_be_in_days_and_weeks(text: str, seconds: float, tmp_path: Path) -> None:
    policy = profile(tmp_path, LISTED + f"minruntime\n    arguments: {{defaultReclaimMinRuntime: {text}}}\n")
    (ours,) = (one for one in policy.plugins if one.name == "minruntime")
    assert dict(ours.arguments)["default_reclaim"] == seconds


def test_a_configuration_may_stand_in_its_config_map(tmp_path: Path) -> None:
    inner = "".join(f"    {line}\n" for line in CONFIGURATION.strip().splitlines())
    text = f"kind: ConfigMap\nmetadata: {{name: scheduler-config}}\ndata:\n  config.yaml: |\n{inner}"
    assert profile(tmp_path, text).actions == profile(tmp_path, CONFIGURATION).actions


def test_a_config_map_whose_configuration_cannot_be_read_is_refused(tmp_path: Path) -> None:
    text = "kind: ConfigMap\ndata:\n  config.yaml: |\n    actions: allocate\n    - plugins\n"
    with pytest.raises(
        ClusterFileRefused, match=re.escape("0.yaml, data.config.yaml, line 2, column 1: expected YAML")
    ):
        run(written(tmp_path, text), None, None)


def test_queues_keep_their_quotas_in_our_units(tmp_path: Path) -> None:
    research, vision = imported(tmp_path, OBJECTS)["queues"]
    assert research == {
        "name": "research", "priority": 100, "created": 1767225600.0,
        "over_quota_weight": {"cpu": 1, "memory": 2, "nvidia.com/gpu": 0},
        "deserved": {"cpu": "unlimited", "memory": "64000M", "nvidia.com/gpu": 8},
        "capability": {"memory": "128000M", "nvidia.com/gpu": 16},
    }  # fmt: skip
    assert (vision["parent"], vision["priority"]) == ("research", 200)
    assert (vision["preempt_min_runtime"], vision["reclaim_min_runtime"]) == (20.0, 5400.0)
    assert vision["deserved"] == {"cpu": "1500m", "memory": "0M", "nvidia.com/gpu": 4}


def test_a_limit_or_a_weight_that_a_queue_does_not_state_is_none_at_all(tmp_path: Path) -> None:
    vision = imported(tmp_path, OBJECTS)["queues"][1]
    assert vision["capability"] == {"cpu": "0m", "memory": "0M", "nvidia.com/gpu": 0}
    assert vision["over_quota_weight"] == {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0}


def test_a_podgroup_keeps_its_minima_its_levels_and_its_history(tmp_path: Path) -> None:
    made = imported(tmp_path, OBJECTS)
    assert made["topology"] == {
        "levels": ["net/block", "net/rack"], "labels": {"net/block": "net/block", "net/rack": "net/rack"}
    }  # fmt: skip
    assert made["podgroups"] == [
        {
            "name": "serve", "namespace": "lab", "queue": "vision", "min_available": 6, "min_subgroups": 1,
            "priority_class": "train", "preemptible": False, "stale_grace_seconds": 90.0,
            "topology": {"required": "net/block"}, "stale_since": 1767225660.0,
            "subgroups": [
                {"name": "replicas", "min_subgroups": 2, "children": [
                    {"name": "r0", "topology": {"preferred": "net/rack"}, "min_available": 3},
                    {"name": "r1", "min_available": 3},
                ]}
            ],
        }
    ]  # fmt: skip


def test_objects_may_come_as_lists_and_from_several_files(tmp_path: Path) -> None:
    parts = [yaml.safe_load(part) for part in OBJECTS.split("---\n")]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": parts[1:]})
    assert imported(tmp_path, OBJECTS.split("---\n", maxsplit=1)[0], listed) == imported(tmp_path, OBJECTS)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ('actions: "allocate, dance"\n', 1, "actions: expected some of"),
        (
            "actions: allocate\nqueueDepths: {reclaim: 5}\n",
            2,
            "queueDepths: expected actions, tiers or queueDepthPerAction",
        ),
        (
            "actions: allocate\nqueueDepthPerAction: {stalegangeviction: 5}\n",
            2,
            "queueDepthPerAction.stalegangeviction: expected one of allocate, consolidation, preempt, reclaim",
        ),
        (
            "actions: allocate\nqueueDepthPerAction: {allocate: 0}\n",
            2,
            "queueDepthPerAction.allocate: expected a whole number, at least 1, found 0",
        ),
        (LISTED + "unheard\n", 4, "tiers[0].plugins[0].name: expected one of"),
        (
            LISTED + "nodeplacement\n    arguments:\n      cpu: spread\n      gpu: scatter\n",
            7,
            "tiers[0].plugins[0].arguments.gpu: expected binpack or spread, found 'scatter'",
        ),
        (
            LISTED + "minruntime\n    arguments: {defaultReclaimMinRuntime: soon}\n",
            5,
            "tiers[0].plugins[0].arguments.defaultReclaimMinRuntime: expected a duration such as 1h30m, found 'soon'",
        ),
        (
            LISTED + "minruntime\n    arguments: {reclaimResolveMethod: root}\n",
            5,
            "tiers[0].plugins[0].arguments.reclaimResolveMethod: expected lca or queue, found 'root'",
        ),
        (
            "kind: Queue\nmetadata: {name: q}\nspec:\n  resources:\n    gpu:\n      quota: 0.5\n",
            6,
            "Queue q: spec.resources.gpu.quota",
        ),
        (
            "kind: PodGroup\nmetadata: {name: p}\nspec:\n  queue: q\n  completions: 4\n",
            5,
            "PodGroup p: spec.completions: nothing",
        ),
        (
            "# first\n---\nkind: Pod\n",
            3,
            "kind: expected one of Queue, PodGroup, Topology, PriorityClass, SchedulingShard, found 'Pod'",
        ),
        (
            "kind: PodGroup\nmetadata: {name: p}\nspec:\n  subGroups:\n  - {name: a}\n  - name: b\n    parent: c\n",
            7,
            "PodGroup p: spec.subGroups[1].parent: expected the name of a subgroup, found 'c'",
        ),
    ],
)
def test_a_line_that_cannot_be_honoured_is_named(
    text: str, line: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (said,) = refused(tmp_path, capsys, text)
    assert said.startswith(f"clearway: 0.yaml, line {line}: {told}"), said


def test_all_that_is_wrong_is_named_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(
        tmp_path, capsys, "actions: dance\nmore: 1\n", "kind: Queue\nmetadata: {name: q}\nspec: {depth: 2}\n"
    )
    assert [one.split(": ")[1] for one in said] == ["0.yaml, line 1", "0.yaml, line 2", "1.yaml, line 3"]


def test_names_that_do_not_meet_are_refused(tmp_path: Path) -> None:
    told = (
        "0.yaml, line 2: PodGroup p: in the cluster file made of it, podgroups[0].queue: expected the name of a queue"
    )
    with pytest.raises(ClusterFileRefused, match=re.escape(told)):
        run(written(tmp_path, "---\nkind: PodGroup\nmetadata: {name: p}\nspec: {queue: nowhere}\n"), None, None)


def test_the_command_writes_both(tmp_path: Path) -> None:
    files = [str(file) for file in written(tmp_path, CONFIGURATION, OBJECTS)]
    command = [sys.executable, "-m", "actors", "import", "kai-config", *files]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "expected --cluster" in ran.stderr
    out = tmp_path / "cluster.yaml"
    ran = subprocess.run([*command, "--cluster", str(out)], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout[:6]) == (0, "# From")
    assert out.exists()


@pytest.mark.parametrize(
    ("text", "out", "cluster", "told"),
    [
        ("# nothing yet", None, None, "expected a scheduler configuration or objects in the files, found neither"),
        (OBJECTS, "mine.toml", "objects.yaml", "--out: expected a scheduler configuration in the files, found none"),
        (
            CONFIGURATION,
            "mine.toml",
            "objects.yaml",
            "--cluster: expected any of Queue, PodGroup, Topology, PriorityClass",
        ),
    ],
)
def test_a_file_that_is_asked_for_and_has_no_content_is_refused(
    text: str, out: str | None, cluster: str | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [None if name is None else tmp_path / name for name in (out, cluster)]
    assert run(written(tmp_path, text), *places) == 2
    assert told in capsys.readouterr().err
    assert not any(place is not None and place.exists() for place in places)
