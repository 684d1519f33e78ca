"""The plugins' answers, combined: all are asked, where upstream's tiers end the count early.

Orders are compared plugin after plugin, in the order of the policy; ties in all of them are decided by age and name.
What they say about victims is in `victim_host`.
"""

from functools import reduce

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Floats, Ids, Longs, Rows, paired, sealed
from pipeline.cluster.cards import card_sizes, cards_for, fits_card
from pipeline.cluster.counted.node_scores import ScoreTerms, scores, sum_of_scores
from pipeline.cluster.orders import none_last, total_rank, unique_inverse
from pipeline.cluster.rules.match_policy import to_start
from pipeline.cluster.rules.quota import LosingOrder, QueueLimits
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PHASE_PENDING
from pipeline.cluster.what_if import WhatIf
from pipeline.keeping import cached_property
from pipeline.plugins.extension_points import (
    AdmitsJobs,
    AllowsReclaim,
    ChoosesCards,
    FiltersNodes,
    FindsOverused,
    FindsStarving,
    InterleavesVictims,
    Key,
    LimitsLastingWork,
    LimitsQueues,
    OffersDomains,
    OrdersJobs,
    OrdersQueues,
    OrdersTasks,
    OrdersVictimQueues,
    PipelinesJobs,
    ReadiesJobs,
    ScoresDomains,
    ScoresNodes,
    SharesFairly,
    TellsLosingOrder,
    ValidatesJobs,
)
from pipeline.plugins.plugin import Follows, Opinion, Preemptor
from pipeline.plugins.victim_host import VictimHost
from pipeline.policy import Purpose


class Host(VictimHost):
    """What the policy's plugins say about one snapshot."""

    # -- orders ------------------------------------------------------------------------------------------------

    @cached_property
    def job_rank(self) -> Longs:
        """int64[G]: total order of podgroups, first served first."""
        return total_rank(*(plugin.job_order() for plugin in self.job_orders), self.context.snapshot.podgroups.order)

    def job_rank_after(self, leaving: Rows) -> Longs:
        """int64[G]: the same once some running tasks (int64[V]) are on their way out. The last answer is kept."""
        known, asked = self._ranks_after, leaving.tobytes()
        if asked not in known:
            known.clear()
            state = WhatIf.of(self.context.snapshot).evicting(leaving)
            known[asked] = sealed(self.on(state, leaving).job_rank)
        return known[asked]

    @cached_property
    def _ranks_after(self) -> dict[bytes, Longs]:
        return {}

    @property
    def job_orders(self) -> list[OrdersJobs]:
        """The plugins whose keys make up ``job_rank``, the most significant first; the last key is seniority."""
        return self._asked(OrdersJobs)

    def task_ranks(self, rows: Rows) -> Longs:
        """int64[K]: ranks of some tasks among each other in the total order of tasks, first placed first."""
        return total_rank(*self.task_keys(rows))

    def task_keys(self, rows: Rows) -> tuple[Key, ...]:
        """Keys[K] of some tasks in that order, the most significant first; the last one tells all apart."""
        tasks = self._given.snapshot.tasks
        keys = [plugin.task_order(rows) for plugin in self._asked(OrdersTasks)]
        return (*keys, none_last(tasks.index.take(rows)), tasks.order.take(rows))

    @cached_property
    def queue_rank(self) -> Longs:
        """int64[Q]: total order of queues, first served first, whatever podgroup they have next."""
        return self.queue_rank_with(np.full(len(self._given.snapshot.queues), NONE, np.int32))

    def queue_rank_with(self, following: Ids) -> Longs:
        """int64[Q]: the same, with the podgroup that each queue has next (int32[Q], NONE if none)."""
        queues = self._given.snapshot.queues
        keys = [key for plugin in self._asked(OrdersQueues) for key in plugin.queue_order(following)]
        return total_rank(*keys, queues.order)

    @cached_property
    def looks_ahead(self) -> bool:
        """Whether the order of queues depends on the podgroup that each has next."""
        return any(plugin.LOOKS_AHEAD for plugin in self._asked(OrdersQueues))

    def victim_queue_rank(self, queue: int) -> Longs:
        """int64[Q]: from which queue to take first for a preemptor of ``queue``; by default the one served last."""
        if self._given.equally_fair:
            return np.zeros(len(self.queue_rank), np.int64)
        if queue not in self._victim_ranks:
            keys = [plugin.victim_queue_order(queue) for plugin in self._asked(OrdersVictimQueues)]
            served_last = len(self.queue_rank) - 1 - self.queue_rank
            self._victim_ranks[queue] = sealed(total_rank(*keys, served_last) if keys else served_last)
        return self._victim_ranks[queue]

    def losing_order(self, queue: int) -> LosingOrder | None:
        """What ``victim_queue_rank`` follows from, in columns; None where it has to be asked."""
        asked, one = self._asked(TellsLosingOrder), self._answering(TellsLosingOrder)
        alone = len(asked) == 1 and self._answering(OrdersQueues) == self._answering(OrdersVictimQueues) == one
        return asked[0].losing_order(queue) if alone and not self._given.equally_fair else None

    def price_rank(self, purpose: Purpose, podgroup: int) -> Longs | None:
        """int64[G]: for a price, the rank of each podgroup's queue if ``podgroup`` reclaims; None for other purposes.

        From a lower rank it is fairer to take: see ``victim_queue_rank``.
        """
        if purpose is not Purpose.RECLAIM:
            return None
        queue = self._given.snapshot.podgroups.queue
        return np.asarray(self.victim_queue_rank(int(queue[podgroup]))[queue])

    @cached_property
    def _victim_ranks(self) -> dict[int, Longs]:
        return {}

    def across_queues(self, queue: Longs, held: Floats, rest: Floats) -> Rows | None:
        """int64[U]: the order of units of victims, by the first plugin that interleaves queues; None if none does."""
        return next((plugin.across_queues(queue, held, rest) for plugin in self._asked(InterleavesVictims)), None)

    def job_order_follows(self, what: Follows) -> bool:
        """Whether the order of podgroups changes with ``what`` as tasks are placed."""
        return any(plugin.JOB_ORDER_FOLLOWS is what for plugin in self._asked(OrdersJobs))

    def queue_order_follows(self, what: Follows) -> bool:
        """Whether the order of queues changes with ``what`` as tasks are placed."""
        return any(plugin.QUEUE_ORDER_FOLLOWS is what for plugin in self._asked(OrdersQueues))

    # -- states of podgroups -----------------------------------------------------------------------------------

    def _all_of(self, said: list[Bools]) -> Bools:
        """bool[G]: where every answer is true; true if there is no answer."""
        if not said:
            return np.ones(len(self.context.snapshot.podgroups), bool)
        result = said[0].copy()
        for one in said[1:]:
            result &= one
        return result

    @cached_property
    def valid(self) -> Bools:
        """bool[G]: fit to be scheduled at all: alive, admitted, and no plugin objects."""
        groups = self.context.snapshot.podgroups
        said = self._all_of([plugin.job_valid() for plugin in self._asked(ValidatesJobs)])
        said &= groups.alive
        said &= groups.phase != PHASE_PENDING
        return said

    @cached_property
    def ready(self) -> Bools:
        """bool[G]: may start on the room that it holds."""
        return self._all_of([plugin.job_ready() for plugin in self._asked(ReadiesJobs)])

    @cached_property
    def binding(self) -> bool:
        """Whether any plugin says when a podgroup may start; if not, it starts with any task."""
        return bool(self._asked(ReadiesJobs))

    @property
    def to_start(self) -> Snapshot:
        """The snapshot with the minima that podgroups need to start; see `pipeline.cluster.rules.match_policy`."""
        return to_start(self.context.snapshot, self._given.policy)

    @cached_property
    def pipelined(self) -> Bools:
        """bool[G]: may start once its promised room is free."""
        return self._all_of([plugin.job_pipelined() for plugin in self._asked(PipelinesJobs)])

    @cached_property
    def starving(self) -> Bools:
        """bool[G]: needs room that others hold: all of the first tier that answers say so; none if no tier does."""
        for tier in self._by_tier(FindsStarving):
            return self._all_of([plugin.job_starving() for plugin in tier])
        return np.zeros(len(self.context.snapshot.podgroups), bool)

    def enqueued(self, podgroup: int, admitted: Bools) -> bool:
        """Whether the podgroup is admitted: none rejects it up to the first tier that permits, or all abstain."""
        for tier in self._by_tier(AdmitsJobs):
            said = [plugin.job_enqueued(podgroup, admitted) for plugin in tier]
            if Opinion.REJECT in said or Opinion.PERMIT in said:
                return Opinion.REJECT not in said
        return True

    # -- queues ------------------------------------------------------------------------------------------------

    @cached_property
    def headroom(self) -> Longs:
        """int64[Q, R]: what each queue may still take; UNLIMITED where no plugin sets a limit."""
        rooms = [plugin.queue_limits().headroom for plugin in self._asked(LimitsQueues)]
        if rooms:
            return reduce(np.minimum, rooms)
        snapshot = self._given.snapshot
        return np.full((len(snapshot.queues), len(snapshot.vocabulary.resources)), UNLIMITED, np.int64)

    def queue_limits(self) -> QueueLimits | None:
        """What ``headroom`` follows from, in columns; None where it has to be asked."""
        asked = self._asked(LimitsQueues)
        if not asked:
            parent, room = self._given.snapshot.queues.parent, self.headroom
            return QueueLimits(parent, room, np.zeros_like(room), np.zeros(len(room), bool))
        return asked[0].queue_limits() if len(asked) == 1 and asked[0].CEILINGS_STAY else None

    @cached_property
    def lasting_headroom(self) -> Longs:
        """int64[Q, R]: what each queue may still take of work that can never be evicted; ``headroom`` applies too."""
        room = np.full_like(self.headroom, UNLIMITED)
        for plugin in self._asked(LimitsLastingWork):
            room = np.minimum(room, plugin.lasting_headroom())
        return room

    def headroom_of(self, podgroup: int) -> Longs:
        """int64[R]: what the queue of a podgroup may still take of its work."""
        groups, room = self._given.snapshot.podgroups, self.headroom
        if not groups.preemptible[podgroup]:
            room = np.minimum(room, self.lasting_headroom)
        return np.asarray(room[groups.queue[podgroup]])

    def fair_share(self) -> Longs | None:
        """int64[Q, R]: what each queue is entitled to, by the first plugin that answers; None if none does."""
        return next((plugin.fair_share() for plugin in self._asked(SharesFairly)), None)

    @cached_property
    def overused(self) -> Bools:
        """bool[Q]: queues that get no more room."""
        result = np.zeros(len(self._given.snapshot.queues), bool)
        for plugin in self._asked(FindsOverused):
            result |= plugin.overused()
        return result

    def preemptive(self, preemptor: Preemptor) -> bool:
        """Whether the preemptor's queue may take from others: no plugin objects, and not all that are asked abstain."""
        asked = self._asked(AllowsReclaim)
        said = [opinion for plugin in asked if (opinion := plugin.preemptive(preemptor)) is not None]
        return all(said) and (bool(said) or not asked)

    @property
    def grants_together(self) -> bool:
        """Whether what a queue may take from others for several tasks it may take for each after the others."""
        return all(plugin.GRANTS_TOGETHER for plugin in self._asked(AllowsReclaim))

    # -- nodes -------------------------------------------------------------------------------------------------

    def allowed(self, shapes: Rows) -> Bools:
        """bool[S, N]: nodes on which tasks of each shape may run, resources aside, with a card that is large enough."""
        asked = tuple(shapes.tolist())
        if asked not in self._known_allowed:
            self._known_allowed[asked] = self._allowed(shapes)
        return self._known_allowed[asked].copy()

    def accesses(self, shapes: Rows) -> tuple[Bools, Rows]:
        """The same once for all shapes that may run on the same nodes: bool[A, N]; and the row of each, int64[S]."""
        table, nodes = self.context.snapshot.shapes, self.context.snapshot.nodes
        on_card = table.on_card[shapes]
        card = np.where(on_card > 0, 1 + np.searchsorted(nodes.once(card_sizes), on_card), 0)
        different, access = unique_inverse(paired(table.constraint[shapes], card))
        some = np.empty(len(different), np.int64)
        some[access] = shapes
        return self.allowed(some), access

    @cached_property
    def _known_allowed(self) -> dict[tuple[int, ...], Bools]:
        return {}

    def _allowed(self, shapes: Rows) -> Bools:
        snapshot = self.context.snapshot
        open_to_all = np.broadcast_to(snapshot.nodes.schedulable, (len(shapes), len(snapshot.nodes)))
        said = [plugin.allowed(shapes) for plugin in self._asked(FiltersNodes)] or [open_to_all]
        result: Bools = reduce(np.logical_and, said).copy()
        for at, amount in enumerate(snapshot.shapes.on_card[shapes].tolist()):
            if amount:
                result[at] &= fits_card(amount, snapshot.nodes.cards)
        return result

    @cached_property
    def spreads_cards(self) -> bool:
        """Whether a task gets the emptiest of a node's cards that fit, by the first plugin; else the fullest."""
        return next((plugin.spreads_cards() for plugin in self._asked(ChoosesCards)), False)

    def cards_for(self, rows: Rows, nodes: Rows, leaving: Rows) -> Rows:
        """int64[K]: a card for each of the tasks ``rows`` on its node once ``leaving`` have gone; see `cards`."""
        state = self.context.snapshot
        if not state.nodes.cards.shape[1]:
            return np.full(len(rows), NONE, np.int64)
        return cards_for(state.tasks, state.shapes, state.card_room, (rows, nodes), leaving, self.spreads_cards)

    def node_score(self, shape: int, used: Longs, rows: Rows) -> Floats:
        """float64[M]: sum of all scores for a task of the shape on the nodes ``rows``; larger is better."""
        snapshot = self._given.snapshot
        request, allocatable = snapshot.shapes.request[shape], snapshot.nodes.allocatable
        return scores(self.score_terms(shape), request, used, allocatable, rows)

    def score_terms(self, shape: int) -> ScoreTerms:
        """What ``node_score`` follows from."""
        if shape not in self._known_terms:
            resources = len(self._given.snapshot.vocabulary.resources)
            said = [plugin.score_terms(shape) for plugin in self._asked(ScoresNodes)]
            self._known_terms[shape] = sum_of_scores(said, resources)
        return self._known_terms[shape]

    @cached_property
    def _known_terms(self) -> dict[int, ScoreTerms]:
        return {}

    def domains(self, podgroups: tuple[int, ...], purpose: Purpose) -> Rows | None:
        """int64[D]: domain rows offered by the first plugin with an opinion; None if none has one."""
        for plugin in self._asked(OffersDomains):
            offered = plugin.domains(podgroups, purpose)
            if offered is not None:
                return offered
        return None

    @property
    def scores_domains(self) -> bool:
        """Whether any plugin says which of the domains of one tier is better."""
        return bool(self._asked(ScoresDomains))

    def domain_score(self, request: Longs, used: Longs, allocatable: Longs) -> Floats:
        """float64[D]: sum of all scores of domains for tasks that ask for ``request`` int64[R]; larger is better.

        ``used`` and ``allocatable``, int64[D, R] each, are those of the nodes of each domain together.
        """
        total = np.zeros(len(used))
        for plugin in self._asked(ScoresDomains):
            total += plugin.domain_score(request, used, allocatable)
        return total
