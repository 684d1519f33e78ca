"""How many tasks vertices may take where domains take multiples, and how tasks are divided among them.

The numbers that a vertex may take are bits of a whole number: bit ``k`` is set if it may take ``k`` tasks. Those of
several vertices together are all sums of theirs.
"""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows
from pipeline.solvers.gather.multiples import Steps
from pipeline.solvers.gather.tree import Tree


def takes_exactly(tree: Tree, steps: Steps, slots: Longs, many: int) -> Bools:
    """bool[V]: vertices that may take ``many`` tasks, so that all domains around them keep their multiples too.

    Parameters
    ----------
    slots: int64[V]
        What each vertex takes at most, as `Steps.summed` says.
    """
    if steps.even:
        return np.asarray(slots >= many) if many % steps.whole == 0 else np.zeros(len(slots), bool)
    numbers = _numbers(tree, steps, slots, many)
    takes = np.concatenate([[one >> many & 1 for one in numbers], slots[tree.domains :] >= many]).astype(bool)
    whole = (tree.summed(steps.held) + many) % np.asarray(steps.own, np.int64)[tree.tier] == 0
    around = np.ones(len(takes), bool)
    for vertex in range(1, tree.domains):  # parents come before children
        around[vertex] = around[tree.parent[vertex]] & whole[tree.parent[vertex]]
    holder = tree.parent[tree.domains :]
    around[tree.domains :] = around[holder] & whole[holder]
    return takes & around


def in_steps(tree: Tree, steps: Steps | None, per_node: Longs, outer: Rows, most: int) -> Sequence[int]:
    """The numbers of tasks above 0 and up to ``most`` that multiples allow, ascending.

    If the gang's tasks are no multiples now, only those that one of the domains ``outer`` (int64[O]) may take, of whose
    nodes each takes ``per_node`` (int64[N]) at most.
    """
    if steps is None or steps.even:
        step = 1 if steps is None else steps.whole
        return range(step, most + 1, step)
    slots = np.concatenate([np.zeros(tree.domains, np.int64), per_node])
    numbers, held, found = _numbers(tree, steps, slots, most), tree.summed(steps.held), 0
    for domain in outer.tolist():
        takes, around = numbers[domain], domain
        while around != 0:
            around = int(tree.parent[around])
            takes &= _multiples(steps.own[tree.tier[around]], int(held[around]), most)
        found |= takes
    return [many for many in range(1, most + 1) if found >> many & 1]


def divided_among_vertices(tree: Tree, steps: Steps, slots: Longs, existing: Longs, vertex: int, many: int) -> Longs:
    """int64[V]: how many of ``many`` tasks each vertex inside ``vertex`` gets, from the top down.

    Children near existing tasks (int64[V]) are first, then the largest; each takes as many as leave a number that
    those after it may take.
    """
    numbers = _numbers(tree, steps, slots, many)
    share = np.zeros(len(slots), np.int64)
    share[vertex] = many
    waiting = [vertex]
    while waiting:
        here = waiting.pop()
        if here >= tree.domains or share[here] == 0:
            continue
        children = tree.child[tree.child_start[here] : tree.child_start[here + 1]]
        children = children[np.lexsort((children, -slots[children], -existing[children]))].tolist()
        takes = [numbers[child] if child < tree.domains else _upto(int(slots[child]), many) for child in children]
        after = [1]
        for one in reversed(takes):
            after.append(_together(after[-1], one, many))
        left = int(share[here])
        for child, one, rest in zip(children, takes, after[-2::-1], strict=True):
            took = next(some for some in range(left, -1, -1) if one >> some & 1 and rest >> (left - some) & 1)
            share[child] = took
            left -= took
        waiting += children
    return share


def _numbers(tree: Tree, steps: Steps, slots: Longs, most: int) -> list[int]:
    """Of each domain the numbers of tasks up to ``most`` that it may take; ``slots`` int64[V] count at nodes only."""
    direct = np.bincount(tree.parent[tree.domains :], weights=slots[tree.domains :], minlength=tree.domains)
    held, numbers = tree.summed(steps.held), [_upto(int(many), most) for many in direct]
    for domain in range(tree.domains - 1, -1, -1):  # children come after their parents
        numbers[domain] = 1 | numbers[domain] & _multiples(steps.own[tree.tier[domain]], int(held[domain]), most)
        if domain > 0:
            above = int(tree.parent[domain])
            numbers[above] = _together(numbers[above], numbers[domain], most)
    return numbers


def _upto(slots: int, most: int) -> int:
    return (1 << min(slots, most) + 1) - 1


def _multiples(multiple: int, held: int, most: int) -> int:
    """The numbers up to ``most`` that make a multiple together with what is held."""
    least = -held % multiple
    many = max((most - least) // multiple + 1, 0)
    return ((1 << many * multiple) - 1) // ((1 << multiple) - 1) << least


def _together(one: int, other: int, most: int) -> int:
    """All sums up to ``most`` that take one number from each."""
    if not one & (one + 1) and not other & (other + 1):  # all numbers up to some
        return _upto(one.bit_length() + other.bit_length() - 2, most)
    fewer, more = sorted((one, other), key=int.bit_count)
    found = 0
    while fewer:
        lowest = fewer & -fewer
        found |= more * lowest
        fewer ^= lowest
    return found & _upto(most, most)
