"""What queues ask for is the same before and after an eviction, of tasks that start over."""

import numpy as np

from pipeline.cluster.rules.requests import lasting_requests, snapshot_of_requests
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.decided import carried_out
from pipeline.decision.statement import statement
from tests.support.builders import cluster, gang

STATE = cluster([{"gpu": 4}], [gang(2, 0, gpu=1), gang(1, gpu=2, queue=1)])
VICTIMS = np.array([0, 1])


def test_an_eviction_changes_no_request() -> None:
    evicted = carried_out(statement("preempt", 1, evictions=VICTIMS), STATE, 0.0)
    assert evicted.requested_here.tolist() != STATE.requested_here.tolist()
    assert lasting_requests(evicted).tolist() == lasting_requests(STATE).tolist() == STATE.requested_here.tolist()


def test_a_what_if_asks_for_as_much_as_the_snapshot_beneath_it() -> None:
    assert snapshot_of_requests(WhatIf.of(STATE).evicting(VICTIMS)) is STATE
    assert snapshot_of_requests(STATE) is STATE
