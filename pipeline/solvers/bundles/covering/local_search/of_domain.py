"""The victims of one domain as a local search begins with them."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Longs, Rows
from pipeline.cluster.counted.task_index import grouped
from pipeline.kernels import linked
from pipeline.placement.kept_places import no_places
from pipeline.placement.layout.region_slots import ANY, lies_in_one
from pipeline.placement.layout.settled_groups import AskedPlaces
from pipeline.placement.room.ground import Ground, leave
from pipeline.solvers.bundles.bundling.records import Site, Terms
from pipeline.solvers.bundles.bundling.splitting import by_podgroup, levels_of, may_go_whole
from pipeline.solvers.bundles.covering.local_search.pool import (
    BLOCK_BITS,
    GangPlaces,
    PartRegions,
    State,
    VictimPool,
    break_up,
    take,
)

#: How rare surplus is where all of it can be spared.
_PLENTY = 1e-3


@linked
def _note_podgroups(pool: VictimPool, shut: Bools, stays: Bools, terms: Terms) -> None:
    """Write which podgroups may break, and what each loses when it does; where ``stays`` (bool[P]), it may not."""
    groups, quota, cluster_wide = terms.groups, terms.quota, terms.rules.cluster_wide
    for g in range(len(pool.owner)):
        group = pool.owner[g]
        pool.may[g] = pool.spare[g] >= 0 and not stays[g] and may_go_whole(group, shut[g], terms)
        pool.loss[g] = groups.cost[group] * groups.lost_work[group]
        pool.victims[g] = groups.running[group] if cluster_wide else pool.start[g + 1] - pool.start[g]
        if quota.counted:
            pool.queue[g] = quota.queue[group]
        if quota.counted and cluster_wide:
            pool.amount[g] = quota.held[group]
        else:
            for entry in pool.entry[pool.start[g] : pool.start[g + 1]]:
                shape = terms.entries.shape[entry]
                for r in range(pool.amount.shape[1]):  # slices take five times as long
                    pool.amount[g, r] += terms.worth.request[shape, r]


@linked
def _note_entries(pool: VictimPool, marked: Bools, stays: Bools, scarce: int, terms: Terms) -> None:
    """Write which entries may be surplus (in subgroups only those ``marked``, bool[C]), what each holds and loses."""
    entries, worth = terms.entries, terms.worth
    for g in range(len(pool.owner)):
        spare, lost_work = pool.spare[g], terms.groups.lost_work[pool.owner[g]]
        for i in range(pool.start[g], pool.start[g + 1]):
            shape, task = entries.shape[pool.entry[i]], entries.task[pool.entry[i]]
            pool.seat[i], pool.role[i] = g, entries.of_tasks.role[task]
            pool.size[i] = max(float(worth.request[shape, scarce]), 1e-3)
            alone = entries.of_tasks.subgroup[task] == NONE
            pool.free[i] = spare != 0 and not stays[g] and (alone or spare < 0 or marked[i])
            pool.work[i] = worth.unit[shape] * lost_work if spare >= 0 else 0.0


@linked
def _note_rarity(pool: VictimPool, of_role: Counts) -> None:
    """Write how little podgroups, and roles (``of_role`` int32[L]), can spare; see ``VictimPool.rare``."""
    here = np.zeros(len(of_role), np.int64)
    for i in range(len(pool.role)):
        if pool.role[i] >= 0:
            here[pool.role[i]] += 1
    for i in range(len(pool.role)):
        g, role = pool.seat[i], pool.role[i]
        if pool.spare[g] >= 0:
            pool.rare[i] = max(pool.rare[i], 1.0 - pool.spare[g] / (pool.start[g + 1] - pool.start[g]))
            if role >= 0:
                pool.rare[i] = max(pool.rare[i], 1.0 - of_role[role] / here[role])


@linked
def _part_regions(asked: AskedPlaces, ground: Ground) -> PartRegions:
    """Parts of the gang that go into one region each; of several levels those of the last one."""
    parts, shapes, nodes, levels = ground.by_region.parts, len(ground.wanted), len(ground.room), asked.regions.amount
    part, region, most, many = np.zeros((len(parts.size), shapes), np.int64), parts.region, parts.most, 0
    part[:, 0] = parts.size
    if len(part) == 0 and len(levels) > 0:
        region, most = asked.regions.region[len(levels) - 1], ANY
        if not lies_in_one(region, ground.first, ground.first + nodes):
            each = asked.regions.part[len(levels) - 1]
            while many < len(each) and each[many].any():
                many += 1
            part = each[:many, :shapes].copy()
    begin, end, node = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.full(nodes, NONE, np.int64)
    many = 0
    for n in range(nodes if len(part) > 0 else 0):
        if region[ground.first + n] == NONE:
            continue
        if n == 0 or region[ground.first + n] != region[ground.first + n - 1]:
            begin[many] = n
            many += 1
        end[many - 1], node[n] = n + 1, many - 1
    return PartRegions(part, begin[:many], end[:many], node, most)


@linked
def places_of(asked: AskedPlaces, ground: Ground) -> GangPlaces:
    """The places of the gang as a search begins."""
    return GangPlaces(asked, no_places(asked), _part_regions(asked, ground))


@linked
def victim_pool_of(
    site: Site, nodes: tuple[int, int], terms: Terms, leaving: Rows, highest: tuple[int, int], seats: Ids
) -> tuple[VictimPool, int]:
    """The pool, and how many levels there are.

    ``leaving``: entries that go as surplus at first. ``highest``: podgroups of a higher priority, or of a queue of a
    higher rank, stay.
    """
    begin, end = site.start[nodes[0]], site.start[nodes[1]]
    owner, start, local, shut = by_podgroup(begin, end, terms.entries, seats)
    priority, queue_rank = terms.groups.priority[owner].astype(np.int64), terms.groups.queue_rank[owner]
    level, levels = levels_of(owner, terms)
    at = terms.entries.node[local].astype(np.int64) - nodes[0]
    node, on = grouped(at, nodes[1] - nodes[0])
    pool = VictimPool(
        owner=owner,
        start=start,
        entry=local,
        seat=np.empty(len(local), np.int64),
        at=at,
        may=np.empty(len(owner), np.bool_),
        spare=terms.surplus.gang[owner].astype(np.int64),
        free=np.empty(len(local), np.bool_),
        role=np.empty(len(local), np.int64),
        level=level,
        victims=np.empty(len(owner), np.int64),
        priority=priority,
        queue_rank=queue_rank,
        queue=np.zeros(len(owner), np.int64),
        loss=np.empty(len(owner)),
        work=np.empty(len(local)),
        rare=np.full(len(local), _PLENTY),
        whole=np.zeros(len(local)),
        single=np.zeros(len(local)),
        size=np.empty(len(local)),
        node=node,
        on=on,
        here=site.allowed[:, nodes[0] : nodes[1]].copy(),
        counted=terms.quota.counted,
        amount=np.zeros((len(owner), terms.worth.request.shape[1]), np.int64),
        entitled=terms.quota.entitled,
        asking=terms.quota.asking,
    )
    stays, marked = (priority > highest[0]) | (queue_rank > highest[1]), np.zeros(end - begin, np.bool_)
    for entry in leaving:
        marked[entry - begin] = True
    _note_podgroups(pool, shut, stays, terms)
    _note_entries(pool, marked[local - begin], stays, site.scarce, terms)
    _note_rarity(pool, terms.surplus.role)
    return pool, levels


@linked
def begin(
    pool: VictimPool, leaving: Rows, breaking: Rows, role: Counts, left: Longs, ground: Ground, seats: Ids
) -> State:
    """The state in which the given victims are gone."""
    many, blocks = len(pool.owner), (len(ground.room) >> BLOCK_BITS) + 1
    state = State(
        gone=np.zeros(len(pool.entry), np.bool_),
        broken=np.zeros(many, np.bool_),
        taken=np.zeros(many, np.int64),
        work=np.zeros(many),
        role=role,
        left=left,
        may=pool.may.copy(),
        tabu=np.zeros(many, np.bool_),
        refused=np.zeros(many, np.bool_),
        closed=np.zeros(len(ground.room), np.bool_),
        ratio=np.full(len(ground.room), -1.0),
        lowest=np.full(blocks, -1.0),
        cheapest=np.empty(blocks, np.int64),
        lacks=np.ones(len(ground.wanted), np.bool_),
        slots=np.zeros(len(ground.wanted), np.int64),
    )
    for g in range(many):
        seats[pool.owner[g]] = g
    for group in breaking:
        if seats[group] != NONE:
            break_up(seats[group], pool, state, ground)
    for g in range(many):
        seats[pool.owner[g]] = NONE
    marked = set(leaving)
    for i in range(len(pool.entry)):
        if not state.gone[i] and pool.entry[i] in marked:
            leave(pool.entry[i : i + 1], ground)
            take(i, 1, pool, state, ground)
    return state
