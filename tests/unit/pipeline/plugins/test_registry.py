"""The table of plugins is checked when it is made, and a policy before it is followed."""
# ruff: noqa: ARG002  a plugin answers with the arguments that it needs

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.actions.registry import actions_of
from pipeline.cluster.arrays import Bools, Longs
from pipeline.errors import PluginRefused, PolicyRefused
from pipeline.plugins import host, victim_host
from pipeline.plugins.extension_points import POINTS_OF, FindsOverused, OrdersJobs, ShieldsTasks
from pipeline.plugins.plugin import Plugin, Preemptor
from pipeline.plugins.registry import PLUGINS, POINTS, check, checked, switches_of
from pipeline.policy import ExtensionPoint, PluginSetting
from pipeline.solvers.registry import solver_of
from tests.support.task_centric import policy


class Shield(Plugin, ShieldsTasks):
    """As it should be."""

    LEAST = 3

    def evictable(self, preemptor: Preemptor) -> bool:
        return True


class Misspelt(Plugin, ShieldsTasks):
    def evictable(self, preemptor: Preemptor) -> bool:
        return True

    def validate_sets(self, preemptor: Preemptor) -> bool:
        return True


class WithProperty(Plugin, FindsOverused):
    def overused(self) -> Bools:
        return np.zeros(0, bool)

    @property
    def share(self) -> float:
        return 0.0


class Inherited(Misspelt):
    def evictable(self, preemptor: Preemptor) -> bool:
        return False


class Unanswered(Plugin, ShieldsTasks, OrdersJobs):  # type: ignore[misc]
    def evictable(self, preemptor: Preemptor) -> bool:
        return True


class OtherNames(Plugin, ShieldsTasks):
    def evictable(self, asking: Preemptor) -> bool:
        return True


class OtherTypes(Plugin, ShieldsTasks):
    def evictable(self, preemptor: int) -> bool:  # type: ignore[override]
        return True


class More(Plugin, OrdersJobs):
    def job_order(self, queue: int = 0) -> Longs:
        return np.zeros(0, np.int64)


class AnyNumber(Plugin, OrdersJobs):
    def job_order(self, *queues: int) -> Longs:
        return np.zeros(0, np.int64)


class Silent(Plugin):
    def evictable(self, preemptor: Preemptor) -> bool:
        return True


def test_a_plugin_that_answers_what_it_declares_is_taken() -> None:
    assert checked({"shield": Shield}) == {"shield": Shield}


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        (Misspelt, "Misspelt.validate_sets: expected one of evictable"),
        (WithProperty, "WithProperty.share: expected one of overused"),
        (Inherited, "Inherited.validate_sets: expected one of evictable"),
        (Unanswered, "Unanswered.job_order: expected a method, found none"),
        (OtherNames, "OtherNames.evictable: expected (self, preemptor: "),
        (OtherTypes, "OtherTypes.evictable: expected (self, preemptor: "),
        (More, "More.job_order: expected (self) -> "),
        (AnyNumber, "AnyNumber.job_order: expected (self) -> "),
        (Silent, "Silent: expected at least one extension point among its bases, found none"),
    ],
)
def test_a_plugin_whose_methods_are_not_what_is_asked_stops_the_start(plugin: type[Plugin], why: str) -> None:
    with pytest.raises(PluginRefused) as refusal:
        checked({"shield": Shield, "plugin": plugin})
    assert str(refusal.value).startswith(why)


def test_the_host_asks_every_extension_and_they_cover_every_point() -> None:
    # What it imports it uses, or the linter complains.
    imported = [one for module in (host, victim_host) for one in vars(module).values() if isinstance(one, type)]
    assert POINTS_OF.keys() - set(imported) == set()
    assert {point for points in POINTS_OF.values() for point in points} == set(ExtensionPoint)


def test_each_point_has_a_plugin_that_answers_there() -> None:
    assert {point for points in POINTS.values() for point in points} == set(ExtensionPoint)


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        (PluginSetting("gong"), "name: expected one of gang, "),
        (PluginSetting("binpack", (("job_order", True),)), r"enabled.job_order: expected one of \*, node_order, found"),
        (PluginSetting("gang", (("domain_order", False),)), r"enabled.domain_order: expected one of \*, job_order, "),
        (PluginSetting("gang", (("hierarchy", True),)), r"enabled.hierarchy: expected one of \*, job_order, "),
        (PluginSetting("capacity", arguments=(("strict", 1),)), "arguments.strict: expected true or false, found 1"),
        (PluginSetting("sla", arguments=(("waiting_time", "1m"),)), "arguments.waiting_time: expected a duration"),
        (PluginSetting("gang", arguments=(("strict", True),)), "arguments.strict: expected no arguments here"),
    ],
)
def test_a_policy_that_names_what_no_plugin_answers_is_refused(setting: PluginSetting, why: str) -> None:
    check(policy([PluginSetting("priority")]))
    with pytest.raises(PolicyRefused, match=rf"policy.plugins\[1\].{why}"):
        check(policy([PluginSetting("priority"), setting]))


def test_a_policy_that_names_an_action_or_a_solver_that_there_is_not_is_refused() -> None:
    with pytest.raises(PolicyRefused, match=r"policy.actions: expected some of enqueue, allocate, .*, found 'allot'"):
        actions_of(["allocate", "allot"])
    with pytest.raises(PolicyRefused, match=r"policy.solvers.preempt: expected one of bundles, .*, found 'luck'"):
        solver_of(replace(policy([]), solvers=(("preempt", "luck"),)), "preempt")


@pytest.mark.parametrize("name", PLUGINS)
def test_every_switch_of_a_plugin_passes(name: str) -> None:
    switches: Any = tuple((one, True) for one in switches_of(name))
    check(policy([PluginSetting(name, switches)]))
