"""A generated fleet with a gang whose tasks repel each other."""

import numpy as np

from actors.fleets.generated import GeneratedFleet
from pipeline.cluster.arrays import NONE, frozen, with_rows
from pipeline.cluster.vocabulary import HOSTNAME, AntiAffinity, Constraint
from pipeline.records import replace

LABEL = ("app", "lone")


def repelling_itself(fleet: GeneratedFleet, key: str = HOSTNAME) -> GeneratedFleet:
    """The fleet with a gang whose tasks repel each other, and one of 40 tasks that run."""
    snapshot, tasks = fleet.snapshot, fleet.snapshot.tasks
    rows = np.flatnonzero(tasks.podgroup == fleet.gang)
    repels = Constraint(anti_affinity=(AntiAffinity(key, (LABEL,)),))
    constraint = snapshot.shapes.constraint.copy()
    constraint[tasks.shape[rows[0]]] = 1
    labels = with_rows(tasks.label_set, np.append(rows, np.flatnonzero(tasks.node != NONE)[::40]), 1)
    return GeneratedFleet(
        replace(
            snapshot,
            vocabulary=replace(snapshot.vocabulary, constraints=(Constraint(), repels), label_sets=((), (LABEL,))),
            shapes=replace(snapshot.shapes, constraint=frozen(constraint, np.int32)),
            tasks=replace(tasks, label_set=labels),
            budgets=replace(snapshot.budgets, covers=frozen(np.zeros((0, 2)), np.bool_)),
        ),
        fleet.gang,
    )
