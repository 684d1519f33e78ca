"""Enqueue: admit podgroups whose minimum resources can be had, so that the others do not hold up the search."""

import numpy as np

from pipeline.actions.progress import Progress
from pipeline.cluster.arrays import Bools, Rows
from pipeline.cluster.tables import PHASE_PENDING
from pipeline.decision.statement import statement
from pipeline.placement.serving_order import in_serving_order


def enqueue(progress: Progress) -> Progress:
    """Admit podgroups that wait for it, in order; each is asked about with those admitted before it.

    A podgroup without minimum resources is admitted unasked: there is nothing to judge it by.
    """
    host = progress.host
    groups = progress.snapshot.podgroups
    waiting = (groups.phase == PHASE_PENDING) & groups.alive
    if not waiting.any():
        return progress
    unasked: Bools = np.asarray((groups.min_resources < 0).all(axis=1))
    admitted = np.zeros(len(groups), bool)
    for gang_group in in_serving_order(host, waiting):
        if all(unasked[podgroup] or host.enqueued(podgroup, admitted) for podgroup in gang_group):
            admitted[list(gang_group)] = True
    return admit(progress, np.flatnonzero(admitted & waiting), "enqueue")


def admit(progress: Progress, podgroups: Rows, action: str) -> Progress:
    """Admit podgroups."""
    return progress.decided(statement(action, admitted=podgroups)) if len(podgroups) else progress
