"""Podgroups with surplus lose the same tasks where slots are counted as where each return is tried."""

import numpy as np

from pipeline.cluster.arrays import Rows, distinct
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.solvers.scenarios.accumulating import Scenario
from pipeline.solvers.scenarios.asking import asked_for
from pipeline.solvers.scenarios.grounds import grounds_of
from pipeline.solvers.scenarios.law import Law
from pipeline.solvers.scenarios.returning import _counted_parts, _part_of
from pipeline.solvers.scenarios.slices.part_returns import orders_of_return
from pipeline.solvers.scenarios.units import victim_units
from tests.support.brute_force import attempt_of
from tests.support.every_scenario import contended


def scenario_of(seed: int) -> Scenario:
    attempt = attempt_of(contended(seed, Purpose.PREEMPT), Purpose.PREEMPT)
    host, need = host_of(attempt), asked_for(host_of(attempt), attempt.podgroups)
    law = Law(host, Preemptor(attempt.podgroups, need.total, attempt.purpose))
    return grounds_of(attempt, law, need, victim_units(host, law.preemptor)).scenario(0)


def tried(scenario: Scenario, podgroups: Rows, gone: Rows) -> Rows:
    for podgroup in podgroups.tolist():
        gone = _part_of(scenario, podgroup, gone)
    return np.sort(gone)


def test_what_returns_is_what_returns_where_every_order_is_tried() -> None:
    spared = 0
    for seed in range(200):
        scenario = scenario_of(seed)
        gone = np.sort(scenario.units.rows)
        if not scenario.ground.plain or not scenario.ground.fits(gone):
            continue
        for podgroups in (distinct(scenario.units.podgroup), distinct(scenario.units.podgroup)[::-1].copy()):
            found = np.sort(_counted_parts(scenario, podgroups.astype(np.int64), gone))
            assert found.tolist() == tried(scenario, podgroups, gone).tolist()
            spared += len(gone) - len(found)
    assert spared > 100


def test_tasks_return_as_they_are_then_the_smallest_first_then_those_of_one_node_last() -> None:
    orders = orders_of_return(np.array([1, 0, 1], np.int32), np.array([0.5, 0.2, 0.1]))
    assert orders.tolist() == [[0, 1, 2], [2, 1, 0], [2, 0, 1], [1, 2, 0]]
