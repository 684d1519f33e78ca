"""``judge``: does a plan still hold against the newest state? By meaning, not by version.

Equality of revisions is only the fast path. A victim that is gone is dropped (its room is free anyway); victims that
are no longer needed are given back; a gang stays all or nothing.
"""

import numpy as np

from pipeline.attempt import Purpose
from pipeline.check import feasible, leftover, summed
from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING
from pipeline.plan import Plan
from pipeline.plugins.protocols import Preemptor, Situation
from pipeline.plugins.votes import Votes
from pipeline.policy import Policy
from pipeline.statement import Statement, statement
from pipeline.task_eviction import may_go, queue_takes
from pipeline.verdict import Accepted, Conflict, Stale, Verdict


def judge(plan: Plan, snapshot: Snapshot, policy: Policy, now: float) -> Verdict:
    """Judge a plan against ``snapshot``, which has all earlier decisions folded in.

    Returns
    -------
    ``Accepted`` with the statement to commit; ``Stale`` if the world moved on (plan again); ``Conflict`` if another
    decision holds what this one needs.
    """
    stale = _stale(plan, snapshot, policy, now)
    if stale is not None:
        return Stale(stale)
    made = plan.statement
    tasks = snapshot.tasks
    promised = made.nominated[made.nominated_node != NONE]
    if (tasks.nominated[promised] != NONE).any() and plan.assumes.revision != snapshot.revision:
        return Conflict("a task of the gang holds another nomination by now")
    alive = np.isin(tasks.status[made.evictions], (BOUND, RUNNING))
    same = tasks.incarnation[made.evictions] == plan.assumes.incarnation
    repaired = _with_victims(made, made.evictions[alive & same])
    if not feasible(snapshot, repaired):
        moved = (snapshot.nodes.revision[plan.assumes.nodes] != plan.assumes.node_revision).any()
        if moved:
            return Stale("a node changed and the gang no longer fits")
        return Conflict("the room was promised to another")
    if len(repaired.evictions):
        votes = Votes(Situation(snapshot, policy, now))
        unlawful = _unlawful(plan, repaired, votes)
        if unlawful is not None:
            return Stale(unlawful)
        repaired = _with_victims(repaired, _still_needed(plan, repaired, votes))
    return Accepted(repaired, len(made.evictions) - len(repaired.evictions))


def _stale(plan: Plan, snapshot: Snapshot, policy: Policy, now: float) -> str | None:
    """Why the plan cannot be judged at all any more, or None."""
    made, tasks = plan.statement, snapshot.tasks
    if plan.assumes.epoch != snapshot.epoch:
        return "rows were renumbered since"
    if plan.assumes.policy != policy.digest:
        return "the policy changed"
    if now > plan.expires_at:
        return "the plan expired"
    if made.preemptor != NONE and not snapshot.podgroups.alive[made.preemptor]:
        return "the preemptor is gone"
    waiting = np.concatenate([made.nominated, made.bound])
    if (tasks.status[waiting] != PENDING).any() or tasks.gated[waiting].any():
        return "a task of the gang does not wait any more"
    placed = np.concatenate([made.nominated_node[made.nominated_node >= 0], made.bound_node])
    if not snapshot.nodes.schedulable[placed].all():
        return "a node takes no tasks any more"
    return None


def _with_victims(made: Statement, victims: Rows) -> Statement:
    return statement(
        made.action,
        made.preemptor,
        evictions=victims,
        nominated=made.nominated,
        nominated_node=made.nominated_node,
        bound=made.bound,
        bound_node=made.bound_node,
    )


def _preemptor(plan: Plan, snapshot: Snapshot) -> Preemptor | None:
    """For whom the plan evicts, a gang group as a whole; None if for nobody."""
    made, purpose = plan.statement, plan.explanation.purpose
    if made.preemptor == NONE or purpose not in (Purpose.PREEMPT, Purpose.RECLAIM):
        return None
    placed = made.nominated[made.nominated_node != NONE]
    request = snapshot.shapes.request[snapshot.tasks.shape[placed]].sum(axis=0)
    others = np.unique(snapshot.tasks.podgroup[placed]).tolist()
    unit = (made.preemptor, *(podgroup for podgroup in others if podgroup != made.preemptor))
    return Preemptor(unit, request, Purpose(purpose))


def _unlawful(plan: Plan, made: Statement, votes: Votes) -> str | None:
    """Why the victims may not be taken as things stand, or None. Quotas span domains: they are asked again here."""
    preemptor = _preemptor(plan, votes.situation.snapshot)
    if preemptor is None:
        return None
    if not votes.situation.policy.is_gang_aware(made.action):
        if plan.assumes.revision == votes.situation.snapshot.revision:
            return None  # nothing changed, and victims counted in another order could fall to another quota
        if not may_go(votes, preemptor, made):
            return "a victim may not be evicted any more"
        return None if queue_takes(votes, preemptor, made.evictions) else "the queue may not take more"
    if not votes.candidates(preemptor)[made.evictions].all():
        return "a victim may not be evicted any more"
    if not votes.legal(preemptor, made.evictions):
        return "the victims are not lawful together any more"
    if preemptor.purpose is Purpose.RECLAIM and not votes.preemptive(preemptor):
        return "the queue may not take more"
    return None


def _still_needed(plan: Plan, made: Statement, votes: Votes) -> Rows:
    """The victims, less those podgroups whose return leaves every nomination feasible and lawful, largest first.

    Whole podgroups return or stay, so that no gang is left broken for nothing.
    """
    snapshot, preemptor = votes.situation.snapshot, _preemptor(plan, votes.situation.snapshot)

    def lawful(victims: Rows) -> bool:
        if preemptor is None:
            return True
        if votes.situation.policy.is_gang_aware(made.action):
            return votes.legal(preemptor, victims)
        return queue_takes(votes, preemptor, victims)

    owner = snapshot.tasks.podgroup[made.evictions]
    node = snapshot.tasks.node[made.evictions].astype(np.int64)
    groups, sizes = np.unique(owner, return_counts=True)
    touched, left = leftover(snapshot, made)
    kept = np.ones(len(owner), bool)
    for group in groups[np.lexsort((groups, -sizes))]:
        mine = owner == group
        held = summed(snapshot, touched, made.evictions[mine], node[mine])
        if ((held <= left) | (held == 0)).all() and lawful(made.evictions[kept & ~mine]):
            kept &= ~mine
            left = left - held
    return made.evictions[kept]
