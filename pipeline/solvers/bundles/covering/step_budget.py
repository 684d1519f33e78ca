"""How long a local search may go on, by the size of the fleet."""

from math import ceil
from typing import NamedTuple

#: Small fleets have up to this many nodes, and large ones more than this many.
SMALL, LARGE = 128, 6_000
#: In small fleets steps for each task of the minimum, from the fewest to the most of all.
_EACH, _FEWEST, _MOST = 20, 400, 600
#: There the first search and each round with multipliers make one of these parts of them.
_ROUNDS, _PARTS = 3, 3
#: There a search ends after one of these parts of all steps without gain, in reclaim, which searches twice, and in
#: preempt; the first search after half of that.
_IDLE_PARTS_RECLAIM, _IDLE_PARTS_PREEMPT = 6, 2
#: There victims of fairer queues are looked for this often; elsewhere once.
_FAIRER = 8
#: Steps in the smallest fleets that are not small. They fall faster than the size grows: all together take less time.
_FALLING = 150
#: Steps for few podgroups in preempt, and steps more in reclaim.
_LEAST = 3
#: Steps of a reclaim in large fleets. A preempt makes none: the order of bundles and branch and bound come close there.
_LEAST_LARGE = 2
#: How many short searches more a preempt makes in fleets between small and large ones.
_ANEW = 2
#: After how many steps without gain a search ends elsewhere: this many, and these divided by the nodes.
_IDLE, _NODE_IDLE = 4, 8_000


class StepBudget(NamedTuple):
    """How long a search may go on.

    Attributes
    ----------
    steps, idle
        At most how many steps are made at first, and after how many without gain the search ends.
    rounds, long_idle
        How often all surplus is chosen anew, and as many steps are made again, with the multipliers that this gives;
        and after how many without gain each of these searches ends.
    few
        At most how many steps the search for few podgroups makes; it ends as those of a round do.
    fairer
        How often victims of fairer queues are looked for.
    higher
        Whether victims of a higher priority are looked for as well.
    first
        Steps of the search for a set to begin with, if none is known.
    anew
        How many short searches more begin, each with another scale for surplus.
    """

    steps: int
    idle: int
    rounds: int
    long_idle: int
    few: int
    fairer: int
    higher: bool
    first: int = 0
    anew: int = 0


def budget_of(nodes: int, minimum: int, *, reclaims: bool) -> StepBudget:
    """How long the search for ``minimum`` tasks may go on in a fleet of some nodes."""
    idle = _IDLE + _NODE_IDLE // nodes
    if nodes <= SMALL:
        steps = min(max(_EACH * minimum, _FEWEST), _MOST)
        idle = max(steps // (_IDLE_PARTS_RECLAIM if reclaims else _IDLE_PARTS_PREEMPT), idle)
        return StepBudget(
            steps // _PARTS, idle // 2, _ROUNDS, idle, steps if reclaims else _LEAST, fairer=_FAIRER, higher=reclaims
        )
    if nodes > LARGE:
        return StepBudget(_LEAST_LARGE if reclaims else 0, idle, 0, idle, few=0, fairer=1, higher=False)
    steps = ceil(_FALLING * (SMALL / nodes) ** 1.5) + (_LEAST if reclaims else 0)
    few = steps if reclaims else min(_LEAST, steps)
    anew = 0 if reclaims else _ANEW
    return StepBudget(steps, idle, 0, idle, few, fairer=1, higher=reclaims, anew=anew)
