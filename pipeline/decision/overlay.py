"""Recorded decisions that the snapshot does not contain yet: room that they promise is not free."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.cluster.arrays import Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.events import Changes, Decided
from pipeline.cluster.updates.fold import fold
from pipeline.decision.decided import decision_of
from pipeline.decision.statement import Statement
from pipeline.records import replace


@dataclass(frozen=True, slots=True)
class Outstanding:
    """A recorded decision, and the epoch of its rows."""

    epoch: int
    made: Decided


def outstanding(
    made: Statement, snapshot: Snapshot, sequence: int, now: float, spared: Rows | None = None
) -> Outstanding:
    """A statement on ``snapshot`` that was recorded as decision ``sequence``."""
    return Outstanding(snapshot.epoch, decision_of(made, snapshot, sequence, now, spared))


def _folded(snapshot: Snapshot, decisions: tuple[Outstanding, ...]) -> Snapshot:
    for one in decisions:
        snapshot = fold(snapshot, Changes(decided=one.made))
    return snapshot


def _numbered(snapshot: Snapshot, revision: int) -> Snapshot:
    if snapshot.revision == revision:
        return snapshot
    # No revision that the ingestor ever made: those are not negative.
    return replace(snapshot, revision=-1 - snapshot.decided)


class Overlay:
    """The newest snapshot with all decisions that it does not contain, in the order in which they were recorded.

    Events may overtake decisions; the fold leaves what has happened already as it is. The overlaid snapshot is kept,
    so another decision costs one fold.
    """

    def __init__(self) -> None:
        self._base: Snapshot | None = None
        self._done: tuple[Outstanding, ...] = ()
        self._top: Snapshot | None = None

    def of(self, snapshot: Snapshot, decisions: tuple[Outstanding, ...]) -> Snapshot:
        """The snapshot with the decisions folded in."""
        done = len(self._done)
        same = all(one is other for one, other in zip(self._done, decisions[:done], strict=False))
        if self._base is not snapshot or self._top is None or len(decisions) < done or not same:
            self._top, done = snapshot, 0
        self._top = _folded(self._top, decisions[done:])
        self._base, self._done = snapshot, decisions
        return _numbered(self._top, snapshot.revision)


def not_in(decisions: tuple[Outstanding, ...], snapshot: Snapshot) -> tuple[Outstanding, ...]:
    """The decisions that the snapshot does not contain."""
    return tuple(one for one in decisions if one.made.seq > snapshot.decided)
