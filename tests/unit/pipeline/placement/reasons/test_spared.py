"""What other podgroups would have lost, and whether that makes enough room, against the same worked out plainly."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, frozen
from pipeline.cluster.resources import slots
from pipeline.cluster.rules.minimum import towards_all, whole_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.reasons.spared import _by_podgroup, _columns_of, _enough, _lost_instead
from tests.support.builders import Gang, Task, cluster
from tests.support.twins import uncompiled

NODES, SEEDS = 8, range(60)


def crowd(rng: np.random.Generator) -> Snapshot:
    """Podgroups of up to six tasks on eight nodes, some with roles or subgroups; many of the tasks are as important."""
    nodes = [{"cpu": 99, "memory": 99, "pods": 99, "gpu": 99}] * NODES
    return cluster(nodes, [_gang(rng) for _ in range(rng.integers(3, 9))])


def _gang(rng: np.random.Generator) -> Gang:
    roles, subgroups = [(), [1, 1]][rng.integers(0, 2)], [(), [(NONE, 1, NONE), (NONE, 2, NONE)]][rng.integers(0, 2)]
    tasks = [
        Task(
            int(rng.integers(0, NODES)), cpu=int(rng.integers(1, 4)), gpu=int(rng.integers(0, 2)),
            priority=int(rng.integers(0, 2)), created=float(rng.integers(0, 3)),
            role=int(rng.integers(0, 2)) if roles else NONE, subgroup=int(rng.integers(0, 2)) if subgroups else NONE,
        )
        for _ in range(rng.integers(1, 7))
    ]  # fmt: skip
    return Gang(tasks, int(rng.integers(1, len(tasks) + 1)), roles=roles, subgroups=subgroups)


def some_of(rng: np.random.Generator, snapshot: Snapshot, share: float = 0.2) -> Rows:
    return frozen(np.flatnonzero(rng.random(len(snapshot.tasks)) < share), np.int64)


@pytest.mark.parametrize("seed", SEEDS)
def test_victims_are_told_by_podgroup(seed: int) -> None:
    rng = np.random.default_rng(seed)
    snapshot, nodes = crowd(rng), (2, 6)
    victims, node = some_of(rng, snapshot), snapshot.tasks.node
    owner, told = snapshot.tasks.podgroup[victims], []
    for group in sorted(set(owner.tolist()), key=lambda group: (-(owner == group).sum(), group)):
        mine = victims[owner == group]
        here = sum(nodes[0] <= node[row] < nodes[1] for row in mine)
        safe = whole_without(snapshot, np.array([group]), victims)[0]
        told.append((group, safe, len(mine), len(mine) - here, np.inf if safe else here / len(mine)))
    asked = victims, nodes, snapshot.once(towards_all), _columns_of(snapshot.tasks)
    assert list(zip(*(one.tolist() for one in _by_podgroup(*asked)), strict=True)) == told
    with uncompiled():
        assert list(zip(*(one.tolist() for one in _by_podgroup.py_func(*asked)), strict=True)) == told


Lost = tuple[list[tuple[int, bool, list[int]]], int]


def plainly_lost(
    snapshot: Snapshot, victims: Rows, nodes: tuple[int, int], may: Bools, rank: Longs, most: int, everywhere: bool
) -> Lost:
    """What the podgroups lose instead of the victims, and how many podgroups there are."""
    tasks, told = snapshot.tasks, []
    mine: dict[int, list[int]] = {}
    for row in np.flatnonzero(may).tolist():
        if nodes[0] <= tasks.node[row] < nodes[1] and tasks.podgroup[row] not in tasks.podgroup[victims]:
            mine.setdefault(int(tasks.podgroup[row]), []).append(row)
    for group in sorted(mine, key=lambda one: -rank[one])[:most]:
        taken = sorted(mine[group], key=lambda row: (tasks.priority[row], -tasks.order[row]))[: len(victims)]
        safe = bool(whole_without(snapshot, np.array([group]), np.array(taken, np.int64))[0])
        breaks = np.flatnonzero(may & (tasks.podgroup == group)).tolist() if everywhere else mine[group]
        told.append((group, safe, sorted(taken) if safe else breaks))
    return told, len(mine)


def _lost(groups: Rows, safe: Bools, rows: Rows, start: Longs, found: int) -> Lost:
    sets = [one.tolist() for one in np.split(rows, start[1:-1])] if len(groups) else []
    return list(zip(groups.tolist(), safe.tolist(), sets, strict=True)), found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_important_podgroups_lose_as_many_tasks_as_the_victims_or_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    snapshot, nodes = crowd(rng), (2, 6)
    victims, may = some_of(rng, snapshot), frozen(rng.random(len(snapshot.tasks)) < 0.8, bool)
    rank, most, everywhere = rng.permutation(len(snapshot.podgroups)), 1 + seed % 4, seed % 3 == 0
    there, members = snapshot.occupancy, snapshot.members
    asked = (
        victims, nodes, (there.start, there.task), (members.start, members.task), may, rank, most, everywhere,
        snapshot.once(towards_all), _columns_of(snapshot.tasks),
    )  # fmt: skip
    told = plainly_lost(snapshot, victims, nodes, may, rank, most, everywhere)
    assert _lost(*_lost_instead(*asked)) == told
    with uncompiled():
        assert _lost(*_lost_instead.py_func(*asked)) == told


@pytest.mark.parametrize("seed", SEEDS)
def test_sets_of_tasks_make_enough_room_where_slots_add_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    snapshot, (first, stop) = crowd(rng), (2, 6)
    tasks, held, kinds = snapshot.tasks, snapshot.shapes.request, 1 + seed % 2
    request, wanted = rng.integers(1, 4, (kinds, held.shape[1])), rng.integers(1, 4, kinds)
    room, allowed = frozen(rng.integers(-1, 9, (NODES, held.shape[1])), np.int64), rng.random((kinds, NODES)) < 0.8
    sets, told = [some_of(rng, snapshot, 0.3) for _ in range(5)], []
    for some in sets:
        left = room.copy()
        np.add.at(left, tasks.node[some], held[tasks.shape[some]])
        there = [(slots(request[one], left) * allowed[one])[first:stop].sum() for one in range(kinds)]
        told.append(all(there >= wanted))
    rows, start = np.concatenate(sets), np.cumsum([0, *map(len, sets)])
    asked = rows, start, _columns_of(snapshot.tasks), held, (first, stop), room, request, wanted, allowed
    assert _enough(*asked).tolist() == told
    with uncompiled():
        assert _enough.py_func(*asked).tolist() == told
