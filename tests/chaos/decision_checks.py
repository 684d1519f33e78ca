"""What must hold of one decision on the state on which it was judged, asked task by task and by no kernel of the core.

The numbers are those of the design's invariants: 6, 7 and 8, and 2 and 19 of the cycle that made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.minima_met import breaks_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import TERMINATING
from pipeline.decision.law import UPKEEP
from pipeline.decision.statement import Statement
from pipeline.placement.feasibility import against_anti_affinity
from pipeline.placement.filters import well_placed
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import Policy, Purpose
from pipeline.solvers.registry import solver_of
from tests.support.deciding import members, place, request, runs, shortchanged, unit_of


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision: its statement, and the state on which it was judged, with all earlier decisions folded in."""

    plan: str
    made: Statement
    before: Snapshot
    now: float


def objections(one: Decided, policy: Policy) -> Iterator[str]:
    """One sentence for each rule that a decision breaks."""
    if not len(one.made.evictions):
        return
    for number, found in ((6, _order(one, policy)), (7, _protected(one)), (8, _needless(one, policy))):
        yield from (f"({number}) plan {one.plan}: {sentence}" for sentence in found)


# -- 6: who may take from whom -----------------------------------------------------------------------------------------


def _order(one: Decided, policy: Policy) -> Iterator[str]:
    """Preempt takes strictly lower priority of its own queue; reclaim leaves every other queue what it deserves."""
    before, made = one.before, one.made
    if made.preemptor == NONE:
        return
    groups, mine = before.podgroups, before.podgroups.queue[made.preemptor]
    lowest = min(groups.priority[podgroup] for podgroup in unit_of(before, made.preemptor))
    for podgroup in sorted({int(before.tasks.podgroup[row]) for row in made.evictions.tolist()}):
        same = groups.queue[podgroup] == mine
        if made.purpose is Purpose.PREEMPT and not (same and groups.priority[podgroup] < lowest):
            yield f"podgroup {podgroup} of priority {groups.priority[podgroup]} goes for one of {lowest}"
        if made.purpose is Purpose.RECLAIM and (same or not before.queues.reclaimable[groups.queue[podgroup]]):
            yield f"reclaims from queue {groups.queue[podgroup]} for queue {mine}"
    if made.purpose is Purpose.RECLAIM and any(one.name == "capacity" for one in policy.plugins):
        yield from shortchanged(before, made)


# -- 7: what is protected ----------------------------------------------------------------------------------------------


def _protected(one: Decided) -> Iterator[str]:
    """Non-preemptible and critical tasks, gangs that may not preempt, budgets and minimum runtimes."""
    before, made = one.before, one.made
    tasks, groups = before.tasks, before.podgroups
    for row in made.evictions.tolist():
        allowed = made.purpose is Purpose.CLEAR or (tasks.preemptible[row] and groups.preemptible[tasks.podgroup[row]])
        if not allowed or tasks.critical[row]:
            yield f"task {row} is protected"
        if not runs(before, row):
            yield f"task {row} has status {tasks.status[row]} and goes"
    if made.preemptor != NONE and not groups.may_preempt[unit_of(before, made.preemptor)].all():
        yield f"podgroup {made.preemptor} may not preempt"
    if made.purpose not in UPKEEP:
        yield from _budgets(before, made)
        yield from _young(one)


def _budgets(before: Snapshot, made: Statement) -> Iterator[str]:
    tasks = before.tasks
    for budget, allowed in enumerate(before.budgets.allowed.tolist()):
        covers, namespace = before.budgets.covers[budget], before.budgets.namespace[budget]
        covered = [
            row
            for row in {*made.evictions.tolist(), *np.flatnonzero(tasks.status == TERMINATING).tolist()}
            if before.podgroups.namespace[tasks.podgroup[row]] == namespace and covers[tasks.label_set[row]]
        ]
        goes = [row for row in covered if row in made.evictions]
        if goes and len(covered) > allowed:
            yield f"budget {budget} allows {allowed}, and {len(covered)} of its tasks end"


def _young(one: Decided) -> Iterator[str]:
    """A podgroup that was whole for less than its queue's minimum runtime keeps its minimum."""
    before, made = one.before, one.made
    queues, groups = before.queues, before.podgroups
    granted = queues.preempt_min_runtime_s if made.purpose is Purpose.PREEMPT else queues.reclaim_min_runtime_s
    for podgroup in sorted({int(before.tasks.podgroup[row]) for row in made.evictions.tolist()}):
        at = int(groups.queue[podgroup])
        while np.isnan(granted[at]) and queues.parent[at] != NONE:
            at = int(queues.parent[at])
        ran = one.now - groups.started[podgroup]
        stays = [row for row in members(before, podgroup) if runs(before, row) and row not in made.evictions]
        if ran < granted[at] and len(stays) < groups.min_available[podgroup]:
            yield f"podgroup {podgroup} ran for {ran:.1f} s of {granted[at]:.1f} s, and loses its minimum"


# -- 8: nothing goes for nothing ---------------------------------------------------------------------------------------


def _needless(one: Decided, policy: Policy) -> Iterator[str]:
    """A podgroup's victims together, or one task of surplus, that could stay with all else as it is."""
    made, before = one.made, one.before
    if made.purpose in UPKEEP:
        return
    host, victims = Host(Context(before, policy, one.now)), made.evictions
    owner = before.tasks.podgroup[victims]
    breaks = {int(group) for group in np.unique(owner) if breaks_without(before, np.array([group]), victims)[0]}
    units = [victims[owner == group] for group in np.unique(owner)]
    units += [np.array([row]) for row, group in zip(victims, owner, strict=True) if int(group) not in breaks]
    for unit in units:
        rest = np.setdiff1d(victims, unit)
        if not _overfull(before, made, rest) and _lawful(host, made, rest):
            yield f"tasks {unit.tolist()} go, and everything would fit and be lawful without that"


def _overfull(before: Snapshot, made: Statement, victims: np.ndarray) -> bool:
    """Whether a node that the statement fills would hold more than it has, if only ``victims`` went."""
    tasks, gone = before.tasks, set(victims.tolist())
    moves = dict(zip(made.nominated.tolist(), made.nominated_node.tolist(), strict=True))
    comes = moves | dict(zip(made.bound.tolist(), made.bound_node.tolist(), strict=True))
    for node in sorted({at for at in comes.values() if at != NONE}):
        held = np.zeros(len(before.vocabulary.resources), np.int64)
        asked = np.zeros(len(held), bool)
        for row in range(len(tasks)):
            here = comes.get(row, place(before, row)) if row not in gone or row in comes else NONE
            if row in comes and runs(before, row) and row not in gone:
                here = place(before, row)  # a victim that may stay does not move
            if here == node:
                held += request(before, row)
                asked |= (request(before, row) > 0) & (row in comes)
        if ((held > before.nodes.allocatable[node]) & asked).any():
            return True
    return False


def _lawful(host: Host, made: Statement, victims: np.ndarray) -> bool:
    """Whether the rest may go without the others, as the solver of the action has it."""
    snapshot, policy = host.context.snapshot, host.context.policy
    rest = made.evicting_only(victims)
    if against_anti_affinity(snapshot, rest, victims) or not well_placed(host, rest):
        return False
    asked = snapshot.shapes.request[snapshot.tasks.shape[made.placed]].sum(axis=0)
    others = np.unique(snapshot.tasks.podgroup[made.placed]).tolist()
    unit = (made.preemptor, *(podgroup for podgroup in others if podgroup != made.preemptor))
    return bool(solver_of(policy, made.action).lawful(host, Preemptor(unit, asked, made.purpose), victims))
