"""Volcano's scheduler configurations as profiles: what becomes of each line, and which cannot be honoured."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.configuration.profiles import FOLDER, load_profile
from actors.documents.bounded_files import FileRefused
from actors.imports.volcano.config import SWITCHES, Configuration, run
from pipeline.policy import ExtensionPoint, Policy
from tests.support.simulating import simulate

FIRST_TIER = """
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance"""
PLAIN = f"""
actions: "enqueue, allocate, backfill"{FIRST_TIER}
- plugins:
  - name: overcommit
    arguments: {{overcommit-factor: 1.5}}
  - name: drf
  - name: predicates
  - name: capacity
    enabledHierarchy: true
    arguments: {{ancestorReclaimLevel: 1}}
  - name: nodeorder
    arguments:
      leastrequested.weight: "2"
      mostrequested.weight: 0
      balancedresource.weight: 3
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.cpu: 5
      binpack.resources: nvidia.com/gpu, example.com/foo
      binpack.resources.nvidia.com/gpu: 2
"""
#: As Volcano's own tests of gang-aware eviction configure it.
GANGS = f"""
actions: "allocate, backfill, gangreclaim, gangpreempt"{FIRST_TIER}
  - name: sla
    arguments: {{sla-waiting-time: 1h}}
  - name: capacity
- plugins:
  - name: overcommit
  - name: predicates
  - name: nodeorder
  - name: binpack
  - name: pdb
  - name: cdp
  - name: network-topology-aware
    enabledHyperNodeOrder: true
    arguments:
      hypernode.gradient.evict.max-hypernodes: 6
      hypernode.binpack.cpu: 5
      hypernode.binpack.resources: nvidia.com/gpu, example.com/foo
      hypernode.binpack.resources.nvidia.com/gpu: 2
configurations:
- name: gangpreempt
  arguments: {{maxDomains: 4, allowWholeBundle: false}}
- name: gangreclaim
  arguments: {{maxDomains: 4, allowWholeBundle: false}}
"""


def imported(text: str, folder: Path) -> Policy:
    """The policy that the configuration becomes, read back from its file."""
    given, profile = folder / "volcano.yaml", folder / "mine.toml"
    given.write_text(text)
    assert run(given, profile) == 0
    return load_profile(str(profile))


def offences(text: str) -> list[str]:
    configuration = Configuration(text, "v.yaml")
    configuration.profile()
    return configuration.sentences()


def plugin(policy: Policy, name: str) -> Any:
    return next(setting for setting in policy.plugins if setting.name == name)


def test_tiers_are_kept_and_flags_that_are_not_given_are_on(tmp_path: Path) -> None:
    policy = imported(PLAIN, tmp_path)
    assert policy.actions == ("enqueue", "allocate", "backfill")
    names = [setting.name for setting in policy.plugins]
    assert names[:5] == ["priority", "gang", "conformance", "overcommit", "drf"]
    assert [setting.tier for setting in policy.plugins][:5] == [0, 0, 0, 1, 1]
    gang = plugin(policy, "gang")
    assert not gang.asks(ExtensionPoint.PREEMPTABLE)
    assert gang.asks(ExtensionPoint.RECLAIMABLE)
    assert dict(plugin(policy, "capacity").enabled)["hierarchy"]
    assert not dict(plugin(policy, "drf").enabled)["hierarchy"]


def test_arguments_get_our_names(tmp_path: Path) -> None:
    policy = imported(PLAIN, tmp_path)
    assert plugin(policy, "overcommit").argument("overcommit-factor", 0) == 1.5
    assert plugin(policy, "capacity").argument("ancestor_reclaim_level", 0) == 1
    assert dict(plugin(policy, "nodeorder").arguments) == {"least_requested": 2, "most_requested": 0, "balanced": 3}
    assert dict(plugin(policy, "binpack").arguments) == {
        "weight": 10, "cpu": 5, "resources": {"nvidia.com/gpu": 2, "example.com/foo": 1},
    }  # fmt: skip


def test_weights_by_which_domains_are_scored_are_kept(tmp_path: Path) -> None:
    topology = plugin(imported(GANGS, tmp_path), "network-topology-aware")
    assert topology.asks(ExtensionPoint.DOMAIN_ORDER)
    assert dict(topology.arguments) == {"cpu": 5, "resources": {"nvidia.com/gpu": 2, "example.com/foo": 1}}


def test_arguments_of_actions_bound_the_search(tmp_path: Path) -> None:
    policy = imported(GANGS, tmp_path)
    assert (policy.max_domains, policy.allow_whole_bundle) == (4, False)
    assert plugin(policy, "sla").argument("waiting_time", 0.0) == 3600.0


def test_the_flag_of_document_1_turns_preempt_into_the_gang_aware_one(tmp_path: Path) -> None:
    text = "actions: preempt, reclaim\ntiers: [{plugins: [{name: gang, arguments: {preempt.gangAwareEnable: true}}]}]\n"
    policy = imported(text, tmp_path)
    assert (policy.solver("preempt"), policy.solver("reclaim")) == ("bundles", "tasks")
    text = "actions: preempt\nconfigurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]\n"
    policy = imported(text, tmp_path)
    assert policy.solver("preempt") == "tasks"
    assert policy.action_argument("preempt", "topology_aware", False) is True


def test_an_imported_profile_decides(tmp_path: Path) -> None:
    imported(GANGS.replace("allowWholeBundle: false", "allowWholeBundle: true"), tmp_path)
    running = [
        {"name": f"v-{at}", "request": {"cpu": 1}, "status": "Running", "node": "n", "preemptible": True}
        for at in range(2)
    ]
    document = {
        "version": 1,
        "nodes": [{"name": "n", "allocatable": {"cpu": 2, "pods": 9}}],
        "queues": [{"name": "q"}],
        "podgroups": [
            {"name": "low", "queue": "q", "min_available": 1, "phase": "Running", "tasks": running},
            {"name": "high", "queue": "q", "priority": 9, "phase": "Inqueue", "min_available": 1,
             "tasks": [{"name": "h", "request": {"cpu": 1}}]},
        ],
    }  # fmt: skip
    result = simulate(document, profile=str(tmp_path / "mine.toml"))
    assert result["error"] is None
    assert [eviction["action"] for eviction in result["cycles"][0]["evictions"]] == ["gangpreempt"]


def test_the_choice_of_a_card_carries_over(tmp_path: Path) -> None:
    arguments = "{deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: spread}"
    policy = imported(in_tier(f"  - name: deviceshare\n    arguments: {arguments}\n"), tmp_path)
    assert [(plugin.name, plugin.arguments) for plugin in policy.plugins] == [("deviceshare", (("cards", "spread"),))]


def test_a_config_map_is_opened_and_lines_are_those_of_the_file() -> None:
    inner = "".join(f"    {line}\n" for line in "actions: allocate\ntiers:\n- plugins:\n  - name: tdm\n".splitlines())
    found = offences(f"kind: ConfigMap\ndata:\n  volcano-scheduler.conf: |\n{inner}")
    assert len(found) == 1
    assert found[0].startswith("v.yaml, data.volcano-scheduler.conf, line 7: tiers[0].plugins[0].name: expected")


def test_the_configuration_of_the_design_document_is_read_as_it_is_printed(tmp_path: Path) -> None:
    """See "Gang-Aware Preemption and Reclaim", section 3.1: switches stand beside the plugins of a tier."""
    names = ("gang", "priority", "drf", "predicates", "nodeorder", "binpack")
    plugins = "".join(f"    - name: {name}\n" for name in names)
    switches = "    arguments:\n      preempt.gangAwareEnable: true\n      reclaim.gangAwareEnable: true\n"
    policy = imported(
        f'actions: "allocate, backfill, preempt, reclaim"\ntiers:\n  - plugins:\n{plugins}{switches}', tmp_path
    )
    assert [plugin.name for plugin in policy.plugins] == list(names)
    assert [policy.solver(action) for action in ("preempt", "reclaim")] == ["bundles", "bundles"]


def in_tier(plugins: str) -> str:
    return f"actions: allocate\ntiers:\n- plugins:\n{plugins}"


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("actions: allocate, shuffle\n", 1, "actions: expected some of enqueue, allocate"),
        ("tiers: []\n", 1, "actions: expected actions, such as 'enqueue, allocate, backfill', found nothing"),
        ("actions: allocate\nmetrics: {type: prometheus}\n", 2, "metrics: expected actions, tiers or configurations"),
        (in_tier("  - name: usage\n"), 4, "tiers[0].plugins[0].name: expected one of"),
        (in_tier("  - name: gang\n  - name: gang\n"), 5, "tiers[0].plugins[1].name: expected each plugin once"),
        (in_tier("  - name: gang\n    enableJobOrdr: true\n"), 5, "enableJobOrdr: expected name, arguments or a flag"),
        (in_tier("  - name: gang\n    enableJobOrder: perhaps\n"), 5, "enableJobOrder: expected true or false"),
        (
            in_tier("  - name: sla\n    arguments:\n      sla-waiting-time: soon\n"),
            6,
            "sla-waiting-time: expected a duration such as 1h30m, found 'soon'",
        ),
        (
            in_tier("  - name: nodeorder\n    arguments:\n      tainttoleration.weight: 3\n"),
            6,
            "tainttoleration.weight: expected 0, found 3: nodes are not scored by this here",
        ),
        (
            in_tier("  - name: predicates\n    arguments:\n      predicate.TaintTolerationEnable: false\n"),
            6,
            "predicate.TaintTolerationEnable: expected true, found False: this filter is always on here",
        ),
        (
            in_tier("  - name: binpack\n    arguments:\n      binpack.resources.gpu: 2\n"),
            6,
            "binpack.resources.gpu: expected one of binpack.weight",
        ),
        (
            in_tier("  - name: drf\n    enableHierarchy: true\n  - name: proportion\n"),
            6,
            "tiers[0].plugins[1]: expected proportion or drf with enableHierarchy",
        ),
        (
            "actions: gangpreempt, gangreclaim\nconfigurations:\n- name: gangreclaim\n  arguments:\n    maxDomains: 4",
            5,
            "configurations[0].arguments.maxDomains: expected the same for gangpreempt and gangreclaim",
        ),
        (
            in_tier("  - name: deviceshare\n    arguments:\n      deviceshare.ScheduleWeight: 10\n"),
            6,
            "ScheduleWeight: expected 0, found 10: nodes are not scored by their cards here",
        ),
        (
            in_tier("  - name: deviceshare\n    arguments:\n      deviceshare.SchedulePolicy: random\n"),
            6,
            "SchedulePolicy: expected binpack or spread, found 'random'",
        ),
        ("actions: allocate\nconfigurations:\n- name: elect\n", 3, "configurations[0].name: expected one of enqueue"),
        ("actions: allocate\ntiers: 3\n", 2, "tiers: expected a list, found 3"),
    ],
)
def test_a_line_that_cannot_be_honoured_is_named(text: str, line: int, told: str) -> None:
    found = offences(text)
    assert len(found) == 1
    assert found[0].startswith(f"v.yaml, line {line}: ")
    assert told in found[0]


def test_every_such_line_is_named_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, profile = tmp_path / "v.yaml", tmp_path / "mine.toml"
    given.write_text(in_tier("  - name: tdm\n  - name: usage\n"))
    assert run(given, profile) == 2
    assert not profile.exists()
    assert capsys.readouterr().err.count("\n") == 2


def test_what_is_no_yaml_at_all_is_refused(tmp_path: Path) -> None:
    given = tmp_path / "v.yaml"
    given.write_text("- a\n")
    with pytest.raises(ClusterFileRefused, match="expected a mapping"):
        run(given, None)
    with pytest.raises(ClusterFileRefused, match="readable"):
        run(tmp_path / "none.yaml", None)
    given.write_text(PLAIN)
    with pytest.raises(FileRefused, match="expected a file that can be written"):
        run(given, tmp_path / "nowhere" / "mine.toml")


def test_an_imported_profile_has_the_switches_of_the_volcano_profile() -> None:
    shipped = tomllib.loads((FOLDER / "volcano.toml").read_text())
    assert {key: value for key, value in shipped.items() if key in SWITCHES} == SWITCHES
