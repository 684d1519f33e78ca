"""``clearway import kai-config``: a configuration of KAI Scheduler becomes a profile, its objects a cluster file.

Files hold a scheduler configuration (alone, in its ConfigMap, or as what it is made of: a SchedulingShard or values of
the Helm chart) and objects: Queues, PodGroups, a Topology, priority classes; several documents a file, or lists of
them. Every line that cannot be honoured is named, not only the first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from actors.cluster_file.plain_data import ClusterFileRefused, read_mapping, text_to_read
from actors.cluster_file.reader import read_cluster
from actors.configuration.profile_writer import profile_text
from actors.configuration.profiles import FOLDER
from actors.documents.bounded_files import SETTINGS_BYTES, read_once, text_of, toml_of
from actors.documents.model import Location
from actors.documents.results import complain, write_out
from actors.imports.fields import deepest, name_of
from actors.imports.kai.configured import Configured, of_configuration
from actors.imports.kai.objects import KINDS, Objects
from actors.imports.kai.shapes import stated
from actors.imports.kai.shards import of_shard
from actors.imports.kai.values import are_values, of_values, queues_of
from actors.imports.located import Located, LocatedPart

_REFUSED = 2
_SHARD = "SchedulingShard"
#: What our profile has beside KAI's plugins: there gangs are no plugin.
_ALWAYS = ("gang",)
#: Plugins that order podgroups: only of them it matters which one comes first.
_ORDERING = ("priority", "elastic")
_UNSAID: Mapping[str, Any] = {"tier": 0, "enabled": {"*": True}}


def run(files: Sequence[Path], out: Path | None, cluster: Path | None) -> int:
    """Write the profile to ``out`` and the objects to ``cluster``; 2 if anything cannot be honoured.

    If there is only one of the two, it goes to standard output unless its option names a file.
    """
    read_once(*files)
    read = Read()
    for file in files:
        for text, above in _documents(text_to_read(file, SETTINGS_BYTES)):
            read.take(text, file.name, above)
    sentences = [sentence for located in read.located for sentence in located.sentences()]
    sentences = sentences or [*_unmet(read, out, cluster)]
    if sentences:
        complain(sentences)
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
            self._of_config_map(plain, where)
        elif kind is None:
            self._configuration(plain, where)
        elif kind == "List" or (isinstance(kind, str) and kind.endswith("List")):
            for here, item in where.mappings(("items",), plain.get("items")):
                self._object(item, where, here)
        else:
            self._object(plain, where, ())

    def _object(self, plain: Mapping[str, Any], where: Located, here: Location) -> None:
        if plain.get("kind") == _SHARD:
            self._shard(plain, where, here)
        elif plain.get("kind") not in KINDS:
            where.refuse((*here, "kind"), f"expected one of {', '.join((*KINDS, _SHARD))}, found {plain.get('kind')!r}")
        else:
            self.objects.take(plain, LocatedPart(where, (), name_of(plain)), here)

    def _of_config_map(self, plain: Mapping[str, Any], where: Located) -> None:
        data = where.items(("data",), plain.get("data"), dict)
        found = [key for key, value in data.items() if "conf" in key and isinstance(value, str)]
        if len(found) != 1:
            where.refuse(("data",), f"expected one scheduler configuration, found {len(found)}")
            return
        text, name = data[found[0]], f"{where.name}, data.{found[0]}"
        inner, located = read_mapping(text, name), Located(text, name, where.line(("data", found[0]), value=True))
        self.located.append(located)
        self._configuration(inner, located)

    def _configuration(self, plain: Mapping[str, Any], where: Located) -> None:
        if are_values(plain):
            plain, part = stated(plain), LocatedPart(where)
            for queue, told in queues_of(plain, part):
                self.objects.take(queue, told, ())
            if (said := of_values(plain, part)) is not None:
                self._profile_of(said, part)
        else:
            self._profile_of(of_configuration(plain, where), LocatedPart(where))

    def _shard(self, plain: Mapping[str, Any], where: Located, here: Location) -> None:
        part = LocatedPart(where, (*here, "spec"), name_of(plain))
        self._profile_of(of_shard(stated(part.items((), plain.get("spec"), dict)), part), part)

    def _profile_of(self, said: Configured, part: LocatedPart) -> None:
        if self.profile is not None:
            part.refuse((), "expected one scheduler configuration, found another")
            return
        ours = toml_of(text_of(FOLDER / "kai.toml"))
        plugins = [
            {**_UNSAID, **entry, "arguments": entry.get("arguments", {}) | said.plugins.get(entry["name"], {})}
            for entry in _ordered(ours["plugins"], list(said.plugins))
            if entry["name"] in said.plugins or entry["name"] in _ALWAYS
        ]
        keys = {key: value for key, value in ours.items() if key not in ("plugins", "actions", "solvers")}
        solvers = {action: solver for action, solver in ours["solvers"].items() if action in said.actions}
        depths = {action: {"queue_depth": depth} for action, depth in said.depths.items()}
        origin = f"From {json.dumps(part.document.name)}, by clearway import kai-config."
        keys = {"actions": list(said.actions), "solvers": solvers, **keys, **said.switches}
        self.profile = profile_text(origin, keys, depths, plugins)


def _ordered(ours: Sequence[Mapping[str, Any]], listed: Sequence[str]) -> list[Mapping[str, Any]]:
    """Our plugins, those that order podgroups in the order in which they are listed."""
    places = [at for at, entry in enumerate(ours) if entry["name"] in _ORDERING and entry["name"] in listed]
    moved = sorted((ours[at] for at in places), key=lambda entry: listed.index(entry["name"]))
    told = dict(zip(places, moved, strict=True))
    return [told.get(at, entry) for at, entry in enumerate(ours)]
