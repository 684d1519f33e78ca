"""The plugins' answers, combined: one true combination, where upstream has tiers that end the count early.

A veto loses. Orders are compared plugin after plugin, in the order of the policy; what is equal in all of them is
decided by age and name. No tier is skipped and no empty set is refilled (notes-volcano 1.8, 5 and 6).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Bytes, Floats, Ids, Longs, Rows, dense_rank, total_rank
from pipeline.cluster.cards import fits_card
from pipeline.cluster.tables import BOUND, PHASE_PENDING, RUNNING
from pipeline.kernels import kernel
from pipeline.plugins.extension_points import Context, Opinion, Preemptor
from pipeline.plugins.registry import make_plugins
from pipeline.policy import ExtensionPoint, Purpose


@kernel
def _takeable(may: Bools, podgroup: Ids, preemptible: Bools, status: Bytes) -> Bools:
    """bool[T]: tasks of podgroups that ``may`` be taken from that are preemptible and running or bound."""
    result = np.empty(len(podgroup), np.bool_)
    for task in range(len(podgroup)):
        runs = (status[task] == BOUND) | (status[task] == RUNNING)
        result[task] = runs & preemptible[task] & may[podgroup[task]]
    return result


@dataclass(frozen=True)
class Host:
    """What the policy's plugins say of one snapshot."""

    context: Context

    @cached_property
    def _plugins(self) -> list[tuple[Any, Any]]:
        return make_plugins(self.context)

    def _asked(self, point: ExtensionPoint, method: str) -> list[Any]:
        return [
            getattr(plugin, method)
            for setting, plugin in self._plugins
            if setting.asks(point) and hasattr(plugin, method)
        ]

    def _by_tier(self, point: ExtensionPoint, method: str) -> list[list[Any]]:
        """The same, tier by tier."""
        tiers = dict[int, list[Any]]()
        for setting, plugin in self._plugins:
            if setting.asks(point) and hasattr(plugin, method):
                tiers.setdefault(setting.tier, []).append(getattr(plugin, method))
        return [tiers[tier] for tier in sorted(tiers)]

    # -- orders ------------------------------------------------------------------------------------------------

    @cached_property
    def job_rank(self) -> Longs:
        """int64[G]: total order of podgroups, first served first."""
        keys = (key() for key in self._asked(ExtensionPoint.JOB_ORDER, "job_order"))
        return total_rank(*keys, self.context.snapshot.seniority)

    @cached_property
    def task_rank(self) -> Longs:
        """int64[T]: total order of tasks, first placed first."""
        tasks = self.context.snapshot.tasks
        index = np.where(tasks.index == NONE, np.iinfo(np.int32).max, tasks.index)
        keys = [key() for key in self._asked(ExtensionPoint.TASK_ORDER, "task_order")]
        return total_rank(*keys, index, tasks.created, tasks.order)

    @cached_property
    def queue_rank(self) -> Longs:
        """int64[Q]: total order of queues, first served first."""
        queues = self.context.snapshot.queues
        keys = [column for key in self._asked(ExtensionPoint.QUEUE_ORDER, "queue_order") for column in key()]
        return total_rank(*keys, queues.created, queues.order)

    def victim_queue_rank(self, queue: int) -> Longs:
        """int64[Q]: from which queue to take first for a preemptor of ``queue``; else the last served goes first."""
        keys = [key(queue) for key in self._asked(ExtensionPoint.VICTIM_QUEUE_ORDER, "victim_queue_order")]
        return dense_rank(*keys, -self.queue_rank)

    def ordered_by(self, what: str, point: ExtensionPoint) -> bool:
        """Whether an order of jobs or queues goes by their ``share`` or ``standing``, and so moves with placements."""
        asked = self._asked(point, str(point))
        return any((what, point) in getattr(plugin, "ORDERED_BY", ()) for plugin in (vote.__self__ for vote in asked))

    # -- states of podgroups -----------------------------------------------------------------------------------

    def _all_say(self, point: ExtensionPoint, nobody: bool) -> Bools:
        groups = len(self.context.snapshot.podgroups)
        said = [state for vote in self._asked(point, "job_state") if (state := vote(point)) is not None]
        if not said:
            return np.full(groups, nobody)
        return np.asarray(np.logical_and.reduce(said))

    @cached_property
    def valid(self) -> Bools:
        """bool[G]: fit to be scheduled at all: alive, admitted, and nobody objects."""
        groups = self.context.snapshot.podgroups
        return np.asarray(
            self._all_say(ExtensionPoint.JOB_VALID, True) & groups.alive & (groups.phase != PHASE_PENDING)
        )

    @cached_property
    def ready(self) -> Bools:
        """bool[G]: may start what it holds."""
        return self._all_say(ExtensionPoint.JOB_READY, True)

    @cached_property
    def binding(self) -> bool:
        """Whether anybody says when a podgroup may start; if not, it starts with whatever it gets."""
        host = self._asked(ExtensionPoint.JOB_READY, "job_state")
        return any(vote(ExtensionPoint.JOB_READY) is not None for vote in host)

    @cached_property
    def pipelined(self) -> Bools:
        """bool[G]: may start once what it was promised comes free."""
        return self._all_say(ExtensionPoint.JOB_PIPELINED, True)

    @cached_property
    def starving(self) -> Bools:
        """bool[G]: needs room that others hold: all of the first tier that answers say so; nobody if none does."""
        for tier in self._by_tier(ExtensionPoint.JOB_STARVING, "job_state"):
            said = [state for vote in tier if (state := vote(ExtensionPoint.JOB_STARVING)) is not None]
            if said:
                return np.asarray(np.logical_and.reduce(said))
        return np.zeros(len(self.context.snapshot.podgroups), bool)

    def enqueued(self, podgroup: int, admitted: Bools) -> bool:
        """Whether the podgroup is admitted: nobody rejects it up to the first tier that permits, or all abstain."""
        for tier in self._by_tier(ExtensionPoint.JOB_ENQUEUED, "job_enqueued"):
            host = [vote(podgroup, admitted) for vote in tier]
            if Opinion.REJECT in host or Opinion.PERMIT in host:
                return Opinion.REJECT not in host
        return True

    # -- queues ------------------------------------------------------------------------------------------------

    @cached_property
    def headroom(self) -> Longs:
        """int64[Q, R]: what each queue may still take; UNLIMITED where nobody sets a bound."""
        snapshot = self.context.snapshot
        room = np.full((len(snapshot.queues), len(snapshot.vocabulary.resources)), UNLIMITED, np.int64)
        for limit in self._asked(ExtensionPoint.ALLOCATABLE, "headroom"):
            room = np.minimum(room, limit())
        return room

    def fair_share(self) -> Longs | None:
        """int64[Q, R]: what each queue is entitled to, of the first plugin that says; None if none does."""
        for _, plugin in self._plugins:
            if hasattr(plugin, "fair_share"):
                share: Longs = plugin.fair_share()
                return share
        return None

    @cached_property
    def overused(self) -> Bools:
        """bool[Q]: queues that get nothing more."""
        result = np.zeros(len(self.context.snapshot.queues), bool)
        for vote in self._asked(ExtensionPoint.OVERUSED, "overused"):
            result |= vote()
        return result

    def preemptive(self, preemptor: Preemptor) -> bool:
        """Whether the preemptor's queue may take from others: nobody objects, and not all who are asked abstain."""
        asked = self._asked(ExtensionPoint.PREEMPTIVE, "preemptive")
        said = [opinion for vote in asked if (opinion := vote(preemptor)) is not None]
        return all(said) and (bool(said) or not asked)

    # -- victims -----------------------------------------------------------------------------------------------

    def candidates(self, preemptor: Preemptor) -> Bools:
        """bool[T]: tasks that may be victims as far as each can be judged alone.

        Running or bound (not just now), preemptible like their podgroup, not the preemptor's own; in preempt of the
        same queue and of strictly lower priority, in reclaim of another queue that lets others reclaim; and no plugin
        shields them. Somebody must permit: where no plugin that is asked has an opinion or counts, nobody may be taken.
        """
        snapshot = self.context.snapshot
        tasks, groups = snapshot.tasks, snapshot.podgroups
        may = groups.alive & groups.preemptible
        may[list(preemptor.podgroups)] = False
        own = groups.queue[preemptor.podgroups[0]]
        if preemptor.purpose is Purpose.PREEMPT:
            may &= (groups.queue == own) & (groups.priority < groups.priority[list(preemptor.podgroups)].min())
        else:
            may &= (groups.queue != own) & snapshot.queues.reclaimable[groups.queue]
        result = _takeable(may, tasks.podgroup, tasks.preemptible, tasks.status)
        result[self.context.starting] = False
        shields = self._asked(ExtensionPoint.EVICTABLE, "evictable")
        said = [opinion for shield in shields if (opinion := shield(preemptor)) is not None]
        if not said and not self.has_quota(preemptor):
            return np.zeros(len(tasks), bool)
        for opinion in said:
            if opinion is not True:
                result &= opinion
        return result

    def has_quota(self, preemptor: Preemptor) -> bool:
        """Whether any plugin counts candidates off along their order for this preemptor."""
        return any(asks(preemptor) for asks in self._asked(ExtensionPoint.EVICTABLE, "has_quota"))

    def bundle_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools:
        """bool[C]: which of the ordered candidates may go; every plugin counts the whole list on its own."""
        result = np.ones(len(rows), bool)
        for vote in self._asked(ExtensionPoint.EVICTABLE, "bundle_quota_filter"):
            result &= vote(preemptor, rows)
        return result

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the final victims are lawful together, in any order."""
        return all(vote(preemptor, rows) for vote in self._asked(ExtensionPoint.EVICTABLE, "validate_set"))

    # -- victims of the task-centric actions -------------------------------------------------------------------

    def task_candidates(self, preemptor: Preemptor, point: ExtensionPoint) -> Bools:
        """bool[T]: tasks that nobody refuses who looks at each alone; PREEMPTABLE and RECLAIMABLE are asked apart.

        Somebody must permit: where no plugin that is asked has an opinion, nobody may be taken.
        """
        tasks = len(self.context.snapshot.tasks)
        shields = self._asked(point, "evictable")
        said = [opinion for shield in shields if (opinion := shield(preemptor)) is not None]
        nobody = np.zeros(0, np.int64)
        if not said and all(vote(preemptor, nobody) is None for vote in self._asked(point, "task_quota_filter")):
            return np.zeros(tasks, bool)
        result = np.ones(tasks, bool)
        for opinion in said:
            result &= opinion
        return result

    def task_victims(self, preemptor: Preemptor, rows: Rows, point: ExtensionPoint) -> Bools:
        """bool[C]: which of the ordered candidates may go by all counts at once.

        Each plugin counts on its own, and so charges its quota for candidates that another refuses. What is refused up
        to the first such candidate is certain; it is dropped and the rest counted anew.
        """
        kept = np.ones(len(rows), bool)
        host = self._asked(point, "task_quota_filter")
        while True:
            at = np.flatnonzero(kept)
            said = [opinion for vote in host if (opinion := vote(preemptor, rows[at])) is not None]
            if not said:
                return kept
            refused = ~np.logical_and.reduce(said)
            disputed = refused & np.logical_or.reduce(said)
            certain = int(np.argmax(disputed)) + 1 if disputed.any() else len(at)
            kept[at[:certain][refused[:certain]]] = False
            if not disputed.any():
                return kept

    # -- nodes -------------------------------------------------------------------------------------------------

    def allowed(self, shapes: Rows) -> Bools:
        """bool[S, N]: nodes on which tasks of each shape may run, resources aside; with a card that is big enough."""
        snapshot = self.context.snapshot
        predicates = self._asked(ExtensionPoint.PREDICATE, "allowed")
        if predicates:
            result = np.asarray(np.logical_and.reduce([predicate(shapes) for predicate in predicates]))
        else:
            result = np.broadcast_to(snapshot.nodes.schedulable, (len(shapes), len(snapshot.nodes))).copy()
        for at, amount in enumerate(snapshot.shapes.on_card[shapes].tolist()):
            if amount:
                result[at] &= fits_card(amount, snapshot.nodes.cards)
        return result

    @cached_property
    def spreads_cards(self) -> bool:
        """Whether a task gets the emptiest of a node's cards that fit, as the first plugin says; else the fullest."""
        return next((choice() for choice in self._asked(ExtensionPoint.NODE_ORDER, "spreads_cards")), False)

    def node_score(self, shape: int, used: Longs, rows: Rows) -> Floats:
        """float64[M]: sum of all scores for a task of the shape on the nodes ``rows``; larger is better."""
        total = np.zeros(len(rows))
        for score in self._asked(ExtensionPoint.NODE_ORDER, "node_score"):
            total += score(shape, used, rows)
        return total

    def domains(self, podgroups: tuple[int, ...], purpose: Purpose) -> Rows | None:
        """Domain rows offered by the first plugin with an opinion (document 1: winner takes all), None if none has."""
        for offer in self._asked(ExtensionPoint.DOMAIN_GRADIENT, "domains"):
            offered: Rows | None = offer(podgroups, purpose)
            if offered is not None:
                return offered
        return None
