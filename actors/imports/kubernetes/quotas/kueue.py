"""Queues of Kueue and their flavors.

Kueue counts a resource apart for each flavor, which is a kind of node. A cluster file counts by resource alone. So
where cluster queues have a resource in several flavors, it becomes one resource for each: ``nvidia.com/gpu@spot`` is
what nodes of the flavor ``spot`` have of ``nvidia.com/gpu``, in base units (millicores, bytes, pieces).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.imports.fields import Fields
from actors.imports.kubernetes.requests import Units, as_quantities

COHORT = "cohort/"


@dataclass(frozen=True, slots=True)
class ResourceFlavor:
    """A kind of node: the labels and taints of its nodes, and the tolerations that pods get with it."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    tolerations: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FlavorQuota:
    """Nominal quota of one resource in one flavor, what may be borrowed, and what is lent; None: no limit."""

    own: int
    borrowed: int | None
    lent: int | None

    @property
    def kept(self) -> int:
        """How much of it the cohort never gets."""
        return 0 if self.lent is None else max(self.own - self.lent, 0)


@dataclass(slots=True)
class ResourceGroup:
    """Resources that share their flavors: quota by flavor, in the order in which they are tried, and resource."""

    covered: tuple[str, ...]
    flavors: dict[str, dict[str, FlavorQuota]]


@dataclass(slots=True)
class ClusterQueue:
    """What a cluster queue gives.

    Attributes
    ----------
    past_borrowing, past_preemption
        Whether the next flavor is tried although one has room if the queue borrows, or if it preempts.
    """

    cohort: str
    groups: list[ResourceGroup]
    past_borrowing: bool
    past_preemption: bool

    def quota(self, flavor: str, resource: str) -> FlavorQuota | None:
        """The quota of a resource in a flavor; None if it has none."""
        found = (group.flavors.get(flavor, {}).get(resource) for group in self.groups)
        return next((each for each in found if each is not None), None)


@dataclass(slots=True)
class KueueQuotas:
    """The cluster queues and flavors that were read, by name; ``local`` by namespace and name of a local queue."""

    flavors: dict[str, ResourceFlavor] = field(default_factory=dict)
    queues: dict[str, ClusterQueue] = field(default_factory=dict)
    local: dict[tuple[str, str], str] = field(default_factory=dict)
    topologies: list[tuple[Fields, str]] = field(default_factory=list)
    _named: list[tuple[Fields, str]] = field(default_factory=list)

    def flavor(self, about: Fields) -> None:
        """``ResourceFlavor``."""
        spec = about.inside("spec")
        taints = tuple(_texts(taint, "key", "value", "effect") for taint in spec.items("nodeTaints"))
        tolerations = []
        for each in spec.items("tolerations"):
            each.skip("tolerationSeconds")
            said = {"operator": "Equal"} | _texts(each, "key", "operator", "value", "effect")
            if said["operator"] not in ("Equal", "Exists"):
                each.refuse("operator", f"expected Equal or Exists, found {said['operator']!r}")
            tolerations.append(said)
        if topology := spec.text("topologyName"):
            self.topologies.append((spec, topology))
        labels = spec.words("nodeLabels")
        self.flavors[about.inside("metadata").text("name")] = ResourceFlavor(labels, taints, tuple(tolerations))

    def cluster_queue(self, about: Fields) -> dict[str, Any]:
        """``ClusterQueue``: its queue document without amounts, which depend on all cluster queues."""
        spec = about.inside("spec")
        cohort = spec.text("cohortName") or spec.text("cohort")
        groups = [self._group(group) for group in spec.items("resourceGroups")]
        how = spec.inside("flavorFungibility")
        self.queues[about.inside("metadata").text("name")] = ClusterQueue(
            cohort, groups, how.text("whenCanBorrow") == "TryNextFlavor",
            how.text("whenCanPreempt", "TryNextFlavor") == "TryNextFlavor",
        )  # fmt: skip
        if preference := how.text("preference"):
            how.leave_out("preference", f"{preference!r} has no counterpart here")
        for key in ("admissionChecks", "admissionChecksStrategy", "preemption", "admissionScope"):
            if spec.get(key):
                spec.leave_out(key, "this has no counterpart here; a profile says what may be taken")
        if spec.text("queueingStrategy", "BestEffortFIFO") != "BestEffortFIFO":
            spec.leave_out("queueingStrategy", "a podgroup that cannot start does not hold up others")
        stopped = spec.text("stopPolicy", "None")
        if stopped == "HoldAndDrain":
            spec.leave_out("stopPolicy", "what runs in it stays")
        if spec.get("namespaceSelector") is None:
            spec.leave_out("namespaceSelector", "without one Kueue lets nothing use the queue; here all may use it")
        namespaces = spec.inside("namespaceSelector")
        namespaces.skip(*namespaces.data)
        if any(namespaces.data.values()):
            spec.leave_out("namespaceSelector", "labels of namespaces have no counterpart here: all may use it")
        sharing = spec.inside("fairSharing")
        weight = sharing.get("weight")
        return {
            "parent": COHORT + cohort if cohort else None,
            "weight": None if weight is None else sharing.units({"cpu": weight}, "weight", "cpu") / 1000,
            "state": None if stopped == "None" else "Closed",
        }

    def _group(self, group: Fields) -> ResourceGroup:
        flavors: dict[str, dict[str, FlavorQuota]] = {}
        for flavor in group.items("flavors"):
            name = flavor.text("name")
            flavors[name] = {each.text("name"): _quota(each) for each in flavor.items("resources")}
            self._named.append((flavor, name))
        covered = group.texts("coveredResources") or [name for quotas in flavors.values() for name in quotas]
        return ResourceGroup(tuple(dict.fromkeys(covered)), flavors)

    def local_queue(self, about: Fields) -> None:
        """``LocalQueue``: a name for a cluster queue within one namespace."""
        metadata, spec = about.inside("metadata"), about.inside("spec")
        if spec.text("stopPolicy", "None") != "None":
            spec.leave_out("stopPolicy", "a local queue is never closed by itself")
        if spec.get("fairSharing"):
            spec.leave_out("fairSharing", "cluster queues share, local ones do not")
        self.local[metadata.text("namespace", "default"), metadata.text("name")] = spec.text("clusterQueue")

    # -- what follows ------------------------------------------------------------------------------------------

    def tell(self, topologies: Sequence[str]) -> None:
        """Report flavors and topologies (``topologies`` are there) that are named and not among the manifests."""
        for about, name in self._named:
            if name not in self.flavors:
                about.leave_out("name", f"there is no ResourceFlavor {name!r} among the manifests: any node has it")
        for about, name in self.topologies:
            if name not in topologies:
                about.leave_out("topologyName", f"there is no Topology {name!r} among the manifests")

    def flavored(self) -> dict[str, list[str]]:
        """By resource: its flavors in all cluster queues, in the order of their names."""
        found: dict[str, set[str]] = {}
        for queue in self.queues.values():
            for _, flavor, resource, _ in _quotas({"": queue}):
                found.setdefault(resource, set()).add(flavor)
        return {resource: sorted(flavors) for resource, flavors in found.items()}

    def documents(self) -> dict[str, dict[str, Any]]:
        """What follows for queues and cohorts, by name: nominal quota is deserved, with borrowing it is the ceiling.

        What is not lent is the guarantee. A cohort is a queue above; it has what its queues have together.
        """
        count = self.flavored()
        amounts: dict[str, dict[str, Units]] = {name: {"deserved": {}, "capability": {}} for name in self.queues}
        for name, flavor, resource, quota in _quotas(self.queues):
            own, counted = amounts[name], resource_of(resource, flavor, count)
            cohort = self.queues[name].cohort
            own["deserved"][counted] = quota.own
            if not cohort:
                own["capability"][counted] = quota.own
                continue
            if quota.borrowed is not None:
                own["capability"][counted] = quota.own + quota.borrowed
            if quota.kept:
                own.setdefault("guarantee", {})[counted] = quota.kept
            pool = amounts.setdefault(COHORT + cohort, {"deserved": {}, "capability": {}})
            for known in pool.values():
                known[counted] = known.get(counted, 0) + quota.own
        return {
            name: {
                key: as_quantities(units) | {resource: 0 for resource, amount in units.items() if not amount}
                for key, units in known.items()
                if units
            }
            for name, known in amounts.items()
        }


def _quotas(queues: Mapping[str, ClusterQueue]) -> Iterator[tuple[str, str, str, FlavorQuota]]:
    """Each quota with the names of its queue, its flavor and its resource."""
    for name, queue in queues.items():
        for group in queue.groups:
            for flavor, quotas in group.flavors.items():
                for resource, quota in quotas.items():
                    yield name, flavor, resource, quota


def resource_of(resource: str, flavor: str, flavored: Mapping[str, Sequence[str]]) -> str:
    """The resource of a cluster file that counts a resource in a flavor: the resource itself if it has one flavor."""
    return f"{resource}@{flavor}" if len(flavored.get(resource, ())) > 1 else resource


def _quota(each: Fields) -> FlavorQuota:
    resource = each.text("name")

    def amount(key: str) -> int | None:
        given = each.get(key)
        return None if given is None else each.units({resource: given}, key, resource)

    own = each.units({resource: each.get("nominalQuota")}, "nominalQuota", resource)
    return FlavorQuota(own, amount("borrowingLimit"), amount("lendingLimit"))


def _texts(about: Fields, *keys: str) -> dict[str, str]:
    return {key: value for key in keys if (value := about.text(key))}
