"""Podgroups as messages describe them: a document, tasks, and roles that only tasks name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.cluster_file.documents import PodgroupDocument, RoleDocument, SubgroupDocument, TaskDocument
from actors.documents.alike import Alike
from actors.ingestion.known.kept_documents import plain, understood
from pipeline.cluster.vocabulary import HOSTNAME

#: Key of a kept document: only its tasks name its roles.
_WORDS = "role_words"


@dataclass(slots=True)
class Described:
    """A podgroup as one or more messages describe it.

    Attributes
    ----------
    document
        Without tasks.
    only_words
        Whether only its tasks name its roles; it states none.
    revision
        Of the podgroup's own description; of its row, if only tasks were described.
    tasks
        Lists of them, with the revision that each came with.
    """

    document: PodgroupDocument
    only_words: bool
    revision: int
    tasks: list[tuple[Alike[TaskDocument], int]] = field(default_factory=list)

    @classmethod
    def anew(cls, document: PodgroupDocument, before: Described | None, revision: int) -> Described:
        """A podgroup's own description; tasks in it have no revision: theirs are counted from their own messages on.

        Parameters
        ----------
        before
            The description before. Roles that only tasks name are kept when it is described again.
        """
        only_words = not document.roles
        roles = before.document.roles if only_words and before is not None and before.only_words else document.roles
        made = cls(document.model_copy(update={"tasks": Alike.of(()), "roles": roles}), only_words, revision)
        if before is not None:
            made.tasks = before.tasks
        made.add(document.tasks, 0)
        return made

    @classmethod
    def kept(cls, said: Mapping[str, Any], revision: int) -> Described:
        """The podgroup that ``to_keep`` has given, without tasks."""
        document = understood(PodgroupDocument, {key: value for key, value in said.items() if key != _WORDS})
        return cls(document, bool(said.get(_WORDS)), revision)

    def add(self, tasks: Alike[TaskDocument], revision: int) -> None:
        """Add tasks, or series of tasks that one document describes."""
        known = self.document.roles
        words = [kind.role for kind in tasks.kinds if kind.role is not None and kind.role not in known]
        if words and self.only_words:
            roles = {**known, **{word: RoleDocument() for word in words}}
            self.document = self.document.model_copy(update={"roles": roles})
        self.tasks.append((tasks, revision))

    def whole(self) -> PodgroupDocument:
        """Its document with the tasks that were described."""
        return self.document.model_copy(update={"tasks": Alike.joined([tasks for tasks, _ in self.tasks])})

    @property
    def revisions(self) -> list[int]:
        """The revision of each of these tasks, or series of tasks."""
        return [revision for tasks, revision in self.tasks for _ in range(len(tasks))]

    def to_keep(self) -> dict[str, Any]:
        """As plain data, without tasks."""
        said = plain(self.document)
        said.pop("tasks", None)
        return {**said, _WORDS: True} if self.only_words else said

    @property
    def selects_by_hostname(self) -> bool:
        """Whether a task selects nodes by the label that every node has."""
        return any(
            HOSTNAME in kind.node_selector or any(one.key == HOSTNAME for term in kind.node_affinity for one in term)
            for tasks, _ in self.tasks
            for kind in tasks.kinds
        )

    @property
    def roles(self) -> list[str]:
        """Names of its roles in the order of their rows."""
        return list(self.document.roles)

    @property
    def subgroups(self) -> list[str]:
        """Names of its subgroups in the order of their rows: parents before children."""
        return list(_names(self.document.subgroups))


def _names(subgroups: Sequence[SubgroupDocument]) -> Iterator[str]:
    for one in subgroups:
        yield one.name
        yield from _names(one.children or ())
