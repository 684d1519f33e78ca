"""Filters: whether tasks may be on their nodes, resources aside: predicates, anti-affinity, required levels.

The same functions are asked when a node is promised, and again when the promise is judged or redeemed.
"""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Ids, Longs, Rows, any_true, distinct, is_among
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.rules.anti_affinity import Exclusions, concerned, exclusions, not_yet, states_terms
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.subgroups import in_subtree
from pipeline.decision.statement import Statement
from pipeline.plugins.host import Host


def misplaced(host: Host, rows: Rows, nodes: Rows, leaving: Rows) -> Bools:
    """bool[K]: which of the tasks ``rows`` may not be on ``nodes`` (int64[K]), beside all tasks that stay.

    Parameters
    ----------
    leaving: int64[V]
        Further tasks that no longer count. What ``rows`` hold or are promised now does not count either.
    """
    gone = np.union1d(leaving, rows)
    return _elsewhere(host, rows, nodes, gone) | repelled(host.context.snapshot, rows, nodes, gone)


def well_placed(host: Host, made: Statement) -> bool:
    """Whether every task that a statement nominates, binds or moves may be on its node by predicates and levels.

    ``feasible`` checks room and anti-affinity; the law checks quotas.
    """
    rows, nodes, _ = made.places
    gone = np.concatenate([made.evictions, made.nominated, made.bound])
    return len(rows) == 0 or not any_true(_elsewhere(host, rows, nodes, gone))


def _elsewhere(host: Host, rows: Rows, nodes: Rows, gone: Rows) -> Bools:
    """bool[K]: which tasks (at least one) may not be on their nodes by predicates or a required level."""
    snapshot = host.context.snapshot
    shapes, which = unique_inverse(snapshot.tasks.shape[rows])
    wrong = ~host.allowed(shapes.astype(np.int64))[which, nodes]
    return np.asarray(wrong | torn(snapshot, rows, nodes, gone))


def repelled(snapshot: Snapshot, rows: Rows, nodes: Rows, gone: Rows) -> Bools:
    """bool[K]: which tasks would violate anti-affinity, with running tasks or with each other."""
    constraint, labels, kind = _repelling_kinds(snapshot, rows)
    if len(constraint) == 0:
        return np.zeros(len(rows), bool)
    found = exclusions(snapshot, constraint, labels, gone)
    return np.asarray(found.excluded[kind, nodes] | _in_conflict(found, kind, nodes))


def too_early(snapshot: Snapshot, rows: Rows, nodes: Rows, leaving: Rows) -> Bools:
    """bool[K]: which tasks must not start on their nodes yet, since anti-affinity keeps them from tasks still ending.

    ``leaving`` int64[V]: tasks that are evicted in the same decision.
    """
    constraint, labels, kind = _repelling_kinds(snapshot, rows)
    if len(constraint) == 0:
        return np.zeros(len(rows), bool)
    return np.asarray(not_yet(snapshot, constraint, labels, leaving)[kind, nodes])


def _repelling_kinds(snapshot: Snapshot, rows: Rows) -> tuple[Ids, Ids, Rows]:
    """Constraint and label set of each kind among some tasks, and the kind of each; no kinds if nothing repels any."""
    tasks, nothing = snapshot.tasks, (NO_ROWS.astype(np.int32), NO_ROWS.astype(np.int32), NO_ROWS)
    if not states_terms(snapshot):
        return nothing
    pairs = np.stack([snapshot.shapes.constraint[tasks.shape[rows]], tasks.label_set[rows]], axis=1)
    kinds, kind = unique_inverse(pairs)
    if not concerned(snapshot, kinds[:, 0], kinds[:, 1]).any():
        return nothing
    return kinds[:, 0], kinds[:, 1], kind


def _in_conflict(found: Exclusions, kind: Rows, nodes: Rows) -> Bools:
    """bool[K]: tasks that share a domain with another of the tasks against an anti-affinity term."""
    result = np.zeros(len(kind), bool)
    kinds = np.arange(len(found.conflict))
    for bit, domains in enumerate(found.domains):
        conflict = (found.conflict >> bit & 1).astype(np.int64)
        there, place = unique_inverse(domains[nodes])
        count = np.zeros((len(there), len(kinds)), np.int64)
        np.add.at(count, (place, kind), 1)
        others = count @ conflict - conflict[kinds, kinds] * (count > 0)  # a task does not repel itself
        result |= (others[place, kind] > 0) & (domains[nodes] != NONE)
    return result


def torn(snapshot: Snapshot, rows: Rows, nodes: Rows, gone: Rows) -> Bools:
    """bool[K]: tasks of a podgroup or subgroup whose running, promised and newly placed tasks break its required level.

    All newly placed tasks of such a part count as torn; but if tasks that stay fix the domain, only those outside it.
    """
    tasks, result = snapshot.tasks, np.zeros(len(rows), bool)
    groups, start = unique_inverse(tasks.podgroup[rows])[0], snapshot.subgroup_start
    levelled = (snapshot.podgroups.required_level[groups] != NONE) | (start[groups + 1] > start[groups])
    for podgroup in groups[levelled].tolist():
        required = _required(snapshot, podgroup)
        if not required:
            continue
        members = snapshot.tasks_of(podgroup)
        place = snapshot.place_of(members).astype(np.int64)
        staying = place != NONE
        staying[staying] = ~is_among(members[staying], gone)
        for level, part in required:
            put, stays = tasks.podgroup[rows] == podgroup, staying
            if part != NONE:
                put &= in_subtree(snapshot.subgroups, part, tasks.subgroup[rows])
                stays = staying & in_subtree(snapshot.subgroups, part, tasks.subgroup[members])
            result[put] |= _outside(snapshot, level, nodes[put], place[stays])
    return result


def _required(snapshot: Snapshot, podgroup: int) -> list[tuple[int, int]]:
    """Required levels of a podgroup (key NONE) and of its subgroups (by row)."""
    first, stop = snapshot.subgroup_start[podgroup : podgroup + 2].tolist()
    found = [(int(snapshot.podgroups.required_level[podgroup]), NONE)]
    found += [(int(snapshot.subgroups.required_level[row]), row) for row in range(first, stop)]
    return [(level, part) for level, part in found if level != NONE]


def _outside(snapshot: Snapshot, level: int, nodes: Longs, stays: Longs) -> Bools:
    """bool[K]: which ``nodes`` do not share one domain of the level with the tasks that stay, or with each other."""
    topology = snapshot.topology
    domains = topology.at_level(level)
    order = domains[np.argsort(topology.start[domains], kind="stable")]
    order = order[topology.start[order] < topology.stop[order]]

    def domain_of(rows: Longs) -> Longs:
        at = np.searchsorted(topology.start[order], rows, side="right") - 1
        inside = (at >= 0) & (rows < topology.stop[order[np.maximum(at, 0)]]) if len(order) else np.zeros(len(at), bool)
        return np.where(inside, at, NONE)

    mine, fixed = domain_of(nodes), distinct(domain_of(stays))
    wanted = fixed if len(fixed) else distinct(mine)
    if len(wanted) != 1 or wanted[0] == NONE:
        return np.ones(len(nodes), bool)
    return np.asarray(mine != wanted[0])
