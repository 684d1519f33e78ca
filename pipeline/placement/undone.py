"""A later plan of a cycle may take what an earlier one made room for; then the victims of that one went for nothing.

Reclaim evicts for a podgroup, and preempt, later in the cycle, takes the room for one of higher priority in the same
queue, for which reclaim found nothing lawful. In Volcano the victims of both go.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Rows, any_true, distinct, is_among, joined
from pipeline.cluster.rules.gang_groups import gang_group_of
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.decided import what_if_of
from pipeline.decision.plan import Plan
from pipeline.policy import Purpose


def undone(snapshot: Snapshot, earlier: Sequence[Plan], plan: Plan) -> Rows:
    """int64[K]: tasks that ``earlier`` plans evicted for, and whose podgroup ``plan`` leaves without its minimum.

    Parameters
    ----------
    snapshot
        With the earlier plans carried out.
    earlier
        Plans that can still be left out: what ``may_be_undone`` does not foresee was reported as certain, and stays.
    """
    made, owner = plan.statement, snapshot.tasks.podgroup
    touched = distinct(owner[np.concatenate([made.evictions, made.withdrawn])])
    touched = touched[snapshot.counts.waiting[touched] > 0]
    if len(touched) == 0:  # as it mostly is: no victim's podgroup is promised anything
        return NO_ROWS
    given = joined(one.statement.placed for one in earlier if len(one.statement.evictions))
    touched = touched[is_among(touched, owner[given])]
    after = what_if_of(made, snapshot)
    broken = [podgroup for podgroup in touched.tolist() if not has_minimum(after, podgroup)]
    return given[is_among(owner[given], np.array(broken, np.int64))]


def may_be_undone(snapshot: Snapshot, plan: Plan, without_plan: Iterable[Sequence[int]]) -> bool:
    """Whether preempt may yet take room that a plan makes: one ``without_plan`` outranks a podgroup of its group."""
    groups, made = snapshot.podgroups, plan.statement
    if made.purpose is Purpose.PREEMPT or made.preemptor == NONE or len(made.evictions) == 0:
        return False
    rows = np.array([row for one in without_plan for row in one], np.int64)
    if len(rows) == 0:
        return False
    same = groups.queue[rows] == groups.queue[made.preemptor]
    least = groups.priority[list(gang_group_of(snapshot, made.preemptor))].min()
    return any_true(groups.priority[rows[same]] > least)
