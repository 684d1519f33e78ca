"""What the solver `scenarios` counts in kernels, against the same in plain Python."""

from itertools import groupby
from typing import Any

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.cards import best_card
from pipeline.cluster.counted.task_index import joined_runs
from pipeline.cluster.fairness.gate import Victims, may_take
from pipeline.cluster.rules.breaking import breaking
from pipeline.cluster.rules.minimum import whole_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING
from pipeline.plugins.fairshare.plugin import FairShare
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.solvers.scenarios.moves.places_in_turn import places_in_turn
from pipeline.solvers.scenarios.moves.rough_kinds import MoverKinds, RoughKinds
from pipeline.solvers.scenarios.returning import _gone, joined_by_gang
from pipeline.solvers.scenarios.units import VictimUnits, _units_within
from tests.support.brute_force import attempt_of, crowded
from tests.support.depth import sampled
from tests.support.every_scenario import contended

SEEDS = range(sampled(60))


def some_running(snapshot: Snapshot, rng: np.random.Generator) -> Rows:
    running = np.flatnonzero(snapshot.tasks.status == RUNNING)
    return np.sort(rng.permutation(running)[: rng.integers(0, len(running) + 1)])


@pytest.mark.parametrize("seed", SEEDS)
def test_podgroups_that_break_are_counted_by_class(seed: int) -> None:
    rng = np.random.default_rng(seed)
    snapshot = attempt_of(crowded(seed, Purpose.PREEMPT), Purpose.PREEMPT).snapshot
    sets, class_of = [some_running(snapshot, rng) for _ in range(3)], rng.integers(0, 3, len(snapshot.podgroups))
    expected = []
    for rows in sets:
        owners = np.unique(snapshot.tasks.podgroup[rows]).astype(np.int64)
        broken = owners[~whole_without(snapshot, owners, rows)]
        expected.append([int((class_of[broken] == one).sum()) for one in range(3)])
    share = rng.random(len(snapshot.shapes))
    counted, held = breaking(snapshot, sets, class_of, 3, share)
    assert counted.tolist() == expected
    assert held == pytest.approx([share[snapshot.tasks.shape[rows]].sum() for rows in sets])


def units(rng: np.random.Generator) -> VictimUnits:
    """Units of one to three tasks; a podgroup may have several, and one of them may be all that is left of it."""
    podgroup = rng.integers(0, 4, rng.integers(1, 9))
    start = np.append(0, np.cumsum(rng.integers(1, 4, len(podgroup))))
    whole = (rng.random(4) < 0.5)[podgroup] & (
        np.arange(len(podgroup)) == [max(np.flatnonzero(podgroup == one)) for one in podgroup]
    )
    return VictimUnits(rng.permutation(int(start[-1])), start, podgroup, whole, np.arange(len(podgroup)))


def listed(some: VictimUnits) -> list[tuple[list[int], int, bool, int]]:
    spans = zip(some.start[:-1].tolist(), some.start[1:].tolist(), strict=True)
    columns = some.podgroup.tolist(), some.whole.tolist(), some.turn.tolist()
    return [(some.rows[slice(*span)].tolist(), *rest) for span, *rest in zip(spans, *columns, strict=True)]


@pytest.mark.parametrize("seed", SEEDS)
def test_units_of_a_podgroup_that_goes_whole_are_joined_at_the_place_of_the_last(seed: int) -> None:
    given = units(np.random.default_rng(seed))
    falls = set(given.podgroup[given.whole].tolist())
    joined: dict[Any, Any] = {}
    for at, (rows, podgroup, _, turn) in enumerate(listed(given)):
        key = podgroup if podgroup in falls else (at,)
        before = joined.pop(key, ([], 0, False, 0))  # behind all others: the last unit gives the place
        joined[key] = (before[0] + rows, podgroup, podgroup in falls, turn)
    assert listed(joined_by_gang(given)) == list(joined.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_runs_are_put_in_another_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = units(rng)
    order = rng.permutation(len(given))
    runs = [given.rows[given.start[one] : given.start[one + 1]].tolist() for one in order.tolist()]
    for function in (joined_runs, joined_runs.py_func):
        rows, start = function(given.rows, given.start, order)
        assert rows.tolist() == [row for run in runs for row in run]
        assert start.tolist() == np.cumsum([0, *map(len, runs)]).tolist()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("spreads", [False, True])
@pytest.mark.parametrize("stays_first", [False, True])
def test_of_each_turn_those_stay_that_fit_and_others_take_the_fullest_node_on_which_the_rest_may_stay(
    seed: int, spreads: bool, stays_first: bool
) -> None:
    rng = np.random.default_rng(seed)
    kind, request = rng.integers(0, 3, 12), rng.integers(0, 4, (3, 2)) + np.array([0, 1])
    allowed, left, on_card = rng.random((3, 6)) < 0.7, rng.integers(0, 8, (6, 4)), np.array([0, 1, 2])
    turn, here = np.sort(rng.integers(0, 4, 12)), np.full((2, 12), NONE)
    if stays_first:
        here = np.array([rng.integers(0, 6, 12), np.where(on_card[kind] > 0, rng.integers(0, 2, 12), NONE)])
    expected = placed_in_words(turn, here, kind, request, on_card, allowed, spreads, left.copy())
    kinds = MoverKinds(request, on_card, np.arange(len(request)), allowed)
    least = MoverKinds(request.min(axis=0)[None], np.array([on_card.min()]), np.array([0]), allowed.any(axis=0)[None])
    own = RoughKinds(kinds, np.arange(len(request)), np.ones(len(request), bool))
    for rough in (own, RoughKinds(least, np.zeros(len(request), np.int64), np.zeros(1, bool))):
        for function in (places_in_turn, places_in_turn.py_func):
            found = function(turn, here, kind, kinds, rough, spreads, left.copy(), 1, 6)
            assert list(zip(*found.tolist(), strict=True)) == expected


def placed_in_words(
    turn: Any, here: Any, kind: Any, request: Any, on_card: Any, allowed: Any, spreads: bool, left: Any
) -> list[tuple[int, int]]:
    """The same, one task after the other, on the nodes from 1 to 5."""
    found, room, cards = [(NONE, NONE)] * len(kind), left[:, :2], left[:, 2:].tolist()

    def fits(task: int, node: int) -> bool:
        asks = request[kind[task]]
        return bool(1 <= node < 6 and allowed[kind[task], node] and ((asks <= room[node]) | (asks == 0)).all())

    def take(task: int, node: int, card: int) -> None:
        found[task], room[node] = (node, card), room[node] - request[kind[task]]
        if card != NONE:
            cards[node][card] -= int(on_card[kind[task]])

    waiting = list(range(len(kind)))
    while waiting:
        mine = [task for task in waiting if turn[task] == turn[waiting[0]]]
        for task in mine:
            node, card = here[:, task].tolist()
            if fits(task, node) and (card == NONE or cards[node][card] >= on_card[kind[task]]):
                take(task, node, card)
                waiting.remove(task)
        for task in [task for task in mine if task in waiting]:
            waiting.remove(task)
            beside = room.astype(float).copy()
            for other in waiting:
                if here[0, other] != NONE:
                    beside[here[0, other]] -= request[kind[other]]
            asks, part = request[kind[task]], int(on_card[kind[task]])
            nodes = [n for n in range(1, 6) if fits(task, n) and max(cards[n]) >= part]
            share = {n: (beside[n][asks > 0] / asks[asks > 0]).min() for n in nodes}
            order = sorted(nodes, key=lambda n: (share[n] < 1, share[n] if share[n] >= 1 else -share[n], n))
            if order:
                take(task, order[0], best_card(part, cards[order[0]], spreads))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_victims_are_judged_by_queue_the_least_important_and_youngest_podgroup_first(seed: int) -> None:
    """Of each podgroup the surplus goes task by task, then the rest at once."""
    attempt = attempt_of(contended(seed), Purpose.RECLAIM)
    snapshot, host, rng = attempt.snapshot, host_of(attempt), np.random.default_rng(seed)
    preemptor = Preemptor(attempt.podgroups, rng.integers(0, 3, len(snapshot.capacity)), attempt.purpose)
    fairshare = next(plugin for plugin in map(host._plugin, range(8)) if isinstance(plugin, FairShare))
    rows, tasks, groups = some_running(snapshot, rng), snapshot.tasks, snapshot.podgroups
    asks = snapshot.shapes.request[tasks.shape].astype(np.float64)
    asks[:, 2] = 0.0
    owners = sorted(
        set(tasks.podgroup[rows].tolist()),
        key=lambda row: (groups.queue[row], groups.priority[row], -groups.order[row]),
    )
    queues, start, held = list[int](), [0], list[Any]()
    for queue, some in groupby(owners, key=lambda row: int(groups.queue[row])):
        for row in some:
            mine = sorted(rows[tasks.podgroup[rows] == row].tolist(), key=lambda task: tasks.order[task])
            least = max(0, int(groups.min_available[row]))
            held += [asks[task] for task in mine[least:]] + ([asks[mine[:least]].sum(axis=0)] if least else [])
        queues.append(queue)
        start.append(len(held))
    given = Victims(np.array(queues, np.int64), np.array(start), np.array(held).reshape(-1, asks.shape[1]))
    shares, (queue, preemptible) = fairshare._queue_shares, fairshare._asker(preemptor)
    asked = preemptor.request.astype(np.float64)
    expected = may_take(shares, queue, asked, preemptible, given, 1.0)
    assert fairshare.validate_set(preemptor, rows) is bool(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_surplus_goes_task_by_task_and_the_rest_of_a_podgroup_only_if_all_of_it_may(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 6, 4)
    owner = np.repeat(np.arange(4), size)
    running = (size + (rng.random(4) < 0.3)).astype(np.int32)
    least, reached = rng.integers(0, 6, 4).astype(np.int32), rng.random(4) < 0.7
    rows, expected = rng.permutation(len(owner)), list[tuple[list[int], int, bool]]()
    for group in range(4):
        mine = rows[owner == group].tolist()
        spare = max(running[group] - least[group], 0) if reached[group] else 0
        expected += [([one], group, False) for one in mine[:spare]]
        if len(mine) == running[group] and mine[spare:]:
            expected.append((mine[spare:], group, True))
    surplus = np.concatenate([np.arange(size[group]) < (running - least)[group] * reached[group] for group in range(4)])
    columns = _units_within(rows, owner, surplus, running)
    found = listed(VictimUnits(*columns, np.arange(len(columns[-1]))))
    assert [unit[:3] for unit in found] == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_what_does_not_come_back_is_told_once_for_orders_that_leave_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    some = units(rng)
    back = rng.random((6, len(some))) < 0.6
    rows, stop, answer = _gone(some.rows, some.start, back)
    left = [mine.tolist() for mine in np.split(rows, stop[:-1])]
    assert [left[at] for at in answer.tolist()] == [sorted(some.rows_of(~one).tolist()) for one in back]
    assert len(left) == len({one.tobytes() for one in back})
