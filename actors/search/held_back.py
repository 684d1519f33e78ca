"""Obstacles of podgroups that are not searched for.

They are worked out again only when the reason of the condition changes, or that of others that are waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import Cycle
from pipeline.decision.obstacle import Obstacle
from pipeline.placement.conditions import REASONS, Condition, ConditionReason, holding
from pipeline.placement.reasons.readiness import held_back
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.policy import Policy

#: At most this many podgroups are worked out in one cycle; the others follow in the next.
_AT_ONCE = 64
_CODES = [code for code, reason in enumerate(REASONS) if reason is not ConditionReason.NO_ROOM]


#: The reason of a podgroup's condition, and for which others of its gang group it waits, with theirs.
_Reasons = tuple[ConditionReason, tuple[tuple[int, ConditionReason], ...]]


@dataclass(frozen=True)
class HeldBack:
    """By podgroup (row of one epoch): why it is held back, and its obstacles."""

    epoch: int
    by_row: Mapping[int, tuple[_Reasons, tuple[Obstacle, ...]]]


def held_back_of(done: Cycle, policy: Policy, now: float, before: HeldBack, epoch: int) -> HeldBack:
    """The obstacles that are known after a cycle."""
    known = before.by_row if before.epoch == epoch else {}
    held = list(done.unscheduled.only(np.isin(done.unscheduled.reason, _CODES)))
    why = {one.podgroup: _reasons(done.snapshot, one) for one in held}
    kept = {row: found for row, said in why.items() if (found := known.get(row)) and found[0] == said}
    new = [one for one in held if one.podgroup not in kept][:_AT_ONCE]
    if new:
        host = Host(Context(done.snapshot, policy, now))
        kept |= {one.podgroup: (why[one.podgroup], held_back(host, one)) for one in new}
    return HeldBack(epoch, kept)


def _reasons(snapshot: Snapshot, one: Condition) -> _Reasons:
    return one.reason, holding(snapshot, one.podgroup) if one.reason is ConditionReason.OTHERS else ()
