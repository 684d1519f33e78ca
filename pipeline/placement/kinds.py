"""Podgroups of one kind: what is worked out for one of them on a snapshot holds for the others as well.

The idea is that of KAI Scheduler's scheduling signatures.
"""

from typing import TypeAlias

from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot

#: What podgroups of one kind have in common.
Kind: TypeAlias = tuple[object, ...]


def kind_of(snapshot: Snapshot, gang_group: tuple[int, ...]) -> Kind | None:
    """What decides where there is room for a podgroup; None where more does.

    That is for gang groups, roles, subgroups, tasks that differ, and podgroups that hold or are promised room already.
    """
    known = snapshot.once(_known)
    if gang_group not in known:
        known[gang_group] = _kind_of(snapshot, gang_group)
    return known[gang_group]


def _known(snapshot: Snapshot) -> dict[tuple[int, ...], Kind | None]:  # noqa: ARG001 - kept with it
    """The kinds that were asked for."""
    return {}


def _kind_of(snapshot: Snapshot, gang_group: tuple[int, ...]) -> Kind | None:
    groups, row = snapshot.podgroups, gang_group[0]
    if len(gang_group) > 1 or snapshot.counts.ready[row] or snapshot.counts.waiting[row]:
        return None
    if snapshot.subgroup_start[row + 1] > snapshot.subgroup_start[row] or snapshot.role_minimum[row]:
        return None
    tasks, pending = snapshot.tasks, snapshot.pending(row)
    shapes = set(tasks.shape[pending].tolist())  # of a few tasks Python is faster
    if len(shapes) != 1:
        return None
    rights = (
        bool(groups.may_preempt[row]), bool(groups.preemptible[row]), int(groups.match_policy[row]),
        all(tasks.may_preempt[pending].tolist()), all(tasks.preemptible[pending].tolist()),
    )  # fmt: skip
    asked = int(groups.min_available[row]), len(pending), *shapes
    levels = int(groups.required_level[row]), int(groups.preferred_level[row]), int(groups.gather[row])
    labels = tasks.label_set[pending].tobytes()
    return int(groups.queue[row]), int(groups.priority[row]), int(groups.namespace[row]), rights, asked, levels, labels


def has_levels(snapshot: Snapshot, podgroup: int) -> bool:
    """Whether a podgroup asks for a domain of its own."""
    groups = snapshot.podgroups
    levels = groups.required_level[podgroup], groups.preferred_level[podgroup], groups.gather[podgroup]
    return any(level != NONE for level in levels)
