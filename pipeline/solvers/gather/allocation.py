"""Placing a podgroup without evictions by gathering; all or nothing, the minimum at least."""

import numpy as np

from pipeline.cluster.arrays import Bools, Rows, distinct
from pipeline.cluster.resources import fits
from pipeline.cluster.rules.match_policy import keep_up
from pipeline.cluster.rules.minimum import leaves_with, starts_with
from pipeline.cluster.rules.reaching import in_whole_subgroups
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.statement import Statement, statement
from pipeline.placement.domains import required_domains
from pipeline.placement.feasibility import feasible
from pipeline.placement.layout.by_score import gang_allocation
from pipeline.placement.layout.other_ways import other_ways
from pipeline.placement.need import Need
from pipeline.plugins.host import Host
from pipeline.records import replace
from pipeline.solvers.gather.bounds import gathers
from pipeline.solvers.gather.gathering import (
    Gathered,
    GatherSite,
    gathered,
    most_offered,
    need_of_first,
    need_of_some,
    numbers_of,
)
from pipeline.solvers.gather.multiples import steps_of
from pipeline.solvers.gather.needs import of_each_subgroup, served, within_reach
from pipeline.solvers.gather.offers import existing_of
from pipeline.solvers.gather.tree import tree_of


def allocate_by_gathering(
    host: Host, podgroups: tuple[int, ...], action: str, *, surplus_limit: int | None = None
) -> Statement | None:
    """Gather the pending tasks of podgroups that start together; podgroups that name no layer are placed by score.

    Room that is there now is used before room that is coming free, which is promised. Tasks beyond the minimum are
    placed with it if the gang stays as close, else afterwards by themselves, near the rest; those of a subgroup only if
    it has its minimum then.
    """
    snapshot = host.context.snapshot
    if not gathers(snapshot, podgroups):
        return gang_allocation.allocate_by_score(host, podgroups, action, surplus_limit=surplus_limit)
    need = within_reach(host, host.to_start, podgroups, surplus=host.context.policy.surplus)
    if len(need.tasks) == 0 or need.short:
        return None
    made = _placed(host, need, action, surplus_limit)
    if made is not None:
        return made
    others = of_each_subgroup(host.to_start, need)
    if need.minimum > 0:
        outer = required_domains(snapshot, podgroups)
        if steps_of(snapshot, podgroups, need.tasks[:0]) is None:  # what is left is placed in the next turn
            need = within_reach(host, host.to_start, podgroups, surplus=False)
        others = other_ways(host, host.to_start, need, outer, lambda: snapshot.room.future)
    return next((made for one in others if (made := _placed(host, one, action, surplus_limit)) is not None), None)


def _placed(host: Host, need: Need, action: str, surplus_limit: int | None) -> Statement | None:
    """Place one way to make up the minimum, and then the surplus."""
    snapshot, podgroups = host.context.snapshot, need.podgroups
    outer = required_domains(snapshot, podgroups)
    if need.minimum == 0:  # each task starts by itself: one that could not does not keep the others waiting
        takes = served(need, host.allowed(need.shapes) & _inside(snapshot, outer), snapshot.room.future)
        need = need_of_some(need, takes[need.shape] & _alone_within_quota(host, need))
    many = _within_quota(host, need, surplus_limit)
    if many == 0 or many < need.minimum:
        return None
    need = need if many == len(need.tasks) else need_of_first(need, many)
    allowed = host.allowed(need.shapes)
    existing, steps = existing_of(snapshot, podgroups, need.tasks[:0]), steps_of(snapshot, podgroups, need.tasks[:0])
    future = snapshot.room.future
    for room in (np.minimum(snapshot.room.idle, future), future):
        site = GatherSite(
            snapshot, need, np.array(room), allowed, existing, need.tasks[:0], snapshot.once(tree_of), steps=steps
        )
        found = _gathered(site, outer)
        if found is not None and host.binding:
            found = _whole_parts(site, found)
        if found is not None:
            made = _committed(host, podgroups, found, action, now=room is not future)
            if feasible(snapshot, made):
                return made
    return None


def _gathered(site: GatherSite, outer: Rows) -> Gathered | None:
    """All tasks, if they are as close as the minimum alone; else the minimum, or as many tasks as there is room for."""
    need = site.need
    if need.minimum == 0:  # each task starts by itself: one that has no room now does not keep the others waiting
        need = need_of_some(need, served(need, site.allowed & _inside(site.snapshot, outer), site.room)[need.shape])
        site = replace(site, need=need)
        numbers = numbers_of(site, need.tasks, outer, most_offered(site, need.tasks, outer))
        tries = dict.fromkeys((numbers[-1], numbers[0])) if numbers else {}
        return next((found for one in tries if (found := gathered(site, need.tasks[:one], outer)) is not None), None)
    numbers = numbers_of(site, need.tasks, outer, len(need.tasks))
    fewest = next((many for many in numbers if many >= need.minimum), 0)
    least = gathered(site, need.tasks[:fewest], outer) if fewest > 0 else None
    if least is None or numbers[-1] == fewest:
        return least
    everything = gathered(site, need.tasks[: numbers[-1]], outer)
    return everything if everything is not None and everything.tier <= least.tier else least


def _whole_parts(site: GatherSite, found: Gathered) -> Gathered | None:
    """The same without tasks of subgroups that would be below their minimum even so; None if that leaves nothing."""
    snapshot, owner, left = site.snapshot, site.snapshot.tasks.podgroup[found.tasks], np.ones(len(found.tasks), bool)
    for podgroup in site.need.podgroups:
        mine = owner == podgroup
        have = leaves_with(snapshot, podgroup, found.tasks[mine])
        left[mine] = in_whole_subgroups(snapshot, podgroup, found.tasks[mine], have)
    if left.all():
        return found
    if not left.any() or site.steps is not None:
        return None
    return replace(found, tasks=found.tasks[left], node=found.node[left])


def _inside(snapshot: Snapshot, domains: Rows) -> Bools:
    """bool[N]: nodes that lie in one of the domains (int64[D])."""
    ends = np.zeros(len(snapshot.nodes) + 1, np.int64)
    np.add.at(ends, snapshot.topology.start[domains], 1)
    np.add.at(ends, snapshot.topology.stop[domains], -1)
    return np.asarray(np.cumsum(ends[:-1]) > 0)


def _within_quota(host: Host, need: Need, surplus_limit: int | None) -> int:
    """How many leading tasks are within their queues' headroom, and within the limit of tasks beyond the minimum."""
    snapshot = host.context.snapshot
    queue, asks = snapshot.queue_of(need.tasks), snapshot.request_of(need.tasks)
    lasts = ~snapshot.podgroups.preemptible[snapshot.tasks.podgroup[need.tasks]]
    within = len(queue) if surplus_limit is None else min(len(queue), need.minimum + surplus_limit)
    for owner in distinct(queue).tolist():
        mine = np.flatnonzero(queue == owner)
        for some, room in ((mine, host.headroom), (mine[lasts[mine]], host.lasting_headroom)):
            beyond = some[~fits(np.cumsum(asks[some], axis=0), room[owner])]
            within = min(within, int(beyond.min(initial=within)))
    return within


def _alone_within_quota(host: Host, need: Need) -> Bools:
    """bool[K]: tasks that are within their queues' headroom, each looked at by itself."""
    snapshot = host.context.snapshot
    queue, asks = snapshot.queue_of(need.tasks), snapshot.request_of(need.tasks)
    may_go = snapshot.podgroups.preemptible[snapshot.tasks.podgroup[need.tasks]]
    return np.asarray(fits(asks, host.headroom[queue]) & (may_go | fits(asks, host.lasting_headroom[queue])))


def _committed(host: Host, podgroups: tuple[int, ...], found: Gathered, action: str, *, now: bool) -> Statement:
    """Bind tasks that have room now if the podgroups can start with them and leave none behind; else promise them."""
    snapshot, match_policy = host.context.snapshot, host.context.policy.match_policy
    card = host.cards_for(found.tasks, found.node, found.tasks[:0])
    starts = now and (
        not host.binding or all(starts_with(host.to_start, podgroup, found.tasks) for podgroup in podgroups)
    )
    starts = starts and keep_up(snapshot, match_policy, podgroups, found.tasks)
    if starts:
        return statement(action, podgroups[0], bound=found.tasks, bound_node=found.node, bound_card=card)
    return statement(action, podgroups[0], nominated=found.tasks, nominated_node=found.node, nominated_card=card)
