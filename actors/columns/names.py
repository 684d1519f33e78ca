"""What the rows of a snapshot are called. The columns hold numbers only; names stay here, at the edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Names:
    """Names by row; of tasks and podgroups ``namespace/name``.

    A namespace and what is in it have no slash, so that a full name reads one way. What grows as news comes in is a
    ``register.Register``.

    Attributes
    ----------
    domains
        Domain 0 is the cluster and has the empty name.
    """

    nodes: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    domains: tuple[str, ...] = ("",)
    podgroups: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    @cached_property
    def node_row(self) -> Mapping[str, int]:
        """Row of each node."""
        return _rows(self.nodes)

    @cached_property
    def queue_row(self) -> Mapping[str, int]:
        """Row of each queue."""
        return _rows(self.queues)

    @cached_property
    def domain_row(self) -> Mapping[str, int]:
        """Row of each domain."""
        return _rows(self.domains)

    @cached_property
    def podgroup_row(self) -> Mapping[str, int]:
        """Row of each podgroup."""
        return _rows(self.podgroups)

    @cached_property
    def task_row(self) -> Mapping[str, int]:
        """Row of each task."""
        return _rows(self.tasks)


def _rows(names: tuple[str, ...]) -> dict[str, int]:
    return {name: row for row, name in enumerate(names)}
