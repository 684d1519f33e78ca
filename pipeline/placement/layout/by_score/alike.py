"""Placing tasks alike in one pass: each on the best node, while nodes fill up."""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.cluster.cards import best_card
from pipeline.kernels import kernel, writing
from pipeline.plugins.host import Host

#: At most this many tasks alike go to a node before its score is asked for again.
DEEPEST = 16


class NodeLevels:
    """Scores of nodes for their first, second, … task of a shape; asked for once where no task was placed before."""

    def __init__(self, host: Host) -> None:
        self._host, self._snapshot = host, host.context.snapshot
        self._known: dict[int, Floats] = {}

    def of(self, shape: int, nodes: tuple[int, int], used: Longs, changed: Rows, deepest: int) -> Floats:
        """float64[deepest, n]: the scores of the nodes from the first up to the second.

        ``used`` int64[N, R] is what nodes use now; only ``changed`` int64[K] use more than in the snapshot.
        """
        known = self._known.get(shape)
        if known is None or len(known) < deepest:
            room = self._snapshot.room
            before = self._snapshot.nodes.allocatable - np.minimum(room.idle, room.future)
            known = self._known[shape] = self._scored(shape, before, np.arange(len(before)), range(deepest))
        start, stop = nodes
        found = known[:deepest, start:stop].copy()
        changed = changed[(changed >= start) & (changed < stop)]
        if len(changed):
            found[:, changed - start] = self._scored(shape, used[changed], changed, range(deepest))
        return found

    def _scored(self, shape: int, used: Longs, rows: Rows, depths: Sequence[int]) -> Floats:
        request = self._snapshot.shapes.request[shape]
        return np.array([self._host.node_score(shape, used + depth * request, rows) for depth in depths])


@kernel
def placed_in_turn(
    wanted: int, later: Longs, now: Longs, levels: Floats, closest: Longs, score: float
) -> tuple[Rows, Bools, float]:
    """Place tasks alike one after the other, each on the best node, as ``ScoredPlacement.place`` says.

    Parameters
    ----------
    wanted
        How many tasks.
    later, now: int64[n]
        How many each node will take, and how many of them it takes now.
    levels: float64[K, n]
        The score of each node for its first, second, … of these tasks.
    closest: int64[n]
        Nodes of larger values go first, whatever their score.
    score
        The scores so far; those of the tasks are added in turn.

    Returns
    -------
    The node of each task that was placed, int64[P], whether its room is there now, bool[P], and the sum of scores. They
    are fewer than ``wanted`` where no node takes another one, and where one takes more than ``levels`` say.
    """
    taken, best = np.zeros(len(later), np.int64), np.empty(wanted, np.int64)
    at_once = np.empty(wanted, np.bool_)
    for task in range(wanted):
        chosen = NONE
        for node in range(len(later)):
            many = taken[node]
            if many >= later[node]:
                continue
            if chosen != NONE:
                other, rank = taken[chosen], closest[node] - closest[chosen]
                rank = rank if rank != 0 else int(many < now[node]) - int(other < now[chosen])
                if rank < 0 or (rank == 0 and levels[many, node] <= levels[other, chosen]):
                    continue
            chosen = node
        if chosen == NONE:
            return best[:task], at_once[:task], score
        many = taken[chosen]
        best[task], at_once[task], taken[chosen] = chosen, many < now[chosen], many + 1
        score += levels[many, chosen]
        if many + 1 == len(levels) and later[chosen] > len(levels):
            return best[: task + 1], at_once[: task + 1], score
    return best, at_once, score


@writing("idle", "future")
def dealt_cards(node: Rows, now: Bools, amount: int, idle: Longs, future: Longs, spread: bool) -> Rows:
    """int64[K]: a card for each task that asks for ``amount`` of one, on its node, one task after the other.

    Parameters
    ----------
    node, now: int64[K], bool[K]
        As in ``placed_in_turn``.
    idle, future: int64[N, D]
        What the cards have now, and what they will have; changed.
    spread
        See ``best_card``.
    """
    cards = np.empty(len(node), np.int64)
    for task in range(len(node)):
        cards[task] = best_card(amount, (idle if now[task] else future)[node[task]], spread)
        for free in (idle, future):
            free[node[task], cards[task]] -= amount
    return cards
