"""Pods as tasks: their request, their constraints, and their node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actors.imports.fields import Fields
from actors.imports.kubernetes.nodes import NODE_NAME
from actors.imports.kubernetes.requests import request_of
from actors.imports.marks import find, table
from pipeline.cluster.vocabulary import ALL_NAMESPACES

#: Sources of volumes that any node can offer; the others tie a pod to the place of its data.
_ANYWHERE = ("configMap", "downwardAPI", "emptyDir", "hostPath", "image", "name", "projected", "secret")
_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
#: By kind of owner: its group, where a reference does not say so.
_GROUPS = {
    "Job": "batch",
    "JobSet": "jobset.x-k8s.io",
    "Deployment": "apps",
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
}
_FINISHED = ("Succeeded", "Failed")


@dataclass(slots=True)
class Pod:
    """A pod that was read.

    Attributes
    ----------
    task
        Its task document without what follows from its podgroup.
    bearers
        The objects that may bear its marks: the pod, then its owners.
    owner
        Kind, as `owner_kind` writes it, and name of its owner; None if it has none.
    started
        Seconds since the epoch; None if it has not started.
    """

    about: Fields
    namespace: str
    name: str
    labels: dict[str, str]
    task: dict[str, Any]
    scheduler_name: str
    priority: int | None
    priority_class: str
    preemption_policy: str
    owner: tuple[str, str] | None
    started: float | None
    bearers: list[Fields] = field(default_factory=list)


def read_pod(about: Fields, *, template_of: tuple[str, str, str] | None = None) -> Pod | None:
    """Read one pod; None if it is ending and holds no node.

    Parameters
    ----------
    template_of
        Namespace, name and kind of the owner, if this is the template of its pods.
    """
    metadata, spec, status = about.inside("metadata"), about.inside("spec"), about.inside("status")
    namespace, name, kind = template_of or (metadata.text("namespace", "default"), metadata.text("name"), "")
    if not name:
        metadata.refuse("name", "expected a name, found none")
    labels = metadata.words("labels")
    place = _place(metadata, spec, status)
    if place is None:
        spec.skip(*spec.data)
        return None
    task: dict[str, Any] = {"name": name, "request": request_of(spec, status), **place}
    _leave_out_of_quotas(spec, task["request"])
    task |= {"labels": labels} if labels else {}
    constraints = _Constraints(spec, namespace, labels)
    task |= constraints.read()
    gated = spec.items("schedulingGates")
    for gate in gated:
        gate.skip("name")
    held_back = constraints.held_back or find("held_back", "pod", [about]) is not None
    if (gated or held_back) and place["status"] == "Pending":
        task["scheduling_gated"] = True
    owner = (kind, name) if template_of else _owner(metadata)
    if owner is not None and owner[0] in table().owners.gone_when_evicted:
        task["gone_when_evicted"] = True
    if (created := metadata.time("creationTimestamp")) is not None:
        task["created"] = created
    return Pod(
        about, namespace, name, labels, task, spec.text("schedulerName", "default-scheduler"), spec.whole("priority"),
        spec.text("priorityClassName"), spec.text("preemptionPolicy"), owner, status.time("startTime"), [about],
    )  # fmt: skip


def _owner(metadata: Fields) -> tuple[str, str] | None:
    owners = metadata.items("ownerReferences")
    owner = next((each for each in owners if each.flag("controller")), owners[0] if owners else None)
    return None if owner is None else (owner_kind(owner), owner.text("name"))


def owner_kind(reference: Fields) -> str:
    """API group and kind of what a reference names: a Job of ``batch`` is not one of ``batch.volcano.sh``."""
    version, kind = reference.text("apiVersion"), reference.text("kind")
    return f"{version.rpartition('/')[0] if version else _GROUPS.get(kind, '')}/{kind}"


def _place(metadata: Fields, spec: Fields, status: Fields) -> dict[str, Any] | None:
    """Status and node of a pod; None if it is ending and holds no node."""
    node, phase = spec.text("nodeName"), status.text("phase", "Pending")
    nominated = status.text("nominatedNodeName")
    ending = metadata.time("deletionTimestamp") is not None
    if phase in _FINISHED:
        return {"status": phase}
    if not node:
        if phase == "Running":
            spec.refuse("nodeName", "expected the node of a pod that runs, found none")
        return None if ending else {"status": "Pending"} | ({"nominated_node": nominated} if nominated else {})
    now = "Terminating" if ending else "Bound" if phase == "Pending" else "Running"
    return {"status": now, "node": node}


def _leave_out_of_quotas(spec: Fields, request: Mapping[str, Any]) -> None:
    """Report resources that quotas of the pod's scheduler count as another one."""
    name = spec.text("schedulerName", "default-scheduler")
    for scheduler in table().schedulers.values():
        for resource in request if name in scheduler.names else ():
            if resource.startswith(tuple(scheduler.counted_as_others)):
                spec.leave_out("containers", f"quotas of {name} count {resource} as GPUs; here no quota does")


class _Constraints:
    """The constraints of a pod. One that has no counterpart here holds the pod back while it waits."""

    def __init__(self, spec: Fields, namespace: str, labels: Mapping[str, str]) -> None:
        self._spec, self._namespace, self._labels = spec, namespace, labels
        self.held_back = False

    def read(self) -> dict[str, Any]:
        """The constraints of a task."""
        spec, affinity = self._spec, self._spec.inside("affinity")
        found: dict[str, Any] = {
            "node_selector": spec.words("nodeSelector"),
            "node_affinity": self._node_affinity(affinity.inside("nodeAffinity")),
            "tolerations": [kept for each in spec.items("tolerations") if (kept := self._toleration(each))],
            "pod_anti_affinity": self._anti_affinity(affinity.inside("podAntiAffinity")),
        }
        towards = affinity.inside("podAffinity")
        self._hold_back(towards, _REQUIRED, "affinity between pods has no counterpart here")
        self._leave_out_preferred(towards)
        for each in spec.items("topologySpreadConstraints"):
            each.skip(*each.data)
            if each.text("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
                self._without_place(each, (), "spreading has no counterpart here")
            else:
                each.leave_out((), "spreading has no counterpart here")
        self._volumes_and_ports()
        self._hold_back(spec, "resourceClaims", "claims of devices have no counterpart here")
        return {key: value for key, value in found.items() if value}

    def _without_place(self, about: Fields, key: Any, told: str) -> None:
        self.held_back = True
        about.leave_out(key, f"{told}; while it waits the pod is held back")

    def _hold_back(self, about: Fields, key: str, told: str) -> None:
        if about.get(key):
            self._without_place(about, key, told)

    def _leave_out_preferred(self, about: Fields) -> None:
        if about.get(_PREFERRED):
            about.leave_out(_PREFERRED, "preferences of pods have no counterpart here")

    def _volumes_and_ports(self) -> None:
        for volume in self._spec.items("volumes"):
            for source in volume.data:
                if source not in _ANYWHERE:
                    volume.skip(source)
                    self._without_place(volume, source, "volumes that tie a pod to a place have no counterpart here")
        for key in ("containers", "initContainers"):
            for container in self._spec.items(key):
                for port in container.items("ports"):
                    self._hold_back(port, "hostPort", "ports of the node have no counterpart here")

    def _node_affinity(self, about: Fields) -> list[list[dict[str, Any]]]:
        self._leave_out_preferred(about)
        required = about.inside(_REQUIRED)
        terms = []
        for term in required.items("nodeSelectorTerms"):
            requirements = [self._requirement(each, each.text("key")) for each in term.items("matchExpressions")]
            requirements += [self._requirement(each, NODE_NAME) for each in term.items("matchFields")]
            for each in requirements:
                if each["operator"] in ("Exists", "DoesNotExist"):
                    each.pop("values")
            terms += [requirements] if requirements else []
        if required.data and not terms:
            self._without_place(required, "nodeSelectorTerms", "a term without requirements matches no node")
        return terms

    @staticmethod
    def _requirement(about: Fields, key: str) -> dict[str, Any]:
        about.skip("key")
        return {"key": key, "operator": about.text("operator"), "values": about.texts("values")}

    def _toleration(self, about: Fields) -> dict[str, Any] | None:
        about.skip(*about.data)
        operator = about.text("operator", "Equal")
        if operator not in ("Exists", "Equal"):
            self._without_place(about, "operator", f"tolerations by {operator} have no counterpart here")
            return None
        given = {"key": about.text("key"), "operator": operator, "value": about.text("value")}
        return {key: value for key, value in (given | {"effect": about.text("effect")}).items() if value}

    def _anti_affinity(self, about: Fields) -> list[dict[str, Any]]:
        self._leave_out_preferred(about)
        return [
            found
            for term in about.items(_REQUIRED)
            if (found := self._repelled(term)) is not None and term.get("labelSelector") is not None
        ]

    def _repelled(self, term: Fields) -> dict[str, Any] | None:
        """A term as this cluster file has it; None if it cannot be said there."""
        selector = term.inside("labelSelector")
        found: dict[str, Any] = {
            "topology_key": term.text("topologyKey"), "match_labels": selector.words("matchLabels"),
        }  # fmt: skip
        expressions = [self._requirement(each, each.text("key")) for each in selector.items("matchExpressions")]
        for keys, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            own = [(key, self._labels[key]) for key in term.texts(keys) if key in self._labels]
            expressions += [{"key": key, "operator": operator, "values": [value]} for key, value in own]
        namespaces = term.texts("namespaces")
        if term.get("namespaceSelector") is not None:
            chosen = term.inside("namespaceSelector")
            chosen.skip(*chosen.data)
            if any(chosen.data.values()):
                self._without_place(term, "namespaceSelector", "labels of namespaces have no counterpart here")
                return None
            namespaces = [ALL_NAMESPACES]
        if expressions:
            found["match_expressions"] = expressions
        if namespaces not in ([], [self._namespace]):
            found["namespaces"] = namespaces
        return found


def priority_of(
    pod: Pod, classes: Mapping[str, tuple[int, str]], absent: tuple[int, str], *, by_class: bool
) -> tuple[int, str]:
    """Priority and preemption policy of a pod: its own (unless ``by_class``), else those of its class."""
    own = None if by_class else pod.priority
    marked = find("priority_class", "pod", pod.bearers)
    name = pod.priority_class or (str(marked.value) if marked is not None else "")
    value, policy = absent
    if name in classes:
        value, policy = classes[name]
    elif name and own is None:
        pod.about.leave_out(("spec", "priorityClassName"), f"there is no priority class {name!r} among the manifests")
    return (value if own is None else own), pod.preemption_policy or policy
