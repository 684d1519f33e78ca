"""Who was searched for in vain or whose plan was refused, and when to search again: not all at once.

After a vain search there must be news as well. A refusal is itself news: what the plan was made on is out of date.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from pipeline.cluster.snapshot import Snapshot

Unit = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A unit without a plan: up to which revision, until when (seconds) at least, and how often in a row."""

    revision: int
    until: float
    times: int


class Backoff:
    """Pauses grow with every failure in a row, and with the size of the gang, whose searches cost the most.

    Parameters
    ----------
    first_s, cap_s
        The shortest and the longest pause of a single task.
    seed
        Of the jitter, which keeps gangs that failed together from coming back together.
    """

    def __init__(self, *, first_s: float = 0.2, cap_s: float = 10.0, seed: int = 0) -> None:
        self._first_s, self._cap_s, self._draw = first_s, cap_s, random.Random(seed)
        self._waiting: dict[Unit, Waiting] = {}
        self._epoch = -1

    def holds(self, unit: Unit, snapshot: Snapshot, now: float) -> bool:
        """Whether the unit is not to be searched for yet."""
        if snapshot.epoch != self._epoch:
            self._waiting, self._epoch = {}, snapshot.epoch
        found = self._waiting.get(unit)
        return found is not None and (now < found.until or snapshot.revision <= found.revision)

    def vain(self, unit: Unit, tasks: int, snapshot: Snapshot, now: float) -> None:
        """A search on this snapshot found nothing."""
        self._pause(unit, tasks, snapshot.revision, now)

    def refused(self, unit: Unit, tasks: int, snapshot: Snapshot, now: float) -> None:
        """A plan made on this snapshot was refused."""
        self._pause(unit, tasks, snapshot.revision - 1, now)

    def _pause(self, unit: Unit, tasks: int, revision: int, now: float) -> None:
        before = self._waiting.get(unit)
        times = before.times + 1 if before is not None else 1
        scale = 1.0 + math.log2(max(1, tasks)) / 4.0
        pause_s = min(self._first_s * 2.0 ** min(times - 1, 16), self._cap_s) * scale
        self._waiting[unit] = Waiting(revision, now + pause_s * (1.0 + 0.25 * self._draw.random()), times)

    def forget(self, unit: Unit) -> None:
        """The unit got what it needed."""
        self._waiting.pop(unit, None)

    def keep(self, units: set[Unit]) -> None:
        """Forget all others: they starve no more."""
        self._waiting = {unit: found for unit, found in self._waiting.items() if unit in units}

    def next_at(self, snapshot: Snapshot) -> float | None:
        """When a unit that has had its news may be searched for again, seconds."""
        return min(
            (found.until for found in self._waiting.values() if found.revision < snapshot.revision), default=None
        )
