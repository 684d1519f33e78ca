"""One search in several batches of domains: their outcomes, put together as if it had been one batch."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from pipeline.decision.attempt import Survey
from pipeline.decision.explanation import DomainTried, Reason
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.price import compared
from pipeline.records import replace


def merged(outcomes: Sequence[Plan | NoPlan | Survey | None]) -> Plan | NoPlan | Survey | None:
    """The survey of all domains where batches survey theirs, else the outcome of the only batch.

    Where the preemptor may not evict no batch surveys anything, and each says why: for the same reason. None if a batch
    was lost.
    """
    if any(one is None for one in outcomes) or not outcomes:
        return None
    surveys = [one for one in outcomes if isinstance(one, Survey)]
    return whole_survey(surveys) if surveys else outcomes[0]


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
