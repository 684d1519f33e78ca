"""Decisions of a history, each on a state that its committer may have had: what only the streams say of them.

A history does not say what a committer had heard, so a decision is broken if it breaks a rule on every state that it
may have been judged on: all decisions before it, and all events but the newest few.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from actors.broker.bus import Entry
from actors.ingestion.interpreter import Interpreter
from actors.ingestion.known.state import LiveState
from actors.protocol.bodies import DECISION_KINDS, PlanCommitted
from actors.protocol.envelopes import Message
from actors.verification.history import in_order
from pipeline.cluster.arrays import NONE, Rows
from pipeline.decision.statement import Statement, statement
from pipeline.policy import Policy, Purpose
from tests.chaos.decision_checks import Decided, objections

#: So many messages may be on their way to a committer while it judges.
_ON_THE_WAY = 60


def broken_in(events: Sequence[Entry], decisions: Sequence[Entry], policy: Policy) -> Iterator[str]:
    """What evicting decisions break on the state with the fewest objections; silent where one state has none."""
    state = Interpreter()
    recent: deque[tuple[LiveState, Message]] = deque(maxlen=_ON_THE_WAY)
    for at_ms, message in in_order(events, decisions):
        body = message.body
        if isinstance(body, PlanCommitted) and body.evictions and body.replaces is None:
            found = [_objections(one, body, policy, at_ms / 1000) for one in _may_have_had(state, recent)]
            yield from min(found, key=len)
        recent.append((state.state.copied(), message))
        state.take(message)
        state.flush()


def _may_have_had(state: Interpreter, recent: Sequence[tuple[LiveState, Message]]) -> Iterator[LiveState]:
    """The state with all that came before; then without the last event, without the last two, and so on."""
    yield state.state
    epoch = state.snapshot.epoch
    decided: list[Message] = []
    for before, message in reversed(recent):
        if before.snapshot.epoch != epoch:
            return  # rows were numbered anew
        if message.kind in DECISION_KINDS:
            decided.insert(0, message)
            continue
        older = Interpreter(before.copied())
        for one in decided:
            older.take(one)
            older.flush()
        yield older.state


def _objections(state: LiveState, body: PlanCommitted, policy: Policy, now: float) -> list[str]:
    made = _in_rows(state, body)
    return [f"plan {body.plan_id}: names are unknown"] if made is None else [
        *objections(Decided(body.plan_id, made, state.snapshot, now), policy)
    ]  # fmt: skip


def _in_rows(state: LiveState, body: PlanCommitted) -> Statement | None:
    """The decision as a statement; None where the state has no such rows yet. Who ended meanwhile is no victim."""

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
