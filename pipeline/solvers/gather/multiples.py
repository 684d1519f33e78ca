"""Multiples: in a domain of some layer a gang has a multiple of a number of tasks, or none.

What a domain can take grows in steps: the least common multiple of the number of its layer and those of all layers
inside. So rounding down from the nodes up says exactly how many tasks each vertex takes. The gang as a whole grows in
steps of the least common multiple of all layers. Koordinator rounds each layer by its own number alone, and may promise
what it cannot place.

Tasks that the gang has already count. Where it has lost some, a domain takes as many as make its number a multiple
again, and more in steps from there; or none, and stays as it is: see `pipeline.solvers.gather.amounts`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, distinct, is_among, sealed
from pipeline.cluster.rules.gang_groups import gang_group_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.records import replace
from pipeline.solvers.gather.tree import Tree, tree_of


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
    held: int64[N]
        How many of its tasks run on or are promised each node already.
    even
        Whether those are a multiple in every domain.
    """

    by_tier: tuple[int, ...]
    own: tuple[int, ...]
    whole: int
    held: Longs
    even: bool

    def on(self, start: int, stop: int) -> "Steps":
        """The same for the tree over some of the nodes."""
        return replace(self, held=self.held[start:stop])

    def summed(self, tree: Tree, per_node: Longs) -> Longs:
        """int64[V]: what each vertex takes, of what its nodes take alone, rounded down on the way up.

        If the gang's tasks are no multiples now, it takes that at most.
        """
        slots, held = np.concatenate([np.zeros(tree.domains, np.int64), per_node]), tree.summed(self.held)
        multiple = self.by_tier if self.even else self.own
        for tier in range(1, len(multiple)):
            here = np.flatnonzero(tree.tier == tier)
            inside = np.flatnonzero((tree.tier < tier) & (tree.tier[tree.parent] == tier))
            inside = inside[inside != 0]
            sums = np.bincount(tree.parent[inside], weights=slots[inside], minlength=len(slots)).astype(np.int64)
            beyond = (sums[here] + held[here]) % multiple[tier]
            slots[here] = np.maximum(sums[here] - beyond, 0)
        return slots

    def kept(self, tree: Tree, node: Rows) -> bool:
        """Whether each domain that gets some of the tasks on these nodes (int64[K]) then has a multiple as stated."""
        return not self.broken(tree, node).any()

    def broken(self, tree: Tree, node: Rows) -> Bools:
        """bool[V]: which vertices that get some of the tasks on these nodes (int64[K]) have no multiple then."""
        many = tree.summed(np.bincount(node, minlength=len(tree.parent) - tree.domains).astype(np.int64))
        together = many + tree.summed(self.held)
        return np.asarray((many > 0) & (together % np.asarray(self.own, np.int64)[tree.tier] > 0))


def uneven(snapshot: Snapshot, rows: Rows, node: Rows) -> Bools:
    """bool[K]: which of the tasks ``rows`` would be in a domain without a multiple if all were on ``node`` (int64[K]).

    What else their podgroups, and those that start with them, run or were promised counts too.
    """
    owner = snapshot.tasks.podgroup[rows]
    wishes, said = snapshot.vocabulary.gathers, distinct(snapshot.podgroups.gather[owner]).tolist()
    if not any(wishes[row].multiples for row in said if row != NONE):
        return np.zeros(len(rows), bool)
    tree, result = snapshot.once(tree_of), np.ones(len(rows), bool)
    for unit in {gang_group_of(snapshot, podgroup): None for podgroup in distinct(owner).tolist()}:
        mine, wrong = is_among(owner, unit), np.zeros(len(snapshot.nodes), bool)
        steps = steps_of(snapshot, unit, rows[mine])
        for vertex in () if steps is None else steps.broken(tree, node[mine]).nonzero()[0].tolist():
            wrong[slice(*tree.slice(vertex))] = True
        result[mine] &= wrong[node[mine]]
    return result


def steps_of(snapshot: Snapshot, podgroups: Sequence[int], besides: Rows) -> Steps | None:
    """The steps that podgroups ask for together, ``besides`` not counted; None if they ask for none."""
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
    tree, held = snapshot.once(tree_of), tasks_on(snapshot, podgroups, besides)
    even = not (tree.summed(held) % np.asarray(own, np.int64)[tree.tier]).any()
    return Steps(tuple(steps), tuple(own), steps[-1], sealed(held), even)


def tasks_on(snapshot: Snapshot, podgroups: Sequence[int], besides: Rows) -> Longs:
    """int64[N]: how many tasks of some podgroups run on or are promised each node, ``besides`` left out."""
    rows, _ = snapshot.tasks_of_all(np.array(podgroups))
    node = snapshot.place_of(rows[~is_among(rows, besides)])
    return np.bincount(node[node != NONE], minlength=len(snapshot.nodes)).astype(np.int64)
