"""A SchedulingShard of KAI Scheduler: what it overrides of the usual actions and plugins, and its flags.

KAI's operator makes the scheduler's configuration of it: entries are merged with the usual ones, those with the higher
priority come first, and arguments replace the usual ones of their plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.documents.model import Location
from actors.imports.kai.configured import Configured, arguments_of, depths_of, known, read
from actors.imports.kai.terms import FLAGS, PLUGINS, UNREAD, UNREAD_FLAGS
from actors.imports.located import Section
from pipeline.actions.registry import NAMES

#: What runs where nothing else is said, by priority.
USUAL_ACTIONS: Mapping[str, int] = {
    "allocate": 500,
    "consolidation": 400,
    "reclaim": 300,
    "preempt": 200,
    "stalegangeviction": 100,
}
_PLUGINS: Mapping[str, int] = {
    "predicates": 1900, "proportion": 1800, "priority": 1700, "elastic": 1300, "minruntime": 600, "topology": 500,
    "nodeplacement": 200,
}  # fmt: skip
_KEYS = (
    "actions", "args", "kValue", "minRuntime", "partitionLabelValue", "placementStrategy", "plugins",
    "queueDepthPerAction",
)  # fmt: skip
#: What cannot be honoured, and what to do instead.
_NOT_HONOURED: Mapping[str, str] = {
    "partitionLabelValue": "expected none: give the nodes, queues and podgroups of a partition a fleet of their own",
    "usageDBConfig": "nothing here reads past use from a database: it is the key usage of a queue",
}
#: By key of the shard: the plugin and the argument that it sets unless the plugin's own arguments are given.
_SETS: Mapping[Location, tuple[str, str]] = {
    ("kValue",): ("proportion", "kValue"),
    ("minRuntime", "preemptMinRuntime"): ("minruntime", "defaultPreemptMinRuntime"),
    ("minRuntime", "reclaimMinRuntime"): ("minruntime", "defaultReclaimMinRuntime"),
    ("placementStrategy", "cpu"): ("nodeplacement", "cpu"),
    ("placementStrategy", "gpu"): ("nodeplacement", "gpu"),
}
_SPREAD = "spread"


def of_shard(spec: Mapping[str, Any], where: Section) -> Configured:
    """What a shard says; ``where`` takes paths inside ``spec``."""
    for key, value in spec.items():
        if key in _NOT_HONOURED and value:
            where.refuse((key,), _NOT_HONOURED[key])
        elif key not in (*_KEYS, *_NOT_HONOURED, *UNREAD):
            where.refuse((key,), f"expected one of {', '.join(_KEYS)}; nothing here reads this")
    actions = _actions(spec, where)
    return Configured(actions, _plugins(spec, where), depths_of(spec, where, actions), _switches(spec, where))


def _actions(spec: Mapping[str, Any], where: Section) -> list[str]:
    strategies = where.items(("placementStrategy",), spec.get("placementStrategy"), dict).values()
    usual = {name: at for name, at in USUAL_ACTIONS.items() if name != "consolidation" or _SPREAD not in strategies}
    listed = _merged(spec, "actions", usual, USUAL_ACTIONS, ("enabled", "priority"), where)
    for name in listed:
        if name not in NAMES:
            where.refuse(("actions", name), f"expected one of {', '.join(NAMES)}, found {name!r}")
    return listed


def _plugins(spec: Mapping[str, Any], where: Section) -> dict[str, dict[str, Any]]:
    """By name here, in their order: the arguments of each plugin that has a counterpart."""
    listed = _merged(spec, "plugins", _PLUGINS, _PLUGINS, ("enabled", "priority", "arguments"), where)
    given, ours = where.items(("plugins",), spec.get("plugins"), dict), dict[str, dict[str, Any]]()
    for name in listed:
        here: Location = ("plugins", name)
        if known(name, where, here):
            own = where.items(here, given.get(name), dict).get("arguments")
            arguments = dict(where.items((*here, "arguments"), own, dict))
            places: dict[str, Location] = {key: (*here, "arguments", key) for key in arguments}
            if own is None:
                arguments, places = _set_by_shard(spec, name, where)
            taken = arguments_of(name, arguments, where, places)
            if name in PLUGINS:
                ours[PLUGINS[name]] = taken
    return ours


def _set_by_shard(spec: Mapping[str, Any], plugin: str, where: Section) -> tuple[dict[str, Any], dict[str, Location]]:
    """The arguments of a plugin that keys of the shard set, and where each is written."""
    arguments, places = dict[str, Any](), dict[str, Location]()
    for way, (owner, argument) in _SETS.items():
        found: Any = spec.get(str(way[0]))
        if len(way) > 1:
            found = where.items(way[:1], found, dict).get(way[1])
        if owner == plugin and found is not None:
            arguments[argument], places[argument] = found, way
    return arguments, places


def _merged(
    spec: Mapping[str, Any],
    section: str,
    usual: Mapping[str, int],
    priorities: Mapping[str, int],
    keys: tuple[str, ...],
    where: Section,
) -> list[str]:
    """The names that are on, those with the highest priority first, then by name."""
    on, ranks = dict.fromkeys(usual, True), dict(priorities)
    for name, said in where.items((section,), spec.get(section), dict).items():
        entry = where.items((section, name), said, dict)
        where.only((section, name), entry, keys)
        enabled, rank = entry.get("enabled"), entry.get("priority")
        if enabled is not None and not isinstance(enabled, bool):
            where.refuse((section, name, "enabled"), f"expected true or false, found {enabled!r}")
        if rank is not None and (isinstance(rank, bool) or not isinstance(rank, int)):
            where.refuse((section, name, "priority"), f"expected a whole number, found {rank!r}")
            rank = None
        on[name] = on.get(name, name not in priorities) if enabled is None else enabled is True
        ranks[name] = ranks.get(name, 0) if rank is None else rank
    return sorted((name for name, runs in on.items() if runs), key=lambda name: (-ranks[name], name))


def _switches(spec: Mapping[str, Any], where: Section) -> dict[str, Any]:
    """Keys of a profile that flags of the scheduler set."""
    ours: dict[str, Any] = {}
    for name, value in where.items(("args",), spec.get("args"), dict).items():
        if name in FLAGS:
            said = read(FLAGS[name], value, {}, where, ("args", name))
            ours |= {key: taken for key, taken in said.items() if key}
        elif name not in UNREAD_FLAGS:
            where.refuse(
                ("args", name), f"expected one of {', '.join([*FLAGS, *UNREAD_FLAGS])}; nothing here reads this"
            )
    return ours
