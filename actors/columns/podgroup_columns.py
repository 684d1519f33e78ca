"""Podgroups, their parts and their tasks as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field

import numpy as np

from actors.cluster_file.cross_references import SYSTEM_CLASSES
from actors.cluster_file.documents import (
    GatheredLevels,
    PodgroupDocument,
    SubgroupDocument,
    TaskDocument,
    WantedLevels,
)
from actors.cluster_file.task_documents import NEVER, AntiAffinityDocument, RequirementDocument
from actors.columns.labels import cooldowns
from actors.columns.node_columns import vector
from actors.columns.row_builder import Interned, RowBuilder, numbers, ranks
from pipeline.cluster.arrays import NONE, UNSET, frozen
from pipeline.cluster.resources import PODS
from pipeline.cluster.tables import (
    MATCH_POLICY_NAMES,
    PHASE_NAMES,
    STATUS_NAMES,
    Podgroups,
    Roles,
    Shapes,
    Subgroups,
    Tasks,
)
from pipeline.cluster.vocabulary import AntiAffinity, Constraint, Gather, Requirement, Toleration, Vocabulary

#: All tasks in this namespace are critical to the cluster.
SYSTEM_NAMESPACE = "kube-system"


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


class PodgroupColumns:
    """Collects rows of podgroups, their parts and tasks; every name must exist."""

    def __init__(self, around: Surroundings, known: Vocabulary | None = None) -> None:
        """Begin without rows; gang groups and the podgroups that they name are numbered as in ``known``."""
        self._around = around
        self._gangs = Interned[str](known.gangs if known is not None else ())
        self._gang_groups = Interned[tuple[int, ...]](known.gang_groups if known is not None else ())
        self._gathers = Interned[Gather](known.gathers if known is not None else ())
        self._classes = {name: PriorityClass(value) for name, value in SYSTEM_CLASSES.items()} | dict(around.classes)
        self._level_row = {level: row for row, level in enumerate(around.levels)}
        self._namespaces = Interned[str]()
        self._label_sets = Interned[tuple[tuple[str, str], ...]]([()])
        self._constraints = Interned[Constraint]()
        self._shapes = Interned[tuple[tuple[int, ...], int, int]]()
        self._podgroups = RowBuilder()
        self._roles = RowBuilder()
        self._subgroups = RowBuilder()
        self._tasks = RowBuilder()
        self._podgroup_names: list[str] = []
        self._task_names: list[str] = []

    def add_podgroup(self, document: PodgroupDocument) -> Membership:
        """Add a podgroup and its parts, without its tasks."""
        row = len(self._podgroups)
        given = self._classes[document.priority_class] if document.priority_class is not None else PriorityClass(0)
        preempts = given.preempts if document.preemption_policy is None else document.preemption_policy != NEVER
        priority = given.value if document.priority is None else document.priority
        wanted = document.topology or GatheredLevels()
        self._podgroup_names.append(document.full_name)
        self._podgroups.add(
            {
                "queue": self._around.queue_row(document.queue),
                "namespace": self._namespaces.row(document.namespace),
                "priority": priority,
                "preemptible": document.preemptible is not False,
                "may_preempt": preempts,
                "min_available": document.min_available,
                "min_resources": vector(self._around.resources, document.min_resources, UNSET),
                "phase": PHASE_NAMES.index(document.phase),
                "match_policy": MATCH_POLICY_NAMES.index(document.match_policy or ""),
                "gang_group": self._gang_group(document),
                "gather": self._gather(wanted),
                **self._levels(wanted),
                "min_subgroups": _or_none(document.min_subgroups),
                "created": document.created,
                "started": _or_nan(document.started),
                "stale_since": _or_nan(document.stale_since),
                "stale_grace_s": _or_nan(document.stale_grace_seconds),
                "last_checkpoint": _or_nan(document.last_checkpoint),
                "preemption_delay_s": document.preemption_delay,
                "wait_s": _or_nan(document.wait_seconds),
                "alive": True,
                "revision": 0,
            }
        )
        subgroups: dict[str, int] = {}
        self._add_subgroups(row, document.subgroups, NONE, subgroups)
        critical = document.namespace == SYSTEM_NAMESPACE or document.priority_class in SYSTEM_CLASSES
        return Membership(
            row,
            document.namespace,
            priority,
            document.preemptible is not False,
            # A priority class sets the priority of the podgroup; tasks inherit what the podgroup itself states.
            document.preemption_policy != NEVER,
            critical,
            self._add_roles(row, document),
            subgroups,
        )

    def _gang_group(self, document: PodgroupDocument) -> int:
        """Row of the set of podgroups that it starts with, itself included; NONE if it names no other."""
        members = {document.full_name, *document.gang_group}
        if len(members) == 1:
            return NONE
        return self._gang_groups.row(tuple(self._gangs.row(member) for member in sorted(members)))

    def _gather(self, wanted: GatheredLevels) -> int:
        if not (wanted.layers or wanted.multiples or wanted.near):
            return NONE
        return self._gathers.row(Gather(wanted.layers, tuple(sorted(wanted.multiples.items())), wanted.near))

    def _add_roles(self, podgroup: int, document: PodgroupDocument) -> dict[str, int]:
        """Add the roles with a minimum, then those that only tasks name; rows by name."""
        minimum = {name: role.min for name, role in document.roles.items()}
        for task in document.tasks:
            if task.role is not None:
                minimum.setdefault(task.role, 0)
        first = len(self._roles)
        for least in minimum.values():
            self._roles.add({"podgroup": podgroup, "min_available": least})
        return {name: first + at for at, name in enumerate(minimum)}

    def _add_subgroups(
        self, podgroup: int, subgroups: Sequence[SubgroupDocument], parent: int, rows: dict[str, int]
    ) -> None:
        for document in subgroups:
            row = rows[document.name] = len(self._subgroups)
            least = 1 if document.min_available is None else document.min_available
            self._subgroups.add(
                {
                    "podgroup": podgroup,
                    "parent": parent,
                    "min_available": least if document.children is None else 0,
                    "min_subgroups": _or_none(document.min_subgroups),
                    **self._levels(document.topology or WantedLevels()),
                }
            )
            self._add_subgroups(podgroup, document.children or (), row, rows)

    def add_tasks(self, group: Membership, document: TaskDocument, revision: int = 0) -> None:
        """Add a task, or as many tasks as ``count`` states."""
        node = self._around.node_row(document.node) if document.node is not None else NONE
        nominated = self._around.node_row(document.nominated_node) if document.nominated_node is not None else NONE
        request = vector(self._around.resources, document.request)
        # The tasks differ in name and index only, so the rest is looked up once.
        shared = {
            "podgroup": group.row,
            "shape": self.shape(document, group.namespace),
            "role": group.roles.get(document.role, NONE) if document.role is not None else NONE,
            "subgroup": group.subgroups[document.subgroup] if document.subgroup is not None else NONE,
            "priority": group.priority if document.priority is None else document.priority,
            "preemptible": group.preemptible if document.preemptible is None else document.preemptible,
            "may_preempt": (
                group.may_preempt if document.preemption_policy is None else document.preemption_policy != NEVER
            ),
            "gone_when_evicted": document.gone_when_evicted,
            "gated": document.scheduling_gated,
            "critical": group.critical,
            "best_effort": not any(request[:PODS] + request[PODS + 1 :]) and not document.on_card,
            "status": STATUS_NAMES.index(document.status),
            "node": node,
            "nominated": nominated,
            "card": self._card(document, node, nominated),
            "label_set": self._label_sets.row(tuple(sorted(document.labels.items()))),
            "created": document.created,
            "incarnation": document.incarnation or 0,
            "revision": revision,
        }
        names, index = zip(*document.expanded(), strict=True)
        self._task_names.extend(f"{group.namespace}/{name}" for name in names)
        self._tasks.add(shared, len(names), index=[*map(_or_none, index)])

    def shape(self, document: TaskDocument, namespace: str) -> int:
        """Row of the shape of a task."""
        request = vector(self._around.resources, document.request)
        request[PODS] = max(1, request[PODS])
        constraint = self._constraints.row(constraint_of(document, self._namespaces.row(namespace)))
        return self._shapes.row((tuple(request), constraint, document.on_card))

    def _card(self, document: TaskDocument, node: int, nominated: int) -> int:
        """Position of the card that a task holds or is promised; NONE for none."""
        place, name = (node, document.card) if document.card is not None else (nominated, document.nominated_card)
        return NONE if place == NONE or name is None else self._around.card_row(place, name)

    def _levels(self, wanted: WantedLevels) -> dict[str, int]:
        return {
            "required_level": NONE if wanted.required is None else self._level_row[wanted.required],
            "preferred_level": NONE if wanted.preferred is None else self._level_row[wanted.preferred],
        }

    # -- the tables -------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the podgroups and of the tasks."""
        return tuple(self._podgroup_names), tuple(self._task_names)

    def words(self) -> Vocabulary:
        """All interned words except those of nodes."""
        return Vocabulary(
            tuple(self._around.resources),
            tuple(self._around.levels),
            constraints=self._constraints.values,
            label_sets=self.label_sets,
            cooldowns=cooldowns(self.label_sets),
            namespaces=self.namespaces,
            gangs=self._gangs.values,
            gang_groups=self._gang_groups.values,
            gathers=self._gathers.values,
        )

    @property
    def namespaces(self) -> tuple[str, ...]:
        """All namespaces."""
        return self._namespaces.values

    @property
    def label_sets(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """All sets of task labels."""
        return self._label_sets.values

    def shapes(self) -> Shapes:
        """The shapes of all tasks."""
        new = self._shapes.values
        wide = len(self._around.resources)
        request = np.array([request for request, _, _ in new], np.int64).reshape(len(new), wide)
        constraint, on_card = ([each[at] for each in new] for at in (1, 2))
        return Shapes(frozen(request, np.int64), frozen(constraint, np.int32), frozen(on_card, np.int64))

    def podgroups(self) -> Podgroups:
        """The podgroups."""
        row = {name: at for at, name in enumerate(self._gangs.values)}
        gang = np.array([row.get(name, NONE) for name in self._podgroup_names], np.int32)
        order = ranks(self._podgroups.columns.get("created", []), self._podgroup_names)
        return self._podgroups.table(Podgroups, len(self._around.resources), order=order, gang=gang)

    def roles(self) -> Roles:
        """The roles."""
        return self._roles.table(Roles)

    def subgroups(self) -> Subgroups:
        """The subgroups."""
        return self._subgroups.table(Subgroups)

    def tasks(self) -> Tasks:
        """The tasks."""
        order = ranks(self._tasks.columns.get("created", []), self._task_names)
        return self._tasks.table(Tasks, order=order, number=numbers(self._task_names))


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


def _or_none(number: int | None) -> int:
    return NONE if number is None else number


def _or_nan(number: float | None) -> float:
    return float("nan") if number is None else number
