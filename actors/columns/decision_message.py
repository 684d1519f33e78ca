"""A decision and its explanation for the wire, with names in the place of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from actors.columns.card_names import card_names
from actors.protocol.bodies import Binding, Eviction, Nomination, PlanCommitted, VictimCondition
from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.explanation import DomainTried, Explanation, Obstacle, Reason, Ruled, decisive
from pipeline.decision.plan import Plan
from pipeline.decision.price import NO_PRIORITY, Price
from pipeline.decision.statement import Statement
from pipeline.placement.conditions import Condition
from pipeline.policy import Purpose

#: At most this many domains of an explanation are named, and the others counted, so that a decision stays small.
#: Victims are all named, since ``explain`` may be asked about each of them.
SHOWN = 24
CLUSTER = "the cluster"
#: Name of this scheduler in the status of evicted tasks.
SCHEDULER = "clearway"
_MAKING_ROOM = {
    Purpose.PREEMPT: "preempting to accommodate higher priority pods",
    Purpose.RECLAIM: "reclaiming what a queue uses beyond its share",
    Purpose.CONSOLIDATE: "moving pods so that scattered room comes together",
}
#: Prefix of keys of a cost that hold the evicted over the requested amount of a resource.
EVICTED_TO_REQUESTED = "evicted_to_requested/"


class Naming(Protocol):
    """Names of the rows of one epoch."""

    def tasks(self, rows: Sequence[int]) -> list[str]:
        """Names of task rows."""
        ...

    def podgroups(self, rows: Sequence[int]) -> list[str]:
        """Names of podgroup rows."""
        ...

    def nodes(self, rows: Sequence[int]) -> list[str]:
        """Names of node rows."""
        ...

    def queues(self, rows: Sequence[int]) -> list[str]:
        """Names of queue rows."""
        ...

    def domains(self, rows: Sequence[int]) -> list[str]:
        """Names of domain rows."""
        ...

    def budgets(self, rows: Sequence[int]) -> list[str]:
        """Names of the rows of disruption budgets."""
        ...

    def task_rows(self, names: Sequence[str]) -> Rows:
        """Rows of tasks by name; NONE for an unknown name."""
        ...

    def podgroup_rows(self, names: Sequence[str]) -> Rows:
        """Rows of podgroups by name; NONE for an unknown name."""
        ...

    def domain_rows(self, names: Sequence[str]) -> Rows:
        """Rows of domains by name; NONE for an unknown name."""
        ...


def decision(
    plan_id: str, epoch: int, plan: Plan, made: Statement, snapshot: Snapshot, naming: Naming, expires_at: float
) -> PlanCommitted:
    """The decision that commits ``made`` (the accepted statement of the plan), in names.

    Parameters
    ----------
    epoch
        Epoch of the lease under which it is recorded.
    expires_at
        End of its reservation, seconds since the epoch.
    """
    promised = zip(
        naming.tasks(made.nominated.tolist()),
        _places(made.nominated_node, naming),
        cards(snapshot, made.nominated_node, made.nominated_card),
        strict=True,
    )
    started = zip(
        naming.tasks(made.bound.tolist()),
        naming.nodes(made.bound_node.tolist()),
        cards(snapshot, made.bound_node, made.bound_card),
        strict=True,
    )
    preemptor = queue = domain = None
    if made.preemptor != NONE:
        (preemptor,) = naming.podgroups([made.preemptor])
        (queue,) = naming.queues([int(snapshot.podgroups.queue[made.preemptor])])
    if plan.domain != NONE:
        domain = naming.domains([plan.domain])[0] or None  # the domain of the whole cluster has no name
    return PlanCommitted(
        plan_id=plan_id,
        epoch=epoch,
        action=made.action,
        purpose=made.purpose.value,
        preemptor=preemptor,
        queue=queue,
        domain=domain,
        evictions=_evictions(made, snapshot, naming),
        condition=_condition(made, snapshot, naming),
        nominations=tuple(Nomination(task=task, node=node, card=card) for task, node, card in promised),
        bindings=tuple(Binding(task=task, node=node, card=card) for task, node, card in started),
        cost=cost(plan.price, made, snapshot),
        explanation=explained(plan.explanation, naming),
        expires_at=expires_at,
    )


def _evictions(made: Statement, snapshot: Snapshot, naming: Naming) -> tuple[Eviction, ...]:
    """Every victim, with its podgroup and the node that it runs on."""
    tasks, victims = snapshot.tasks, made.evictions
    told = zip(
        naming.tasks(victims.tolist()),
        tasks.incarnation[victims].tolist(),
        naming.podgroups(tasks.podgroup[victims].tolist()),
        naming.nodes(tasks.node[victims].tolist()),
        strict=True,
    )
    return tuple(Eviction(task=t, incarnation=i, podgroup=p, node=n) for t, i, p, n in told)


def _condition(made: Statement, snapshot: Snapshot, naming: Naming) -> VictimCondition | None:
    """The condition for the status of the victims, with the podgroups and a task that they make room for."""
    if not len(made.evictions):
        return None
    placed = made.placed[np.argsort(snapshot.tasks.order[made.placed])]
    owners = np.unique(snapshot.tasks.podgroup[placed]).tolist()
    words = [f"{SCHEDULER}: {_MAKING_ROOM.get(made.purpose, 'ending what is left of a gang')}"]
    if owners:
        words.append(f"preemptor: {','.join(sorted(naming.podgroups(owners)))}")
        words.append(f"triggerPod: {naming.tasks(placed[:1].tolist())[0]}")
    return VictimCondition(
        type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message=", ".join(words)
    )


def cost(price: Price, made: Statement, snapshot: Snapshot) -> dict[str, int | float]:
    """The fields of the price, and for each resource of the gang's minimum the evicted over the requested amount."""
    said: dict[str, int | float] = {
        "budgets_violated": price.budgets_violated, "gangs_broken": price.gangs_broken,
        "lost_work": price.lost_work, "victims": len(made.evictions), "tier": price.tier,
    }  # fmt: skip
    if price.highest_priority != NO_PRIORITY:
        said["highest_priority"] = price.highest_priority
    if len(made.evictions):
        request, shape = snapshot.shapes.request, snapshot.tasks.shape
        placed = np.concatenate([made.nominated, made.bound])
        evicted = request[shape[made.evictions]].sum(axis=0)
        requested = request[shape[placed]].sum(axis=0)
        for row in np.flatnonzero(requested > 0).tolist():
            ratio = round(float(evicted[row] / requested[row]), 3)
            said[EVICTED_TO_REQUESTED + snapshot.vocabulary.resources[row]] = ratio
    return said


def explained(why: Explanation, naming: Naming, shown: int = SHOWN) -> dict[str, Any]:
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
            {"domain": name or CLUSTER, "reason": one.reason.value} | _slots(one) | _compared(chosen, one.price)
            for name, one in zip(domains, tried, strict=True)
        ],
        "victims": [
            {"podgroup": name, "safe": one.safe, "tasks": one.tasks, "elsewhere": one.elsewhere,
             "priority": one.priority, "efficiency": round(float(one.efficiency), 4)}
            for name, one in zip(victims, why.bundles, strict=True)
        ],
        "spared": [
            {"podgroup": name, "safe": one.safe, "tasks": one.tasks, "reason": one.reason.value}
            | _compared(chosen, one.price)
            for name, one in zip(others, why.spared, strict=True)
        ],
        "obstacles": [_obstacle(one, naming) for one in why.obstacles],
        "not_shown": {"domains": sum(fell.values()) - len(tried), "victims": 0, "spared": why.spared_more},
    }  # fmt: skip


def _bound(why: Explanation, chosen: Price | None) -> dict[str, Any] | None:
    """The lower bound of every lawful plan, and by which fraction the chosen plan can be above it."""
    if why.bound is None:
        return None
    excess = None if chosen is None else why.bound.excess(chosen)
    said: dict[str, Any] = {"broken": [{"level": level, "work": round(work, 6)} for level, work in why.bound.broken]}
    return said | {"queue_rank": why.bound.queue_rank, "excess": None if excess is None else round(excess, 4)}


def unplaced(action: str, why: Explanation, naming: Naming, shown: int = SHOWN) -> dict[str, Any]:
    """Why an action found no plan, in names."""
    return {"action": action} | explained(why, naming, shown)


def condition(found: Condition, held: Sequence[Obstacle], naming: Naming) -> dict[str, Any]:
    """The condition of a podgroup, without its name, and what holds it back; plain data for the wire."""
    said: dict[str, Any] = {"condition": found.kind, "reason": found.reason.value}
    counts = ("minimum", "tasks", "schedulable", "promised", "gated", "ending", "unready", "retried")
    said |= {name: getattr(found, name) for name in counts}
    return said | ({"obstacles": [_obstacle(one, naming) for one in held]} if held else {})


def _fell(why: Explanation) -> dict[str, int]:
    """How many domains fell, by reason."""
    fell: dict[str, int] = {}
    for one in why.tried:
        fell[one.reason.value] = fell.get(one.reason.value, 0) + 1
    if why.ruled is not None:
        pruned = int(why.ruled.pruned.sum())
        for reason, count in ((Reason.BOUND, len(why.ruled.domain) - pruned), (Reason.PRUNED, pruned)):
            if count:
                fell[reason.value] = fell.get(reason.value, 0) + count
    return fell


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


def _obstacle(one: Obstacle, naming: Naming) -> dict[str, Any]:
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
    unit = 1000 if one.what == "cpu" else 1  # in cores
    amounts = {"plugin": one.plugin, "what": one.what, "wanted": one.wanted / unit, "found": one.found / unit}
    return said | {key: value for key, value in amounts.items() if value or (key == "found" and one.wanted)}


def _compared(chosen: Price | None, price: Price | None) -> dict[str, Any]:
    """A price, and the first field in which it differs from the chosen one, with both values."""
    if price is None:
        return {}
    said: dict[str, Any] = {"price": _price(price)}
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


def cards(snapshot: Snapshot, nodes: Rows, on: Rows) -> list[str | None]:
    """Names of cards by node and position; None where there is no card."""
    places = zip(nodes.tolist(), on.tolist(), strict=True)
    return [None if card == NONE else card_names(snapshot, node)[card] for node, card in places]


def _places(nodes: Rows, naming: Naming) -> list[str | None]:
    """Names of nodes; None for NONE, which takes a nomination back."""
    known = nodes[nodes != NONE]
    names = iter(naming.nodes(known.tolist()))
    return [None if node == NONE else next(names) for node in nodes.tolist()]
