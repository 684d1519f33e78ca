"""Gathering against brute force on small trees, and room made by job-level preemption against every set of victims."""

from itertools import combinations, permutations
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.cli.simulate import open_case
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.decision.price import lost_work, price_of
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import Purpose
from pipeline.propose import propose
from pipeline.solvers.gather.allocation import allocate_by_gathering
from pipeline.solvers.gather.tree import Tree, tree_of
from tests.support.depth import sampled
from tests.support.gathering import children_of, cluster_file, running, spines, waiting

LAYERS = st.sampled_from([{"preferred": "block"}, {"preferred": "spine"}, {"required": "block"}, {"required": "spine"}])


@given(spines(), st.integers(1, 8), LAYERS)
@settings(max_examples=sampled(120), deadline=None)
def test_the_place_of_a_gang_of_equal_tasks_is_the_best_there_is(
    made: tuple[Any, dict[str, int]], tasks: int, topology: dict[str, str]
) -> None:
    case = open_case(cluster_file(*made, [waiting("job", [1] * tasks, topology=topology)]))
    found = allocate_by_gathering(Host(Context(case.snapshot, case.policy, case.now)), (0,), "allocate")
    tree, cores = case.snapshot.once(tree_of), case.snapshot.nodes.allocatable[:, 0] // 1000
    slots = np.minimum(cores, tasks)
    highest = {"block": 1, "spine": 2}.get(topology.get("required", ""), 3)
    fitting = [v for v in range(len(tree.parent)) if tree.tier[v] <= highest and _slots(tree, slots, v) >= tasks]
    if not fitting:
        assert found is None
        return
    assert found is not None
    nodes = found.bound_node
    here = [v for v in range(len(tree.parent)) if _holds(tree, v, nodes)]
    chosen = min(here, key=lambda v: tree.tier[v])
    lowest = min(tree.tier[v] for v in fitting)
    assert tree.tier[chosen] == lowest
    ranked = [_climb(tree, slots, v) for v in fitting if tree.tier[v] == lowest]
    assert _climb(tree, slots, chosen) == min(ranked)
    assert len(set(_child(tree, chosen, nodes))) == _fewest(tree, slots, chosen, tasks)
    assert (np.bincount(nodes, minlength=len(cores)) <= cores).all()


def _slots(tree: Tree, slots: np.ndarray, vertex: int) -> int:
    first, stop = tree.slice(vertex)
    return int(slots[first:stop].sum())


def _holds(tree: Tree, vertex: int, nodes: np.ndarray) -> bool:
    first, stop = tree.slice(vertex)
    return bool(((nodes >= first) & (nodes < stop)).all())


def _climb(tree: Tree, slots: np.ndarray, vertex: int) -> list[int]:
    """Slots of a vertex and of each one above it: fewer is a closer fit."""
    way = [_slots(tree, slots, vertex)]
    while vertex != 0:
        vertex = int(tree.parent[vertex])
        way.append(_slots(tree, slots, vertex))
    return way


def _child(tree: Tree, vertex: int, nodes: np.ndarray) -> list[int]:
    children = children_of(tree, vertex) or [vertex]
    return [next(c for c in children if _holds(tree, c, np.array([node]))) for node in nodes.tolist()]


def _fewest(tree: Tree, slots: np.ndarray, vertex: int, tasks: int) -> int:
    """The fewest children of a vertex that have slots enough, by trying all sets of them."""
    children = children_of(tree, vertex) or [vertex]
    return next(
        many
        for many in range(1, len(children) + 1)
        if any(sum(_slots(tree, slots, c) for c in some) >= tasks for some in combinations(children, many))
    )


VICTIMS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(1, 3)), min_size=5, max_size=8)


@given(VICTIMS, st.integers(1, 4), st.sampled_from(["block", "spine"]))
@settings(max_examples=sampled(120), deadline=None)
def test_room_is_made_where_it_can_be_and_no_victim_could_have_stayed(
    victims: list[tuple[int, int, int]], tasks: int, layer: str
) -> None:
    names = [f"n{at}" for at in range(6)]
    tree = {"s0": {"b0": names[:2], "b1": names[2:4]}, "s1": {"b2": names[4:]}}
    used = dict.fromkeys(names, 0)
    groups = []
    for at, (node, cpu, priority) in enumerate(victims):
        if used[names[node]] + cpu <= 3:
            used[names[node]] += cpu
            groups.append(running(f"v{at}", [names[node]], cpu, priority=priority))
    job = waiting("job", [2] * tasks, topology={"required": layer})
    case = open_case(cluster_file(tree, 3, [*groups, job]))
    host, snapshot = Host(Context(case.snapshot, case.policy, case.now)), case.snapshot
    if allocate_by_gathering(host, (len(groups),), "allocate") is not None:
        return
    found = propose(Attempt(snapshot, case.policy, Purpose.PREEMPT, (len(groups),), None, case.now, "preempt"))
    domains = snapshot.topology.at_level({"spine": 0, "block": 1}[layer]).tolist()
    every = [set(some) for many in range(len(groups) + 1) for some in combinations(range(len(groups)), many)]
    working = [some for some in every if any(_takes(snapshot, some, domain, tasks) for domain in domains)]
    assert isinstance(found, Plan) == bool(working)
    if not isinstance(found, Plan):
        return
    gone = set(found.statement.evictions.tolist())
    assert gone in working
    assert not any(other < gone for other in working)
    assert _harm(snapshot, gone, found, case.now) <= min(_harm(snapshot, some, found, case.now) for some in working)


#: Of each podgroup how many nodes it holds, how many of their four cores, its priority and its queue.
GROUPS = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from([2, 4, 4]), st.integers(1, 3), st.sampled_from("aab")),
    min_size=1, max_size=7,
)  # fmt: skip


@given(GROUPS, st.integers(1, 6), st.tuples(st.integers(0, 20), st.integers(0, 20)))
@settings(max_examples=sampled(150), deadline=None)
def test_reclaim_takes_what_quotas_permit_and_finds_any_podgroup_that_is_enough_by_itself(
    made: list[tuple[int, int, int, str]], gang: int, spare: tuple[int, int]
) -> None:
    names, groups, held = [f"n{at:02}" for at in range(12)], [], {"a": 0, "b": 0}
    free = dict.fromkeys(names, 4)
    for at, (many, cpu, priority, queue) in enumerate(made):
        on = [node for node in names if free[node] >= cpu][:many]
        free |= {node: free[node] - cpu for node in on}
        held[queue] += cpu * len(on)
        groups += [running(f"v{at}", on, cpu, priority=priority, queue=queue)] if on else []
    queues = [
        {"name": name, "deserved": {"cpu": max(held[name] - more, 0)}} for name, more in zip("ab", spare, strict=True)
    ]
    queues.append({"name": "c", "deserved": {"cpu": 4 * gang}})
    job = waiting("job", [4] * gang, queue="c", priority=1)
    case = open_case(cluster_file({"s": {"b": names}}, 4, [*groups, job], queues=queues))
    host, snapshot, job_row = Host(Context(case.snapshot, case.policy, case.now)), case.snapshot, len(groups)
    if allocate_by_gathering(host, (job_row,), "allocate") is not None:
        return
    asked = Preemptor((job_row,), snapshot.request[snapshot.tasks_of(job_row)].sum(axis=0), Purpose.RECLAIM)
    found = propose(Attempt(snapshot, case.policy, Purpose.RECLAIM, (job_row,), None, case.now, "reclaim"))
    if isinstance(found, Plan):
        gone = found.statement.evictions
        assert host.validate_set(asked, gone)
        assert any(_counted(host, asked, snapshot, some) for some in permutations(_runs(snapshot, gone)))
        return
    for podgroup in range(job_row):
        rows = snapshot.tasks_of(podgroup)
        enough = _takes(snapshot, set(rows.tolist()), int(snapshot.topology.at_level(1)[0]), gang, 4000)
        assert not (enough and host.preemptive(asked) and _counted(host, asked, snapshot, (rows,)))


def _runs(snapshot: Snapshot, rows: np.ndarray) -> list[np.ndarray]:
    return [rows[snapshot.tasks.podgroup[rows] == one] for one in np.unique(snapshot.tasks.podgroup[rows])]


def _counted(host: Host, asked: Preemptor, snapshot: Snapshot, some: tuple[np.ndarray, ...]) -> bool:
    """Whether quotas permit these podgroups one after the other, each whole."""
    rows = np.concatenate(some)
    return bool(host.bundle_quota_filter(asked, rows, snapshot.tasks.podgroup[rows].astype(np.int64)).all())


def _takes(snapshot: Snapshot, gone: set[int], domain: int, tasks: int, cpu: int = 2000) -> bool:
    free = snapshot.room.future[:, 0].copy()
    for row in gone:
        free[snapshot.tasks.node[row]] += snapshot.request[row, 0]
    first, stop = snapshot.topology.start[domain], snapshot.topology.stop[domain]
    return int((free[first:stop] // cpu).sum()) >= tasks


def _harm(snapshot: Snapshot, gone: set[int], found: Plan, now: float) -> tuple[Any, ...]:
    asked = snapshot.request[found.statement.placed].sum(axis=0)
    rows = np.array(sorted(gone), np.int64)
    price = price_of(snapshot, rows, asked, lost_work(snapshot, now), None, 0)
    return price.highest_priority, price.gangs_broken, price.broken, price.victims
