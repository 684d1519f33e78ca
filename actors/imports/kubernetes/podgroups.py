"""PodGroups and Workloads of each API as podgroups without their tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from actors.documents.durations import seconds_of
from actors.imports.fields import Fields
from actors.imports.kubernetes.kai import parts_of
from actors.imports.kubernetes.network.topology import LevelRequest, Topologies
from actors.imports.kubernetes.pods import Pod
from actors.imports.kubernetes.queues import json_of
from actors.imports.marks import Marked, find
from pipeline.cluster.tables import MATCH_POLICY_NAMES

FullName = tuple[str, str]


@dataclass(slots=True)
class SubgroupPolicy:
    """A subgroup policy of Volcano: the pods that it selects form one subgroup for each combination of some labels.

    Attributes
    ----------
    labels
        Labels of the pods that it selects.
    by
        Keys of the labels whose values divide the pods; a pod that lacks one is not selected.
    node, leaf
        What is known of the inner subgroup and of each of its leaves.
    """

    name: str
    labels: Mapping[str, str]
    by: list[str]
    node: dict[str, Any]
    leaf: dict[str, Any]

    def values(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """What the labels of a pod say for its keys; empty if it does not select the pod."""
        said = tuple(labels.get(key, "") for key in self.by)
        return said if self.labels.items() <= labels.items() and all(said) else ()


@dataclass(slots=True)
class ImportedPodgroup:
    """A podgroup while it is put together.

    Attributes
    ----------
    document
        What is known of it without its pods.
    whole
        Whether all of its pods must run.
    unknown
        Whether nothing says how many must run.
    """

    about: Fields
    scheduler: str
    document: dict[str, Any]
    queue: str = ""
    priority_class: str = ""
    whole: bool = False
    unknown: bool = False
    policies: list[SubgroupPolicy] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)


@dataclass(slots=True)
class ImportedPodgroups:
    """The podgroups that were read; ``templates`` are those of Workloads, which pods name with the key of a replica."""

    topologies: Topologies
    found: dict[FullName, ImportedPodgroup] = field(default_factory=dict)
    templates: dict[FullName, ImportedPodgroup] = field(default_factory=dict)

    def _start(self, about: Fields, scheduler: str, least: int, **said: Any) -> ImportedPodgroup:
        metadata = about.inside("metadata")
        name, namespace = metadata.text("name"), metadata.text("namespace", "default")
        document = {"name": name, "namespace": namespace, "min_available": least}
        document |= {key: value for key, value in said.items() if value not in (None, {}, "")}
        if (created := metadata.time("creationTimestamp")) is not None:
            document["created"] = created
        group = ImportedPodgroup(about, scheduler, document)
        if (namespace, name) in self.found:
            about.leave_out((), "there is a podgroup of this name already")
        else:
            self.found[namespace, name] = group
        queue = find("queue", "podgroup", [about])
        group.queue = str(queue.value) if queue is not None else ""
        told = find("preemptible", "podgroup", [about])
        if told is not None and told.value in ("true", "false"):
            document["preemptible"] = told.value == "true"
        self.marked(group, "podgroup", [about])
        return group

    def marked(self, group: ImportedPodgroup, on: str, bearers: list[Fields]) -> None:
        """Add what marks say about a podgroup: the podgroups that it starts with, its levels and its timing."""
        others = find("gang_group", on, bearers)
        if others is not None and "gang_group" not in group.document:
            names = json_of(others)
            if not isinstance(names, list) or not all(isinstance(each, str) and "/" in each for each in names):
                others.about.refuse(others.mark.place, "expected a list of podgroups as namespace/name")
            group.document["gang_group"] = list(dict.fromkeys(names))
        self._timing(group, on, bearers)
        gather = find("gather", on, bearers)
        if gather is not None:
            self._gather(group, gather)
        required, preferred = find("required_level", on, bearers), find("preferred_level", on, bearers)
        said = required or preferred
        if said is not None:
            levels = [str(each.value) if each is not None else None for each in (required, preferred)]
            self.topologies.asked.append(
                LevelRequest("key", said.about, said.mark.place, levels[0], levels[1], group.document)
            )

    def _timing(self, group: ImportedPodgroup, on: str, bearers: list[Fields]) -> None:
        """Add when it may start, and how long it waits; like Koordinator, the default where they cannot be read."""
        policy, wait = find("match_policy", on, bearers), find("wait", on, bearers)
        if policy is not None and policy.value in MATCH_POLICY_NAMES[1:]:
            group.document.setdefault("match_policy", policy.value)
        elif policy is not None:
            policy.about.remark(policy.mark.place, f"no match policy is called {policy.value!r}: the default counts")
        seconds = seconds_of(str(wait.value)) if wait is not None else None
        if seconds:
            group.document.setdefault("wait_seconds", seconds)
        elif wait is not None:
            wait.about.remark(wait.mark.place, f"{wait.value!r} is no time to wait: the default counts")

    def _gather(self, group: ImportedPodgroup, said: Marked) -> None:
        """Ask for Koordinator's layers: the narrowest that is required, and the narrowest that is preferred."""
        spec = json_of(said)
        strategies = spec.get("gatherStrategy", []) if isinstance(spec, dict) else None
        if not isinstance(strategies, list) or not all(isinstance(each, dict) for each in strategies):
            said.about.refuse(said.mark.place, "expected a gatherStrategy with a list of layers")
        for each in strategies:
            strategy, layer = each.get("strategy"), each.get("layer")
            if strategy not in ("MustGather", "PreferGather") or not isinstance(layer, str):
                told = f"expected a layer with MustGather or PreferGather, found {strategy!r}"
                said.about.refuse(said.mark.place, told)
            multiple = each.get("podCountMultiple", 0)
            if isinstance(multiple, bool) or not isinstance(multiple, int) or not 0 <= multiple < 2**31:
                said.about.refuse(said.mark.place, f"expected a podCountMultiple of at least 0, found {multiple!r}")
            must = strategy == "MustGather"
            required, preferred = (layer, None) if must else (None, layer)
            self.topologies.asked.append(
                LevelRequest("layer", said.about, said.mark.place, required, preferred, group.document, multiple)
            )

    def coscheduling(self, about: Fields) -> None:
        """``PodGroup`` of scheduling.sigs.k8s.io (Koordinator) and of scheduling.x-k8s.io, which it comes from."""
        spec = about.inside("spec")
        scheduler = "koordinator" if about.manifest.group == "scheduling.sigs.k8s.io" else "kube-scheduler"
        group = self._start(about, scheduler, spec.count("minMember", 1), min_resources=spec.quantities("minResources"))
        seconds = spec.whole("scheduleTimeoutSeconds")
        if scheduler == "koordinator" and seconds is not None and seconds > 0:
            group.document.setdefault("wait_seconds", float(seconds))

    def volcano(self, about: Fields) -> None:
        """``PodGroup`` of scheduling.volcano.sh."""
        spec, phase = about.inside("spec"), about.inside("status").text("phase")
        group = self._start(
            about, "volcano", spec.count("minMember", 1),
            min_resources=spec.quantities("minResources", _volcano_counts),
            phase={"Pending": "Pending", "Running": "Running", "Unknown": "Running"}.get(phase),
        )  # fmt: skip
        least = spec.inside("minTaskMember")
        if least.data:
            group.document["roles"] = {role: {"min": least.count(role)} for role in least.data}
        group.queue = spec.text("queue") or group.queue
        group.priority_class = spec.text("priorityClassName")
        self._tiers(spec, group.document)
        for policy in spec.items("subGroupPolicy"):
            selector = policy.inside("labelSelector")
            if selector.get("matchExpressions"):
                selector.leave_out("matchExpressions", "pods are cut into subgroups by labels alone")
            node = {"min_subgroups": policy.count("minSubGroups", 0)}  # without it none of them need be whole
            leaf = {"min_available": policy.count("subGroupSize", 1)}
            self._tiers(policy, leaf)
            labels, by = selector.words("matchLabels"), policy.texts("matchLabelKeys")
            if not by:
                policy.leave_out((), "without matchLabelKeys it selects no pod")
            group.policies.append(SubgroupPolicy(policy.text("name"), labels, by, node, leaf))

    def _tiers(self, about: Fields, into: dict[str, Any]) -> None:
        wanted = about.inside("networkTopology")
        if not wanted.data:
            return
        highest = wanted.text("highestTierName") or wanted.whole("highestTierAllowed")
        soft = wanted.text("mode", "hard") == "soft"
        if soft or highest is not None:
            place = ("highestTierName" if isinstance(highest, str) else "highestTierAllowed",)
            levels: tuple[Any, Any] = (None, -1) if soft else (highest, None)
            self.topologies.asked.append(LevelRequest("tier", wanted, place, *levels, into))

    def kai(self, about: Fields) -> None:
        """``PodGroup`` of scheduling.run.ai."""
        (made,) = parts_of(about, "PodGroup").podgroups
        least = made.pop("min_available", 0 if made.get("subgroups") else 1)
        group = self._start(about, "kai", least)
        group.queue = made.pop("queue", "") or group.queue
        group.priority_class = made.pop("priority_class", "")
        group.document.update({key: value for key, value in made.items() if key not in group.document})
        self._levels(about, group.document)

    def _levels(self, about: Fields, part: dict[str, Any]) -> None:
        """Ask for the levels of a podgroup or subgroup and of the subgroups in it."""
        wanted = part.pop("topology", {})
        if wanted:
            levels = wanted.get("required"), wanted.get("preferred")
            self.topologies.asked.append(LevelRequest("key", about, ("spec", "topologyConstraint"), *levels, part))
        for inner in (*part.get("subgroups", ()), *part.get("children", ())):
            self._levels(about, inner)

    def in_tree(self, about: Fields) -> None:
        """``PodGroup`` of scheduling.k8s.io (v1alpha2 and later)."""
        spec = about.inside("spec")
        group = self._start(about, "kube-scheduler", _gang(spec.inside("schedulingPolicy")))
        self._of_template(spec, group)

    def _of_template(self, spec: Fields, group: ImportedPodgroup) -> None:
        priority = spec.whole("priority")
        if priority is not None:
            group.document["priority"] = priority
        if policy := spec.text("preemptionPolicy"):
            group.document["preemption_policy"] = policy
        group.priority_class = spec.text("priorityClassName")
        for key in ("disruptionMode", "resourceClaims", "parentCompositePodGroupName"):
            if spec.get(key):
                spec.leave_out(key, "this has no counterpart here")
        for each in spec.inside("schedulingConstraints").items("topology"):
            level = each.text("key") or None
            self.topologies.asked.append(LevelRequest("key", each, ("key",), level, None, group.document))

    def workload(self, about: Fields) -> None:
        """``Workload`` of scheduling.k8s.io: its podgroups in v1alpha1; templates of PodGroups in later versions."""
        metadata = about.inside("metadata")
        namespace = metadata.text("namespace", "default")
        for each in about.inside("spec").items("podGroups"):
            name = f"{metadata.text('name')}-{each.text('name')}"
            document = {"name": name, "namespace": namespace, "min_available": _gang(each.inside("policy"))}
            self.templates[namespace, name] = ImportedPodgroup(each, "kube-scheduler", document)

    def of_workload(self, pod: Pod, name: str) -> ImportedPodgroup | None:
        """The podgroup of a pod that names a podgroup of a Workload; None if there is no such podgroup."""
        reference = pod.about.data.get("spec", {}).get("workloadRef") or {}
        template = self.templates.get((pod.namespace, f"{reference.get('name')}-{reference.get('podGroup')}"))
        if template is None:
            return None
        return replace(template, document={**template.document, "name": name}, pods=[])


def _volcano_counts(resource: str) -> bool:
    """Whether Volcano counts a resource: its controller also writes what a quota counts, such as ``count/pods``."""
    if resource.startswith(("count/", "requests.", "limits.")):
        return False
    native = resource in ("cpu", "memory", "pods", "ephemeral-storage")
    return native or "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


def _gang(policy: Fields) -> int:
    """The minimum of a scheduling policy; 1 for a basic one, whose pods stand alone."""
    policy.skip("basic")
    return policy.inside("gang").count("minCount", 1)
