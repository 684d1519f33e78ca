"""One search in several batches of domains, explained as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline.decision.explanation import CLOSEST, DomainTried, Explanation, Reason, Ruled
from pipeline.decision.plan import NoPlan, Plan

Outcomes = Sequence[Plan | NoPlan | None]


def explained(chosen: Explanation, outcomes: Outcomes) -> Explanation:
    """The chosen plan's explanation with the domains of all batches, the last word on each.

    What other batches found best was costlier; or it was cheaper, and somebody else has it by now.
    """
    whys = [one.explanation for one in outcomes if one is not None]
    latest = {entry.domain: entry for why in whys for entry in why.tried}
    own = latest.get(chosen.domain)
    tried = [
        replace(entry, reason=_why_not(entry, own)) if entry.domain != chosen.domain else entry
        for entry in latest.values()
    ]
    return replace(chosen, tried=_by_domain(tried), ruled=_ruled(whys))


def _why_not(entry: DomainTried, chosen: DomainTried | None) -> Reason:
    """Why a domain was not the one."""
    if entry.price is not None and chosen is not None and chosen.price is not None and entry.price < chosen.price:
        return Reason.TAKEN
    return Reason.COSTLIER if entry.reason is Reason.CHOSEN else entry.reason


def in_vain(outcomes: Outcomes) -> Explanation | None:
    """Why no batch found a plan, the reason that came closest to one; None where nobody answered."""
    whys = [one.explanation for one in outcomes if one is not None]
    if not whys:
        return None
    reasons = {why.reason for why in whys}
    reason = next((one for one in CLOSEST if one in reasons), whys[0].reason)
    tried = [entry for why in whys for entry in why.tried]
    return replace(whys[0], reason=reason, tried=_by_domain(tried), ruled=_ruled(whys))


def _by_domain(tried: Sequence[DomainTried]) -> tuple[DomainTried, ...]:
    return tuple(sorted(tried, key=lambda entry: entry.domain))


def _ruled(whys: Sequence[Explanation]) -> Ruled | None:
    parts = [why.ruled for why in whys if why.ruled is not None]
    if not parts:
        return None
    columns = ((part.domain, part.room, part.reachable, part.pruned) for part in parts)
    return Ruled(*(np.concatenate(column) for column in zip(*columns, strict=True)))
