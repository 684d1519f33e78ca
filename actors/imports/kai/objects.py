"""Objects of KAI Scheduler as parts of a cluster file: Queues, PodGroups, a Topology and priority classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from actors.cluster_file.cross_references import SYSTEM_CLASSES
from actors.documents.durations import A_TIME, moment_of, seconds_of
from actors.documents.model import Location
from actors.imports.kai.shapes import mistakes, stated
from actors.imports.marks import table

KINDS = ("Queue", "PodGroup", "Topology", "PriorityClass")
_UNLIMITED = -1
#: By resource of KAI Scheduler: the resource here, and the suffix of one of its units.
_RESOURCES: Mapping[str, tuple[str, str]] = {
    "cpu": ("cpu", "m"),
    "memory": ("memory", "M"),
    "gpu": ("nvidia.com/gpu", ""),
}
_USUAL_PRIORITY = 100
#: What a queue has of a quota, a limit or a weight that it does not state: with a limit of 0 it may use none.
_UNSTATED = 0
_STARTED, _STALE = "kai.scheduler/last-start-timestamp", "kai.scheduler/stale-podgroup-timestamp"
#: Keys that only inform people or other programs.
_TOLD = ("displayName", "markUnschedulable", "schedulingBackoff")


class Refusals(Protocol):
    """Takes note of fields that cannot be honoured."""

    def refuse(self, where: Location, told: str) -> None:
        """Note that the value at a path cannot be honoured, and why."""


@dataclass
class Objects:
    """Parts of a cluster file, in the order in which they were read.

    Attributes
    ----------
    usual_priority
        The priority of podgroups without a class; None if no class is the usual one.
    aliases
        Other names of levels.
    sources
        By the identity of a part: where its mistakes are noted, and its path there.
    """

    queues: list[dict[str, Any]] = field(default_factory=list)
    podgroups: list[dict[str, Any]] = field(default_factory=list)
    classes: list[dict[str, Any]] = field(default_factory=list)
    usual_priority: int | None = None
    topology: dict[str, Any] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    sources: dict[int, tuple[Refusals, Location]] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether anything was read."""
        return bool(self.queues or self.podgroups or self.classes or self.topology)

    def cluster(self) -> dict[str, Any]:
        """The cluster file, without nodes and tasks: those are objects of Kubernetes."""
        made: dict[str, Any] = {"version": 1, "policy": {"profile": "kai"}}
        if self.topology:
            made["topology"] = self.topology
        for podgroup in self.podgroups:
            self._call_levels_by_label(podgroup)
            self._prioritise(podgroup)
        sections = {"queues": self.queues, "priority_classes": self.classes, "podgroups": self.podgroups}
        return made | {name: found for name, found in sections.items() if found}

    def take(self, plain: Mapping[str, Any], where: Refusals, here: Location) -> None:
        """Read one object whose kind is one of ``KINDS``; ``where`` notes what cannot be honoured."""
        kind, plain = plain["kind"], stated(plain)
        if wrong := mistakes(kind, plain):
            for inside, told in wrong:
                where.refuse((*here, *inside), told)
            return
        one = _Object(plain, where, here)
        if kind == "Topology":
            if self.topology:
                where.refuse((*here, "kind"), "expected one Topology: a cluster has one network")
                return
            self.topology, self.aliases = _topology(one)
            self.sources[id(self.topology)] = where, here
            return
        parts, read = {
            "Queue": (self.queues, _queue),
            "PodGroup": (self.podgroups, _podgroup),
            "PriorityClass": (self.classes, _class),
        }[kind]
        parts.append(read(one))
        self.sources[id(parts[-1])] = where, here
        if plain.get("globalDefault") and kind == "PriorityClass":
            self.usual_priority = plain["value"]

    def _prioritise(self, podgroup: dict[str, Any]) -> None:
        """Say what KAI Scheduler takes for granted: the usual priority, and from which one up a podgroup is spared."""
        scheduler = table().schedulers["kai"]
        known = {**SYSTEM_CLASSES, **{each["name"]: each["value"] for each in self.classes}}
        if not podgroup.get("priority_class"):
            podgroup.pop("priority_class", None)
            podgroup["priority"] = scheduler.usual_priority if self.usual_priority is None else self.usual_priority
        priority = podgroup["priority"] if "priority" in podgroup else known.get(podgroup["priority_class"], 0)
        if scheduler.not_preemptible_from is not None and priority >= scheduler.not_preemptible_from:
            podgroup.setdefault("preemptible", False)

    def _call_levels_by_label(self, part: dict[str, Any]) -> None:
        for key, level in part.get("topology", {}).items():
            part["topology"][key] = self.aliases.get(level, level)
        for inner in (*part.get("subgroups", ()), *part.get("children", ())):
            self._call_levels_by_label(inner)


@dataclass
class _Object:
    """An object, and where its mistakes are noted."""

    plain: Mapping[str, Any]
    where: Refusals
    here: Location

    @property
    def meta(self) -> Mapping[str, Any]:
        return _mapping(self.plain.get("metadata"))

    @property
    def spec(self) -> Mapping[str, Any]:
        return _mapping(self.plain.get("spec"))

    def refuse(self, way: Sequence[str | int], told: str) -> None:
        self.where.refuse((*self.here, *way), told)

    def only(self, found: Mapping[str, Any], way: Sequence[str | int], known: Sequence[str]) -> None:
        """Refuse keys that nothing reads, except those that only inform."""
        for key in found:
            if key not in known and key not in _TOLD:
                self.refuse((*way, key), "nothing here reads this")

    def seconds(self, way: Sequence[str | int], found: Any) -> float | None:
        """A duration in seconds, -1 for a negative one; None if it is not one."""
        text = str(found).strip()
        taken = _UNLIMITED if text.startswith("-") else seconds_of(text)
        if taken is None:
            self.refuse(way, f"expected a duration such as 1h30m, found {found!r}")
        return taken

    def time(self, way: Sequence[str], found: Any) -> dict[str, float]:
        """A time in seconds since the epoch under the last key of ``way``; empty if none is given."""
        if found is None:
            return {}
        moment = moment_of(str(found))
        if moment is None:
            self.refuse(way[:-1], f"expected {A_TIME}, found {found!r}")
            return {}
        return {way[-1]: moment}


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _class(one: _Object) -> dict[str, Any]:
    made = {"name": one.meta["name"], "value": one.plain["value"]}
    policy = one.plain.get("preemptionPolicy")
    return made | ({"preemption_policy": policy} if policy is not None else {})


def _queue(one: _Object) -> dict[str, Any]:
    spec = one.spec
    one.only(spec, ("spec",), ("parentQueue", "priority", "resources", "preemptMinRuntime", "reclaimMinRuntime"))
    made: dict[str, Any] = {"name": one.meta["name"], "priority": spec.get("priority", _USUAL_PRIORITY)}
    if spec.get("parentQueue"):
        made["parent"] = spec["parentQueue"]
    weights, deserved, capability = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    resources = _mapping(spec.get("resources"))
    one.only(resources, ("spec", "resources"), tuple(_RESOURCES))
    for theirs, (ours, unit) in _RESOURCES.items():
        said, way = _mapping(resources.get(theirs)), ("spec", "resources", theirs)
        one.only(said, way, ("quota", "limit", "overQuotaWeight"))
        quota, limit, weights[ours] = (said.get(key, _UNSTATED) for key in ("quota", "limit", "overQuotaWeight"))
        deserved[ours] = "unlimited" if quota == _UNLIMITED else _amount(one, (*way, "quota"), quota, unit)
        if limit != _UNLIMITED:
            capability[ours] = _amount(one, (*way, "limit"), limit, unit)
    made |= {"over_quota_weight": weights, "deserved": deserved, "capability": capability}
    for theirs, ours in (("preemptMinRuntime", "preempt_min_runtime"), ("reclaimMinRuntime", "reclaim_min_runtime")):
        if theirs in spec:
            made[ours] = max(one.seconds(("spec", theirs), spec[theirs]) or 0.0, 0.0)
    return made | one.time(("metadata", "creationTimestamp", "created"), one.meta.get("creationTimestamp"))


def _amount(one: _Object, way: Sequence[str], found: Any, unit: str) -> Any:
    if not 0 <= found < math.inf or found != int(found):
        one.refuse(way, f"expected a whole number, at least 0, or -1 for no bound, found {found!r}")
        return 0
    return f"{int(found)}{unit}" if unit else int(found)


def _topology(one: _Object) -> tuple[dict[str, Any], dict[str, str]]:
    """The topology with node labels as names of its levels, and the other names of the levels."""
    one.only(one.spec, ("spec",), ("levels",))
    labels, aliases = list[str](), dict[str, str]()
    for at, level in enumerate(one.spec.get("levels") or ()):
        said = _mapping(level)
        one.only(said, ("spec", "levels", at), ("nodeLabel", "alias"))
        labels.append(str(said.get("nodeLabel")))
        if said.get("alias"):
            aliases[str(said["alias"])] = labels[-1]
    return {"levels": labels, "labels": {label: label for label in labels}}, aliases


#: By key of KAI Scheduler: the key here, for values that stay the same.
_SAME = {
    "queue": "queue",
    "minMember": "min_available",
    "minSubGroup": "min_subgroups",
    "priorityClassName": "priority_class",
}
_PODGROUP = (*_SAME, "preemptibility", "topologyConstraint", "subGroups", "stalenessGracePeriod", "preemptionDelay")


def _podgroup(one: _Object) -> dict[str, Any]:
    spec, notes = one.spec, _mapping(one.meta.get("annotations"))
    one.only({key: value for key, value in spec.items() if value}, ("spec",), _PODGROUP)
    made: dict[str, Any] = {"name": one.meta["name"], "namespace": one.meta.get("namespace", "default")}
    made |= {ours: spec[theirs] for theirs, ours in _SAME.items() if spec.get(theirs) is not None}
    if spec.get("preemptibility"):
        made["preemptible"] = spec["preemptibility"] == "preemptible"
        if spec["preemptibility"] not in ("preemptible", "non-preemptible"):
            told = f"expected preemptible or non-preemptible, found {spec['preemptibility']!r}"
            one.refuse(("spec", "preemptibility"), told)
    if "stalenessGracePeriod" in spec:
        made["stale_grace_seconds"] = one.seconds(("spec", "stalenessGracePeriod"), spec["stalenessGracePeriod"])
    if "preemptionDelay" in spec:
        made["preemption_delay"] = max(one.seconds(("spec", "preemptionDelay"), spec["preemptionDelay"]) or 0.0, 0.0)
    made |= _wanted(one, ("spec", "topologyConstraint"), spec.get("topologyConstraint"))
    if spec.get("subGroups"):
        made["subgroups"] = _tree(one, spec["subGroups"])
    made |= one.time(("metadata", "creationTimestamp", "created"), one.meta.get("creationTimestamp"))
    for note, ours in ((_STARTED, "started"), (_STALE, "stale_since")):
        made |= one.time(("metadata", "annotations", note, ours), notes.get(note))
    return made


def _wanted(one: _Object, way: Sequence[str | int], found: Any) -> dict[str, Any]:
    """The levels that a podgroup or subgroup asks for, named by node labels."""
    said = {key: value for key, value in _mapping(found).items() if value}
    one.only(said, way, ("topology", "requiredTopologyLevel", "preferredTopologyLevel"))
    keys = (("required", "requiredTopologyLevel"), ("preferred", "preferredTopologyLevel"))
    levels = {ours: said[theirs] for ours, theirs in keys if theirs in said}
    return {"topology": levels} if levels else {}


def _tree(one: _Object, listed: Sequence[Any]) -> list[dict[str, Any]]:
    """A tree of subgroups from a list in which each names its parent."""
    parents = {_mapping(said).get("parent") for said in listed}
    known = {_mapping(said).get("name") for said in listed}
    children: dict[Any, list[dict[str, Any]]] = {}
    for at, entry in enumerate(listed):
        said, way = _mapping(entry), ("spec", "subGroups", at)
        one.only(said, way, ("name", "minMember", "minSubGroup", "parent", "topologyConstraint"))
        parent, inner = said.get("parent"), said.get("name") in parents
        if parent is not None and parent not in known:
            one.refuse((*way, "parent"), f"expected the name of a subgroup, found {parent!r}")
        made = {"name": said.get("name"), **_wanted(one, (*way, "topologyConstraint"), said.get("topologyConstraint"))}
        least = "minSubGroup" if inner else "minMember"
        if said.get(least) is not None:
            made["min_subgroups" if inner else "min_available"] = said[least]
        other = "minMember" if inner else "minSubGroup"
        if said.get(other):
            one.refuse((*way, other), f"expected none for a subgroup {'of subgroups' if inner else 'of pods'}")
        made |= {"children": children.setdefault(made["name"], [])} if inner else {}
        children.setdefault(parent, []).append(made)
    return children.get(None, [])
