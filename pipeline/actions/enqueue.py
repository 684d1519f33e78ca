"""Enqueue: admit podgroups whose minimum resources have a chance, so that the others do not clog the search."""

import numpy as np

from pipeline.actions.progress import Progress
from pipeline.cluster.arrays import Bools, Rows
from pipeline.cluster.tables import PHASE_PENDING
from pipeline.decision.statement import statement
from pipeline.placement.starving import in_order


def enqueue(progress: Progress) -> Progress:
    """Ask for every podgroup that waits for admission, in order, with those already admitted in mind.

    One that names no minimum resources is let in unasked: there is nothing to judge it by.
    """
    host = progress.host()
    groups = progress.snapshot.podgroups
    waiting = (groups.phase == PHASE_PENDING) & groups.alive
    unasked: Bools = np.asarray((groups.min_resources < 0).all(axis=1))
    admitted = np.zeros(len(groups), bool)
    for unit in in_order(host, waiting):
        if all(unasked[podgroup] or host.enqueued(podgroup, admitted) for podgroup in unit):
            admitted[list(unit)] = True
    return admit(progress, np.flatnonzero(admitted & waiting), "enqueue")


def admit(progress: Progress, podgroups: Rows, action: str) -> Progress:
    """Let podgroups in."""
    return progress.decided(statement(action, admitted=podgroups)) if len(podgroups) else progress
