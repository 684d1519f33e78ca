"""What ``explain`` and ``simulate`` say of decisions and of what waits: the same words for both, as lines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from actors.documents.model import END_OF_TIME, FIRST_MOMENT
from actors.documents.quantities import readable
from pipeline.decision.explanation import Reason
from pipeline.decision.obstacle import Cause

if TYPE_CHECKING:
    from actors.protocol.bodies import PlanCommitted

#: The purpose of a decision that evicts what is left of a broken gang.
_CLEARS = "clear"
#: At most this many entries of each list are named.
NAMED = 8
#: What fields of a price are called, where their own name says too little.
_FIELDS = {
    "broken": "lost work of podgroups that break", "surplus": "lost work of surplus",
    "gangs_broken": "podgroups that break",
}  # fmt: skip
#: Why a podgroup that costs less was not taken, where the reason's own words are about a whole domain.
_REFUSED = {Reason.VETOED: "a quota refuses it", Reason.ILLEGAL: "it is not legal as a whole"}
#: What a way is worse in that breaks less work than is proved, by the purpose of the decision.
_MORE_IMPORTANT = "more important work"
_WORSE = {"reclaim": "takes from queues that it is less fair to take from"}
_STAY = "{found:g} running {tasks} may not be evicted"
#: What stands in the way, by cause. Those that begin with `_STAY` count running tasks that may not be evicted.
_OBSTACLES = {
    Cause.TASKS: "{podgroup} has {found:g} {tasks} that {count} and needs {wanted:g}: "
    "create more, or lower its minimum",
    Cause.ROLE: "a role of {podgroup}{like} has {found:g} {tasks} that {count} and needs {wanted:g}: create more of it",
    Cause.SUBGROUP: "a subgroup of {podgroup}{like} has {found:g} {tasks} that {count} and needs {wanted:g}: "
    "create more of it",
    Cause.GATED: "{found:g} {tasks} of {podgroup} {are} gated ({task} is one): lift the scheduling gates of {wanted:g}",
    Cause.ADMISSION: "{podgroup} is not admitted: its queue, or the cluster, may not take its min_resources{amount}",
    Cause.LEVEL: "no domain of level {what} is offered for {podgroup}: name another level, or label the nodes",
    Cause.CLOSED: "queue {queue} is {what}: open it, or use another queue",
    Cause.CEILING: "queue {queue} {may_take}, and {asks} is asked for: raise what it may hold by {more}, "
    "{wait}or ask for less",
    Cause.LASTING: "queue {queue} {may_take} for work that can never be evicted, and {asks} is asked for: "
    "raise what it deserves by {more}, {wait}or make the podgroup preemptible",
    Cause.SHARES: "the shares of other queues leave queue {queue} no more than {has} of {what} to take, and "
    "{asks} is asked for: raise its own share, lower theirs, or ask for less",
    Cause.QUEUE: "queue {queue} would hold more than it deserves{amount}: raise what it deserves, "
    "{wait}or ask for less",
    Cause.CUT: "queue {queue} would hold more than it can deserve at most{amount}: {wait}or ask for less",
    Cause.NEVER: "nothing is evicted for {task}, as its preemption policy or that of its podgroup is Never: "
    "change it, or wait for free room",
    Cause.DELAY: "{podgroup} must not evict before {until}, in {seconds:g} s: wait, or shorten its preemption_delay",
    Cause.NO_NODE: "there is no node: add nodes",
    Cause.NODES: "no node admits {task}: look at its selector, its affinity and its tolerations",
    Cause.CORDONED: "{found:g} {nodes} that could take {task} {are} cordoned: uncordon",
    Cause.TAINTED: "{found:g} {nodes} that could take {task} {are} tainted ({what}): tolerate the taint, "
    "or take it off",
    Cause.UNSELECTED: "{found:g} {nodes} that could take {task} {are} not what it selects: widen its selector",
    Cause.SIZE: "no node is large enough for {task}{amount}: split the task, or add a larger node",
    Cause.CLUSTER: "all nodes that admit {task} have room for {found:g} of its kind even without the work of others, "
    "and {needed} needed: add nodes, or lower the minimum",
    Cause.TOTAL: "the nodes that may take its tasks have no more than {has} of {what} together, even without the work "
    "of others, and {asks} is asked for: add nodes, or lower the minimum",
    Cause.MIXED: "only {found:g} of the {wanted:g} tasks find places together{in_one} even without the work of others, "
    "{task} being one that does not: {wider}, or lower the minimum",
    Cause.WIDTH: "no {what} has room for {most} like {task}, and {needed} needed together: "
    "require a wider level, or lower the minimum",
    Cause.FREE: "all nodes together have {has} of {what} free, and {asks} is needed: moving tasks "
    "makes no more of it free",
    Cause.SHAPES: "tasks of {found:g} shapes, {task} one of them, want the same room; there is enough for each alone: "
    "add nodes, or lower the minimum",
    Cause.REPELLED: "anti-affinity keeps {task} apart from its own gang or from tasks that stay{closed}: "
    "relax it, or add nodes",
    Cause.CARDS: "no card has the {wanted:g} that {task} asks for on one card: ask for less, or for whole cards",
    Cause.TORN: "{wanted:g} {asked} of {podgroup}, {task} the first, must lie in one {what}, and none takes as much: "
    "require a wider level of the part",
    Cause.PRIORITY: _STAY + ": not of lower priority than the podgroup; raise the podgroup's priority",
    Cause.OTHER_QUEUES: _STAY + ": preempt takes from the podgroup's own queue only",
    Cause.SAME_QUEUE: _STAY + ": reclaim takes from other queues only",
    Cause.UNRECLAIMABLE: _STAY + ": in a queue that is not reclaimable",
    Cause.UNENTITLED: _STAY + ": no plugin says what queues are entitled to; add one, such as capacity",
    Cause.UNPREEMPTIBLE: _STAY + ": not preemptible",
    Cause.CRITICAL: _STAY + ": critical to the cluster",
    Cause.YOUNG: _STAY + ": the minimum runtime of the queue is {over}: wait",
    Cause.YOUNG_MINIMA: "{found:g} running {tasks} may not all be evicted together: the minimum of a podgroup stays "
    "until the minimum runtime of its queue is over; wait",
    Cause.COOLING: _STAY + ": the cool-down is {over}: wait",
    Cause.STARTING: _STAY + ": started in this cycle; wait for the next",
    Cause.SHIELDED: _STAY + ": a plugin shields them",
    Cause.BREAKS: _STAY + ": without them their podgroup would fall below its minimum",
    Cause.QUOTA: _STAY + ": {deserved}",
    Cause.THEIR_SHARE: _STAY + ": {kept}; lower its guarantee, its weight or what it deserves",
    Cause.POORER: _STAY + ": who holds them would have a smaller dominant share than who asks for the room",
    Cause.BUDGET: "disruption budget {budget} covers {wanted:g} {covered} that might go, and lets {found:g} go: "
    "raise what it allows",
    Cause.WINDOW: "{whose} lost {found:g} of the {wanted:g} tasks that may be evicted within {what}{until}, "
    "or raise what the policy allows",
    Cause.TOGETHER: "{found:g} running {tasks} may not all be evicted together{because}; ask for less",
}


#: Why a decision does nothing but end promises.
_GIVES_UP = (
    "  they cannot be kept: nodes or the queue do not take the tasks any more, the gang cannot have its minimum with "
    "them, or a podgroup that may evict it would take the room"
)


def plain_decision(made: PlanCommitted) -> dict[str, Any]:
    """A decision as plain data: whose it is, what it costs, and its explanation; ``decision_lines`` reads it."""
    placed = {one.task for one in made.promised}
    moves = Counter(one.podgroup for one in made.evictions if one.task in placed)
    counts = {"evicts": len(made.evictions), "promises": len(made.promised), "starts": len(made.bindings)}
    counts |= {"moves": moves.total(), "takes_back": len(made.taken_back)}
    said = (
        made.model_dump(include={"action", "purpose", "preemptor", "queue", "domain"}) | counts | {"price": made.cost}
    )
    if moves:
        victims = made.explanation.get("victims", ())
        said["victims"] = [{**one, "moves": moves[one["podgroup"]]} for one in victims]
    return said | {key: value for key, value in made.explanation.items() if key not in said}


def decision_lines(
    made: Mapping[str, Any], number: int | str, end: str | None = None, *, first: str | None = None
) -> Iterator[str]:
    """A `plain_decision`, and how it ended if it was taken back; the victim ``first`` is named first."""
    where = f" in {made['domain']}" if made["domain"] else ""
    whose = f"{made['preemptor'] or 'no podgroup'} (queue {made['queue'] or '-'})"
    yield f"decision {number}: {made['action']} for {whose}{where}"
    moves = f" ({made['moves']} to another place)" if made.get("moves") else ""
    back = f", takes back {many(made['takes_back'], 'promise')}" if made.get("takes_back") else ""
    yield (
        f"  evicts {made['evicts']}{moves}, promises {made['promises']}{back}, starts {made['starts']}; "
        f"its minimum needed {made.get('minimum', 0)}"
    )
    if made.get("takes_back") and not (made["evicts"] or made["promises"] or made["starts"]):
        yield _GIVES_UP
    if made["price"] and made["evicts"]:
        yield "  price: " + ", ".join(f"{_spelled(name)} {value:g}" for name, value in made["price"].items())
    if (alike := made.get("together", 1)) > 1:
        yield f"  room for {alike} podgroups alike was sought at once; domains and others are compared for all of them"
    yield from domain_lines(made)
    victims = sorted(made.get("victims", ()), key=lambda one: one["podgroup"] != first)
    for one in victims[:NAMED]:
        yield f"  victim {one['podgroup']}: {_lost(one, made['purpose'])}, priority {one['priority']}"
    if more := made.get("not_shown", {}).get("victims", 0) + max(0, len(victims) - NAMED):
        yield f"  and {many(more, 'more podgroup')} with victims"
    for one in made.get("spared", ())[:NAMED]:
        yield _spared(one)
    if more := made.get("not_shown", {}).get("spared", 0) + max(0, len(made.get("spared", ())) - NAMED):
        yield f"  and {many(more, 'more podgroup')} that {'was' if more == 1 else 'were'} not taken"
    if (excess := (made.get("bound") or {}).get("excess")) is not None and made["evicts"]:
        least = f"at least {1 / (1 + excess):.1%} of that work" if excess else "as much work"
        yield f"  proof: any lawful way breaks {least}, or {_WORSE.get(made['purpose'], _MORE_IMPORTANT)}"
    if made.get("given_back"):
        yield f"  given back: {many(made['given_back'], 'candidate')} not needed after all"
    if end is not None:
        yield f"  {end}"


def _lost(victim: Mapping[str, Any], purpose: str) -> str:
    """What a podgroup loses, and how much of that only moves."""
    kind = "from its surplus" if victim["safe"] else "left of it" if purpose == _CLEARS else "broken whole"
    moves, tasks = victim.get("moves", 0), many(victim["tasks"], "task")
    if moves == victim["tasks"]:
        return f"{tasks} to another place"
    return f"{tasks} {kind}" + (f", {moves:g} to another place" if moves else "")


def condition_lines(condition: Mapping[str, Any], before: str = "  ", after: str = "") -> Iterator[str]:
    """Why a podgroup is not scheduled, in numbers, with some words around; and what holds it back before any search."""
    counts = f"{condition['schedulable']} of {condition['tasks']} tasks ready"
    more = "".join(f", {condition[name]} {name}" for name in ("promised", "gated", "ending") if condition[name])
    of_all = condition["unready"] <= max(condition["minimum"] - condition["schedulable"], 0)
    whose = f"its minimum of {condition['minimum']} lacks" if of_all else "the minima of its roles or subgroups lack"
    promised = ", for which room is promised" if condition["promised"] >= condition["unready"] > 0 else ""
    lacks = f"; {whose} {condition['unready']}{promised}"
    again = "" if condition["retried"] or condition["ending"] else "; nothing of it waits any more"
    yield f"{before}{condition['condition']} ({condition['reason']}): {counts}{more}{lacks}{again}{after}"
    yield from _obstacle_lines(condition.get("obstacles", ()))


def attempt_lines(attempt: Mapping[str, Any]) -> Iterator[str]:
    """Why an action found no plan."""
    yield f"  {attempt['action']}: {attempt['reason']}; its minimum needs places for {many(attempt['minimum'], 'task')}"
    yield from domain_lines(attempt)
    yield from _obstacle_lines(attempt.get("obstacles", ()))


def _obstacle_lines(obstacles: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in obstacles[:NAMED]:
        yield f"    {_obstacle(one)}"
    if len(obstacles) > NAMED:
        yield f"    and {many(len(obstacles) - NAMED, 'more obstacle')}"


def domain_lines(why: Mapping[str, Any]) -> Iterator[str]:
    """What became of the domains."""
    if why.get("domains"):
        yield "  domains: " + ", ".join(f"{reason} ({count})" for reason, count in sorted(why["domains"].items()))
    for one in why.get("tried", ())[:NAMED]:
        yield f"    {one['domain']}: {one['reason']}{_alternative(one)}"
    tried = why.get("tried", ())
    if tried and (more := why.get("not_shown", {}).get("domains", 0) + max(0, len(tried) - NAMED)):
        yield f"    and {many(more, 'more domain')}"


def _alternative(tried: Mapping[str, Any]) -> str:
    """What a domain lacks; or what it costs, and the field that decided against it."""
    if "price" in tried:
        price = tried["price"]
        broken, victims = many(price["gangs_broken"], "podgroup"), many(price["victims"], "victim")
        cost = f"breaks {broken}, {victims}, lost work {price['lost_work']:g}"
        return f" ({cost}{decisive_field(tried)})"
    if "reachable" not in tried:
        return ""
    wanted = f"{tried['wanted']} wanted, " if "wanted" in tried else ""
    return f" ({wanted}room for {tried['room']} now, for {tried['reachable']} after every legal eviction)"


def decisive_field(other: Mapping[str, Any]) -> str:
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
    cost = f"would have cost lost work {price['lost_work']:g}, {many(price['victims'], 'victim')}"
    return f"  not {one['podgroup']}: {many(one['tasks'], 'task')} {kind} {cost}{decisive_field(one)}{but}"


def _obstacle(one: Mapping[str, Any]) -> str:
    """What stands in the way, and what would change it."""
    said: dict[str, Any] = {"task": "", "podgroup": "", "queue": "", "budget": "", "what": "domain"}
    said |= {"wanted": 0, "found": 0} | dict(one)
    what = one.get("what", "")
    said |= _counted(said) | _amounts(said, what) | _of_places(said, what) | _of_times(said)
    said |= _of_queues(said, what)
    by = f" (plugin {one['plugin']})" if "plugin" in one else ""
    if one["cause"] == Cause.QUEUE and not what:
        return f"queue {said['queue']} deserves nothing of what is asked for: give it a deserved share{by}"
    return f"{_OBSTACLES[Cause(one['cause'])].format(**said)}{by}"


# The words by what they are about: ``said`` is what is known, ``what`` the resource or level that it is about, if any.


def _counted(said: Mapping[str, Any]) -> dict[str, str]:
    """Words that agree with a number."""
    found, wanted = said["found"], said["wanted"]
    of_found, of_wanted = {"tasks": "task", "nodes": "node"}, {"covered": "running task", "asked": "task"}
    words = {key: word if found == 1 else f"{word}s" for key, word in of_found.items()}
    words |= {key: word if wanted == 1 else f"{word}s" for key, word in of_wanted.items()}
    return words | {
        "count": "counts" if found == 1 else "count",
        "are": "is" if found == 1 else "are",
        "needed": f"{wanted:g} {'is' if wanted == 1 else 'are'}",
        "most": f"more than {found:g} {words['tasks']}" if found else "a task",
        "closed": f", which closes {found:g} {words['nodes']}" if found else "",
    }


def _amounts(said: Mapping[str, Any], what: str) -> dict[str, str]:
    """What is asked for, what there is, and how much more is needed, of a resource."""
    lacks = said["wanted"] - said["found"]
    asks, has = readable(what, said["wanted"], said["found"])
    more, _ = readable(what, lacks, lacks + 1)  # so that as much is enough
    return {"asks": asks, "has": has, "more": more, "amount": f": {what} {asks} against {has}" if what else ""}


def _of_queues(said: Mapping[str, Any], what: str) -> dict[str, str]:
    """What a queue may hold, and what it would lose."""
    queue, amount = said["queue"], f"{said['asks']} of {what}"
    kept = f"queue {queue} would hold less than its share" + (f" of {amount}" if what else "")
    may_take = f"may take no more than {said['has']} of {what}"
    if said["found"] < 0:
        may_take = f"holds {readable(what, -said['found'], 0)[0]} of {what} more than it may"
    if what:
        deserved = f"queue {queue} would hold less than the {amount} that it deserves; lower what it deserves"
    else:
        deserved = f"the shares of queues leave them to queue {queue}; lower what it deserves, or raise what the "
        deserved += "podgroup's own queue does"
    return {
        "may_take": may_take,
        "deserved": deserved,
        "kept": kept,
        "because": f": {kept}" if queue else "",
        "wait": "wait until some of its work ends, " if said.get("passes") else "",
        "whose": f"queue {queue}" if queue else "all queues",
    }


def _of_places(said: Mapping[str, Any], what: str) -> dict[str, str]:
    """Where there is no room, and what would make some."""
    return {
        "like": f" ({said['task']} is one of it)" if said["task"] else "",
        "in_one": f" in one {what}" if what else "",
        "wider": "require a wider level" if what else "add nodes",
    }


def _of_times(said: Mapping[str, Any]) -> dict[str, Any]:
    """When what stands in the way is over."""
    of_them = "" if said["found"] == 1 else " for the first of them"
    over = f"over{of_them} at {_utc(said['until'])}" if "until" in said else "not over"
    if said["cause"] == Cause.DELAY:
        return {"over": over, "until": _utc(said["wanted"]), "seconds": round(said["wanted"] - said["found"])}
    if said["cause"] == Cause.WINDOW:
        left = f"; the next leaves that time at {_utc(said['until'])}: wait" if "until" in said else ""
        return {"over": over, "until": left}
    return {"over": over}


def _utc(seconds: float) -> str:
    """A moment as a date. A delay is added to a moment, so the sum may lie beyond all dates."""
    if not FIRST_MOMENT <= seconds < END_OF_TIME:
        return "a time beyond the year 9999"
    return str(datetime.fromtimestamp(math.floor(seconds), UTC))


def many(count: float, word: str) -> str:
    """A count with its word."""
    return f"{count:g} {word}" if count == 1 else f"{count:g} {word}s"


def first_few(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _spelled(name: str) -> str:
    return name.replace("_", " ")
