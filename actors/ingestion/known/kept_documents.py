"""Documents that later messages refer to, and the newest revision of things without a column for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgpack
from pydantic import BaseModel

from actors.cluster_file.bounds import size_of
from actors.cluster_file.documents import (
    DisruptionBudgetDocument,
    PriorityClassDocument,
    QueueDocument,
    TopologyDocument,
)
from actors.columns.compile import priority_classes
from actors.columns.node_order import Homes
from actors.columns.task_columns import PriorityClass
from pipeline.cluster.arrays import NONE

Section = Literal["nodes", "queues", "priority_classes", "disruption_budgets", "podgroups"]
_SECTIONS: tuple[Section, ...] = ("nodes", "queues", "priority_classes", "disruption_budgets", "podgroups")
#: Bytes of a revision with its key.
_REVISION = 256
Model = TypeVar("Model", bound=BaseModel)


def plain(document: BaseModel) -> dict[str, Any]:
    """A document as plain data, what was not stated left out."""
    return document.model_dump(mode="json", exclude_unset=True, exclude_none=True)


def understood(model: type[Model], document: Mapping[str, Any]) -> Model:
    """A kept document, which was valid, as a model again."""
    return model.model_validate(document, extra="ignore")


class KeptDocuments:
    """Packed documents by section and name; podgroups without their tasks.

    Attributes
    ----------
    topology
        The topology's document, None without one.
    revisions
        The newest revision of what has no column for it, by ``section/name``; for the list and the topology, by
        ``fleet`` and ``topology``.
    """

    def __init__(self) -> None:
        self._packed: dict[Section, dict[str, bytes]] = {section: {} for section in _SECTIONS}
        self._topology: TopologyDocument | None = None
        self._topology_bytes = 0
        self._homes: Homes | None = None
        self.revisions: dict[str, int] = {}
        self._models: dict[str, Any] = {}
        self._packed_bytes = 0

    # -- documents ---------------------------------------------------------------------------------------------

    def names(self, section: Section) -> Collection[str]:
        """Names of what is kept."""
        return self._packed[section].keys()

    def keep(self, section: Section, name: str, document: Mapping[str, Any]) -> None:
        """Remember a document."""
        packed = msgpack.packb(dict(document))
        self._packed_bytes += len(packed) - self.text_of(section, name)
        self._packed[section][name] = packed
        self._models.pop(section, None)

    def forget(self, section: Section, name: str) -> None:
        """Forget a document whose thing is gone."""
        self._packed_bytes -= self.text_of(section, name)
        del self._packed[section][name]
        self._models.pop(section, None)

    def text_of(self, section: Section, name: str) -> int:
        """Bytes of a document; 0 if none is kept."""
        return len(self._packed[section].get(name, b""))

    @property
    def text(self) -> int:
        """Bytes of all documents and revisions."""
        return self._packed_bytes + self._topology_bytes + _REVISION * len(self.revisions)

    @property
    def text_of_topology(self) -> int:
        """Bytes of the names in the topology, also of nodes that have left; 0 without one."""
        return self._topology_bytes

    def read(self, section: Section, name: str) -> dict[str, Any]:
        """A document that was kept.

        Raises
        ------
        KeyError
            If none is kept by this name.
        """
        read: dict[str, Any] = msgpack.unpackb(self._packed[section][name])
        return read

    def read_all(self, section: Section) -> list[dict[str, Any]]:
        """All documents of a section, by name, so that the order in which they came does not matter."""
        return [self.read(section, name) for name in sorted(self._packed[section])]

    @property
    def topology(self) -> TopologyDocument | None:
        """The newest topology."""
        return self._topology

    @topology.setter
    def topology(self, document: TopologyDocument | None) -> None:
        self._topology, self._homes = document, None
        self._topology_bytes = size_of(document).text

    @property
    def present_topology(self) -> TopologyDocument | None:
        """The topology without the names of nodes that have left; `topology` still has them, for when they return."""
        known, nodes = self._topology, self._packed["nodes"]
        if known is None or known.domains is None or all(name in nodes for one in known.domains for name in one.nodes):
            return known
        there = [
            one.model_copy(update={"nodes": tuple(name for name in one.nodes if name in nodes)})
            for one in known.domains
        ]
        return known.model_copy(update={"domains": tuple(there)})

    # -- what follows from them, until one of them changes -----------------------------------------------------

    @property
    def homes(self) -> Homes:
        """Which domain each node is in."""
        if self._homes is None:
            self._homes = Homes(self._topology)
        return self._homes

    def queues(self) -> Sequence[QueueDocument]:
        """All queues."""
        return self._all("queues", QueueDocument)

    def budgets(self) -> Sequence[DisruptionBudgetDocument]:
        """All disruption budgets."""
        return self._all("disruption_budgets", DisruptionBudgetDocument)

    def classes(self) -> Mapping[str, PriorityClass]:
        """All priority classes by name."""
        return priority_classes(self._all("priority_classes", PriorityClassDocument))

    def _all(self, section: Section, model: type[Model]) -> list[Model]:
        if section not in self._models:
            self._models[section] = [understood(model, one) for one in self.read_all(section)]
        found: list[Model] = self._models[section]
        return found

    # -- revisions ---------------------------------------------------------------------------------------------

    def revision(self, section: str, name: str) -> int:
        """The newest revision of an object; NONE for one that is not known."""
        return self.revisions.get(f"{section}/{name}", NONE)

    def is_newer(self, section: str, name: str, revision: int) -> bool:
        """Whether a revision is above the last one of its object; it is then noted."""
        if revision <= self.revision(section, name):
            return False
        self.revisions[f"{section}/{name}"] = revision
        return True

    def revisions_of_kept(self, others: Iterable[str]) -> dict[str, int]:
        """Revisions of what is kept, and of ``others``."""
        kept = {f"{section}/{name}" for section, documents in self._packed.items() for name in documents} | set(others)
        return {key: revision for key, revision in self.revisions.items() if key in kept}

    # -- checkpoints -------------------------------------------------------------------------------------------

    def copied(self) -> KeptDocuments:
        """A copy that can be changed independently."""
        made = KeptDocuments()
        made._packed = {section: dict(documents) for section, documents in self._packed.items()}
        made._packed_bytes, made._topology_bytes = self._packed_bytes, self._topology_bytes
        made._topology, made._homes, made.revisions = self._topology, self._homes, dict(self.revisions)
        return made

    def packable(self) -> list[Any]:
        """As plain data."""
        return [self._packed, plain(self._topology) if self._topology is not None else None, self.revisions]

    @classmethod
    def of_packable(cls, given: list[Any]) -> KeptDocuments:
        """The documents that ``packable`` has given."""
        made = cls()
        made._packed, topology, made.revisions = given
        made._packed_bytes = sum(len(packed) for section in made._packed.values() for packed in section.values())
        made.topology = understood(TopologyDocument, topology) if topology is not None else None
        return made
