"""A decision for the wire, with names in the place of rows."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from pydantic import TypeAdapter

from actors.columns.card_names import card_names
from actors.columns.explanation_message import explained
from actors.columns.name_directory import Directory
from actors.protocol.bodies import Binding, Eviction, JudgedOn, Nomination, PlanCommitted, PlannedOn, VictimCondition
from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING
from pipeline.decision.plan import Plan
from pipeline.decision.price import NO_PRIORITY, Price
from pipeline.decision.statement import Statement
from pipeline.policy import Purpose


class _Evicted(TypedDict):
    task: str
    incarnation: int
    podgroup: str
    node: str


class _Placed(TypedDict):
    task: str
    node: str | None
    card: str | None
    incarnation: int | None


# All rows are checked at once, which takes half the time of one message after the other.
_EVICTIONS, _NOMINATIONS = TypeAdapter(tuple[Eviction, ...]), TypeAdapter(tuple[Nomination, ...])
_BINDINGS = TypeAdapter(tuple[Binding, ...])

#: Name of this scheduler in the status of evicted tasks.
SCHEDULER = "clearway"
_MAKING_ROOM = {
    Purpose.PREEMPT: "preempting to accommodate higher priority pods",
    Purpose.RECLAIM: "reclaiming what a queue uses beyond its share",
    Purpose.CONSOLIDATE: "moving pods so that scattered room comes together",
}
#: Prefix of keys of a cost that hold the evicted over the requested amount of a resource.
EVICTED_TO_REQUESTED = "evicted_to_requested/"


def decision(
    plan_id: str,
    epoch: int,
    plan: Plan,
    made: Statement,
    snapshot: Snapshot,
    naming: Directory,
    expires_at: float,
    *,
    planned_on: PlannedOn | None = None,
    judged_on: JudgedOn | None = None,
) -> PlanCommitted:
    """The decision that commits ``made`` (the accepted statement of the plan), in names.

    Parameters
    ----------
    epoch
        Epoch of the lease under which it is recorded.
    expires_at
        End of its reservation, seconds since the epoch.
    planned_on, judged_on
        The states that it follows from.
    """
    domain = None
    preemptor, queue = whose(made, snapshot, naming)
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
        nominations=_nominations(made, snapshot, naming),
        bindings=_bindings(made, snapshot, naming),
        cost=cost(plan.price, made, snapshot),
        explanation=explained(plan.explanation, naming),
        expires_at=expires_at,
        planned_on=planned_on,
        judged_on=judged_on,
    )


def whose(made: Statement, snapshot: Snapshot, naming: Directory) -> tuple[str | None, str | None]:
    """Names of the preemptor and its queue; None if a statement is made for no podgroup."""
    if made.preemptor == NONE:
        return None, None
    queue = int(snapshot.podgroups.queue[made.preemptor])
    return naming.podgroups([made.preemptor])[0], naming.queues([queue])[0]


def _nominations(made: Statement, snapshot: Snapshot, naming: Directory) -> tuple[Nomination, ...]:
    """Every task that is promised a node, or loses its promise."""
    told = zip(
        naming.tasks(made.nominated.tolist()),
        _places(made.nominated_node, naming),
        cards(snapshot, made.nominated_node, made.nominated_card),
        _lives(made, snapshot),
        strict=True,
    )
    rows: list[_Placed] = [
        {"task": task, "node": node, "card": card, "incarnation": life} for task, node, card, life in told
    ]
    return _NOMINATIONS.validate_python(rows)


def _bindings(made: Statement, snapshot: Snapshot, naming: Directory) -> tuple[Binding, ...]:
    """Every task that starts."""
    told = zip(
        naming.tasks(made.bound.tolist()),
        naming.nodes(made.bound_node.tolist()),
        cards(snapshot, made.bound_node, made.bound_card),
        snapshot.tasks.incarnation[made.bound].tolist(),
        strict=True,
    )
    rows: list[_Placed] = [
        {"task": task, "node": node, "card": card, "incarnation": life} for task, node, card, life in told
    ]
    return _BINDINGS.validate_python(rows)


def _lives(made: Statement, snapshot: Snapshot) -> list[int | None]:
    """The lives that are promised a node; None where a promise ends, or waits for the end of the present life."""
    waits = (snapshot.tasks.status[made.nominated] == PENDING) & (made.nominated_node != NONE)
    lives = snapshot.tasks.incarnation[made.nominated]
    return [life if named else None for life, named in zip(lives.tolist(), waits.tolist(), strict=True)]


def _evictions(made: Statement, snapshot: Snapshot, naming: Directory) -> tuple[Eviction, ...]:
    """Every victim, with its podgroup and the node that it runs on."""
    tasks, victims = snapshot.tasks, made.evictions
    told = zip(
        naming.tasks(victims.tolist()),
        tasks.incarnation[victims].tolist(),
        naming.podgroups(tasks.podgroup[victims].tolist()),
        naming.nodes(tasks.node[victims].tolist()),
        strict=True,
    )
    rows: list[_Evicted] = [
        {"task": task, "incarnation": life, "podgroup": of, "node": node} for task, life, of, node in told
    ]
    return _EVICTIONS.validate_python(rows)


def _condition(made: Statement, snapshot: Snapshot, naming: Directory) -> VictimCondition | None:
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


def cards(snapshot: Snapshot, nodes: Rows, on: Rows) -> list[str | None]:
    """Names of cards by node and position; None where there is no card."""
    places = zip(nodes.tolist(), on.tolist(), strict=True)
    return [None if card == NONE else card_names(snapshot, node)[card] for node, card in places]


def _places(nodes: Rows, naming: Directory) -> list[str | None]:
    """Names of nodes; None for NONE, which takes a nomination back."""
    known = nodes[nodes != NONE]
    names = iter(naming.nodes(known.tolist()))
    return [None if node == NONE else next(names) for node in nodes.tolist()]
