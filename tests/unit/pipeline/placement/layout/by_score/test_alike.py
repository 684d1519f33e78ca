"""Tasks alike are placed in one pass as they are one by one."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.benchmarks.figures import attempt_on
from actors.fleets.generated import GangSpec, GeneratedFleet, generate
from actors.fleets.mixed import with_anti_affinity, with_cards
from pipeline.cluster.arrays import NONE, frozen, with_rows
from pipeline.cluster.resources import fits
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import SUCCEEDED, TERMINATING
from pipeline.placement.layout.by_score.alike import placed_in_turn
from pipeline.placement.layout.by_score.scored import ScoredPlacement
from pipeline.propose import host_of
from pipeline.records import replace
from tests.support.repelling import repelling_itself

ZONE = "zone"


def half_empty(snapshot: Snapshot, seed: int) -> Snapshot:
    """The fleet after half of its tasks have ended, and with some that are ending."""
    tasks, draw = snapshot.tasks, np.random.default_rng(seed)
    runs = draw.permutation(np.flatnonzero(tasks.node != NONE))
    gone, ending = runs[: len(runs) // 2], runs[len(runs) // 2 : len(runs) // 2 + len(runs) // 8]
    status = with_rows(with_rows(tasks.status, gone, SUCCEEDED), ending, TERMINATING)
    left = {"node": with_rows(tasks.node, gone, NONE), "card": with_rows(tasks.card, gone, NONE)}
    return replace(snapshot, tasks=replace(tasks, status=status, **left))


def in_zones(fleet: GeneratedFleet) -> GeneratedFleet:
    """The fleet with nodes in eleven zones; five nodes are in none."""
    snapshot, nodes = fleet.snapshot, len(fleet.snapshot.nodes)
    zone = np.where(np.arange(nodes) < 5, NONE, np.arange(nodes) % 11)
    words = replace(snapshot.vocabulary, label_keys=(ZONE,), label_values=(tuple("abcdefghijk"),))
    labelled = replace(snapshot.nodes, labels=frozen(zone[:, None], np.int32))
    return GeneratedFleet(replace(snapshot, vocabulary=words, nodes=labelled), fleet.gang)


KINDS: dict[str, Callable[[GeneratedFleet], GeneratedFleet]] = {
    "plain": lambda fleet: fleet,
    "cards": partial(with_cards, gang=True),
    "repelled by others": partial(with_anti_affinity, gang=True),
    "repelling each other": repelling_itself,
    "repelling each other in zones": lambda fleet: repelling_itself(in_zones(fleet), ZONE),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_a_run_of_tasks_goes_where_its_tasks_go_one_by_one(kind: str, seed: int) -> None:
    fleet = KINDS[kind](generate(60, GangSpec(tasks=150, gpus=1 + seed % 3), seed=seed, queues=seed % 2 * 3))
    attempt = replace(attempt_on(fleet), snapshot=half_empty(fleet.snapshot, seed))
    rows = np.flatnonzero(attempt.snapshot.tasks.podgroup == fleet.gang)
    closest = None if seed < 3 else np.random.default_rng(seed).integers(0, 3, 60)
    together, apart = (ScoredPlacement(host_of(attempt), rows) for _ in range(2))
    for start, stop, first, last in ((0, 60, 0, 40), (10, 35, 40, 110), (0, 60, 110, 150)):
        saved = together.save()
        together.place(np.arange(first, last), start, stop, closest)  # undone, to be done again
        together.restore(saved)
        run = together.runs(np.arange(first, last))
        assert len(run) == 1
        found = together.place(run[0], start, stop, closest)
        assert found == sum(apart.place(np.array([task]), start, stop, closest) for task in range(first, last))
        assert (together.node == apart.node).all()
        assert (together.now == apart.now).all()
        assert (together.card == apart.card).all()
        assert (together.future == apart.future).all()
        assert together.score == apart.score


@pytest.mark.parametrize("seed", range(4))
def test_each_task_goes_to_the_best_node_that_takes_it(seed: int) -> None:
    fleet = generate(40, GangSpec(tasks=90, gpus=1 + seed), seed=seed)
    attempt = replace(attempt_on(fleet), snapshot=half_empty(fleet.snapshot, seed))
    host, snapshot = host_of(attempt), attempt.snapshot
    rows = np.flatnonzero(snapshot.tasks.podgroup == fleet.gang)
    placement, shape = ScoredPlacement(host, rows), int(snapshot.tasks.shape[rows[0]])
    placement.place(np.arange(len(rows)), 0, 40)
    future, request = snapshot.room.future.copy(), snapshot.shapes.request[shape]
    idle, every, open_to = np.minimum(snapshot.room.idle, future), np.arange(40), host.allowed(np.array([shape]))[0]
    for node, now in zip(placement.node.tolist(), placement.now.tolist(), strict=True):
        later, at_once = open_to & fits(request, future), open_to & fits(request, idle) & fits(request, future)
        if node == NONE:
            assert not later.any()
            continue
        score = host.node_score(shape, snapshot.nodes.allocatable - idle, every)
        pick = at_once if at_once.any() else later
        assert (node, now) == (int(np.where(pick, score, -np.inf).argmax()), bool(at_once.any()))
        future[node] -= request
        idle[node] -= request
    assert (placement.future == future).all()


def test_runs_end_where_the_next_task_is_another_one() -> None:
    fleet = generate(40, GangSpec(tasks=6), queues=0)
    shape = with_rows(fleet.snapshot.tasks.shape, np.flatnonzero(fleet.snapshot.tasks.podgroup == fleet.gang)[2:4], 9)
    snapshot = replace(fleet.snapshot, tasks=replace(fleet.snapshot.tasks, shape=shape))
    rows = np.flatnonzero(snapshot.tasks.podgroup == fleet.gang)
    placement = ScoredPlacement(host_of(replace(attempt_on(fleet), snapshot=snapshot)), rows)
    assert [run.tolist() for run in placement.runs(np.arange(6))] == [[0, 1], [2, 3], [4, 5]]
    assert placement.runs(np.arange(0)) == []


@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 4), st.randoms(use_true_random=False))
def test_the_kernel_says_what_its_python_twin_says(wanted: int, nodes: int, deepest: int, draw: object) -> None:
    rng = np.random.default_rng(hash(str(draw)) % (1 << 32))
    later = rng.integers(0, 4, nodes)
    now = np.minimum(later, rng.integers(0, 4, nodes))
    levels = rng.integers(0, 3, (max(deepest, 1), nodes)).astype(np.float64)
    columns = later, now, levels, rng.integers(0, 2, nodes)
    compiled, plain = placed_in_turn(wanted, *columns, 1.0), placed_in_turn.py_func(wanted, *columns, 1.0)
    assert (compiled[0] == plain[0]).all()
    assert (compiled[1] == plain[1]).all()
    assert compiled[2] == plain[2]
    assert (np.bincount(plain[0], minlength=nodes) <= later).all()
