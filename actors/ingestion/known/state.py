"""The state that messages change: the snapshot, what its columns leave out, and what was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgpack
import numpy as np

from actors.broker.bus import id_order
from actors.cluster_file.bounds import Size
from actors.cluster_file.documents import NodeDocument, PodgroupDocument, QueueDocument
from actors.ingestion.known.active_decisions import ActiveDecisions
from actors.ingestion.known.kept_documents import KeptDocuments, Section
from actors.ingestion.known.measured_words import MeasuredWords
from actors.ingestion.known.news_log import NewsLog
from actors.ingestion.known.row_names import RowNames
from actors.protocol.bodies import TaskUpserted, TopologyChanged
from actors.protocol.envelopes import Message
from pipeline.cluster import checkpoint
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.events import Changes, NewRows, News, NodesRelaid, QueuesRelaid, TaskNews
from pipeline.cluster.updates.fold import fold
from pipeline.errors import StateRefused

#: The format of a whole checkpoint: the snapshot's columns, then what they leave out.
SCHEMA = f"{checkpoint.SCHEMA}+register-11"

#: Kinds of events whose body names their object: its section, and the key.
_NAMED: Mapping[str, tuple[Section, str]] = {
    "node_upserted": ("nodes", "name"), "node_removed": ("nodes", "node"),
    "queue_upserted": ("queues", "name"), "queue_removed": ("queues", "queue"),
    "priority_class_upserted": ("priority_classes", "name"),
    "podgroup_removed": ("podgroups", "podgroup"), "budget_removed": ("disruption_budgets", "budget"),
}  # fmt: skip

#: Row, status, node, card, incarnation, revision, time (seconds).
TaskRow = tuple[int, int, int, int, int, int, float]


@dataclass(slots=True)
class LiveState:
    """The newest snapshot and what goes with it; older snapshots stay valid for their readers.

    Attributes
    ----------
    listed
        Whether there was a full list.
    sequence
        Number of the fleet's last entry; NONE if the fleet does not number them.
    writer
        The process that writes for the fleet, by the name in its entries; empty if they have none.
    holes
        Entries of the fleet that never came, and that no list has made up for yet.
    unheard
        Entries of another writer that were refused, and that no list has made up for yet.
    anew
        Whether the fleet has counted its entries or its lists anew, and no list since then had a revision above all
        others: its revisions may begin anew as well.
    list_fingerprints
        Digests of the parts of the newest list, by which one that comes again is known.
    lists
        Lists taken in by this process: between two of them tasks and podgroups keep their rows.
    refused
        Refused messages, with the reason, in the order in which they came.
    elsewhere
        How many tasks this process has heard to have started on another node than was decided.
    measured
        Measures how much text its vocabulary holds.
    log
        What was folded since this state began.
    known, ahead
        The newest snapshot without new rows, and these. They are folded when the newest snapshot is first asked for:
        readers that fold the same news get it before that, and need not wait.
    """

    known: Snapshot
    names: RowNames
    documents: KeptDocuments = field(default_factory=KeptDocuments)
    decisions: ActiveDecisions = field(default_factory=ActiveDecisions)
    listed: bool = False
    sequence: int = NONE
    holes: int = 0
    unheard: int = 0
    anew: bool = False
    list_fingerprints: frozenset[bytes] = frozenset()
    writer: str = ""
    lists: int = 0
    refused: list[tuple[Message, str]] = field(default_factory=list)
    elsewhere: int = 0
    measured: MeasuredWords = field(default_factory=MeasuredWords)
    log: NewsLog = field(default_factory=NewsLog)
    ahead: NewRows | None = None

    @property
    def whole(self) -> bool:
        """Whether there was a full list, and nothing was lost that none has made up for: else nothing is decided.

        What another writer said is not a part of the state, whether it is ever heard or not.
        """
        return self.listed and not self.holes

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        if self.ahead is not None:
            self.known, self.ahead = fold(self.known, Changes(new_rows=self.ahead)), None
        return self.known

    @property
    def revision(self) -> int:
        """Its revision, without folding anything."""
        return self.known.revision + (self.ahead.news if self.ahead is not None else 0)

    def begin_epoch(self, relaid: NodesRelaid | QueuesRelaid, names: RowNames) -> None:
        """Go on with other rows; names that readers of older snapshots hold do not change."""
        self.fold(relaid)
        self.names = names

    def fold(self, news: News) -> None:
        """Fold news, and note it."""
        before = self.snapshot
        self.known = fold(before, news)
        if self.known is not before:
            self.log.add(news, before)

    def append(self, rows: NewRows) -> None:
        """Note new rows, which are folded once the snapshot is asked for."""
        self.log.add(Changes(new_rows=rows), self.snapshot)
        self.ahead = rows

    def refuse(self, message: Message, reason: str) -> None:
        """Refuse a message."""
        self.refused.append((message, reason))

    def is_newer(self, message: Message, section: Section, name: str) -> bool:
        """Whether the message is newer than the last one about its object; it is then noted."""
        return self.documents.is_newer(section, name, message.revision)

    def node(self, name: str) -> int:
        """The row of a present node; NONE for one that is unknown or has left."""
        return self.names.row("nodes", name) if name in self.documents.names("nodes") else NONE

    def podgroup(self, name: str) -> int:
        """The row of a present podgroup; NONE for one that is unknown or was removed."""
        row = self.names.row("podgroups", name)
        return row if row != NONE and self.snapshot.podgroups.alive[row] else NONE

    def newest(self, message: Message) -> int:
        """The newest revision of the object of an event; NONE if none is known."""
        body: Any = message.body
        match message.kind:
            case "fleet_listed":
                return self.documents.revisions.get("fleet", NONE)
            case "topology_changed":
                return self.documents.revisions.get("topology", NONE)
            case "podgroup_upserted":
                return self.documents.revision("podgroups", body.full_name)
            case "budget_upserted":
                return self.documents.revision("disruption_budgets", f"{body.namespace}/{body.name}")
            case "task_upserted":
                namespace = body.podgroup.partition("/")[0]
                return min(self._newest_of_task(f"{namespace}/{name}") for name, _ in body.task.expanded())
            case "task_started" | "task_terminating" | "task_ended":
                return self._newest_of_task(body.task)
            case kind if kind in _NAMED:
                section, key = _NAMED[kind]
                return self.documents.revision(section, getattr(body, key))
        return NONE

    def _newest_of_task(self, name: str) -> int:
        row = self.names.row("tasks", name)
        return int(self.snapshot.tasks.revision[row]) if row != NONE else NONE

    @property
    def newest_of_all(self) -> int:
        """The highest revision of any object, also of those that are gone; NONE if none is known."""
        return max(
            max(self.documents.revisions.values(), default=NONE), int(self.snapshot.tasks.revision.max(initial=NONE))
        )

    @property
    def size(self) -> Size:
        """What it holds; rows of what is gone count until a list."""
        snapshot, words = self.snapshot, self.snapshot.vocabulary
        return Size(
            tasks=len(snapshot.tasks), nodes=len(snapshot.nodes), podgroups=len(snapshot.podgroups),
            queues=len(snapshot.queues), domains=len(snapshot.topology), budgets=len(snapshot.budgets),
            shapes=len(snapshot.shapes), label_sets=len(words.label_sets), cards=snapshot.nodes.cards.shape[1],
            resources=frozenset(words.resources), label_keys=frozenset(words.label_keys),
            namespaces=frozenset(words.namespaces), text=self.documents.text + self.measured.text(words),
        )  # fmt: skip

    def less_known(self, added: Size, message: Message) -> Size:
        """What a message adds, less what it describes again."""
        body, documents = message.body, self.documents
        if isinstance(body, QueueDocument):
            return added._replace(queues=int(body.name not in documents.names("queues")))
        if isinstance(body, NodeDocument) and self.node(body.name) != NONE:
            return added._replace(nodes=0, text=max(0, added.text - documents.text_of("nodes", body.name)))
        if isinstance(body, TopologyChanged):
            domains, text = max(0, added.domains - len(self.snapshot.topology)), added.text - documents.text_of_topology
            return added._replace(domains=domains, text=max(0, text))
        if isinstance(body, PodgroupDocument):
            row = self.podgroup(body.full_name)
            known = len(self.snapshot.tasks_of(row)) if row != NONE else 0
            return added._replace(tasks=max(0, added.tasks - known), podgroups=int(row == NONE))
        if isinstance(body, TaskUpserted) and body.task.count is None:
            namespace = body.podgroup.partition("/")[0]
            return added._replace(tasks=int(self.names.row("tasks", f"{namespace}/{body.task.name}") == NONE))
        return added

    def copied(self) -> LiveState:
        """A copy that can be changed independently."""
        return replace(
            self, known=self.snapshot, ahead=None, log=NewsLog(),
            names=self.names.copied(), documents=self.documents.copied(), decisions=self.decisions.copied(),
        )  # fmt: skip

    # -- checkpoints -------------------------------------------------------------------------------------------

    def pack_register(self) -> bytes:
        """What the columns leave out, as bytes."""
        packed: bytes = msgpack.packb(
            [
                self.names.packable(), self.documents.packable(), self.decisions.packable(), self.listed,
                self.sequence, self.holes, self.unheard, self.anew, sorted(self.list_fingerprints), self.writer,
            ]
        )  # fmt: skip
        return packed

    def encode(self) -> list[bytes | memoryview]:
        """Everything, as buffers whose bytes follow one another."""
        columns = checkpoint.encode(self.snapshot)
        return [*columns, self.pack_register(), sum(map(len, columns)).to_bytes(8, "little")]

    @classmethod
    def decode(cls, data: bytes) -> LiveState:
        """Decode the bytes of `encode`; the columns are views of ``data``.

        Raises
        ------
        StateRefused
            If the bytes are anything else.
        """
        view = memoryview(data)
        at = int.from_bytes(view[-8:], "little")
        try:
            names, documents, decisions, *said = msgpack.unpackb(view[at:-8], strict_map_key=False)
            listed, sequence, holes, unheard, anew, fingerprints, writer = said
            return cls(
                checkpoint.decode(view[:at]),
                RowNames.of_packable(names),
                KeptDocuments.of_packable(documents),
                ActiveDecisions.of_packable(decisions),
                listed,
                sequence,
                holes,
                unheard,
                anew,
                frozenset(fingerprints),
                writer,
            )
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as refusal:
            raise StateRefused(f"checkpoint: expected what was encoded, found something else: {refusal!r}") from refusal


def time_of(message: Message) -> float:
    """When the broker took the message, in seconds."""
    return id_order(message.entry)[0] / 1000


def task_news(rows: Sequence[TaskRow]) -> TaskNews:
    """Rows of news as columns."""
    row, status, node, card, incarnation, revision, at = zip(*rows, strict=True)
    return TaskNews(
        frozen(row, np.int64),
        frozen(status, np.uint8),
        frozen(node, np.int32),
        frozen(card, np.int32),
        frozen(incarnation, np.int64),
        frozen(revision, np.int64),
        frozen(at, np.float64),
    )
