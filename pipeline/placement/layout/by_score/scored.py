"""Placing tasks one after the other, each on the best-scored node that takes it.

A ``ScoredPlacement`` lives as long as one placement. Tasks of one kind (shape and label set) that follow each other are
placed in one pass.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Floats, Ids, Longs, Rows, distinct, is_among, sums_of_slices
from pipeline.cluster.cards import slots_with_cards
from pipeline.cluster.counted.counting import add_requests
from pipeline.cluster.orders import first_of, unique_inverse
from pipeline.cluster.resources import slots
from pipeline.cluster.rules.anti_affinity import Exclusions, concerned, exclusions, not_yet, of_single_nodes
from pipeline.cluster.snapshot import Snapshot
from pipeline.keeping import cached_property
from pipeline.placement.layout.by_score.alike import DEEPEST, NodeLevels, dealt_cards, placed_in_turn
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
    domain_score: float


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
        self._kind, self._shapes, self._open, self._not_yet, self._apart = _kinds(host, self._snapshot, tasks)
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
        self._levels = NodeLevels(host)
        self.score = 0.0
        #: That of the domains that the tasks were placed in.
        self.domain_score = 0.0

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
        is_open = self._open if self._apart is None else self._open.copy()
        return Saved(self.laid(), headroom, is_open, self.score, self.domain_score)

    def restore(self, saved: "Saved") -> None:
        """Undo all placements since ``saved``, which can be used once."""
        before = saved.laid
        moved = np.flatnonzero((self.node != before.node) | (self.card != before.card))
        self._count(moved, -1)
        self.node, self.card, self.now = before.node, before.card, before.now
        self._count(moved, 1)
        self._headroom, self._open, self.score = saved.headroom, saved.open, saved.score
        self.domain_score = saved.domain_score

    def _count(self, tasks: Rows, sign: int) -> None:
        """Count tasks (positions int64[K]) where they are placed, or no longer (sign -1)."""
        tasks = tasks[self.node[tasks] != NONE]
        if len(tasks) == 0:
            return
        if not self._future.flags.writeable:  # they are the snapshot's
            self._future, self._future_cards = self._future.copy(), self._future_cards.copy()
        node, shape = self.node[tasks], self._snapshot.tasks.shape[self.tasks[tasks]]
        for room, more in ((self._future, -sign), (self._idle, -sign), (self._used, sign)):
            add_requests(room, node, shape, self._snapshot.shapes.request, more)
        on = self.card[tasks] != NONE
        if on.any():
            amount = sign * self._snapshot.shapes.on_card[shape[on]]
            for room in (self._future_cards, self._idle_cards):
                np.subtract.at(room, (node[on], self.card[tasks[on]]), amount)

    @property
    def future(self) -> Longs:
        """int64[N, R]: what each node will have left."""
        return self._future

    def runs(self, tasks: Rows) -> list[Rows]:
        """The tasks (positions int64[K]) cut where one is not like the one before it, in kind, queue and right."""
        keys = self._kind[tasks], self._queue[tasks], self._lasts[tasks]
        cuts = np.zeros(max(len(tasks) - 1, 0), bool)
        for key in keys:
            cuts |= key[1:] != key[:-1]
        return np.split(tasks, np.flatnonzero(cuts) + 1) if len(tasks) else []

    def place(self, tasks: Rows, start: int, stop: int, closest: Longs | None = None) -> int:
        """Place tasks (one of ``runs``) in turn, each on the best node of ``start:stop``; how many: the first of them.

        Room that is there now goes before room to come, then the score decides, then the node's row. ``closest``
        int64[N]: nodes that go before others whatever their score, the largest first.
        """
        task, placed = int(tasks[0]), 0
        kind, request, queue = int(self._kind[task]), self._request(task), int(self._queue[task])
        works, many = (False, True) if self._lasts[task] else (False,), len(tasks)
        for lasting in works:
            many = min(many, int(slots(request, self._headroom[queue, lasting][None])[0]))
        first = np.zeros(stop - start, np.int64) if closest is None else closest[start:stop]
        shape, (step, most) = int(self._shapes[kind]), self._at_once(kind, len(tasks))
        while placed < many:
            wanted = min(many - placed, step)
            later = np.minimum(self._slots(task, start, stop), min(wanted, most))
            deepest = min(int(later.max(initial=0)), DEEPEST)
            if deepest == 0:
                break
            now = self._slots_in(self._idle, self._idle_cards, task, start, stop)
            if self._not_yet is not None:
                now *= ~self._not_yet[kind, start:stop]
            levels = self._levels.of(shape, (start, stop), self._used, distinct(self.node), deepest)
            nodes, at_once, self.score = placed_in_turn(wanted, later, now, levels, first, self.score)
            some = tasks[placed : placed + len(nodes)]
            self.node[some], self.now[some] = start + nodes, at_once
            self._deal_cards(some, self._on_card(shape))
            self._count(some, 1)
            self._close(kind, start + nodes)
            placed += len(some)
        for lasting in works:
            self._headroom[queue, lasting] -= placed * request
        return placed

    def _deal_cards(self, tasks: Rows, amount: int) -> None:
        """Give each of some tasks, in turn, a card of its node that has the ``amount``; nothing is counted yet."""
        if amount and len(tasks):
            columns = self._idle_cards.copy(), self._future_cards.copy()
            spreads = self._host.spreads_cards
            self.card[tasks] = dealt_cards(self.node[tasks], self.now[tasks], amount, *columns, spreads)

    def slots(self, task: int, regions: list[tuple[int, int]]) -> Longs:
        """int64[Q]: how many tasks like this one the nodes of each region take at present."""
        first, last = np.array(regions, np.int64).reshape(-1, 2).T
        low, high = int(first.min(initial=len(self._future))), int(last.max(initial=0))
        return sums_of_slices(self._slots(task, low, high), first - low, last - low)

    def domain_scores(self, tasks: Rows, regions: list[tuple[int, int]]) -> Floats:
        """float64[Q]: how good each region is at present for tasks (positions int64[K]) together; larger is better."""
        if len(tasks) == 0 or not regions or not self._host.scores_domains:
            return np.zeros(len(regions))
        first, last = np.array(regions, np.int64).T
        low, high = int(first.min()), int(last.max())
        columns = (self._used[low:high], self._snapshot.nodes.allocatable[low:high])
        used, there = (sums_of_slices(column, first - low, last - low) for column in columns)
        asked = self._snapshot.request_of(self.tasks[tasks]).sum(axis=0)
        return self._host.domain_score(asked, used, there)

    def most(self, start: Longs, stop: Longs) -> Longs:
        """int64[D]: how many of the tasks the nodes ``start:stop`` (each int64[D]) take at most.

        Each kind is counted alone, at present.
        """
        total = np.zeros(len(start), np.int64)
        first, count = first_of(self._kind)
        for task, many in zip(first.tolist(), count.tolist(), strict=True):
            there = np.minimum(self._slots(task, 0, len(self._future)), many)
            total += np.minimum(sums_of_slices(there, start, stop), many)
        return total

    def enough(self, tasks: Rows, regions: list[tuple[int, int]], spare: int = 0) -> Bools:
        """bool[Q]: whether each region takes the tasks (positions, int64[K]) but for some to spare of any kind.

        Each kind is counted alone.
        """
        result = np.ones(len(regions), bool)
        first, count = first_of(self._kind[tasks])
        for task, many in zip(tasks[first].tolist(), (count - spare).tolist(), strict=True):
            if many > 0:
                result &= self.slots(task, regions) >= many
        return result

    def open_to(self, shapes: Rows) -> Bools:
        """bool[S, N]: the nodes that are open to tasks of each shape at present."""
        return np.stack([self._open[self._shapes == shape].any(axis=0) for shape in shapes.tolist()])

    def _slots(self, task: int, start: int, stop: int) -> Longs:
        return self._slots_in(self._future, self._future_cards, task, start, stop)

    def _slots_in(self, room: Longs, cards: Longs, task: int, start: int, stop: int) -> Longs:
        amount = self._on_card(self._snapshot.tasks.shape[self.tasks[task]])
        there = slots_with_cards(self._request(task), amount, room[start:stop], cards[start:stop])
        return np.asarray(there * self._open[int(self._kind[task]), start:stop])

    def laid(self) -> Laid:
        """What was placed so far."""
        return Laid(self.node.copy(), self.card.copy(), self.now.copy())

    def _request(self, task: int) -> Longs:
        return np.asarray(self._snapshot.request_of(self.tasks[task]))

    def _on_card(self, shape: int) -> int:
        return int(self._snapshot.shapes.on_card[shape])

    # -- anti-affinity among the tasks that are placed together ------------------------------------------------

    def _at_once(self, kind: int, tasks: int) -> tuple[int, int]:
        """How many tasks of a kind one pass places, and how many of them on a node, so that none repels another."""
        apart = self._apart
        if apart is None or not apart.conflict[kind, kind]:
            return tasks, tasks
        keys = [domains for bit, domains in enumerate(apart.domains) if apart.conflict[kind, kind] >> bit & 1]
        return (tasks, 1) if all(map(of_single_nodes, keys)) else (1, 1)

    def _close(self, kind: int, nodes: Rows) -> None:
        """Close the domains of the nodes int64[K], where tasks of a kind are now, to kinds that must not share them."""
        apart = self._apart
        if apart is None:
            return
        for bit, domains in enumerate(apart.domains):
            shut = (apart.conflict[kind] >> bit & 1).astype(bool)
            taken = domains[nodes]
            self._open[np.ix_(shut, is_among(domains, taken[taken != NONE]))] = False


def _kinds(host: Host, snapshot: Snapshot, tasks: Rows) -> tuple[Ids, Rows, Bools, Bools | None, Exclusions | None]:
    """The kind of each task; per kind its shape row and the nodes open to it (bool[M, N]).

    Also where a kind must not start yet (bool[M, N]), and how kinds repel each other; None if nothing does. Where
    anti-affinity concerns none of them, a kind is a shape.
    """
    pairs = np.stack([snapshot.tasks.shape[tasks], snapshot.tasks.label_set[tasks]], axis=1)
    kinds, kind = unique_inverse(pairs)
    repelling = bool(concerned(snapshot, snapshot.shapes.constraint[kinds[:, 0]], kinds[:, 1]).any())
    if not repelling:
        kinds, kind = unique_inverse(pairs[:, :1])
    shapes = kinds[:, 0].astype(np.int64)
    usable, early, found = host.allowed(shapes), None, None
    if repelling:
        said = snapshot.shapes.constraint[shapes], kinds[:, 1]
        found, early = exclusions(snapshot, *said, NO_ROWS), not_yet(snapshot, *said, NO_ROWS)
        usable &= ~found.excluded
    apart = found if found is not None and found.conflict.any() else None
    return kind.astype(np.int32), shapes, usable, early if early is not None and early.any() else None, apart
