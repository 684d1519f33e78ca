"""Scheduling signatures: a podgroup that asks for no less than one that found nothing finds nothing either.

KAI Scheduler sorts requests by a comparison that is only a partial order, so the result means little (notes on KAI,
1.9). Here a podgroup is skipped only if it asks for the same kinds of tasks, of each at least as many, under the same
law.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from pipeline.cluster.arrays import NONE, paired, unpaired
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Reason
from pipeline.placement.need import Need
from pipeline.policy import Purpose

#: Queue, shape and labels.
_Kind: TypeAlias = tuple[int, int, int]
#: Shape and labels of what asks for no task.
_NO_KIND = NONE, NONE


@dataclass(frozen=True)
class Signature:
    """What decides whether there is room for a podgroup.

    Attributes
    ----------
    law
        What the search is about: action, levels, whether its tasks may be evicted, domains, shielded tasks.
    queue
        The queue of the podgroup.
    priority
        The priority in preempt, where it limits which tasks may be taken; else 0.
    counts
        By kind of task (shape and labels) how many are asked for.
    """

    law: tuple[object, ...]
    queue: int
    priority: int
    counts: tuple[tuple[int, int, int], ...]

    @property
    def kinds(self) -> list[_Kind]:
        """The kinds of tasks that are asked for, in their queue; `_NO_KIND` if there are none."""
        shapes = [(shape, labels) for shape, labels, _ in self.counts] or [_NO_KIND]
        return [(self.queue, *one) for one in shapes]

    def no_easier(self, other: "Signature") -> bool:
        """Whether it asks for no less than ``other``, and may take from no podgroups besides those of ``other``."""
        if self.queue != other.queue or self.priority > other.priority or self.law != other.law:
            return False
        have = {(shape, labels): many for shape, labels, many in self.counts}
        return all(have.get((shape, labels), 0) >= many for shape, labels, many in other.counts)


@dataclass(slots=True)
class Failed:
    """The smallest searches of one snapshot that found nothing; see `failed`.

    Only those for a kind of task that a podgroup asks for are compared with it: there may be thousands of others.
    """

    _found: dict[int, tuple[Signature, Reason]] = field(default_factory=dict)
    _of_kind: dict[_Kind, set[int]] = field(default_factory=dict)
    _added: int = 0

    @property
    def found(self) -> list[tuple[Signature, Reason]]:
        """In the order in which they were added."""
        return list(self._found.values())

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self._found)

    def reason(self, signature: Signature | None) -> Reason | None:
        """Why a search that is no harder found nothing; None if no such search failed."""
        if signature is None:
            return None
        near = self._with(*signature.kinds, (signature.queue, *_NO_KIND))
        return next((why for one, why in map(self._found.__getitem__, near) if signature.no_easier(one)), None)

    def add(self, signature: Signature | None, why: Reason) -> None:
        """Remember a search without a plan."""
        if signature is None or self.reason(signature) is not None:
            return
        near = self._with(signature.kinds[0]) if signature.counts else list(self._found)
        for at in [one for one in near if self._found[one][0].no_easier(signature)]:
            for kind in self._found.pop(at)[0].kinds:
                self._of_kind[kind].discard(at)
        self._found[self._added] = signature, why
        for kind in signature.kinds:
            self._of_kind.setdefault(kind, set()).add(self._added)
        self._added += 1

    def _with(self, *kinds: _Kind) -> list[int]:
        """The numbers of those that ask for one of these kinds, in order."""
        return sorted(set[int]().union(*(self._of_kind.get(kind, ()) for kind in kinds)))


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
        attempt.starting.tobytes(), among, int(groups.namespace[podgroup]),
        int(groups.required_level[podgroup]), int(groups.preferred_level[podgroup]), bool(groups.preemptible[podgroup]),
    )  # fmt: skip
    priority = int(groups.priority[podgroup]) if attempt.purpose is Purpose.PREEMPT else 0
    return Signature(
        law, int(groups.queue[podgroup]), priority, tuple(zip(*(one.tolist() for one in each), strict=True))
    )
