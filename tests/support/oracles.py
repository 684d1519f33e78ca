"""Brute force on small clusters: sets of victims that respect the bundles of "Gang-Aware Preemption and Reclaim"."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch


@dataclass(frozen=True)
class PlainBundle:
    """A bundle; ``along`` are the members outside the domain that go with a whole one."""

    podgroup: int
    safe: bool
    tasks: tuple[int, ...]
    along: tuple[int, ...] = ()


def running(snapshot: Snapshot, row: int) -> bool:
    return int(snapshot.tasks.status[row]) in {BOUND, RUNNING}


def subgroups_whole(snapshot: Snapshot, podgroup: int, ready: dict[int, int]) -> bool:
    """Whether a podgroup has the subgroups that it needs, leaf by leaf and level by level."""
    table = snapshot.subgroups
    mine = [row for row in range(len(table)) if table.podgroup[row] == podgroup]

    def enough(parent: int, wanted: int) -> bool:
        children = [row for row in mine if table.parent[row] == parent]
        whole = sum(is_whole(row) for row in children)
        return whole >= (len(children) if wanted == NONE else wanted)

    def is_whole(row: int) -> bool:
        if any(table.parent[other] == row for other in mine):
            return enough(row, int(table.min_subgroups[row]))
        return ready.get(row, 0) >= table.min_available[row]

    return enough(NONE, int(snapshot.podgroups.min_subgroups[podgroup]))


def bundles_plainly(search: BundleSearch, domain: int) -> list[PlainBundle]:
    """Phase 1, literally: one task after the other, every budget counted down."""
    snapshot, tasks = search.snapshot, search.snapshot.tasks
    first, last = snapshot.topology.start[domain], snapshot.topology.stop[domain]
    here = [r for r in range(len(tasks)) if running(snapshot, r) and first <= tasks.node[r] < last]
    found = []
    for group in dict.fromkeys(int(tasks.podgroup[r]) for r in here if search.candidate[r]):
        members = [r for r in range(len(tasks)) if tasks.podgroup[r] == group and running(snapshot, r)]
        local = sorted((r for r in members if r in here and search.candidate[r]), key=lambda r: victim_key(search, r))
        safe, core = _safe_and_core(snapshot, group, members, local)
        if safe:
            found.append(PlainBundle(group, True, tuple(safe)))
        must = members if search.rules.cluster_wide else [r for r in members if r in here]
        if core and search.rules.allow_whole and all(search.candidate[r] for r in must):
            along = [r for r in members if r not in here] if search.rules.cluster_wide else []
            found.append(PlainBundle(group, False, tuple(core), tuple(along)))
    return found


def _safe_and_core(snapshot: Snapshot, group: int, members: list[int], local: list[int]) -> tuple[list[int], list[int]]:
    tasks, groups, roles = snapshot.tasks, snapshot.podgroups, snapshot.roles
    surplus = len(members) - int(groups.min_available[group])
    own = [row for row in range(len(roles)) if roles.podgroup[row] == group]
    binding = int(groups.min_available[group]) >= sum(int(roles.min_available[row]) for row in own)
    spare = {row: sum(tasks.role[r] == row for r in members) - int(roles.min_available[row]) for row in own}
    ready: dict[int, int] = {}
    for row in members:
        ready[int(tasks.subgroup[row])] = ready.get(int(tasks.subgroup[row]), 0) + 1
    short = binding and any(spare[row] < 0 for row in own)
    if surplus < 0 or short or not subgroups_whole(snapshot, group, ready):
        return local, []
    safe, core = [], []
    for row in local:
        role, part = int(tasks.role[row]), int(tasks.subgroup[row])
        free = role == NONE or not binding or roles.min_available[role] == 0 or spare[role] > 0
        without = ready | {part: ready.get(part, 0) - 1}
        if surplus > 0 and free and subgroups_whole(snapshot, group, without):
            safe.append(row)
            surplus -= 1
            ready = without
            if role != NONE:
                spare[role] -= 1
        else:
            core.append(row)
    return safe, core


def victim_key(search: BundleSearch, row: int) -> tuple[float, ...]:
    """Most coverage, lowest priority, least waste, youngest; among equals the last by name."""
    tasks, need = search.snapshot.tasks, search.need.total
    request = search.snapshot.shapes.request[tasks.shape[row]]
    asked = [r for r in np.flatnonzero(need) if r != 2 or np.count_nonzero(need) == 1]
    covered = sum(min(request[r], need[r]) / need[r] for r in asked)
    size = sum(request[r] / need[r] for r in asked)
    other = sum(request[r] / max(search.snapshot.capacity[r], 1) for r in range(len(need)) if r not in asked)
    return (-round(covered, 12), tasks.priority[row], size, other, -tasks.order[row])


def slots_after(search: BundleSearch, domain: int, gone: set[int]) -> int:
    """Slots of the need's first shape in the domain once ``gone`` have left."""
    snapshot, request = search.snapshot, search.need.request[0]
    first, last = int(snapshot.topology.start[domain]), int(snapshot.topology.stop[domain])
    room = snapshot.room.future.copy()
    for row in gone:
        room[snapshot.tasks.node[row]] += snapshot.shapes.request[snapshot.tasks.shape[row]]
    asked = np.flatnonzero(request)
    fits = [min(int(room[n, r]) // int(request[r]) for r in asked) for n in range(first, last) if search.allowed[0, n]]
    return sum(max(many, 0) for many in fits)


def places(search: BundleSearch, domain: int, gone: set[int]) -> bool:
    return slots_after(search, domain, gone) >= int(search.need.count[0])


def ways(search: BundleSearch, domain: int, bundles: list[PlainBundle]) -> Iterator[set[int]]:
    """Every set of victims that takes surplus task by task and the rest of a gang entirely, and makes room."""
    pieces = [{row} for bundle in bundles if bundle.safe for row in bundle.tasks]
    pieces += [set(bundle.tasks + bundle.along) for bundle in bundles if not bundle.safe]
    for chosen in chain.from_iterable(combinations(pieces, many) for many in range(len(pieces) + 1)):
        gone = set().union(*chosen)
        if places(search, domain, gone):
            yield gone
