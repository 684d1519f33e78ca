"""Placing a podgroup without evictions: the best domain by score, part by part, all or nothing.

Tasks are tried one after the other on the node that scores best, as Volcano's allocate does; a task that finds no node
does not stop the others, since a podgroup may reach its minimum with those. A subgroup that misses its own minimum is
not placed at all.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Rows, is_among
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.resources import fits
from pipeline.cluster.rules.match_policy import keep_up, start_after
from pipeline.cluster.rules.minimum import leaves_with, starts_with
from pipeline.cluster.rules.reaching import Growing
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT
from pipeline.decision.statement import Statement, statement
from pipeline.placement.compositions import compositions
from pipeline.placement.domains import domains_of
from pipeline.placement.layout.by_score.packed_minimum import order_matters, packed_minimum
from pipeline.placement.layout.by_score.part_placer import PartPlacer
from pipeline.placement.layout.by_score.scored import Laid, ScoredPlacement
from pipeline.placement.layout.parts import least_of_parts
from pipeline.placement.layout.regions_of_parts import AskedOfRegions, asked_of_regions
from pipeline.placement.need import Need, need_of, without_shapes
from pipeline.plugins.host import Host
from pipeline.policy import Purpose
from pipeline.records import replace

#: Where room is short, the surplus of a podgroup with subgroups takes about this many turns.
_TURNS = 64


@dataclass(frozen=True)
class _Layout:
    """One way to place a gang group: where its tasks went, and how good the domains, and then the nodes, are."""

    laid: Laid
    scores: tuple[float, float]


def allocate_by_score(
    host: Host, podgroups: tuple[int, ...], action: str, *, surplus_limit: int | None = None
) -> Statement | None:
    """Place the waiting tasks of podgroups that start together.

    Domains are tried tier by tier, narrowest first; within a tier the best-scored one is taken, by scores of domains
    where a plugin gives any, then by those of nodes. Room that is promised
    to other tasks is not free; room that is coming free may be promised.

    Parameters
    ----------
    surplus_limit
        At most this many tasks beyond the minimum, so that other podgroups get room too; None: all that fit. A subgroup
        that becomes whole is not cut.

    Returns
    -------
    A statement that binds what can start now and nominates the rest, or None if the minimum is out of reach. Binding
    starts only when everything that the minimum needs is there now; until then all of it is promised.
    """
    snapshot = host.to_start
    need = need_of(snapshot, podgroups, surplus=host.context.policy.surplus)
    if "backfill" in host.context.policy.actions:
        best_effort = need.shape[snapshot.tasks.best_effort[need.tasks]]  # those are backfilled
        need = without_shapes(snapshot, need, need.shapes[best_effort]) if len(best_effort) else need
    if len(need.tasks) == 0:
        return None
    # Without subgroups the first way is enough: where tasks find no node, others reach the minimum.
    choices = compositions(snapshot, need) if len(need.parts) > len(podgroups) else iter((need,))
    made = next((made for one in choices if (made := _placed(host, one, action, surplus_limit)) is not None), None)
    return _packed(host, need, action) if made is None and host.context.policy.packs_minimum else made


def _packed(host: Host, need: Need, action: str) -> Statement | None:
    """Place a minimum that is placed by score in no domain."""
    snapshot, podgroups = host.to_start, need.podgroups
    fewest = _fewest(snapshot, podgroups)
    if not host.binding or not _in_reach(host, need, fewest) or not order_matters(snapshot, need):
        return None
    found = packed_minimum(host, need, _tiers(host, podgroups), fewest)
    if found is None:
        return None
    way, placement = found
    return _commit(host, podgroups, way, placement.laid(), action)


def _placed(host: Host, need: Need, action: str, surplus_limit: int | None) -> Statement | None:
    """Place one way to make up the minimum, and then the surplus."""
    snapshot, podgroups = host.to_start, need.podgroups
    least = _fewest(snapshot, podgroups) if host.binding else 0
    if not _in_reach(host, need, max(least, 1)):
        return None
    order = np.lexsort((host.task_ranks(need.tasks), ~_for_roles(snapshot, need)))
    tightest = _tightest(host, podgroups)
    placement, tops = ScoredPlacement(host, need.tasks), [part for part in need.parts if part.parent == NONE]
    asked = _asked_at_least(snapshot, need) if host.binding and len(tops) == 1 else None
    thrifty = surplus_limit is not None or len(tops) > 1
    placer = PartPlacer(snapshot, placement, need, order, host.binding, thrifty, tightest=tightest, asked=asked)
    for tier in _tiers(host, podgroups):
        # Each kind is counted alone: a domain that has too few slots even so is not tried.
        slots = placement.most(snapshot.topology.start[tier], snapshot.topology.stop[tier])
        best = _best(placer, np.array(tier)[slots >= least], surplus_limit)
        if best is not None:
            return _commit(host, podgroups, need, best.laid, action)
    return None


def _fewest(snapshot: Snapshot, podgroups: tuple[int, ...]) -> int:
    """How many tasks must be placed at least; roles and subgroups may need more."""
    counts, rows = snapshot.counts, list(podgroups)
    have = counts.ready[rows] + counts.waiting[rows] + counts.pending_best_effort[rows]
    return int(np.maximum(snapshot.podgroups.min_available[rows] - have, 0).sum())


def _in_reach(host: Host, need: Need, least: int) -> bool:
    """Whether all nodes together, and the queue, have what the ``least`` smallest tasks ask for.

    Mostly that settles a full fleet.
    """
    snapshot, asked = host.to_start, need.request[need.shape]
    if len(need.request) > 1:
        asked = np.sort(asked, axis=0)
    wanted, queue = asked[:least].sum(axis=0), snapshot.podgroups.queue[list(need.podgroups)]
    if (wanted > snapshot.room.free).any():
        return False
    return bool((queue != queue[0]).any()) or bool(fits(wanted, host.headroom[queue[0]]))


def _tightest(host: Host, podgroups: tuple[int, ...]) -> bool:
    """Whether the tightest domain is sought; see ``Policy.tightest_domain_first``."""
    return host.context.policy.tightest_domain_first and len(podgroups) == 1


def _tiers(host: Host, podgroups: tuple[int, ...]) -> list[list[int]]:
    """The domains that are tried, by tier."""
    domains = domains_of(host, podgroups, Purpose.ALLOCATE)
    return [[ROOT]] if _tightest(host, podgroups) and len(domains) else _gradient(host.to_start, domains)


def _gradient(snapshot: Snapshot, domains: Rows) -> list[list[int]]:
    """Domains grouped by tier, in the order in which the tiers first occur."""
    tier = snapshot.topology.tier[domains]
    firsts = sorted(set(tier.tolist()), key=lambda t: int(np.argmax(tier == t)))
    return [domains[tier == t].tolist() for t in firsts]


def _for_roles(snapshot: Snapshot, need: Need) -> Bools:
    """bool[K]: tasks of the minimum of podgroups with roles; placed first, so that no other task takes their room.

    Upstream goes by the order of tasks alone, so a gang may not start although there is room for all its roles.
    """
    owner = snapshot.tasks.podgroup[need.tasks]
    has_roles = snapshot.role_start[owner + 1] > snapshot.role_start[owner]
    return np.asarray((np.arange(len(need.tasks)) < need.minimum) & has_roles & snapshot.roles_bind[owner])


def _asked_at_least(snapshot: Snapshot, need: Need) -> AskedOfRegions | None:
    """What subgroups of one podgroup ask of regions at least; None if none requires a level."""
    if not any(NONE not in (part.subgroup, part.required_level) for part in need.parts):
        return None
    return asked_of_regions(need, need.request, snapshot, least_of_parts(need, snapshot))


def _best(placer: PartPlacer, domains: Rows, surplus_limit: int | None) -> _Layout | None:
    """The best way to place what fits into one of some domains, the first of equals; None if there is none.

    Where no part has a place of its own the scores of the domains are known before, and those below the best that works
    are not tried.
    """
    placement, known, best, least = placer.placement, np.zeros(len(domains)), None, 0.0
    if len(placer.need.parts) == 1:
        known = placement.domain_scores(np.arange(len(placer.need.tasks)), placer.snapshot.topology.slices_of(domains))
    for at in (-known).argsort(kind="stable").tolist():
        if best is not None and known[at] < least:
            break
        found = _layout(placer, int(domains[at]), surplus_limit)
        if found is not None and (best is None or found.scores > best.scores):
            best, least = found, float(known[at])
    return best


def _layout(placer: PartPlacer, domain: int, surplus_limit: int | None) -> _Layout | None:
    """Place what fits into one domain; None, and nothing placed, if the minimum is not reached.

    Parts that the minimum needs are served first, up to their own minima; only then the surplus of all. Where no plugin
    says when a podgroup may start there is no minimum.
    """
    placement, parts = placer.placement, placer.need.parts
    saved = placement.save()
    start, stop = placer.snapshot.topology.slice_of(domain)
    tops = [part for part, row in enumerate(parts) if row.parent == NONE]
    reached = not placer.binding or placer.place_needed(tops, start, stop)
    if reached and surplus_limit != 0:
        most = None if surplus_limit is None else _placed_on(placement) + surplus_limit
        for part in tops:
            _grow(replace(placer, most=most), part, start, stop)
    scores = placement.domain_score - saved.domain_score, placement.score - saved.score
    found = _Layout(placement.laid(), scores) if reached and (placement.node != NONE).any() else None
    placement.restore(saved)
    return found


def _placed_on(placement: ScoredPlacement) -> int:
    return int((placement.node != NONE).sum())


def _grow(placer: PartPlacer, top: int, start: int, stop: int) -> None:
    """Place the surplus of a podgroup that fits; where not all of it does, the emptiest subgroup grows first."""
    placement, wanted = placer.placement, placer.need.inside[top]
    waiting = len(placer.waiting(wanted))
    if all(part.parent != top for part in placer.need.parts):
        placer.place_part(top, start, stop, surplus=True)
        return
    if placer.most is None or waiting <= placer.most - _placed_on(placement):
        saved = placement.save()
        replace(placer, most=None).place_part(top, start, stop, surplus=True)
        left = len(placer.waiting(wanted))
        if left in (0, waiting):
            return
        placement.restore(saved)
    _grow_in_turns(placer, top, start, stop)


def _grow_in_turns(placer: PartPlacer, top: int, start: int, stop: int) -> None:
    """Place surplus subgroup by subgroup; then that in no subgroup."""
    need, placement = placer.need, placer.placement
    tasks, order = need.tasks, placer.order[is_among(placer.order, need.inside[top])]
    podgroup, part = need.parts[top].podgroup, placer.snapshot.tasks.subgroup[need.tasks]
    first, last = placer.snapshot.subgroup_start[podgroup : podgroup + 2].tolist()
    portion = max(1, len(placer.waiting(order)) // _TURNS) if placer.most is None else 1
    placeless, growing = part == NONE, Growing(placer.snapshot, podgroup)
    while placer.most is None or _placed_on(placement) < placer.most:
        rest = placer.waiting(order)
        rest = rest[~placeless[rest]]
        there = np.bincount(part[rest] - first, minlength=last - first)
        have = leaves_with(placer.snapshot, podgroup, tasks[placement.node != NONE])
        leaves = growing.next_leaves(have, there)
        if not leaves:
            break
        among, before = np.zeros(len(tasks), bool), _placed_on(placement)
        for leaf, count in leaves:
            among[rest[part[rest] == leaf][: max(count, portion)]] = True
        replace(placer, most=None, among=among).place_part(top, start, stop, surplus=True)
        if _placed_on(placement) == before:
            for leaf, count in leaves:  # a single task says nothing about others that ask for something else
                some = rest[part[rest] == leaf]
                placeless[some if count > 1 else some[_like_any(placer, some, some[among[some]])]] = True
    replace(placer, among=part == NONE).place_part(top, start, stop, surplus=True)


def _like_any(placer: PartPlacer, some: Rows, others: Rows) -> Bools:
    """bool[S]: which tasks (positions int64[S]) ask for the same as one of the others (int64[O]), under its labels."""
    rows = placer.need.tasks
    pairs = np.stack([placer.need.shape[some], placer.snapshot.tasks.label_set[rows[some]]], axis=1)
    kind = unique_inverse(pairs)[1]
    return is_among(kind, kind[is_among(some, others)])


def _commit(host: Host, podgroups: tuple[int, ...], need: Need, laid: Laid, action: str) -> Statement:
    """Bind tasks that can start now if the gang can start with them; else promise all of them."""
    snapshot, match_policy = host.to_start, host.context.policy.match_policy
    placed = laid.node != NONE
    now = placed & laid.now
    starts = not host.binding or all(starts_with(snapshot, podgroup, need.tasks[now]) for podgroup in podgroups)
    starts = starts and keep_up(host.context.snapshot, match_policy, podgroups, need.tasks[now])
    bound = now if starts else np.zeros_like(now)
    promised = placed & ~bound
    if (
        starts
        and promised.any()
        and not start_after(host.context.snapshot, match_policy, podgroups, need.tasks[bound], need.tasks[promised])
    ):
        promised[:] = False  # they would wait for their room without end
    return statement(
        action,
        podgroups[0],
        nominated=need.tasks[promised],
        nominated_node=laid.node[promised],
        nominated_card=laid.card[promised],
        bound=need.tasks[bound],
        bound_node=laid.node[bound],
        bound_card=laid.card[bound],
    )
