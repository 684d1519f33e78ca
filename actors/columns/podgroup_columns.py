"""Podgroups, their parts and their tasks as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from actors.cluster_file.cross_references import SYSTEM_CLASSES
from actors.cluster_file.documents import (
    GatheredLevels,
    PodgroupDocument,
    SubgroupDocument,
    TaskDocument,
    WantedLevels,
    in_row_order,
)
from actors.cluster_file.task_documents import NEVER
from actors.columns.node_columns import vector
from actors.columns.row_builder import Interned, RowBuilder, ranks
from actors.columns.task_columns import Membership, PriorityClass, Surroundings, TaskRows, cooldowns
from actors.documents.alike import Alike
from pipeline.cluster.arrays import NONE, UNSET
from pipeline.cluster.tables import MATCH_POLICY_NAMES, PHASE_NAMES, Podgroups, Roles, Shapes, Subgroups, Tasks
from pipeline.cluster.vocabulary import Gather, Vocabulary

#: All tasks in this namespace are critical to the cluster.
SYSTEM_NAMESPACE = "kube-system"


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
        self._not_gathered = GatheredLevels()
        self._namespaces = Interned[str]()
        self._podgroups = RowBuilder()
        self._roles = RowBuilder()
        self._subgroups = RowBuilder()
        self._tasks = TaskRows(around, self._namespaces)
        self._podgroup_names: list[str] = []

    def add_podgroup(self, document: PodgroupDocument) -> Membership:
        """Add a podgroup and its parts, without its tasks."""
        row = len(self._podgroups)
        given = self._classes[document.priority_class] if document.priority_class is not None else PriorityClass(0)
        preempts = given.preempts if document.preemption_policy is None else document.preemption_policy != NEVER
        priority = given.value if document.priority is None else document.priority
        self._podgroup_names.append(document.full_name)
        self._podgroups.add(self._row_of(document) | {"priority": priority, "may_preempt": preempts})
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

    def _row_of(self, document: PodgroupDocument) -> dict[str, Any]:
        """The columns of a podgroup that its priority class says nothing of."""
        wanted = document.topology or self._not_gathered
        return {
            "queue": self._around.queue_row(document.queue),
            "namespace": self._namespaces.row(document.namespace),
            "preemptible": document.preemptible is not False,
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
        """Add the roles, also those that only tasks name, in the order of their names; rows by name."""
        minimum = {name: role.min for name, role in document.roles.items()}
        for task in document.tasks.kinds:
            if task.role is not None:
                minimum.setdefault(task.role, 0)
        first = len(self._roles)
        for name in sorted(minimum):
            self._roles.add({"podgroup": podgroup, "min_available": minimum[name]})
        return {name: first + at for at, name in enumerate(sorted(minimum))}

    def _add_subgroups(
        self, podgroup: int, subgroups: Sequence[SubgroupDocument], parent: int, rows: dict[str, int]
    ) -> None:
        for document in in_row_order(subgroups):
            row = rows[document.name] = len(self._subgroups)
            least = 1 if document.min_available is None else document.min_available
            if document.children is not None:  # where there are none, it is a leaf that no task can be in
                least = 0 if document.children else document.min_subgroups or 0
            self._subgroups.add(
                {
                    "podgroup": podgroup,
                    "parent": parent,
                    "min_available": least,
                    "min_subgroups": _or_none(document.min_subgroups),
                    **self._levels(document.topology or WantedLevels()),
                }
            )
            self._add_subgroups(podgroup, document.children or (), row, rows)

    def add_tasks(self, group: Membership, documents: Alike[TaskDocument], revisions: Sequence[int] = ()) -> None:
        """Add the tasks of a podgroup; without ``revisions`` all have 0."""
        self._tasks.add(group, documents, revisions)

    def _levels(self, wanted: WantedLevels) -> dict[str, int]:
        return {
            "required_level": NONE if wanted.required is None else self._level_row[wanted.required],
            "preferred_level": NONE if wanted.preferred is None else self._level_row[wanted.preferred],
        }

    # -- the tables -------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the podgroups and of the tasks."""
        return tuple(self._podgroup_names), self._tasks.names

    def words(self) -> Vocabulary:
        """All interned words except those of nodes."""
        return Vocabulary(
            tuple(self._around.resources),
            tuple(self._around.levels),
            constraints=self._tasks.constraints,
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
        return self._tasks.label_sets

    def shapes(self) -> Shapes:
        """The shapes of all tasks."""
        return self._tasks.shapes()

    def podgroups(self) -> Podgroups:
        """The podgroups."""
        row = {name: at for at, name in enumerate(self._gangs.values)}
        gang = np.array([row.get(name, NONE) for name in self._podgroup_names], np.int32)
        order = ranks(self._podgroups.columns.get("created", []), self._podgroup_names)
        return self._podgroups.table(Podgroups, {"order": order, "gang": gang}, wide=len(self._around.resources))

    def roles(self) -> Roles:
        """The roles."""
        return self._roles.table(Roles)

    def subgroups(self) -> Subgroups:
        """The subgroups."""
        return self._subgroups.table(Subgroups)

    def tasks(self) -> Tasks:
        """The tasks."""
        return self._tasks.tasks()


def _or_none(number: int | None) -> int:
    return NONE if number is None else number


def _or_nan(number: float | None) -> float:
    return float("nan") if number is None else number
