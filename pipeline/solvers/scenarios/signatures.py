"""Scheduling signatures: a podgroup that asks for no less than one that found nothing finds nothing either.

KAI Scheduler sorts requests by a comparison that is only a partial order, so the result means little (notes on KAI,
1.9). Here a podgroup is skipped only if it asks for the same kinds of tasks, of each at least as many, under the same
law.
"""

from dataclasses import dataclass, field

import numpy as np

from pipeline.cluster.arrays import NONE, paired, unpaired
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Reason
from pipeline.placement.need import Need
from pipeline.policy import Purpose


@dataclass(frozen=True)
class Signature:
    """What decides whether there is room for a podgroup.

    Attributes
    ----------
    law
        What the search is about: action, queue, levels, whether its tasks may be evicted, domains, shielded tasks.
    priority
        The priority in preempt, where it limits which tasks may be taken; else 0.
    counts
        By kind of task (shape and labels) how many are asked for.
    """

    law: tuple[object, ...]
    priority: int
    counts: tuple[tuple[int, int, int], ...]

    def no_easier(self, other: "Signature") -> bool:
        """Whether it asks for no less than ``other``, and may take from no podgroups besides those of ``other``."""
        have = {(shape, labels): many for shape, labels, many in self.counts}
        return (
            self.law == other.law
            and self.priority <= other.priority
            and all(have.get((shape, labels), 0) >= many for shape, labels, many in other.counts)
        )


@dataclass(slots=True)
class Failed:
    """The smallest searches of one snapshot that found nothing; see `failed`."""

    found: list[tuple[Signature, Reason]] = field(default_factory=list)

    def reason(self, signature: Signature | None) -> Reason | None:
        """Why a search that is no harder found nothing; None if no such search failed."""
        if signature is None:
            return None
        return next((why for one, why in self.found if signature.no_easier(one)), None)

    def add(self, signature: Signature | None, why: Reason) -> None:
        """Remember a search without a plan."""
        if signature is not None and self.reason(signature) is None:
            self.found = [one for one in self.found if not one[0].no_easier(signature)] + [(signature, why)]


def failed(_snapshot: Snapshot) -> Failed:
    """The searches on a snapshot without a plan, for ``Snapshot.once``; they decide nothing, they only save work."""
    return Failed()


def signature_of(attempt: Attempt, need: Need) -> Signature | None:
    """The signature of an attempt; None where more decides: several podgroups, subgroups, or tasks that run already."""
    snapshot, podgroup = attempt.snapshot, attempt.podgroups[0]
    groups, tasks, counts = snapshot.podgroups, snapshot.tasks, snapshot.counts
    held = counts.ready[podgroup] + counts.waiting[podgroup]
    if not need.plain or len(need.parts) > 1 or held:
        return None
    rows = need.tasks[: need.minimum]
    kinds, kind = unique_inverse(paired(tasks.shape[rows], tasks.label_set[rows]))
    each = *unpaired(kinds), np.bincount(kind)
    domains, among = (NONE if rows is None else rows.tobytes() for rows in (attempt.domains, attempt.among))
    law = (
        attempt.policy, attempt.now, attempt.action, attempt.purpose, attempt.within_podgroup, domains,
        attempt.starting.tobytes(), among, int(groups.queue[podgroup]), int(groups.namespace[podgroup]),
        int(groups.required_level[podgroup]), int(groups.preferred_level[podgroup]), bool(groups.preemptible[podgroup]),
    )  # fmt: skip
    priority = int(groups.priority[podgroup]) if attempt.purpose is Purpose.PREEMPT else 0
    return Signature(law, priority, tuple(zip(*(one.tolist() for one in each), strict=True)))
