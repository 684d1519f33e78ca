"""Multiples: in a domain of some layer a gang places a multiple of a number of tasks, or none.

What the domains of one layer can take grows in steps of the least common multiple of their own number and those of all
layers inside, so rounding down from the nodes up says exactly how many tasks each vertex takes (Koordinator rounds each
layer by its own number alone, and may promise what it cannot place). The gang as a whole grows in steps of that of all
layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from pipeline.cluster.arrays import NONE, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.solvers.gather.tree import Tree


@dataclass(frozen=True)
class Steps:
    """The steps in which the numbers of tasks that vertices take may grow.

    Attributes
    ----------
    by_tier
        By height of the vertex; 1: any number.
    own
        The multiples as they are stated, by height.
    whole
        That of the gang.
    """

    by_tier: tuple[int, ...]
    own: tuple[int, ...]
    whole: int

    def summed(self, tree: Tree, per_node: Longs) -> Longs:
        """int64[V]: what each vertex takes, of what its nodes take alone, rounded down on the way up."""
        slots = np.concatenate([np.zeros(tree.domains, np.int64), per_node])
        for tier in range(1, len(self.by_tier)):
            here = np.flatnonzero(tree.tier == tier)
            inside = np.flatnonzero((tree.tier < tier) & (tree.tier[tree.parent] == tier))
            inside = inside[inside != 0]
            sums = np.bincount(tree.parent[inside], weights=slots[inside], minlength=len(slots)).astype(np.int64)
            slots[here] = sums[here] // self.by_tier[tier] * self.by_tier[tier]
        return slots

    def kept(self, tree: Tree, node: Rows) -> bool:
        """Whether the number of tasks on these nodes (int64[K]) is a multiple as stated in every domain."""
        many = tree.summed(np.bincount(node, minlength=len(tree.parent) - tree.domains).astype(np.int64))
        return not (many % np.asarray(self.own, np.int64)[tree.tier]).any()


def steps_of(snapshot: Snapshot, podgroups: Sequence[int]) -> Steps | None:
    """The steps that podgroups ask for together; None if they ask for none."""
    vocabulary, topology = snapshot.vocabulary, snapshot.topology
    said = [int(row) for row in snapshot.podgroups.gather[list(podgroups)] if row != NONE]
    own = [1] * (topology.levels + 2)
    for row in said:
        for name, multiple in vocabulary.gathers[row].multiples:
            if name in vocabulary.levels:
                tier = topology.levels - vocabulary.levels.index(name)
                own[tier] = lcm(own[tier], multiple)
    if max(own) == 1:
        return None
    steps = [lcm(*own[: tier + 1]) for tier in range(len(own))]
    return Steps(tuple(steps), tuple(own), steps[-1])
