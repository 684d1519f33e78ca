"""Obstacles of podgroups that are not searched for; worked out again only when the reason of the condition changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.cycle import Cycle
from pipeline.decision.explanation import Obstacle
from pipeline.placement.conditions import REASONS, ConditionReason
from pipeline.placement.reasons.readiness import held_back
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.policy import Policy

#: At most this many podgroups are worked out in one cycle; the others follow in the next.
_AT_ONCE = 64
_CODES = [
    REASONS.index(reason)
    for reason in REASONS
    if reason not in (ConditionReason.READY, ConditionReason.NO_ROOM)
]  # fmt: skip


@dataclass(frozen=True)
class HeldBack:
    """By podgroup (row of one epoch): the reason of its condition, and its obstacles."""

    epoch: int
    by_row: Mapping[int, tuple[ConditionReason, tuple[Obstacle, ...]]]


def held_back_of(done: Cycle, policy: Policy, now: float, before: HeldBack, epoch: int) -> HeldBack:
    """The obstacles that are known after a cycle."""
    left = done.left
    known = before.by_row if before.epoch == epoch else {}
    held = list(left.only(np.flatnonzero(np.isin(left.reason, _CODES))))
    kept = {
        one.podgroup: found for one in held if (found := known.get(one.podgroup)) and found[0] is one.reason
    }  # fmt: skip
    new = [one for one in held if one.podgroup not in kept][:_AT_ONCE]
    if new:
        host = Host(Context(done.snapshot, policy, now))
        kept |= {one.podgroup: (one.reason, held_back(host, one)) for one in new}
    return HeldBack(epoch, kept)
