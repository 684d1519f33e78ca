"""The frozen cluster at one revision: tables, and what follows from them.

A snapshot never changes (invariant 1). What is derived is computed when first asked for and kept beside the columns;
it is a function of them alone. What-if is another snapshot: ``snapshot.evicting(...)``, ``.nominating(...)``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from pipeline.cluster import cards
from pipeline.cluster import totals as accounting
from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows, offsets, total_rank, with_rows
from pipeline.cluster.tables import (
    BOUND,
    PENDING,
    PHASE_INQUEUE,
    RUNNING,
    TERMINATING,
    Budgets,
    Nodes,
    Podgroups,
    Queues,
    Roles,
    Shapes,
    Subgroups,
    Tasks,
)
from pipeline.cluster.topology import Topology
from pipeline.cluster.vocabulary import Vocabulary

Derived = TypeVar("Derived")


@dataclass(frozen=True)
class Snapshot:
    """Everything that a decision may depend on, beside the policy and the clock.

    Attributes
    ----------
    revision
        What was known: grows with every fold.
    epoch
        Row numbers mean the same in all snapshots of one epoch.
    decided
        Sequence number of the last of our own decisions that is folded in.
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

    # -- derived -----------------------------------------------------------------------------------------------

    def once(self, derive: Callable[["Snapshot"], Derived]) -> Derived:
        """What ``derive`` makes of this snapshot, made once and kept with it: for all who search on it.

        ``derive`` is a function of a module; an array that it makes is read only from then on.
        """
        if derive not in self._kept:
            made = derive(self)
            if isinstance(made, np.ndarray):
                made.flags.writeable = False
            self._kept[derive] = made
        kept: Derived = self._kept[derive]
        return kept

    @cached_property
    def _kept(self) -> dict[Callable[["Snapshot"], Any], Any]:
        return {}

    @cached_property
    def room(self) -> accounting.Room:
        """Idle, terminating and nominated resources per node."""
        return accounting.room_of(self.tasks, self.shapes.request, self.nodes.allocatable)

    @cached_property
    def card_room(self) -> accounting.Room:
        """The same for the cards of each node: columns int64[N, D]."""
        return cards.card_room_of(self.tasks, self.shapes, self.nodes)

    @cached_property
    def occupancy(self) -> accounting.Occupancy:
        """Tasks by the node they hold."""
        return accounting.occupancy_of(self.tasks, len(self.nodes))

    @cached_property
    def placed(self) -> accounting.Placed:
        """Columns of the tasks that hold a node, by node."""
        return accounting.placed_of(self.tasks, self.occupancy)

    @cached_property
    def standing(self) -> accounting.Standing:
        """Task counts per podgroup."""
        return accounting.standing_of(self.tasks, self.tasks.podgroup, len(self.podgroups))

    @cached_property
    def role_standing(self) -> accounting.Standing:
        """Task counts per role."""
        return accounting.standing_of(self.tasks, self.tasks.role, len(self.roles))

    @cached_property
    def subgroup_standing(self) -> accounting.Standing:
        """Task counts per leaf subgroup; inner ones count nothing."""
        return accounting.standing_of(self.tasks, self.tasks.subgroup, len(self.subgroups))

    @cached_property
    def task_queue(self) -> Ids:
        """int32[T]: the queue of each task."""
        return self.podgroups.queue[self.tasks.podgroup]

    @cached_property
    def allocated_here(self) -> Longs:
        """int64[Q, R]: what the tasks of each queue hold or are promised, without its descendants."""
        tasks = self.tasks
        return accounting.total_by(
            self.task_queue, accounting.held(tasks), tasks.shape, self.shapes.request, len(self.queues)
        )

    @cached_property
    def allocated(self) -> Longs:
        """int64[Q, R]: the same with descendants."""
        return accounting.with_ancestors(self.queues.parent, self.allocated_here)

    @cached_property
    def requested_here(self) -> Longs:
        """int64[Q, R]: what the tasks of each queue hold, are promised or wait for, without descendants."""
        tasks = self.tasks
        return accounting.total_by(
            self.task_queue, accounting.asked(tasks), tasks.shape, self.shapes.request, len(self.queues)
        )

    @cached_property
    def capacity(self) -> Longs:
        """int64[R]: allocatable of all nodes together."""
        total: Longs = self.nodes.allocatable.sum(axis=0)
        return total

    @cached_property
    def podgroup_held(self) -> Longs:
        """int64[G, R]: what the running and bound tasks of each podgroup hold."""
        tasks = self.tasks
        running = (tasks.status == BOUND) | (tasks.status == RUNNING)
        return accounting.total_by(tasks.podgroup, running, tasks.shape, self.shapes.request, len(self.podgroups))

    @cached_property
    def by_podgroup(self) -> tuple[Longs, Rows]:
        """Task rows sorted by podgroup: int64[G + 1] where each podgroup's begin, int64[T] the rows."""
        order = np.argsort(self.tasks.podgroup, kind="stable").astype(np.int64)
        return offsets(self.tasks.podgroup[order], len(self.podgroups)), order

    def tasks_of(self, podgroup: int) -> Rows:
        """Rows of all tasks of one podgroup, ascending, whatever their status."""
        start, rows = self.by_podgroup
        return rows[start[podgroup] : start[podgroup + 1]]

    @cached_property
    def role_start(self) -> Longs:
        """int64[G + 1]: the roles of podgroup ``g`` are rows ``role_start[g]:role_start[g + 1]``."""
        return offsets(self.roles.podgroup, len(self.podgroups))

    @cached_property
    def subgroup_start(self) -> Longs:
        """int64[G + 1]: likewise for subgroups."""
        return offsets(self.subgroups.podgroup, len(self.podgroups))

    @cached_property
    def role_minimum(self) -> Longs:
        """int64[G]: sum of the minima of each podgroup's roles."""
        return np.bincount(self.roles.podgroup, weights=self.roles.min_available, minlength=len(self.podgroups)).astype(
            np.int64
        )

    @cached_property
    def seniority(self) -> Longs:
        """int64[G]: rank of the podgroups by age, then by name: the last word where all else is equal."""
        return total_rank(self.podgroups.created, self.podgroups.order)

    @cached_property
    def roles_bind(self) -> Bools:
        """bool[G]: role minima count; not in an elastic podgroup, whose minimum is below their sum (document 1)."""
        return np.asarray(self.podgroups.min_available >= self.role_minimum)

    @cached_property
    def request(self) -> Longs:
        """int64[T, R]: what each task asks for; for small tables and slices of them only."""
        return self.shapes.request[self.tasks.shape]

    # -- what if -----------------------------------------------------------------------------------------------

    def evicting(self, rows: Rows) -> "Snapshot":
        """This snapshot with the tasks ``rows`` on their way out: Terminating, their nodes' room coming free."""
        return replace(self, tasks=replace(self.tasks, status=with_rows(self.tasks.status, rows, TERMINATING)))

    def nominating(self, rows: Rows, nodes: Rows, on: Rows | None = None) -> "Snapshot":
        """This snapshot with the pending tasks ``rows`` promised ``nodes``; NONE withdraws a nomination.

        ``on`` are their cards there, None: nobody needs one.
        """
        nominated = with_rows(self.tasks.nominated, rows, nodes)
        return replace(self, tasks=replace(self.tasks, nominated=nominated, card=self._on_cards(rows, on)))

    def binding(self, rows: Rows, nodes: Rows, on: Rows | None = None) -> "Snapshot":
        """This snapshot with the pending tasks ``rows`` Bound to ``nodes``; their nominations are used up.

        ``on`` are their cards there, None: nobody needs one.
        """
        tasks = replace(
            self.tasks,
            status=with_rows(self.tasks.status, rows, BOUND),
            node=with_rows(self.tasks.node, rows, nodes),
            nominated=with_rows(self.tasks.nominated, rows, NONE),
            card=self._on_cards(rows, on),
        )
        return replace(self, tasks=tasks)

    def _on_cards(self, rows: Rows, on: Rows | None) -> Ids:
        if self.nodes.cards.shape[1] == 0:
            return self.tasks.card
        return with_rows(self.tasks.card, rows, NONE if on is None else on)

    def admitting(self, podgroups: Rows) -> "Snapshot":
        """This snapshot with ``podgroups`` let in."""
        phase = with_rows(self.podgroups.phase, podgroups, PHASE_INQUEUE)
        return replace(self, podgroups=replace(self.podgroups, phase=phase))

    def card_names(self, node: int) -> tuple[str, ...]:
        """What the cards of a node are called, in the order of its columns."""
        return self.vocabulary.card_sets[self.nodes.card_set[node]]

    def card_row(self, node: int, name: str | None) -> int:
        """The position of a card among those of its node, NONE if the node has none of that name (or for None)."""
        names = self.card_names(node)
        return names.index(name) if name in names else NONE

    def pending(self, podgroup: int) -> Rows:
        """Rows of the podgroup's tasks that wait without a nomination and are not gated."""
        rows = self.tasks_of(podgroup)
        tasks = self.tasks
        waits = (tasks.status[rows] == PENDING) & (tasks.nominated[rows] == NONE) & ~tasks.gated[rows]
        return np.asarray(rows[waits])
