"""A statement as a decision, which is folded like all other news; and what would be if it were carried out."""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Rows, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.events import CURRENT, Changes, Decided
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.statement import Statement


def decision_of(made: Statement, snapshot: Snapshot, sequence: int, at: float, spared: Rows | None = None) -> Decided:
    """The statement on ``snapshot`` as a decision.

    Parameters
    ----------
    sequence
        Its number in the ledger.
    at
        Seconds.
    spared: int64[V]
        Victims of an earlier decision that this one takes back.
    """
    incarnation = snapshot.tasks.incarnation
    spared = NO_ROWS if spared is None else frozen(spared, np.int64)
    return Decided(
        seq=sequence, at=at,
        evicted=made.evictions, evicted_incarnation=incarnation[made.evictions],
        spared=spared, spared_incarnation=incarnation[spared],
        nominated=made.nominated, nominated_node=frozen(made.nominated_node, np.int32),
        nominated_card=frozen(made.nominated_card, np.int32),
        nominated_incarnation=incarnation[made.nominated],
        bound=made.bound, bound_node=frozen(made.bound_node, np.int32),
        bound_card=frozen(made.bound_card, np.int32),
        bound_incarnation=np.full(len(made.bound), CURRENT, np.int64),
        admitted=made.admitted,
        counted=frozen(snapshot.queue_of(made.evictions), np.int32), counted_at=at,
    )  # fmt: skip


def carried_out(made: Statement, snapshot: Snapshot, at: float) -> Snapshot:
    """The snapshot in which the statement has been carried out as far as the scheduler can."""
    if made.empty:
        return snapshot
    return fold(snapshot, Changes(decided=decision_of(made, snapshot, snapshot.decided + 1, at)))


def what_if_of(made: Statement, snapshot: Snapshot) -> WhatIf:
    """The same as a what-if, which costs in proportion to what the statement does; admissions aside."""
    after = WhatIf.of(snapshot).evicting(made.evictions)
    after = after.nominating(made.nominated, made.nominated_node, made.nominated_card)
    return after.binding(made.bound, made.bound_node)
