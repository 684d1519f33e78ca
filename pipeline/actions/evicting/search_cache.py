"""States once gangs had turns, on what those before them left: each search is made once, and they are counted."""

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple, TypeAlias

import numpy as np

from pipeline.actions.evicting.one_kind import rigid_apart
from pipeline.actions.evicting.one_pass import Pass
from pipeline.actions.progress import Planned
from pipeline.actions.searching import Outcome
from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.decision.plan import Plan
from pipeline.records import replace


class Turn(NamedTuple):
    """The turn of a gang, by its position among those of the cache.

    Attributes
    ----------
    domain
        The only one that it may have; NONE for any.
    sparing
        A podgroup that may not lose a task to it; NONE for no such podgroup.
    """

    position: int
    domain: int = NONE
    sparing: int = NONE


#: Gangs that have their turns in that order.
Order: TypeAlias = tuple[Turn, ...]


class SearchCache:
    """What gangs get in orders of turns from the state as it is.

    Attributes
    ----------
    fresh
        The state before the first turn, with all gangs.
    left
        How many more searches there may be.
    lost
        Whether a search was lost; there are no others then.
    first
        The outcome of the first search: for the first gang, on the state as it is.
    among
        The only rows (int64[K]) that may go, from now on; None for no such limit.
    """

    def __init__(self, this: Pass, at: int, some: Sequence[GangGroup]) -> None:
        """For the gangs ``some``, whose turns begin at a position of a pass."""
        self.fresh, self.left, self.lost = copy(this), 0, False
        self.fresh.narrow(some, at, rigid_apart)
        self.first: Outcome = None
        self.among: Rows | None = None
        self._before = len(this.progress.planned)
        self._after: dict[Order, Pass | None] = {(): self.fresh}
        self._outcomes = dict[tuple[object, ...], Outcome]()

    def take_only_from(self, rows: Rows) -> None:
        """Only these may go from now on; it is as fair to take from one of their queues as from another."""
        self.among, self._after, self._outcomes = rows, {(): self.fresh}, {}

    def plans_of(self, after: Pass | None) -> list[Plan]:
        """The plans that led to a state, in order of their turns."""
        return [] if after is None else list(after.progress.plans[self._before :])

    def in_order(self, order: Order) -> Pass | None:
        """The state once some gangs have had their turns in an order; None if not all get a plan."""
        if order not in self._after:
            before, turn = self.in_order(order[:-1]), order[-1]
            self._after[order] = None if before is None else self.pass_after(before, turn)
        return self._after[order]

    def pass_after(self, before: Pass, turn: Turn, among: Rows | None = None, nodes: Rows | None = None) -> Pass | None:
        """The state once a gang had its turn, among some victims and on some nodes, or any; None if it gets no plan.

        A plan that takes what was promised, or what started, is none: others would have a turn after it.
        """
        if self.left == 0 or self.lost:
            return None
        self.left -= 1
        found = self._outcome(before, turn, among, nodes)
        self.lost = found is None
        self.first = self.first or found
        if not isinstance(found, Plan) or (found.statement.nominated_node == NONE).any():
            return None
        if len(before.progress.retaken_by(found)):
            return None
        after = copy(before)
        after.take([Planned(found, before.gang_groups[turn.position])])
        return after

    def _outcome(self, before: Pass, turn: Turn, among: Rows | None, nodes: Rows | None) -> Outcome:
        every = [plan.statement for plan in self.plans_of(before)]  # the state is the same in whatever order they came
        made = frozenset((one.preemptor, one.evictions.tobytes(), one.nominated_node.tobytes()) for one in every)
        key = made, turn, *(None if rows is None else rows.tobytes() for rows in (among, nodes))
        if key not in self._outcomes:
            attempt = before.attempt(turn.position)
            if turn.domain != NONE:
                attempt = replace(attempt, domains=np.array([turn.domain]))
            if nodes is not None:
                rest = np.delete(np.arange(len(attempt.snapshot.nodes)), nodes)
                attempt = replace(attempt, snapshot=attempt.snapshot.closing(rest))
            among, fair = self._victims(turn, among), self.among is not None
            self._outcomes[key] = before.search(replace(attempt, among=among, equally_fair=fair))
        return self._outcomes[key]

    def _victims(self, turn: Turn, among: Rows | None) -> Rows | None:
        """int64[K]: what may go in a turn; None for anything."""
        among = self.among if among is None else among
        if turn.sparing == NONE:
            return among
        tasks = self.fresh.progress.snapshot.tasks
        rows: Rows = np.flatnonzero(tasks.node != NONE) if among is None else among
        spared: Bools = tasks.podgroup[rows] == turn.sparing
        return rows[~spared]
