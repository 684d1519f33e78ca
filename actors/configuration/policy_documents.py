"""The documents of a policy: the ``policy`` block of a cluster file, and the parts that a profile shares with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from actors.documents.durations import seconds_of
from actors.documents.model import Count, Document, Finite, ListOf, Location, Offence, offended
from pipeline.actions.registry import NAMES as ACTIONS
from pipeline.actions.registry import actions_of
from pipeline.plugins.arguments import DURATION, SWITCH, Kind, offences
from pipeline.plugins.registry import ALL, PLUGINS
from pipeline.policy import HIERARCHY, ExtensionPoint
from pipeline.solvers.registry import SOLVERS

#: Extension points of Volcano that nothing here asks. A cluster file may switch them, which changes nothing.
UNASKED = ("best_node", "cluster_order", "subgroup_order", "subgroup_ready", "subgroup_pipelined")
POINTS = (ALL, HIERARCHY, *UNASKED, *ExtensionPoint)
#: Plugins of the restated schedulers that have no counterpart yet.
NOT_YET = ("nodegroup", "rescheduling", "resource-strategy-fit", "resourcequota", "tdm", "usage")
#: Switches of actions that Volcano allows among the arguments of any plugin.
ANYWHERE = ("preempt.gangAwareEnable", "reclaim.gangAwareEnable")


class PluginSwitches(Document):
    """A policy's entry for a plugin: the extension points at which it is asked, and its arguments."""

    enabled: dict[str, bool] | None = None
    arguments: dict[str, Any] | None = None

    @field_validator("enabled")
    @classmethod
    def _known_points(cls, enabled: dict[str, bool] | None) -> dict[str, bool] | None:
        offended(_unknown((point,), point, POINTS) for point in enabled or () if point not in POINTS)
        return enabled


class TierPlugin(PluginSwitches):
    """One plugin of a tier."""

    name: str

    @model_validator(mode="after")
    def _known_plugin(self) -> TierPlugin:
        offended(_plugin_offences(("name",), self.name, self))
        return self


def _known_actions(actions: tuple[str, ...]) -> tuple[str, ...]:
    offended(_unknown((at,), action, ACTIONS) for at, action in enumerate(actions) if action not in ACTIONS)
    return actions


def _known_arguments(given: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    for action, arguments in given.items():
        if action not in ACTIONS:
            offended([_unknown((action,), action, ACTIONS)])
        offended(_argument_offences((action,), arguments, actions_of([action])[0].arguments))
    return given


def _known_solvers(given: dict[str, str]) -> dict[str, str]:
    offended(_unknown((action,), action, ACTIONS) for action in given if action not in ACTIONS)
    offended(_unknown((action,), name, tuple(SOLVERS)) for action, name in given.items() if name not in SOLVERS)
    return given


Actions = Annotated[ListOf[str], AfterValidator(_known_actions)]
ActionArguments = Annotated[dict[str, dict[str, Any]], AfterValidator(_known_arguments)]
Solvers = Annotated[dict[str, str], AfterValidator(_known_solvers)]


class PolicyDocument(Document):
    """The policy block; for an absent key the profile's value holds."""

    profile: Literal["default", "volcano", "kai", "koordinator"] | None = None
    actions: Actions | None = None
    plugins: dict[str, PluginSwitches] | None = None
    tiers: ListOf[ListOf[TierPlugin]] | None = None
    action_arguments: ActionArguments | None = None
    placement: Literal["binpack", "spread"] | None = None
    stale_grace_seconds: Annotated[Finite, Field(ge=-1)] | None = None
    consolidation_max_victims: Annotated[int, Field(ge=-1, lt=2**31)] | None = None
    allow_consolidating_reclaim: bool | None = None
    max_domains: Count | None = None
    allow_whole_bundle: bool | None = None

    @field_validator("plugins")
    @classmethod
    def _known_plugins(cls, plugins: dict[str, PluginSwitches] | None) -> dict[str, PluginSwitches] | None:
        for name, switches in (plugins or {}).items():
            offended(_plugin_offences((name,), name, switches, (name,)))
        return plugins


def _unknown(where: Location, found: str, known: Collection[str]) -> Offence:
    return Offence(where, f"expected one of {', '.join(known)}", found)


def _plugin_offences(where: Location, name: str, switches: PluginSwitches, under: Location = ()) -> list[Offence]:
    """The offences in the entry of a plugin at ``under``, whose name stands at ``where``."""
    if name not in PLUGINS:
        if name in NOT_YET:
            return [Offence(where, f"expected one of {', '.join(PLUGINS)} (this plugin is not supported yet)", name)]
        return [_unknown(where, name, PLUGINS)]
    given = switches.arguments or {}
    kinds = {**PLUGINS[name].ARGUMENTS, **{key: SWITCH for key in ANYWHERE if key in given}}
    return _argument_offences((*under, "arguments"), given, kinds)


def _argument_offences(where: Location, given: Mapping[str, Any], kinds: Mapping[str, Kind]) -> list[Offence]:
    wrong = offences(kinds, in_seconds(kinds, given))
    return [Offence((*where, key), expected, given[key] if key in kinds else key) for key, expected in wrong]


def in_seconds(kinds: Mapping[str, Kind], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with durations (text) as seconds; None for text that is not a duration."""
    durations = {key: value for key, value in given.items() if kinds.get(key) is DURATION}
    return {**given, **{key: seconds_of(value) if isinstance(value, str) else None for key, value in durations.items()}}
