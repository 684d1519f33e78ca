"""The podgroup of each pod, and what follows for both: queue, priority, minimum, subgroup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.cluster_file.cross_references import SYSTEM_CLASSES
from actors.imports.kubernetes.owners import Owners
from actors.imports.kubernetes.podgroups import ImportedPodgroup, ImportedPodgroups, SubgroupPolicy
from actors.imports.kubernetes.pods import Pod, priority_of
from actors.imports.kubernetes.queues import ImportedQueues
from actors.imports.marks import Marked, SchedulerDocument, find, table

_LIVE = ("Pending", "Bound", "Running", "Terminating")


@dataclass(slots=True)
class PodMembership:
    """Pods and podgroups brought together.

    Attributes
    ----------
    classes
        By priority class, its value and its preemption policy.
    usual_class
        The class of pods that name none; empty if there is none.
    schedulers
        Names of schedulers whose pods are placed; the others only take room. Empty: all are placed.
    """

    groups: ImportedPodgroups
    queues: ImportedQueues
    owners: Owners
    classes: Mapping[str, tuple[int, str]]
    usual_class: str
    schedulers: Sequence[str]
    _made: dict[tuple[str, str, str], ImportedPodgroup] = field(default_factory=dict)

    def assign(self, pods: Sequence[Pod]) -> None:
        """Give each pod its podgroup, and make the podgroups that have no object of their own."""
        every = list(pods)
        for owner, pod, _ in self.owners.stand_ins(every):
            pod.bearers.append(owner.about)
            every.append(pod)
        for pod in every:
            pod.bearers += [owner.about for owner in self.owners.above(pod) if owner.about not in pod.bearers]
            self._group_of(pod).pods.append(pod)
        self._absent_companions()

    def podgroups(self) -> list[dict[str, Any]]:
        """The podgroups of the cluster file, by namespace and name."""
        return [self._document(group) for _, group in sorted(self.groups.found.items())]

    # -- podgroups of pods -------------------------------------------------------------------------------------

    def _group_of(self, pod: Pod) -> ImportedPodgroup:
        mark = find("podgroup", "pod", [pod.about])
        if mark is not None:
            return self._named(pod, str(mark.value), mark)
        scheduler = _scheduler_of(pod)
        together = _about(scheduler).together
        if (together is not None or "count" in pod.task) and pod.owner is not None:
            top = self.owners.above(pod)
            kind, name = (top[-1].kind, top[-1].name) if top else pod.owner
            group = self._made.get((pod.namespace, kind, name))
            if group is None:
                group = self._made[pod.namespace, kind, name] = self._new(pod, name, scheduler)
                group.whole = together == "all"
            return group
        return self._new(pod, pod.name, scheduler)

    def _named(self, pod: Pod, name: str, mark: Marked) -> ImportedPodgroup:
        group = self.groups.found.get((pod.namespace, name)) or self.groups.of_workload(pod, name)
        if group is None:
            group = self._new(pod, name, _scheduler_of(pod) if mark.scheduler != "kueue" else "kueue")
            group.whole = mark.scheduler == "kueue"
            group.unknown = "min_available" not in group.document and not group.whole
        if group.unknown:
            told = f"there is no PodGroup {name!r} among the manifests, and nothing says how many it needs"
            mark.leave_out(f"{told}; while it waits the pod is held back")
            if pod.task["status"] == "Pending":
                pod.task["scheduling_gated"] = True
        self.groups.found.setdefault((pod.namespace, name), group)
        return group

    def _new(self, pod: Pod, name: str, scheduler: str) -> ImportedPodgroup:
        """Make a podgroup that has no object, by the marks of its first pod."""
        while (pod.namespace, name) in self.groups.found:
            name += ".pods"
        document: dict[str, Any] = {"name": name, "namespace": pod.namespace}
        group = ImportedPodgroup(pod.about, scheduler, document)
        least = find("min_available", "pod", pod.bearers)
        if least is not None:
            document["min_available"] = _count(least)
        self.groups.marked(group, "pod", pod.bearers)
        self.groups.found[pod.namespace, name] = group
        return group

    def _absent_companions(self) -> None:
        """Add an empty podgroup for each missing member of a gang group, so that the group cannot start."""
        for key, group in list(self.groups.found.items()):
            for member in group.document.get("gang_group", ()):
                namespace, _, name = member.partition("/")
                if (namespace, name) not in self.groups.found:
                    told = f"there is no podgroup {member!r} among the manifests, so {'/'.join(key)} cannot start"
                    group.about.leave_out((), told)
                    document = {"name": name, "namespace": namespace, "min_available": 1}
                    self.groups.found[namespace, name] = ImportedPodgroup(
                        group.about, group.scheduler, document, group.queue
                    )

    # -- what follows ------------------------------------------------------------------------------------------

    def _document(self, group: ImportedPodgroup) -> dict[str, Any]:
        document, pods = group.document, sorted(group.pods, key=lambda pod: pod.name)
        document["queue"] = self._queue_of(group, pods)
        live = [pod for pod in pods if pod.task["status"] in _LIVE]
        absent = sum(pod.task.get("count", 1) for pod in live) if group.whole else 1
        document.setdefault("min_available", max(absent, 1))
        self._prioritise(group, pods)
        self._spare(group, pods)
        for pod in pods:
            self._member(pod, group)
        _near(document, pods)
        if group.policies:
            _cut(group.policies, document, pods)
        tasks = [pod.task for pod in pods]
        started = sorted(pod.started for pod in live if pod.started is not None and pod.task["status"] != "Pending")
        least = document["min_available"]
        if least and len(started) >= least:
            document["started"] = started[least - 1]
        if "created" not in document and (created := [task["created"] for task in tasks if "created" in task]):
            document["created"] = min(created)
        if tasks:
            document["tasks"] = tasks
        return document

    def _member(self, pod: Pod, group: ImportedPodgroup) -> None:
        subgroup, role = find("subgroup", "pod", [pod.about]), find("role", "pod", [pod.about])
        index = find("index", "pod", [pod.about])
        if subgroup is not None and "subgroups" in group.document:
            pod.task["subgroup"] = str(subgroup.value)
        if role is not None:
            pod.task["role"] = str(role.value)
        if index is not None and "count" not in pod.task:
            pod.task["index"] = _count(index)

    def _queue_of(self, group: ImportedPodgroup, pods: Sequence[Pod]) -> str:
        """The queue of a podgroup: its own, else that of its pods, of its namespace, or of its scheduler."""
        marks = [] if group.queue else [one for pod in pods if (one := find("queue", "pod", pod.bearers)) is not None]
        mark = marks[0] if marks else None
        name = group.queue or (str(mark.value) if mark is not None else "")
        namespace = str(group.document["namespace"])
        if mark is not None and mark.scheduler == "kueue":
            local = self.queues.kueue.local.get((namespace, name))
            if local is None:
                mark.leave_out(f"there is no LocalQueue {name!r} among the manifests")
            name = local or name
        if not name and group.scheduler == "koordinator":
            name = self.queues.of_namespace.get(namespace, "")
        usual = _about(group.scheduler).default_queue
        if name and name != usual and name not in self.queues.documents:
            group.about.leave_out((), f"there is no queue {name!r} among the manifests, so it is entitled to nothing")
        name = name or usual
        for other in marks[1:]:
            if other.value != marks[0].value:
                other.leave_out(f"a podgroup has one queue, and others of it name {marks[0].value!r}")
        self.queues.documents.setdefault(name, {"name": name})
        return name

    def _prioritise(self, group: ImportedPodgroup, pods: Sequence[Pod]) -> None:
        """Set its own priority, else the highest of its pods; pods with another priority state it themselves.

        Where priorities come from classes alone, what pods state does not count.
        """
        document, without = group.document, _about(group.scheduler).usual_priority
        usual = self.classes.get(self.usual_class, (without or 0, "PreemptLowerPriority"))
        by_object = without is not None and group.about.manifest.kind == "PodGroup"
        by_class = without is not None and not by_object
        own = [priority_of(pod, self.classes, usual, by_class=by_class) for pod in pods]
        if group.priority_class and "priority" not in document:
            if group.priority_class in self.classes:
                document["priority"], policy = self.classes[group.priority_class]
                document.setdefault("preemption_policy", policy)
            else:
                told = f"there is no priority class {group.priority_class!r} among the manifests"
                group.about.leave_out(("spec", "priorityClassName"), told)
        if by_object:
            document.setdefault("priority", usual[0])
        elif "priority" not in document and not group.priority_class:
            document["priority"] = max((value for value, _ in own), default=usual[0])
            for pod, (value, _) in zip(pods, own, strict=True):
                if value != document["priority"]:
                    pod.task["priority"] = value
        names = {pod.priority_class for pod in pods} | ({group.priority_class} - {""})
        if len(names) == 1 and (name := names.pop()) in SYSTEM_CLASSES:  # the name of a system class protects its pods
            document.pop("priority", None)
            document["priority_class"] = name
        shared = document.setdefault("preemption_policy", min((policy for _, policy in own), default=usual[1]))
        for pod, (_, policy) in zip(pods, own, strict=True):
            if policy != shared:
                pod.task["preemption_policy"] = policy

    def _spare(self, group: ImportedPodgroup, pods: Sequence[Pod]) -> None:
        """Set what may not be a victim: the podgroup if all its pods say so, else each task that does."""
        document, told = group.document, [find("preemptible", "pod", pod.bearers) for pod in pods]
        stays = [one is not None and one.value in ("false", "non-preemptible") for one in told]
        if stays and all(stays):
            document.setdefault("preemptible", False)  # so that quotas of what is never evicted hold for it
        spared_from = _about(group.scheduler).not_preemptible_from
        if spared_from is not None and "preemptible" not in document:
            named = SYSTEM_CLASSES.get(document.get("priority_class", ""), 0)
            document["preemptible"] = document.get("priority", named) < spared_from
        for pod, said, stay in zip(pods, told, stays, strict=True):
            spared = find("spared", "pod", pod.bearers)
            if stay or (spared is not None and spared.value == "true"):
                pod.task["preemptible"] = False
            elif said is not None and said.value in ("true", "preemptible"):
                pod.task["preemptible"] = True
            if said is not None and stay and document.get("preemptible", True):
                self._unbound(said, document["queue"])
            if self.schedulers and pod.scheduler_name not in self.schedulers:
                pod.task["preemptible"] = False
                if pod.task["status"] == "Pending":
                    pod.task["scheduling_gated"] = True

    def _unbound(self, said: Marked, queue: str) -> None:
        """Report a pod that stays beside others that may go, if a minimum of its queue would bind it alone."""
        if said.scheduler == "koordinator" and "deserved" in self.queues.documents[queue]:
            said.leave_out(f"others of its podgroup may be evicted, so the minimum of {queue!r} does not bind it")


def _near(document: dict[str, Any], pods: Sequence[Pod]) -> None:
    """Set the name that its tasks share with the tasks they want to be near; the mark of its first pod counts."""
    marks = [mark for pod in pods if (mark := find("near", "pod", [pod.about])) is not None]
    if marks:
        document.setdefault("topology", {}).setdefault("near", str(marks[0].value))
    for mark in marks:
        if mark.value != marks[0].value:
            mark.leave_out(f"its podgroup wants to be near {marks[0].value!r}, and a podgroup stays together")


def _scheduler_of(pod: Pod) -> str:
    queue = find("queue", "pod", pod.bearers)
    if queue is not None and queue.scheduler == "kueue":
        return "kueue"
    named = (name for name, known in table().schedulers.items() if pod.scheduler_name in known.names)
    return next(named, "kube-scheduler")


def _about(scheduler: str) -> SchedulerDocument:
    return table().schedulers[scheduler]


def _count(mark: Marked) -> int:
    text = str(mark.value)
    if not (text.isascii() and text.isdigit() and int(text) < 2**31):
        mark.about.refuse(mark.mark.place, f"expected a whole number of at least 0, found {text[:60]!r}")
    return int(text)


def _cut(policies: Sequence[SubgroupPolicy], document: dict[str, Any], pods: Sequence[Pod]) -> None:
    """Divide the pods of a podgroup into Volcano's subgroups; a pod belongs to the first policy that selects it.

    A policy that needs subgroups and selects no pod has none: then the podgroup does not start.
    """
    needed = [each for each in policies if each.node["min_subgroups"]]
    inner: dict[str, dict[str, Any]] = {each.name: {"name": each.name, **each.node, "children": []} for each in needed}
    leaves: dict[str, dict[str, Any]] = {}
    for pod in pods:
        policy = next((each for each in policies if each.values(pod.labels)), None)
        if policy is None:
            continue
        name = pod.task["subgroup"] = "-".join([policy.name, *policy.values(pod.labels)])
        branch = inner.setdefault(policy.name, {"name": policy.name, **policy.node, "children": []})
        if name not in leaves:
            leaves[name] = {"name": name, **policy.leaf}
            branch["children"].append(leaves[name])
    if inner:
        document["subgroups"] = [inner[each.name] for each in policies if each.name in inner]
