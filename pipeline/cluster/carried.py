"""The tables of a snapshot, and what follows from them and is carried from one snapshot to the next.

Totals, the index of tasks and the places of parts are worked out from the tables once. From then on the fold brings
them up to date in proportion to what changed, and they travel with the tables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Bools, Ids, Longs, Rows, distinct, offsets, sealed
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.counted.recent_evictions import RecentEvictions
from pipeline.cluster.counted.relaid_totals import on_nodes, on_queues
from pipeline.cluster.counted.task_index import Occupancy, TaskIndex, carried_index, index_of, renumbered
from pipeline.cluster.counted.totals import Counted, Totals, carried_totals, totals_of
from pipeline.cluster.tables import Nodes, Podgroups, Queues, Roles, Shapes, Subgroups, Tasks
from pipeline.cluster.topology import Topology
from pipeline.cluster.vocabulary import Vocabulary
from pipeline.keeping import begun_like, begun_with, cached_property, made_of
from pipeline.records import replace

#: Where the parts of podgroups are; and all that is kept with the tables and follows from them.
_PARTS = "role_start", "subgroup_start", "role_minimum"
_FOLLOWING = "totals", "index", "_index_before", "since_news", "roles_bind", *_PARTS
#: Once a larger part of the tasks has changed, the index is made anew.
_MOST_BEHIND = 0.25


@dataclass(frozen=True)
class _Behind:
    """The index of an earlier snapshot, its tasks, and the rows (int64[K]) that changed since."""

    index: TaskIndex
    tasks: Tasks
    rows: Rows


@dataclass(frozen=True)
class CarriedTables:
    """All tables at one revision.

    Attributes
    ----------
    revision
        Grows with every fold of something new.
    epoch
        Row numbers mean the same in all snapshots of one epoch.
    decided
        Sequence number of the last of our own decisions that is folded in.
    recent
        What these decisions evicted lately.
    """

    revision: int
    epoch: int
    decided: int
    vocabulary: Vocabulary
    nodes: Nodes
    topology: Topology
    shapes: Shapes
    queues: Queues
    podgroups: Podgroups
    roles: Roles
    subgroups: Subgroups
    tasks: Tasks
    budgets: Budgets
    recent: RecentEvictions

    @cached_property
    def totals(self) -> Totals:
        """What the tasks add up to: carried by the fold, counted if these did not come from one."""
        return totals_of(self.counted)

    @property
    def counted(self) -> Counted:
        """The tables from which the totals follow."""
        return Counted(self.nodes, self.shapes, self.queues, self.podgroups, self.roles, self.subgroups, self.tasks)

    @cached_property
    def index(self) -> TaskIndex:
        """Tasks by node and by podgroup: carried on from the last index that was made."""
        behind = self._index_before
        if behind is None:
            return index_of(self.tasks, len(self.nodes), len(self.podgroups))
        return carried_index(behind.index, behind.tasks, self.tasks, len(self.podgroups), behind.rows)

    @cached_property
    def _index_before(self) -> _Behind | None:
        """From where the index is carried on; None if from nowhere."""
        return None

    @property
    def members(self) -> Occupancy:
        """Tasks by podgroup: mostly as in an earlier snapshot, since tasks come rarely and change podgroups never."""
        behind = self._index_before
        if behind is None or made_of(self, "index") or behind.tasks.podgroup is not self.tasks.podgroup:
            return self.index.by_podgroup
        known = behind.index.by_podgroup
        return known if len(known.start) == len(self.podgroups) + 1 else self.index.by_podgroup

    @cached_property
    def role_start(self) -> Longs:
        """int64[G + 1]: the roles of podgroup ``g`` are rows ``role_start[g]:role_start[g + 1]``."""
        return offsets(self.roles.podgroup, len(self.podgroups))

    @cached_property
    def subgroup_start(self) -> Longs:
        """int64[G + 1]: the subgroups of podgroup ``g`` are rows ``subgroup_start[g]:subgroup_start[g + 1]``."""
        return offsets(self.subgroups.podgroup, len(self.podgroups))

    @cached_property
    def role_minimum(self) -> Longs:
        """int64[G]: sum of the minima of each podgroup's roles."""
        least = np.bincount(self.roles.podgroup, weights=self.roles.min_available, minlength=len(self.podgroups))
        return sealed(least.astype(np.int64))

    @cached_property
    def roles_bind(self) -> Bools:
        """bool[G]: role minima count; not in an elastic podgroup, whose minimum is below their sum."""
        return np.asarray(self.podgroups.min_available >= self.role_minimum)

    @cached_property
    def since_news(self) -> tuple[dict[Callable[..., Any], dict[Any, Any]], bytes]:
        """What is known of podgroups as they were at the last news, and which of them were decided on since.

        The second says of each podgroup 1 if a decision changed any of its tasks, else 0.
        """
        return {}, bytes(len(self.podgroups))

    def following_decision(self, before: Self, rows: Rows) -> Self:
        """As ``following``, after a decision: it changed only the tasks ``rows``, and what became of podgroups."""
        known, changed = before.since_news
        after = np.frombuffer(changed, np.uint8).copy()
        after[self.tasks.podgroup[rows]] = 1
        return begun_with(self.following(before, rows), since_news=(known, after.tobytes()))

    def following(self, before: Self, rows: Rows) -> Self:
        """These tables, with the totals, the index and the parts of ``before`` brought up to date.

        Parameters
        ----------
        before
            Tables of the same nodes, queues and resources; podgroups, roles, subgroups and tasks may have been
            appended since.
        rows
            int64[K], ascending, each once: every new task, and every task whose columns have changed.
        """
        if totals := made_of(before, "totals"):
            begun_with(self, totals=carried_totals(totals, before.counted, self.counted, rows))
        self._following_parts(before)
        return self._following_index(before, rows)

    def _following_parts(self, before: Self) -> None:
        """Where parts are, and which roles bind, while podgroups, their parts and minima are the same."""
        same = self.roles is before.roles and self.subgroups is before.subgroups
        if same and len(self.podgroups) == len(before.podgroups):
            begun_like(self, before, *_PARTS)
            if self.podgroups.min_available is before.podgroups.min_available:
                begun_like(self, before, "roles_bind")

    def _following_index(self, before: Self, rows: Rows) -> Self:
        known: _Behind | None = made_of(before, "_index_before")
        if index := made_of(before, "index"):
            known = _Behind(index, before.tasks, rows[:0])
        if known:
            changed = _of_both(known.rows, rows)
            if len(changed) == 0 and len(self.podgroups) == len(known.index.by_podgroup.start) - 1:
                begun_with(self, index=known.index)
            elif len(changed) <= _MOST_BEHIND * len(self.tasks):
                begun_with(self, _index_before=_Behind(known.index, known.tasks, changed))
        return self

    def at_revision(self, revision: int) -> Self:
        """The same tables, and what follows from them, under another revision."""
        return begun_like(replace(self, revision=revision), self, *_FOLLOWING)

    def following_nodes(self, before: Self, node_of: Ids, card_of: Ids) -> Self:
        """The same on nodes numbered anew, where no task lost its node or card by it; see ``totals.on_nodes``."""
        if totals := made_of(before, "totals"):
            begun_with(self, totals=on_nodes(totals, node_of, card_of, self.nodes))
        if made_of(before, "index") or made_of(before, "_index_before"):
            begun_with(self, index=renumbered(before.index, node_of, len(self.nodes)))
        self._following_parts(before)
        return self

    def following_queues(self, before: Self) -> Self:
        """The same on another table of queues."""
        if totals := made_of(before, "totals"):
            begun_with(self, totals=on_queues(totals, self.podgroups.queue, len(self.queues)))
        self._following_parts(before)
        return self._following_index(before, NO_ROWS)

    def carrying(self, totals: Totals, index: TaskIndex) -> Self:
        """These tables with what follows from them, which the caller knows to be its own."""
        return begun_with(self, totals=totals, index=index)


def _of_both(rows: Rows, more: Rows) -> Rows:
    """int64[K]: rows and more rows, ascending, each once, as they are in either."""
    if len(rows) == 0 or len(more) == 0:
        return rows if len(rows) else more
    return distinct(np.concatenate([rows, more]))
