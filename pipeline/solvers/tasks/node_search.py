"""Room for one task: the node on which it costs least, and its victims there (the task-centric actions' search).

Free room comes first. Then the nodes whose candidates could free enough, best-scored first: the plugins vote on a
node's candidates in victim order, the shortest prefix that makes the task fit is taken, and victims of it that are not
needed are reprieved (upstream evicts the whole prefix). With ``simulated`` all permitted candidates leave at first,
those that are not needed are reprieved, and the nodes are compared by what they lose.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Floats, Longs, Rows, ordered_by
from pipeline.cluster.cards import best_card, fits_card, freed_on_cards, slots_on_cards
from pipeline.cluster.resources import fits, slots
from pipeline.cluster.rules.anti_affinity import concerns, exclusions
from pipeline.cluster.tables import PENDING
from pipeline.decision.price import overdrawing
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import ExtensionPoint, Purpose
from pipeline.solvers.tasks.node_candidates import NodeCandidates, Withheld
from pipeline.solvers.tasks.what_if import NodeWhatIf, removing, returning, stands

#: How many nodes a simulation compares at most (Volcano's limit): the best-scored ones; Volcano starts at a random one.
_COMPARED = 100


@dataclass(frozen=True)
class Rule:
    """Which tasks may be victims.

    Attributes
    ----------
    purpose
        PREEMPT: other podgroups of the same queue; RECLAIM: other queues that let others reclaim.
    podgroups
        The preemptor's rows, whose tasks are no victims unless ``own``.
    own
        Whether a task takes tasks of lower priority of its own podgroup instead (intra-podgroup preemption).
    simulated
        Whether nodes are compared by simulation ("Preempt Action Support Topology").
    """

    purpose: Purpose
    podgroups: tuple[int, ...]
    own: bool = False
    simulated: bool = False

    @property
    def point(self) -> ExtensionPoint:
        """The extension point at which plugins are asked."""
        return ExtensionPoint.PREEMPTABLE if self.purpose is Purpose.PREEMPT else ExtensionPoint.RECLAIMABLE


@dataclass(frozen=True)
class Place:
    """A node for a task, its card (NONE: it needs none), victims int64[V], tasks that lose a nomination int64[W]."""

    node: int
    card: int
    victims: Rows
    released: Rows


class TaskSearch:
    """The search for one waiting task on one snapshot.

    Parameters
    ----------
    withheld
        What searches for the tasks before it found; None: nothing.
    """

    def __init__(self, host: Host, task: int, rule: Rule, withheld: Withheld | None = None) -> None:
        self._host, self._task, self._rule = host, task, rule
        snapshot = self._snapshot = host.context.snapshot
        known = withheld or Withheld(len(snapshot.nodes))
        self._withheld = known.of(host, task, rule)
        shape = int(snapshot.tasks.shape[task])
        self._request: Longs = snapshot.shapes.request[shape]
        self._on_card = int(snapshot.shapes.on_card[shape])
        self._preemptor = Preemptor(rule.podgroups, self._request, rule.purpose, task)
        self._candidates_here = NodeCandidates(host, self._preemptor, rule.point, known, self._withheld)
        self._allowed: Bools = host.allowed(np.array([shape]))[0]
        self._future = snapshot.room.future.copy()
        self._idle = np.minimum(snapshot.room.idle, self._future)

    def place(self, start: int, stop: int) -> Place | None:
        """The place within nodes ``start:stop``, or None."""
        return self._free(start, stop) or self._made(start, stop)

    def slots(self) -> tuple[Longs, Longs]:
        """How many tasks like this one each node takes now, and once every candidate has gone: int64[N] each."""
        now, later = slots(self._request, self._future), slots(self._request, self._future + self._freed)
        if self._on_card:
            free = self._snapshot.card_room.future
            now = np.minimum(now, slots_on_cards(self._on_card, free))
            later = np.minimum(later, slots_on_cards(self._on_card, free + self._freed_cards))
        return np.where(self._allowed, now, 0), np.where(self._allowed, later, 0)

    # -- without victims ---------------------------------------------------------------------------------------

    def _free(self, start: int, stop: int) -> Place | None:
        queue = int(self._snapshot.podgroups.queue[self._snapshot.tasks.podgroup[self._task]])
        if not fits(self._request, self._host.headroom[queue]):
            return None
        here = slice(start, stop)
        later = self._open[here] & fits(self._request, self._future[here])
        now = later & fits(self._request, self._idle[here])
        cards, idle_cards = self._snapshot.card_room.future, self._snapshot.card_room.idle
        if self._on_card:
            later &= fits_card(self._on_card, cards[here])
            now &= fits_card(self._on_card, np.minimum(idle_cards, cards)[here])
        nodes = start + np.flatnonzero(now if now.any() else later)
        if len(nodes) == 0:
            return None
        node = int(nodes[np.argmax(self._scores(nodes))])
        free = np.minimum(idle_cards[node], cards[node]) if now.any() else cards[node]
        return Place(node, best_card(self._on_card, free, self._host.spreads_cards), NO_ROWS, NO_ROWS)

    @cached_property
    def _open(self) -> Bools:
        """bool[N]: nodes that admit the task beside the tasks that are there."""
        snapshot, task = self._snapshot, np.array([self._task])
        if not concerns(snapshot, task):
            return self._allowed
        kind = snapshot.shapes.constraint[snapshot.tasks.shape[task]], snapshot.tasks.label_set[task]
        return np.asarray(self._allowed & ~exclusions(snapshot, *kind, NO_ROWS).excluded[0])

    def _scores(self, nodes: Rows) -> Floats:
        """float64[M]: how well the task goes on each of the nodes; of equal ones the first is the best."""
        used = self._snapshot.nodes.allocatable[nodes] - self._idle[nodes]
        return self._host.node_score(int(self._snapshot.tasks.shape[self._task]), used, nodes)

    # -- with victims ------------------------------------------------------------------------------------------

    @cached_property
    def candidates(self) -> Rows:
        """int64[C]: candidates, each judged alone, by node, and in victim order on each node."""
        return self._in_victim_order(np.flatnonzero(self._may_go))

    def _in_victim_order(self, rows: Rows) -> Rows:
        """Tasks (int64[C]) by node, and in victim order on each node."""
        snapshot, podgroup = self._snapshot, self._snapshot.tasks.podgroup
        job, task = self._host.job_rank[podgroup[rows]], self._host.task_ranks(rows)
        first = np.zeros(len(rows), np.int64)
        if self._rule.purpose is Purpose.RECLAIM:
            queue = int(snapshot.podgroups.queue[podgroup[self._task]])
            first = self._host.victim_queue_rank(queue)[snapshot.queue_of(rows)]
        return rows[ordered_by(snapshot.tasks.node[rows], first, -job, -task)]

    @cached_property
    def _may_go(self) -> Bools:
        """bool[T]: candidates, each judged alone."""
        snapshot, rule = self._snapshot, self._rule
        tasks, groups = snapshot.tasks, snapshot.podgroups
        if not tasks.may_preempt[self._task]:
            return np.zeros(len(tasks), bool)
        owner, queue = int(tasks.podgroup[self._task]), groups.queue[tasks.podgroup[self._task]]
        from_groups = np.zeros(len(groups), bool)
        if rule.own:
            from_groups[owner] = True
        elif rule.purpose is Purpose.PREEMPT:
            from_groups = groups.alive & (groups.queue == queue)
            from_groups[list(rule.podgroups)] = False
        elif self._host.preemptive(self._preemptor):
            from_groups = groups.alive & (groups.queue != queue) & snapshot.queues.reclaimable[groups.queue]
        else:
            return np.zeros(len(tasks), bool)
        may = self._host.task_candidates(self._preemptor, from_groups, rule.point)
        if rule.own:
            may &= tasks.priority < tasks.priority[self._task]
        if tasks.best_effort[self._task]:  # a task that asks for nothing takes nothing but a pod
            may &= tasks.best_effort
        return may

    def _candidates_on(self, node: int) -> Rows:
        """int64[C]: the candidates of one node, in victim order."""
        there = self._snapshot.occupancy
        rows = there.task[there.start[node] : there.start[node + 1]]
        return self._in_victim_order(rows[self._may_go[rows]].astype(np.int64))

    @cached_property
    def _released(self) -> Rows:
        """int64[W]: tasks that lose their nominations in a simulation, of lower priority in the same queue."""
        snapshot, tasks = self._snapshot, self._snapshot.tasks
        if not self._rule.simulated or not tasks.may_preempt[self._task]:
            return NO_ROWS
        groups, mine = snapshot.podgroups, tasks.podgroup[self._task]
        lower = (groups.queue == groups.queue[mine]) & (groups.priority < groups.priority[mine])
        return np.flatnonzero((tasks.status == PENDING) & (tasks.nominated != NONE) & lower[tasks.podgroup])

    @cached_property
    def _freed(self) -> Longs:
        """int64[N, R]: what all candidates of each node hold, plus released nominations."""
        freed, tasks, request = np.zeros_like(self._future), self._snapshot.tasks, self._snapshot.shapes.request
        entries, (nodes, first) = self._entries, self._runs
        if len(entries):
            freed[nodes] = np.add.reduceat(request[self._snapshot.placed.shape[entries]], first)
        np.add.at(freed, tasks.nominated[self._released], request[tasks.shape[self._released]])
        return freed

    @cached_property
    def _entries(self) -> Rows:
        """int64[C]: the candidates as entries of the index by node."""
        return np.flatnonzero(self._may_go[self._snapshot.occupancy.task])

    @cached_property
    def _runs(self) -> tuple[Rows, Rows]:
        """Two of int64[K]: the nodes that have candidates, ascending; which of ``_entries`` is the first on each."""
        on = self._snapshot.placed.node[self._entries]
        first = np.flatnonzero(np.diff(on, prepend=NONE))
        return on[first].astype(np.int64), first

    @cached_property
    def _freed_cards(self) -> Longs:
        """int64[N, D]: the same, card by card."""
        freed = np.zeros_like(self._snapshot.nodes.cards)
        for rows in (np.flatnonzero(self._may_go), self._released):
            freed_on_cards(self._snapshot.tasks, self._snapshot.shapes, rows, 0, freed)
        return freed

    def _made(self, start: int, stop: int) -> Place | None:
        """The first node on which room can be made, or, of those compared, the one that loses least."""
        gives = np.zeros(len(self._allowed), bool)
        gives[self._runs[0]] = True
        gives[self._snapshot.tasks.nominated[self._released]] = True
        headroom = self._host.headroom[int(self._snapshot.podgroups.queue[self._snapshot.tasks.podgroup[self._task]])]
        hopeful = self._allowed & gives & ~self._withheld & fits(self._request, self._future + self._freed)
        hopeful &= fits(self._request, headroom + self._freed)
        if self._on_card:
            hopeful &= fits_card(self._on_card, self._snapshot.card_room.future + self._freed_cards)
        nodes = start + np.flatnonzero(hopeful[start:stop])
        places = self._places(nodes[np.argsort(-self._scores(nodes), kind="stable")])
        if not self._rule.simulated:
            return next(places, None)
        return min(islice(places, _COMPARED), key=self._loss, default=None)

    def _places(self, nodes: Rows) -> Iterator[Place]:
        for node in nodes.tolist():
            rows = self._candidates_on(node)
            released = self._released[self._snapshot.tasks.nominated[self._released] == node]
            all_gone = self._candidates_here.leaving(NodeWhatIf(self._host, self._task, node, NO_ROWS, released), rows)
            if all_gone is not None and len(all_gone.gone):
                gone = self._reprieved(all_gone) if self._rule.simulated else self._shortest(all_gone)
                card = best_card(self._on_card, gone.cards, self._host.spreads_cards)
                yield Place(node, card, np.sort(gone.leaving), released)

    def _shortest(self, all_gone: NodeWhatIf) -> NodeWhatIf:
        """The shortest prefix that suffices, without those that can be reprieved, the highest priority first."""
        rows, few, many = all_gone.leaving, -1, len(all_gone.leaving)  # ``many`` suffice, ``few`` do not
        untouched = NodeWhatIf(all_gone.host, all_gone.task, all_gone.node, NO_ROWS, all_gone.released)
        while many - few > 1:
            half = (few + many) // 2
            few, many = (few, half) if stands(removing(untouched, rows[:half])) else (half, many)
        return _reprieve_each(removing(untouched, rows[:many]), rows[:many][::-1])

    def _reprieved(self, all_gone: NodeWhatIf) -> NodeWhatIf:
        """Reprieve all that can stay: first tasks whose budget would be exceeded, then the highest priority."""
        tasks, rows = self._snapshot.tasks, all_gone.leaving
        ranks = self._host.task_ranks(rows), self._host.job_rank[tasks.podgroup[rows]]
        rows = rows[np.lexsort((*ranks, -tasks.priority[rows].astype(np.int64)))]
        return _reprieve_each(all_gone, rows[np.argsort(~overdrawing(self._snapshot, rows), kind="stable")])

    def _loss(self, place: Place) -> tuple[Any, ...]:
        """The cost of a place, smaller first.

        Exceeded budgets, the highest priority, the sum of priorities, the number of victims, how long the victim of the
        highest priority has run, and the node's row (Kubernetes' criteria, which Volcano took over without budgets).
        """
        tasks, rows = self._snapshot.tasks, place.victims
        if len(rows) == 0:
            return 0, -(1 << 31), 0, 0, 0.0, place.node
        priority = tasks.priority[rows].astype(np.int64)
        oldest = float(tasks.created[rows][priority == priority.max()].min())
        violations = int(overdrawing(self._snapshot, rows[np.argsort(-priority, kind="stable")]).sum())
        return violations, int(priority.max()), int(priority.sum()), len(rows), -oldest, place.node


def _reprieve_each(what_if: NodeWhatIf, rows: Rows) -> NodeWhatIf:
    """Reprieve ``rows`` one after the other while the task still fits."""
    for row in rows.tolist():
        back = returning(what_if, row)
        if stands(back):
            what_if = back
    return what_if
