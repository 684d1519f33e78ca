"""What podgroups need is what plain Python finds that they need, task by task."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING
from pipeline.decision.decided import carried_out
from pipeline.decision.statement import statement, taking_back
from pipeline.placement.kinds import podgroup_kind
from pipeline.placement.need import need_of
from tests.support.builders import Gang, Task, cluster
from tests.support.depth import sampled

SEEDS = sampled(150)


def drawn(seed: int) -> Snapshot:
    """Podgroups with and without roles; tasks that run, wait, are promised a node or are gated."""
    rng = np.random.default_rng(seed)
    gangs = []
    for _ in range(rng.integers(1, 6)):
        roles = rng.integers(0, 3, rng.integers(0, 3)).tolist()
        tasks = [
            Task(rng.choice([0, NONE, NONE]), cpu=rng.integers(1, 4), role=rng.integers(-1, len(roles)),
                 priority=rng.integers(0, 2), created=rng.integers(0, 3))
            for _ in range(rng.integers(0, 8))
        ]  # fmt: skip
        gangs.append(Gang(tasks, rng.integers(0, 7), roles=roles))
    state = cluster([{}], gangs)
    tasks, many = state.tasks, len(state.tasks)
    promised = (tasks.status == PENDING) & (rng.random(many) < 0.2)
    return replace(
        state,
        tasks=replace(
            tasks,
            nominated=frozen(np.where(promised, 0, NONE), np.int32),
            gated=frozen(rng.random(many) < 0.2, bool),
            index=frozen(rng.integers(-1, 4, many), np.int32),
        ),
    )


def waiting(state: Snapshot, podgroup: int) -> list[int]:
    tasks = state.tasks
    waits = (tasks.podgroup == podgroup) & (tasks.status == PENDING) & (tasks.nominated == NONE) & ~tasks.gated
    return np.flatnonzero(waits).tolist()


def have(state: Snapshot, owner: np.ndarray, row: int) -> int:
    tasks = state.tasks
    counts = np.isin(tasks.status, (BOUND, RUNNING)) | ((tasks.status == PENDING) & (tasks.nominated != NONE))
    return int((counts & (owner == row)).sum())


def leading(state: Snapshot, podgroup: int, rows: list[int]) -> tuple[set[int], int]:
    """Those of the waiting tasks that make a podgroup whole, and how many it lacks then."""
    chosen, lacking = set[int](), 0
    roles = np.flatnonzero(state.roles.podgroup == podgroup).tolist()
    least = state.podgroups.min_available[podgroup]
    if least >= state.roles.min_available[roles].sum():
        for role in roles:
            short = max(0, int(state.roles.min_available[role]) - have(state, state.tasks.role, role))
            mine = [row for row in rows if state.tasks.role[row] == role][:short]
            chosen.update(mine)
            lacking += short - len(mine)
    missing = max(0, int(least) - have(state, state.tasks.podgroup, podgroup) - len(chosen))
    rest = [row for row in rows if row not in chosen][:missing]
    return chosen.union(rest), max(lacking, missing - len(rest))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_tasks_of_several_podgroups_are_found_as_those_of_each(seed: int) -> None:
    state, rng = drawn(seed), np.random.default_rng(seed)
    some = rng.permutation(len(state.podgroups))[: rng.integers(0, len(state.podgroups) + 1)]
    for found, each in (
        (state.tasks_of_all(some), [state.tasks_of(row).tolist() for row in some]),
        (state.waiting_of(some), [waiting(state, row) for row in some]),
    ):
        assert [found[0].dtype, found[1].dtype] == [np.int64, np.int64]
        assert found[0].tolist() == [row for rows in each for row in rows]
        assert found[1].tolist() == np.cumsum([0, *map(len, each)]).tolist()
    assert [state.pending(row).tolist() for row in some] == [waiting(state, row) for row in some]


@pytest.mark.parametrize("surplus", [True, False])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_need_of_podgroups_is_what_each_lacks_in_the_order_of_tasks(seed: int, *, surplus: bool) -> None:
    state, rng = drawn(seed), np.random.default_rng(seed)
    tasks, units = state.tasks, rng.permutation(len(state.podgroups))[: rng.integers(1, 4)].tolist()
    leads, others, short, part_of = list[int](), list[int](), 0, dict[int, int]()
    for part, podgroup in enumerate(units):
        rows = waiting(state, podgroup)
        rows.sort(key=lambda row: (-tasks.priority[row], tasks.index[row] == NONE, tasks.index[row], tasks.order[row]))
        chosen, lacking = leading(state, podgroup, rows)
        leads += [row for row in rows if row in chosen]
        others += [row for row in rows if row not in chosen and surplus]
        short += lacking
        part_of.update(dict.fromkeys(rows, part))
    need, every = need_of(state, units, surplus=surplus), leads + others
    shapes = list(dict.fromkeys(tasks.shape[every].tolist()))
    assert need.tasks.tolist() == every
    assert (need.minimum, need.short) == (len(leads), short)
    assert need.shapes.tolist() == shapes
    assert need.shapes[need.shape].tolist() == tasks.shape[every].tolist()
    assert need.count.tolist() == [tasks.shape[leads].tolist().count(shape) for shape in shapes]
    assert need.total.tolist() == state.shapes.request[tasks.shape[leads]].sum(axis=0).tolist()
    assert need.part.tolist() == [part_of[row] for row in every]
    assert (need.shape.dtype, need.part.dtype, need.count.dtype) == (np.int32, np.int32, np.int64)


def told(state: Snapshot) -> list[object]:
    """What is known of each podgroup."""
    rows = range(len(state.podgroups))
    needs = [need_of(state, (row,), surplus=surplus) for row in rows for surplus in (True, False)]
    columns = [(one.tasks.tolist(), one.minimum, one.short, one.count.tolist()) for one in needs]
    return [columns, [podgroup_kind(state, (row,)) for row in rows], [state.pending(row).tolist() for row in rows]]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_known_of_podgroups_since_before_some_decisions_is_what_is_found_anew(seed: int) -> None:
    begun, rng = drawn(seed), np.random.default_rng(seed)
    for _ in range(2):  # the second time another cycle has asked about states after the same news
        state = begun
        for _ in range(4):
            ways, tasks = rng.random(len(state.tasks)), state.tasks
            waits, holds = tasks.waits(slice(None), promised=False), np.isin(tasks.status, (BOUND, RUNNING))
            bound, promised = np.flatnonzero(waits & (ways < 0.1)), np.flatnonzero(waits & (ways > 0.9))
            made = statement(
                "preempt", evictions=np.flatnonzero(holds & (ways < 0.2)),
                bound=bound, bound_node=np.zeros_like(bound), bound_card=np.full_like(bound, NONE),
                nominated=promised, nominated_node=np.zeros_like(promised), nominated_card=np.full_like(promised, NONE),
            )  # fmt: skip
            withdrawn = np.flatnonzero((tasks.nominated != NONE) & (ways > 0.4) & (ways < 0.7))
            state = carried_out(taking_back(made, withdrawn), state, 0.0)
            assert told(state) == told(replace(state))
