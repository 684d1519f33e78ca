"""The state that messages change: the snapshot, its names, and what was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from actors.broker.bus import id_order
from actors.ingestion.register import NONE, Register
from actors.protocol.envelopes import Message
from pipeline.cluster.arrays import frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.events import Changes, TaskNews
from pipeline.cluster.updates.fold import fold

TaskRow = tuple[int, int, int, int, int, int, float]
"""Row, status, node, card, incarnation, revision, time."""


@dataclass(slots=True)
class LiveState:
    """The newest snapshot with its names; a reader that holds an older one is not disturbed.

    Attributes
    ----------
    refused
        Messages that could not be meant, with the reason, in the order in which they came.
    """

    snapshot: Snapshot
    names: Register
    refused: list[tuple[Message, str]] = field(default_factory=list)

    def fold(self, **changes: Any) -> None:
        """Fold changes within the epoch."""
        self.snapshot = fold(self.snapshot, Changes(**changes))

    def refuse(self, message: Message, reason: str) -> None:
        """A message that cannot be meant."""
        self.refused.append((message, reason))

    def is_news(self, message: Message, section: str, name: str) -> bool:
        """Whether the message is newer than what was last heard of its object, which it then is."""
        return self.names.is_news(f"{section}/{name}", message.revision)

    def node(self, name: str) -> int:
        """The row of a node that is there; NONE for one that is not, or has left."""
        return self.names.row("nodes", name) if name in self.names.documents["nodes"] else NONE

    def begin_epoch(self, snapshot: Snapshot) -> None:
        """Go on with a state whose rows are others; the names that readers of older snapshots hold stay as they are."""
        self.snapshot, self.names = snapshot, self.names.copied()


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
