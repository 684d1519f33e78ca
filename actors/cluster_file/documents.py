"""The documents of a cluster file: one model for each block, the same for files and for the bodies of events.

A document holds what was written and no more. An absent key is None, or the default that the schema states. Values
that follow from another document, such as the priority of a task from its podgroup, are resolved where both documents
are known. Quantities stay as written; ``quantities.base_units`` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from actors.cluster_file.task_documents import PreemptionPolicy, TaskDocument
from actors.configuration.policy_documents import PolicyDocument
from actors.documents.alike import Alike, read_together
from actors.documents.model import (
    MOST_CYCLES,
    MOST_RESOURCES,
    Amount,
    Bounds,
    CardQuantity,
    Count,
    Distinct,
    Document,
    Finite,
    Keyed,
    Labels,
    ListOf,
    Moment,
    Name,
    Offence,
    Priority,
    Quantities,
    Segment,
    offended,
    with_proper_keys,
)

__all__ = [
    "CardDocument",
    "ClusterDocument",
    "DisruptionBudgetDocument",
    "DomainDocument",
    "NodeDocument",
    "PodgroupDocument",
    "PriorityClassDocument",
    "QueueDocument",
    "RoleDocument",
    "SubgroupDocument",
    "TaintDocument",
    "TaskDocument",
    "TopologyDocument",
    "WantedLevels",
    "in_row_order",
]


class TaintDocument(Document):
    """A taint of a node."""

    key: Name
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class CardDocument(Document):
    """A card of a node, which tasks share. With a capacity of 0 it takes no more tasks; those that hold it keep it."""

    name: Name
    capacity: CardQuantity


class NodeDocument(Document):
    """A node."""

    free: ClassVar = ("name",)
    name: Name
    allocatable: Quantities
    cards: ListOf[CardDocument] = ()
    labels: Labels = Field(default_factory=dict)
    taints: ListOf[TaintDocument] = ()
    unschedulable: bool = False

    @model_validator(mode="after")
    def _each_card_once(self) -> NodeDocument:
        names = [card.name for card in self.cards]
        twice = [at for at, name in enumerate(names) if name in names[:at]]
        offended(Offence(("cards", at, "name"), "expected each name once", names[at]) for at in twice)
        return self


class DomainDocument(Document):
    """A network domain that is written out, with its nodes or its parent."""

    name: Name
    level: Name
    parent: Name | None = None
    nodes: ListOf[Name] = ()


class TopologyDocument(Document):
    """The network: its levels, widest first, and either the node labels that name the domains or the domains."""

    levels: Distinct[Name]
    labels: Keyed[Name] | None = None
    domains: ListOf[DomainDocument] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> TopologyDocument:
        if self.labels is not None and self.domains is not None:
            offended([Offence(("domains",), "expected either labels or domains", "both")])
        if self.labels is None and self.domains is None and self.levels:
            offended([Offence((), "expected labels or domains beside the levels", "neither")])
        known = ", ".join(self.levels) or "no level"
        unknown = [key for key in self.labels or () if key not in self.levels]
        offended(Offence(("labels", key), f"expected a level, one of {known}", key) for key in unknown)
        if self.labels is not None:
            missing = [level for level in self.levels if level not in self.labels]
            offended(Offence(("labels", level), "expected the label key of this level", None) for level in missing)
        return self


#: Weights are added up and multiplied with each other, which must not come to infinity. An amount of bytes can be one.
MOST_WEIGHT = 1e30


def _weights(given: object) -> object:
    """Check one number or a number for each resource. Pydantic's errors for a union would name its branches."""
    with_proper_keys(given, MOST_RESOURCES)
    weights = given.items() if isinstance(given, dict) else [(None, given)]
    offended(
        Offence(() if key is None else (str(key),), f"expected a number, 0 to {MOST_WEIGHT:g}", weight)
        for key, weight in weights
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= MOST_WEIGHT
    )
    return given


_WEIGHT = {"type": "number", "minimum": 0, "maximum": MOST_WEIGHT}
_Weights = Annotated[
    float | dict[str, float],
    BeforeValidator(_weights),
    WithJsonSchema({"anyOf": [_WEIGHT, {"type": "object", "additionalProperties": _WEIGHT}]}),
]


class QueueDocument(Document):
    """A queue. A resource that is absent in ``deserved`` is not deserved; one absent in ``capability`` has no ceiling.

    ``usage`` is past usage as a fraction of the cluster. A queue without a minimum runtime has that of its parent.
    """

    name: Name
    parent: Name | None = None
    priority: Priority = 0
    weight: Annotated[Amount, Field(le=MOST_WEIGHT)] = 1.0
    over_quota_weight: _Weights = 1.0
    usage: _Weights = 0.0
    guarantee: Quantities = Field(default_factory=dict)
    deserved: Bounds = Field(default_factory=dict)
    capability: Bounds = Field(default_factory=dict)
    reclaimable: bool = True
    state: Literal["Open", "Closed", "Closing"] = "Open"
    preempt_min_runtime: Amount | None = None
    reclaim_min_runtime: Amount | None = None
    created: Moment = 0.0


class PriorityClassDocument(Document):
    """A priority class."""

    name: Name
    value: Priority
    preemption_policy: PreemptionPolicy = "PreemptLowerPriority"


class WantedLevels(Document):
    """The ``topology`` of a podgroup or subgroup: names of levels; required is hard, preferred is soft."""

    required: Name | None = None
    preferred: Name | None = None


class GatheredLevels(WantedLevels):
    """The ``topology`` of a podgroup, which may also say how the podgroup is gathered.

    Attributes
    ----------
    layers
        The preferred levels, if not all levels from ``preferred`` upwards are preferred.
    multiples
        By level: in each of its domains a multiple of this number of tasks is placed.
    near
        A name that podgroups share whose tasks want to be near each other.
    """

    layers: Distinct[Name] = ()
    multiples: Keyed[Annotated[Count, Field(ge=1)]] = Field(default_factory=dict)
    near: Name | None = None


class RoleDocument(Document):
    """A role of a podgroup; a ``min`` of 0 means that it has no minimum of its own."""

    min: Count = 0


class SubgroupDocument(Document):
    """A subgroup: a leaf holds tasks, an inner one (with ``children``) holds subgroups."""

    name: Name
    min_available: Count | None = None
    min_subgroups: Count | None = None
    topology: WantedLevels | None = None
    children: ListOf[SubgroupDocument] | None = None

    @model_validator(mode="after")
    def _leaf_or_inner(self) -> SubgroupDocument:
        if self.children is not None and self.min_available is not None:
            offended([Offence(("min_available",), "expected none beside children", self.min_available)])
        if self.children is None and self.min_subgroups is not None:
            offended([Offence(("min_subgroups",), "expected none without children", self.min_subgroups)])
        return self


def in_row_order(siblings: Sequence[SubgroupDocument]) -> list[SubgroupDocument]:
    """The subgroups of one parent by name, as their rows are: the order of a file decides nothing."""
    return sorted(siblings, key=lambda one: one.name)


class PodgroupDocument(Document):
    """A podgroup, its parts and its tasks."""

    name: Segment
    namespace: Segment = "default"
    queue: Name
    priority: Priority | None = None
    priority_class: Name | None = None
    preemptible: bool | None = None
    preemption_policy: PreemptionPolicy | None = None
    min_available: Count = 1
    min_resources: Quantities = Field(default_factory=dict)
    phase: Literal["Pending", "Inqueue", "Running"] = "Inqueue"
    roles: Keyed[RoleDocument] = Field(default_factory=dict)
    gang_group: Distinct[Name] = ()
    match_policy: Literal["waiting-and-running", "once-satisfied", "only-waiting"] | None = None
    wait_seconds: Annotated[Finite, Field(gt=0)] | None = None
    topology: GatheredLevels | None = None
    min_subgroups: Count | None = None
    subgroups: ListOf[SubgroupDocument] = ()
    created: Moment = 0.0
    started: Moment | None = None
    stale_since: Moment | None = None
    stale_grace_seconds: Annotated[Finite, Field(ge=-1)] | None = None
    preemption_delay: Amount = 0.0
    last_checkpoint: Moment | None = None
    tasks: Alike[TaskDocument] = Field((), validate_default=True)

    @model_validator(mode="after")
    def _one_priority(self) -> PodgroupDocument:
        if self.priority is not None and self.priority_class is not None:
            offended([Offence(("priority_class",), "expected either priority or priority_class", self.priority_class)])
        return self

    @property
    def full_name(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class DisruptionBudgetDocument(Document):
    """A disruption budget; without ``match_labels`` it covers all tasks of its namespace."""

    name: Name
    namespace: Segment = "default"
    match_labels: Labels = Field(default_factory=dict)
    disruptions_allowed: Count


class RecentEvictionsDocument(Document):
    """How many tasks a queue (absent: one that is gone) was told to lose at a time, in seconds."""

    queue: Name | None = None
    at: Annotated[Moment, Field(ge=0)]
    count: Annotated[Count, Field(ge=1)]


class ExpectDocument(Document):
    """What must come of a conformance case. Only the numbers of cycles are used here; the rest is for who compares."""

    cycles: Annotated[int, Field(ge=0, le=MOST_CYCLES)] = 1
    stable_cycles: Annotated[int, Field(ge=0, le=MOST_CYCLES)] = 0
    evicted: Any = None
    evicted_count: Any = None
    bound: Any = None
    bound_count: Any = None
    nominated: Any = None
    task_status: Any = None
    podgroup_placed: Any = None
    podgroup_phase: Any = None
    podgroup_survivors_min: Any = None
    podgroups_broken: Any = None
    subgroups_whole_min: Any = None
    one_domain: Any = None
    fair_share: Any = None
    error: Any = None
    nothing_touched: Any = None


class ClusterDocument(Document):
    """A cluster file, version 1. The last four keys belong to conformance cases and say nothing about the cluster.

    Attributes
    ----------
    live
        Whether it is the state of a live fleet, where a gang group may name a podgroup that has left or is yet to come,
        and tasks may hold more of a card than its capacity.
    """

    version: Annotated[int, Field(ge=1, le=1)]
    id: str | None = None
    now: Moment = 0.0
    live: bool = False
    policy: PolicyDocument | None = None
    nodes: Alike[NodeDocument] = Field((), validate_default=True)
    topology: TopologyDocument | None = None
    queues: ListOf[QueueDocument] = ()
    priority_classes: ListOf[PriorityClassDocument] = ()
    podgroups: Annotated[ListOf[PodgroupDocument], BeforeValidator(read_together("tasks"))] = ()
    disruption_budgets: ListOf[DisruptionBudgetDocument] = ()
    recent_evictions: ListOf[RecentEvictionsDocument] = ()
    note: str | None = None
    source: Any = None
    corrected: str | None = None
    expect: ExpectDocument | None = None
