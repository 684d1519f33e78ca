"""Decisions that replace another, made once more from the streams: victims that were late, and the plan without them.

Such a decision comes from no cycle. It follows from the state on which it was judged: what the other decision still
waits for is found there, and the core is asked for another plan. The whole decision must be the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from actors.columns.decision_message import decision
from actors.columns.name_directory import Additions, Directory
from actors.ingestion.known.active_decisions import ActivePlan
from actors.ingestion.known.state import LiveState
from actors.protocol.bodies import JudgedOn, PlanCommitted
from actors.protocol.envelopes import Outgoing, pack_decision
from pipeline.actions.substitution import substitute
from pipeline.cluster.arrays import NONE, Rows, frozen
from pipeline.decision.attempt import Attempt
from pipeline.decision.reservation import Ending, GivenUp, Reservation, fate, held_for, still_holding
from pipeline.policy import Policy, Purpose

_ROUNDING_S = 1e-3
#: Incarnations of tasks by name.
Lives = Mapping[str, int]


def differs(
    body: PlanCommitted, on: JudgedOn, replaced: PlanCommitted, newest: LiveState, state: LiveState, policy: Policy
) -> str | None:
    """What differs where a replacement is made again; None: nothing.

    Parameters
    ----------
    replaced
        The decision in whose place it is.
    newest
        The state that it names.
    state
        The same, with all decisions that were recorded before it.
    """
    stood = newest.decisions.plans.get(replaced.plan_id)
    why = _given_up(newest, stood, _deadline(body, on, replaced), on.at) if stood is not None else None
    if why is None:
        return f"there {replaced.plan_id} is not given up because of its victims"
    late = _lives(newest, why.alive)
    if late != {one.task: one.incarnation for one in body.overdue}:
        return f"there {sorted(late)} had not ended"
    again = _another(body, on, replaced, why, state, policy)
    if again is None:
        return "run again there is no other plan"
    return None if _sent(again) == _sent(body) else f"run again it is {_acts(again)}"


def _sent(made: PlanCommitted) -> dict[str, bytes]:
    """As it is sent: an efficiency without end, for one, is not known to whoever reads it."""
    return pack_decision(Outgoing("plan_committed", made.plan_id, 0, made))


def _deadline(body: PlanCommitted, on: JudgedOn, replaced: PlanCommitted) -> float:
    """When the victims should have ended: they are avoided for as long as they had."""
    if replaced.judged_on is None or not body.overdue:
        return math.inf
    return replaced.judged_on.at + body.overdue[0].avoided_until - on.at - _ROUNDING_S


def _given_up(state: LiveState, stood: ActivePlan, deadline: float, now: float) -> GivenUp | None:
    """Why a decision is given up if its victims are late; None if it is not, or if that is not why."""
    tasks, victims = (_rows(state, [name for name, _ in lives]) for lives in (stood.nominations, stood.evictions))
    incarnation = frozen([life for _, life in stood.evictions], np.int64)
    found = fate(Reservation(tasks, victims, incarnation, math.inf, deadline), state.snapshot, now)
    return found if isinstance(found, GivenUp) and found.reason is Ending.VICTIMS_OVERDUE else None


def _another(
    body: PlanCommitted, on: JudgedOn, replaced: PlanCommitted, why: GivenUp, state: LiveState, policy: Policy
) -> PlanCommitted | None:
    """The replacement as the core makes it; None where it finds none."""
    preemptor = state.names.row("podgroups", replaced.preemptor or "")
    if preemptor == NONE:
        return None
    snapshot = state.snapshot
    made = Attempt(snapshot, policy, Purpose(replaced.purpose), (preemptor,), None, on.at, replaced.action)
    found = substitute(made, why.waiting, why.alive, _avoided(state, on.at))
    if found is None:
        return None
    until = on.at + held_for(found.statement, snapshot, policy)
    naming = _naming(state)
    again = decision(body.plan_id, body.epoch, found, found.statement, snapshot, naming, until, judged_on=on)
    return again.model_copy(update={"replaces": replaced.plan_id, "overdue": body.overdue})


def _avoided(state: LiveState, now: float) -> Rows:
    """Victims of other decisions that are late as well."""
    late = {name: life for name, (life, until) in state.decisions.overdue.items() if until > now}
    rows = _rows(state, list(late))
    return rows[still_holding(rows, frozen(list(late.values()), np.int64), state.snapshot)]


def _rows(state: LiveState, names: list[str]) -> Rows:
    return frozen([state.names.row("tasks", name) for name in names], np.int64)


def _lives(state: LiveState, rows: Rows) -> Lives:
    incarnation = state.snapshot.tasks.incarnation
    return {state.names.tasks[row]: int(incarnation[row]) for row in rows.tolist()}


def _naming(state: LiveState) -> Directory:
    """The names of all rows."""
    names, naming = state.names, Directory()
    others = tuple(names.nodes), tuple(names.queues), tuple(names.domains)
    budgets = tuple(sorted(state.documents.names("disruption_budgets")))
    epoch = state.snapshot.epoch
    naming.take(Additions(epoch, NONE, 0, tuple(names.tasks), 0, tuple(names.podgroups), *others, budgets))
    return naming


def _acts(made: PlanCommitted) -> dict[str, object]:
    """What is carried out of a decision."""
    return made.model_dump(include={"evictions", "nominations", "bindings", "expires_at", "cost"}, mode="json")
