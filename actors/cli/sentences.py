"""What ``explain`` and ``simulate`` say of decisions and of what waits: the same words for both, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from actors.protocol.bodies import PlanCommitted
from pipeline.decision.explanation import Cause, Reason

#: The purpose of a decision that evicts what is left of a broken gang.
_CLEARS = "clear"
#: At most this many entries of each list are named.
NAMED = 8
#: What fields of a price are called, where their own name says too little.
_FIELDS = {"broken": "lost work of podgroups that break", "surplus": "lost work of surplus"}


#: Why a podgroup that costs less was not taken, where the reason's own words are about a whole domain.
_REFUSED = {Reason.VETOED: "a quota refuses it", Reason.ILLEGAL: "it is not legal as a whole"}
#: By cause; the others count running tasks that may not be evicted.
_OBSTACLES = {
    Cause.TASKS: "{podgroup} has {found:g} tasks that count and needs {wanted:g}: create more, or lower its minimum",
    Cause.LEVEL: "no domain of level {what} is offered for {podgroup}: name another level, or label the nodes",
    Cause.QUEUE: "queue {queue} would hold more than it deserves{amount}: raise what it deserves, or wait",
    Cause.NEVER: "{task} may not preempt: give it a preemption policy that lets it",
    Cause.DELAY: "{podgroup} must not evict before {wanted:.15g}: wait, or shorten its preemption_delay",
    Cause.NODES: "no node admits {task}: look at its selector, affinity and tolerations, and at cordoned nodes",
    Cause.SIZE: "no node is large enough for {task}{amount}: split the task, or add a larger node",
    Cause.PRIORITY: "{found:g} running tasks stay, for their priority is not lower: raise the own one",
    Cause.OTHER_QUEUES: "{found:g} running tasks stay: preempt takes from the own queue only",
    Cause.SAME_QUEUE: "{found:g} running tasks stay: reclaim takes from other queues only",
    Cause.UNRECLAIMABLE: "{found:g} running tasks stay: their queues are not reclaimable",
    Cause.UNPREEMPTIBLE: "{found:g} running tasks stay: they are not preemptible",
    Cause.SHIELDED: "{found:g} running tasks stay: they are shielded",
    Cause.QUOTA: "{found:g} running tasks stay: their queues would fall below what they deserve",
    Cause.TOGETHER: "{found:g} candidates may not all go, or the own queue may not take what they free",
}


def told(made: PlanCommitted) -> dict[str, Any]:
    """A decision as plain data: whose it is, what it costs, and its explanation; ``decision_lines`` reads it."""
    counts = {"evicts": len(made.evictions), "promises": len(made.nominations), "starts": len(made.bindings)}
    said = (
        made.model_dump(include={"action", "purpose", "preemptor", "queue", "domain"}) | counts | {"price": made.cost}
    )
    return said | {key: value for key, value in made.explanation.items() if key not in said}


def decision_lines(made: Mapping[str, Any], number: int | str, end: str | None = None) -> Iterator[str]:
    """One decision (see ``told``), and how it ended if it was taken back."""
    where = f" in {made['domain']}" if made["domain"] else ""
    whose = f"{made['preemptor'] or 'no podgroup'} (queue {made['queue'] or '-'})"
    yield f"decision {number}: {made['action']} for {whose}{where}"
    yield (
        f"  evicts {made['evicts']}, promises {made['promises']}, starts {made['starts']}; "
        f"its minimum needed {made.get('minimum', 0)}"
    )
    if made["price"] and made["evicts"]:
        yield "  price: " + ", ".join(f"{_spelled(name)} {value:g}" for name, value in made["price"].items())
    yield from domain_lines(made)
    for one in made.get("victims", ())[:NAMED]:
        kind = "from its surplus" if one["safe"] else "left of it" if made["purpose"] == _CLEARS else "broken whole"
        yield f"  victim {one['podgroup']}: {one['tasks']} tasks {kind}, priority {one['priority']}"
    for one in made.get("spared", ())[:NAMED]:
        yield _spared(one)
    if more := made.get("not_shown", {}).get("spared", 0) + max(0, len(made.get("spared", ())) - NAMED):
        yield f"  and {more} more podgroups that were not taken"
    if made.get("given_back"):
        yield f"  given back: {made['given_back']} candidates that turned out not to be needed"
    if end is not None:
        yield f"  {end}"


def condition_words(condition: Mapping[str, Any]) -> str:
    """Why a podgroup is not scheduled, in numbers."""
    counts = f"{condition['schedulable']} of {condition['tasks']} tasks ready"
    more = "".join(f", {condition[name]} {name}" for name in ("promised", "gated", "ending") if condition[name])
    lacks = f"; its minimum of {condition['minimum']} lacks {condition['unready']}"
    again = "" if condition["retried"] or condition["ending"] else "; nothing of it waits any more"
    return f"{condition['condition']} ({condition['reason']}): {counts}{more}{lacks}{again}"


def attempt_lines(attempt: Mapping[str, Any]) -> Iterator[str]:
    """Why an action found no plan."""
    yield f"  {attempt['action']}: {attempt['reason']}; its minimum needs {attempt['minimum']}"
    yield from domain_lines(attempt)
    for one in attempt.get("obstacles", ())[:NAMED]:
        yield f"    {_obstacle(one)}"


def domain_lines(why: Mapping[str, Any]) -> Iterator[str]:
    """What became of the domains."""
    if why.get("domains"):
        yield "  domains: " + ", ".join(f"{count} {reason}" for reason, count in sorted(why["domains"].items()))
    for one in why.get("tried", ())[:NAMED]:
        yield f"    {one['domain']}: {one['reason']}{_alternative(one)}"


def _alternative(tried: Mapping[str, Any]) -> str:
    """What a domain lacks; or what it costs, and the field that decided against it."""
    if "price" in tried:
        price = tried["price"]
        cost = f"breaks {price['gangs_broken']} podgroups, {price['victims']} victims, lost work {price['lost_work']:g}"
        return f" ({cost}{decided(tried)})"
    if "reachable" not in tried:
        return ""
    wanted = f"{tried['wanted']} wanted, " if "wanted" in tried else ""
    return f" ({wanted}room for {tried['room']}, after every legal eviction {tried['reachable']})"


def decided(other: Mapping[str, Any]) -> str:
    """The field of the price that decided between what was chosen and this, with both values; empty if none did."""
    by = other.get("decided_by")
    if by is None:
        return ""
    what = _FIELDS.get(by["field"], _spelled(by["field"]))
    level = f" at priority {by['level']}" if by.get("level") else ""
    return f"; {what}{level} {by['this']:g} against {by['chosen']:g}"


def _spared(one: Mapping[str, Any]) -> str:
    """Why a podgroup was not taken."""
    kind = "from its surplus" if one["safe"] else "broken whole"
    price = one["price"]
    but = "" if one["reason"] == Reason.COSTLIER else f"; {_REFUSED.get(one['reason'], one['reason'])}"
    cost = f"would have cost lost work {price['lost_work']:g}, {price['victims']} victims"
    return f"  not {one['podgroup']}: {one['tasks']} tasks {kind} {cost}{decided(one)}{but}"


def _obstacle(one: Mapping[str, Any]) -> str:
    """What stands in the way, and what would change it."""
    told: dict[str, Any] = {"task": "", "podgroup": "", "queue": "", "wanted": 0, "found": 0} | dict(one)
    by = f" (plugin {one['plugin']})" if "plugin" in one else ""
    told["amount"] = f": {one['what']} {told['wanted']:.15g} against {told['found']:.15g}" if "what" in one else ""
    sentence = _OBSTACLES.get(one["cause"], "{found:g} running tasks stay: {cause}")
    return f"{sentence.format(**told)}{by}"


def _spelled(name: str) -> str:
    return name.replace("_", " ")
