"""What holds of the solver `scenarios` on any small cluster, beside a search of all sets of victims."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations, product

import numpy as np
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan
from pipeline.placement.feasibility import feasible
from pipeline.placement.room.counted_need import CountedNeed
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import Purpose
from pipeline.propose import propose
from pipeline.solvers.scenarios.accumulating import Scenario
from pipeline.solvers.scenarios.asking import asked_for
from pipeline.solvers.scenarios.law import Law
from pipeline.solvers.scenarios.proof import breaks_least
from pipeline.solvers.scenarios.slices.node_slice import NodeSlice
from pipeline.solvers.scenarios.units import victim_units
from tests.support.builders import Gang, Task, cluster
from tests.support.scenarios import SCENARIOS

NODES = 3
running = st.builds(Task, node=st.integers(0, NODES - 1), gpu=st.integers(1, 3))
low = st.builds(
    Gang, st.lists(running, min_size=1, max_size=3), minimum=st.integers(1, 3), priority=st.integers(0, 2)
)  # fmt: skip


few = st.builds(Gang, st.lists(running, min_size=1, max_size=2), minimum=st.integers(1, 2), priority=st.integers(0, 2))


@st.composite
def clusters(draw: st.DrawFn, running: st.SearchStrategy[Gang] = low, most: int = 3) -> Snapshot:
    """Up to three running podgroups on three nodes, or as many as given, and one that waits for tasks of one size."""
    gangs = [replace(one, minimum=min(one.minimum, len(one.tasks))) for one in draw(st.lists(running, max_size=most))]
    used = np.bincount([task.node for one in gangs for task in one.tasks], minlength=NODES) * 0
    for task in (task for one in gangs for task in one.tasks):
        used[task.node] += task.gpu
    free = draw(st.lists(st.integers(0, 2), min_size=NODES, max_size=NODES))
    many, size = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    waiting = Gang([Task(gpu=size)] * many, draw(st.integers(1, many)), priority=draw(st.integers(1, 3)))
    nodes = [{"gpu": int(held) + more} for held, more in zip(used, free, strict=True)]
    return cluster(nodes, [*gangs, waiting])


def asking(state: Snapshot, purpose: Purpose, action: str) -> Attempt:
    return Attempt(state, SCENARIOS, purpose, (len(state.podgroups) - 1,), None, 0.0, action)


def sets_of_victims(state: Snapshot, candidates: list[int]) -> Iterator[tuple[int, ...]]:
    """Sets of tasks after which every podgroup has its minimum, or nothing left."""
    for rows in chain.from_iterable(combinations(candidates, size) for size in range(len(candidates) + 1)):
        if all(kept(state, rows, group) for group in set(state.tasks.podgroup[list(rows)].tolist())):
            yield rows


def kept(state: Snapshot, rows: tuple[int, ...], group: int) -> bool:
    after = WhatIf.of(state).evicting(np.array(rows, np.int64))
    gone = np.isin(state.tasks_of(group), rows) | (state.tasks.status[state.tasks_of(group)] != RUNNING)
    return bool(gone.all()) or has_minimum(after, group)


def slots(state: Snapshot, rows: tuple[int, ...], size: int) -> int:
    room = state.room.future[:, -1].copy()
    for row in rows:
        room[state.tasks.node[row]] += state.shapes.request[state.tasks.shape[row], -1]
    return int((room // size).sum())


@given(clusters())
def test_preempt_finds_room_wherever_there_is_any_and_takes_no_task_that_is_not_needed(state: Snapshot) -> None:
    waiting, host = len(state.podgroups) - 1, Host(Context(state, SCENARIOS, 0.0))
    lower = state.podgroups.priority < state.podgroups.priority[waiting]
    candidates = np.flatnonzero((state.tasks.status == RUNNING) & lower[state.tasks.podgroup]).tolist()
    need = asked_for(host, (waiting,))
    size, count = int(need.request[0, -1]), need.minimum
    working = {rows for rows in sets_of_victims(state, candidates) if slots(state, rows, size) >= count}
    found = propose(asking(state, Purpose.PREEMPT, "preempt"), host)
    assert isinstance(found, NoPlan) == (not working or not candidates)  # room that is there is for `allocate`
    if not isinstance(found, NoPlan):
        made = found.statement
        assert feasible(state, made)
        rows = tuple(made.evictions.tolist())
        assert slots(state, rows, size) >= count
        after = WhatIf.of(state).evicting(made.evictions).nominating(made.nominated, made.nominated_node)
        for group in np.unique(state.tasks.podgroup[made.evictions]).tolist():
            lost = set(state.tasks_of(group).tolist()) <= set(rows) - set(made.moved.tolist())
            assert lost or has_minimum(after, group, NONE, made.evictions[:0])
        assert not any(set(fewer) < set(rows) for fewer in working)


@given(clusters())
def test_consolidation_takes_no_place_and_moves_no_task_for_nothing(state: Snapshot) -> None:
    waiting, host = len(state.podgroups) - 1, Host(Context(state, SCENARIOS, 0.0))
    found = propose(asking(state, Purpose.CONSOLIDATE, "consolidation"), host)
    if isinstance(found, NoPlan):
        return
    made, need = found.statement, asked_for(host, (waiting,))
    assert feasible(state, made)
    assert made.moved.tolist() == made.evictions.tolist()
    if slots(state, (), int(need.request[0, -1])) >= need.minimum:
        assert len(made.moved) == 0


@given(clusters())
def test_consolidation_finds_a_single_move_wherever_there_is_one(state: Snapshot) -> None:
    waiting, host = len(state.podgroups) - 1, Host(Context(state, SCENARIOS, 0.0))
    need = asked_for(host, (waiting,))
    size, count = int(need.request[0, -1]), need.minimum
    found = propose(asking(state, Purpose.CONSOLIDATE, "consolidation"), host)
    others = np.flatnonzero(state.tasks.status == RUNNING).tolist()
    room = state.room.future[:, -1]
    for row, node in product(others, range(NODES)):
        held = int(state.shapes.request[state.tasks.shape[row], -1])
        left = room.copy()
        left[state.tasks.node[row]] += held
        left[node] -= held
        if node != state.tasks.node[row] and left.min() >= 0 and (left // size).sum() >= count:
            assert not isinstance(found, NoPlan)
            return


#: The important podgroup and one of the two others are enough.
ONE_TOO_MANY = cluster([{"gpu": 6}], [
    Gang([Task(0, gpu=4)], priority=2), Gang([Task(0, gpu=1)], priority=1), Gang([Task(0, gpu=1)], priority=1),
    Gang([Task(gpu=1)] * 5, 5, priority=3),
])  # fmt: skip


@settings(max_examples=100)  # fewer miss faults that are known
@given(clusters(few, 6))
@example(ONE_TOO_MANY)
def test_what_is_said_to_break_least_does(state: Snapshot) -> None:
    waiting, host = len(state.podgroups) - 1, Host(Context(state, SCENARIOS, 0.0))
    need = asked_for(host, (waiting,))
    law = Law(host, Preemptor((waiting,), need.total, Purpose.PREEMPT))
    units, size = victim_units(host, law.preemptor), int(need.request[0, -1])
    ground = NodeSlice(CountedNeed(state, need, host.allowed(need.shapes), units.rows), NONE, 0, NODES)
    sets = sets_of_victims(state, sorted(units.rows.tolist()))
    losses = {broken_by(state, rows) for rows in sets if slots(state, rows, size) >= need.minimum}
    said = {loss: len(units) > 0 and breaks_least(Scenario(ground, law, units), loss) for loss in losses}
    assert [loss for loss, least in said.items() if least] in ([], [min(losses, default=())])
    event(f"proved: {any(said.values())}")


def broken_by(state: Snapshot, rows: tuple[int, ...]) -> tuple[int, ...]:
    """How many podgroups fall below their minima, by priority, the highest first."""
    after, priorities = WhatIf.of(state).evicting(np.array(rows, np.int64)), np.unique(state.podgroups.priority)[::-1]
    groups = np.unique(state.tasks.podgroup[list(rows)]).tolist()
    broken = [state.podgroups.priority[group] for group in groups if not has_minimum(after, group)]
    return tuple(broken.count(priority) for priority in priorities)
