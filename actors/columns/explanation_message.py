"""Explanations, obstacles and conditions as plain data for the wire, with names in the place of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from actors.columns.name_directory import Directory
from pipeline.cluster.arrays import NONE
from pipeline.decision.explanation import DomainTried, Explanation, Reason, Ruled, decisive
from pipeline.decision.obstacle import Cause, Obstacle
from pipeline.decision.price import NO_PRIORITY, Price
from pipeline.placement.conditions import Condition

#: At most this many domains of an explanation are named, and the others counted, so that a decision stays small.
#: Victims are all named, since ``explain`` may be asked about each of them.
SHOWN = 24
CLUSTER = "the cluster"
#: Obstacles that name a level and not a resource.
_LEVELS = (Cause.LEVEL, Cause.CLUSTER, Cause.MIXED, Cause.WIDTH, Cause.TORN)
#: Obstacles that name a resource and count tasks.
_COUNTED = (Cause.QUOTA, Cause.THEIR_SHARE, Cause.TOGETHER)


def explained(why: Explanation, naming: Directory, shown: int = SHOWN) -> dict[str, Any]:
    """An explanation in names, with at most ``shown`` domains; plain data for the wire."""
    tried = why.tried[:shown]
    tried = (*tried, *_closest(why.ruled, shown - len(tried)))
    fell = _fell(why)
    domains = naming.domains([one.domain for one in tried])
    victims = naming.podgroups([one.podgroup for one in why.bundles])
    others = naming.podgroups([one.podgroup for one in why.spared])
    chosen = next((one.price for one in why.tried if one.reason is Reason.CHOSEN), None)
    return {
        "purpose": why.purpose,
        "preemptor": naming.podgroups([why.preemptor])[0] if why.preemptor != NONE else None,
        "minimum": why.minimum,
        "reason": why.reason.value,
        "domain": naming.domains([why.domain])[0] or CLUSTER if why.domain != NONE else None,
        "given_back": why.given_back,
        "bound": _bound(why, chosen),
        "domains": fell,
        "tried": [
            {"domain": name or CLUSTER, "reason": one.reason.value} | _slots(one)
            | _compared(chosen, one.price, one.reason)
            for name, one in zip(domains, tried, strict=True)
        ],
        "victims": [
            {"podgroup": name, "safe": one.safe, "tasks": one.tasks, "elsewhere": one.elsewhere,
             "priority": one.priority, "efficiency": _finite(one.efficiency)}
            for name, one in zip(victims, why.bundles, strict=True)
        ],
        "spared": [
            {"podgroup": name, "safe": one.safe, "tasks": one.tasks, "reason": one.reason.value}
            | _compared(chosen, one.price, one.reason)
            for name, one in zip(others, why.spared, strict=True)
        ],
        "obstacles": [_obstacle(one, naming) for one in why.obstacles],
        "together": why.together,
        "not_shown": {"domains": sum(fell.values()) - len(tried), "victims": 0, "spared": why.spared_more},
    }  # fmt: skip


def _finite(efficiency: float) -> float | None:
    """The efficiency of a bundle; None for one that costs nothing: JSON has no word for a number without end."""
    return round(efficiency, 4) if isfinite(efficiency) else None


def _bound(why: Explanation, chosen: Price | None) -> dict[str, Any] | None:
    """The lower bound of every lawful plan, and by which fraction the chosen plan can be above it."""
    if why.lower_bound is None:
        return None
    excess = None if chosen is None else why.lower_bound.excess(chosen)
    said: dict[str, Any] = {
        "broken": [{"level": level, "work": round(work, 6)} for level, work in why.lower_bound.broken]
    }
    return said | {"queue_rank": why.lower_bound.queue_rank, "excess": None if excess is None else round(excess, 4)}


def unplaced(action: str, why: Explanation, naming: Directory, shown: int = SHOWN) -> dict[str, Any]:
    """Why an action found no plan, in names."""
    return {"action": action} | explained(why, naming, shown)


def condition(found: Condition, held: Sequence[Obstacle], naming: Directory) -> dict[str, Any]:
    """Why a podgroup is not scheduled, without its name, and what holds it back; plain data for the wire."""
    said: dict[str, Any] = {"condition": "Unschedulable", "reason": found.reason.value}
    counts = ("minimum", "tasks", "schedulable", "promised", "gated", "ending", "unready", "retried")
    said |= {name: getattr(found, name) for name in counts}
    return said | ({"obstacles": [_obstacle(one, naming) for one in held]} if held else {})


def _fell(why: Explanation) -> dict[str, int]:
    """How many domains fell, by reason."""
    fell = Counter(one.reason.value for one in why.tried)
    if why.ruled is not None:
        pruned = int(why.ruled.pruned.sum())
        fell.update({Reason.BOUND.value: len(why.ruled.domain) - pruned, Reason.PRUNED.value: pruned})
    return dict(+fell)


def _closest(ruled: Ruled | None, count: int) -> tuple[DomainTried, ...]:
    """The ``count`` domains that could offer most among those that their bounds rule out."""
    if ruled is None or count <= 0:
        return ()
    rows = np.lexsort((ruled.domain, ruled.wanted - ruled.reachable))[:count].tolist()
    return tuple(
        DomainTried(
            int(ruled.domain[row]), Reason.PRUNED if ruled.pruned[row] else Reason.BOUND, None,
            int(ruled.room[row]), int(ruled.reachable[row]), int(ruled.wanted[row]),
        )
        for row in rows
    )  # fmt: skip


def _slots(tried: DomainTried) -> dict[str, int]:
    """How many slots a domain has and needs, if that was counted."""
    if NONE in (tried.room, tried.reachable, tried.wanted):
        return {}
    return {"wanted": tried.wanted, "room": tried.room, "reachable": tried.reachable}


def _obstacle(one: Obstacle, naming: Directory) -> dict[str, Any]:
    """An obstacle in names, without fields that do not apply."""
    said: dict[str, Any] = {"cause": one.cause.value}
    for key, row, named in (
        ("queue", one.queue, naming.queues),
        ("podgroup", one.podgroup, naming.podgroups),
        ("task", one.task, naming.tasks),
        ("budget", one.budget, naming.budgets),
    ):
        if row != NONE:
            (said[key],) = named([row])
    unit = 1000 if one.what == "cpu" and one.cause not in _LEVELS else 1  # in cores
    wanted, found = one.wanted / unit, one.found / (1 if one.cause in _COUNTED else unit)
    amounts = {"plugin": one.plugin, "what": one.what, "wanted": wanted, "found": found, "until": one.until}
    amounts |= {"passes": one.passes}
    return said | {key: value for key, value in amounts.items() if value or (key == "found" and one.wanted)}


def _compared(chosen: Price | None, price: Price | None, reason: Reason) -> dict[str, Any]:
    """A price, and the field that decided against it, with both values: the first that differs, if no other did."""
    if price is None:
        return {}
    said: dict[str, Any] = {"price": _price(price)}
    if chosen is not None and reason is Reason.BREAKS_MORE:
        field = {"field": "gangs_broken", "this": price.gangs_broken, "chosen": chosen.gangs_broken}
        return said | {"decided_by": field}
    if chosen is None or price == chosen or (found := decisive(chosen, price)) is None:
        return said
    field = {"field": found.field, "this": found.higher, "chosen": found.lower}
    return said | {"decided_by": field if found.level is None else field | {"level": found.level}}


def _price(price: Price) -> dict[str, Any]:
    """All fields of a price that are compared, and two sums; work by level as lists."""
    said: dict[str, Any] = {
        "budgets_violated": price.budgets_violated, "queue_rank": price.queue_rank,
        "broken": [list(one) for one in price.broken], "surplus": [list(one) for one in price.surplus],
        "gangs_broken": price.gangs_broken, "lost_work": price.lost_work, "victims": price.victims, "tier": price.tier,
    }  # fmt: skip
    return said | ({"highest_priority": price.highest_priority} if price.highest_priority != NO_PRIORITY else {})
