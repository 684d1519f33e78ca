"""Gathering in multiples against every number of tasks that each domain can take, on small trees."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.cli.simulate import open_case
from pipeline.cluster.arrays import NONE
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.solvers.gather.allocation import allocate_by_gathering
from pipeline.solvers.gather.tree import Tree, tree_of
from tests.support.depth import sampled
from tests.support.gathering import children_of, cluster_file, spines, waiting

MULTIPLES = st.fixed_dictionaries({"block": st.integers(1, 4), "spine": st.integers(1, 6)})
LAYERS = st.sampled_from([{"preferred": "block"}, {"preferred": "spine"}, {"required": "block"}, {"required": "spine"}])
Takes = list[set[int]]


@given(spines(), st.integers(1, 12), LAYERS, MULTIPLES)
@settings(max_examples=sampled(100), deadline=None)
def test_a_gang_that_goes_in_multiples_has_the_best_place_there_is(
    made: tuple[Any, dict[str, int]], tasks: int, layers: dict[str, str], multiples: dict[str, int]
) -> None:
    case = open_case(cluster_file(*made, [waiting("job", [1] * tasks, topology={**layers, "multiples": multiples})]))
    found = allocate_by_gathering(Host(Context(case.snapshot, case.policy, case.now)), (0,), "allocate")
    tree, cores = case.snapshot.once(tree_of), case.snapshot.nodes.allocatable[:, 0] // 1000
    own = [1, multiples["block"], multiples["spine"], 1]
    takes = every_number(tree, np.minimum(cores, tasks).tolist(), own, [0] * len(tree.parent))
    highest = {"block": 1, "spine": 2}.get(layers.get("required", ""), 3)
    fitting = [
        v
        for v in range(len(tree.parent))
        if tree.tier[v] <= highest and fits(tree, takes, own, v, tasks, [0] * len(tree.parent))
    ]
    assert (found is not None) == bool(fitting)
    if found is None:
        return
    per_node = np.bincount(found.bound_node, minlength=len(cores))
    assert per_node.sum() == tasks
    assert (per_node <= cores).all()
    count = tree.summed(per_node.astype(np.int64))
    assert all(count[v] % own[tree.tier[v]] == 0 for v in range(len(count)))
    lowest = min(tree.tier[v] for v in fitting)
    chosen = min((v for v in range(len(count)) if count[v] == tasks), key=lambda v: tree.tier[v])
    assert tree.tier[chosen] == lowest
    best = min(climb(tree, takes, v) for v in fitting if tree.tier[v] == lowest)
    assert climb(tree, takes, chosen) == best
    children = children_of(tree, chosen)
    assert (count[children] > 0).sum() == fewest([takes[c] for c in children], tasks)


@given(spines(), st.lists(st.integers(0, 26), max_size=8), st.integers(1, 8), LAYERS, MULTIPLES, st.booleans())
@settings(max_examples=sampled(200), deadline=None)
def test_a_gang_that_has_lost_tasks_makes_its_multiples_whole_again(
    made: tuple[Any, dict[str, int]], runs: list[int], tasks: int, layers: dict[str, str], multiples: dict[str, int],
    freely: bool,
) -> None:  # fmt: skip
    tree_file, cpus = made
    left, nodes = dict(cpus), []
    for at in runs:
        node = list(cpus)[at % len(cpus)]
        if left[node]:
            left[node] -= 1
            nodes.append(node)
    job = waiting("job", [1] * (len(nodes) + tasks), topology={**layers, "multiples": multiples}, started=1.0)
    job["match_policy"] = "once-satisfied" if freely else "waiting-and-running"
    for task, node in zip(job["tasks"], nodes, strict=False):
        task |= {"status": "Running", "node": node}
    case = open_case(cluster_file(tree_file, cpus, [job]))
    found = allocate_by_gathering(Host(Context(case.snapshot, case.policy, case.now)), (0,), "allocate")
    tree, on = case.snapshot.once(tree_of), case.snapshot.tasks.node
    per_node = np.bincount(on[on != NONE], minlength=len(cpus)).astype(np.int64)
    free = case.snapshot.nodes.allocatable[:, 0] // 1000 - per_node
    held, own = tree.summed(per_node).tolist(), [1, multiples["block"], multiples["spine"], 1]
    takes = every_number(tree, np.minimum(free, tasks).tolist(), own, held)
    highest = {"block": 1, "spine": 2}.get(layers.get("required", ""), 3)
    outer = [v for v in range(tree.domains) if tree.tier[v] == highest and held[v] == len(nodes)]
    within = [v for v in range(len(tree.parent)) if any(inside(tree, v, top) for top in outer)]
    counts = [many for many in range(1, tasks + 1) if any(fits(tree, takes, own, v, many, held) for v in within)]
    expected = max(counts, default=0) if freely else tasks * (tasks in counts)
    bound = np.zeros(0, np.int64) if found is None else found.bound_node
    assert len(bound) == expected
    got = np.bincount(bound, minlength=len(free)).astype(np.int64)
    assert (got <= free).all()
    count = tree.summed(got).tolist()
    assert all(many == 0 or (many + held[v]) % own[tree.tier[v]] == 0 for v, many in enumerate(count))


def inside(tree: Tree, vertex: int, top: int) -> bool:
    while vertex not in (0, top):
        vertex = int(tree.parent[vertex])
    return vertex == top


def every_number(tree: Tree, slots: list[int], own: list[int], held: list[int]) -> Takes:
    """All numbers of tasks that each vertex can take, so that every domain in it that takes any has a multiple then."""
    takes: Takes = [set() for _ in tree.parent]
    for vertex in np.argsort(tree.tier, kind="stable").tolist():
        children = children_of(tree, vertex) if vertex < tree.domains else []
        sums = {0} if children else set(range(slots[vertex - tree.domains] + 1)) if vertex >= tree.domains else {0}
        for child in children:
            sums = {one + more for one in sums for more in takes[child]}
        takes[vertex] = {0} | {one for one in sums if (held[vertex] + one) % own[tree.tier[vertex]] == 0}
    return takes


def fits(tree: Tree, takes: Takes, own: list[int], vertex: int, tasks: int, held: list[int]) -> bool:
    """Whether a vertex can take all tasks, which are then in every vertex above it too."""
    if tasks not in takes[vertex]:
        return False
    while vertex != 0:
        vertex = int(tree.parent[vertex])
        if (held[vertex] + tasks) % own[tree.tier[vertex]]:
            return False
    return True


def climb(tree: Tree, takes: Takes, vertex: int) -> list[int]:
    """The most that a vertex and each one above it take: fewer is a closer fit."""
    way = [max(takes[vertex])]
    while vertex != 0:
        vertex = int(tree.parent[vertex])
        way.append(max(takes[vertex]))
    return way


def fewest(parts: Takes, tasks: int) -> int:
    """The fewest of some children that take all tasks together; 0 for a single node, which has none."""
    reached = {0: 0}
    for part in parts:
        for one, many in list(reached.items()):
            for more in part - {0}:
                reached[one + more] = min(many + 1, reached.get(one + more, many + 1))
    return reached[tasks] if parts else 0
