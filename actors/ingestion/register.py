"""What the columns leave out: names, the documents that later ones build on, and decisions that may be taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgpack

NONE = -1
#: Sections whose documents are kept, by name.
KEPT = ("nodes", "queues", "priority_classes", "disruption_budgets", "podgroups")


@dataclass(slots=True)
class StandingPlan:
    """A decision whose effects may still be taken back: its entry, and (task, incarnation) of what it did."""

    entry: str
    evictions: list[tuple[str, int]]
    nominations: list[tuple[str, int]]


@dataclass(slots=True)
class StandingClaim:
    """A domain kept for a podgroup until ``expires_at`` (seconds): the decision's entry, and the domain's name."""

    entry: str
    domain: str
    expires_at: float


@dataclass(slots=True)
class Register:
    """Names by row and rows by name, of one epoch; within it they only grow.

    Attributes
    ----------
    tasks, podgroups, nodes, queues, domains
        Names by row; of several rows of one name the last is meant by it.
    documents
        Section to name to the packed document; podgroups without their tasks.
    topology
        The topology's document, None without one.
    revisions
        Of what has no column for it: ``section/name``.
    plans
        Decisions that may still be taken back, by plan id.
    claims
        Domains that are kept for a podgroup, by its name.
    overdue
        Victims that did not end in time, by name: their incarnation, and until when (seconds) nobody counts on them.
    listed
        Whether there was a full list.
    sequence
        Number of the fleet's last entry, 0 where it does not count them.
    """

    tasks: list[str] = field(default_factory=list)
    podgroups: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    domains: list[str] = field(default_factory=list)
    documents: dict[str, dict[str, bytes]] = field(default_factory=lambda: {section: {} for section in KEPT})
    topology: dict[str, Any] | None = None
    revisions: dict[str, int] = field(default_factory=dict)
    plans: dict[str, StandingPlan] = field(default_factory=dict)
    claims: dict[str, StandingClaim] = field(default_factory=dict)
    overdue: dict[str, tuple[int, float]] = field(default_factory=dict)
    listed: bool = False
    sequence: int = 0
    _rows: dict[str, dict[str, int]] = field(default_factory=dict)

    def row(self, section: str, name: str) -> int:
        """The row of a name in ``tasks``, ``podgroups``, ``nodes`` or ``queues``; NONE for one that is not known."""
        return self._index(section).get(name, NONE)

    def append(self, section: str, names: Iterable[str]) -> None:
        """Name the rows that were appended."""
        known, index = getattr(self, section), self._index(section)
        for name in names:
            index[name] = len(known)
            known.append(name)

    def rename(self, section: str, names: Iterable[str]) -> None:
        """Name all rows anew."""
        setattr(self, section, list(names))
        self._rows.pop(section, None)

    def copied(self) -> Register:
        """Names that can be changed without these."""
        return Register.unpack(self.pack())

    def _index(self, section: str) -> dict[str, int]:
        if section not in self._rows:
            self._rows[section] = {name: row for row, name in enumerate(getattr(self, section))}
        return self._rows[section]

    def keep(self, section: str, name: str, document: Mapping[str, Any]) -> None:
        """Remember a document."""
        self.documents[section][name] = msgpack.packb(dict(document))

    def kept(self, section: str, name: str) -> dict[str, Any]:
        """A document that was kept."""
        read: dict[str, Any] = msgpack.unpackb(self.documents[section][name])
        return read

    def all_kept(self, section: str) -> list[dict[str, Any]]:
        """All documents of a section, by name, so that the order in which they came does not matter."""
        return [self.kept(section, name) for name in sorted(self.documents[section])]

    def is_news(self, key: str, revision: int) -> bool:
        """Whether a revision is above the last of its object, which it then is."""
        if revision <= self.revisions.get(key, NONE):
            return False
        self.revisions[key] = revision
        return True

    def standing_entries(self) -> list[str]:
        """Entries of the decisions that may still be taken back."""
        return [one.entry for some in (self.plans, self.claims) for one in some.values()]

    def pack(self) -> bytes:
        """Everything, as bytes."""
        plans = {key: [plan.entry, plan.evictions, plan.nominations] for key, plan in self.plans.items()}
        claims = {key: [claim.entry, claim.domain, claim.expires_at] for key, claim in self.claims.items()}
        packed: bytes = msgpack.packb(
            [
                self.tasks, self.podgroups, self.nodes, self.queues, self.domains, self.documents, self.topology,
                self.revisions, plans, claims, self.overdue, self.listed, self.sequence,
            ]
        )  # fmt: skip
        return packed

    @classmethod
    def unpack(cls, data: bytes | memoryview) -> Register:
        """Everything, from bytes."""
        *plain, plans, claims, overdue, listed, sequence = msgpack.unpackb(data, strict_map_key=False)
        tasks, podgroups, nodes, queues, domains, documents, topology, revisions = plain
        standing = {
            key: StandingPlan(entry, [(t, i) for t, i in evictions], [(t, i) for t, i in nominations])
            for key, (entry, evictions, nominations) in plans.items()
        }
        late = {task: (incarnation, until) for task, (incarnation, until) in overdue.items()}
        named = (tasks, podgroups, nodes, queues, domains, documents, topology, revisions)
        kept = {key: StandingClaim(*claim) for key, claim in claims.items()}
        return cls(*named, standing, kept, late, listed, sequence)
