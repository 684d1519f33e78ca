"""Job-level preemption: room for a whole job at once, in the domain where it does the least harm.

All members of a job are placed on one what-if, so each sees those before it. Only then victims are chosen; a victim
whose return would leave the job placed returns. No room is made for a job that a quota or its topology would exclude
anyway.
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, distinct, is_among
from pipeline.cluster.queue_tree import chain, in_common
from pipeline.cluster.resources import fits
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.rules.gang_groups import gang_group_of
from pipeline.cluster.rules.match_policy import to_make_room
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, TERMINATING
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import DomainTried, Reason, closest
from pipeline.decision.headroom import queues_take, queues_take_lasting
from pipeline.decision.plan import NoPlan, Plan, explained, making_room, plan_of
from pipeline.decision.price import Price, lost_work
from pipeline.decision.statement import Statement, taking_back
from pipeline.placement.domains import required_domains
from pipeline.placement.layout.other_ways import other_ways
from pipeline.placement.need import Need
from pipeline.placement.outranked import made_anew, or_breaking, outranked_promises, unpromised, withdrawing
from pipeline.placement.refusal import refusal_of
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.records import replace
from pipeline.solvers.gather.bounds import layers
from pipeline.solvers.gather.leaving.elsewhere import with_elsewhere
from pipeline.solvers.gather.leaving.out_of_order import differs_by_order
from pipeline.solvers.gather.leaving.search import GatherSearch, area_of
from pipeline.solvers.gather.multiples import steps_of
from pipeline.solvers.gather.needs import in_multiples
from pipeline.solvers.gather.offers import existing_of
from pipeline.solvers.gather.prospects import Prospect, hopeful, raised
from pipeline.solvers.gather.victims import ANY_PRIORITY, MadeRoom, cheapest_in, harm_of, may_gather


def propose(attempt: Attempt, host: Host) -> Plan | NoPlan:
    """The least harmful room for all members of the attempt's podgroups, or why there is none."""
    return or_breaking(attempt, host, _made_room(attempt, host), _made_room)


def _made_room(attempt: Attempt, host: Host) -> Plan | NoPlan:
    """The same beside the promises that may not be withdrawn by themselves.

    Layers are tried from the narrowest preferred one to the required one. In the first layer that can take the job, the
    domain that loses least is taken, and among equals the one with the fewest slots beyond the job. If none can, and a
    quota decided who may go, the layers are tried again with the quota counted off along other orders, unless queues
    may lose too little in any order, or candidates are so few that every set has been tried. If there is no room then
    either, other tasks may make up the minimum.
    """
    asked = to_make_room(attempt.snapshot, attempt.policy)
    need = in_multiples(host, asked, attempt.podgroups)
    found = _for_need(attempt, host, need)
    if isinstance(found, Plan) or steps_of(attempt.snapshot, attempt.podgroups, need.tasks) is not None:
        return found
    outer = required_domains(attempt.snapshot, attempt.podgroups)
    others = other_ways(host, asked, need, outer, lambda: _at_most(attempt, host, need))
    return next((one for other in others if isinstance(one := _for_need(attempt, host, other), Plan)), found)


def _at_most(attempt: Attempt, host: Host, need: Need) -> Longs:
    """int64[N, R]: the room if all candidates leave, and promises that may be withdrawn are."""
    outdone = outranked_promises(attempt)
    snapshot = unpromised(attempt, outdone).snapshot if len(outdone) else attempt.snapshot
    room = snapshot.room.future.copy()
    leaving = np.flatnonzero(_candidates(host, Preemptor(attempt.podgroups, need.total, attempt.purpose)))
    snapshot.add_requests(leaving, room, snapshot.tasks.node[leaving])
    return room


def _candidates(host: Host, preemptor: Preemptor) -> Bools:
    """bool[T]: tasks that may be victims, each looked at alone.

    In preempt a task whose own priority is not below the job's stays, whatever its podgroup's: Koordinator asks pods.
    """
    snapshot, may = host.context.snapshot, host.candidates(preemptor)
    if preemptor.purpose is not Purpose.PREEMPT:
        return may
    return np.asarray(may & (snapshot.tasks.priority < snapshot.podgroups.priority[list(preemptor.podgroups)].min()))


def _for_need(attempt: Attempt, host: Host, need: Need) -> Plan | NoPlan:
    """The least harmful room for one way to make up the minimum."""
    preemptor = Preemptor(attempt.podgroups, need.total, attempt.purpose)
    refused = _refusal(attempt, host, need, preemptor)
    if refused is not None:
        return NoPlan(explained(attempt, need.minimum, refused))
    outdone = outranked_promises(attempt)
    searches = [_search_of(attempt, host, need, preemptor)]
    if len(outdone):
        freed = unpromised(attempt, outdone)
        searches.append(_search_of(freed, made_anew(host, freed.snapshot), need, preemptor))
    if not searches[-1].allowed.any(axis=1).all():
        return NoPlan(explained(attempt, need.minimum, Reason.CONSTRAINTS))
    if not _may_free_quota(searches[-1]):
        return NoPlan(explained(attempt, need.minimum, Reason.UNPLACEABLE))
    best, tried = _first_of([_ignoring_quota(one) for one in searches], attempt)
    if tried and (searches[0].short > 0).any() and (best is None or not _within_quota(searches[0], best)):
        searches = [with_elsewhere(one) for one in searches]
        best, tried = _first_of(searches, attempt)
    for others in _otherwise(searches, tried) if best is None and tried else ():
        best, otherwise = _first_of(others, attempt)
        if best is not None:
            tried = otherwise
            break
    if best is not None:
        return _plan(attempt, host, need, best, outdone, tuple(tried))
    reason = closest((entry.reason for entry in tried), Reason.BOUND)
    return NoPlan(replace(explained(attempt, need.minimum, reason), tried=tuple(tried)))


def _may_free_quota(search: GatherSearch) -> bool:
    """Whether the candidates free the quota that the gang lacks if all of them leave, below any of its ancestors."""
    if (search.short <= 0).all():
        return True
    snapshot = search.snapshot
    common = in_common(snapshot.queues.parent, int(snapshot.podgroups.queue[search.need.podgroups[0]]))
    rows = np.flatnonzero(search.candidate)
    rows = rows[(common > 0)[snapshot.queue_of(rows)]]
    return bool((snapshot.request_of(rows).sum(axis=0) >= search.short).all())


def _otherwise(searches: Sequence[GatherSearch], tried: Sequence[DomainTried]) -> Iterator[Sequence[GatherSearch]]:
    """Other searches where none has been found: with quota freed anywhere below an ancestor, and in other orders.

    In other orders only where queues may lose enough in any of the domains that were ``tried``.
    """
    search = searches[-1]
    parent = search.snapshot.queues.parent
    line = chain(parent, int(search.snapshot.podgroups.queue[search.need.podgroups[0]]))
    wider = range(len(line) - 1, 0, -1) if (search.short > 0).any() else range(0)
    common = in_common(parent, line[0])
    ways = [searches, *([with_elsewhere(replace(one, frees=common >= many)) for one in searches] for many in wider)]
    yield from ways[1:]
    if any(search.may_be_lawful[one.domain] for one in tried) and differs_by_order(search):
        yield from ([replace(one, out_of_order=True) for one in way] for way in ways)


def _first_of(searches: Sequence[GatherSearch], attempt: Attempt) -> tuple[MadeRoom | None, list[DomainTried]]:
    """The cheapest room of the first layer that has any, and the outcome of each domain that was tried.

    Where there are two searches, the last is without the promises that may be withdrawn. If its room takes any of them,
    room beside them is taken instead that harms as little, if that layer has such.
    """
    limit = attempt.policy.max_domains
    tried: list[DomainTried] = []
    beside: list[DomainTried] = []
    for domains in layers(attempt.snapshot, attempt.podgroups):
        best = _best_of(searches[-1], domains, limit, tried)
        if best is not None and len(searches) > 1 and _takes_promises(searches, best):
            found = _best_of(searches[0], domains, limit, beside)
            if found is not None and harm_of(found.price) <= harm_of(best.price):
                return found, beside
        if best is not None:
            return best, tried
    return None, tried


def _ignoring_quota(search: GatherSearch) -> GatherSearch:
    """The search as if the gang lacked no quota: what it finds is the least harm, if that frees the quota as well.

    So nothing is passed over there that does not, for what costs more and does.
    """
    lacks = (search.short > 0).any()
    return replace(search, short=np.zeros_like(search.short), validates=False) if lacks else search


def _within_quota(search: GatherSearch, room: MadeRoom) -> bool:
    """Whether the victims free the quota that the gang lacks, and may all go together."""
    snapshot = search.snapshot
    freeing = room.victims[search.frees[snapshot.queue_of(room.victims)]]
    enough = (snapshot.request_of(freeing).sum(axis=0) >= search.short).all()
    return bool(enough) and search.host.validate_set(search.preemptor, room.victims)


def _takes_promises(searches: Sequence[GatherSearch], room: MadeRoom) -> bool:
    """Whether room may rest on what only the last of the searches has: quota, or promises on its nodes."""
    beside, without = searches[0].snapshot.tasks, searches[-1].snapshot.tasks
    taken = beside.nominated[beside.nominated != without.nominated]
    nodes = np.concatenate([room.placed.node, beside.node[room.victims]])
    return bool((searches[0].short > searches[-1].short).any() or is_among(nodes, taken).any())


def _refusal(attempt: Attempt, host: Host, need: Need, preemptor: Preemptor) -> Reason | None:
    """Why the job may not evict any task, or None: the preemption policy of any member counts for all."""
    snapshot, groups = attempt.snapshot, list(attempt.podgroups)
    members, _ = snapshot.tasks_of_all(np.array(groups))
    waiting = members[snapshot.tasks.status[members] == PENDING]
    may = snapshot.podgroups.may_preempt[groups].all() and snapshot.tasks.may_preempt[waiting].all()
    short = need.short > 0 or need.minimum == 0
    refused = refusal_of(attempt, host, short=short, never=not may, across_queues=True)
    rows = need.tasks[: need.minimum]
    elsewhere = rows[snapshot.queue_of(rows) != snapshot.podgroups.queue[groups[0]]]  # no victim makes room for those
    takes = queues_take_lasting(host, rows) and queues_take(host, elsewhere)
    if refused is None and not (takes and (attempt.purpose is not Purpose.RECLAIM or host.preemptive(preemptor))):
        return Reason.QUOTA
    return Reason.ENDING if refused is None and _still_ending(snapshot, waiting) else refused


def _still_ending(snapshot: Snapshot, waiting: Rows) -> bool:
    """Whether tasks of lower priority are still ending on a node that is promised to a member: then no more need to go.

    The wait ends: overdue victims count as running again (see `pipeline.actions.substitution`).
    """
    tasks, groups = snapshot.tasks, snapshot.podgroups
    nodes = tasks.nominated[waiting]
    ending = np.flatnonzero(tasks.status == TERMINATING)
    if len(ending) == 0 or (nodes == NONE).all():
        return False
    priority = np.full(len(snapshot.nodes), np.iinfo(np.int64).max, np.int64)
    np.minimum.at(priority, tasks.node[ending], groups.priority[tasks.podgroup[ending]])
    promised = waiting[nodes != NONE]
    return bool((priority[tasks.nominated[promised]] < groups.priority[tasks.podgroup[promised]]).any())


def _search_of(attempt: Attempt, host: Host, need: Need, preemptor: Preemptor) -> GatherSearch:
    snapshot = attempt.snapshot
    gang_group, queue = attempt.podgroups, int(snapshot.podgroups.queue[attempt.podgroups[0]])
    return GatherSearch(
        host=host,
        need=need,
        preemptor=preemptor,
        allowed=host.allowed(need.shapes),
        existing=existing_of(snapshot, gang_group, need.tasks[: need.minimum]),
        candidate=_candidates(host, preemptor),
        short=np.where(preemptor.request > 0, np.maximum(preemptor.request - host.headroom[queue], 0), 0),
        frees=np.arange(len(snapshot.queues)) == queue,
        steps=steps_of(snapshot, gang_group, need.tasks[: need.minimum]),
        lost=lost_work(snapshot, attempt.now),
        queue_rank=host.price_rank(attempt.purpose, gang_group[0]),
    )


def _best_of(search: GatherSearch, domains: Rows, limit: int, tried: list[DomainTried]) -> MadeRoom | None:
    """The cheapest room of the domains; notes the outcome of each.

    Those in which less important podgroups alone must leave come first, then the tightest. Where only priorities are
    compared before the rest, one in which more important ones must leave need not be searched any more.
    """
    best: MadeRoom | None = None
    waiting = hopeful(search, domains, limit)
    while waiting:
        prospect = heappop(waiting)
        domain, slots, found = prospect.domain, prospect.slots, _outcome(search, prospect, best)
        if isinstance(found, Prospect):
            heappush(waiting, found)
            continue
        if isinstance(found, Reason):
            tried.append(DomainTried(domain, found, reachable=slots))
            continue
        best = found if isinstance(found, MadeRoom) else best
        price = found.price if isinstance(found, MadeRoom) else found
        tried.append(DomainTried(domain, Reason.COSTLIER, price, reachable=slots))
    return best


def _outcome(search: GatherSearch, prospect: Prospect, best: MadeRoom | None) -> MadeRoom | Price | Reason | Prospect:
    """Room in a domain that is cheaper than the best, or a price that is not, or why there is neither.

    Where slots do not decide, it may turn out that more important podgroups must leave: then the domain waits for those
    in which they need not.
    """
    by_priority = search.queue_rank is None and (best is None or best.price.budgets_violated == 0)
    limit, harm = ANY_PRIORITY, None if best is None else harm_of(best.price)
    if best is not None and by_priority:
        limit = best.price.highest_priority
    if prospect.highest > limit:
        return Reason.COSTLIER
    if not prospect.may_be_lawful:
        return Reason.UNPLACEABLE
    area = area_of(search, prospect.domain)
    if by_priority and not may_gather(search, area, prospect.highest):
        return raised(search, prospect) or Reason.UNPLACEABLE
    found = cheapest_in(search, area, prospect.highest if by_priority else ANY_PRIORITY, harm)
    return Reason.UNPLACEABLE if found is None else found


def _plan(
    attempt: Attempt, host: Host, need: Need, best: MadeRoom, outdone: Rows, tried: tuple[DomainTried, ...]
) -> Plan:
    placed = best.placed.tasks, best.placed.node
    made = making_room(attempt, best.victims, *placed, host.cards_for(*placed, best.victims))
    given_up = _on_its_nodes(attempt.snapshot, outdone, made) if len(outdone) else outdone
    made = taking_back(made, given_up) if len(outdone) else made
    fates = (replace(one, reason=Reason.CHOSEN) if one.domain == best.price.domain else one for one in tried)
    why = replace(explained(attempt, need.minimum, Reason.CHOSEN, best.price.domain), tried=tuple(fates))
    plan, left = plan_of(attempt, made, best.price, why), outdone[~is_among(outdone, given_up)]
    within = fits(need.total, host.headroom[attempt.snapshot.podgroups.queue[attempt.podgroups[0]]])
    if len(left) == 0 or (within and not concerns(attempt.snapshot, best.placed.tasks)):
        return plan
    # They may hold the quota, or repel the job from other nodes.
    return withdrawing(attempt, host, unpromised(attempt, outdone), plan, left)


def _on_its_nodes(snapshot: Snapshot, outdone: Rows, made: Statement) -> Rows:
    """Promises of podgroups of lower priority on nodes of the plan, and of all podgroups that start with them."""
    tasks = snapshot.tasks
    nodes = np.concatenate([made.nominated_node, tasks.node[made.evictions]])
    losers = distinct(tasks.podgroup[outdone[is_among(tasks.nominated[outdone], nodes)]])
    members = {podgroup for loser in losers.tolist() for podgroup in gang_group_of(snapshot, loser)}
    return outdone[is_among(tasks.podgroup[outdone], sorted(members))]
