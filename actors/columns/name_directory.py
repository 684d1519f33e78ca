"""Names of rows, kept up to date by additions, so that names are sent once and not with every snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Rows


@dataclass(frozen=True, slots=True)
class Additions:
    """Names that a directory lacks.

    Attributes
    ----------
    epoch
        The epoch of the rows.
    follows
        The epoch that the names add to, if tasks and podgroups have the same rows in it; NONE: all names are here.
    tasks_from, podgroups_from
        Row of the first name in ``tasks`` and in ``podgroups``.
    nodes, queues, domains
        All names if the epoch is new, else empty: they do not grow within an epoch.
    budgets
        All names.
    """

    epoch: int
    follows: int
    tasks_from: int
    tasks: tuple[str, ...]
    podgroups_from: int
    podgroups: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()


class Directory:
    """The names of the rows of one epoch, those that were sent so far."""

    def __init__(self) -> None:
        self.epoch = -1
        self._tasks: list[str] = []
        self._podgroups: list[str] = []
        self._nodes: tuple[str, ...] = ()
        self._queues: tuple[str, ...] = ()
        self._domains: tuple[str, ...] = ()
        self._budgets: tuple[str, ...] = ()
        self._row_of_task: dict[str, int] = {}
        self._row_of_podgroup: dict[str, int] = {}

    def take(self, more: Additions) -> bool:
        """Add names; False if names in between are missing, so that all must be sent."""
        if more.follows == NONE:
            self._tasks, self._podgroups = [], []
            self._row_of_task, self._row_of_podgroup = {}, {}
        elif more.follows != self.epoch or (more.tasks_from, more.podgroups_from) != self.known:
            return False
        if more.epoch != more.follows:
            self.epoch, self._nodes, self._queues, self._domains = more.epoch, more.nodes, more.queues, more.domains
        self._budgets = more.budgets
        self._row_of_task.update(
            zip(more.tasks, range(len(self._tasks), len(self._tasks) + len(more.tasks)), strict=True)
        )
        first = len(self._podgroups)
        self._row_of_podgroup.update({name: first + at for at, name in enumerate(more.podgroups)})
        self._tasks.extend(more.tasks)
        self._podgroups.extend(more.podgroups)
        return True

    @property
    def known(self) -> tuple[int, int]:
        """Number of tasks and of podgroups with names."""
        return len(self._tasks), len(self._podgroups)

    def knows(self, epoch: int, podgroups: Sequence[int]) -> bool:
        """Whether these podgroup rows of an epoch have names here."""
        return epoch == self.epoch and max(podgroups, default=-1) < len(self._podgroups)

    def tasks(self, rows: Sequence[int]) -> list[str]:
        """Names of task rows, ``namespace/name``."""
        return [self._tasks[row] for row in rows]

    def podgroups(self, rows: Sequence[int]) -> list[str]:
        """Names of podgroup rows, ``namespace/name``."""
        return [self._podgroups[row] for row in rows]

    def nodes(self, rows: Sequence[int]) -> list[str]:
        """Names of node rows."""
        return [self._nodes[row] for row in rows]

    def queues(self, rows: Sequence[int]) -> list[str]:
        """Names of queue rows."""
        return [self._queues[row] for row in rows]

    def domains(self, rows: Sequence[int]) -> list[str]:
        """Names of domain rows."""
        return [self._domains[row] for row in rows]

    def budgets(self, rows: Sequence[int]) -> list[str]:
        """Names of disruption budgets, ``namespace/name``; ``number N`` for one that is newer than the names."""
        known = self._budgets
        return [known[row] if row < len(known) else f"number {row}" for row in rows]

    def task_rows(self, names: Sequence[str]) -> Rows:
        """Rows of tasks by name, the latest with that name; NONE for an unknown name."""
        return np.array([self._row_of_task.get(name, NONE) for name in names], np.int64)

    def podgroup_rows(self, names: Sequence[str]) -> Rows:
        """Rows of podgroups by name, the latest with that name; NONE for an unknown name."""
        return np.array([self._row_of_podgroup.get(name, NONE) for name in names], np.int64)

    def domain_rows(self, names: Sequence[str]) -> Rows:
        """Rows of domains by name, the first with that name; NONE for an unknown name."""
        known = self._domains
        return np.array([known.index(name) if name in known else NONE for name in names], np.int64)
