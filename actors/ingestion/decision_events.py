"""Our own decisions, by name on the wire, as columns; and which of them may still be taken back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from actors.contracts import Closed
from actors.ingestion.register import NONE, Register, StandingClaim, StandingPlan
from actors.protocol.bodies import DomainReleased, DomainReserved, PlanCommitted
from pipeline.cluster.arrays import frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, TERMINATING
from pipeline.cluster.updates.events import CURRENT, Decided
from pipeline.decision.claim import Claim

Life = tuple[int, int]
Place = tuple[int, int, int, int]
"""Task, node, card, incarnation."""


def decided_of(
    names: Register, snapshot: Snapshot, made: PlanCommitted, replaced: StandingPlan | None, seq: int, at: float
) -> Decided:
    """A decision in rows. What is not known any more is left out: it is gone, and the decision with it.

    ``replaced`` is taken back by the same stroke, but for what is promised anew.
    """
    evicted = [(names.row("tasks", one.task), one.incarnation) for one in made.evictions]
    nominated, bound = list[Place](), list[Place]()
    for places, some in ((nominated, made.nominations), (bound, made.bindings)):
        for one in some:
            node = names.row("nodes", one.node) if one.node is not None else NONE
            card = snapshot.card_row(node, one.card) if node != NONE else NONE
            if one.node is None or (node != NONE and (one.card is None or card != NONE)):
                places.append((names.row("tasks", one.task), node, card, CURRENT))
    spared, ended = _taken_back(names, replaced) if replaced is not None else ([], [])
    anew = {row for row, *_ in nominated}
    return _decided(seq, at, evicted, spared, [*nominated, *(one for one in ended if one[0] not in anew)], bound)


def withdrawn_of(names: Register, plan: StandingPlan | None, seq: int, at: float) -> Decided:
    """A decision taken back: its victims are spared, its nominations end. Nothing, if it does not stand any more."""
    if plan is None:
        return _decided(seq, at, [], [], [], [])
    spared, ended = _taken_back(names, plan)
    return _decided(seq, at, [], spared, ended, [])


def _taken_back(names: Register, plan: StandingPlan) -> tuple[list[Life], list[Place]]:
    spared = [(names.row("tasks", task), life) for task, life in plan.evictions]
    return spared, [(names.row("tasks", task), NONE, NONE, life) for task, life in plan.nominations]


def _decided(
    seq: int,
    at: float,
    evicted: Sequence[Life],
    spared: Sequence[Life],
    nominated: Sequence[Place],
    bound: Sequence[Place],
) -> Decided:
    lives = [np.array([one for one in some if one[0] != NONE], np.int64).reshape(-1, 2) for some in (evicted, spared)]
    places = [np.array([one for one in some if one[0] != NONE], np.int64).reshape(-1, 4) for some in (nominated, bound)]
    return Decided(
        seq,
        at,
        *(frozen(column, np.int64) for some in lives for column in some.T),
        *(
            frozen(column, np.int32 if position in (1, 2) else np.int64)
            for some in places
            for position, column in enumerate(some.T)
        ),
    )


def noted(names: Register, snapshot: Snapshot, made: PlanCommitted, entry: str) -> None:
    """Remember a decision that was folded, as long as it may be taken back."""
    rows = [(one.task, names.row("tasks", one.task)) for one in made.nominations if one.node is not None]
    lives = [(task, int(snapshot.tasks.incarnation[row])) for task, row in rows if row != NONE]
    names.plans[made.plan_id] = StandingPlan(entry, [(one.task, one.incarnation) for one in made.evictions], lives)


def still_standing(snapshot: Snapshot, names: Register) -> dict[str, StandingPlan]:
    """The decisions of which something is still promised, or still to end."""
    tasks = snapshot.tasks

    def stands(task: str, life: int, nominated: bool) -> bool:
        row = names.row("tasks", task)
        if row == NONE or tasks.incarnation[row] != life:
            return False
        if nominated:
            return bool(tasks.status[row] == PENDING and tasks.nominated[row] != NONE)
        return bool(tasks.status[row] == TERMINATING)

    return {
        key: plan
        for key, plan in names.plans.items()
        if any(stands(*one, True) for one in plan.nominations) or any(stands(*one, False) for one in plan.evictions)
    }


def still_overdue(snapshot: Snapshot, names: Register, now: float) -> dict[str, tuple[int, float]]:
    """Victims that did not end in time, still hold their room, and are not to be counted on yet."""
    return {
        task: (life, until)
        for task, (life, until) in names.overdue.items()
        if until > now and overdue_node(snapshot, names, task, life) != NONE
    }


def claim(names: Register, body: DomainReserved | DomainReleased, entry: str) -> None:
    """Remember that a domain is kept for a podgroup, or is not any more."""
    names.claims.pop(body.podgroup, None)
    if isinstance(body, DomainReserved):
        names.claims[body.podgroup] = StandingClaim(entry, body.domain or "", body.expires_at)


def closed(snapshot: Snapshot, names: Register) -> Closed:
    """What our decisions close, in rows."""
    late = ((overdue_node(snapshot, names, task, life), until) for task, (life, until) in names.overdue.items())
    domains = {name: row for row, name in reversed(list(enumerate(names.domains)))} if names.claims else {}
    claims = tuple(
        Claim(names.row("podgroups", podgroup), domains[kept.domain], kept.expires_at)
        for podgroup, kept in sorted(names.claims.items())
        if kept.domain in domains and snapshot.podgroups.alive[names.row("podgroups", podgroup)]
    )
    return Closed(tuple(sorted(one for one in late if one[0] != NONE)), claims)


def overdue_node(snapshot: Snapshot, names: Register, task: str, life: int) -> int:
    """The node that a victim holds in the life that was to end; NONE once it has."""
    row, tasks = names.row("tasks", task), snapshot.tasks
    if row == NONE or tasks.incarnation[row] != life or tasks.status[row] not in (BOUND, RUNNING, TERMINATING):
        return NONE
    return int(tasks.node[row])
