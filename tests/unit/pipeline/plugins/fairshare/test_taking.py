"""The units of victims that a queue takes one after the other, against the same put together podgroup by podgroup."""

from itertools import chain, groupby, pairwise
from typing import Any

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.fairness.gate import QueueShares, Victims, may_take
from pipeline.cluster.resources import PODS
from pipeline.plugins.fairshare.taking import _Columns, _units, may_take_each

#: Queue of each podgroup, and its subgroups.
QUEUE, PARTS = (2, 1, 2, 1), ((0, 1), (), (2,), (3, 4))


def columns_of(rng: np.random.Generator) -> _Columns:
    """Twenty tasks of four podgroups, in any order, some of them in subgroups."""
    podgroup = rng.integers(0, 4, 20).astype(np.int32)
    part = np.array([rng.choice((NONE, *PARTS[group])) for group in podgroup], np.int32)
    turn = np.empty(4, np.int64)
    turn[np.lexsort((rng.permutation(4), QUEUE))] = np.arange(4)
    return _Columns(
        turn, rng.permutation(20), podgroup, part, np.array(QUEUE, np.int32), rng.integers(0, 3, 20).astype(np.int32),
        rng.integers(0, 4, (3, 4)), rng.integers(0, 5, 4).astype(np.int32), np.array([0, 2, 2, 3, 5]),
        rng.integers(0, 3, 5).astype(np.int32),
    )  # fmt: skip


def in_turn(columns: _Columns, rows: Rows) -> list[int]:
    """Podgroup by podgroup, and the tasks of each by their order."""
    return sorted(rows.tolist(), key=lambda row: (columns.turn[columns.podgroup[row]], columns.order[row]))


def plainly(columns: _Columns, rows: Rows) -> dict[int, list[list[float]]]:
    """Queue → what each unit holds: a task that no minimum needs, or all that the minima of a podgroup need."""
    found: dict[int, list[list[float]]] = {}
    for group, mine in groupby(in_turn(columns, rows), key=lambda row: int(columns.podgroup[row])):
        tasks = list(mine)
        core = {row for part in PARTS[group] for row in [t for t in tasks if columns.subgroup[t] == part]
                [: columns.part_least[part]]}  # fmt: skip
        others = [row for row in tasks if row not in core]
        core.update(others[: max(columns.least[group] - len(core), 0)])
        units = [[row] for row in tasks if row not in core] + ([sorted(core)] if core else [])
        found.setdefault(QUEUE[group], []).extend(held(columns, unit) for unit in units)
    return found


def held(columns: _Columns, unit: list[int]) -> list[float]:
    amounts = columns.request[columns.shape[unit]].sum(axis=0).astype(float)
    amounts[PODS] = 0.0
    return amounts.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_what_a_podgroup_can_spare_goes_task_by_task_and_what_its_minima_need_at_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns, rows = columns_of(rng), rng.permutation(20)[: rng.integers(0, 21)]
    queues, start, units = _units(np.array(in_turn(columns, rows), np.int64), columns)
    told = {int(queue): units[a:b].tolist() for queue, (a, b) in zip(queues, pairwise(start), strict=True)}
    assert told == plainly(columns, rows)
    assert len(queues) == len(told)


@pytest.mark.parametrize("seed", range(60))
def test_each_set_is_taken_or_not_as_its_units_say_in_whatever_order_its_tasks_are_named(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns, sets = columns_of(rng), [rng.permutation(20)[: rng.integers(1, 8)] for _ in range(6)]
    # Only of the first resource there is a bound, and they hold little more: so their order decides.
    bound = np.full((3, 4), np.inf)
    bound[1:, 0] = rng.integers(2, 9, 2)
    held, request = np.where(np.isinf(bound), 9.0, bound + rng.integers(1, 9, (3, 1))), np.ones(4)
    shares = QueueShares(np.full(3, NONE, np.int32), bound, bound, bound, held, np.zeros((3, 4)))

    def may(rows: Rows) -> Any:
        units = plainly(columns, rows)
        start = np.cumsum([0, *map(len, units.values())]).astype(np.int64)
        victims = Victims(np.array(list(units), np.int64), start, np.array([*chain(*units.values())]))
        return may_take(shares, 0, request, True, victims, 1.0)

    rows, ends = np.concatenate(sets), np.cumsum([0, *map(len, sets)])
    found = may_take_each(tuple(shares), 0, True, request, rows, ends, tuple(columns), 1.0)
    assert found.tolist() == [*map(may, sets)]
