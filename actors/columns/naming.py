"""The port to names of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipeline.cluster.arrays import Rows


class Naming(Protocol):
    """Names of the rows of one epoch."""

    def tasks(self, rows: Sequence[int]) -> list[str]:
        """Names of task rows."""
        ...

    def podgroups(self, rows: Sequence[int]) -> list[str]:
        """Names of podgroup rows."""
        ...

    def nodes(self, rows: Sequence[int]) -> list[str]:
        """Names of node rows."""
        ...

    def queues(self, rows: Sequence[int]) -> list[str]:
        """Names of queue rows."""
        ...

    def domains(self, rows: Sequence[int]) -> list[str]:
        """Names of domain rows."""
        ...

    def budgets(self, rows: Sequence[int]) -> list[str]:
        """Names of the rows of disruption budgets."""
        ...

    def task_rows(self, names: Sequence[str]) -> Rows:
        """Rows of tasks by name; NONE for an unknown name."""
        ...

    def podgroup_rows(self, names: Sequence[str]) -> Rows:
        """Rows of podgroups by name; NONE for an unknown name."""
        ...

    def domain_rows(self, names: Sequence[str]) -> Rows:
        """Rows of domains by name; NONE for an unknown name."""
        ...
