"""Objects of Kubernetes as one cluster file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from actors.cluster_file.cross_references import SYSTEM_CLASSES
from actors.documents.model import Location
from actors.imports.fields import Fields, Finding, Manifest, deepest
from actors.imports.kubernetes.flavors import Flavoring
from actors.imports.kubernetes.membership import PodMembership
from actors.imports.kubernetes.network.possible import PossibleTopology
from actors.imports.kubernetes.network.topology import Topologies
from actors.imports.kubernetes.nodes import match_names, read_budget, read_node, read_priority_class
from actors.imports.kubernetes.owners import Owners
from actors.imports.kubernetes.podgroups import ImportedPodgroups
from actors.imports.kubernetes.pods import Pod, read_pod
from actors.imports.kubernetes.queues import ImportedQueues
from actors.imports.marks import Rest, table

Reader = Callable[[Fields], None]
#: Keys that stand at the top of an object if its metadata is not indented.
_MISPLACED = ("name", "namespace", "labels", "annotations")


@dataclass(slots=True)
class Cluster:
    """What was read, kind by kind.

    Attributes
    ----------
    sources
        The nodes, priority classes and budgets of the cluster file, each with the object that it comes from.
    """

    findings: list[Finding]
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    classes: dict[str, dict[str, Any]] = field(default_factory=dict)
    usual_class: str = ""
    budgets: list[dict[str, Any]] = field(default_factory=list)
    queues: ImportedQueues = field(default_factory=ImportedQueues)
    topologies: Topologies = field(default_factory=Topologies)
    owners: Owners = field(default_factory=Owners)
    pods: list[Pod] = field(default_factory=list)
    groups: ImportedPodgroups = field(init=False)
    rests: list[Rest] = field(default_factory=list)
    sources: list[tuple[dict[str, Any], Fields]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.groups = ImportedPodgroups(self.topologies)

    def readers(self) -> Mapping[tuple[str, str], tuple[Reader, str]]:
        """By API group and kind in lower case: the function that reads it, and the ``on`` of its marks in the table."""
        groups, queues, topologies, owners = self.groups, self.queues, self.topologies, self.owners
        return {
            ("", "node"): (self._node, "any"),
            ("", "pod"): (self._pod, "pod"),
            ("policy", "poddisruptionbudget"): (self._budget, "any"),
            ("scheduling.k8s.io", "priorityclass"): (self._class, "any"),
            ("scheduling.k8s.io", "podgroup"): (groups.in_tree, "podgroup"),
            ("scheduling.k8s.io", "workload"): (groups.workload, "podgroup"),
            ("scheduling.sigs.k8s.io", "podgroup"): (groups.coscheduling, "podgroup"),
            ("scheduling.x-k8s.io", "podgroup"): (groups.coscheduling, "podgroup"),
            ("scheduling.volcano.sh", "podgroup"): (groups.volcano, "podgroup"),
            ("scheduling.run.ai", "podgroup"): (groups.kai, "podgroup"),
            ("batch", "job"): (owners.job, "pod"),
            ("jobset.x-k8s.io", "jobset"): (owners.job_set, "pod"),
            ("apps", "deployment"): (owners.replicated, "pod"),
            ("apps", "replicaset"): (owners.replicated, "pod"),
            ("apps", "statefulset"): (owners.replicated, "pod"),
            ("scheduling.volcano.sh", "queue"): (queues.volcano, "queue"),
            ("scheduling.run.ai", "queue"): (queues.kai, "queue"),
            ("scheduling.sigs.k8s.io", "elasticquota"): (queues.quota, "queue"),
            ("scheduling.x-k8s.io", "elasticquota"): (queues.quota, "queue"),
            ("quota.koordinator.sh", "elasticquotaprofile"): (queues.trees.profile, "queue"),
            ("kueue.x-k8s.io", "clusterqueue"): (queues.cluster_queue, "queue"),
            ("kueue.x-k8s.io", "localqueue"): (queues.kueue.local_queue, "queue"),
            ("kueue.x-k8s.io", "resourceflavor"): (queues.kueue.flavor, "any"),
            ("kueue.x-k8s.io", "topology"): (topologies.levels, "any"),
            ("kai.scheduler", "topology"): (topologies.levels, "any"),
            ("topology.volcano.sh", "hypernode"): (topologies.hypernode, "any"),
            ("scheduling.koordinator.sh", "clusternetworktopology"): (topologies.layers, "any"),
        }

    def _node(self, about: Fields) -> None:
        node = read_node(about)
        self.nodes[node["name"]] = node
        self.sources.append((node, about))

    def _pod(self, about: Fields) -> None:
        pod = read_pod(about)
        if pod is not None:
            self.pods.append(pod)

    def _class(self, about: Fields) -> None:
        found, usual = read_priority_class(about)
        self.classes[found["name"]] = found
        self.sources.append((found, about))
        if usual:
            self.usual_class = found["name"]

    def _budget(self, about: Fields) -> None:
        budget = read_budget(about)
        if budget is not None:
            self.budgets.append(budget)
            self.sources.append((budget, about))

    def read(self, manifests: Sequence[Manifest]) -> None:
        """Read objects; of two with the same kind and name the first counts."""
        readers, over = self.readers(), {kind.lower() for kind in table().passed_over.kinds}
        seen: set[tuple[str, ...]] = set()
        for manifest in map(self._in_place, manifests):
            reader = readers.get((manifest.group, manifest.kind.lower()))
            key = (manifest.group, manifest.kind.lower(), manifest.name.partition(" ")[2])
            if reader is None:
                if manifest.kind.lower() not in over:
                    self._tell(manifest, f"nothing here reads this kind of {manifest.group or 'the core group'}")
            elif key in seen:
                self._tell(manifest, "it is there already, and the first one counts")
            else:
                seen.add(key)
                self.rests.append(self._object(manifest, *reader))

    def _tell(self, manifest: Manifest, told: str) -> None:
        self.findings.append(Finding(manifest, (), told))

    def _in_place(self, manifest: Manifest) -> Manifest:
        """The manifest with its metadata under ``metadata``, and with a name if it states the beginning of one."""
        metadata = manifest.body.get("metadata")
        if isinstance(metadata, Mapping) and not metadata.get("name"):
            start = metadata.get("generateName")
            if not isinstance(start, str) or not start.strip("-"):
                return manifest
            named = {**manifest.body, "metadata": {**metadata, "name": start.rstrip("-")}}
            return self._read_as(manifest, named, {("metadata", "generateName"): "metadata.name"})
        out = [key for key in _MISPLACED if key in manifest.body]
        if metadata is not None or "name" not in out:
            return manifest
        body = {key: value for key, value in manifest.body.items() if key not in out}
        body["metadata"] = {key: manifest.body[key] for key in out}
        return self._read_as(manifest, body, {(key,): f"metadata.{key}" for key in out})

    def _read_as(self, manifest: Manifest, body: dict[str, Any], keys: Mapping[Location, str]) -> Manifest:
        """The manifest with another body, and a note for each key that is read as another one."""
        found = replace(manifest, body=body)
        for where, meant in keys.items():
            self.findings.append(Finding(found, where, f"read as {meant}", left_out=False))
        return found

    def _object(self, manifest: Manifest, read: Reader, on: str) -> Rest:
        """Read one object; once more with corrected keys if some of its keys differ from known ones in case alone."""
        about = Fields(manifest, manifest.body, (), self.findings)
        pods, budgets = len(self.pods), len(self.budgets)
        read(about)
        rest = Rest(about, on)
        corrected = rest.respelled()
        if corrected is None:
            return rest
        del self.pods[pods:], self.budgets[budgets:]
        again = replace(manifest, body=corrected)
        about = Fields(again, corrected, (), self.findings)
        read(about)
        return Rest(about, on)

    def document(self, *, now: float | None = None, schedulers: Sequence[str] = ()) -> dict[str, Any]:
        """The cluster file of what was read.

        Parameters
        ----------
        now
            Seconds since the epoch; None: the newest time at which a task or podgroup was made or a podgroup was whole.
        schedulers
            Names of schedulers whose pods are placed; the others only take room. Empty: all are placed.

        Raises
        ------
        FieldRefused
            If a podgroup asks for a level that the topology does not have.
        """
        nodes = [self.nodes[name] for name in sorted(self.nodes)]
        membership = PodMembership(
            self.groups, self.queues, self.owners, self._priorities(), self.usual_class, schedulers
        )
        membership.assign(self._placed())
        topology = self.topologies.settle(nodes)
        podgroups = membership.podgroups()
        self.queues.kueue.tell([each.name for each in self.topologies.found])
        groups = list(self.groups.found.values())
        match_names(nodes, [pod.task for group in groups for pod in group.pods])
        queues = self.queues.finished(nodes)
        for group in groups:
            tasks = [pod.task for pod in group.pods]
            self.queues.trees.confine(group.document["queue"], tasks, self.queues.documents)
        Flavoring(self.queues.kueue, self.nodes).assign(groups)
        for rest in self.rests:
            rest.tell()
        document: dict[str, Any] = {
            "version": 1,
            "now": _newest(podgroups) if now is None else now,
            "nodes": nodes,
            "topology": topology,
            "queues": queues,
            "priority_classes": [self.classes[name] for name in sorted(self.classes)],
            "podgroups": podgroups,
            "disruption_budgets": self.budgets,
        }
        return {key: value for key, value in document.items() if value not in (None, [])}

    def _priorities(self) -> dict[str, tuple[int, str]]:
        usual = {name: (value, "PreemptLowerPriority") for name, value in SYSTEM_CLASSES.items()}
        return usual | {name: (each["value"], each["preemption_policy"]) for name, each in self.classes.items()}

    def _placed(self) -> list[Pod]:
        """The pods without those on nodes that are not among the manifests."""
        kept = []
        for pod in self.pods:
            node, nominated = pod.task.get("node"), pod.task.get("nominated_node")
            if node is not None and node not in self.nodes:
                pod.about.leave_out(("spec", "nodeName"), f"there is no node {node!r} among the manifests")
                continue
            if nominated is not None and nominated not in self.nodes:
                told = f"there is no node {nominated!r} among the manifests"
                pod.about.leave_out(("status", "nominatedNodeName"), told)
                del pod.task["nominated_node"]
            kept.append(pod)
        return kept

    def source_of(self, document: Mapping[str, Any], where: Location) -> Fields | None:
        """The object that the value at a path of the cluster file comes from; None if it comes from no single one."""
        groups = list(self.groups.found.values())
        sources = {id(made): about for made, about in self.sources}
        sources |= {id(self.queues.documents[name]): about for name, about in self.queues.abouts.items()}
        sources |= {id(group.document): group.about for group in groups}
        sources |= {id(pod.task): pod.about for group in groups for pod in group.pods}
        return deepest(sources, document, where)

    def network(self) -> PossibleTopology | None:
        """The first ClusterNetworkTopology that was read."""
        return next((each for each in self.topologies.found if each.kind == "layer"), None)


def _newest(podgroups: Sequence[Mapping[str, Any]]) -> float:
    times = [float(podgroup.get(key, 0.0)) for podgroup in podgroups for key in ("created", "started")]
    times += [float(task.get("created", 0.0)) for podgroup in podgroups for task in podgroup.get("tasks", ())]
    return max(times, default=0.0)
