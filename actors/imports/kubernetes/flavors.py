"""The flavor of each pod that Kueue admits.

Kueue gives the pods of one template a flavor for each group of resources that they ask for: the first, in the order of
the cluster queue, whose nodes they may use and that has room in its quota ("Cluster Queue", section "Flavors and
borrowing semantics"). Pods that have a node have the flavor of their node. Those that wait are given theirs here, in
the order of priority and age, and keep it: Kueue does not change it either while admitted pods wait for their nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.cluster_file.cross_references import SYSTEM_CLASSES
from actors.documents.quantities import base_units
from actors.imports.kubernetes.podgroups import ImportedPodgroup
from actors.imports.kubernetes.pods import Pod
from actors.imports.kubernetes.quotas.kueue import ClusterQueue, KueueQuotas, ResourceFlavor, ResourceGroup, resource_of
from actors.imports.kubernetes.quotas.labels import matches
from actors.imports.kubernetes.requests import Units

_HOLDING = ("Bound", "Running", "Terminating")
_NEVER, _WITH_VICTIMS, _FITS = range(3)
_NO_LABELS = ResourceFlavor()


@dataclass(slots=True)
class Flavoring:
    """Flavors for pods; ``used`` counts what they hold by queue, flavor and resource, in base units."""

    kueue: KueueQuotas
    nodes: Mapping[str, dict[str, Any]]
    used: dict[tuple[str, str, str], int] = field(default_factory=dict)
    flavored: dict[str, list[str]] = field(default_factory=dict)

    def assign(self, groups: Sequence[ImportedPodgroup]) -> None:
        """Write the flavors into the nodes, and into the tasks of podgroups in cluster queues."""
        self.flavored = self.kueue.flavored()
        for resource, flavors in self.flavored.items():
            for flavor in flavors:
                self._offer(resource, flavor)
        admitted = [group for group in groups if group.document["queue"] in self.kueue.queues]
        for group in admitted:
            for pod in group.pods:
                if pod.task["status"] in _HOLDING:
                    self._holds(group.document["queue"], pod)
        for group in sorted(admitted, key=_turn):
            sets: dict[str, list[Pod]] = {}
            for pod in group.pods:
                if pod.task["status"] == "Pending":
                    sets.setdefault(_template(pod.task), []).append(pod)
            for pods in sets.values():
                self._waits(group, pods)

    def _offer(self, resource: str, flavor: str) -> None:
        counted, wanted = resource_of(resource, flavor, self.flavored), self._flavor(flavor).labels.items()
        for node in self.nodes.values() if counted != resource else ():
            if resource in node["allocatable"] and wanted <= node.get("labels", {}).items():
                node["allocatable"][counted] = base_units(resource, node["allocatable"][resource])

    def _flavor(self, name: str) -> ResourceFlavor:
        return self.kueue.flavors.get(name, _NO_LABELS)

    # -- pods that have a node ---------------------------------------------------------------------------------

    def _holds(self, queue: str, pod: Pod) -> None:
        labels = self.nodes[pod.task["node"]].get("labels", {})
        for group in self.kueue.queues[queue].groups:
            asked = _asked([pod], group.covered)
            found = next((name for name in group.flavors if self._flavor(name).labels.items() <= labels.items()), None)
            if asked and found is None:
                told = f"{pod.task['node']!r} is of no flavor of {queue!r}: the quota of none is charged for it"
                pod.about.leave_out(("spec", "nodeName"), told)
            elif asked and found is not None:
                self._count(queue, found, [pod], asked)

    def _count(self, queue: str, flavor: str, pods: Sequence[Pod], asked: Units) -> None:
        for resource, amount in asked.items():
            self.used[queue, flavor, resource] = self.used.get((queue, flavor, resource), 0) + amount
            counted = resource_of(resource, flavor, self.flavored)
            for pod in pods if counted != resource else ():
                pod.task["request"][counted] = _amount(pod.task, resource)

    # -- pods that wait ----------------------------------------------------------------------------------------

    def _waits(self, podgroup: ImportedPodgroup, pods: Sequence[Pod]) -> None:
        """Give a flavor for each group of resources to waiting pods of one template."""
        name = podgroup.document["queue"]
        queue, about, first = self.kueue.queues[name], podgroup.about, pods[0]
        if not queue.groups:
            return
        covered = [resource for group in queue.groups for resource in group.covered]
        if outside := [resource for resource in first.task["request"] if resource not in covered]:
            _hold_back(pods, f"{name!r} has no quota of {', '.join(outside)}, so Kueue does not admit it")
            return
        for group in queue.groups:
            asked = _asked(pods, group.covered)
            possible = [flavor for flavor in group.flavors if self._may_use(first.task, flavor, group)]
            if asked and not possible:
                _hold_back(pods, f"it may use no flavor of {name!r}, so Kueue does not admit it")
                return
            if asked:
                flavor = self._choose(name, queue, possible, asked)
                if len(possible) > 1:
                    about.remark((), f"counted in flavor {flavor!r} of {', '.join(possible)} in {name!r}")
                self._count(name, flavor, pods, asked)
                self._confine(pods, self._flavor(flavor))

    @staticmethod
    def _confine(pods: Sequence[Pod], flavor: ResourceFlavor) -> None:
        """Give pods the labels and tolerations of their flavor, as Kueue does when it admits them."""
        for pod in pods:
            if flavor.labels:
                pod.task["node_selector"] = {**pod.task.get("node_selector", {}), **flavor.labels}
            added = [dict(each) for each in flavor.tolerations if each not in pod.task.get("tolerations", [])]
            if added:
                pod.task["tolerations"] = [*pod.task.get("tolerations", []), *added]

    def _may_use(self, task: Mapping[str, Any], name: str, group: ResourceGroup) -> bool:
        """Whether the selectors of a task match the labels of a flavor, and it tolerates its taints.

        Only labels that are keys of some flavor in the group say anything, as in Kueue.
        """
        flavor, keys = self._flavor(name), {key for each in group.flavors for key in self._flavor(each).labels}
        wanted = {key: value for key, value in task.get("node_selector", {}).items() if key in keys}
        place = self.nodes.get(task.get("nominated_node", ""))
        if place is not None and not flavor.labels.items() <= place.get("labels", {}).items():
            return False
        terms = [[each for each in term if each["key"] in keys] for term in task.get("node_affinity", ())]
        tolerations = [*task.get("tolerations", ()), *flavor.tolerations]
        return (
            wanted.items() <= flavor.labels.items()
            and (not terms or any(all(matches(each, flavor.labels) for each in term) for term in terms))
            and all(any(_tolerates(one, taint) for one in tolerations) for taint in flavor.taints if _binds(taint))
        )

    def _choose(self, name: str, queue: ClusterQueue, possible: Sequence[str], asked: Units) -> str:
        """The first flavor with room, else the first whose quota is large enough, else the first; see the module."""
        best, best_rank = possible[0], (_NEVER, False)
        for flavor in possible:
            ranks = [self._rank(name, flavor, resource, amount) for resource, amount in asked.items()]
            rank = (min(mode for mode, _ in ranks), not any(borrows for _, borrows in ranks))
            if rank > best_rank:
                best, best_rank = flavor, rank
            stays = not queue.past_borrowing or rank[1] if rank[0] == _FITS else not queue.past_preemption
            if stays and rank[0] != _NEVER:
                break
        return best

    def _rank(self, name: str, flavor: str, resource: str, amount: int) -> tuple[int, bool]:
        """How an amount can be had in a flavor, and whether the queue borrows for it."""
        quota = self.kueue.queues[name].quota(flavor, resource)
        if quota is None:
            return _NEVER, False
        borrows = self.used.get((name, flavor, resource), 0) + amount > quota.own
        if amount <= self._room(name, flavor, resource):
            return _FITS, borrows
        return (_WITH_VICTIMS if amount <= quota.own else _NEVER), borrows

    def _room(self, name: str, flavor: str, resource: str) -> int:
        """How much a queue may still take of a resource in a flavor, with what its cohort lends."""
        queue = self.kueue.queues[name]
        members = [one for one, other in self.kueue.queues.items() if one == name or queue.cohort == other.cohort != ""]
        pool = own = 0
        for member in members:
            quota = self.kueue.queues[member].quota(flavor, resource)
            if quota is not None:
                used = self.used.get((member, flavor, resource), 0)
                pool += quota.own - quota.kept - max(used - quota.kept, 0)
                own += max(quota.kept - used, 0) if member == name else 0
        quota = queue.quota(flavor, resource)
        room = own + pool
        if quota is not None and quota.borrowed is not None:
            room = min(room, quota.own + quota.borrowed - self.used.get((name, flavor, resource), 0))
        return room


def _turn(group: ImportedPodgroup) -> tuple[int, float, str, str]:
    said = group.document
    priority = said.get("priority", SYSTEM_CLASSES.get(said.get("priority_class", ""), 0))
    return -priority, said.get("created", 0.0), said["namespace"], said["name"]


def _template(task: Mapping[str, Any]) -> str:
    """What pods of one template have in common."""
    keys = ("role", "request", "node_selector", "node_affinity", "tolerations", "nominated_node")
    return json.dumps([task.get(key) for key in keys], sort_keys=True)


def _hold_back(pods: Sequence[Pod], told: str) -> None:
    for pod in pods:
        pod.task["scheduling_gated"] = True
        pod.about.remark((), told)


def _asked(pods: Sequence[Pod], covered: Sequence[str]) -> Units:
    """What pods ask for together of the resources of a group, in base units."""
    found = {
        resource: sum(_amount(pod.task, resource) * pod.task.get("count", 1) for pod in pods) for resource in covered
    }
    return {resource: amount for resource, amount in found.items() if amount}


def _amount(task: Mapping[str, Any], resource: str) -> int:
    return base_units(resource, task["request"].get(resource, 1 if resource == "pods" else 0))


def _binds(taint: Mapping[str, str]) -> bool:
    return taint.get("effect") in ("NoSchedule", "NoExecute")


def _tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    return (
        toleration.get("effect", taint.get("effect")) == taint.get("effect")
        and toleration.get("key", taint["key"] if toleration.get("operator") == "Exists" else "") == taint["key"]
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
    )
