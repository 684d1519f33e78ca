"""The solver ``tasks``: one waiting task after the other, as in Volcano's task-centric preempt and reclaim."""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE
from pipeline.decision.attempt import Attempt
from pipeline.decision.law import TOO_FAST, whole_or_none
from pipeline.decision.plan import NoPlan, Plan, plan_of
from pipeline.decision.price import Price, lost_work, price_of
from pipeline.decision.statement import Statement
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import ExtensionPoint, Purpose
from pipeline.records import replace
from pipeline.solvers.tasks.candidates import candidates
from pipeline.solvers.tasks.rule import Rule
from pipeline.solvers.tasks.serve import lawful, serve

__all__ = ["lawful", "passes", "propose", "still_lawful", "victim_point", "whole_or_none"]


def passes(purpose: Purpose) -> tuple[bool, ...]:
    """Preempt has two: from other podgroups; then, for podgroups that still starve, from their own."""
    return (False, True) if purpose is Purpose.PREEMPT else (False,)


def victim_point(purpose: Purpose) -> ExtensionPoint:
    """Plugins are asked about single tasks, at separate points for preempt and reclaim."""
    return Rule(purpose, ()).point


def propose(attempt: Attempt, host: Host) -> Plan | NoPlan:
    """Room for the attempt's tasks, one by one; in preempt also from the podgroup's own if the attempt says so."""
    made, why = serve(host, attempt)
    return NoPlan(why) if made is None else plan_of(attempt, made, _price(attempt, host, made), why)


def _price(attempt: Attempt, host: Host, made: Statement) -> Price:
    snapshot, rank = attempt.snapshot, host.price_rank(attempt.purpose, attempt.podgroups[0])
    requested = snapshot.request_of(made.placed).sum(axis=0)
    domain = snapshot.topology.lowest_common(made.nominated_node[made.nominated_node != NONE])
    return price_of(snapshot, made.evictions, requested, lost_work(snapshot, attempt.now), rank, domain)


def still_lawful(host: Host, preemptor: Preemptor, made: Statement, unchanged: bool) -> str | None:
    """Why the victims may not be taken, or None.

    If nothing changed it is not asked: counted together and not task by task, victims could fail another quota.
    """
    if unchanged:
        return None
    if not host.keeps_pace(made.evictions, victim_point(made.purpose)):
        return TOO_FAST
    if not _may_go(host, preemptor, made):
        return "a victim may not be evicted any more"
    return None if lawful(host, preemptor, made.evictions) else "the queue may not take more"


def _may_go(host: Host, preemptor: Preemptor, made: Statement) -> bool:
    """Whether the victims of a statement may be taken now: each alone, and all counted together."""
    snapshot, placed = host.context.snapshot, made.placed
    tasks, free = snapshot.tasks, np.ones(len(snapshot.tasks), bool)
    alike = np.stack([tasks.shape, tasks.podgroup, tasks.priority, tasks.may_preempt], axis=1)[placed]
    rule, order = Rule(preemptor.purpose, preemptor.podgroups), NO_ROWS
    for first in np.unique(alike, axis=0, return_index=True)[1]:
        for within_podgroup in (False, True)[: 1 + (rule.purpose is Purpose.PREEMPT)]:
            rows = candidates(host, int(placed[first]), replace(rule, within_podgroup=within_podgroup), made.evictions)
            order = np.concatenate([order, rows[free[rows]]])
            free[rows] = False
    largest = snapshot.request_of(placed).max(axis=0)
    counted = host.task_victims(replace(preemptor, request=largest, task=int(placed[0])), order, rule.point)
    return len(order) == len(made.evictions) and bool(counted.all())
