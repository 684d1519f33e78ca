"""``judge``: does a plan still hold against the newest state? By meaning, not by version.

Equality of revisions is only the fast path. A victim that is gone is dropped (its room is free anyway); victims that
are no longer needed are reprieved; a gang stays all or nothing.
"""

from collections.abc import Callable

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Rows, distinct, is_among
from pipeline.cluster.orders import unique_counts
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, TERMINATING
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.decided import carried_out, what_if_of
from pipeline.decision.headroom import queues_take, takes_after
from pipeline.decision.law import UPKEEP, why_unlawful
from pipeline.decision.plan import Plan
from pipeline.decision.statement import Statement, withdrawal
from pipeline.decision.verdict import Accepted, Conflict, Stale, Verdict
from pipeline.placement.feasibility import Leftover, against_anti_affinity, asked, feasibly_left
from pipeline.placement.filters import well_placed
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import Policy, Purpose
from pipeline.records import replace
from pipeline.solvers.registry import solver_of


def judge(plan: Plan, snapshot: Snapshot, policy: Policy, now: float) -> Verdict:
    """Judge a plan against ``snapshot``, which has all earlier decisions folded in.

    Returns
    -------
    ``Accepted`` with the statement to commit; ``Stale`` if the state has changed (plan again); ``Conflict`` if another
    decision holds what this plan needs.
    """
    stale = _stale(plan, snapshot, policy, now)
    if stale is not None:
        return Stale(stale)
    made = plan.statement
    tasks = snapshot.tasks
    by_now = tasks.nominated[made.nominated]
    other = made.nominated[(by_now != NONE) & (by_now != plan.assumes.promised)]
    if len(other) and is_among(other, made.placed).any():
        return Conflict("a task of the gang holds another nomination by now")
    alive = tasks.runs(made.evictions)
    same = tasks.incarnation[made.evictions] == plan.assumes.incarnation
    repaired = made.evicting_only(made.evictions[alive & same])
    if repaired.empty:
        return Stale("nothing is left to do")
    left = feasibly_left(snapshot, repaired)
    if left is None:
        return _without_room(plan, snapshot, made.evictions[alive & ~same])
    host = Host(Context(snapshot, policy, now))
    if not well_placed(host, repaired):
        return Stale("a task may not be where it was placed any more")
    if host.binding and not _starts(repaired, host.to_start):
        return Stale("the gang would not have its minimum any more")
    host = _without_withdrawn(host, repaired)
    unlawful = _unlawful(plan, repaired, host) if len(repaired.evictions) else _unpaid(repaired, host)
    if unlawful is not None:
        return Stale(unlawful)
    broken = _broken_by_withdrawal(repaired, snapshot, host)
    repaired = repaired.evicting_only(_still_needed(repaired, left, host, broken))
    return Accepted(repaired, len(made.evictions) - len(repaired.evictions))


def _stale(plan: Plan, snapshot: Snapshot, policy: Policy, now: float) -> str | None:
    """Why the plan cannot hold any more whatever the room, or None."""
    made, tasks = plan.statement, snapshot.tasks
    if plan.assumes.epoch != snapshot.epoch:
        return "rows were renumbered since"
    if plan.assumes.policy != policy.digest:
        return "the policy changed"
    if now > plan.expires_at:
        return "the plan expired"
    if made.preemptor != NONE and not snapshot.podgroups.alive[made.preemptor]:
        return "the preemptor is gone"
    ending = (tasks.status[made.nominated] == TERMINATING) & (made.nominated_node == NONE)  # a move is withdrawn
    waiting = np.concatenate([made.nominated[~is_among(made.nominated, made.evictions) & ~ending], made.bound])
    if (tasks.status[waiting] != PENDING).any() or tasks.gated[waiting].any():
        return "a task of the gang does not wait any more"
    if not snapshot.nodes.schedulable[made.places[1]].all():
        return "a node takes no tasks any more"
    return None


def _without_room(plan: Plan, snapshot: Snapshot, restarted: Rows) -> Stale | Conflict:
    """Why the placed tasks do not fit; ``restarted`` int64[V] are the victims that run in another incarnation."""
    nodes = plan.assumes.nodes
    if (snapshot.nodes.revision[nodes] != plan.assumes.node_revision).any():
        return Stale("a node changed and the gang no longer fits")
    if is_among(snapshot.tasks.node[restarted], nodes).any():
        return Stale("a victim started over and the gang no longer fits")
    return Conflict("the room was promised to another")


def _starts(made: Statement, snapshot: Snapshot) -> bool:
    """Whether every podgroup for which tasks are placed then has its minimum."""
    placed = np.concatenate([made.placed, made.bound])
    if made.preemptor == NONE or len(placed) == 0:
        return True
    after = what_if_of(made, snapshot)
    return all(has_minimum(after, group) for group in distinct(snapshot.tasks.podgroup[placed]).tolist())


def _without_withdrawn(host: Host, made: Statement) -> Host:
    """The plugins as if nothing were promised to the tasks whose promises the statement withdraws."""
    snapshot = host.context.snapshot
    if len(made.withdrawn) == 0:
        return host
    without = carried_out(withdrawal(made.withdrawn), snapshot, host.context.now).at_revision(snapshot.revision)
    return Host(replace(host.context, snapshot=without))


def _broken_by_withdrawal(made: Statement, snapshot: Snapshot, without: Host) -> Rows:
    """int64[G]: podgroups that lose their minimum with the promises that the statement withdraws.

    ``without``: the plugins as if those were not there.
    """
    losing, after = distinct(snapshot.tasks.podgroup[made.withdrawn]).tolist(), without.context.snapshot
    return np.array([one for one in losing if has_minimum(snapshot, one) and not has_minimum(after, one)], np.int64)


def _preemptor(made: Statement, snapshot: Snapshot) -> Preemptor:
    """The preemptor for which the statement evicts; a gang group as a whole."""
    request = snapshot.request_of(made.placed).sum(axis=0)
    others = distinct(snapshot.tasks.podgroup[made.placed]).tolist()
    unit = (made.preemptor, *(podgroup for podgroup in others if podgroup != made.preemptor))
    return Preemptor(unit, request, made.purpose)


def _unlawful(plan: Plan, made: Statement, host: Host) -> str | None:
    """Why the victims may not be taken now, or None. Quotas span domains, so they are asked again here."""
    snapshot, policy = host.context.snapshot, host.context.policy
    if made.purpose in UPKEEP:
        return why_unlawful(host, made)
    if made.purpose is Purpose.ALLOCATE or made.preemptor == NONE:
        return "no task may be evicted for it"
    unchanged = plan.assumes.revision == snapshot.revision
    return solver_of(policy, made.action).still_lawful(host, _preemptor(made, snapshot), made, unchanged)


def _unpaid(made: Statement, host: Host) -> str | None:
    """Why a statement without victims may not place its tasks, or None: quotas, asked without its promises."""
    snapshot = host.context.snapshot
    tasks = snapshot.tasks
    somewhere = made.nominated_node != NONE
    rows = np.concatenate([made.nominated[somewhere], made.bound])
    promised = np.concatenate([made.nominated, made.bound])
    promised = promised[tasks.nominated[promised] != NONE]
    if len(promised) == 0:
        return None if queues_take(host, rows) else "the queue may not take more"
    if queues_take(host.on(WhatIf.of(snapshot).withdrawing(promised)), rows):
        return None
    if np.array_equal(tasks.nominated[made.bound], made.bound_node) and len(made.nominated) == 0:
        # It is redeemed, in the policy's order: other promises are asked again after it.
        promised = np.flatnonzero(tasks.waits(slice(None), promised=True))
    # What one queue is promised may be a part of another's share: only a snapshot without it has the shares anew.
    without = carried_out(withdrawal(promised), snapshot, host.context.now)
    return None if queues_take(host.on(without), rows) else "the queue may not take more"


def _still_needed(made: Statement, left: Leftover, host: Host, broken: Rows) -> Rows:
    """The victims, less those whose return leaves every nomination feasible and lawful.

    Podgroups return whole, the largest first; then single tasks that were surplus or would move, since those break no
    gang. No gang is left broken for nothing: of ``broken`` (int64[G]) no task returns. What a solver takes only whole
    stays or goes whole, so a plan keeps its victims on the state that it was made on: what its cycle planned after it
    counts on their room.
    """
    if made.purpose in UPKEEP or len(made.evictions) == 0:
        return made.evictions
    snapshot, solver = host.context.snapshot, solver_of(host.context.policy, made.action)
    preemptor = _preemptor(made, snapshot)
    owner = snapshot.tasks.podgroup[made.evictions]
    groups, sizes = unique_counts(owner)

    def lawful(victims: Rows) -> bool:
        return solver.lawful(host, preemptor, victims) and takes_after(host, preemptor, made, victims)

    kept = _Kept(host, made, left, lawful)
    order = np.lexsort((groups, -sizes))
    for group in groups[order][~is_among(groups[order], broken)]:
        kept.reprieve(owner == group)
    singles = kept.fitting()
    if singles.any():
        moves, losing = is_among(made.evictions, made.moved), distinct(owner[singles]).astype(np.int64)
        together = losing[solver.whole_or_none(snapshot, losing, made.evictions[~moves])]
        spare = (moves | ~is_among(owner, together)) & ~is_among(owner, broken)
        for at in np.flatnonzero(singles & spare).tolist():
            kept.reprieve(np.arange(len(owner)) == at)
    return made.evictions[kept.mask]


class _Kept:
    """Victims that are still needed as far as is known (``mask`` bool[V])."""

    def __init__(self, host: Host, made: Statement, left: Leftover, lawful: Callable[[Rows], bool]) -> None:
        self._host, self._made, self._victims, self._lawful = host, made, made.evictions, lawful
        self._snapshot = snapshot = host.context.snapshot
        card = snapshot.tasks.card[made.evictions]
        self._touched, self._left = left.node, left.room
        self._asks, self._at = asked(snapshot, self._victims, card), self._places(snapshot.tasks.node[made.evictions])
        to, on = np.full((2, len(self._victims)), NONE, np.int64)  # the new nodes and cards of victims that move
        moves = is_among(made.nominated, made.evictions)
        at = np.searchsorted(self._victims, made.nominated[moves])
        to[at], on[at] = made.nominated_node[moves], made.nominated_card[moves]
        self._moves, self._to, self._asks_there = to != NONE, self._places(to), asked(snapshot, self._victims, on)
        self.mask = np.ones(len(self._victims), bool)

    def _places(self, nodes: Rows | Ids) -> Rows:
        """int64[V]: the position of each node among the touched ones; their number for others."""
        return np.where(is_among(nodes, self._touched), np.searchsorted(self._touched, nodes), len(self._touched))

    def reprieve(self, some: Bools) -> None:
        """Reprieve ``some`` (bool[V]) if every promised task still has its room, and the other victims may still go."""
        held = np.zeros((len(self._touched) + 1, self._left.shape[1]), np.int64)  # the last row: on other nodes
        np.add.at(held, self._at[some], self._asks[some])
        if (some & self._moves).any():
            np.subtract.at(held, self._to[some], self._asks_there[some])
        held = held[:-1]
        if ((held <= self._left) | (held <= 0)).all() and self._stays(some):
            self.mask &= ~some
            self._left = self._left - held

    def _stays(self, some: Bools) -> bool:
        """Whether some victims may stay beside the placed tasks, and the others may go."""
        rest = self._victims[self.mask & ~some]
        made = self._made.evicting_only(rest)
        if against_anti_affinity(self._snapshot, made, rest):
            return False
        torn = bool((some & self._moves).any()) and not well_placed(self._host, made)
        return not torn and self._lawful(rest)

    def fitting(self) -> Bools:
        """bool[V]: victims that fit what is left on their nodes, each alone."""
        fits = np.ones(len(self._victims), bool)
        here = np.flatnonzero(self._at < len(self._touched))
        asks = self._asks[here]
        fits[here] = ((asks <= self._left[self._at[here]]) | (asks == 0)).all(axis=1)
        return self.mask & fits
