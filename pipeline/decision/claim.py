"""Claims: a domain that is kept for one podgroup for some time, because its plans were refused again and again.

Smaller podgroups were quicker each time (Omega gives such jobs up, Kueue lets them starve).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.plan import Plan
from pipeline.policy import Policy, Purpose


@dataclass(frozen=True)
class Claim:
    """A domain and the podgroup for which it is kept (rows), ``until`` a time (seconds)."""

    podgroup: int
    domain: int
    until: float


def claimed_nodes(snapshot: Snapshot, claims: Sequence[Claim]) -> Rows:
    """int64[M]: the nodes of the claimed domains, ascending."""
    inside = [np.arange(*snapshot.topology.slice_of(one.domain)) for one in claims]
    return np.unique(np.concatenate(inside)).astype(np.int64) if inside else NO_ROWS


def claimable(plan: Plan, snapshot: Snapshot, policy: Policy) -> int:
    """The domain for which a refusal of the plan counts; NONE if it counts for none.

    It is no wider than the plan needs, even if the gang may lie anywhere. A single task claims nothing, since it can
    be placed almost anywhere; nor does a plan without victims.
    """
    made = plan.statement
    placed = made.nominated_node[made.nominated_node != NONE]
    evicts = made.purpose is not Purpose.ALLOCATE and plan.explanation.minimum > 1
    if not policy.claim_after_refusals or not evicts or made.preemptor == NONE or len(placed) == 0:
        return NONE
    return snapshot.topology.lowest_common(placed) if plan.assumes.epoch == snapshot.epoch else NONE


def overlaps(snapshot: Snapshot, domain: int, others: Rows) -> bool:
    """Whether a domain (row) shares a node with one of the domains ``others`` (int64[M], NONE: unknown)."""
    topology, others = snapshot.topology, others[others != NONE]
    return bool(
        ((topology.start[others] < topology.stop[domain]) & (topology.start[domain] < topology.stop[others])).any()
    )


def why_over(podgroup: int, until: float, snapshot: Snapshot, now: float) -> str | None:
    """Why the claim of a podgroup (row, NONE: unknown) ends; None if it stays."""
    if podgroup == NONE or not snapshot.podgroups.alive[podgroup]:
        return "its podgroup is gone"
    counts = snapshot.counts
    if counts.ready[podgroup] + counts.waiting[podgroup] >= snapshot.podgroups.min_available[podgroup]:
        return "its podgroup has its room"
    return "its time is over" if now >= until else None
