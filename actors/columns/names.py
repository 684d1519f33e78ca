"""Names of the rows of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from actors.columns.node_order import Path


@dataclass(frozen=True)
class Names:
    """Names by row of a compiled cluster file; those of tasks and podgroups are ``namespace/name``.

    Namespaces and names have no slash, so a full name is unambiguous. Names that grow with events are
    ``row_names.RowNames``.

    Attributes
    ----------
    domains
        Domain 0 is the cluster; its name is empty.
    paths
        Path of each domain, see `node_order.Path`.
    budgets
        Disruption budgets, ``namespace/name``.
    """

    nodes: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    domains: tuple[str, ...] = ("",)
    podgroups: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ((),)
    budgets: tuple[str, ...] = ()

    @cached_property
    def node_row(self) -> Mapping[str, int]:
        """Row of each node."""
        return _rows(self.nodes)

    @cached_property
    def queue_row(self) -> Mapping[str, int]:
        """Row of each queue."""
        return _rows(self.queues)


def _rows(names: tuple[str, ...]) -> dict[str, int]:
    return {name: row for row, name in enumerate(names)}
