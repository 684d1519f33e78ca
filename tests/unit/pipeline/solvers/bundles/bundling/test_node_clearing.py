"""Nodes in the order of what it costs to clear them, against plain Python."""

from collections import Counter

import numpy as np
import pytest

from pipeline.cluster.tables import RUNNING
from pipeline.decision.price import in_units, needed_by
from pipeline.placement.need import need_of
from pipeline.solvers.bundles.bundling.node_clearing import node_rank, takes_whole_nodes
from tests.support.placing import Work, placed
from tests.support.twins import uncompiled


def fleet(seed):
    """Some nodes of four, a gang that asks for whole ones, and podgroups all over them."""
    rng = np.random.default_rng(seed)
    nodes, many = int(rng.integers(3, 9)), int(rng.integers(2, 7))
    work = [Work(0, cpu=4)] * 2
    for node in range(nodes):
        work += [Work(int(rng.integers(1, many + 1)), cpu=int(rng.integers(0, 3)), node=node) for _ in range(2)]
    running = Counter(one.group for one in work)
    groups = [{"min_available": 2}]
    for group in range(1, many + 1):
        minimum = max(1, running[group] - int(rng.integers(0, 2)))
        groups.append({"min_available": minimum, "priority": int(rng.integers(0, 3))})
    return placed([4] * nodes, work, groups=groups)


def plain(snapshot, need, candidate, lost_work, policy):
    """For each podgroup the rank of its cheapest node, by a sort of tuples."""
    tasks, groups, counts = snapshot.tasks, snapshot.podgroups, snapshot.counts
    nodes, unit = len(snapshot.nodes), in_units(snapshot.shapes.request, needed_by(need.total))
    rows = [t for t in np.flatnonzero(candidate).tolist() if unit[tasks.shape[t]] > 0]
    levels = sorted(set(policy.tolist()), reverse=True)

    def cost(node):
        here = [(t, int(tasks.podgroup[t])) for t in rows if tasks.node[t] == node]
        rigid = [g for _, g in here if groups.min_available[g] > 1 and counts.ready[g] == groups.min_available[g]]
        work = sum(unit[tasks.shape[t]] * lost_work[g] for t, g in here)
        by_level = [sum(policy[g] == level for _, g in here) for level in levels]
        return round(sum(1 / counts.running[g] for g in rigid), 9), *by_level, round(work, 9), node

    rank = {node: at for at, node in enumerate(sorted(range(nodes), key=cost))}
    return [
        min((rank[int(tasks.node[t])] for t in rows if tasks.podgroup[t] == g), default=nodes)
        for g in range(len(groups))
    ]


def asked(seed):
    snapshot = fleet(seed)
    rng = np.random.default_rng(seed + 1_000)
    candidate = (snapshot.tasks.status == RUNNING) & (rng.random(len(snapshot.tasks)) < 0.8)
    lost = rng.integers(1, 4, len(snapshot.podgroups)).astype(float)
    return snapshot, need_of(snapshot, (0,)), candidate, lost, snapshot.podgroups.priority.astype(np.int64)


def by_entry(snapshot, need, candidate, *said):
    return node_rank(snapshot, need, candidate[snapshot.occupancy.task], *said).tolist()


@pytest.mark.parametrize("seed", range(40))
def test_each_podgroup_has_the_rank_of_its_cheapest_node(seed):
    said = asked(seed)
    assert by_entry(*said) == plain(*said)


def test_the_compiled_kernels_and_their_plain_twins_agree():
    compiled = [by_entry(*asked(seed)) for seed in range(5)]
    with uncompiled():
        assert [by_entry(*asked(seed)) for seed in range(5)] == compiled


@pytest.mark.parametrize(("capacity", "whole"), [(4, True), (7, True), (8, False)])
def test_a_gang_takes_whole_nodes_if_none_of_them_has_room_for_two_of_its_tasks(capacity, whole):
    snapshot = placed([4, capacity], [Work(0, cpu=4)] * 2, groups=[{"min_available": 2}])
    need = need_of(snapshot, (0,))
    assert takes_whole_nodes(snapshot, need, np.ones((1, 2), bool)) is whole
