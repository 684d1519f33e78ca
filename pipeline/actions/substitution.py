"""Another plan in place of a decision whose victims do not end.

Room that the decision has freed already is used, and a victim that does not end is not counted on again.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Rows, with_rows
from pipeline.cluster.rules.gang_groups import gang_group_of
from pipeline.cluster.tables import RUNNING
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan, Plan, assumptions
from pipeline.decision.statement import taking_back
from pipeline.policy import Purpose
from pipeline.propose import propose
from pipeline.records import replace


def substitute(made: Attempt, promised: Rows, overdue: Rows, avoided: Rows) -> Plan | None:
    """A plan that replaces one whose victims ``overdue`` do not end; None if there is none.

    The promises are taken back. The overdue victims are spared: they are no victims of the new plan, and their nodes
    take no task. Room that the other victims have freed is used before further tasks are evicted.

    Parameters
    ----------
    made
        How the decision was searched for: its preemptor and purpose, on the state as it is now.
    promised: int64[K]
        Tasks that still wait for their promised nodes: the preemptor's, and victims that were to move.
    overdue: int64[V]
        Victims that still hold their room.
    avoided: int64[A]
        Other decisions' overdue victims, on which no search counts yet either.

    Returns
    -------
    A plan whose statement also takes back promises that it does not make anew. None if nothing was found, or if the
    decision needed no room.
    """
    if made.purpose not in (Purpose.PREEMPT, Purpose.RECLAIM):
        return None
    snapshot = made.snapshot
    tasks, late = snapshot.tasks, np.union1d(overdue, avoided)
    spared = replace(
        tasks,
        status=with_rows(tasks.status, overdue, RUNNING),
        preemptible=with_rows(tasks.preemptible, late, np.False_),
        nominated=with_rows(tasks.nominated, promised, NONE),
    )
    what_if = replace(snapshot, tasks=spared).closing(np.unique(tasks.node[late]).astype(np.int64))
    found = propose(replace(made, snapshot=what_if, podgroups=gang_group_of(snapshot, made.podgroups[0])))
    if isinstance(found, NoPlan):
        return None
    instead = taking_back(found.statement, promised)
    return replace(found, statement=instead, assumes=assumptions(made, instead))
