"""Placing tasks one by one, each on the best-scored node that takes it.

A ``ScoredPlacement`` lives as long as one placement. Tasks of one kind (shape and label set) share their fit and score
columns; a task that is placed changes one node's entries, so it costs one search for the best node and not a rescoring
of all. Tasks of one kind that follow each other are placed in one pass.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Floats, Ids, Longs, Rows, distinct, first_of, kinds_of
from pipeline.cluster.cards import best_card, fits_card, slots_on_cards
from pipeline.cluster.counted.counting import add_requests
from pipeline.cluster.resources import fits, slots
from pipeline.cluster.rules.anti_affinity import Exclusions, concerned, exclusions, of_single_nodes
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.layout.alike import DEEPEST, NodeLevels, dealt_cards, placed_in_turn
from pipeline.plugins.host import Host


@dataclass(frozen=True)
class Laid:
    """The places of tasks: node and card int64[K] (NONE: none), and whether the room is there now (bool[K])."""

    node: Rows
    card: Rows
    now: Bools


@dataclass(frozen=True)
class Saved:
    """The state of a placement at one moment."""

    laid: Laid
    headroom: dict[tuple[int, bool], Longs]
    open: Bools
    score: float


class ScoredPlacement:
    """All nodes, with what placement changes.

    Parameters
    ----------
    host
        The plugins on the snapshot on which tasks are placed.
    tasks: int64[K]
        Waiting task rows; everywhere below a task is its position in this column.
    """

    def __init__(self, host: Host, tasks: Rows) -> None:
        self._host, self._snapshot = host, host.context.snapshot
        self.tasks = tasks
        self._kind, self._shapes, self._open, self._apart = _kinds(host, self._snapshot, tasks)
        # The snapshot's own columns, read-only, until a task is placed: mostly there is no room for any.
        self._future, self._future_cards = self._snapshot.room.future, self._snapshot.card_room.future
        queue = self._snapshot.queue_of(tasks)
        #: By queue: headroom of all work, and of work that can never be evicted.
        self._headroom = {(int(q), False): host.headroom[q].copy() for q in distinct(queue)}
        self._lasts = ~self._snapshot.podgroups.preemptible[self._snapshot.tasks.podgroup[tasks]]
        for q in distinct(queue[self._lasts]):
            self._headroom[int(q), True] = host.lasting_headroom[q].copy()
        self._queue = queue
        self.node, self.card = np.full((2, len(tasks)), NONE, np.int64)
        self.now = np.zeros(len(tasks), bool)
        self._columns: dict[tuple[int, int, int], tuple[Bools, Bools, Floats]] = {}
        self._levels = NodeLevels(host)
        self.score = 0.0

    @cached_property
    def _idle(self) -> Longs:
        """int64[N, R]: what is there now of what will be there."""
        return np.minimum(self._snapshot.room.idle, self._snapshot.room.future)

    @cached_property
    def _used(self) -> Longs:
        room = self._snapshot.room
        return self._snapshot.nodes.allocatable - np.minimum(room.idle, room.future)

    @cached_property
    def _idle_cards(self) -> Longs:
        cards = self._snapshot.card_room
        return np.minimum(cards.idle, cards.future)

    def save(self) -> "Saved":
        """What ``restore`` needs to undo later placements."""
        headroom = {work: room.copy() for work, room in self._headroom.items()}
        return Saved(self.laid(), headroom, self._open if self._apart is None else self._open.copy(), self.score)

    def restore(self, saved: "Saved") -> None:
        """Undo all placements since ``saved``, which can be used once."""
        before = saved.laid
        moved = np.flatnonzero((self.node != before.node) | (self.card != before.card))
        self._count(moved, -1)
        self.node, self.card, self.now = before.node, before.card, before.now
        self._count(moved, 1)
        self._headroom, self._open, self.score = saved.headroom, saved.open, saved.score
        self._columns = {}

    def _count(self, tasks: Rows, sign: int) -> None:
        """Count tasks (positions int64[K]) where they are placed, or no longer (sign -1)."""
        tasks = tasks[self.node[tasks] != NONE]
        if len(tasks) == 0:
            return
        self._own_columns()
        node, shape = self.node[tasks], self._snapshot.tasks.shape[self.tasks[tasks]]
        for room, more in ((self._future, -sign), (self._idle, -sign), (self._used, sign)):
            add_requests(room, node, shape, self._snapshot.shapes.request, more)
        on = self.card[tasks] != NONE
        if on.any():
            amount = sign * self._snapshot.shapes.on_card[shape[on]]
            for room in (self._future_cards, self._idle_cards):
                np.subtract.at(room, (node[on], self.card[tasks[on]]), amount)

    def _own_columns(self) -> None:
        """Columns of room that may be changed, in place of the snapshot's."""
        if not self._future.flags.writeable:
            self._future, self._future_cards = self._future.copy(), self._future_cards.copy()

    @property
    def future(self) -> Longs:
        """int64[N, R]: what each node will have left."""
        return self._future

    def place(self, task: int, start: int, stop: int, closest: Longs | None = None) -> bool:
        """Place one task on the best node of ``start:stop``: room that is there now before room to come, then score.

        Equal scores are decided by the node's row. ``closest`` int64[N]: nodes that go before others whatever their
        score, the largest first.
        """
        kind, request = int(self._kind[task]), self._request(task)
        queue, kinds = int(self._queue[task]), (False, True) if self._lasts[task] else (False,)
        if not all(fits(request, self._headroom[queue, lasting]) for lasting in kinds):
            return False
        later, now, score = self._columns_of(kind, task, start, stop)
        if not later.any():
            return False
        if closest is not None:
            first = later & (closest[start:stop] == closest[start:stop][later].max())
            later, now = first, now & first
        pick = now if now.any() else later
        at = int(np.argmax(np.where(pick, score, -np.inf)))
        self.score += float(score[at])
        self._take(task, start + at, bool(now[at]), request)
        for lasting in kinds:
            self._headroom[queue, lasting] -= request
        return True

    def runs(self, tasks: Rows) -> list[Rows]:
        """The tasks (positions int64[K]) cut where one is not like the one before it, in kind, queue and right."""
        keys = self._kind[tasks], self._queue[tasks], self._lasts[tasks]
        cuts = np.zeros(max(len(tasks) - 1, 0), bool)
        for key in keys:
            cuts |= key[1:] != key[:-1]
        return np.split(tasks, np.flatnonzero(cuts) + 1) if len(tasks) else []

    def place_alike(self, tasks: Rows, start: int, stop: int, closest: Longs | None = None) -> int:
        """``place`` for each of the tasks (one of ``runs``) in turn; how many found a node: the first of them."""
        task, placed = int(tasks[0]), 0
        kind, request, queue = int(self._kind[task]), self._request(task), int(self._queue[task])
        alone = self._apart is not None and self._apart.conflict[kind].any()
        if alone and not self._one_on_a_node(kind):
            return sum(self.place(one, start, stop, closest) for one in tasks.tolist())
        works, many = (False, True) if self._lasts[task] else (False,), len(tasks)
        for lasting in works:
            many = min(many, int(slots(request, self._headroom[queue, lasting][None])[0]))
        first = np.zeros(stop - start, np.int64) if closest is None else closest[start:stop]
        shape, most = int(self._shapes[kind]), 1 if alone else len(tasks)
        while placed < many:
            later = np.minimum(self._slots(task, start, stop), min(many - placed, most))
            deepest = min(int(later.max(initial=0)), DEEPEST)
            if deepest == 0:
                break
            now = self._slots_in(self._idle, self._idle_cards, task, start, stop)
            levels = self._levels.of(shape, (start, stop), self._used, distinct(self.node), deepest)
            nodes, at_once, self.score = placed_in_turn(many - placed, later, now, levels, first, self.score)
            some = tasks[placed : placed + len(nodes)]
            self.node[some], self.now[some] = start + nodes, at_once
            self._deal_cards(some, self._on_card(shape))
            self._count(some, 1)
            if alone:
                self._open[kind, start + nodes] = False
            placed += len(some)
        for lasting in works:
            self._headroom[queue, lasting] -= placed * request
        self._columns = {}
        return placed

    def _deal_cards(self, tasks: Rows, amount: int) -> None:
        """Give each of some tasks, in turn, a card of its node that has the ``amount``; nothing is counted yet."""
        if amount and len(tasks):
            columns = self._idle_cards.copy(), self._future_cards.copy()
            self.card[tasks] = dealt_cards(
                self.node[tasks], self.now[tasks], amount, *columns, self._host.spreads_cards
            )  # fmt: skip

    def slots(self, task: int, start: int, stop: int) -> int:
        """How many tasks like this one the nodes ``start:stop`` take at present."""
        return int(self._slots(task, start, stop).sum())

    def most(self, start: Longs, stop: Longs) -> Longs:
        """int64[D]: how many of the tasks the nodes ``start:stop`` (each int64[D]) take at most.

        Each kind is counted alone, at present.
        """
        total = np.zeros(len(start), np.int64)
        first, count = first_of(self._kind)
        for task, many in zip(first.tolist(), count.tolist(), strict=True):
            there = np.minimum(self._slots(task, 0, len(self._future)), many)
            upto = np.append(0, np.cumsum(there))
            total += np.minimum(upto[stop] - upto[start], many)
        return total

    def enough(self, tasks: Rows, start: int, stop: int) -> bool:
        """Whether the nodes ``start:stop`` take the tasks (positions, int64[K]), each kind counted alone."""
        first, count = first_of(self._kind[tasks])
        return all(
            self.slots(task, start, stop) >= many
            for task, many in zip(tasks[first].tolist(), count.tolist(), strict=True)
        )

    def _slots(self, task: int, start: int, stop: int) -> Longs:
        return self._slots_in(self._future, self._future_cards, task, start, stop)

    def _slots_in(self, room: Longs, cards: Longs, task: int, start: int, stop: int) -> Longs:
        there = slots(self._request(task), room[start:stop])
        amount = self._on_card(self._snapshot.tasks.shape[self.tasks[task]])
        if amount:
            there = np.minimum(there, slots_on_cards(amount, cards[start:stop]))
        return np.asarray(there * self._open[int(self._kind[task]), start:stop])

    def laid(self) -> Laid:
        """What was placed so far."""
        return Laid(self.node.copy(), self.card.copy(), self.now.copy())

    def _request(self, task: int) -> Longs:
        return np.asarray(self._snapshot.shapes.request[self._snapshot.tasks.shape[self.tasks[task]]])

    def _on_card(self, shape: int) -> int:
        return int(self._snapshot.shapes.on_card[shape])

    def _columns_of(self, kind: int, task: int, start: int, stop: int) -> tuple[Bools, Bools, Floats]:
        key = (kind, start, stop)
        if key not in self._columns:
            request, rows = self._request(task), np.arange(start, stop)
            there = self._open[kind, start:stop]
            later = there & fits(request, self._future[start:stop])
            now = later & fits(request, self._idle[start:stop])
            shape = int(self._shapes[kind])
            if amount := self._on_card(shape):
                later &= fits_card(amount, self._future_cards[start:stop])
                now &= fits_card(amount, self._idle_cards[start:stop])
            self._columns[key] = (later, now, self._host.node_score(shape, self._used[start:stop], rows))
        return self._columns[key]

    def _take(self, task: int, node: int, now: bool, request: Longs) -> None:
        self.node[task], self.now[task] = node, now
        self._own_columns()
        for room in (self._future, self._idle):
            room[node] -= request
        self._used[node] += request
        if amount := self._on_card(self._shapes[self._kind[task]]):
            free = (self._idle_cards if now else self._future_cards)[node]
            self.card[task] = card = best_card(amount, free, self._host.spreads_cards)
            for room in (self._future_cards, self._idle_cards):
                room[node, card] -= amount
        if self._apart is not None:
            self._exclude(self._apart, int(self._kind[task]), node)
        row = np.array([node])
        for (kind, start, stop), (later, fits_now, score) in self._columns.items():
            if start <= node < stop:
                shape = int(self._shapes[kind])
                asked = self._snapshot.shapes.request[shape]
                at = node - start
                later[at] = self._open[kind, node] and fits(asked, self._future[node])
                fits_now[at] = later[at] and fits(asked, self._idle[node])
                if amount := self._on_card(shape):
                    later[at] &= fits_card(amount, self._future_cards[node])
                    fits_now[at] &= fits_card(amount, self._idle_cards[node])
                score[at] = self._host.node_score(shape, self._used[row], row)[0]

    # -- anti-affinity among the tasks that are placed together ------------------------------------------------

    def _exclude(self, apart: Exclusions, kind: int, node: int) -> None:
        """Close the node's domains to kinds that must not share them with ``kind``."""
        for bit, domains in enumerate(apart.domains):
            if domains[node] != NONE:
                shut = (apart.conflict[kind] >> bit & 1).astype(bool)
                self._open &= ~(shut[:, None] & (domains == domains[node]))
        self._columns = {}

    def _one_on_a_node(self, kind: int) -> bool:
        """Whether tasks of a kind repel no others but each other, and from no more than their nodes."""
        apart = self._apart
        if apart is None or np.count_nonzero(apart.conflict[kind]) > 1 or not apart.conflict[kind, kind]:
            return False
        keys = [domains for bit, domains in enumerate(apart.domains) if apart.conflict[kind, kind] >> bit & 1]
        return all(map(of_single_nodes, keys))


def _kinds(host: Host, snapshot: Snapshot, tasks: Rows) -> tuple[Ids, Rows, Bools, Exclusions | None]:
    """The kind of each task; per kind its shape row and the nodes open to it (bool[M, N]).

    Also how kinds repel each other; None if none does. Where anti-affinity concerns none of them, a kind is a shape.
    """
    pairs = np.stack([snapshot.tasks.shape[tasks], snapshot.tasks.label_set[tasks]], axis=1)
    kinds, kind = kinds_of(pairs)
    repelling = bool(concerned(snapshot, snapshot.shapes.constraint[kinds[:, 0]], kinds[:, 1]).any())
    if not repelling:
        kinds, kind = kinds_of(pairs[:, :1])
    shapes = kinds[:, 0].astype(np.int64)
    usable, found = host.allowed(shapes), None
    if repelling:
        found = exclusions(snapshot, snapshot.shapes.constraint[shapes], kinds[:, 1], NO_ROWS)
        usable &= ~found.excluded
    return kind.astype(np.int32), shapes, usable, found if found is not None and found.conflict.any() else None
