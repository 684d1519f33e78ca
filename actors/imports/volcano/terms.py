"""Actions, plugins, flags and arguments of a Volcano scheduler configuration, and their names here.

A rule says what becomes of one argument. Arguments that only change how fast Volcano runs are read and dropped. An
argument that we cannot follow is accepted with the one value that holds here anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.actions.registry import ACTIONS


@dataclass(frozen=True)
class Becomes:
    """It becomes an argument of this name and kind (number, count, switch, duration, choice of card)."""

    ours: str
    kind: str


@dataclass(frozen=True)
class Only:
    """It can be honoured with one value only, because of what holds here."""

    value: bool | float
    because: str


@dataclass(frozen=True)
class Dropped:
    """It is dropped, since no decision depends on it."""


Rule = Becomes | Only | Dropped
Rules = Mapping[str, Rule]

#: Actions whose search is bounded by ``max_domains`` and ``allow_whole_bundle`` of the profile.
GANG_ACTIONS = tuple(action.name for action in ACTIONS if action.whole_gangs)
PLUGINS = (
    "priority", "gang", "conformance", "sla", "overcommit", "drf", "proportion", "capacity", "predicates", "nodeorder",
    "binpack", "network-topology-aware", "pdb", "cdp", "deviceshare",
)  # fmt: skip
#: Plugins of Volcano that have no counterpart.
ABSENT = (
    "extender", "nodegroup", "numaaware", "rescheduling", "resource-strategy-fit", "resourcequota", "task-topology",
    "tdm", "usage",
)  # fmt: skip

#: By flag, in lower case and without ``enable`` or ``enabled``: the extension point here; "" if there is none.
FLAGS: Mapping[str, str] = {
    "joborder": "job_order",
    "taskorder": "task_order",
    "queueorder": "queue_order",
    "jobready": "job_ready",
    "jobpipelined": "job_pipelined",
    "jobstarving": "job_starving",
    "jobenqueued": "job_enqueued",
    "preemptable": "preemptable",
    "reclaimable": "reclaimable",
    "preemptive": "preemptive",
    "overused": "overused",
    "allocatable": "allocatable",
    "predicate": "predicate",
    "nodeorder": "node_order",
    "hypernodeorder": "domain_order",
    "hypernodegradient": "domain_gradient",
    "subjoborder": "",
    "subjobready": "",
    "subjobpipelined": "",
    "hierarchy": "hierarchy",
    "bestnode": "",
    "clusterorder": "",
    "namespaceorder": "",
    "reservednodes": "",
    "targetjob": "",
    "victim": "",
}

_UNSCORED = "nodes are not scored by this here"
_UNFILTERED = "nodes are not filtered by this here"
_ALWAYS = "this filter is always on here"
_FULLEST = "domains are compared by tier, then by how full they are, and never weighed against node scores"
_NORMAL = "domains matter to podgroups with a topology only"
_COMPARED = "the number of nodes that a simulation compares is fixed"

PLUGIN_ARGUMENTS: Mapping[str, Rules] = {
    "binpack": {
        "binpack.weight": Becomes("weight", "number"),
        "binpack.cpu": Becomes("cpu", "number"),
        "binpack.memory": Becomes("memory", "number"),
    },
    "capacity": {"ancestorReclaimLevel": Becomes("ancestor_reclaim_level", "count")},
    # The fleet says which kind of sharing makes a card; a task that asks for a part of one is given a card by name.
    "deviceshare": {
        "deviceshare.GPUSharingEnable": Dropped(),
        "deviceshare.VGPUEnable": Dropped(),
        "deviceshare.NodeLockEnable": Dropped(),
        "deviceshare.GPUNumberEnable": Only(False, "whole cards are a resource here, counted and not named"),
        "deviceshare.SchedulePolicy": Becomes("cards", "choice of card"),
        "deviceshare.ScheduleWeight": Only(0, "nodes are not scored by their cards here"),
    },
    "network-topology-aware": {
        "weight": Only(1, _FULLEST),
        "hypernode.binpack.cpu": Becomes("cpu", "number"),
        "hypernode.binpack.memory": Becomes("memory", "number"),
        "hypernode.binpack.normal-pod.enable": Only(False, _NORMAL),
        "hypernode.binpack.normal-pod.fading": Only(0.8, _NORMAL),
    },
    "nodeorder": {
        "leastrequested.weight": Becomes("least_requested", "number"),
        "mostrequested.weight": Becomes("most_requested", "number"),
        "balancedresource.weight": Becomes("balanced", "number"),
        **{
            f"{what}.weight": Only(0, _UNSCORED)
            for what in ("nodeaffinity", "podaffinity", "tainttoleration", "imagelocality", "podtopologyspread",
                         "selectorspread", "volumebinding")
        },
    },
    "overcommit": {"overcommit-factor": Becomes("overcommit-factor", "number")},
    "predicates": {
        "predicate.CacheEnable": Dropped(),
        **{
            f"predicate.{what}Enable": Only(True, _ALWAYS)
            for what in ("NodeAffinity", "TaintToleration", "PodAffinity")
        },
        **{
            f"predicate.{what}Enable": Only(False, _UNFILTERED)
            for what in ("NodePorts", "NodeVolumeLimits", "VolumeZone", "VolumeBinding", "PodTopologySpread",
                         "DynamicResourceAllocation", "GPUSharing", "GPUNumber", "Proportional")
        },
    },
    "sla": {"sla-waiting-time": Becomes("waiting_time", "duration")},
}  # fmt: skip
#: "Gang-Aware Preemption and Reclaim" writes these among the arguments of any plugin; they are read there too.
ANYWHERE: Rules = {
    "preempt.gangAwareEnable": Becomes("preempt.gangAwareEnable", "switch"),
    "reclaim.gangAwareEnable": Becomes("reclaim.gangAwareEnable", "switch"),
}

_CACHE: Rules = {"enablePredicateErrorCache": Dropped(), "predicateErrorCacheEnable": Dropped()}
_BOUNDS: Rules = {
    "maxDomains": Becomes("max_domains", "count"),
    "allowWholeBundle": Becomes("allow_whole_bundle", "switch"),
}
ACTION_RULES: Mapping[str, Rules] = {
    "enqueue": {},
    "allocate": _CACHE,
    "backfill": _CACHE,
    "preempt": {
        **_CACHE,
        "gangAwareEnable": Becomes("gang_aware", "switch"),
        "enableTopologyAwarePreemption": Becomes("topology_aware", "switch"),
        "topologyAwarePreemptWorkerNum": Dropped(),
        "minCandidateNodesPercentage": Only(10, _COMPARED),
        "minCandidateNodesAbsolute": Only(1, _COMPARED),
        "maxCandidateNodesAbsolute": Only(100, _COMPARED),
    },
    "reclaim": {**_CACHE, "gangAwareEnable": Becomes("gang_aware", "switch")},
    "gangpreempt": {**_CACHE, **_BOUNDS},
    "gangreclaim": {**_CACHE, **_BOUNDS},
}
