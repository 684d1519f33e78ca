"""What ``explain`` and ``simulate`` say of decisions and of what waits: the same words for both, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from actors.protocol.bodies import PlanCommitted

#: The purpose of a decision that evicts what is left of a broken gang.
_CLEARS = "clear"
#: Of each list so many entries are named.
NAMED = 8


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
    if made.get("given_back"):
        yield f"  given back: {made['given_back']} candidates that turned out not to be needed"
    if end is not None:
        yield f"  {end}"


def condition_line(podgroup: str, condition: Mapping[str, Any]) -> str:
    """Why a podgroup is not scheduled, in numbers."""
    counts = f"{condition['schedulable']} of {condition['tasks']} tasks ready"
    more = "".join(f", {condition[name]} {name}" for name in ("promised", "gated", "ending") if condition[name])
    lacks = f"; its minimum of {condition['minimum']} lacks {condition['unready']}"
    again = "" if condition["retried"] or condition["ending"] else "; nothing of it waits any more"
    return f"{podgroup} is {condition['condition']} ({condition['reason']}): {counts}{more}{lacks}{again}"


def attempt_lines(attempt: Mapping[str, Any]) -> Iterator[str]:
    """Why an action found no plan."""
    yield f"  {attempt['action']}: {attempt['reason']}; its minimum needs {attempt['minimum']}"
    yield from domain_lines(attempt)


def domain_lines(why: Mapping[str, Any]) -> Iterator[str]:
    """What became of the domains."""
    if why.get("domains"):
        yield "  domains: " + ", ".join(f"{count} {reason}" for reason, count in sorted(why["domains"].items()))
    for one in why.get("tried", ())[:NAMED]:
        yield f"    {one['domain']}: {one['reason']}{_alternative(one)}"


def _alternative(tried: Mapping[str, Any]) -> str:
    price = tried.get("price")
    if price is None:
        return f" (room for {tried['room']}, after every legal eviction {tried['reachable']})"
    return f" (would break {price['gangs_broken']} gangs, {price['victims']} victims, {price['lost_work']:.2f} lost)"


def _spelled(name: str) -> str:
    return name.replace("_", " ")
