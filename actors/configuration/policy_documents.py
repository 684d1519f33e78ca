"""What a policy may say, in a cluster file's ``policy`` block and in a profile; ``profiles`` says what it means."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from actors.documents.model import Document, Finite, Listed, Location, Offence, offended
from pipeline.actions.registry import NAMES as ACTIONS
from pipeline.plugins.registry import PLUGINS
from pipeline.policy import ExtensionPoint
from pipeline.solvers.registry import SOLVERS

#: Switches that ``enabled`` takes beside the points: all that are not named; whether the tree of queues counts; and two
#: of Volcano's for which no plugin here votes.
SWITCHES = ("*", "hierarchy", "best_node", "cluster_order")
POINTS = (*SWITCHES, *(point.value for point in ExtensionPoint))
#: Plugins of the schedulers that we restate which may come here.
NOT_YET = ("nodegroup", "rescheduling", "resource-strategy-fit", "resourcequota", "tdm", "usage")
#: What plugins and actions take as arguments, and of which kind.
PLUGIN_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "binpack": {"cpu": "number", "memory": "number", "weight": "number", "resources": "weights"},
    "deviceshare": {"cards": "choice of card"},
    "capacity": {"strict": "switch", "ancestor_reclaim_level": "count"},
    "nodeorder": {"least_requested": "number", "most_requested": "number", "balanced": "number"},
    "overcommit": {"overcommit-factor": "number"},
    "sla": {"waiting_time": "text"},
}
ACTION_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "preempt": {"topology_aware": "switch", "gang_aware": "switch"},
    "reclaim": {"gang_aware": "switch"},
}
#: Switches of actions that document 1 writes among the arguments of whichever plugin.
ANYWHERE = ("preempt.gangAwareEnable", "reclaim.gangAwareEnable")


def _is_amount(value: object) -> bool:
    # True is an int to Python; a number below 0 or NaN is none that anybody can use.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


_KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "switch": ("expected true or false", lambda value: isinstance(value, bool)),
    "count": ("expected a whole number, at least 0", lambda value: _is_amount(value) and isinstance(value, int)),
    "number": ("expected a number, at least 0", _is_amount),
    "choice of card": ("expected binpack or spread", lambda value: value in ("binpack", "spread")),
    "text": ("expected text", lambda value: isinstance(value, str)),
    "weights": (
        "expected a mapping of resources to numbers, at least 0",
        lambda value: isinstance(value, dict) and all(map(_is_amount, value.values())),
    ),
}


class PluginSwitches(Document):
    """What a policy says of one plugin: at which points it is asked, and with what arguments."""

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
        offended(_argument_offences((action,), arguments, ACTION_ARGUMENTS.get(action, {})))
    return given


def _known_solvers(given: dict[str, str]) -> dict[str, str]:
    offended(_unknown((action,), action, ACTIONS) for action in given if action not in ACTIONS)
    offended(_unknown((action,), name, tuple(SOLVERS)) for action, name in given.items() if name not in SOLVERS)
    return given


Actions = Annotated[Listed[str], AfterValidator(_known_actions)]
ActionArguments = Annotated[dict[str, dict[str, Any]], AfterValidator(_known_arguments)]
Solvers = Annotated[dict[str, str], AfterValidator(_known_solvers)]


class PolicyDocument(Document):
    """The policy block. What is absent is the profile's to say."""

    profile: Literal["default", "volcano", "kai", "koordinator"] | None = None
    actions: Actions | None = None
    plugins: dict[str, PluginSwitches] | None = None
    tiers: Listed[Listed[TierPlugin]] | None = None
    action_arguments: ActionArguments | None = None
    placement: Literal["binpack", "spread"] | None = None
    stale_grace_seconds: Annotated[Finite, Field(ge=-1)] | None = None
    consolidation_max_victims: Annotated[int, Field(ge=-1)] | None = None
    allow_consolidating_reclaim: bool | None = None
    max_domains: Annotated[int, Field(ge=0)] | None = None
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
    """What is wrong with one plugin's entry at ``under``, whose name stands at ``where``."""
    if name not in PLUGINS:
        if name in NOT_YET:
            return [Offence(where, f"expected one of {', '.join(PLUGINS)} (this plugin is not supported yet)", name)]
        return [_unknown(where, name, PLUGINS)]
    given = switches.arguments or {}
    known = {**PLUGIN_ARGUMENTS.get(name, {}), **{key: "switch" for key in ANYWHERE if key in given}}
    return _argument_offences((*under, "arguments"), given, known)


def _argument_offences(where: Location, given: Mapping[str, Any], known: Mapping[str, str]) -> list[Offence]:
    offences = []
    for key, value in given.items():
        if key not in known:
            offences.append(Offence((*where, key), f"expected {_choice(known)} (others are not supported yet)", key))
            continue
        expected, fits = _KINDS[known[key]]
        if not fits(value):
            offences.append(Offence((*where, key), expected, value))
    return offences


def _choice(known: Collection[str]) -> str:
    return f"one of {', '.join(known)}" if known else "no arguments here"
