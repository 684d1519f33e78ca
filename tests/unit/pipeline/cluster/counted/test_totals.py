"""Totals as sums over single tasks; and carried from one state to the next, with the columns that stay the same."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.counted.totals import Totals, carried_totals, totals_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, GONE, PENDING, RUNNING, SUCCEEDED, TERMINATING
from tests.support.builders import Gang, Task, cluster
from tests.support.editing import with_tasks
from tests.support.histories import begun

PARTS = [(NONE, 1, NONE), (NONE, 1, NONE)]
STATUSES = PENDING, BOUND, RUNNING, TERMINATING, SUCCEEDED, GONE


def state(kind: str) -> Snapshot:
    """Nodes with cards, or podgroups with roles and subgroups."""
    if kind == "cards":
        return begun()
    tasks = [Task(cpu=at + 1, role=at % 2, subgroup=at // 2) for at in range(4)]
    gangs = [Gang(tasks, 2, roles=[1, 1], subgroups=PARTS), Gang([Task(cpu=3)] * 4, 2)] * 2
    return cluster([{"cpu": 64}] * 4, gangs)


def changed(draw: np.random.Generator, before: Snapshot, rows: Any) -> Snapshot:
    """The state with some of its tasks in any other state, in another podgroup or of another shape."""
    many, cards = len(rows), before.nodes.cards.shape[1]
    status = draw.choice(STATUSES, many)
    holds = np.isin(status, (BOUND, RUNNING, TERMINATING))
    promised = np.where(
        np.isin(status, (PENDING, TERMINATING)) & (draw.random(many) < 0.5), draw.integers(0, 4, many), -1
    )
    values = {
        "status": status,
        "node": np.where(holds, draw.integers(0, 4, many), NONE),
        "nominated": promised,
        "card": np.where(holds, draw.integers(0, cards, many), NONE) if cards else NONE,
        "nominated_card": np.where(promised != NONE, draw.integers(0, cards, many), NONE) if cards else NONE,
        "gated": draw.random(many) < 0.3,
    }
    if draw.random() < 0.3:
        values |= {"podgroup": draw.integers(0, len(before.podgroups), many)}
        values |= {"shape": draw.integers(0, len(before.shapes), many)}
        values |= {"role": draw.integers(NONE, len(before.roles), many)}
        values |= {"subgroup": draw.integers(NONE, len(before.subgroups), many)}
    return with_tasks(before, rows, **values)


def summed(now: Snapshot) -> dict[str, dict[str, list[Any]]]:
    """The totals, task by task."""
    tasks, shapes = now.tasks, now.shapes
    nothing = totals_of(with_tasks(now, ..., status=GONE).counted)
    tables = {one.name: getattr(nothing, one.name) for one in fields(nothing)}
    made = {
        table: {one.name: getattr(columns, one.name).copy() for one in fields(columns)}
        for table, columns in tables.items()
    }
    for task in range(len(tasks)):
        status, node, promise = int(tasks.status[task]), int(tasks.node[task]), int(tasks.nominated[task])
        asks, part = shapes.request[tasks.shape[task]], shapes.on_card[tasks.shape[task]]
        card, promised_card = int(tasks.card[task]), int(tasks.nominated_card[task])
        runs, ends = status in (BOUND, RUNNING), status == TERMINATING
        waits, promised = status == PENDING, promise != NONE and status in (PENDING, TERMINATING)
        for name, counts, place, on in (
            ("used", runs or ends, node, card),
            ("terminating", ends, node, card),
            ("nominated", promised, promise, promised_card),
        ):
            if counts:
                made["nodes"][name][place] += asks
            if counts and on != NONE and now.nodes.cards.shape[1]:
                made["cards"][name][place, on] += part
        group, idle = int(tasks.podgroup[task]), waits and not promised
        counts_of = {
            "ready": runs or status == SUCCEEDED, "running": runs, "waiting": promised, "pending": idle,
            "pending_best_effort": idle and bool(tasks.best_effort[task]),
        }  # fmt: skip
        owners = ("podgroups", group), ("roles", int(tasks.role[task])), ("subgroups", int(tasks.subgroup[task]))
        for table, owner in owners:
            for name, counts in counts_of.items():
                if counts and owner != NONE:
                    made[table][name][owner] += 1
        sums = {"running": runs, "waiting": promised, "pending": idle, "gated": waits and bool(tasks.gated[task])}
        for table, owner in (("podgroup_sums", group), ("queue_sums", int(now.podgroups.queue[group]))):
            for name, counts in sums.items():
                made[table][name][owner] += asks * int(counts)
    return {table: {name: column.tolist() for name, column in columns.items()} for table, columns in made.items()}


def listed(totals: Totals) -> dict[str, dict[str, list[Any]]]:
    tables = {one.name: getattr(totals, one.name) for one in fields(totals)}
    return {
        table: {one.name: getattr(columns, one.name).tolist() for one in fields(columns)}
        for table, columns in tables.items()
    }


@pytest.mark.parametrize("kind", ["cards", "parts"])
@pytest.mark.parametrize("seed", range(40))
def test_totals_are_sums_over_tasks_and_are_carried_as_they_are_counted(seed: int, kind: str) -> None:
    draw, before = np.random.default_rng(seed), state(kind)
    before = changed(draw, before, np.arange(len(before.tasks)))
    assert listed(before.totals) == summed(before)
    for _ in range(3):
        rows = np.sort(draw.permutation(len(before.tasks))[: draw.integers(1, 5)])
        after = changed(draw, before, rows)
        found = carried_totals(before.totals, before.counted, after.counted, rows)
        assert listed(found) == listed(totals_of(after.counted)) == summed(after)
        for table in fields(found):
            old, new = getattr(before.totals, table.name), getattr(found, table.name)
            assert not any(getattr(new, one.name).flags.writeable for one in fields(new))
            kept = [one.name for one in fields(new) if getattr(new, one.name) is getattr(old, one.name)]
            assert all(getattr(new, name).tolist() == getattr(old, name).tolist() for name in kept)
        before = after


def test_a_column_in_which_nothing_changes_is_shared() -> None:
    before, rows = with_tasks(state("cards"), ..., status=RUNNING, node=0, card=0), np.arange(2)
    after = with_tasks(before, rows, status=TERMINATING)
    found = carried_totals(before.totals, before.counted, after.counted, rows)
    assert found.nodes.used is before.totals.nodes.used
    assert found.nodes.nominated is before.totals.nodes.nominated
    assert found.podgroup_sums.pending is before.totals.podgroup_sums.pending
    assert found.subgroups is before.totals.subgroups
    assert found.nodes.terminating.sum() > 0
    assert carried_totals(before.totals, before.counted, after.counted, rows[:0]) is before.totals
