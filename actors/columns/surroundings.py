"""The things that podgroups and tasks refer to, and what tasks inherit from their podgroups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """Priority of a class, and whether its podgroups may preempt."""

    value: int
    preempts: bool = True


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The things that podgroups refer to.

    Attributes
    ----------
    resources
        The resource axis, see ``resources.axis``; it has every resource that the podgroups name.
    levels
        Names of the topology's levels, by row.
    classes
        Priority classes by name; the system classes need not be listed.
    queue_row, node_row
        Gives the row of a queue or node, which must exist.
    card_row
        Gives the position of a card among those of a node (row).
    """

    resources: Sequence[str]
    levels: Sequence[str]
    classes: Mapping[str, PriorityClass]
    queue_row: Callable[[str], int]
    node_row: Callable[[str], int]
    card_row: Callable[[int, str], int]


@dataclass(frozen=True, slots=True)
class Membership:
    """Values that a task inherits from its podgroup.

    Attributes
    ----------
    row
        Row of the podgroup.
    roles, subgroups
        Rows by name.
    """

    row: int
    namespace: str
    priority: int
    preemptible: bool
    may_preempt: bool
    critical: bool
    roles: Mapping[str, int] = field(default_factory=dict)
    subgroups: Mapping[str, int] = field(default_factory=dict)
