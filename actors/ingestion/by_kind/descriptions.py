"""Podgroups as messages describe them: a document, tasks, and roles that only tasks name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from actors.cluster_file.documents import PodgroupDocument, RoleDocument, SubgroupDocument, TaskDocument, in_row_order
from actors.cluster_file.task_documents import expanded
from actors.documents.alike import Alike
from actors.ingestion.known.kept_documents import plain, understood
from pipeline.cluster.vocabulary import HOSTNAME


class DescribedTasks(NamedTuple):
    """A list of tasks that came with one message, its revision for them, and its place among the messages."""

    tasks: Alike[TaskDocument]
    revision: int
    place: int

    @property
    def revisions(self) -> list[int]:
        """The revision of each of these tasks, or series of tasks."""
        return [self.revision] * len(self.tasks)

    @property
    def places(self) -> list[int]:
        """For each task its message's place among the messages."""
        return [self.place] * sum(expanded(self.tasks)[2])


@dataclass(slots=True)
class Described:
    """A podgroup as one or more messages describe it.

    Attributes
    ----------
    document
        Without tasks. Its roles stand by name, also those that it does not state, and that a task has named.
    revision
        Of the podgroup's own description; of its row, if only tasks were described.
    at
        When it was described itself, in seconds; NaN if only tasks were.
    tasks
        Lists of them, in the order in which they came.
    """

    document: PodgroupDocument
    revision: int
    at: float = math.nan
    tasks: list[DescribedTasks] = field(default_factory=list)

    @classmethod
    def anew(
        cls, document: PodgroupDocument, before: Described | None, revision: int, at: float, place: int = 0
    ) -> Described:
        """A podgroup's own description; tasks in it have no revision: theirs are counted from their own messages on.

        Parameters
        ----------
        before
            The description before. Its roles are kept without a minimum, since tasks may have them.
        """
        made = cls(document.model_copy(update={"tasks": Alike.of(())}), revision, at)
        if before is not None:
            made._name_roles(before.document.roles)
            made.tasks = before.tasks
        made.add(document.tasks, 0, place)
        return made

    @classmethod
    def kept(cls, said: Mapping[str, Any], revision: int) -> Described:
        """The podgroup that ``to_keep`` has given, without tasks."""
        return cls(understood(PodgroupDocument, said), revision)

    def add(self, tasks: Alike[TaskDocument], revision: int, place: int) -> None:
        """Add tasks, or series of tasks that one document describes."""
        self._name_roles(kind.role for kind in tasks.kinds if kind.role is not None)
        self.tasks.append(DescribedTasks(tasks, revision, place))

    def _name_roles(self, names: Iterable[str]) -> None:
        """Add the roles that are not known yet, without a minimum; all by name, as their rows are."""
        roles = {name: RoleDocument() for name in names} | self.document.roles
        by_name = sorted(roles)
        if by_name != list(self.document.roles):
            self.document = self.document.model_copy(update={"roles": {name: roles[name] for name in by_name}})

    def whole(self) -> PodgroupDocument:
        """Its document with the tasks that were described."""
        return self.document.model_copy(update={"tasks": Alike.joined([one.tasks for one in self.tasks])})

    def to_keep(self) -> dict[str, Any]:
        """As plain data, without tasks."""
        said = plain(self.document)
        said.pop("tasks", None)
        return said

    @property
    def selects_by_hostname(self) -> bool:
        """Whether a task selects nodes by the label that every node has."""
        return any(
            HOSTNAME in kind.node_selector or any(one.key == HOSTNAME for term in kind.node_affinity for one in term)
            for one in self.tasks
            for kind in one.tasks.kinds
        )

    @property
    def roles(self) -> list[str]:
        """Names of its roles in the order of their rows."""
        return list(self.document.roles)

    @property
    def subgroups(self) -> list[str]:
        """Names of its subgroups in the order of their rows: parents before children."""
        return list(_names(self.document.subgroups))


def _names(subgroups: tuple[SubgroupDocument, ...]) -> Iterator[str]:
    for one in in_row_order(subgroups):
        yield one.name
        yield from _names(one.children or ())
