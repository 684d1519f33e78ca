"""Decisions of a history, each on the states that it names: what only the streams say of them.

A decision says on which state it was planned, and on which it was judged. Both are found by folding the history once
more. On the first the core's own cycle must make the same plan again (2, 19), on the second the decision must keep the
rules (6, 7, 8). A decision that replaces another was planned where it was judged, and must be made there again (2, 19).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from actors.broker.bus import Entry
from actors.contracts import plan_id
from actors.ingestion.by_kind.decision_events import closed
from actors.ingestion.interpreter import Interpreter
from actors.ingestion.known.state import LiveState
from actors.protocol.bodies import DECISION_KINDS, JudgedOn, PlanCommitted, PlannedOn
from actors.protocol.envelopes import Message
from actors.search.batched_search import Spread
from actors.verification.history import in_stream_order
from pipeline.actions.backoff import Backoff, Pause
from pipeline.actions.setup import Setup
from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.rules.gang_groups import gang_group_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import cycle
from pipeline.decision.plan import Plan
from pipeline.decision.statement import Statement, statement
from pipeline.policy import Policy, Purpose
from tests.chaos.decision_checks import Decided, objections
from tests.chaos.replacements_again import differs

#: Epoch and revision of a state.
Numbers = tuple[int, int]
History = Sequence[tuple[int, Message]]


def broken_in(events: Sequence[Entry], decisions: Sequence[Entry], policy: Policy) -> Iterator[str]:
    """What decisions break on the states that they name, and those that the core does not make again."""
    history = list(in_stream_order(events, decisions))
    made = _made(history)
    states = _folded(history, {_numbers(on) for _, body in made for on in (body.planned_on, body.judged_on) if on})
    for message, body in made:
        yield from _judged(message, body, states, history, policy)
        yield from _replacing(message, body, states, history, policy)
    yield from _cycles([body for _, body in made], states, policy)


def replaced_otherwise(events: Sequence[Entry], decisions: Sequence[Entry], policy: Policy) -> Iterator[str]:
    """Decisions that replace another and that the core does not make again."""
    history = list(in_stream_order(events, decisions))
    made = [(message, body) for message, body in _made(history) if body.replaces is not None]
    states = _folded(history, {_numbers(body.judged_on) for _, body in made if body.judged_on}) if made else {}
    for message, body in made:
        yield from _replacing(message, body, states, history, policy)


def offered(snapshot: Snapshot, policy: Policy, now: float, setup: Setup) -> tuple[str, ...]:
    """The ids of the plans that a cycle offers; none of them is judged."""
    found: list[str] = []

    def none_judged(plans: Sequence[Plan]) -> list[None]:
        found.extend(plan_id(str(plan.statement.preemptor), plan) for plan in plans)
        return [None] * len(plans)

    cycle(snapshot, policy, now, setup, none_judged)
    return tuple(found)


def _made(history: History) -> list[tuple[Message, PlanCommitted]]:
    return [(message, message.body) for _, message in history if isinstance(message.body, PlanCommitted)]


def _numbers(on: PlannedOn | JudgedOn) -> Numbers:
    return on.epoch, on.revision


def _folded(history: History, wanted: set[Numbers]) -> dict[Numbers, LiveState]:
    """The states with these numbers."""
    interpreter, found = Interpreter(), dict[Numbers, LiveState]()
    for _, message in history:
        interpreter.take(message)
        interpreter.flush()
        numbers = interpreter.snapshot.epoch, interpreter.snapshot.revision
        if numbers in wanted:
            found[numbers] = interpreter.state.copied()
    return found


# -- 2, 19: the same cycle makes the same plans ------------------------------------------------------------------------


def _cycles(made: Sequence[PlanCommitted], states: dict[Numbers, LiveState], policy: Policy) -> Iterator[str]:
    """The cycles of these decisions, run again, each once."""
    cycles: dict[PlannedOn, list[str]] = {}
    for body in made:
        if body.planned_on is not None:
            cycles.setdefault(body.planned_on, []).append(body.plan_id)
        elif body.replaces is None:
            yield f"(2, 19) plan {body.plan_id} does not say on which state it was planned"
    for on, plans in cycles.items():
        state = states.get(_numbers(on))
        if state is None:
            yield f"(13) plans {plans} were made on revision {on.revision} of epoch {on.epoch}, which no replay has"
        elif on.paused is not None:
            found = offered(state.snapshot, policy, on.at, _setup(state, on.paused))
            if not set(plans) <= set(found):
                yield f"(2, 19) on revision {on.revision} {plans} were offered; run again it is {found}"


def _setup(state: LiveState, paused: Sequence[str]) -> Setup:
    """What the cycle was given: as many turns as a dispatcher gives, and the gang groups that paused."""
    snapshot = state.snapshot
    gang_groups = [gang_group_of(snapshot, state.names.row("podgroups", name)) for name in paused]
    pauses = {gang_group: Pause(snapshot.revision, math.inf, 1) for gang_group in gang_groups}
    return Setup(closed(state), Backoff(epoch=snapshot.epoch, pauses=pauses), Spread().preemptors)


def _replacing(
    message: Message, body: PlanCommitted, states: dict[Numbers, LiveState], history: History, policy: Policy
) -> Iterator[str]:
    """A decision that replaces another, made again on the state that it names."""
    if body.replaces is None:
        return
    on, earlier = body.judged_on, (one.body for _, one in history if one.revision < message.revision)
    newest = states.get(_numbers(on)) if on is not None else None
    replaced = next((one for one in earlier if isinstance(one, PlanCommitted) and one.plan_id == body.replaces), None)
    if on is None or newest is None:
        yield f"(13) plan {body.plan_id} replaces another on {on}, which no replay has"
    elif replaced is None:
        yield f"(13) plan {body.plan_id} replaces {body.replaces}, which was not recorded before it"
    else:
        state = _with_decisions_before(message, newest, history)
        difference = differs(body, on, replaced, newest, state, policy)
        if difference is not None:
            yield f"(2, 19) plan {body.plan_id} on revision {on.revision}: {difference}"


# -- 6, 7, 8: what a decision may take ---------------------------------------------------------------------------------


def _judged(
    message: Message, body: PlanCommitted, states: dict[Numbers, LiveState], history: History, policy: Policy
) -> Iterator[str]:
    if not body.evictions or body.replaces is not None:
        return
    on = body.judged_on
    before = states.get(_numbers(on)) if on is not None else None
    if on is None or before is None:
        yield f"(13) plan {body.plan_id} was judged on {on}, which no replay has"
        return
    state = _with_decisions_before(message, before, history)
    made = _in_rows(state, body)
    if made is None:
        yield f"(13) plan {body.plan_id}: names are unknown on the state on which it was judged"
    else:
        yield from objections(Decided(body.plan_id, made, state.snapshot, on.at), policy)


def _with_decisions_before(message: Message, state: LiveState, history: History) -> LiveState:
    """A state with the decisions that it does not contain and that were recorded before this one."""
    older = Interpreter(state.copied())
    for _, one in history:
        if one.kind in DECISION_KINDS and older.snapshot.decided < one.revision < message.revision:
            older.take(one)
            older.flush()
    return older.state


def _in_rows(state: LiveState, body: PlanCommitted) -> Statement | None:
    """The decision as a statement; None where the state has no such rows."""

    def rows(kind: str, names: Sequence[str | None]) -> Rows:
        return np.array([NONE if one is None else state.names.row(kind, one) for one in names], np.int64)  # type: ignore[arg-type]

    victims = rows("tasks", [one.task for one in body.evictions])
    nominated, bound = (rows("tasks", [one.task for one in said]) for said in (body.nominations, body.bindings))
    preemptor = NONE if body.preemptor is None else state.names.row("podgroups", body.preemptor)
    known = len(state.snapshot.tasks)
    if not all(((part >= 0) & (part < known)).all() for part in (victims, nominated, bound)):
        return None
    if body.preemptor is not None and not NONE < preemptor < len(state.snapshot.podgroups):
        return None
    return statement(
        body.action, preemptor, purpose=Purpose(body.purpose), evictions=victims,
        nominated=nominated, nominated_node=rows("nodes", [one.node for one in body.nominations]),
        bound=bound, bound_node=rows("nodes", [one.node for one in body.bindings]),
    )  # fmt: skip
