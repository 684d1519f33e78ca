"""The solver ``gather``: gangs placed as close together as the network allows, with or without victims."""

from pipeline.decision.law import lawful, passes, still_lawful, victim_point
from pipeline.solvers.gather.allocation import allocate
from pipeline.solvers.gather.preemption import propose

__all__ = ["allocate", "lawful", "passes", "propose", "still_lawful", "victim_point"]
