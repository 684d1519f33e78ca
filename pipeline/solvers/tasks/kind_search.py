"""The search for tasks of one kind: swept over columns, and what plugins are asked meanwhile."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from pipeline.cluster.arrays import Longs, Rows, distinct
from pipeline.cluster.cards import best_card, slots_with_cards
from pipeline.cluster.resources import fits
from pipeline.decision.price import overdrawing
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Follows
from pipeline.policy import Purpose
from pipeline.records import replace
from pipeline.solvers.tasks.asked_node import AskedNode
from pipeline.solvers.tasks.candidates import may_take_from_others, preemptor_of, queue_ranks
from pipeline.solvers.tasks.present import Present
from pipeline.solvers.tasks.rule import Place, Rule
from pipeline.solvers.tasks.sweeping.columns import RANKED, FixedColumns, Fleet, TaskKind, decide
from pipeline.solvers.tasks.sweeping.following import freed
from pipeline.solvers.tasks.sweeping.one_node import (
    MAKES_ROOM,
    WITHHELD,
    candidates_making_room,
    cards_without,
    loss,
    reprieve_order,
    shortest,
    still_needed,
)
from pipeline.solvers.tasks.sweeping.sweep import COMPARED, case_of, sweep

Region = tuple[int, int]


class KindSearch:
    """Places for tasks of one kind by one rule.

    Parameters
    ----------
    host
        Of the snapshot before the first decision.
    present
        The decisions of the whole search.
    task
        One of them.
    counted
        Whether the quotas on victims are counted in columns.
    """

    def __init__(
        self,
        host: Host,
        present: Present,
        facts: FixedColumns,
        fleet: Fleet,
        columns: TaskKind,
        task: int,
        rule: Rule,
        *,
        counted: bool,
    ) -> None:
        snapshot = self._snapshot = host.context.snapshot
        self._host, self._present, self._facts, self._fleet, self._columns = host, present, facts, fleet, columns
        self._rule, self._preemptor = rule, preemptor_of(host, task, rule)
        self._queue = int(snapshot.queue_of(np.array([task]))[0])
        #: Where the last task had no place, and what its search began with.
        self._failed: tuple[Region, tuple[int, int, int]] | None = None
        #: After how many decisions slots were counted last, and what they were.
        self._slots: tuple[int, Longs, Longs] | None = None
        #: Whether plugins have to be asked node by node, whatever the room of the queue.
        self._by_node = not counted or (rule.simulated and len(snapshot.budgets) > 0)
        #: Whether queues lose in an order that changes with every decision and has to be asked.
        self._queues_follow = (
            rule.purpose is Purpose.RECLAIM
            and not columns.ranks
            and host.queue_order_follows(Follows.SHARE)
            and len(distinct(snapshot.queue_of(np.flatnonzero(columns.may)))) > 1
        )

    def swept_together(self, many: int) -> int:
        """How many of the next tasks, at most ``many``, can be swept together: nothing is asked in between."""
        if self._by_node or self._queues_follow or not self._columns.limited:
            return 1
        if self._rule.purpose is Purpose.PREEMPT:
            return many
        most, one = many if self._host.grants_together else 1, self._preemptor
        while most > 1 and not may_take_from_others(self._present.host, replace(one, request=one.request * most)):
            most //= 2
        return most

    def place(self, tasks: Rows, region: Region, *, all_or_none: bool = False) -> None:
        """Decide where the tasks go within nodes ``start:stop``, as far as there are places for them.

        Of several tasks, those behind one without a place are searched for as well, unless that one is enough to fail.
        """
        free, evicts = self._free(), may_take_from_others(self._present.host, self._preemptor)
        asks = self._by_node or not free
        if self._queues_follow and evicts:
            self._columns.victim_order.queue_rank[:] = queue_ranks(self._present.host, self._queue, self._rule.purpose)
        while len(tasks):
            if self._fails_again(region):
                tasks = tasks[1:]
                continue
            before = self._known
            done = sweep(
                self._facts, self._fleet, self._columns, self._present.decisions,
                tasks, region, free, evicts and not asks,
            )  # fmt: skip
            tasks = tasks[done:]
            if len(tasks):
                if asks and evicts:
                    self._ask(int(tasks[0]))
                if done == 0:
                    self._failed = region, before
                tasks = tasks[1:] if not all_or_none else tasks[:0]

    @property
    def _known(self) -> tuple[int, int, int]:
        """What a search begins with: decisions, withheld nodes, and sets of candidates that may still be looked at."""
        return self._present.many, int(self._columns.withheld.sum()), int(self._columns.sets[0])

    def _fails_again(self, region: Region) -> bool:
        """Whether another task has no place either: nothing has changed since the last one had none.

        It spends as many sets of candidates as that one did.
        """
        if self._failed is None:
            return False
        (failed_in, (*before, sets)), now = self._failed, self._known
        spent = sets - now[-1]
        if failed_in != region or before != [*now[:-1]] or spent > now[-1]:
            return False
        self._columns.sets[0] -= spent
        self._failed = region, now
        return True

    def _free(self) -> bool:
        """Whether the queue has room for a task, if that has to be asked."""
        if self._columns.limited:
            return True
        return bool(fits(self._preemptor.request, self._present.host.headroom[self._queue]))

    # -- node by node ------------------------------------------------------------------------------------------

    def _ask(self, task: int) -> None:
        """Decide on a node whose candidates the plugins have to be asked about, if there is one; see ``sweep``."""
        places = self._asked_places(task)
        if self._rule.simulated:
            place = min(islice(places, COMPARED), key=self._loss, default=None)
        else:
            place = next(places, None)
        if place is not None:
            decide(self._present.decisions, task, place.node, place.card, place.victims, place.released)

    def _asked_places(self, task: int) -> Iterator[Place]:
        kind, present = self._columns, self._present
        for node in self._hopeful().tolist():
            rows, released, case = case_of(self._facts, self._fleet, kind, node, False)
            asked = AskedNode(present.host, present.state, self._preemptor, self._rule.point, case, rows, released)
            verdict, gone = candidates_making_room(asked, np.arange(len(rows)), kind.sets)
            kind.withheld[node] |= verdict == WITHHELD
            if verdict == MAKES_ROOM and len(gone) + len(released):
                if self._rule.simulated:
                    order = reprieve_order(gone, self._facts.priority[rows])
                    spent = overdrawing(self._snapshot, rows[order])
                    gone = still_needed(asked, gone, order[np.argsort(~spent, kind="stable")])
                else:
                    gone = shortest(asked, gone)
                card = best_card(kind.part, cards_without(case, gone), kind.spreads)
                yield Place(task, node, card, np.sort(rows[gone]), released)

    def _hopeful(self) -> Rows:
        """int64[M]: nodes of the region that was swept last on which there could be room, the best first."""
        kind = self._columns
        nodes = kind.order[: kind.many[RANKED]]
        nodes = nodes[kind.hopeful[nodes] & ~kind.withheld[nodes]]
        headroom = self._present.host.headroom[self._queue] + freed(self._facts, self._fleet, kind)[0][nodes]
        return nodes[fits(self._preemptor.request, headroom)]

    def _loss(self, place: Place) -> tuple[Any, ...]:
        facts, rows = self._facts, place.victims
        first = rows[np.argsort(-facts.priority[rows].astype(np.int64), kind="stable")]
        return loss(int(overdrawing(self._snapshot, first).sum()), rows, facts.priority, facts.created, place.node)

    # -- all nodes at once -------------------------------------------------------------------------------------

    def slots(self) -> tuple[Longs, Longs]:
        """How many tasks of the kind each node takes now, and once every candidate has gone: int64[N] each."""
        if self._slots is None or self._slots[0] != self._present.many:
            self._slots = self._present.many, *self._counted_slots()
        return self._slots[1:]

    def _counted_slots(self) -> tuple[Longs, Longs]:
        # For no task: what was decided since is followed, and nothing else. The rows are of the type of all others.
        nothing = np.empty(0, np.int64)
        sweep(self._facts, self._fleet, self._columns, self._present.decisions, nothing, (0, 0), False, False)
        request, part, fleet = self._preemptor.request, self._columns.part, self._fleet
        room, cards = fleet.future, fleet.cards
        if may_take_from_others(self._present.host, self._preemptor):
            more, more_cards = freed(self._facts, fleet, self._columns)
            room, cards = room + more, cards + more_cards
        now = slots_with_cards(request, part, fleet.future, fleet.cards)
        later = slots_with_cards(request, part, room, cards)
        allowed = self._columns.allowed
        return np.where(allowed, now, 0), np.where(allowed, later, 0)
