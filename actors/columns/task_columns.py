"""Tasks, their shapes, constraints and labels as columns.

Most tasks of a podgroup differ in name and place only: what they share is looked up once for each kind, and the columns
of tasks are taken from those of the kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.cluster_file.task_documents import NEVER, AntiAffinityDocument, RequirementDocument, TaskDocument, expanded
from actors.columns.node_columns import vector
from actors.columns.row_builder import Interned, RowBuilder, numbers, ranks, table_of
from actors.documents.alike import Alike
from actors.documents.durations import seconds_of
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.resources import PODS
from pipeline.cluster.tables import STATUS_NAMES, Shapes, Tasks
from pipeline.cluster.vocabulary import AntiAffinity, Constraint, Requirement, Toleration

#: Volcano's label for the cool-down of a task; its value is a duration such as ``10m``.
COOLDOWN_LABEL = "volcano.sh/cooldown-time"
_NEVER_ENDS = float("inf")
#: The numbers of one document, see ``TaskRows.add``.
_NUMBERS = ("kind", "card", "nominated_card", "revision", "times")
#: What is taken from documents as they say it, and turned into numbers for all at once.
_SAID = ("node", "nominated_node", "incarnation", "created")


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """Priority of a class, and whether its podgroups may preempt."""

    value: int
    preempts: bool = True


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The things that podgroups refer to.

    Attributes
    ----------
    resources
        The resource axis, see ``resources.axis``; it has every resource that the podgroups name.
    levels
        Names of the topology's levels, by row.
    classes
        Priority classes by name; the system classes need not be listed.
    queue_row, node_row
        Gives the row of a queue or node, which must exist.
    card_row
        Gives the position of a card among those of a node (row).
    """

    resources: Sequence[str]
    levels: Sequence[str]
    classes: Mapping[str, PriorityClass]
    queue_row: Callable[[str], int]
    node_row: Callable[[str], int]
    card_row: Callable[[int, str], int]


@dataclass(frozen=True, slots=True)
class Membership:
    """Values that a task inherits from its podgroup.

    Attributes
    ----------
    row
        Row of the podgroup.
    roles, subgroups
        Rows by name.
    """

    row: int
    namespace: str
    priority: int
    preemptible: bool
    may_preempt: bool
    critical: bool
    roles: Mapping[str, int] = field(default_factory=dict)
    subgroups: Mapping[str, int] = field(default_factory=dict)


class TaskRows:
    """Collects rows of tasks; every name must exist."""

    def __init__(self, around: Surroundings, namespaces: Interned[str]) -> None:
        """Begin without rows; the namespaces are those of the podgroups."""
        self._around, self._namespaces = around, namespaces
        self._label_sets = Interned[tuple[tuple[str, str], ...]]([()])
        self._constraints = Interned[Constraint]()
        self._shapes = Interned[tuple[tuple[int, ...], int, int]]()
        self._kinds = RowBuilder()
        self._own: dict[tuple[int, int], tuple[TaskDocument, dict[str, Any]]] = {}
        self._numbers: dict[str, list[int]] = {name: [] for name in _NUMBERS}
        self._said: dict[str, list[Any]] = {key: [] for key in _SAID}
        self._index: list[int | None] = []
        self._names: list[str] = []

    def add(self, group: Membership, documents: Alike[TaskDocument], revisions: Sequence[int] = ()) -> None:
        """Add the tasks of a podgroup; without ``revisions`` all have 0."""
        first = len(self._kinds)
        for kind in documents.kinds:
            self._kinds.add(self._in_common(group, kind))
        names, index, times = expanded(documents)
        self._names.extend(map(f"{group.namespace}/".__add__, names))
        self._index.extend(index)
        for key, values in self._said.items():
            values.extend(documents.column(key))
        numbers = {
            "kind": [first + kind for kind in documents.kind], "card": self._cards(documents, "card", "node"),
            "nominated_card": self._cards(documents, "nominated_card", "nominated_node"),
            "revision": revisions or [0] * len(documents), "times": times,
        }  # fmt: skip
        for name, more in numbers.items():
            self._numbers[name].extend(more)

    def _rows(self, nodes: Sequence[str | None]) -> list[int]:
        row = self._around.node_row
        return [NONE if node is None else row(node) for node in nodes]

    def _cards(self, documents: Alike[TaskDocument], key: str, of: str) -> list[int]:
        """Position of the card that each task has under ``key``, on the node under ``of``; NONE for none."""
        if not any(kind.on_card for kind in documents.kinds):
            return [NONE] * len(documents)
        row, nodes = self._around.card_row, self._rows(documents.column(of))
        each = zip(nodes, documents.column(key), strict=True)
        return [NONE if node == NONE or card is None else row(node, card) for node, card in each]

    def _in_common(self, group: Membership, document: TaskDocument) -> dict[str, Any]:
        """What all tasks of a kind have in a podgroup."""
        return self._own_values(self._namespaces.row(group.namespace), document) | {
            "podgroup": group.row,
            "role": group.roles.get(document.role, NONE) if document.role is not None else NONE,
            "subgroup": group.subgroups[document.subgroup] if document.subgroup is not None else NONE,
            "priority": group.priority if document.priority is None else document.priority,
            "preemptible": group.preemptible if document.preemptible is None else document.preemptible,
            "may_preempt": (
                group.may_preempt if document.preemption_policy is None else document.preemption_policy != NEVER
            ),
            "critical": group.critical,
        }

    def _own_values(self, namespace: int, document: TaskDocument) -> dict[str, Any]:
        """What it has in every podgroup of a namespace, worked out once: many podgroups can share a kind."""
        known = self._own.get((namespace, id(document)))
        if known is None:
            request = vector(self._around.resources, document.request)
            best_effort = not any(request[:PODS] + request[PODS + 1 :]) and not document.on_card
            request[PODS] = max(1, request[PODS])
            constraint = self._constraints.row(constraint_of(document, namespace))
            values = {
                "shape": self._shapes.row((tuple(request), constraint, document.on_card)),
                "gone_when_evicted": document.gone_when_evicted,
                "gated": document.scheduling_gated,
                "best_effort": best_effort,
                "status": STATUS_NAMES.index(document.status),
                "label_set": self._label_sets.row(tuple(sorted(document.labels.items()))),
            }
            # It is kept as well, so that no other document can get its identity.
            known = self._own[namespace, id(document)] = document, values
        return known[1]

    # -- the tables -------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tasks."""
        return tuple(self._names)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints."""
        return self._constraints.values

    @property
    def label_sets(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """All sets of labels."""
        return self._label_sets.values

    def shapes(self) -> Shapes:
        """The shapes of all tasks."""
        new = self._shapes.values
        wide = len(self._around.resources)
        request = np.array([request for request, _, _ in new], np.int64).reshape(len(new), wide)
        constraint, on_card = ([each[at] for each in new] for at in (1, 2))
        return Shapes(frozen(request, np.int64), frozen(constraint, np.int32), frozen(on_card, np.int64))

    def tasks(self) -> Tasks:
        """The tasks."""
        numbered = self._numbers | {
            "node": self._rows(self._said["node"]), "nominated": self._rows(self._said["nominated_node"]),
            "incarnation": [one or 0 for one in self._said["incarnation"]],
        }  # fmt: skip
        said = {name: np.array(values, np.int64) for name, values in numbered.items()}
        times = said.pop("times")
        columns = {name: np.repeat(values, times) for name, values in said.items()}
        kind = columns.pop("kind")
        columns |= {name: np.array(values)[kind] for name, values in self._kinds.columns.items()}
        created = np.repeat(np.array(self._said["created"], np.float64), times)
        more: dict[str, NDArray[Any]] = {
            **columns,
            "index": np.array([NONE if one is None else one for one in self._index], np.int64),
            "number": numbers(self._names),
            "created": created,
            "order": ranks(created, self._names),
        }
        return table_of(Tasks, more)


def cooldowns(label_sets: Sequence[tuple[tuple[str, str], ...]]) -> tuple[tuple[int, float], ...]:
    """Rows of label sets that state a cool-down, with its seconds; infinite if the duration cannot be read."""
    stated = [(row, text) for row, labels in enumerate(label_sets) for key, text in labels if key == COOLDOWN_LABEL]
    return tuple((row, _NEVER_ENDS if (seconds := seconds_of(text)) is None else seconds) for row, text in stated)


def constraint_of(document: TaskDocument, namespace: int) -> Constraint:
    """The constraints of a task in a canonical form, so that equal constraints are equal values."""
    tolerations = {Toleration(each.key, each.operator, each.value, each.effect) for each in document.tolerations}
    apart = {_anti_affinity(each) for each in document.pod_anti_affinity}
    return Constraint(
        tuple(Requirement(key, "In", (value,)) for key, value in sorted(document.node_selector.items())),
        tuple(tuple(map(_requirement, term)) for term in document.node_affinity),
        tuple(sorted(tolerations, key=lambda each: (each.key, each.operator, each.value, each.effect))),
        tuple(sorted(apart, key=astuple)),
        namespace,
    )


def _anti_affinity(document: AntiAffinityDocument) -> AntiAffinity:
    return AntiAffinity(
        document.topology_key, tuple(sorted(document.match_labels.items())),
        tuple(sorted({_requirement(each) for each in document.match_expressions}, key=astuple)),
        tuple(sorted(set(document.namespaces))),
    )  # fmt: skip


def _requirement(document: RequirementDocument) -> Requirement:
    return Requirement(document.key, document.operator, tuple(sorted(set(document.values))))
