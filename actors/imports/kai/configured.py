"""What a configuration of KAI Scheduler says, in the names that it has here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from actors.documents.model import Location
from actors.imports.kai.terms import ARGUMENTS, PLUGINS, UNASKED, UNREAD, Rule
from actors.imports.located import Located, Section
from pipeline.actions.registry import ACTIONS, NAMES, actions_of


@dataclass
class Configured:
    """Actions and plugins in their order, and what is set of each.

    Attributes
    ----------
    plugins
        By the name of a plugin here: its arguments.
    depths
        By action: how many podgroups of each queue have a turn.
    switches
        Other keys of a profile.
    """

    actions: Sequence[str]
    plugins: Mapping[str, Mapping[str, Any]]
    depths: Mapping[str, int] = field(default_factory=dict)
    switches: Mapping[str, Any] = field(default_factory=dict)


def of_configuration(plain: Mapping[str, Any], where: Located) -> Configured:
    """A scheduler configuration. One without tiers has all plugins, as in KAI Scheduler."""
    keys = "actions", "tiers", "queueDepthPerAction", *UNREAD
    where.only((), plain, keys, "actions, tiers or queueDepthPerAction")
    listed = dict(_listed(plain, where)) if plain.get("tiers") else {name: {} for name in PLUGINS.values()}
    actions = where.actions(plain.get("actions"), NAMES, "allocate, reclaim, preempt")
    return Configured(actions, listed, depths_of(plain, where, actions))


def depths_of(plain: Mapping[str, Any], where: Section, actions: Sequence[str]) -> dict[str, int]:
    """By action how many podgroups of each queue have a turn; an action that does not run has none."""
    given, ours = where.items(("queueDepthPerAction",), plain.get("queueDepthPerAction"), dict), dict[str, int]()
    for action, depth in given.items():
        if action not in NAMES or "queue_depth" not in actions_of([action])[0].arguments:
            known = ", ".join(one.name for one in ACTIONS if "queue_depth" in one.arguments)
            where.refuse(("queueDepthPerAction", str(action)), f"expected one of {known}, found {action!r}")
        elif isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            where.refuse(("queueDepthPerAction", str(action)), f"expected a whole number, at least 1, found {depth!r}")
        elif action in actions:
            ours[str(action)] = depth
    return ours


def _listed(plain: Mapping[str, Any], where: Located) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and arguments here of each listed plugin that has a counterpart."""
    for above, tier in where.mappings(("tiers",), plain.get("tiers")):
        for here, plugin in where.mappings((*above, "plugins"), tier.get("plugins")):
            where.only(here, plugin, ("name", "arguments"), "name or arguments")
            if not known(name := plugin.get("name"), where, (*here, "name")):
                continue
            given = where.items((*here, "arguments"), plugin.get("arguments"), dict)
            ours = arguments_of(name, given, where, {key: (*here, "arguments", key) for key in given})
            if name in PLUGINS:
                yield PLUGINS[name], ours


def known(name: Any, where: Section, here: Location) -> TypeGuard[str]:
    """Whether a plugin is one of KAI Scheduler's own; another one is refused."""
    if isinstance(name, str) and (name in PLUGINS or name in UNASKED):
        return True
    where.refuse(here, f"expected one of {', '.join([*PLUGINS, *UNASKED])}, found {name!r}")
    return False


def arguments_of(
    plugin: str, given: Mapping[str, Any], where: Section, places: Mapping[str, Location]
) -> dict[str, Any]:
    """The arguments here of a plugin; ``places`` says where each one is written."""
    rules, ours = ARGUMENTS.get(plugin, {}), dict[str, Any]()
    for key, value in given.items():
        if key not in rules:
            few = f"one of {', '.join(rules)}" if rules else "no arguments"
            where.refuse(places[key], f"expected {few}; nothing here reads this")
        else:
            ours |= read(rules[key], value, ours, where, places[key])
    if "strategy" in ours or "cpu_strategy" in ours:
        ours = {"strategy": "binpack", "cpu_strategy": "binpack"} | ours
        if ours["cpu_strategy"] == ours["strategy"]:
            del ours["cpu_strategy"]
    return ours


def read(rule: Rule, value: Any, ours: Mapping[str, Any], where: Section, here: Location) -> dict[str, Any]:
    """A value under its name here; empty if it is refused, or contradicts what is known of ``ours``."""
    name, take, expected = rule
    taken = take(str(value).strip())
    if taken is None or ours.get(name, taken) != taken:
        where.refuse(here, f"expected {expected}, found {value!r}")
        return {}
    return {name: taken}
