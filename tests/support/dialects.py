"""One small cluster as a cluster file, and as the manifests in which the users of five schedulers write it."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

GPU, RACK = "nvidia.com/gpu", "example.com/rack"
NOW = 1_767_225_600.0
#: Priority classes; all below 100, from which on KAI spares podgroups.
CLASSES = {"low": 10, "middle": 20, "high": 90}
#: By scheduler: the profile that decides as it does, and the name by which pods ask for it.
SCHEDULERS = {
    "volcano": ("volcano", "volcano"),
    "kai": ("kai", "kai-scheduler"),
    "koordinator": ("koordinator", "koord-scheduler"),
    "kueue": ("default", "default-scheduler"),
    "kube-scheduler": ("default", "default-scheduler"),
}
_NODES, _ROOM, _MUCH = 4, 4, 1000
Document = dict[str, Any]


@dataclass(frozen=True)
class Gang:
    """A podgroup: ``nodes`` says where its tasks run, none for one that waits."""

    name: str
    queue: str
    rank: str
    minimum: int
    gpus: int
    tasks: int
    created: float
    nodes: tuple[str, ...] = ()
    rack: bool = False


@dataclass(frozen=True)
class Small:
    """Four nodes in two racks, two queues with what each deserves, gangs that run, and one that waits."""

    deserved: dict[str, int]
    gangs: tuple[Gang, ...]


def drawn(seed: int, scheduler: str) -> Small:
    """A cluster that the scheduler can describe."""
    draw = random.Random(seed)
    left, gangs = dict.fromkeys((f"n{at}" for at in range(_NODES)), _ROOM), []
    for at in range(draw.randint(2, 5)):
        gpus, nodes = draw.choice([1, 2, 2, 4]), list[str]()
        for _ in range(draw.randint(1, 3)):
            fitting = [name for name, room in left.items() if room >= gpus]
            if fitting:
                nodes.append(draw.choice(fitting))
                left[nodes[-1]] -= gpus
        if nodes:
            many = len(nodes) if scheduler == "kueue" else draw.randint(1, len(nodes))
            gangs.append(
                Gang(f"old{at}", draw.choice("ab"), draw.choice(["low", "middle"]), many, gpus, len(nodes),
                     NOW - 7200 - draw.randint(0, 3600), tuple(nodes))
            )  # fmt: skip
    many, near = draw.randint(1, 3), draw.random() < 0.5 and scheduler != "kube-scheduler"
    gangs.append(Gang("new", "a", "high", many, draw.choice([2, 4]), many, NOW - 60, (), near))
    return Small({name: draw.randint(2, 12) for name in "ab"}, tuple(gangs))


# -- as a cluster file -------------------------------------------------------------------------------------------------


def cluster_file(small: Small, scheduler: str) -> Document:
    """What the manifests say, in our words."""
    queues = _queues(small, scheduler)
    return {
        "version": 1, "now": max(gang.created for gang in small.gangs), "policy": {"profile": SCHEDULERS[scheduler][0]},
        "priority_classes": [{"name": name, "value": value} for name, value in CLASSES.items()],
        "nodes": [
            {"name": f"n{at}", "labels": {RACK: f"r{at // 2}"}, "allocatable": {"cpu": 64, GPU: _ROOM, "pods": 110}}
            for at in range(_NODES)
        ],
        "topology": {"levels": ["rack"], "labels": {"rack": RACK}},
        "queues": queues,
        "podgroups": [
            {
                "name": gang.name, "queue": gang.queue if len(queues) > 1 else "default", "priority_class": gang.rank,
                "min_available": gang.minimum, "created": gang.created,
                "phase": "Running" if gang.nodes else "Inqueue",
                **({"topology": {"required": "rack"}} if gang.rack else {}),
                "tasks": [
                    {
                        "name": f"{gang.name}-{at}", "request": {"cpu": 1, GPU: gang.gpus}, "created": gang.created,
                        **({"status": "Running", "node": gang.nodes[at]} if gang.nodes else {}),
                    }
                    for at in range(gang.tasks)
                ],
            }
            for gang in small.gangs
        ],
    }  # fmt: skip


def _queues(small: Small, scheduler: str) -> list[Document]:
    rest: Document = {"cpu": "unlimited", "memory": "unlimited"}
    if scheduler == "volcano":
        return [{"name": name, "deserved": {GPU: many, "cpu": _MUCH}} for name, many in small.deserved.items()]
    if scheduler == "kai":
        leaves = [{"name": n, "parent": "top", "deserved": {GPU: many, **rest}} for n, many in small.deserved.items()]
        return [{"name": "top", "deserved": {GPU: "unlimited", **rest}}, *leaves]
    if scheduler == "koordinator":
        most = {GPU: _MUCH, "cpu": _MUCH}
        return [
            {"name": name, "deserved": {GPU: many, "cpu": _MUCH}, "capability": most}
            for name, many in small.deserved.items()
        ]
    if scheduler == "kueue":
        leaves = [
            {"name": name, "parent": "together", "deserved": {GPU: many, "cpu": _MUCH}}
            for name, many in small.deserved.items()
        ]
        whole = {GPU: sum(small.deserved.values()), "cpu": _MUCH * len(small.deserved)}
        return [{"name": "together", "deserved": whole, "capability": whole}, *leaves]
    return [{"name": "default"}]


# -- as manifests ------------------------------------------------------------------------------------------------------


def manifests(small: Small, scheduler: str) -> list[Document]:
    """The objects of the cluster as users of the scheduler write them."""
    objects = [_object("scheduling.k8s.io/v1", "PriorityClass", name, value=value) for name, value in CLASSES.items()]
    for at in range(_NODES):
        labels = {RACK: f"r{at // 2}"}
        allocatable = {"cpu": "64", GPU: str(_ROOM), "pods": "110"}
        objects.append(_object("v1", "Node", f"n{at}", labels=labels, status={"allocatable": allocatable}))
    objects += {
        "volcano": _of_volcano, "kai": _of_kai, "koordinator": _of_koordinator, "kueue": _of_kueue,
        "kube-scheduler": _of_kubernetes,
    }[scheduler](small)  # fmt: skip
    return objects


def _object(api: str, kind: str, name: str, **more: Any) -> Document:
    """An object; labels, annotations, a namespace and the time of creation are metadata."""
    metadata: Document = {"name": name}
    for key in ("labels", "annotations", "namespace"):
        if key in more:
            metadata[key] = more.pop(key)
    if "created" in more:
        metadata["creationTimestamp"] = datetime.fromtimestamp(more.pop("created"), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def _pods(gang: Gang, scheduler: str, spec: Document | None = None, **marks: Any) -> list[Document]:
    """The pods of a gang with the labels and annotations that mark it."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {GPU: str(gang.gpus)}}}
    said = {
        "schedulerName": SCHEDULERS[scheduler][1], "priority": CLASSES[gang.rank], "priorityClassName": gang.rank,
        "containers": [container], **(spec or {}),
    }  # fmt: skip
    return [
        _object(
            "v1", "Pod", f"{gang.name}-{at}", namespace="default", created=gang.created, **marks,
            spec={**said, "nodeName": gang.nodes[at]} if gang.nodes else said,
            status={"phase": "Running" if gang.nodes else "Pending"},
        )
        for at in range(gang.tasks)
    ]  # fmt: skip


def _group(gang: Gang, api: str, spec: Document, **more: Any) -> Document:
    said = {"minMember": gang.minimum, **spec}
    return _object(api, "PodGroup", gang.name, namespace="default", created=gang.created, spec=said, **more)


def _of_volcano(small: Small) -> list[Document]:
    api = "scheduling.volcano.sh/v1beta1"
    objects = [
        _object(api, "Queue", name, spec={"weight": 1, "deserved": {GPU: str(many), "cpu": str(_MUCH)}})
        for name, many in small.deserved.items()
    ]
    for rack in range(_NODES // 2):
        members = [{"type": "Node", "selector": {"exactMatch": {"name": f"n{2 * rack + at}"}}} for at in range(2)]
        spec = {"tier": 1, "members": members}
        objects.append(_object("topology.volcano.sh/v1alpha1", "HyperNode", f"r{rack}", spec=spec))
    for gang in small.gangs:
        near = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}} if gang.rack else {}
        wants = {"queue": gang.queue, "priorityClassName": gang.rank, **near}
        objects.append(_group(gang, api, wants, status={"phase": "Running" if gang.nodes else "Inqueue"}))
        objects += _pods(gang, "volcano", annotations={"scheduling.k8s.io/group-name": gang.name})
    return objects


def _of_kai(small: Small) -> list[Document]:
    open_end = {"quota": -1, "limit": -1, "overQuotaWeight": 1}

    def queue(name: str, many: int, **above: str) -> Document:
        resources = {"gpu": {**open_end, "quota": many}, "cpu": open_end, "memory": open_end}
        return _object("scheduling.run.ai/v2", "Queue", name, spec={**above, "resources": resources})

    objects = [queue("top", -1), *(queue(name, many, parentQueue="top") for name, many in small.deserved.items())]
    objects.append(_object("kai.scheduler/v1alpha1", "Topology", "net", spec={"levels": [{"nodeLabel": RACK}]}))
    for gang in small.gangs:
        near = {"topologyConstraint": {"topology": "net", "requiredTopologyLevel": RACK}} if gang.rack else {}
        wants = {"queue": gang.queue, "priorityClassName": gang.rank, **near}
        objects.append(_group(gang, "scheduling.run.ai/v2alpha2", wants))
        marks = {"labels": {"kai.scheduler/queue": gang.queue}, "annotations": {"pod-group-name": gang.name}}
        objects += _pods(gang, "kai", **marks)
    return objects


def _of_koordinator(small: Small) -> list[Document]:
    api, quota = "scheduling.sigs.k8s.io/v1alpha1", "quota.scheduling.koordinator.sh/name"
    most = {GPU: str(_MUCH), "cpu": str(_MUCH)}
    objects = [
        _object(api, "ElasticQuota", name, namespace="default", spec={"min": {**most, GPU: str(many)}, "max": most})
        for name, many in small.deserved.items()
    ]
    layers = [
        {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "RackLayer"},
        {"topologyLayer": "RackLayer", "labelKey": [RACK]},
    ]
    network = "scheduling.koordinator.sh/v1alpha1"
    objects.append(_object(network, "ClusterNetworkTopology", "default", spec={"networkTopologySpec": layers}))
    gather = '{"gatherStrategy": [{"layer": "RackLayer", "strategy": "MustGather"}]}'
    for gang in small.gangs:
        near = {"gang.scheduling.koordinator.sh/network-topology-spec": gather} if gang.rack else {}
        objects.append(_group(gang, api, {}, annotations=near, labels={quota: gang.queue}))
        objects += _pods(gang, "koordinator", labels={quota: gang.queue, "pod-group.scheduling.sigs.k8s.io": gang.name})
    return objects


def _of_kueue(small: Small) -> list[Document]:
    api, objects = "kueue.x-k8s.io/v1beta1", list[Document]()
    for name, many in small.deserved.items():
        amounts = [{"name": GPU, "nominalQuota": many}, {"name": "cpu", "nominalQuota": _MUCH}]
        groups = [{"coveredResources": ["cpu", GPU], "flavors": [{"name": "all", "resources": amounts}]}]
        spec = {"cohort": "together", "namespaceSelector": {}, "resourceGroups": groups}
        objects.append(_object(api, "ClusterQueue", name, spec=spec))
        objects.append(_object(api, "LocalQueue", f"{name}-here", namespace="default", spec={"clusterQueue": name}))
    objects.append(_object(api, "ResourceFlavor", "all", spec={}))
    objects.append(_object(api, "Topology", "net", spec={"levels": [{"nodeLabel": RACK}]}))
    for gang in small.gangs:
        count = {"kueue.x-k8s.io/pod-group-total-count": str(gang.tasks)}
        near = {"kueue.x-k8s.io/podset-required-topology": RACK} if gang.rack else {}
        labels = {"kueue.x-k8s.io/queue-name": f"{gang.queue}-here", "kueue.x-k8s.io/pod-group-name": gang.name}
        objects += _pods(gang, "kueue", labels=labels, annotations=count | near)
    return objects


def _of_kubernetes(small: Small) -> list[Document]:
    objects = list[Document]()
    for gang in small.gangs:
        part = {"name": "workers", "policy": {"gang": {"minCount": gang.minimum}}}
        objects.append(
            _object(
                "scheduling.k8s.io/v1alpha1", "Workload", gang.name, namespace="default", spec={"podGroups": [part]}
            )
        )
        objects += _pods(gang, "kube-scheduler", {"workloadRef": {"name": gang.name, "podGroup": "workers"}})
    return objects
