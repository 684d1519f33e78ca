"""The types of the values in objects of KAI Scheduler: a value of a wrong type is refused, and never counts as none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from actors.documents.messages import offences_in, shown
from actors.documents.model import Amount, Count, Document, Location, Name, Offence, Priority, offended

_Item = TypeVar("_Item")
#: A list; each wrong item is reported, not only the first.
_Listed = Annotated[tuple[_Item, ...], Field(strict=False)]


class _KaiPart(Document):
    """A part of an object; keys that are not listed may have any value."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")


class _Metadata(_KaiPart):
    name: Name
    namespace: str = ""
    labels: dict[str, Any] = Field(default_factory=dict)
    annotations: dict[str, Any] = Field(default_factory=dict)


class _KaiObject(_KaiPart):
    metadata: _Metadata


class _Levels(_KaiPart):
    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


class _Shares(_KaiPart):
    quota: float = 0
    limit: float = 0
    over_quota_weight: Amount = 0


class _Resources(_KaiPart):
    cpu: _Shares | None = None
    memory: _Shares | None = None
    gpu: _Shares | None = None


class _QueueSpec(_KaiPart):
    parent_queue: str = ""
    priority: Priority = 0
    resources: _Resources | None = None
    preempt_min_runtime: str = ""
    reclaim_min_runtime: str = ""


class _Queue(_KaiObject):
    spec: _QueueSpec | None = None


class _SubGroup(_KaiPart):
    name: Name
    parent: str | None = None
    min_member: Count = 0
    min_sub_group: Count = 0
    topology_constraint: _Levels | None = None


class _PodGroupSpec(_KaiPart):
    queue: str = ""
    min_member: Count = 0
    min_sub_group: Count = 0
    priority_class_name: str = ""
    preemptibility: str = ""
    staleness_grace_period: str = ""
    preemption_delay: str = ""
    topology_constraint: _Levels | None = None
    sub_groups: _Listed[_SubGroup] = ()

    @model_validator(mode="after")
    def _one_tree(self) -> _PodGroupSpec:
        offended(_misplaced(self.sub_groups))
        return self


class _PodGroup(_KaiObject):
    spec: _PodGroupSpec | None = None


class _Level(_KaiPart):
    node_label: Name
    alias: str = ""


class _TopologySpec(_KaiPart):
    levels: _Listed[_Level] = ()


class _Topology(_KaiObject):
    spec: _TopologySpec | None = None


class _PriorityClass(_KaiObject):
    value: Priority
    preemption_policy: str = ""
    global_default: bool = False


_MODELS: Mapping[str, type[_KaiObject]] = {
    "Queue": _Queue,
    "PodGroup": _PodGroup,
    "Topology": _Topology,
    "PriorityClass": _PriorityClass,
}


def mistakes(kind: str, plain: Mapping[str, Any]) -> list[tuple[Location, str]]:
    """Each value of an object that has a wrong type or is missing, and each subgroup that is below itself."""
    try:
        _MODELS[kind].model_validate(plain)
    except ValidationError as error:
        found = offences_in(error, _MODELS[kind])
        return [(one.where, f"{one.expected}, found {shown(one.found)}") for one in found]
    return []


def stated(found: Any) -> Any:
    """Plain data without the keys whose value is null, which is how Kubernetes reads them."""
    if isinstance(found, dict):
        return {key: stated(value) for key, value in found.items() if value is not None}
    return [stated(each) for each in found] if isinstance(found, list) else found


def _misplaced(listed: tuple[_SubGroup, ...]) -> Iterator[Offence]:
    """Names that are given twice, and parents that are below their child."""
    parents: dict[str, str | None] = {}
    for at, each in enumerate(listed):
        if each.name in parents:
            yield Offence(("subGroups", at, "name"), "expected each name once", each.name)
        parents.setdefault(each.name, each.parent)
    for at, each in enumerate(listed):
        above, seen = each.parent, set[str]()
        while above is not None and above not in seen and above != each.name:
            seen.add(above)
            above = parents.get(above)
        if above == each.name:
            expected = "expected a subgroup that is not below this one"
            yield Offence(("subGroups", at, "parent"), expected, each.parent)
