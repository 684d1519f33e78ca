"""The plugins' answers, combined: all are asked, where upstream's tiers end the count early.

A veto prevails. Orders are compared plugin after plugin, in the order of the policy; ties in all of them are decided by
age and name. No tier is skipped and no empty set is refilled (notes-volcano 1.8, 5 and 6).
"""

from functools import cached_property

import numpy as np

from pipeline.cluster.arrays import (
    NO_ROWS,
    NONE,
    UNLIMITED,
    Bools,
    Bytes,
    Floats,
    Ids,
    Longs,
    Rows,
    dense_rank,
    sealed,
    total_rank,
)
from pipeline.cluster.cards import fits_card
from pipeline.cluster.rules.match_policy import to_start
from pipeline.cluster.rules.quota import agreed
from pipeline.cluster.rules.sparing import Quota
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PHASE_PENDING, RUNNING
from pipeline.kernels import kernel
from pipeline.plugins.asked import AskedPlugins
from pipeline.plugins.extension_points import (
    ALLOCATABLE,
    BUNDLE_QUOTA,
    CARD_CHOICE,
    DOMAIN_GRADIENT,
    FAIR_SHARE,
    JOB_ENQUEUED,
    JOB_ORDER,
    JOB_PIPELINED,
    JOB_READY,
    JOB_STARVING,
    JOB_VALID,
    LASTING,
    NODE_SCORE,
    OVERUSED,
    PREDICATE,
    PREEMPTIVE,
    QUEUE_ORDER,
    QUOTA_COLUMNS,
    SHIELD,
    TASK_ORDER,
    TASK_QUOTA,
    VICTIM_QUEUE_ORDER,
    VICTIM_SET,
    Follows,
    Opinion,
    Preemptor,
)
from pipeline.policy import ExtensionPoint, Purpose


@kernel
def _takeable(may: Bools, podgroup: Ids, preemptible: Bools, status: Bytes, clears: bool) -> Bools:
    """bool[T]: running or bound tasks of the podgroups ``may``; only preemptible ones, unless the purpose is CLEAR."""
    result = np.empty(len(podgroup), np.bool_)
    for task in range(len(podgroup)):
        runs = (status[task] == BOUND) | (status[task] == RUNNING)
        result[task] = runs & (preemptible[task] | clears) & may[podgroup[task]]
    return result


class Host(AskedPlugins):
    """What the policy's plugins say of one snapshot."""

    #: The last answer about candidates: the search asks, and so does its explanation.
    _last_candidates: tuple[tuple[object, ...], Bools] | None = None

    # -- orders ------------------------------------------------------------------------------------------------

    @cached_property
    def job_rank(self) -> Longs:
        """int64[G]: total order of podgroups, first served first."""
        keys = [plugin.job_order() for plugin in self._asked(JOB_ORDER)]
        return total_rank(*keys, self.context.snapshot.seniority)

    @cached_property
    def task_rank(self) -> Longs:
        """int64[T]: total order of tasks, first placed first."""
        tasks = self.context.snapshot.tasks
        index = np.where(tasks.index == NONE, np.iinfo(np.int32).max, tasks.index)
        keys = [plugin.task_order() for plugin in self._asked(TASK_ORDER)]
        return total_rank(*keys, index, tasks.created, tasks.order)

    @cached_property
    def queue_rank(self) -> Longs:
        """int64[Q]: total order of queues, first served first, whatever podgroup they have next."""
        return self.queue_rank_with(np.full(len(self._given.snapshot.queues), NONE, np.int32))

    def queue_rank_with(self, following: Ids) -> Longs:
        """int64[Q]: the same, with the podgroup that each queue has next (int32[Q], NONE if none)."""
        queues = self._given.snapshot.queues
        keys = [key for plugin in self._asked(QUEUE_ORDER) for key in plugin.queue_order(following)]
        return total_rank(*keys, queues.created, queues.order)

    @cached_property
    def looks_ahead(self) -> bool:
        """Whether the order of queues depends on the podgroup that each has next."""
        return any(plugin.LOOKS_AHEAD for plugin in self._asked(QUEUE_ORDER))

    def victim_queue_rank(self, queue: int) -> Longs:
        """int64[Q]: from which queue to take first for a preemptor of ``queue``; by default the one served last."""
        keys = [plugin.victim_queue_order(queue) for plugin in self._asked(VICTIM_QUEUE_ORDER)]
        return dense_rank(*keys, -self.queue_rank)

    def job_order_follows(self, what: Follows) -> bool:
        """Whether the order of podgroups changes with ``what`` as tasks are placed."""
        return any(plugin.JOB_ORDER_FOLLOWS is what for plugin in self._asked(JOB_ORDER))

    def queue_order_follows(self, what: Follows) -> bool:
        """Whether the order of queues changes with ``what`` as tasks are placed."""
        return any(plugin.QUEUE_ORDER_FOLLOWS is what for plugin in self._asked(QUEUE_ORDER))

    # -- states of podgroups -----------------------------------------------------------------------------------

    def _all_of(self, said: list[Bools]) -> Bools:
        """bool[G]: where every answer is true; true if there is no answer."""
        return np.asarray(np.logical_and.reduce([np.ones(len(self.context.snapshot.podgroups), bool), *said]))

    @cached_property
    def valid(self) -> Bools:
        """bool[G]: fit to be scheduled at all: alive, admitted, and no plugin objects."""
        groups = self.context.snapshot.podgroups
        said = self._all_of([plugin.job_valid() for plugin in self._asked(JOB_VALID)])
        return np.asarray(said & groups.alive & (groups.phase != PHASE_PENDING))

    @cached_property
    def ready(self) -> Bools:
        """bool[G]: may start on the room that it holds."""
        return self._all_of([plugin.job_ready() for plugin in self._asked(JOB_READY)])

    @cached_property
    def binding(self) -> bool:
        """Whether any plugin says when a podgroup may start; if not, it starts with any task."""
        return bool(self._asked(JOB_READY))

    @property
    def to_start(self) -> Snapshot:
        """The snapshot with the minima that podgroups need to start; see `pipeline.cluster.rules.match_policy`."""
        return to_start(self.context.snapshot, self._given.policy.match_policy)

    @cached_property
    def pipelined(self) -> Bools:
        """bool[G]: may start once its promised room is free."""
        return self._all_of([plugin.job_pipelined() for plugin in self._asked(JOB_PIPELINED)])

    @cached_property
    def starving(self) -> Bools:
        """bool[G]: needs room that others hold: all of the first tier that answers say so; none if no tier does."""
        for tier in self._by_tier(JOB_STARVING):
            return self._all_of([plugin.job_starving() for plugin in tier])
        return np.zeros(len(self.context.snapshot.podgroups), bool)

    def enqueued(self, podgroup: int, admitted: Bools) -> bool:
        """Whether the podgroup is admitted: none rejects it up to the first tier that permits, or all abstain."""
        for tier in self._by_tier(JOB_ENQUEUED):
            said = [plugin.job_enqueued(podgroup, admitted) for plugin in tier]
            if Opinion.REJECT in said or Opinion.PERMIT in said:
                return Opinion.REJECT not in said
        return True

    # -- queues ------------------------------------------------------------------------------------------------

    @cached_property
    def headroom(self) -> Longs:
        """int64[Q, R]: what each queue may still take; UNLIMITED where no plugin sets a limit."""
        snapshot = self._given.snapshot
        room = np.full((len(snapshot.queues), len(snapshot.vocabulary.resources)), UNLIMITED, np.int64)
        for plugin in self._asked(ALLOCATABLE):
            room = np.minimum(room, plugin.headroom())
        return room

    @cached_property
    def lasting_headroom(self) -> Longs:
        """int64[Q, R]: what each queue may still take of work that can never be evicted; ``headroom`` applies too."""
        room = np.full_like(self.headroom, UNLIMITED)
        for plugin in self._asked(LASTING):
            room = np.minimum(room, plugin.lasting_headroom())
        return room

    def fair_share(self) -> Longs | None:
        """int64[Q, R]: what each queue is entitled to, by the first plugin that answers; None if none does."""
        return next((plugin.fair_share() for plugin in self._asked(FAIR_SHARE)), None)

    @cached_property
    def overused(self) -> Bools:
        """bool[Q]: queues that get no more room."""
        result = np.zeros(len(self._given.snapshot.queues), bool)
        for plugin in self._asked(OVERUSED):
            result |= plugin.overused()
        return result

    def preemptive(self, preemptor: Preemptor) -> bool:
        """Whether the preemptor's queue may take from others: no plugin objects, and not all that are asked abstain."""
        asked = self._asked(PREEMPTIVE)
        said = [opinion for plugin in asked if (opinion := plugin.preemptive(preemptor)) is not None]
        return all(said) and (bool(said) or not asked)

    # -- victims -----------------------------------------------------------------------------------------------

    def candidates(self, preemptor: Preemptor) -> Bools:
        """bool[T]: tasks that may be victims as far as each can be judged alone.

        They run or are bound (not by this cycle), are preemptible like their podgroup, and are not the preemptor's own;
        in preempt they are of the same queue and of strictly lower priority, in reclaim of another queue that lets
        others reclaim; and no plugin shields them. Consolidating and clearing take from all queues, and clearing also
        takes tasks that are not preemptible: a broken gang does no work. Some plugin must permit: where none that is
        asked has an opinion or a quota, no task may be taken.
        """
        asked = preemptor.podgroups, preemptor.request.tobytes(), preemptor.purpose, preemptor.task
        if self._last_candidates is None or self._last_candidates[0] != asked:
            self._last_candidates = asked, sealed(self._candidates(preemptor))
        return self._last_candidates[1]

    def _candidates(self, preemptor: Preemptor) -> Bools:
        snapshot = self.context.snapshot
        tasks, groups = snapshot.tasks, snapshot.podgroups
        clears = preemptor.purpose is Purpose.CLEAR
        may = groups.alive & (groups.preemptible | clears)
        may[list(preemptor.podgroups)] = False
        queues = groups.queue[list(preemptor.podgroups[:1])]
        if preemptor.purpose is Purpose.PREEMPT:
            may &= (groups.queue == queues) & (groups.priority < groups.priority[list(preemptor.podgroups)].min())
        elif preemptor.purpose is Purpose.RECLAIM:
            may &= (groups.queue != queues) & snapshot.queues.reclaimable[groups.queue]
        result, said = self._running_of(may, clears=clears), self._shields(preemptor, ExtensionPoint.EVICTABLE)
        if not said and not self.has_quota(preemptor):
            return np.zeros(len(tasks), bool)
        for opinion in said:
            if opinion is not True:
                result &= opinion
        return result

    def _running_of(self, may: Bools, *, clears: bool = False) -> Bools:
        """bool[T]: tasks of the podgroups ``may`` (bool[G]) that run or are bound, but not by this cycle."""
        tasks = self.context.snapshot.tasks
        result = _takeable(may, tasks.podgroup, tasks.preemptible, tasks.status, clears)
        result[self.context.starting] = False
        return result

    def _shields(self, preemptor: Preemptor, point: ExtensionPoint) -> list[Bools | bool]:
        """The opinions on tasks that are judged alone."""
        asked = self._asked(SHIELD, point)
        return [opinion for plugin in asked if (opinion := plugin.evictable(preemptor)) is not None]

    def has_quota(self, preemptor: Preemptor) -> bool:
        """Whether any plugin has a quota that candidates use up along their order for this preemptor."""
        return any(plugin.has_quota(preemptor) for plugin in self._asked(BUNDLE_QUOTA))

    def bundle_quota_filter(self, preemptor: Preemptor, rows: Rows, unit: Rows | None = None) -> Bools:
        """bool[C]: which of the ordered candidates may go by all quotas at once.

        Neighbours of one ``unit`` (int64[C], NONE: alone) go together or not at all; what stays uses nothing up.
        """
        unit = np.full(len(rows), NONE, np.int64) if unit is None else unit
        plugins = [plugin for plugin in self._asked(BUNDLE_QUOTA) if plugin.has_quota(preemptor)]

        def said(at: Rows) -> list[Bools]:
            return [one.bundle_quota_filter(preemptor, rows[at], unit[at]) for one in plugins]

        return agreed(said, len(rows), unit)

    def bundle_quota(self, preemptor: Preemptor) -> Quota | None:
        """The only quota for this preemptor, where it can be counted in columns; else the filter has to be asked."""
        alone = sum(plugin.has_quota(preemptor) for plugin in self._asked(BUNDLE_QUOTA)) == 1
        return next((plugin.bundle_quota(preemptor) for plugin in self._asked(QUOTA_COLUMNS) if alone), None)

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the final victims are lawful together, in any order."""
        return all(plugin.validate_set(preemptor, rows) for plugin in self._asked(VICTIM_SET))

    # -- victims of the task-centric actions -------------------------------------------------------------------

    def task_candidates(self, preemptor: Preemptor, may: Bools, point: ExtensionPoint) -> Bools:
        """bool[T]: running, preemptible tasks of the podgroups ``may`` (bool[G]) that no plugin refuses, each alone.

        PREEMPTABLE and RECLAIMABLE are asked apart. Some plugin must permit: where none that is asked has an opinion,
        no task may be taken.
        """
        result, said = self._running_of(may), self._shields(preemptor, point)
        if not said and all(
            plugin.task_quota_filter(preemptor, NO_ROWS) is None for plugin in self._asked(TASK_QUOTA, point)
        ):
            return np.zeros(len(result), bool)
        for opinion in said:
            result &= opinion
        return result

    def task_victims(self, preemptor: Preemptor, rows: Rows, point: ExtensionPoint) -> Bools:
        """bool[C]: which of the ordered candidates may go by all quotas at once.

        See `agreed`.
        """
        plugins = self._asked(TASK_QUOTA, point)

        def said(at: Rows) -> list[Bools]:
            some = rows[at]
            opinions = [plugin.task_quota_filter(preemptor, some) for plugin in plugins]
            return [opinion for opinion in opinions if opinion is not None]

        return agreed(said, len(rows))

    # -- nodes -------------------------------------------------------------------------------------------------

    def allowed(self, shapes: Rows) -> Bools:
        """bool[S, N]: nodes on which tasks of each shape may run, resources aside, with a card that is large enough."""
        snapshot = self.context.snapshot
        plugins = self._asked(PREDICATE)
        if plugins:
            result = np.asarray(np.logical_and.reduce([plugin.allowed(shapes) for plugin in plugins]))
        else:
            result = np.broadcast_to(snapshot.nodes.schedulable, (len(shapes), len(snapshot.nodes))).copy()
        for at, amount in enumerate(snapshot.shapes.on_card[shapes].tolist()):
            if amount:
                result[at] &= fits_card(amount, snapshot.nodes.cards)
        return result

    @cached_property
    def spreads_cards(self) -> bool:
        """Whether a task gets the emptiest of a node's cards that fit, by the first plugin; else the fullest."""
        return next((plugin.spreads_cards() for plugin in self._asked(CARD_CHOICE)), False)

    def node_score(self, shape: int, used: Longs, rows: Rows) -> Floats:
        """float64[M]: sum of all scores for a task of the shape on the nodes ``rows``; larger is better."""
        total = np.zeros(len(rows))
        for plugin in self._asked(NODE_SCORE):
            total += plugin.node_score(shape, used, rows)
        return total

    def domains(self, podgroups: tuple[int, ...], purpose: Purpose) -> Rows | None:
        """Domain rows offered by the first plugin with an opinion (winner takes all), None if none has one."""
        for plugin in self._asked(DOMAIN_GRADIENT):
            offered = plugin.domains(podgroups, purpose)
            if offered is not None:
                return offered
        return None
