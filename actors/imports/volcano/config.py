"""``clearway import volcano-config``: a Volcano scheduler configuration becomes a profile, or says why it cannot.

Tiers are read as one list: here a later plugin is always asked (see ``pipeline/plugins/host.py``). Flags that are not
given are on, except ``enableHierarchy``. Every line that cannot be honoured is named, not only the first one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from actors.cluster_file.plain_data import ClusterFileRefused, read_mapping, text_to_read
from actors.configuration.profile_writer import profile_text
from actors.documents.bounded_files import SETTINGS_BYTES
from actors.documents.durations import seconds_of
from actors.documents.model import Location
from actors.documents.results import complain, write_out
from actors.imports.located import Located
from actors.imports.volcano.terms import (
    ABSENT,
    ACTION_RULES,
    ANYWHERE,
    FLAGS,
    GANG_ACTIONS,
    PLUGIN_ARGUMENTS,
    PLUGINS,
    Becomes,
    Only,
    Rules,
)
from pipeline.plugins.registry import switches_of
from pipeline.policy import HIERARCHY

#: Keys of a profile that follow Volcano, beside its plugins; the same as in ``config/profiles/volcano.toml``.
SWITCHES: Mapping[str, Any] = {
    "solvers": {"preempt": "tasks", "reclaim": "tasks"},
    "whole_gangs_everywhere": False,
    "allow_whole_bundle": True,
    "max_domains": 0,
    "efficiency_step": 0.05,
    "first_fit": False,
    "surplus": True,
    "plan_ttl_s": 30.0,
    "reservation_ttl_s": 300.0,
}
_EXPECTED = {
    "switch": "expected true or false",
    "count": "expected a whole number, at least 0",
    "number": "expected a number, at least 0",
    "duration": "expected a duration such as 1h30m",
    "choice of card": "expected binpack or spread",
}
_REFUSED = 2


def run(file: Path, out: Path | None) -> int:
    """Write the profile to ``out`` or standard output; 2 if anything cannot be honoured, one sentence each."""
    configuration = Configuration(text_to_read(file, SETTINGS_BYTES), file.name)
    profile = configuration.profile()
    if sentences := configuration.sentences():
        complain(sentences)
        return _REFUSED
    write_out(profile, out)
    return 0


class Configuration:
    """One configuration, alone or inside its ConfigMap, with the mistakes that were found so far.

    Raises
    ------
    ClusterFileRefused
        If the text is not a mapping in YAML or JSON.
    """

    def __init__(self, text: str, name: str) -> None:
        self._name, self._plain = name, read_mapping(text, name)
        self._located = Located(text, name)
        if self._plain.get("kind") == "ConfigMap":
            self._of_config_map()

    def _of_config_map(self) -> None:
        data = self._plain.get("data")
        found = {key: value for key, value in (data if isinstance(data, dict) else {}).items() if "conf" in key}
        if len(found) != 1 or not isinstance(inner := next(iter(found.values())), str):
            raise ClusterFileRefused(f"{self._name}: data: expected one scheduler configuration, found {len(found)}")
        above = self._located.line(("data", next(iter(found))), value=True)
        self._name = f"{self._name}, data.{next(iter(found))}"
        self._plain = read_mapping(inner, self._name)
        self._located = Located(inner, self._name, above)

    def sentences(self) -> list[str]:
        """The mistakes, in the order of the lines; ask after ``profile``, which finds them."""
        return self._located.sentences()

    def profile(self) -> str:
        """The profile as TOML; use it only if there are no mistakes."""
        self._located.only((), self._plain, ("actions", "tiers", "configurations"), "actions, tiers or configurations")
        said = self._plain.get("actions")
        actions = self._located.actions(said, tuple(ACTION_RULES), "enqueue, allocate, backfill")
        plugins, switches = self._plugins(), dict(SWITCHES)
        if beside := self._of_tiers():
            if plugins:
                plugins[0]["arguments"].update(beside)
            else:
                self._refuse(("tiers", 0, "arguments"), "expected plugins beside the arguments")
        for plugin in plugins:
            switches["max_domains"] = plugin["arguments"].pop(_MOST_DOMAINS, switches["max_domains"])
        arguments = self._action_arguments(actions, switches)
        origin = f"From {json.dumps(self._name)}, by clearway import volcano-config."
        return profile_text(origin, {"actions": actions, **switches}, arguments, plugins)

    # -- where and what is wrong -------------------------------------------------------------------------------

    def _refuse(self, where: Location, told: str) -> None:
        self._located.refuse(where, told)

    def _value(self, where: Location, found: Any, kind: str) -> Any:
        """A value of a kind, which may be written as text; None if it is not one, which is refused."""
        text = str(found).strip()
        if kind == "switch" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if kind == "count" and re.fullmatch(r"[0-9]{1,9}", text):
            return int(text)
        if kind == "number" and re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text):
            return float(text) if "." in text else int(text)
        if kind == "duration" and seconds_of(text) is not None:
            return text
        if kind == "choice of card" and text in ("binpack", "spread"):
            return text
        self._refuse(where, f"{_EXPECTED[kind]}, found {found!r}")
        return None

    def _arguments(self, where: Location, found: Any, rules: Rules) -> dict[str, Any]:
        """The arguments here for those of Volcano; the ones that cannot be honoured are refused."""
        ours: dict[str, Any] = {}
        for key, value in self._located.items(where, found, dict).items():
            rule = rules.get(key)
            here = (*where, key)
            if rule is None:
                self._refuse(here, f"expected {_choice(rules)}; nothing here reads this")
            elif isinstance(rule, Becomes):
                ours[rule.ours] = self._value(here, value, rule.kind)
            elif isinstance(rule, Only):
                kind = "switch" if isinstance(rule.value, bool) else "number"
                given = self._value(here, value, kind)
                if given is not None and given != rule.value:
                    self._refuse(here, f"expected {json.dumps(rule.value)}, found {given!r}: {rule.because}")
        return ours

    # -- its parts ---------------------------------------------------------------------------------------------

    def _plugins(self) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for where, plugin in self._listed():
            name = plugin.get("name")
            if name not in PLUGINS:
                known = " (there is no counterpart of this plugin)" if name in ABSENT else ""
                self._refuse((*where, "name"), f"expected one of {', '.join(PLUGINS)}{known}, found {name!r}")
            elif name in found:
                self._refuse((*where, "name"), f"expected each plugin once, found {name!r} again")
            else:
                found[name] = self._plugin(where, name, plugin)
                # Volcano also refuses the two together: both say what a queue is entitled to.
                if found.get("drf", {}).get("enabled", {}).get("hierarchy") and "proportion" in found:
                    self._refuse(where, "expected proportion or drf with enableHierarchy, found both")
        return list(found.values())

    @cached_property
    def _tiers(self) -> list[tuple[Location, Mapping[str, Any]]]:
        return [*self._located.mappings(("tiers",), self._plain.get("tiers"))]

    def _of_tiers(self) -> dict[str, Any]:
        """Arguments that stand beside the plugins of a tier ("Gang-Aware Preemption and Reclaim", section 3.1)."""
        found: dict[str, Any] = {}
        for where, tier in self._tiers:
            found.update(self._arguments((*where, "arguments"), tier.get("arguments"), ANYWHERE))
        return found

    def _listed(self) -> Iterator[tuple[Location, Mapping[str, Any]]]:
        """Each plugin of each tier, with its path."""
        for where, tier in self._tiers:
            self._located.only(where, tier, ("plugins", "arguments"), "plugins or arguments")
            yield from self._located.mappings((*where, "plugins"), tier.get("plugins"))

    def _plugin(self, where: Location, name: str, plugin: Mapping[str, Any]) -> dict[str, Any]:
        enabled: dict[str, bool] = {"*": True, **({HIERARCHY: False} if HIERARCHY in switches_of(name) else {})}
        for key, value in plugin.items():
            if key in ("name", "arguments"):
                continue
            flag = re.sub("^enabled?", "", key.lower())
            if flag == key.lower() or flag not in FLAGS:
                self._refuse((*where, key), "expected name, arguments or a flag such as enableJobOrder")
            elif value is not None and (on := self._value((*where, key), value, "switch")) is not None:
                # A flag changes nothing if the plugin has no such extension point; so it is in Volcano.
                enabled.update({FLAGS[flag]: on} if FLAGS[flag] in switches_of(name) else {})
        here, given = (*where, "arguments"), plugin.get("arguments")
        rules = {**PLUGIN_ARGUMENTS.get(name, {}), **ANYWHERE}
        if name == "network-topology-aware":
            rules[_MOST_DOMAINS] = Becomes(_MOST_DOMAINS, "count")
        if name in _RESOURCES:
            arguments = self._weighed(here, given, _RESOURCES[name], rules)
        else:
            arguments = self._arguments(here, given, rules)
        tier = where[1] if isinstance(where[1], int) else 0
        return {"name": name, "tier": tier, "enabled": enabled, "arguments": arguments}

    def _weighed(self, where: Location, found: Any, prefix: str, rules: Rules) -> dict[str, Any]:
        """Arguments of a plugin for which beside cpu and memory only listed resources count, with their weight or 1.

        ``prefix`` is the key of the list, and what the keys of the weights begin with.
        """
        given = self._located.items(where, found, dict)
        listed = [name.strip() for name in str(given.get(prefix, "")).split(",") if name.strip()]
        weighing = {f"{prefix}.{name}": Becomes(name, "number") for name in listed}
        theirs = {key: value for key, value in given.items() if key in weighing}
        others = {key: value for key, value in given.items() if key not in weighing and key != prefix}
        weights = dict.fromkeys(listed, 1) | self._arguments(where, theirs, weighing)
        return {**self._arguments(where, others, rules), "resources": weights}

    def _action_arguments(self, actions: list[str], switches: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Arguments of actions; those that bound the gang-aware search go into ``switches``."""
        found: dict[str, dict[str, Any]] = {}
        places: dict[str, Location] = {}
        for where, entry in self._located.mappings(("configurations",), self._plain.get("configurations")):
            name = entry.get("name")
            self._located.only(where, entry, ("name", "arguments"), "name or arguments")
            if not isinstance(name, str) or name not in ACTION_RULES:
                self._refuse((*where, "name"), f"expected one of {', '.join(ACTION_RULES)}, found {name!r}")
                continue
            places[name] = (*where, "arguments")
            found[name] = self._arguments(places[name], entry.get("arguments"), ACTION_RULES[name])
        searching = [action for action in GANG_ACTIONS if action in actions]
        for ours, theirs in (("max_domains", "maxDomains"), ("allow_whole_bundle", "allowWholeBundle")):
            said = {action: found[action].pop(ours) for action in GANG_ACTIONS if ours in found.get(action, {})}
            values = {said.get(action, SWITCHES[ours]) for action in searching}
            if len(values) > 1:
                first = next(iter(said))
                self._refuse((*places[first], theirs), f"expected the same for {' and '.join(searching)}")
            elif values and (value := values.pop()) not in (None, SWITCHES[ours]):
                bound = switches[ours]
                switches[ours] = min(value, bound) if ours == "max_domains" and bound else value
        return {name: arguments for name, arguments in found.items() if arguments}


_RESOURCES = {"binpack": "binpack.resources", "network-topology-aware": "hypernode.binpack.resources"}
_MOST_DOMAINS = "hypernode.gradient.evict.max-hypernodes"


def _choice(rules: Rules) -> str:
    return f"one of {', '.join(rules)}" if rules else "no arguments"
