"""One decision on the state on which it was judged: each rule that a history alone does not show is broken once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from actors.configuration.profiles import load_profile
from pipeline.cluster.arrays import frozen
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import TERMINATING
from pipeline.cycle import cycle
from tests.chaos.decision_checks import Decided, objections
from tests.support.assembly import Assembly, gang, rack_cluster
from tests.support.editing import edited, with_groups, with_queues, with_tasks

DEFAULT = load_profile("default")


@pytest.fixture(scope="module")
def preempted() -> Decided:
    """A pair preempts two of four tasks, each a podgroup of its own, on a node each."""
    cluster = rack_cluster(racks=1, nodes=4)
    cluster["podgroups"] = [gang(f"low{at}", 1, 8, nodes=[f"n{at}"], phase="Running") for at in range(4)]
    cluster["podgroups"].append(gang("pair", 2, 8, priority=5))
    assembly = Assembly(cluster)
    assembly.hear()
    before, now = assembly.news.snapshot, assembly.clock.now
    (made,) = (one for one in cycle(before, DEFAULT, now).statements if len(one.evictions))
    return Decided("p", made, before, now)


def said(one: Decided, **changed: Any) -> str:
    return " | ".join(objections(replace(one, **changed), DEFAULT))


def test_a_decision_as_the_core_makes_it_breaks_nothing(preempted: Decided) -> None:
    assert said(preempted) == ""


def test_a_task_that_goes_for_nothing_is_found(preempted: Decided) -> None:
    every = frozen(np.arange(4), np.int64)
    assert "(8)" in said(preempted, made=replace(preempted.made, evictions=every))


def test_a_task_that_goes_for_the_room_of_one_that_moves_is_needed(preempted: Decided) -> None:
    """The node is twice as large: it has room for the pair's task too, but not beside one that moves there."""
    before, victims = preempted.before, preempted.made.evictions.tolist()
    node, other = int(before.tasks.node[victims[0]]), next(row for row in range(4) if row not in victims)
    before = edited(before, "nodes", node, allocatable=before.nodes.allocatable[node] * 2)
    assert f"tasks [{victims[0]}] go" in said(preempted, before=before)
    moves = with_tasks(before, [other], status=TERMINATING, nominated=node)
    assert f"tasks [{victims[0]}] go" not in said(preempted, before=moves)


def test_a_budget_that_allows_less_is_found(preempted: Decided) -> None:
    assert "(7) plan p: budget 0 allows 1" in said(preempted, before=budgeted(preempted.before, 1))
    assert said(preempted, before=budgeted(preempted.before, 2)) == ""


def budgeted(before: Snapshot, allowed: int) -> Snapshot:
    words = before.vocabulary
    covers = np.ones((1, len(words.label_sets)), bool)
    return replace(before, budgets=Budgets(frozen([allowed], np.int32), frozen([0], np.int32), frozen(covers, bool)))


def test_a_podgroup_in_its_minimum_runtime_is_found(preempted: Decided) -> None:
    young = with_groups(preempted.before, ..., started=preempted.now - 30.0)
    for granted, found in ((60.0, True), (20.0, False)):
        before = with_queues(young, preempt_min_runtime_s=granted)
        assert ("loses its minimum" in said(preempted, before=before)) == found


def test_a_preemptor_that_may_not_preempt_is_found(preempted: Decided) -> None:
    before = with_groups(preempted.before, ..., may_preempt=False)
    assert "may not preempt" in said(preempted, before=before)
