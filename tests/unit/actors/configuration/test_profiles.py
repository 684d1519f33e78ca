"""Profiles: what a file may say is checked like a cluster file's policy block."""

from pathlib import Path
from typing import Any

import pytest

from actors.configuration.profiles import load_profile
from actors.configuration.settings import SettingsRefused
from pipeline.errors import PolicyRefused

PLUGIN = 'actions = ["allocate"]\n[[plugins]]\nname = "{name}"\n{more}\n'


def written(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", ["default", "volcano"])
def test_the_profiles_that_come_with_us_are_in_order(name: str) -> None:
    assert load_profile(name).profile == name


def test_a_plugin_is_asked_at_every_point_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    more = '[[plugins]]\nname = "binpack"\nenabled = { node_order = false }\narguments = { weight = 2 }'
    gang, binpack = load_profile(written(tmp_path, PLUGIN.format(name="gang", more=more))).plugins
    assert (gang.enabled, gang.arguments) == ((("*", True),), ())
    assert (binpack.enabled, binpack.arguments) == ((("node_order", False),), (("weight", 2),))


def test_a_block_is_laid_over_what_the_profile_says_and_leaves_the_rest() -> None:
    block = {"plugins": {"capacity": {"enabled": {"allocatable": False}}, "sla": {"arguments": {"waiting_time": "5m"}}}}
    plugins = {one.name: one for one in load_profile("default", block).plugins}
    assert plugins["capacity"].enabled == (("*", True), ("allocatable", False))
    assert plugins["capacity"].arguments == (("strict", True),)
    assert plugins["sla"].arguments == (("waiting_time", 300.0),)


@pytest.mark.parametrize(
    ("said", "block", "solver"),
    [
        ("", {}, "bundles"),
        ('solvers = { preempt = "tasks" }', {}, "tasks"),
        ("gang_aware_preempt = false", {}, "tasks"),
        ('solvers = { preempt = "bundles" }\ngang_aware_preempt = false', {}, "bundles"),
        ('solvers = { preempt = "tasks" }', {"action_arguments": {"preempt": {"gang_aware": True}}}, "bundles"),
        (
            'solvers = { preempt = "tasks" }',
            {"plugins": {"gang": {"arguments": {"preempt.gangAwareEnable": True}}}},
            "bundles",
        ),
    ],
)
def test_the_solver_of_an_action_is_named_by_the_profile_or_by_volcanos_switch(
    tmp_path: Path, said: str, block: dict[str, Any], solver: str
) -> None:
    policy = load_profile(written(tmp_path, f'actions = ["preempt"]\nplugins = []\n{said}\n'), block)
    assert policy.solver("preempt") == solver
    assert (policy.solver("reclaim"), policy.solver("gangpreempt")) == ("bundles", "bundles")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('plugins = []\nactions = ["allot"]', "actions[0]: expected one of enqueue, allocate"),
        (PLUGIN.format(name="gangs", more=""), "plugins[0].name: expected one of gang, priority"),
        (PLUGIN.format(name="tdm", more=""), '(this plugin is not supported yet), found "tdm"'),
        (PLUGIN.format(name="gang", more="enabled = { ready = true }"), "plugins[0].enabled.ready: expected one of *"),
        (PLUGIN.format(name="capacity", more="arguments = { strict = 1 }"), "arguments.strict: expected true or false"),
        (PLUGIN.format(name="capacity", more="arguments = { loose = true }"), "loose: expected one of strict"),
        (PLUGIN.format(name="gang", more="argument = 1"), 'found "argument"; did you mean arguments?'),
        (
            'plugins = []\nactions = ["preempt"]\naction_arguments = { preempt = { whole = true } }',
            "action_arguments.preempt.whole: expected one of topology_aware, gang_aware",
        ),
        ('plugins = []\nactions = []\nplan_ttl_s = "30"', 'plan_ttl_s: expected a number, found "30"'),
        (
            'plugins = []\nactions = []\nsolvers = { preempt = "pods" }',
            "preempt: expected one of bundles, gather, scenarios, tasks",
        ),
        ("plugins = []", "actions: expected a value, found nothing"),
        ("plugins = []\nactions = []\nplan_ttl_s = inf", "plan_ttl_s: expected a finite number, found Infinity"),
        ("plugins = []\nactions = []\nreservation_ttl_s = 1e12", "reservation_ttl_s: expected at most 1000000000"),
        ("plugins = []\nactions = []\nstale_grace_s = nan", "stale_grace_s: expected a finite number, found NaN"),
        ("plugins = []\nactions = []\nmax_domains = 3000000000", "max_domains: expected at most 2147483647"),
        ("actions = [", "expected TOML, found a mistake"),
    ],
)
def test_a_wrong_profile_is_refused_with_its_name_and_the_keys_path(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(SettingsRefused) as refusal:
        load_profile(written(tmp_path, text))
    assert str(refusal.value).startswith("mine.toml: ")
    assert why in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_solver_that_moves_no_tasks_is_refused_for_consolidation(tmp_path: Path) -> None:
    said = 'plugins = []\nactions = ["consolidation"]\n'
    assert load_profile(written(tmp_path, said)).solver("consolidation") == "scenarios"
    with pytest.raises(PolicyRefused, match=r"policy\.solvers\.consolidation: expected a solver that moves tasks"):
        load_profile(written(tmp_path, said + 'solvers = { consolidation = "bundles" }'))
