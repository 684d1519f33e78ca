"""What plugins say about victims, combined: which tasks may go, each alone and together with others.

A veto prevails, and some plugin must permit. No tier is skipped and no empty set is refilled (notes on Volcano, 1.8,
items 5 and 6).
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Bytes, Ids, Rows, any_true, in_a_row, mask_of, sealed
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.rules.quota import agreed
from pipeline.cluster.rules.sparing import Quota, TaskQuota, may_all_go, no_quota, task_quota
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.keeping import cached_property
from pipeline.kernels import in_halves, writing
from pipeline.plugins.asked import AskedPlugins
from pipeline.plugins.extension_points import (
    BoundsEach,
    CountsBudgets,
    CountsQuotas,
    CountsTasks,
    FiltersBundles,
    FiltersTasks,
    NamesLosers,
    OrdersQueues,
    PacesEvictions,
    SharesFairly,
    ShieldsAnew,
    ShieldsTasks,
    TimesShields,
    ValidatesSets,
    ValidatesVictims,
)
from pipeline.plugins.plugin import OfPodgroups, Preemptor
from pipeline.policy import ExtensionPoint, Purpose

#: What plugins say of tasks that are judged alone, see ``ShieldsTasks``.
OnTasks: TypeAlias = Bools | OfPodgroups | bool
#: From this many tasks on, two threads judge them.
_TASKS_FOR_TWO = 400_000


@writing("result")
def _takeable(may: Bools, podgroup: Ids, preemptible: Bools, status: Bytes, clears: bool, result: Bools) -> None:
    """Fill in bool[T]: running or bound tasks of the podgroups ``may``; only preemptible ones, unless it ``clears``."""
    for task in range(len(result)):
        runs = (status[task] == BOUND) | (status[task] == RUNNING)
        result[task] = runs & (preemptible[task] | clears) & may[podgroup[task]]


def _known_by(preemptor: Preemptor) -> tuple[object, ...]:
    """What answers for a preemptor are kept by."""
    return preemptor.podgroups, preemptor.request.tobytes(), preemptor.purpose, preemptor.task


class VictimHost(AskedPlugins):
    """What the policy's plugins say about victims on one snapshot."""

    #: The last answer about candidates: the search asks, and so does its explanation.
    _last_candidates: tuple[tuple[object, ...], Bools] | None = None

    def candidates(self, preemptor: Preemptor) -> Bools:
        """bool[T]: tasks that may be victims as far as each can be judged alone.

        They run or are bound (not by this cycle), are preemptible like their podgroup, and are not the preemptor's own;
        in preempt they are of the same queue and of strictly lower priority, in reclaim of another queue that lets
        others reclaim; and no plugin shields them. Consolidating and clearing take from all queues, and clearing also
        takes tasks that are not preemptible: a broken gang does no work. Some plugin must permit: where none that is
        asked has an opinion or a quota, no task may be taken; nor does a queue take from another where no plugin says
        what queues are entitled to, for the other would take it back.
        """
        asked = _known_by(preemptor)
        if self._last_candidates is None or self._last_candidates[0] != asked:
            self._last_candidates = asked, sealed(self.may_go(preemptor))
        return self._last_candidates[1]

    def may_go(self, preemptor: Preemptor, rows: Rows | None = None) -> Bools:
        """bool[K]: which of some tasks are ``candidates``, without judging all others; without rows bool[T]."""
        snapshot = self.context.snapshot
        groups = snapshot.podgroups
        clears = preemptor.purpose is Purpose.CLEAR
        may = groups.alive & (groups.preemptible | clears)
        may[list(preemptor.podgroups)] = False
        queues = groups.queue[list(preemptor.podgroups[:1])]
        if preemptor.purpose is Purpose.PREEMPT:
            may &= (groups.queue == queues) & (groups.priority < groups.priority[list(preemptor.podgroups)].min())
        elif preemptor.purpose is Purpose.RECLAIM:
            may &= (groups.queue != queues) & snapshot.queues.reclaimable[groups.queue]
            may &= self.compares_queues(preemptor)
        said = self._shields(preemptor, ExtensionPoint.EVICTABLE)
        if not said and not self.has_quota(preemptor):
            may[:] = False
        return self._running_of(may, said, rows, clears=clears)

    def compares_queues(self, preemptor: Preemptor, point: ExtensionPoint = ExtensionPoint.EVICTABLE) -> bool:
        """Whether some plugin says what queues are entitled to; task by task, whether one counts and orders them.

        Task by task no final set is judged, so shares that are asked of one alone bind nothing there.
        """
        if point is ExtensionPoint.EVICTABLE:
            return bool(self._answering(SharesFairly))
        return any(OrdersQueues in type(one).__mro__ for one in self._counting_tasks(preemptor, point))

    def _counting_tasks(self, preemptor: Preemptor, point: ExtensionPoint) -> list[FiltersTasks]:
        """The plugins with a quota for the preemptor that tasks use up one by one."""
        return [
            one for one in self._asked(FiltersTasks, point) if one.task_quota_filter(preemptor, NO_ROWS) is not None
        ]

    def _running_of(self, may: Bools, said: list[OnTasks], rows: Rows | None = None, *, clears: bool = False) -> Bools:
        """bool[T]: tasks of the podgroups ``may`` (bool[G]) that run or are bound and that the context lets go.

        As far as all opinions permit them. With ``rows`` (int64[K]) bool[K]: those of them.
        """
        for opinion in said:
            if isinstance(opinion, OfPodgroups):
                may = may & opinion.may
        tasks = self.context.snapshot.tasks
        result = np.zeros(len(tasks) if rows is None else len(rows), np.bool_)
        if not any_true(may):
            return result
        some = slice(None) if rows is None else rows
        podgroup, preemptible, status = tasks.podgroup[some], tasks.preemptible[some], tasks.status[some]

        def judge(begin: int, end: int) -> None:
            _takeable(
                may, podgroup[begin:end], preemptible[begin:end], status[begin:end], clears, result[begin:end]
            )  # fmt: skip

        in_halves(judge, len(result), _TASKS_FOR_TWO)
        if len(self.context.starting):
            result &= ~mask_of(self.context.starting, len(tasks))[some]
        if self.context.among is not None:
            result &= mask_of(self.context.among, len(tasks))[some]
        for opinion in said:
            if opinion is not True and not isinstance(opinion, OfPodgroups):
                result &= opinion if isinstance(opinion, bool) else opinion[some]
        return result

    def _shields(self, preemptor: Preemptor, point: ExtensionPoint) -> list[OnTasks]:
        """The opinions on tasks that are judged alone."""
        asked = self._asked(ShieldsTasks, point)
        return [opinion for plugin in asked if (opinion := plugin.evictable(preemptor)) is not None]

    def has_quota(self, preemptor: Preemptor) -> bool:
        """Whether any plugin has a quota that candidates use up along their order for this preemptor."""
        return any(plugin.has_quota(preemptor) for plugin in self._asked(FiltersBundles))

    def bundle_quota_filter(self, preemptor: Preemptor, rows: Rows, unit: Rows | None = None) -> Bools:
        """bool[C]: which of the ordered candidates may go by all quotas at once.

        Neighbours of one ``unit`` (int64[C], NONE: alone) go together or not at all; what stays uses nothing up.
        """
        plugins = [plugin for plugin in self._asked(FiltersBundles) if plugin.has_quota(preemptor)]
        if not plugins:
            return np.ones(len(rows), bool)
        unit = np.full(len(rows), NONE, np.int64) if unit is None else unit

        def said(at: Rows) -> list[Bools]:
            return [one.bundle_quota_filter(preemptor, rows[at], unit[at]) for one in plugins]

        return agreed(said, len(rows))

    def may_lose(self, preemptor: Preemptor) -> Bools:
        """bool[Q]: queues that may lose something by all quotas, as far as these tell."""
        may = np.ones(len(self._given.snapshot.queues), bool)
        for plugin in self._asked(NamesLosers):
            may &= plugin.may_lose(preemptor)
        return may

    def bundle_quota(self, preemptor: Preemptor) -> Quota | None:
        """The only quota for this preemptor, where it can be counted in columns; else the filter has to be asked."""
        quota, budgets = self.bundle_quotas(preemptor) or (no_quota(), ())
        return quota if quota.counted and not any(map(len, budgets)) else None

    def bundle_quotas(self, preemptor: Preemptor) -> tuple[Quota, Sequence[Budgets]] | None:
        """What all quotas for this preemptor count, in columns: of queues, and budgets. None if one has to be asked."""
        asked = _known_by(preemptor)
        if asked not in self._quotas:
            self._quotas[asked] = self._counted_quotas(preemptor)
        return self._quotas[asked]

    def _counted_quotas(self, preemptor: Preemptor) -> tuple[Quota, Sequence[Budgets]] | None:
        budgets = self._answering(CountsBudgets)
        several = zip(self._answering(FiltersBundles), self._asked(FiltersBundles), strict=True)
        others = sum(at not in budgets and plugin.has_quota(preemptor) for at, plugin in several)
        counted = (plugin.bundle_quota(preemptor) for plugin in self._asked(CountsQuotas) if others == 1)
        quota = next(counted, None) if others else no_quota()
        return None if quota is None else (quota, self.budgets_left())

    def budgets_left(self) -> Sequence[Budgets]:
        """The disruption budgets of all plugins, with what they still allow."""
        return [plugin.budgets_left() for plugin in self._asked(CountsBudgets)]

    @cached_property
    def _quotas(self) -> dict[tuple[object, ...], tuple[Quota, Sequence[Budgets]] | None]:
        return {}

    def spares_each(self, preemptor: Preemptor, sets: Sequence[Rows]) -> Bools:
        """bool[S]: which of several sets of tasks may go by all quotas at once, each as a whole and by itself."""
        if not self.has_quota(preemptor):
            return np.ones(len(sets), bool)
        quota, snapshot = self.bundle_quota(preemptor), self._given.snapshot
        if quota is None:
            whole = (self.bundle_quota_filter(preemptor, rows, np.zeros(len(rows), np.int64)).all() for rows in sets)
            return np.fromiter(whole, bool, len(sets))
        tasks = snapshot.tasks
        return may_all_go(quota, *in_a_row(sets), (tasks.podgroup, tasks.shape), snapshot.shapes.request)

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the final victims are lawful together, in any order."""
        return all(plugin.validate_set(preemptor, rows) for plugin in self._asked(ValidatesVictims))

    def validate_each(self, preemptor: Preemptor, sets: Sequence[Rows]) -> Bools:
        """bool[S]: the same of several sets, each by itself."""
        result = np.ones(len(sets), bool)
        for plugin in self._asked(ValidatesSets):
            result &= plugin.validate_each(preemptor, sets)
        at_once = self._answering(ValidatesSets)
        for at, one in zip(self._answering(ValidatesVictims), self._asked(ValidatesVictims), strict=True):
            if at not in at_once:
                result &= np.fromiter((one.validate_set(preemptor, rows) for rows in sets), bool, len(sets))
        return result

    def keeps_pace(self, rows: Rows, point: ExtensionPoint = ExtensionPoint.EVICTABLE) -> bool:
        """Whether some tasks may all be evicted now, by what may be evicted in a time. Moves count."""
        return all(plugin.keeps_pace(rows) for plugin in self._asked(PacesEvictions, point))

    @property
    def bounds_each(self) -> bool:
        """Whether victims that are lawful together may be too many for one of several podgroups."""
        return any(plugin.bounds_each() for plugin in self._asked(BoundsEach, ExtensionPoint.EVICTABLE))

    def pace_changes_at(self, rows: Rows) -> float:
        """When more may be evicted, if what may be evicted in a time keeps some tasks; seconds, infinite: never."""
        bounds = (
            one for plugin in self._asked(PacesEvictions, ExtensionPoint.EVICTABLE) for one in plugin.beyond_pace(rows)
        )
        return min((one.leaves for one in bounds), default=float("inf"))

    # -- victims of the task-centric actions -------------------------------------------------------------------

    def task_candidates(self, preemptor: Preemptor, may: Bools, point: ExtensionPoint) -> Bools:
        """bool[T]: running, preemptible tasks of the podgroups ``may`` (bool[G]) that no plugin refuses, each alone.

        PREEMPTABLE and RECLAIMABLE are asked apart. Some plugin must permit: where none that is asked has an opinion,
        no task may be taken; and in reclaim none where no plugin compares queues.
        """
        said = self._shields(preemptor, point)
        unlawful = preemptor.purpose is Purpose.RECLAIM and not self.compares_queues(preemptor, point)
        if unlawful or not (said or self._counting_tasks(preemptor, point)):
            return np.zeros(len(self.context.snapshot.tasks), bool)
        return self._running_of(may, said)

    def task_quota(self, preemptor: Preemptor, point: ExtensionPoint) -> TaskQuota | None:
        """What the quotas count together, in columns; None where one of them has to be asked (``task_victims``)."""
        asked = zip(self._answering(FiltersTasks, point), self._asked(FiltersTasks, point), strict=True)
        opined = [at for at, one in asked if one.task_quota_filter(preemptor, NO_ROWS) is not None]
        countable = zip(self._answering(CountsTasks, point), self._asked(CountsTasks, point), strict=True)
        quotas = {at: quota for at, one in countable if (quota := one.task_quota(preemptor)) is not None}
        known = [quotas[at] for at in opined if at in quotas]
        queues, budgets = ([one for one in known if one.queues.counted], [one for one in known if len(one.allowed)])
        if len(known) < len(opined) or len(queues) > 1 or len(budgets) > 1:
            return None
        counted = (budgets[0].allowed, budgets[0].namespace, budgets[0].covers) if budgets else None
        spares = any(one.spares for one in known)
        if not queues:
            return task_quota(spares=spares, budgets=counted)
        return task_quota(spares=spares, queues=queues[0].queues, strict=queues[0].strict, budgets=counted)

    def shields_anew(self, point: ExtensionPoint) -> bool:
        """Whether evictions may change which of the other tasks plugins shield."""
        return any(plugin.shields_anew() for plugin in self._asked(ShieldsAnew, point))

    def timed_shields(self, point: ExtensionPoint) -> dict[str, TimesShields]:
        """The plugins that shield tasks for some time only, by name; for reports."""
        return dict(self.named(TimesShields, point))

    def task_victims(self, preemptor: Preemptor, rows: Rows, point: ExtensionPoint) -> Bools:
        """bool[C]: which of the ordered candidates may go by all quotas at once.

        See `agreed`.
        """
        plugins = self._asked(FiltersTasks, point)

        def said(at: Rows) -> list[Bools]:
            some = rows[at]
            opinions = [plugin.task_quota_filter(preemptor, some) for plugin in plugins]
            return [opinion for opinion in opinions if opinion is not None]

        return agreed(said, len(rows))
