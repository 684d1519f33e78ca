"""Values of KAI Scheduler's Helm chart: the scheduler's section is a shard, that of the usual queues two Queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from actors.documents.model import Location
from actors.imports.kai.configured import Configured
from actors.imports.kai.objects import Refusals
from actors.imports.kai.shards import USUAL_ACTIONS, of_shard
from actors.imports.located import LocatedPart

_SCHEDULER, _QUEUES = "scheduler", "defaultQueue"
#: Sections of the other parts of KAI Scheduler, which decide nothing.
_OTHERS = (
    "admission", "binder", "crdupgrader", "defaultShard", "global", "nodescaleadjuster", "operator",
    "podgroupcontroller", "podgrouper", "postCleanup", "prometheus", "queuecontroller", "topologyMigration",
)  # fmt: skip
#: Keys of the scheduler's section about its process.
_PROCESS = (
    "additionalImagePullSecrets", "affinity", "defaultShard", "enabled", "image", "nodeSelector", "ports",
    "priorityClassName", "replicas", "resources", "tolerations",
)  # fmt: skip
_QUEUE_KEYS = ("createDefaultQueue", "parentName", "childName", "parentResources", "childResources")
#: What the chart has where its values say nothing.
_KINDS = ("cpu", "memory", "gpu")
_RESOURCE: Mapping[str, int] = {"quota": 0, "limit": -1, "overQuotaWeight": 1}


def are_values(plain: Mapping[str, Any]) -> bool:
    """Whether a document without a kind holds values of the chart, rather than a scheduler configuration."""
    return not {"actions", "tiers"} & plain.keys() and bool({_SCHEDULER, _QUEUES} & plain.keys())


def of_values(plain: Mapping[str, Any], where: LocatedPart) -> Configured | None:
    """What the section of the scheduler says, as a shard; None without one."""
    for key in plain:
        if key not in (_SCHEDULER, _QUEUES, *_OTHERS):
            where.refuse((key,), f"expected one of {', '.join(sorted((_SCHEDULER, _QUEUES, *_OTHERS)))}")
    if _SCHEDULER not in plain:
        return None
    section = where.items((_SCHEDULER,), plain[_SCHEDULER], dict)
    spec = {key: value for key, value in section.items() if key not in _PROCESS}
    if isinstance(strategy := spec.get("placementStrategy"), str):
        spec["placementStrategy"] = {"gpu": strategy, "cpu": strategy}
    if isinstance(listed := spec.get("actions"), list):  # older charts list them, in order
        ranks = {str(name): {"enabled": True, "priority": -at} for at, name in enumerate(listed)}
        spec["actions"] = {name: {"enabled": not ranks} for name in USUAL_ACTIONS} | ranks
    return of_shard(spec, LocatedPart(where.document, (_SCHEDULER,)))


def queues_of(plain: Mapping[str, Any], where: LocatedPart) -> Iterator[tuple[dict[str, Any], Refusals]]:
    """The Queues that the chart makes, and where the mistakes of each are noted."""
    section = where.items((_QUEUES,), plain.get(_QUEUES), dict)
    where.only((_QUEUES,), section, _QUEUE_KEYS)
    if not section or section.get("createDefaultQueue") is False:
        return
    parent = section.get("parentName", "default-parent-queue")
    for name, key, above in (
        (parent, "parentResources", {}),
        (section.get("childName", "default-queue"), "childResources", {"parentQueue": parent}),
    ):
        given = where.items((_QUEUES, key), section.get(key), dict)
        said = {kind: {**_RESOURCE, **where.items((_QUEUES, key, kind), given.get(kind), dict)} for kind in _KINDS}
        spec = {**above, "resources": {**given, **said}}
        told = _OfQueue(LocatedPart(where.document, (_QUEUES, key), f"Queue {name}"))
        yield {"kind": "Queue", "metadata": {"name": name}, "spec": spec}, told


@dataclass(frozen=True, slots=True)
class _OfQueue:
    """Implements `Refusals` for a Queue that is made of a section: its resources are the section."""

    section: LocatedPart

    def refuse(self, where: Location, told: str) -> None:
        """Note that the value at a path of the Queue cannot be honoured, and why."""
        self.section.refuse(where[2:], told)
