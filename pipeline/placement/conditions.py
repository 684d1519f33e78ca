"""The condition of each podgroup that is not scheduled after a cycle: why, in numbers ("Gang Plugin", 6).

Derived from the snapshot after the cycle, so tasks that the cycle bound count as ready, as "Gang Plugin" asks for tasks
that the running transaction has allocated. Upstream also counts tasks whose allocation was undone with the rest of
their gang; here such an attempt leaves no trace. Promised tasks do not count as schedulable and are reported
separately.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Longs, Rows
from pipeline.cluster.rules.gang_groups import gang_group_of, gang_groups
from pipeline.cluster.rules.match_policy import has_run
from pipeline.cluster.rules.minima_met import is_valid_without, minima_met
from pipeline.cluster.rules.reaching import lacking_in_subgroups
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE, PHASE_PENDING, TERMINATING


class ConditionReason(StrEnum):
    """Why a podgroup is not scheduled; the words are Volcano's, ``SchedulingGated`` is Kubernetes'.

    Only one that starts together with others is ``OthersNotReady``.
    """

    TOO_FEW_OF_A_PART = "NotEnoughPodsOfTask"
    TOO_FEW = "NotEnoughTasks"
    NOT_ADMITTED = "NotAdmitted"
    GATED = "SchedulingGated"
    OTHERS = "OthersNotReady"
    NO_ROOM = "NotEnoughResources"


#: In the order of their codes in ``Conditions``.
REASONS = tuple(ConditionReason)
_NO_ROOM = REASONS.index(ConditionReason.NO_ROOM)
#: What keeps the others of a gang group waiting too.
_HOLD_OTHERS = (
    ConditionReason.TOO_FEW_OF_A_PART, ConditionReason.TOO_FEW, ConditionReason.NOT_ADMITTED, ConditionReason.GATED,
)  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """One podgroup that is not scheduled at the end of a cycle.

    Attributes
    ----------
    podgroup
        Row.
    reason
        The podgroup, a role or a subgroup has too few tasks that could ever count; its queue has not admitted it; too
        many of its tasks are gated; one of its gang group is held back for such a reason, or is not there; or there is
        no room.
    minimum
        Its ``min_available``.
    tasks, schedulable, promised, gated, ending
        How many tasks it has; how many are ready, wait for promised room, are gated, and are on their way out.
    unready
        How many tasks the minimum lacks: ``min_available`` less ``schedulable``, or what its roles or its subgroups
        lack at least, if more.
    retried
        Whether the next cycle tries again, because tasks still wait.
    """

    podgroup: int
    reason: ConditionReason
    minimum: int
    tasks: int
    schedulable: int
    promised: int
    gated: int
    ending: int
    unready: int
    retried: bool


@dataclass(frozen=True)
class Conditions:
    """The conditions of many podgroups, in columns of int64[K].

    ``reason`` is a position in ``REASONS``; the others are those of ``Condition``.
    """

    podgroup: Rows
    reason: Longs
    minimum: Longs
    tasks: Longs
    schedulable: Longs
    promised: Longs
    gated: Longs
    ending: Longs
    unready: Longs
    retried: Longs

    def __len__(self) -> int:
        return len(self.podgroup)

    def __iter__(self) -> Iterator[Condition]:
        """Each as a value, by row of the podgroup."""
        for row, reason, least, tasks, schedulable, promised, gated, ending, unready, retried in self.table.tolist():
            counts = (least, tasks, schedulable, promised, gated, ending, unready)
            yield Condition(row, REASONS[reason], *counts, bool(retried))

    @property
    def table(self) -> Longs:
        """int64[K, 10]: all columns side by side."""
        return np.stack([getattr(self, name) for name in self.__dataclass_fields__], axis=1)

    def only(self, rows: Bools | Rows) -> "Conditions":
        """Some of them, by position."""
        return Conditions(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def unscheduled_in(snapshot: Snapshot) -> Conditions:
    """The condition of every living podgroup that has tasks and is not scheduled, by row."""
    counts, groups, tasks = snapshot.counts, snapshot.podgroups, snapshot.tasks
    ready = minima_met(snapshot).ready
    rows = np.flatnonzero(groups.alive & ~ready)
    theirs, first = snapshot.tasks_of_all(rows)
    status, owner = tasks.status[theirs], np.repeat(np.arange(len(rows)), np.diff(first))
    gated = tasks.gated[theirs] & tasks.waits(theirs, promised=False)
    count, held, ending = (
        np.bincount(owner[which], minlength=len(rows)) for which in (status != GONE, gated, status == TERMINATING)
    )
    in_subgroups = np.zeros(len(ready), np.int64)
    having = np.flatnonzero(~ready & (np.diff(snapshot.subgroup_start) > 0))
    in_subgroups[having], _, _ = lacking_in_subgroups(snapshot, having, snapshot.subgroup_counts.ready)
    of_parts = np.maximum(_lacking_in_roles(snapshot), in_subgroups)
    short = np.maximum(groups.min_available - counts.ready, of_parts)
    columns = (
        _reasons(snapshot, ready, theirs[gated])[rows], groups.min_available[rows], count, counts.ready[rows],
        counts.waiting[rows], held, ending, short[rows], (counts.pending + counts.waiting > 0)[rows],
    )  # fmt: skip
    some = count > 0
    return Conditions(rows[some], *(np.asarray(column[some], np.int64) for column in columns))


def _reasons(snapshot: Snapshot, ready: Bools, gated: Rows) -> Longs:
    """int64[G]: of each podgroup the reason, as a position in ``REASONS``; NONE if it is ready.

    ``gated`` are tasks that may not start.
    """
    valid = minima_met(snapshot).valid
    held = valid & ~is_valid_without(snapshot, gated) if len(gated) else np.zeros(len(valid), bool)
    said = {
        ConditionReason.TOO_FEW_OF_A_PART: ~minima_met(snapshot).exists,
        ConditionReason.TOO_FEW: ~valid,
        ConditionReason.NOT_ADMITTED: snapshot.podgroups.phase == PHASE_PENDING,
        ConditionReason.GATED: held,
    }
    codes = [REASONS.index(reason) for reason in said]
    reason = np.where(ready, NONE, np.select(list(said.values()), codes, _NO_ROOM)).astype(np.int64)
    reason[_held_by_others(snapshot, reason)] = REASONS.index(ConditionReason.OTHERS)
    return reason


def _held_by_others(snapshot: Snapshot, reason: Longs) -> list[int]:
    """Podgroups that lack nothing but room, and whose gang group is not complete or held back (``reason`` int64[G]).

    A gang group that has run may start without what it has lost since, so it is left out.
    """
    known = snapshot.once(gang_groups)
    if not known.gang_group:
        return []
    holds = _holds(snapshot, reason)
    rows = np.flatnonzero((reason == _NO_ROOM) & (snapshot.podgroups.gang_group != NONE) & ~has_run(snapshot))
    return [row for row in rows.tolist() if not known.complete[row] or holds[list(gang_group_of(snapshot, row))].any()]


def _holds(snapshot: Snapshot, reason: Longs) -> Bools:
    """bool[G]: podgroups for which others of their gang group wait, by the ``reason`` int64[G] of each."""
    codes = [REASONS.index(one) for one in _HOLD_OTHERS]
    return np.asarray(np.isin(reason, codes) & snapshot.podgroups.alive & ~has_run(snapshot))


def holding(snapshot: Snapshot, podgroup: int) -> tuple[tuple[int, ConditionReason], ...]:
    """For which others of its gang group a podgroup waits, and what holds those back."""
    reason, holds = snapshot.once(_reason_and_holds)
    others = [other for other in gang_group_of(snapshot, podgroup) if other != podgroup and holds[other]]
    return tuple((other, REASONS[reason[other]]) for other in others)


def _reason_and_holds(snapshot: Snapshot) -> tuple[Longs, Bools]:
    """int64[G] and bool[G]: the reason of each podgroup, and whether others wait for it."""
    tasks = snapshot.tasks
    gated = np.flatnonzero(tasks.gated & tasks.waits(slice(None), promised=False))
    reason = _reasons(snapshot, minima_met(snapshot).ready, gated)
    return reason, _holds(snapshot, reason)


def _lacking_in_roles(snapshot: Snapshot) -> Counts:
    """int[G]: how many tasks the minima of roles lack together; 0 where they do not bind."""
    roles, have = snapshot.roles, snapshot.role_counts
    short = np.maximum(roles.min_available - have.ready, 0)
    lacking = np.bincount(roles.podgroup, weights=short, minlength=len(snapshot.podgroups))
    binding: Bools = snapshot.roles_bind
    return np.asarray(np.where(binding, lacking, 0), np.int32)
