"""The minruntime plugin: a podgroup that has just started runs for a minimum time before it may lose tasks.

Queues state the time, separately for preempt and for reclaim; a queue without a statement has that of its nearest
ancestor. With ``reclaim_from`` = ``lca``, KAI Scheduler's way, the queue that counts in reclaim is the one at which the
ancestors of victim and preemptor differ first; queues below it do not count (notes on KAI, 1.10).
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Ids, Rows, distinct, in_a_row, running_sums, sealed
from pipeline.cluster.queue_tree import chain
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.subgroups import wholeness
from pipeline.cluster.tables import Queues
from pipeline.cluster.what_if import WhatIf
from pipeline.keeping import cached_property
from pipeline.plugins.arguments import DURATION, SWITCH, choice
from pipeline.plugins.extension_points import ShieldsAnew, ShieldsTasks, TimesShields, ValidatesSets, ValidatesVictims
from pipeline.plugins.plugin import Context, OfPodgroups, Plugin, Preemptor, Protects
from pipeline.policy import PluginSetting, Purpose

_PARTING, _LEAF = "lca", "queue"


class MinimumRuntime(Plugin, ShieldsTasks, ShieldsAnew, TimesShields, ValidatesVictims, ValidatesSets):
    """Shields podgroups that were first whole less than a minimum runtime ago.

    A podgroup that was never whole has no work to protect. With ``elastic`` a podgroup with more tasks than its minimum
    may lose those, and keeps its minimum.
    """

    PROTECTS = Protects.RUNTIME
    ARGUMENTS: ClassVar = {
        "default_preempt": DURATION,
        "default_reclaim": DURATION,
        "reclaim_from": choice(_PARTING, _LEAF),
        "elastic": SWITCH,
    }

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        queues = self._queues = context.snapshot.queues
        otherwise = setting.argument("default_preempt", 0.0), setting.argument("default_reclaim", 0.0)
        self._preempt, self._reclaim = _times_of(queues, otherwise)
        self._parting = setting.argument("reclaim_from", _LEAF) == _PARTING
        self._elastic = setting.argument("elastic", False)

    def shields_anew(self) -> bool:
        """Whether surplus counts."""
        return self._elastic and (self._preempt is not None or self._reclaim is not None)

    def evictable(self, preemptor: Preemptor) -> OfPodgroups | bool:
        """bool[G]: tasks of podgroups that ran long enough, were never whole, or have more tasks than must stay."""
        if self._stated(preemptor.purpose) is None or not (young := self._young(preemptor)).any():
            return True
        if self._elastic:
            young = young & ~self._has_surplus()
        return OfPodgroups(~young)

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether every young podgroup among the victims keeps its minimum."""
        if self._stated(preemptor.purpose) is None:
            return True
        owners = self._base.tasks.podgroup[rows]
        owners = distinct(owners[self._young(preemptor)[owners]])
        if len(owners) == 0:
            return True
        after = WhatIf.of(self._snapshot).evicting(rows)
        return all(has_minimum(after, owner) for owner in owners.tolist())

    def validate_each(self, preemptor: Preemptor, sets: Sequence[Rows]) -> Bools:
        """bool[S]: the same of several sets; only those with a young podgroup are looked at one by one."""
        result = np.ones(len(sets), bool)
        if self._stated(preemptor.purpose) is None or not (young := self._young(preemptor)).any():
            return result
        rows, start = in_a_row(sets)
        among = running_sums(young[self._base.tasks.podgroup[rows]])[start]
        for at in np.flatnonzero(np.diff(among)).tolist():
            result[at] = self.validate_set(preemptor, sets[at])
        return result

    def _young(self, preemptor: Preemptor) -> Bools:
        """bool[G]: podgroups that have not run for their minimum time."""
        asked = preemptor.purpose, preemptor.podgroups
        if asked not in self._known_young:
            self._known_young[asked] = self._too_young(preemptor)
        return self._known_young[asked]

    @cached_property
    def _known_young(self) -> dict[tuple[Purpose, tuple[int, ...]], Bools]:
        return {}

    def _too_young(self, preemptor: Preemptor) -> Bools:
        groups = self._base.podgroups
        ran = np.fmax(0.0, self._now - groups.started)  # the clock that says when it started may be ahead of ours
        ran[np.isnan(groups.started)] = np.inf
        return sealed(ran < self._granted(preemptor))

    def over_at(self, preemptor: Preemptor) -> Floats:
        """float64[T]: when the minimum time of the podgroup of each task is over; NaN if it was never whole."""
        over = self._base.podgroups.started + self._granted(preemptor)
        return np.asarray(over[self._base.tasks.podgroup])

    def _granted(self, preemptor: Preemptor) -> Floats:
        """float64[G]: the minimum time of each podgroup."""
        stated, queue = self._stated(preemptor.purpose), self._base.podgroups.queue
        if stated is None:
            return np.zeros(len(queue))
        if preemptor.purpose is not Purpose.PREEMPT:
            stated = stated[self._asked_of(preemptor)]
        return np.asarray(stated[queue])

    def _stated(self, purpose: Purpose) -> Floats | None:
        """float64[Q]: the minimum time of each queue in evictions of a purpose; None if none has one."""
        if purpose is Purpose.PREEMPT:
            return self._preempt
        return self._reclaim if purpose is Purpose.RECLAIM else None

    def _asked_of(self, preemptor: Preemptor) -> Rows:
        """int64[Q]: the queue whose time counts for each queue against the preemptor's."""
        parent, speaks = self._queues.parent, np.arange(len(self._queues))
        if self._parting:
            own = set(chain(parent, self._queue_of(preemptor)))
            for queue in range(len(parent)):
                above = int(parent[queue])
                speaks[queue] = queue if above == NONE or above in own else speaks[above]
        return speaks

    def _has_surplus(self) -> Bools:
        """bool[G]: podgroups with more tasks than their minimum, as a whole or in some subgroup, or more subgroups."""
        snapshot = self._snapshot
        result = snapshot.counts.valid > snapshot.podgroups.min_available
        parts, leaf = snapshot.subgroups, snapshot.subgroup_counts.valid
        slack = wholeness(parts, snapshot.podgroups, leaf).slack
        result[parts.podgroup] = False
        result |= slack[len(parts) :] > 0
        result[parts.podgroup[(leaf > np.maximum(parts.min_available, 0)) | (slack[: len(parts)] > 0)]] = True
        return result


def _times_of(queues: Queues, otherwise: tuple[float, float]) -> tuple[Floats | None, Floats | None]:
    """The times of queues in preempt and in reclaim, see `_inherited`; worked out once for a table of queues."""
    known = queues.answers(_times_of)
    if otherwise not in known:
        preempt = _inherited(queues.parent, queues.preempt_min_runtime_s, otherwise[0])
        known[otherwise] = preempt, _inherited(queues.parent, queues.reclaim_min_runtime_s, otherwise[1])
    return known[otherwise]


def _inherited(parent: Ids, stated: Floats, otherwise: float) -> Floats | None:
    """float64[Q]: the time that each queue or its nearest ancestor states, else ``otherwise``; None if all are 0."""
    result = stated.copy()
    for queue in range(len(result)):  # parents come before children
        if np.isnan(result[queue]):
            result[queue] = otherwise if parent[queue] == NONE else result[parent[queue]]
    return result if result.any() else None
