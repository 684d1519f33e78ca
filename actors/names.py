"""What the rows of a snapshot are called. The columns hold numbers only; names stay here, at the edge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property


@dataclass(frozen=True)
class Names:
    """Names by row; of tasks and podgroups ``namespace/name``.

    A namespace and what is in it have no slash, so that a full name reads one way. A name may stand at several rows:
    what is described anew gets a new row (see ``pipeline.cluster.events.Growth``), and its newest row is the one meant.

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
        """Newest row of each podgroup."""
        return _rows(self.podgroups)

    @cached_property
    def task_row(self) -> Mapping[str, int]:
        """Newest row of each task."""
        return _rows(self.tasks)

    def grown(self, podgroups: Iterable[str] = (), tasks: Iterable[str] = ()) -> Names:
        """These names with those of appended rows behind them."""
        return replace(self, podgroups=(*self.podgroups, *podgroups), tasks=(*self.tasks, *tasks))


def _rows(names: tuple[str, ...]) -> dict[str, int]:
    return {name: row for row, name in enumerate(names)}
