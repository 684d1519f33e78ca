"""NewRows of a small state."""

from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.cluster.arrays import frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Podgroups, Roles, Tasks
from pipeline.cluster.updates.copy_on_write import picked
from pipeline.cluster.updates.events import NewRows
from tests.support.small_states import podgroups_table

NOTHING = np.zeros(0, np.int64)


def appending(state: Snapshot, podgroups: Podgroups, tasks: Tasks, before: list[int], revision: int = 0) -> NewRows:
    """New podgroups behind the known ones, and new tasks that come after so many of the known."""
    rows = (
        "edited",
        "again",
        "podgroups_from",
        "podgroups_to",
        "roles_from",
        "roles_to",
        "subgroups_from",
        "subgroups_to",
    )
    blank = dict.fromkeys(rows, NOTHING)
    stamped = replace(tasks, revision=frozen(np.full(len(tasks), revision), np.int64))
    return NewRows(
        vocabulary=state.vocabulary, shapes=picked(state.shapes, NOTHING), podgroups=podgroups,
        roles=picked(state.roles, NOTHING), subgroups=state.subgroups, tasks=stamped,
        podgroups_before=frozen(np.full(len(podgroups), len(state.podgroups)), np.int64),
        tasks_before=frozen(before, np.int64), edits=picked(state.tasks, NOTHING), budgets=state.budgets,
        at=np.zeros(0), news=1, **blank,
    )  # fmt: skip


def describing(state: Snapshot, podgroup: int, minimum: int, at: float) -> NewRows:
    """A podgroup of one role described anew with another minimum."""
    row: Any = frozen([podgroup], np.int64)
    role = frozen([state.role_start[podgroup]], np.int64)
    new_rows = appending(state, podgroups_table(1, minimum), picked(state.tasks, NOTHING), [])
    return replace(
        new_rows, at=frozen([at], np.float64),
        roles=Roles(frozen([len(state.podgroups)], np.int32), frozen([0], np.int32)),
        podgroups_from=row, podgroups_to=frozen([len(state.podgroups)], np.int64),
        roles_from=role, roles_to=frozen([len(state.roles)], np.int64),
    )  # fmt: skip
