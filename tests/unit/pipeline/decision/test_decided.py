"""A statement is carried out by the fold, whatever it does."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.arrays import frozen
from pipeline.cluster.tables import PHASE_INQUEUE, PHASE_PENDING
from pipeline.decision.decided import carried_out
from pipeline.decision.statement import statement
from tests.support.builders import cluster, gang


def test_an_admission_is_carried_out_and_leaves_every_column_of_tasks_as_it_is() -> None:
    state = cluster([{"cpu": 4}], [gang(1, cpu=1), gang(1, cpu=1)])
    state = replace(state, podgroups=replace(state.podgroups, phase=frozen([PHASE_PENDING] * 2, np.uint8)))
    after = carried_out(statement("enqueue", admitted=np.array([1])), state, 0.0)
    assert after.podgroups.phase.tolist() == [PHASE_PENDING, PHASE_INQUEUE]
    assert after.tasks is state.tasks
    assert after.decided == state.decided + 1


def test_a_statement_that_does_nothing_leaves_the_snapshot_itself() -> None:
    state = cluster([{"cpu": 4}], [gang(1, cpu=1)])
    assert carried_out(statement("allocate"), state, 0.0) is state
