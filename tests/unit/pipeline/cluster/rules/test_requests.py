"""What queues ask for is the same before and after an eviction, of tasks that start over."""

import numpy as np

from pipeline.cluster.rules.requests import lasting_requests, snapshot_of_requests
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.decided import carried_out
from pipeline.decision.statement import statement
from tests.support.builders import cluster, gang
from tests.support.editing import with_tasks

STATE = cluster([{"gpu": 4}], [gang(2, 0, gpu=1), gang(1, gpu=2, queue=1)])
VICTIMS = np.array([0, 1])


def test_an_eviction_changes_no_request() -> None:
    evicted = carried_out(statement("preempt", 1, evictions=VICTIMS), STATE, 0.0)
    assert evicted.requested_here.tolist() != STATE.requested_here.tolist()
    assert lasting_requests(evicted).tolist() == lasting_requests(STATE).tolist() == STATE.requested_here.tolist()


def test_what_moves_is_asked_for_once_and_what_does_not_start_over_not_at_all() -> None:
    moved = statement("reclaim", 2, evictions=VICTIMS, nominated=VICTIMS[:1], nominated_node=np.array([0]))
    assert lasting_requests(carried_out(moved, STATE, 0.0)).tolist() == STATE.requested_here.tolist()
    ends = with_tasks(STATE, VICTIMS[:1], gone_when_evicted=True)
    evicted = carried_out(statement("preempt", 1, evictions=VICTIMS), ends, 0.0)
    assert (STATE.requested_here - lasting_requests(evicted)).tolist() == [[0, 0, 1, 1], [0, 0, 0, 0]]


def test_a_what_if_asks_for_as_much_as_the_snapshot_beneath_it() -> None:
    assert snapshot_of_requests(WhatIf.of(STATE).evicting(VICTIMS)) is STATE
    assert snapshot_of_requests(STATE) is STATE
