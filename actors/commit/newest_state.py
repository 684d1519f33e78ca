"""The state on which plans are judged: the newest snapshot, and our own decisions that it does not contain."""

from __future__ import annotations

from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.overlay import Outstanding, Overlay, not_in


class NewestState:
    """The newest snapshot, and the outstanding decisions."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self._outstanding: tuple[Outstanding, ...] = ()
        self._overlay = Overlay()

    def hear(self, snapshot: Snapshot) -> None:
        """Take a newer snapshot; decisions that it contains are not outstanding any more."""
        self.snapshot = snapshot
        self._outstanding = not_in(self._outstanding, snapshot)

    def lose(self) -> None:
        """Forget the snapshot: news was lost, and no full list has come yet."""
        self.snapshot = None

    def add(self, recorded: Outstanding) -> None:
        """Add a decision that was recorded, or is about to be."""
        self._outstanding = (*self._outstanding, recorded)

    def take_back(self, recorded: int) -> None:
        """Drop the decisions after this number, which were not recorded after all."""
        self._outstanding = tuple(one for one in self._outstanding if one.made.seq <= recorded)

    def forget(self) -> None:
        """Forget outstanding decisions, because the lease was lost."""
        self._outstanding = ()

    def over(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot with the outstanding decisions folded in."""
        return self._overlay.of(snapshot, self._outstanding)

    def contains(self, sequence: int) -> bool:
        """Whether a decision is in the newest snapshot, or outstanding."""
        folded = self.snapshot.decided if self.snapshot is not None else 0
        return sequence <= folded or any(one.made.seq == sequence for one in self._outstanding)

    def unready(self, last: int, recorded: int) -> str | None:
        """Why no plan can be judged on it, or None.

        It must contain the decision ``last``, and none behind the last that the ledger has ``recorded``.
        """
        if self.snapshot is None:
            return "no snapshot has arrived yet, or the fleet is to be listed first"
        if self.snapshot.decided < last:
            return "earlier decisions are not folded yet"
        if self.snapshot.decided > recorded:
            return "the broker has lost decisions that the state contains"
        if any(one.epoch != self.snapshot.epoch for one in self._outstanding):
            return "rows were renumbered and our own decisions are not folded yet"
        return None
