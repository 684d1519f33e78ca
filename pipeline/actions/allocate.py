"""Allocate: place what fits without evictions; tasks that were promised room come first."""

import numpy as np

from pipeline.actions.enqueue import admit
from pipeline.actions.holding_back import certain
from pipeline.actions.progress import Progress, StateSoFar
from pipeline.actions.redeem import redeem
from pipeline.cluster.arrays import Bools, mask_of
from pipeline.cluster.rules.gang_groups import GangGroup, gang_group_of, waiting_for_all
from pipeline.cluster.tables import PHASE_PENDING
from pipeline.decision.claim import claimed_nodes
from pipeline.placement.kinds import PodgroupKind, podgroup_kind
from pipeline.placement.serving_order import in_serving_order, queue_depth, within_depth
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Follows
from pipeline.records import replace
from pipeline.solvers.registry import placer_of

#: At most this many turns for all tasks that wait.
_TURNS = 64


def allocate(progress: Progress) -> Progress:
    """Redeem nominations whose room is there by now, then place waiting podgroups in order.

    Claimed domains are open to their owners alone, which are placed before all others. Where no action admits
    podgroups, all of them are admitted here.
    """
    if "enqueue" not in progress.policy.actions:
        groups = progress.snapshot.podgroups
        progress = admit(progress, np.flatnonzero((groups.phase == PHASE_PENDING) & groups.alive), "allocate")
    if progress.late is not None:
        return _placed(progress)
    progress = redeem(progress)
    done = _placed(progress)
    return replace(done, redeemed=certain(done, progress.starting))


def _placed(progress: Progress) -> Progress:
    """Place waiting podgroups, the owners of claimed domains first."""
    claims = progress.setup.closed.claims
    if not claims:
        return _in_turns(progress)
    for claim in claims:
        host, gang_group = progress.host, gang_group_of(progress.snapshot, claim.podgroup)
        queue = progress.snapshot.podgroups.queue[claim.podgroup]
        turn = progress.turns[list(gang_group)].all()
        if turn and host.valid[list(gang_group)].all() and not host.overused[queue]:
            made = placer_of(progress.policy)(host, gang_group, "allocate")
            progress = progress.decided(made) if made is not None else progress
    nodes = progress.snapshot.nodes
    closed = progress.snapshot.closing(claimed_nodes(progress.snapshot, claims))
    done = _in_turns(replace(progress, state=StateSoFar(closed), origin=None))
    return replace(done, state=StateSoFar(replace(done.snapshot, nodes=nodes)), origin=None)


def _in_turns(progress: Progress) -> Progress:
    """Place waiting podgroups in order.

    The order is asked for anew after every placement: a queue that got something moves back, and so does a podgroup
    that has its minimum, if the policy says so. Tasks beyond the minimum are placed one at a time where others would be
    served first by then. What finds no room is not tried again, nor are others of its kind: room only gets less.
    """
    place, left = placer_of(progress.policy), _with_a_turn(progress)
    host, going = progress.host, True
    # One task, as upstream does; where very many tasks wait, one task hardly changes a share.
    portion = max(1, int(progress.snapshot.counts.pending.sum()) // _TURNS)
    without_room = set[PodgroupKind]()
    while going:
        snapshot, going = progress.snapshot, False
        left = left & host.valid & (snapshot.counts.pending > 0) & ~host.overused[snapshot.podgroups.queue]
        waiting = left.copy()
        several = np.count_nonzero(waiting) > 1  # else there is none of its kind
        for gang_group in in_serving_order(host, waiting):
            kind = podgroup_kind(snapshot, gang_group) if several else None
            if kind in without_room:
                left[waiting_for_all(snapshot, gang_group)] = False
                continue
            made = place(host, gang_group, "allocate", surplus_limit=_surplus_limit(host, gang_group, waiting, portion))
            if made is not None:
                progress, going = progress.decided(made), True
                host = progress.host
                break
            left[waiting_for_all(snapshot, gang_group)] = False
            if kind is not None:
                without_room.add(kind)
    return progress


def _with_a_turn(progress: Progress) -> Bools:
    """bool[G]: podgroups that have a turn; of those that wait the first of each queue, if the policy limits them."""
    left, depth, host = progress.turns, queue_depth(progress.policy, "allocate"), progress.host
    if depth == 0:
        return left
    ranked = list(in_serving_order(host, left & host.valid & (progress.snapshot.counts.pending > 0)))
    first = within_depth(host, ranked, depth)
    return mask_of([row for gang_group in first for row in gang_group], len(left))


def _surplus_limit(host: Host, gang_group: GangGroup, waiting: Bools, portion: int) -> int | None:
    """How many tasks beyond its minimum a gang group gets before the order is asked for again; None: all."""
    queue, mine, others = host.context.snapshot.podgroups.queue, list(gang_group), waiting.copy()
    others[mine] = False
    if not others.any():
        return None
    same = queue[others] == queue[gang_group[0]]
    within = host.job_order_follows(Follows.SHARE) or host.job_order_follows(Follows.SURPLUS)
    by_share = (same.any() and within) or (not same.all() and host.queue_order_follows(Follows.SHARE))
    by_readiness = bool(same.any()) and host.job_order_follows(Follows.READINESS)
    if host.ready[mine].all():
        return portion if by_share else None
    # A promise counts like a start, unless others of the queue wait that the policy puts before all that is ready.
    promised = host.pipelined[mine].all() and not (by_readiness and (~host.pipelined[others][same]).any())
    if promised:
        return portion if by_share else None
    return 0 if by_share or by_readiness else None
