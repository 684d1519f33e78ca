"""How many tasks of each shape of a need fit with one room of the nodes, each shape by itself."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows, running_sums
from pipeline.placement.layout.packing import node_slots
from pipeline.placement.need import Need
from pipeline.placement.reasons.question import Question


def first_of_shape(need: Need, shape: int) -> int:
    """The task that stands for a shape."""
    return int(need.tasks[np.argmax(need.shape == shape)])


@dataclass(frozen=True)
class ShapeSlots:
    """How many tasks of each shape of the need fit, each shape by itself, with one room of the nodes.

    Attributes
    ----------
    upto: int64[N + 1, S]
        Sums over the nodes before each.
    """

    asked: Question
    upto: Longs

    @classmethod
    def of(cls, asked: Question, allowed: Bools, room: Longs) -> "ShapeSlots":
        """Count on the nodes that are allowed (bool[S, N]), with a room of int64[N, R]."""
        slots, _ = node_slots(asked.need.request, asked.need.count, allowed, 0, room)
        return cls(asked, running_sums(slots.T))

    def reach(self, domains: Rows) -> Longs:
        """int64[D, S]: how many tasks of each shape the domains take."""
        topology = self.asked.snapshot.topology
        return np.asarray(self.upto[topology.stop[domains]] - self.upto[topology.start[domains]])

    def enough(self, domains: Rows) -> Rows:
        """int64[E]: the domains that have enough slots for each shape."""
        return np.asarray(domains[(self.reach(domains) >= self.asked.need.count).all(axis=1)])
