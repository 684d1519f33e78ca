"""Every kind of event and decision and the body it has: the stream protocol, version 1, as models.

Bodies that describe a thing of the fleet are the documents of the cluster file, so one parser serves both. Fields that
a model does not know pass unread, so that a newer writer and an older reader get along; see docs/protocol.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from actors.cluster_file.documents import (
    DisruptionBudgetDocument,
    NodeDocument,
    PodgroupDocument,
    PriorityClassDocument,
    QueueDocument,
    TaskDocument,
    TopologyDocument,
)
from actors.documents.model import Amount, Location, Name, Offence, offended

VERSION = 1
#: Sections of a cluster file that are lists.
LISTS = ("nodes", "queues", "priority_classes", "disruption_budgets", "podgroups")

#: A count of the wire's, larger than one of a cluster file: revisions, incarnations, epochs.
Number = Annotated[int, Field(ge=0, lt=2**63)]
EntryId = Annotated[str, Field(pattern=r"^[0-9]{1,18}-[0-9]{1,19}$")]


class Body(BaseModel):
    """A body: immutable, exact about types, and indifferent to fields that came after it."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class FleetListed(Body):
    """One part of everything there is: what is not in any part is gone. See ``full_list`` for how parts are cut."""

    list_id: Name
    part: Number
    parts: Annotated[int, Field(ge=1, le=4_096)]
    cluster: dict[str, Any]

    @field_validator("cluster")
    @classmethod
    def _can_be_joined(cls, cluster: dict[str, Any]) -> dict[str, Any]:
        """There are lists where parts are joined; what stands in them is checked once all parts are there."""
        wanted: list[tuple[Location, Any, type]] = [((section,), cluster.get(section, []), list) for section in LISTS]
        topology, podgroups = cluster.get("topology"), cluster.get("podgroups", [])
        if topology is not None:
            wanted += [(("topology",), topology, dict)]
        if isinstance(topology, dict) and topology.get("domains") is not None:
            wanted += [(("topology", "domains"), topology["domains"], list)]
        if isinstance(podgroups, list):
            wanted += [(("podgroups", at), one, dict) for at, one in enumerate(podgroups)]
            wanted += [
                (("podgroups", at, "tasks"), one.get("tasks", []), list)
                for at, one in enumerate(podgroups)
                if isinstance(one, dict)
            ]
        words: dict[type, str] = {list: "expected a list", dict: "expected a mapping"}
        offended(Offence(at, words[kind], value) for at, value, kind in wanted if not isinstance(value, kind))
        return cluster


class TopologyChanged(Body):
    """The topology is another one; null: the fleet is one domain."""

    topology: TopologyDocument | None


class NodeRemoved(Body):
    """A node is gone, and with it what ran on it."""

    node: Name


class QueueRemoved(Body):
    """A queue is gone; it has neither podgroups nor queues below it."""

    queue: Name


class BudgetRemoved(Body):
    """A disruption budget (``namespace/name``) is gone."""

    budget: Name


class PodgroupRemoved(Body):
    """A podgroup and all its tasks are gone."""

    podgroup: Name


class TaskUpserted(Body):
    """A task of a podgroup is there, or is different."""

    podgroup: Name
    task: TaskDocument


class TaskStarted(Body):
    """A task runs on a node, and on one of its cards if it asks for one.

    `incarnation` counts the lives of a task of this name; a fleet raises it when it replaces the task.
    """

    task: Name
    node: Name
    card: Name | None = None
    incarnation: Number = 0
    at: Amount | None = None


class TaskTerminating(Body):
    """A task was told to end; its room comes free by `until` at the latest."""

    task: Name
    incarnation: Number = 0
    until: Amount | None = None


class TaskEnded(Body):
    """A task has ended. `replaced`: a fresh Pending task of the same name stands in its place."""

    task: Name
    outcome: Literal["Succeeded", "Failed", "Evicted"]
    incarnation: Number = 0
    replaced: bool = False


class Eviction(Body):
    """One task to end, in this incarnation and no other, within ``grace_s``.

    ``podgroup`` and ``node`` say whose it is and where it runs, for those who show it; older writers left both out.
    """

    task: Name
    incarnation: Number
    podgroup: Name | None = None
    node: Name | None = None
    grace_s: Amount = 0.0


class VictimCondition(Body):
    """The condition that a victim's status gets before it ends, so that its owner knows why (Kubernetes' terms)."""

    type: str
    status: str
    reason: str
    message: str


class Nomination(Body):
    """A task and the node it is promised, with the card there if it asks for one; a node of null takes it back."""

    task: Name
    node: Name | None
    card: Name | None = None


class Binding(Body):
    """A task and the node where it starts now, with its card if it asks for one."""

    task: Name
    node: Name
    card: Name | None = None


class Overdue(Body):
    """A victim that did not end by its deadline. Its node is not counted on before ``avoided_until``."""

    task: Name
    incarnation: Number
    avoided_until: Amount


class PlanCommitted(Body):
    """A decision: all of it is to be carried out, and it is true from here on.

    `condition`: what the status of every task in `evictions` gets. `replaces`: another decision is taken back by the
    same stroke, because the victims in `overdue` did not end.
    """

    plan_id: Name
    epoch: Number
    action: Name
    purpose: str = ""
    preemptor: Name | None = None
    queue: Name | None = None
    domain: Name | None = None
    evictions: tuple[Eviction, ...] = Field(default=(), strict=False)
    condition: VictimCondition | None = None
    nominations: tuple[Nomination, ...] = Field(default=(), strict=False)
    bindings: tuple[Binding, ...] = Field(default=(), strict=False)
    cost: dict[str, int | float] = Field(default_factory=dict)
    explanation: dict[str, Any] = Field(default_factory=dict)
    expires_at: Annotated[float, Field(allow_inf_nan=False)] | None = None
    replaces: Name | None = None
    overdue: tuple[Overdue, ...] = Field(default=(), strict=False)


class PlanWithdrawn(Body):
    """A decision is taken back: its reservation ends, and evictions not yet carried out are not to be."""

    plan_id: Name
    epoch: Number = 0
    reason: str
    overdue: tuple[Overdue, ...] = Field(default=(), strict=False)


class DomainReserved(Body):
    """A domain (null: all nodes) is kept for a podgroup whose plans were refused ``refusals`` times in a row."""

    podgroup: Name
    domain: Name | None
    epoch: Number
    refusals: Number
    reason: str
    expires_at: Amount


class DomainReleased(Body):
    """The domain that was kept for a podgroup is open to all again."""

    podgroup: Name
    epoch: Number
    reason: str


class ResyncRequested(Body):
    """Something is missing: the fleet is to say everything there is, as a `fleet_listed`.

    `read` is the last entry of `events` that was read: a list that ends behind it is on its way already.
    """

    reason: str
    read: EntryId = "0-0"


DECISION_KINDS: dict[str, type[BaseModel]] = {
    "plan_committed": PlanCommitted, "plan_withdrawn": PlanWithdrawn, "domain_reserved": DomainReserved,
    "domain_released": DomainReleased, "resync_requested": ResyncRequested,
}  # fmt: skip


EVENT_KINDS: dict[str, type[BaseModel]] = {
    "fleet_listed": FleetListed,
    "node_upserted": NodeDocument,
    "node_removed": NodeRemoved,
    "topology_changed": TopologyChanged,
    "queue_upserted": QueueDocument,
    "queue_removed": QueueRemoved,
    "priority_class_upserted": PriorityClassDocument,
    "podgroup_upserted": PodgroupDocument,
    "podgroup_removed": PodgroupRemoved,
    "task_upserted": TaskUpserted,
    "task_started": TaskStarted,
    "task_terminating": TaskTerminating,
    "task_ended": TaskEnded,
    "budget_upserted": DisruptionBudgetDocument,
    "budget_removed": BudgetRemoved,
}
