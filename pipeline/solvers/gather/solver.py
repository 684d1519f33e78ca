"""The solver ``gather``: gangs placed as close together as the network allows, with or without victims."""

from pipeline.decision.law import lawful, still_lawful
from pipeline.policy import ExtensionPoint, Purpose
from pipeline.solvers.gather.allocation import allocate
from pipeline.solvers.gather.preemption import propose

__all__ = ["allocate", "lawful", "passes", "propose", "still_lawful", "victim_point"]


def passes(purpose: Purpose) -> tuple[bool, ...]:  # noqa: ARG001 - the same for all
    """One pass: a job never takes from itself."""
    return (False,)


def victim_point(purpose: Purpose) -> ExtensionPoint:  # noqa: ARG001 - the same for all
    """Plugins are asked about gangs."""
    return ExtensionPoint.EVICTABLE
