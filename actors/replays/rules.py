"""The rules that no decision of a replay may break, checked on columns without the code of the core."""

from __future__ import annotations

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import MATCH_POLICY_NAMES, ONCE_SATISFIED, PENDING, PHASE_RUNNING, UNSTATED
from pipeline.decision.decided import carried_out
from pipeline.decision.statement import Statement


def placed_nodes(snapshot: Snapshot, podgroup: int) -> Rows:
    """int64[K]: for each task of a podgroup that is running, bound or nominated, its node."""
    tasks, rows = snapshot.tasks, snapshot.tasks_of(podgroup)
    promised = np.where(tasks.status[rows] == PENDING, tasks.nominated[rows], NONE)
    node = np.where(tasks.runs(rows), tasks.node[rows], promised)
    return np.asarray(node[node != NONE], np.int64)


def in_one_domain(snapshot: Snapshot, nodes: Rows, level: int) -> bool:
    """Whether all ``nodes`` lie in one domain of a level; true for the level NONE."""
    if level == NONE or len(nodes) == 0:
        return True
    domains = snapshot.topology.at_level(level)
    start, stop = snapshot.topology.start[domains], snapshot.topology.stop[domains]
    return bool(((start <= nodes.min()) & (stop > nodes.max())).any())


def starting_freely(snapshot: Snapshot, otherwise: str) -> Bools:
    """bool[G]: podgroups whose tasks start one by one, since they have run before and that is enough for them.

    ``otherwise`` is the match policy of those that state none.
    """
    groups = snapshot.podgroups
    is_enough = groups.match_policy == ONCE_SATISFIED
    if otherwise == MATCH_POLICY_NAMES[ONCE_SATISFIED]:
        is_enough = is_enough | (groups.match_policy == UNSTATED)
    ran = ~np.isnan(groups.started) | (groups.phase == PHASE_RUNNING) | (snapshot.counts.ready > 0)
    return np.asarray(is_enough & ran)


def broken_by(before: Snapshot, made: Statement, otherwise: str) -> list[str]:
    """What a statement breaks when it is carried out on ``before``, one sentence each.

    ``otherwise``: see `starting_freely`.
    """
    after, told = carried_out(made, before, 0.0), []
    group = made.preemptor
    if len(made.evictions) and group == NONE:
        return ["a task is evicted for no podgroup"]
    if group == NONE:
        return []
    groups, placed, free = before.podgroups, placed_nodes(after, group), starting_freely(before, otherwise)
    least = 1 if free[group] else max(int(groups.min_available[group]), 1)
    if len(made.evictions) and len(placed) < least:
        told.append(f"{len(made.evictions)} evictions without a placement")
    told += broken_gangs(after, np.array([group]), free)
    lost = made.evictions[~np.isin(made.evictions, made.nominated)]  # the others move
    owners = before.tasks.podgroup[lost]
    same = groups.queue[owners] == groups.queue[group]
    if (groups.priority[owners][same] >= groups.priority[group]).any():
        told.append("a victim of the same queue is as important as the preemptor")
    return told + overfull(after)


def broken_gangs(snapshot: Snapshot, podgroups: Rows, free: Bools) -> list[str]:
    """A sentence for each podgroup that has only a part of its minimum, or is spread beyond its required level.

    Those that are ``free`` (bool[G], see `starting_freely`) may have a part.
    """
    told, groups = [], snapshot.podgroups
    for group in podgroups.tolist():
        placed, least = placed_nodes(snapshot, group), int(groups.min_available[group])
        if 0 < len(placed) < least and not free[group]:
            told.append(f"podgroup {group}: partial, {len(placed)} of {least}")
        if not in_one_domain(snapshot, placed, int(groups.required_level[group])):
            told.append(f"podgroup {group}: outside one domain of its level")
    return told


def overfull(snapshot: Snapshot) -> list[str]:
    """A sentence for each node that holds more than it has, or is promised more than it will have."""
    room = snapshot.room
    held = np.flatnonzero((room.idle < 0).any(axis=1))
    promised = np.flatnonzero((room.future < 0).any(axis=1))
    told = [f"node {node} holds too much" for node in held]
    return told + [f"node {node} is promised too often" for node in promised]


def needless(snapshot: Snapshot, made: Statement) -> int:
    """How many victims could each have stayed with every placement keeping its room, whole podgroups aside."""
    tasks, request = snapshot.tasks, snapshot.shapes.request
    after = carried_out(made, snapshot, 0.0).room.future
    back = request[tasks.shape[made.evictions]]
    left = after[tasks.node[made.evictions]]
    stays = ((back <= left) | (back == 0)).all(axis=1)
    rigid = snapshot.counts.ready <= snapshot.podgroups.min_available
    many = np.bincount(tasks.podgroup[made.evictions], minlength=len(rigid)) > 1
    return int((stays & ~(rigid & many)[tasks.podgroup[made.evictions]]).sum())
