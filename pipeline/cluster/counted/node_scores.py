"""How well a task goes on a node: scores that follow from what the node would have in use."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Longs, Rows
from pipeline.cluster.resources import CPU, MEMORY
from pipeline.kernels import kernel, linked


class ScoreTerms(NamedTuple):
    """A score as a sum of terms, one after the other, each weighted; see `term` for what they are.

    Attributes
    ----------
    filling: float64[K]
        Weight of how full the task would make the node, 0 to 100, by ``weight`` (float64[K, R]) of each resource.
    least, most, balanced: float64[K]
        Weights of kube-scheduler's least and most requested and balanced allocation, 0 to 100, over cpu and memory.
    idle, largest: float64[K]
        Weight of how much is idle of the resources with a ``weight``: as a part of the node, 0 to 1; or, of what the
        ``largest`` node has, how little it is.
    bare, absent: float64[K], float64[K, R]
        Added score of a node that has nothing of the resources ``absent``.
    """

    filling: Floats
    weight: Floats
    absent: Floats
    least: Floats
    most: Floats
    balanced: Floats
    idle: Floats
    largest: Floats
    bare: Floats


def score_terms(
    resources: int, *, filling: float = 0.0, weight: Floats | Bools | None = None,
    least: float = 0.0, most: float = 0.0, balanced: float = 0.0,
    idle: float = 0.0, largest: float = 0.0, bare: float = 0.0, absent: Bools | None = None,
) -> ScoreTerms:  # fmt: skip
    """One term; what is not given counts for nothing. Whole numbers make no columns of another type."""
    weights, absents = (
        np.zeros((1, resources)) if one is None else np.array(one, np.float64).reshape(1, resources)
        for one in (weight, absent)
    )
    scales = (np.array([one], np.float64) for one in (least, most, balanced, idle, largest, bare))
    return ScoreTerms(np.array([filling], np.float64), weights, absents, *scales)


def sum_of_scores(terms: list[ScoreTerms], resources: int) -> ScoreTerms:
    """The sum of some scores, in their order."""
    if not terms:
        return ScoreTerms(*(column[:0] for column in score_terms(resources)))
    return ScoreTerms(*(np.concatenate(columns) for columns in zip(*terms, strict=True)))


@kernel
def scores(terms: ScoreTerms, request: Longs, used: Longs, allocatable: Longs, rows: Rows) -> Floats:
    """float64[M]: the score of a task that asks for ``request`` int64[R] on the nodes ``rows``, larger is better.

    ``used`` int64[M, R] is what tasks hold of these nodes; ``allocatable`` int64[N, R] is that of all nodes.
    """
    result = np.zeros(len(rows))
    for at in range(len(rows)):
        result[at] = score_of(terms, request, used[at], allocatable[rows[at]])
    return result


@linked
def score_of(terms: ScoreTerms, request: Longs, used: Longs, there: Longs) -> float:
    """The score on one node."""
    total = 0.0
    for k in range(len(terms.least)):
        total += _filled(terms, k, request, used, there) + _requested(terms, k, request, used, there)
        total += _idle(terms, k, used, there)
    return total


@linked
def _filled(terms: ScoreTerms, k: int, request: Longs, used: Longs, there: Longs) -> float:
    """Binpack: 100 where all that is asked for would be used up, 0 where the task does not fit at all."""
    filled, weights, within = 0.0, 0.0, True
    for r in range(len(request)):
        if request[r] > 0 and terms.weight[k, r] > 0:
            full = (used[r] + request[r]) / there[r] if there[r] > 0 else np.inf
            filled += full * terms.weight[k, r]
            weights += terms.weight[k, r]
            within &= full <= 1
    return filled / weights * 100 * terms.filling[k] if weights > 0 and within else 0.0


@linked
def _requested(terms: ScoreTerms, k: int, request: Longs, used: Longs, there: Longs) -> float:
    """Least and most requested and balanced allocation; what does not exist on a node counts as full."""
    one = (used[CPU] + request[CPU]) / there[CPU] if there[CPU] > 0 else 1.0
    other = (used[MEMORY] + request[MEMORY]) / there[MEMORY] if there[MEMORY] > 0 else 1.0
    total = 0.0
    if terms.least[k] != 0:
        total += ((1 - min(one, 1.0)) + (1 - min(other, 1.0))) / 2 * 100 * terms.least[k]
    if terms.most[k] != 0:
        total += ((one if one <= 1 else 0.0) + (other if other <= 1 else 0.0)) / 2 * 100 * terms.most[k]
    if terms.balanced[k] != 0:  # of two numbers the standard deviation is half of their difference
        total += (1 - abs(min(one, 1.0) - min(other, 1.0)) / 2) * 100 * terms.balanced[k]
    return total


@linked
def _idle(terms: ScoreTerms, k: int, used: Longs, there: Longs) -> float:
    """How much is idle, or how little; and whether the node is bare of what the task does not need."""
    if terms.idle[k] == 0:
        return 0.0
    whole, idle, absent = 0, 0, 0
    for r in range(len(there)):
        whole += there[r] if terms.weight[k, r] > 0 else 0
        idle += there[r] - used[r] if terms.weight[k, r] > 0 else 0
        absent += there[r] if terms.absent[k, r] > 0 else 0
    total: float = idle / whole if whole > 0 else 0.0
    if terms.largest[k] > 0:
        total = 1.0 - idle / terms.largest[k]
    total *= terms.idle[k]
    return total + terms.bare[k] if absent == 0 else total
