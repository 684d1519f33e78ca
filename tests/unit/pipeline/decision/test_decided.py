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


def test_under_another_revision_what_follows_from_the_tables_is_still_known() -> None:
    state = cluster([{"cpu": 4}], [gang(1, cpu=1), gang(1, cpu=1)])
    assert (state.totals.nodes.used.sum(), len(state.index.by_podgroup.task), len(state.roles_bind)) == (0, 2, 2)
    made = statement("allocate", bound=np.array([1]), bound_node=np.array([0]))
    after = carried_out(made, state, 0.0)
    again = after.at_revision(state.revision)
    assert (again.revision, again.tasks, again.totals) == (state.revision, after.tasks, after.totals)
    assert again.role_minimum is state.role_minimum
    assert again.roles_bind is state.roles_bind
    assert again.index.by_node.task.tolist() == after.index.by_node.task.tolist() == [1]
