"""Tasks as documents: their request, their constraints, and their node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from actors.documents.alike import Alike
from actors.documents.model import (
    Amount,
    CardQuantity,
    Count,
    Document,
    Labels,
    Life,
    ListOf,
    Moment,
    Name,
    Offence,
    Priority,
    Quantities,
    Segment,
    Several,
    offended,
)
from actors.documents.quantities import card_units

#: Statuses of a task that hold a node.
HOLDING = ("Bound", "Running", "Terminating")
NEVER = "Never"
PreemptionPolicy = Literal["PreemptLowerPriority", "Never"]


class RequirementDocument(Document):
    """One term of a node affinity."""

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: ListOf[str] = ()

    @model_validator(mode="after")
    def _values_fit(self) -> RequirementDocument:
        if self.operator in ("In", "NotIn") and not self.values:
            offended([Offence(("values",), f"expected values for {self.operator}", [])])
        if self.operator in ("Exists", "DoesNotExist") and self.values:
            offended([Offence(("values",), f"expected none for {self.operator}", list(self.values))])
        if self.operator in ("Gt", "Lt") and not (len(self.values) == 1 and _whole(self.values[0])):
            expected = f"expected one whole number, as text, for {self.operator}"
            offended([Offence(("values",), expected, list(self.values))])
        return self


def _whole(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()


class TolerationDocument(Document):
    """A toleration; an empty key with Exists tolerates every taint, an empty effect every effect."""

    key: str = ""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""

    @model_validator(mode="after")
    def _key_or_exists(self) -> TolerationDocument:
        if not self.key and self.operator != "Exists":
            offended([Offence(("operator",), "expected Exists where there is no key", self.operator)])
        if self.value and self.operator == "Exists":
            offended([Offence(("value",), "expected none for Exists", self.value)])
        return self


class LabelRequirementDocument(RequirementDocument):
    """One requirement on the labels of tasks."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]


class AntiAffinityDocument(Document):
    """The task may not share a domain of ``topology_key`` with a task whose labels match.

    Only tasks of its own namespace are meant, unless ``namespaces`` names others; ``*`` is all.
    """

    topology_key: Name
    match_labels: Labels = Field(default_factory=dict)
    match_expressions: ListOf[LabelRequirementDocument] = ()
    namespaces: ListOf[Name] = ()


class TaskDocument(Document):
    """A task, or several with ``count``: ``worker`` with 2 is worker-0 and worker-1, with the indices 0 and 1."""

    free: ClassVar = (
        "name", "node", "card", "nominated_node", "nominated_card", "index", "incarnation", "created",
    )  # fmt: skip
    name: Segment
    count: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    role: Name | None = None
    subgroup: Name | None = None
    request: Quantities = Field(default_factory=dict)
    card_request: CardQuantity | None = None
    priority: Priority | None = None
    preemptible: bool | None = None
    preemption_policy: PreemptionPolicy | None = None
    gone_when_evicted: bool = False
    grace_s: Amount | None = None
    status: Literal["Pending", "Bound", "Running", "Terminating", "Succeeded", "Failed"] = "Pending"
    node: Name | None = None
    card: Name | None = None
    nominated_node: Name | None = None
    nominated_card: Name | None = None
    index: Count | None = None
    incarnation: Life | None = None
    labels: Labels = Field(default_factory=dict)
    node_selector: Labels = Field(default_factory=dict)
    node_affinity: ListOf[Several[RequirementDocument]] = ()
    tolerations: ListOf[TolerationDocument] = ()
    pod_anti_affinity: ListOf[AntiAffinityDocument] = ()
    created: Moment = 0.0
    scheduling_gated: bool = False

    @model_validator(mode="after")
    def _node_fits_status(self) -> TaskDocument:
        if self.status in HOLDING and self.node is None:
            offended([Offence(("node",), f"expected the node of a task that is {self.status}", None)])
        if self.status == "Pending" and self.node is not None:
            offended([Offence(("node",), "expected none while Pending", self.node)])
        if self.status not in ("Pending", "Terminating") and self.nominated_node is not None:
            offended([Offence(("nominated_node",), f"expected none while {self.status}", self.nominated_node)])
        return self

    @model_validator(mode="after")
    def _card_fits_node(self) -> TaskDocument:
        places = (
            ("card", self.card, "node", self.node, self.status in HOLDING),
            ("nominated_card", self.nominated_card, "nominated_node", self.nominated_node, True),
        )
        for key, card, place, node, holds in places:
            if card is not None and node is None:
                offended([Offence((key,), f"expected none without {place}", card)])
            if card is not None and not self.on_card:
                offended([Offence((key,), "expected none without card_request", card)])
            if card is None and node is not None and holds and self.on_card:
                offended([Offence((key,), f"expected the name of a card of {node}, which card_request asks for", None)])
        return self

    @property
    def on_card(self) -> int:
        """How much of one card it asks for, in base units; 0 if it needs no card."""
        return 0 if self.card_request is None else card_units(self.card_request)

    def expanded(self) -> Iterator[tuple[str, int | None]]:
        """Name and index of each task that the document describes."""
        if self.count is None:
            yield self.name, self.index
        else:
            first = self.index or 0
            yield from ((f"{self.name}-{at}", first + at) for at in range(self.count))


def expanded(tasks: Alike[TaskDocument]) -> tuple[list[str], list[int | None], list[int]]:
    """Names and indices of all tasks that documents describe, and how many each describes."""
    if all(kind.count is None for kind in tasks.kinds):
        return tasks.column("name"), tasks.column("index"), [1] * len(tasks)
    each = [[*task.expanded()] for task in tasks]
    names, indices = zip(*(one for many in each for one in many), strict=True)
    return [*names], [*indices], [len(many) for many in each]
