"""``clearway import kai-config``: a configuration of KAI Scheduler becomes a profile, its objects a cluster file.

Files hold scheduler configurations (alone or in their ConfigMap) and objects: Queues, PodGroups, a Topology, priority
classes; several documents a file, or lists of them. Every line that cannot be honoured is named, not only the first.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from actors.cluster_file.plain_data import ClusterFileRefused, read_mapping, text_to_read
from actors.cluster_file.reader import read_cluster
from actors.configuration.profile_writer import profile_text
from actors.configuration.profiles import FOLDER
from actors.documents.bounded_files import SETTINGS_BYTES, text_of, toml_of
from actors.documents.model import Location
from actors.documents.results import write_out
from actors.imports.fields import deepest, name_of
from actors.imports.kai.objects import KINDS, Objects
from actors.imports.kai.terms import ARGUMENTS, PLUGINS, UNASKED
from actors.imports.located import Located
from pipeline.actions.registry import ACTIONS, NAMES, actions_of

_REFUSED = 2
#: What our profile has beside KAI's plugins: there gangs are no plugin.
_ALWAYS = ("gang",)
#: Without tiers KAI Scheduler takes all of its own plugins; by name here, their arguments.
_WITHOUT_TIERS: Mapping[str, Mapping[str, Any]] = {name: {} for name in PLUGINS.values()}
_UNSAID: Mapping[str, Any] = {"tier": 0, "enabled": {"*": True}}


def run(files: Sequence[Path], out: Path | None, cluster: Path | None) -> int:
    """Write the profile to ``out`` and the objects to ``cluster``; 2 if anything cannot be honoured.

    If there is only one of the two, it goes to standard output unless its option names a file.
    """
    read = Read()
    for file in files:
        for text, above in _documents(text_to_read(file, SETTINGS_BYTES)):
            read.take(text, file.name, above)
    sentences = [sentence for located in read.located for sentence in located.sentences()]
    sentences = sentences or [*_unmet(read, out, cluster)]
    if sentences:
        sys.stderr.writelines(f"clearway: {sentence}\n" for sentence in sentences)
        return _REFUSED
    if read.objects.any:
        made = read.objects.cluster()
        _check(made, read)
        write_out(yaml.safe_dump(made, sort_keys=False, allow_unicode=True), cluster)
    if read.profile is not None:
        write_out(read.profile, out)
    return 0


def _unmet(read: Read, out: Path | None, cluster: Path | None) -> Iterator[str]:
    """What was read and has no place to go, or was asked for and not read."""
    if read.profile is not None and read.objects.any and cluster is None:
        yield "expected --cluster beside a configuration: the files have objects too"
    if read.profile is None and not read.objects.any:
        yield "expected a scheduler configuration or objects in the files, found neither"
        return
    if read.profile is None and out is not None:
        yield "--out: expected a scheduler configuration in the files, found none"
    if not read.objects.any and cluster is not None:
        yield f"--cluster: expected any of {', '.join(KINDS)} in the files, found none"


def _check(made: Mapping[str, Any], read: Read) -> None:
    """Refuse objects that make no valid cluster file; the sentence names the object that the mistake is in."""
    try:
        read_cluster(made)
    except ClusterFileRefused as refusal:
        source = deepest(read.objects.sources, made, refusal.where)
        if source is None:
            raise ClusterFileRefused(f"in the cluster file made of the objects, {refusal}") from refusal
        document, here = source
        document.refuse(here, f"in the cluster file made of it, {refusal}")
        told = next(sentence for located in read.located for sentence in located.sentences())
        raise ClusterFileRefused(told) from refusal


def _documents(text: str) -> Iterator[tuple[str, int]]:
    """Each document of a file, and the number of lines above it."""
    above = 0
    for part in re.split(r"^---[ \t]*$", text, flags=re.MULTILINE):
        if any(line.strip() and not line.lstrip().startswith("#") for line in part.splitlines()):
            yield part, above
        above += part.count("\n")


@dataclass
class Read:
    """The configuration and the objects that were read so far.

    Attributes
    ----------
    profile
        Text of the profile that the configuration becomes; None until one was read.
    located
        The documents, each with its mistakes.
    """

    profile: str | None = None
    objects: Objects = field(default_factory=Objects)
    located: list[Located] = field(default_factory=list)

    def take(self, text: str, name: str, above: int) -> None:
        """Read one document.

        Raises
        ------
        ClusterFileRefused
            If it is not a mapping in YAML or JSON.
        """
        plain, where = read_mapping(text, name), Located(text, name, above)
        self.located.append(where)
        kind = plain.get("kind")
        if kind == "ConfigMap":
            self._of_config_map(plain, where, name)
        elif kind is None:
            self._configuration(plain, where, name)
        elif kind == "List" or (isinstance(kind, str) and kind.endswith("List")):
            for at, item in enumerate(where.items(("items",), plain.get("items"), list)):
                self._object(where.items(("items", at), item, dict), where, ("items", at))
        else:
            self._object(plain, where, ())

    def _object(self, plain: Mapping[str, Any], where: Located, here: Location) -> None:
        if plain.get("kind") not in KINDS:
            where.refuse((*here, "kind"), f"expected one of {', '.join(KINDS)}, found {plain.get('kind')!r}")
        else:
            self.objects.take(plain, _OfObject(where, name_of(plain)), here)

    def _of_config_map(self, plain: Mapping[str, Any], where: Located, name: str) -> None:
        data = where.items(("data",), plain.get("data"), dict)
        found = [key for key, value in data.items() if "conf" in key and isinstance(value, str)]
        if len(found) != 1:
            where.refuse(("data",), f"expected one scheduler configuration, found {len(found)}")
            return
        inner = f"{name}, data.{found[0]}"
        located = Located(data[found[0]], inner, where.line(("data", found[0]), value=True))
        self.located.append(located)
        self._configuration(read_mapping(data[found[0]], inner), located, inner)

    def _configuration(self, plain: Mapping[str, Any], where: Located, name: str) -> None:
        if self.profile is not None:
            where.refuse((), "expected one scheduler configuration, found another")
            return
        for key in plain:
            if key not in ("actions", "tiers", "queueDepthPerAction"):
                where.refuse((key,), "expected actions, tiers or queueDepthPerAction; nothing here reads this")
        ours = toml_of(text_of(FOLDER / "kai.toml"))
        listed = _WITHOUT_TIERS if plain.get("tiers") in (None, []) else dict(_plugins(plain, where))
        plugins = [
            {**_UNSAID, **entry, "arguments": entry.get("arguments", {}) | listed.get(entry["name"], {})}
            for entry in ours["plugins"]
            if entry["name"] in listed or entry["name"] in _ALWAYS
        ]
        actions = where.actions(plain.get("actions"), NAMES, "allocate, reclaim, preempt")
        keys = {key: value for key, value in ours.items() if key not in ("plugins", "actions", "solvers")}
        solvers = {action: solver for action, solver in ours["solvers"].items() if action in actions}
        depths = {action: {"queue_depth": depth} for action, depth in _depths(plain, where, actions).items()}
        origin = f"From {json.dumps(name)}, by clearway import kai-config."
        self.profile = profile_text(origin, {"actions": actions, "solvers": solvers, **keys}, depths, plugins)


@dataclass(frozen=True, slots=True)
class _OfObject:
    """Implements `Refusals` for one object of a document: its name is told too."""

    document: Located
    name: str

    def refuse(self, where: Location, told: str) -> None:
        """Note that the value at a path cannot be honoured, and why."""
        self.document.refuse(where, told, self.name)


def _depths(plain: Mapping[str, Any], where: Located, actions: Sequence[str]) -> dict[str, int]:
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


def _plugins(plain: Mapping[str, Any], where: Located) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and arguments here of each listed plugin that has a counterpart."""
    for at, tier in enumerate(where.items(("tiers",), plain.get("tiers"), list)):
        plugins = where.items(("tiers", at), tier, dict).get("plugins")
        for position, entry in enumerate(where.items(("tiers", at, "plugins"), plugins, list)):
            here: Location = ("tiers", at, "plugins", position)
            plugin = where.items(here, entry, dict)
            name = plugin.get("name")
            for key in plugin:
                if key not in ("name", "arguments"):
                    where.refuse((*here, key), "expected name or arguments; nothing here reads this")
            if not isinstance(name, str) or (name not in PLUGINS and name not in UNASKED):
                where.refuse((*here, "name"), f"expected one of {', '.join([*PLUGINS, *UNASKED])}, found {name!r}")
                continue
            given = where.items((*here, "arguments"), plugin.get("arguments"), dict)
            ours = _arguments(name, given, where, (*here, "arguments"))
            if name in PLUGINS:
                yield PLUGINS[name], ours


def _arguments(plugin: str, given: Mapping[str, Any], where: Located, here: Location) -> dict[str, Any]:
    rules, ours = ARGUMENTS.get(plugin, {}), dict[str, Any]()
    for key, value in given.items():
        if key not in rules:
            known = f"one of {', '.join(rules)}" if rules else "no arguments"
            where.refuse((*here, key), f"expected {known}; nothing here reads this")
            continue
        name, take, expected = rules[key]
        taken = take(str(value).strip())
        if taken is None or ours.get(name, taken) != taken:
            where.refuse((*here, key), f"expected {expected}, found {value!r}")
        else:
            ours[name] = taken
    return ours
