"""The bodies of all kinds of events and decisions: the stream protocol, version 1, as models.

Bodies that describe a thing of the fleet are documents of the cluster file, so one parser serves both. Unknown fields
are ignored, so that an older reader understands a newer writer; see docs/protocol.md.
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
from actors.documents.model import Amount, Life, Location, Moment, Name, Offence, offended

VERSION = 1
#: Sections of a cluster file that are lists.
LISTS = ("nodes", "queues", "priority_classes", "disruption_budgets", "podgroups")

#: A number on the wire: revisions, epochs. It may be larger than a count of a cluster file.
Number = Annotated[int, Field(ge=0, lt=2**63)]
#: When something was or will be: seconds since the moment from which the fleet counts.
Time = Annotated[Moment, Field(ge=0)]
EntryId = Annotated[str, Field(pattern=r"^[0-9]{1,18}-[0-9]{1,19}$")]


class Body(BaseModel):
    """Base class of bodies: immutable, strict about types; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class FleetListed(Body):
    """One part of a full list: whatever is in no part is gone. See `full_list` for how parts are cut."""

    list_id: Name
    part: Number
    parts: Annotated[int, Field(ge=1, le=4_096)]
    cluster: dict[str, Any]

    @field_validator("cluster")
    @classmethod
    def _can_be_joined(cls, cluster: dict[str, Any]) -> dict[str, Any]:
        """Check the types that joining parts relies on; the contents are checked once all parts are there."""
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
    """The topology was replaced; null: the fleet is one domain."""

    topology: TopologyDocument | None


class NodeRemoved(Body):
    """A node is gone, and so is what ran on it."""

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
    """A task of a podgroup is new, or was changed."""

    podgroup: Name
    task: TaskDocument


class TaskStarted(Body):
    """A task runs on a node, and on one of its cards if it asks for one.

    `incarnation` counts the lives of a task of this name; a fleet raises it when it replaces the task.
    """

    task: Name
    node: Name
    card: Name | None = None
    incarnation: Life = 0
    at: Time | None = None


class TaskTerminating(Body):
    """A task was told to end; its room comes free by `until` at the latest."""

    task: Name
    incarnation: Life = 0
    until: Time | None = None


class TaskEnded(Body):
    """A task has ended. If ``replaced``, a new Pending task has its name."""

    task: Name
    outcome: Literal["Succeeded", "Failed", "Evicted"]
    incarnation: Life = 0
    replaced: bool = False


class Eviction(Body):
    """A task that is to end, in this incarnation and no other, within ``grace_s`` seconds.

    ``podgroup`` and ``node`` are for display; older writers left them out.
    """

    task: Name
    incarnation: Number
    podgroup: Name | None = None
    node: Name | None = None
    grace_s: Amount = 0.0


class VictimCondition(Body):
    """A condition, as Kubernetes has it, for the status of a victim before it ends: its owner learns why."""

    type: str
    status: str
    reason: str
    message: str


class Nomination(Body):
    """A task and the node that it is promised, with a card if it asks for one; a null node ends the nomination.

    ``incarnation`` is the life that is promised it; without one (a task that moves) it is whichever comes.
    """

    task: Name
    node: Name | None
    card: Name | None = None
    incarnation: Number | None = None


class Binding(Body):
    """A task and the node on which it starts now, in this life and no other, with a card if it asks for one."""

    task: Name
    node: Name
    card: Name | None = None
    incarnation: Number | None = None


class Overdue(Body):
    """A victim that did not end by its deadline. No plan counts on its room before ``avoided_until``."""

    task: Name
    incarnation: Number
    avoided_until: Amount


class PlannedOn(Body):
    """What a plan follows from: the state with these numbers, and what its cycle began with.

    A reader that replays both streams comes upon the same state, and finds the same plan on it. Connectors need none of
    this.

    Attributes
    ----------
    at
        When the cycle began, seconds since the epoch.
    paused
        Podgroups that paused, because a search for them had failed shortly before; of podgroups that start together the
        first. None if there were more than 256, or newer ones than the committer knew.
    """

    epoch: Number
    revision: Number
    at: Amount
    paused: Annotated[tuple[Name, ...], Field(strict=False)] | None = None


class JudgedOn(Body):
    """What a verdict follows from: the state with these numbers, with all decisions that were recorded before it.

    ``at`` is the time of the verdict, seconds since the epoch.
    """

    epoch: Number
    revision: Number
    at: Amount


class PlanCommitted(Body):
    """A decision. All of it is to be carried out, and it counts from the moment it is recorded.

    Attributes
    ----------
    condition
        For the status of every task in ``evictions``.
    expires_at
        End of the reservation, seconds since the epoch.
    replaces
        A decision that this one takes back, because the victims in ``overdue`` did not end.
    planned_on, judged_on
        The states on which it was planned and judged; a decision that replaces another was planned as it was judged.
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
    planned_on: PlannedOn | None = None
    judged_on: JudgedOn | None = None

    @property
    def promised(self) -> tuple[Nomination, ...]:
        """The nominations that promise a node."""
        return tuple(one for one in self.nominations if one.node is not None)

    @property
    def taken_back(self) -> tuple[Nomination, ...]:
        """The nominations that end an earlier one: tasks that have to wait for other room."""
        return tuple(one for one in self.nominations if one.node is None)


class PlanWithdrawn(Body):
    """A decision is taken back: its reservation ends, and evictions that were not carried out yet are off.

    ``judged_on`` names the state on which that was decided; it counts from then, as a decision does.
    """

    plan_id: Name
    epoch: Number = 0
    reason: str
    overdue: tuple[Overdue, ...] = Field(default=(), strict=False)
    judged_on: JudgedOn | None = None


class DomainReserved(Body):
    """A domain (null: all nodes) is kept for a podgroup whose plans were refused ``refusals`` times in a row."""

    podgroup: Name
    domain: Name | None
    epoch: Number
    refusals: Number
    reason: str
    expires_at: Amount


class DomainReleased(Body):
    """The domain that was kept for a podgroup is open to all podgroups again."""

    podgroup: Name
    epoch: Number
    reason: str


class ResyncRequested(Body):
    """News is missing: the fleet is to send a full list.

    ``read`` is the id of the last entry of ``events`` that was read; a list that ends after it is already on its way.
    ``lost_after`` is there where the broker has lost what was read: the revision of the newest list before that.
    """

    reason: str
    read: EntryId = "0-0"
    lost_after: Number | None = None


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
