"""Promises of podgroups of lower priority: a gang of higher priority may take their room; they are then served anew.

After "Preempt Action Support Topology", where a preemptor clears the nominations of lower priority on its node. Here
this holds for gangs: the promises of a gang group are withdrawn together, by the plan that needs their room, and only
where that saves running work.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Rows, distinct, is_among, mask_of
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, TERMINATING
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.attempt import Attempt
from pipeline.decision.decided import carried_out
from pipeline.decision.plan import NoPlan, Plan, assumptions, prices_in_one_unit, unproved
from pipeline.decision.price import Price
from pipeline.decision.statement import Statement, statement, taking_back, withdrawal
from pipeline.placement.promises import kept
from pipeline.placement.serving_order import in_serving_order
from pipeline.plugins.host import Host
from pipeline.policy import Purpose
from pipeline.records import replace

#: The search of a solver.
Searched: TypeAlias = Callable[[Attempt, Host], Plan | NoPlan]


def outranked_promises(attempt: Attempt, *, breaking: bool = False) -> Rows:
    """int64[K]: tasks of the same queue and strictly lower priority that are promised a node; none unless PREEMPT.

    Among them are victims that were to start again elsewhere, unless that keeps the rest of their podgroup whole or
    ``breaking`` is true (see ``or_breaking``).
    """
    snapshot, rows = attempt.snapshot, list(attempt.podgroups)
    if attempt.purpose is not Purpose.PREEMPT:
        return NO_ROWS
    tasks, groups = snapshot.tasks, snapshot.podgroups
    promised = np.flatnonzero(tasks.nominated != NONE)  # mostly few, whose status is asked then
    status = tasks.status[promised]
    promised = promised[(status == PENDING) | (status == TERMINATING)]
    owner = tasks.podgroup[promised]
    below = (groups.queue[owner] == groups.queue[rows[0]]) & (groups.priority[owner] < groups.priority[rows].min())
    promised = promised[below].astype(np.int64)
    moving = promised[tasks.status[promised] == TERMINATING]
    if len(moving) and not breaking:
        promised = promised[~is_among(tasks.podgroup[promised], _held_whole(snapshot, moving))]
    return np.asarray(promised, np.int64)


def _held_whole(snapshot: Snapshot, moving: Rows) -> Rows:
    """int64[K]: podgroups that run and have their minimum, and would not without the promises of ``moving``."""
    owner = distinct(snapshot.tasks.podgroup[moving]).astype(np.int64)
    after = WhatIf.of(snapshot).withdrawing(moving)
    return owner[[
        bool(snapshot.counts.running[row]) and has_minimum(snapshot, row) and not has_minimum(after, row)
        for row in owner.tolist()
    ]]  # fmt: skip


def unpromised(attempt: Attempt, rows: Rows) -> Attempt:
    """The attempt as if the tasks ``rows`` were promised nothing."""
    return replace(attempt, snapshot=carried_out(withdrawal(rows), attempt.snapshot, attempt.now))


def _without_promises(attempt: Attempt, host: Host, rows: Rows, searched: Searched) -> tuple[Attempt, Plan | NoPlan]:
    """The attempt as if the tasks ``rows`` were promised nothing, and what a search finds for that."""
    freed = unpromised(attempt, rows)
    return freed, searched(freed, made_anew(host, freed.snapshot))


def spares_work(taking: Price, leaving: Price) -> bool:
    """Whether less is taken from running work by taking promises than by leaving them; no matter where that is."""
    return replace(taking, tier=0, domain=NONE) < replace(leaving, tier=0, domain=NONE)


def withdrawing(attempt: Attempt, host: Host, freed: Attempt, plan: Plan, rows: Rows) -> Plan:
    """The plan, found on ``freed``, as a plan of the attempt: it withdraws the promises that cannot be kept beside it.

    Gang groups are looked at in the policy's order; each keeps all its promises or none. The plan has no lower bound,
    since that holds on ``freed``.
    """
    snapshot, tasks = carried_out(plan.statement, freed.snapshot, attempt.now), attempt.snapshot.tasks
    lost = []
    for gang_group in in_serving_order(host, mask_of(tasks.podgroup[rows], len(snapshot.podgroups))):
        mine = rows[is_among(tasks.podgroup[rows], gang_group)]
        node, card = tasks.promised(mine)
        if kept(made_anew(host, snapshot), mine, node, card).all():
            again = statement("kept", nominated=mine, nominated_node=node, nominated_card=card)
            snapshot = carried_out(again, snapshot, attempt.now)
        else:
            lost.append(mine)
    made = taking_back(plan.statement, np.concatenate(lost)) if lost else plan.statement
    return unproved(replace(plan, statement=made, assumes=assumptions(attempt, made)))


def or_withdrawing(attempt: Attempt, host: Host, found: Plan | NoPlan, searched: Searched) -> Plan | NoPlan:
    """What was found beside the promises of others, or a plan that withdraws some where that spares running work.

    There is no need to where the plan found evicts nothing. Promises that keep podgroups whole stay (`or_breaking`).

    Parameters
    ----------
    searched
        The search of the solver, on the attempt without these promises.
    """
    rows = outranked_promises(attempt)
    if len(rows) == 0 or (isinstance(found, Plan) and len(found.statement.evictions) == 0):
        return found
    freed, other = _without_promises(attempt, host, rows, searched)
    if isinstance(other, NoPlan):
        return unproved(found)
    if isinstance(found, Plan):
        leaving, taking = prices_in_one_unit([(attempt, found), (freed, other)], host)
        if not spares_work(taking, leaving):
            return unproved(found)
    return withdrawing(attempt, host, freed, other, rows)


def or_breaking(attempt: Attempt, host: Host, found: Plan | NoPlan, searched: Searched) -> Plan | NoPlan:
    """What was found; where that is no plan, one that takes promises which keep podgroups whole, if there is one.

    It evicts all that runs of such a podgroup, which goes as a whole, with the room it was to start on. A gang without
    another plan would take that room one cycle later from tasks that have just started.

    Parameters
    ----------
    searched
        The search of the solver, on the attempt without these promises.
    """
    if isinstance(found, Plan):
        return found
    rows = outranked_promises(attempt, breaking=True)
    if len(rows) == len(outranked_promises(attempt)):
        return found
    freed, other = _without_promises(attempt, host, rows, searched)
    if isinstance(other, NoPlan):
        return found
    plan = withdrawing(attempt, host, freed, other, rows)
    return found if _leaves_a_rest(attempt.snapshot, plan.statement) else plan


def _leaves_a_rest(snapshot: Snapshot, made: Statement) -> bool:
    """Whether something runs on of a podgroup that breaks since its tasks start nowhere again."""
    moving = made.withdrawn[snapshot.tasks.status[made.withdrawn] == TERMINATING]
    members, _ = snapshot.tasks_of_all(_held_whole(snapshot, moving))
    runs = members[(snapshot.tasks.node[members] != NONE) & (snapshot.tasks.status[members] != TERMINATING)]
    return not is_among(runs, made.evictions).all()


def made_anew(host: Host, snapshot: Snapshot) -> Host:
    """The policy's plugins made for another snapshot; ``Host.on`` carries over what they were made with."""
    return Host(replace(host.context, snapshot=snapshot))
