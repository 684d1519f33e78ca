"""Our own decisions: from names on the wire to columns; and which of them have not ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from actors.columns.card_names import card_row
from actors.ingestion.known.active_decisions import ActiveClaim, ActivePlan, UnknownParts
from actors.ingestion.known.row_names import RowNames
from actors.ingestion.known.state import LiveState, time_of
from actors.protocol.bodies import (
    Binding,
    DomainReleased,
    DomainReserved,
    Eviction,
    Nomination,
    PlanCommitted,
    PlanWithdrawn,
)
from actors.protocol.envelopes import Message
from pipeline.actions.claims import Closed
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, TERMINATING
from pipeline.cluster.updates.events import CURRENT, Changes, Decided
from pipeline.cluster.updates.fold import fold
from pipeline.decision.claim import Claim

#: Task, incarnation.
Life = tuple[int, int]
#: Task, node, card, incarnation.
Promised = tuple[int, int, int, int]


def take_decisions(state: LiveState, messages: Sequence[Message]) -> None:
    """Fold our own decisions, one after the other."""
    for message in messages:
        if message.revision > state.snapshot.decided:
            _take(state, message)


def _take(state: LiveState, message: Message) -> None:
    body, seq, decided_at = message.body, message.revision, _decided_at(message.body)
    at = time_of(message) if decided_at is None else decided_at
    decisions = state.decisions
    if isinstance(body, PlanCommitted):
        replaced = decisions.end(body.replaces) if body.replaces is not None else None
        unknown = _unknown_parts(state, body, message.entry)
        state.fold(Changes(decided=_decided_of(state, body, replaced, seq, at)))
        decisions.placed_anew(one.task for some in (body.evictions, body.nominations, body.bindings) for one in some)
        decisions.keep(body.plan_id, _active_plan(state, body, message.entry))
        if unknown is not None:
            decisions.unknown[body.plan_id] = unknown
    elif isinstance(body, PlanWithdrawn):
        plan = decisions.end(body.plan_id)
        state.fold(Changes(decided=_withdrawn(state.names, plan, seq, at)))
    elif isinstance(body, DomainReserved | DomainReleased):
        decisions.claims.pop(body.podgroup, None)
        if isinstance(body, DomainReserved):
            decisions.claims[body.podgroup] = ActiveClaim(message.entry, body.domain or "", body.expires_at)
        state.fold(Changes(decided=_withdrawn(state.names, None, seq, at)))
    if isinstance(body, PlanCommitted | PlanWithdrawn):
        late = {one.task: (one.incarnation, one.avoided_until) for one in body.overdue}
        decisions.overdue = _still_overdue(decisions.overdue, decided_at) | late


def pass_over(state: LiveState, recorded: int) -> None:
    """Count on from this record of the ledger: of what was decided up to it the next list tells."""
    if recorded > state.snapshot.decided:
        state.fold(Changes(decided=_decided(recorded, 0.0, [], [], [], [])))


def _decided_of(state: LiveState, made: PlanCommitted, replaced: ActivePlan | None, seq: int, at: float) -> Decided:
    """A decision in rows. Names that are not known any more are left out: those things are gone.

    ``replaced`` is taken back at the same time, except what is promised anew.
    """
    names, snapshot = state.names, state.snapshot
    evicted = [(names.row("tasks", one.task), one.incarnation) for one in made.evictions]
    nominated, bound = list[Promised](), list[Promised]()
    for places, some in ((nominated, made.nominations), (bound, made.bindings)):
        for one in some:
            node = names.row("nodes", one.node) if one.node is not None else NONE
            card = card_row(snapshot, node, one.card) if node != NONE else NONE
            if one.node is None or (node != NONE and (one.card is None or card != NONE)):
                life = CURRENT if one.incarnation is None else one.incarnation
                places.append((names.row("tasks", one.task), node, card, life))
    spared, ended = _taken_back(names, replaced) if replaced is not None else ([], [])
    anew = {row for row, *_ in nominated}
    kept = [*nominated, *(one for one in ended if one[0] not in anew)]
    lost_by = frozen([_queue_of(state, one) for one in made.evictions], np.int32)
    return replace(_decided(seq, at, evicted, spared, kept, bound), counted=lost_by, counted_at=at)


def _queue_of(state: LiveState, one: Eviction) -> int:
    """The queue that loses a victim; NONE if neither the task nor its podgroup is known any more."""
    names, snapshot = state.names, state.snapshot
    task = names.row("tasks", one.task)
    if task != NONE:
        podgroup = int(snapshot.tasks.podgroup[task])
    else:
        podgroup = names.row("podgroups", one.podgroup) if one.podgroup is not None else NONE
    return int(snapshot.podgroups.queue[podgroup]) if podgroup != NONE else NONE


def _withdrawn(names: RowNames, plan: ActivePlan | None, seq: int, at: float) -> Decided:
    """A decision taken back: its victims are spared, its nominations end. Nothing, if it has ended."""
    if plan is None:
        return _decided(seq, at, [], [], [], [])
    spared, ended = _taken_back(names, plan)
    return _decided(seq, at, [], spared, ended, [])


def _taken_back(names: RowNames, plan: ActivePlan) -> tuple[list[Life], list[Promised]]:
    spared = [(names.row("tasks", task), life) for task, life in plan.evictions]
    return spared, [(names.row("tasks", task), NONE, NONE, life) for task, life in plan.nominations]


def _decided(
    seq: int,
    at: float,
    evicted: Sequence[Life],
    spared: Sequence[Life],
    nominated: Sequence[Promised],
    bound: Sequence[Promised],
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


def _active_plan(state: LiveState, made: PlanCommitted, entry: str) -> ActivePlan:
    """A decision that was folded, as long as it may be taken back.

    A task that moves is promised its node in the life that it has when it has ended.
    """
    tasks, moved = state.snapshot.tasks, {one.task for one in made.evictions}
    lives = list[tuple[str, int]]()
    for one in made.nominations:
        row = state.names.row("tasks", one.task)
        if row != NONE and one.node is not None:
            now = int(tasks.incarnation[row]) if one.incarnation is None else one.incarnation
            lives.append((one.task, CURRENT if one.task in moved else now))
    return ActivePlan(entry, [(one.task, one.incarnation) for one in made.evictions], lives)


def _unknown_parts(state: LiveState, made: PlanCommitted, entry: str) -> UnknownParts | None:
    """The parts of a decision that name tasks, nodes or lives of tasks that are not known; None if there are none."""
    names = state.names
    places: list[Nomination | Binding] = [*made.nominations, *made.bindings]
    moved = {one.task: one.incarnation for one in made.evictions}
    evictions = [(one.task, one.incarnation) for one in made.evictions if _is_news(state, one.task, one.incarnation)]
    nowhere = [
        (one.task, one.node, one.card, one.incarnation)
        for one in places
        if one.node is not None
        and (names.row("nodes", one.node) == NONE or _is_news(state, one.task, moved.get(one.task), one.incarnation))
    ]
    return UnknownParts(entry, evictions, nowhere) if evictions or nowhere else None


def _is_news(state: LiveState, task: str, life: int | None, placed: int | None = None) -> bool:
    """Whether a decision names a task, or a life of a task, that a gap has lost.

    ``life``: that it ends. ``placed``: that it promises a node or starts, if it says which; such a task waits.
    """
    row, tasks = state.names.row("tasks", task), state.snapshot.tasks
    if row == NONE:
        return True
    if life is not None:
        return bool(tasks.incarnation[row] < life)
    if placed is not None and tasks.incarnation[row] != placed:
        return bool(tasks.incarnation[row] < placed)
    return bool(tasks.status[row] in (BOUND, RUNNING, TERMINATING))


def take_unknown_parts(state: LiveState, at: float) -> None:
    """Fold what decisions did to tasks that a list has brought back; ``at`` in seconds.

    A place counts as promised until a withdrawal takes it back. A binding becomes a promise too: it is not known
    whether the task has started since. A task that has started is left alone.
    """
    decisions, names, tasks, decided = state.decisions, state.names, state.snapshot.tasks, state.snapshot.decided
    evicted, promised = list[Life](), dict[int, Promised]()
    for plan_id, parts in decisions.unknown.items():
        evicted += [(names.row("tasks", task), life) for task, life in parts.evictions]
        lives, moved = [], dict(parts.evictions)
        for task, on, on_card, placed in parts.places:
            row, node = names.row("tasks", task), names.row("nodes", on)
            card = card_row(state.snapshot, node, on_card) if node != NONE else NONE
            if NONE in (row, node) or (on_card is not None and card == NONE):
                continue
            status, life = int(tasks.status[row]), int(tasks.incarnation[row])
            waits = status == PENDING and tasks.nominated[row] == NONE and placed in (None, life)
            if waits or (moved.get(task) == life and status in (BOUND, RUNNING, TERMINATING)):
                promised[row] = row, node, card, CURRENT
                lives.append((task, CURRENT if task in moved else life))
        before = decisions.plans.get(plan_id, ActivePlan(parts.entry, parts.evictions, []))
        decisions.keep(plan_id, ActivePlan(before.entry, before.evictions, [*before.nominations, *lives]))
    decisions.unknown = {}
    if promised or any(row != NONE for row, _ in evicted):
        news = _decided(decided, at, evicted, [], list(promised.values()), [])
        state.known = fold(replace(state.snapshot, decided=decided - 1), Changes(decided=news))


def forget_what_is_over(state: LiveState) -> None:
    """Keep only the decisions that still promise something, wait for a task to end, or name what is not known yet."""
    tasks, names, plans = state.snapshot.tasks, state.names, state.decisions.plans

    def stands(task: str, life: int, nominated: bool) -> bool:
        row = names.row("tasks", task)
        if row == NONE or life not in (CURRENT, tasks.incarnation[row]):
            return False
        if nominated:
            return bool(tasks.status[row] == PENDING and tasks.nominated[row] != NONE)
        return bool(tasks.status[row] == TERMINATING)

    over = [
        key
        for key, plan in plans.items()
        if key not in state.decisions.unknown
        and not any(stands(*one, True) for one in plan.nominations)
        and not any(stands(*one, False) for one in plan.evictions)
    ]
    for key in over:
        state.decisions.end(key)


def _decided_at(body: object) -> float | None:
    """When the committer decided, by its own clock; None if the message does not say.

    The committer has counted the decision from then on, and avoids victims by that clock. The broker's clock may be
    ahead, and a record may have been on its way for a while.
    """
    judged_on = body.judged_on if isinstance(body, PlanCommitted | PlanWithdrawn) else None
    return None if judged_on is None else judged_on.at


def _still_overdue(overdue: Mapping[str, tuple[int, float]], now: float | None) -> dict[str, tuple[int, float]]:
    """Victims that did not end in time and must not be counted on yet, those included that a gap has lost."""
    return {task: (life, until) for task, (life, until) in overdue.items() if now is None or until > now}


def closed(state: LiveState) -> Closed:
    """What our decisions close to some podgroups, in rows."""
    names, decisions = state.names, state.decisions
    if not decisions.overdue and not decisions.claims:
        return Closed()  # mostly so, and then no new rows need to be folded for it
    snapshot = state.snapshot
    late = ((_overdue_node(snapshot, names, task, life), until) for task, (life, until) in decisions.overdue.items())
    domains = {name: row for row, name in reversed(list(enumerate(names.domains)))} if decisions.claims else {}
    claims = tuple(
        Claim(row, domains[kept.domain], kept.expires_at)
        for podgroup, kept in sorted(decisions.claims.items())
        if kept.domain in domains and (row := state.podgroup(podgroup)) != NONE
    )
    return Closed(tuple(sorted(one for one in late if one[0] != NONE)), claims)


def _overdue_node(snapshot: Snapshot, names: RowNames, task: str, life: int) -> int:
    """The node that a victim holds in the life that was to end; NONE once that life has ended."""
    row, tasks = names.row("tasks", task), snapshot.tasks
    if row == NONE or tasks.incarnation[row] != life or tasks.status[row] not in (BOUND, RUNNING, TERMINATING):
        return NONE
    return int(tasks.node[row])
