"""Which tasks a waiting task may take room from, and the place that it gets."""

from dataclasses import dataclass

from pipeline.cluster.arrays import Rows
from pipeline.policy import ExtensionPoint, Purpose


@dataclass(frozen=True)
class Rule:
    """Which tasks may be victims.

    Attributes
    ----------
    purpose
        PREEMPT: other podgroups of the same queue; RECLAIM: other queues that let others reclaim.
    podgroups
        The preemptor's rows, whose tasks are no victims unless ``within_podgroup``.
    within_podgroup
        Whether a task takes tasks of lower priority of its own podgroup instead (intra-podgroup preemption).
    simulated
        Whether nodes are compared by simulation ("Preempt Action Support Topology").
    """

    purpose: Purpose
    podgroups: tuple[int, ...]
    within_podgroup: bool = False
    simulated: bool = False

    @property
    def point(self) -> ExtensionPoint:
        """The extension point at which plugins are asked."""
        return ExtensionPoint.PREEMPTABLE if self.purpose is Purpose.PREEMPT else ExtensionPoint.RECLAIMABLE


@dataclass(frozen=True)
class Place:
    """A node for a task, its card (NONE: it needs none), victims int64[V], tasks that lose a nomination int64[W]."""

    task: int
    node: int
    card: int
    victims: Rows
    released: Rows
