"""One search in several batches of domains: their outcomes, put together as if it had been one batch."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from pipeline.decision.attempt import Survey
from pipeline.decision.explanation import CLOSEST, DomainTried, Explanation, Reason, Ruled
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.price import compared
from pipeline.records import replace


def merged(outcomes: Sequence[Plan | NoPlan | Survey | None]) -> Plan | NoPlan | Survey | None:
    """The survey of all domains where batches survey theirs, else the outcome of the only batch.

    Batches that may not evict survey nothing: then why there is no plan. None if a batch was lost.
    """
    if any(one is None for one in outcomes) or not outcomes:
        return None
    surveys = [one for one in outcomes if isinstance(one, Survey)]
    if surveys:
        return whole_survey(surveys)
    known = [one for one in outcomes if isinstance(one, Plan | NoPlan)]
    if len(known) == 1:
        return known[0]
    return NoPlan(_without_plan([one.explanation for one in known]))


def whole_survey(parts: Sequence[Survey]) -> Survey:
    """The survey of all domains of some parts, in the order of the domains."""
    order = np.argsort(np.concatenate([part.domain for part in parts]), kind="stable")
    price = [price for part in parts for price in part.price]
    names = [one.name for one in fields(Survey) if one.name != "price"]
    columns = {name: np.concatenate([getattr(part, name) for part in parts])[order] for name in names}
    return Survey(**columns, price=tuple(price[at] for at in order.tolist()))


def weighed(tried: Sequence[DomainTried], plan: Plan) -> tuple[DomainTried, ...]:
    """The domains that were tried; each that has a plan is marked as costing more than this one, or the same."""
    return tuple([_weighed(entry, plan) for entry in tried])


def _weighed(entry: DomainTried, plan: Plan) -> DomainTried:
    if entry.domain == plan.domain:
        return replace(entry, reason=Reason.CHOSEN, price=plan.price)
    if entry.price is None or entry.reason not in (Reason.CHOSEN, Reason.COSTLIER, Reason.EQUAL, Reason.OUTRANKED):
        return entry
    mine, other = compared(plan.price), compared(entry.price)
    reason = Reason.EQUAL if mine[:-1] == other[:-1] else Reason.COSTLIER  # the last is the domain
    if other < mine:  # a policy's own order may differ from that of prices
        reason = Reason.OUTRANKED
    return entry if entry.reason is reason else replace(entry, reason=reason)


def _without_plan(whys: Sequence[Explanation]) -> Explanation:
    """Why no batch found a plan: the reason that came closest to one."""
    reasons = {why.reason for why in whys}
    reason = next((one for one in CLOSEST if one in reasons), whys[0].reason)
    tried = [entry for why in whys for entry in why.tried]
    first = next(why for why in whys if why.reason is reason)
    return replace(first, tried=tuple(sorted(tried, key=lambda entry: entry.domain)), ruled=_ruled(whys))


def _ruled(whys: Sequence[Explanation]) -> Ruled | None:
    parts = [why.ruled for why in whys if why.ruled is not None]
    if not parts:
        return None
    columns = ((part.domain, part.room, part.reachable, part.wanted, part.pruned) for part in parts)
    return Ruled(*(np.concatenate(column) for column in zip(*columns, strict=True)))
