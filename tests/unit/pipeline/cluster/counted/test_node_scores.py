"""Scores of nodes by their terms, against the formulas written over columns."""

import numpy as np
import pytest

from pipeline.cluster.arrays import Bools, Floats, Longs
from pipeline.cluster.counted.node_scores import score_terms, scores, sum_of_scores
from pipeline.cluster.resources import CPU, MEMORY, PODS


def full(used: Longs, there: Longs, absent: float) -> Floats:
    return np.divide(used, there, out=np.full(len(used), absent), where=there > 0)


def by_filling(request: Longs, used: Longs, there: Longs, weight: Floats, scale: float) -> Floats:
    counts = np.flatnonzero((request > 0) & (weight > 0))
    score, within = np.zeros(len(used)), np.ones(len(used), bool)
    for at in counts.tolist():
        part = full(used[:, at] + request[at], there[:, at], np.inf)
        score += part * weight[at]
        within &= part <= 1
    return np.where(within, score / max(weight[counts].sum(), 1.0) * 100 * scale, 0.0)


def by_request(request: Longs, used: Longs, there: Longs, least: float, most: float, balanced: float) -> Floats:
    one, other = (full(used[:, of] + request[of], there[:, of], 1.0) for of in (CPU, MEMORY))
    low, high = np.minimum(one, 1), np.minimum(other, 1)
    score = ((1 - low) + (1 - high)) / 2 * 100 * least
    score += (np.where(one <= 1, one, 0.0) + np.where(other <= 1, other, 0.0)) / 2 * 100 * most
    return np.asarray(score + (1 - np.abs(low - high) / 2) * 100 * balanced)


def by_idle(used: Longs, there: Longs, counts: Bools, devices: Bools, weight: float, largest: int) -> Floats:
    whole, idle = there[:, counts].sum(axis=1), (there - used)[:, counts].sum(axis=1)
    score = 1.0 - idle / largest if largest else np.divide(idle, whole, out=np.zeros(len(used)), where=whole > 0)
    return np.asarray(score * weight + 10.0 * (there[:, devices].sum(axis=1) == 0))


@pytest.mark.parametrize("seed", range(20))
def test_a_score_is_the_sum_of_its_terms_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    there, rows = rng.integers(0, 12, (9, 5)), rng.integers(0, 9, 7)
    used, request = rng.integers(0, 12, (7, 5)), rng.integers(0, 4, 5)
    weight, scale = rng.integers(0, 3, 5).astype(float), float(rng.integers(1, 4))
    weight[PODS] = 0.0
    least, most, balanced = rng.integers(0, 3, 3).astype(float).tolist()
    filling = score_terms(5, filling=scale, weight=weight)
    counts, devices, largest = weight > 0, rng.random(5) < 0.3, int(rng.integers(0, 2)) * 40
    idle = score_terms(5, weight=counts, idle=scale, largest=largest, bare=10.0, absent=devices)
    terms = sum_of_scores([filling, score_terms(5, least=least, most=most, balanced=balanced), idle], 5)
    wanted = by_filling(request, used, there[rows], weight, scale)
    wanted = wanted + by_request(request, used, there[rows], least, most, balanced)
    wanted = wanted + by_idle(used, there[rows], counts, devices, scale, largest)
    assert scores(terms, request, used, there, rows).tolist() == wanted.tolist()
    assert scores.py_func(terms, request, used, there, rows).tolist() == wanted.tolist()


def test_weights_that_are_whole_numbers_make_the_same_columns() -> None:
    """Columns of another type would have to wait for machine code of their own."""
    whole, other = (score_terms(5, filling=one, least=one, most=one, balanced=one) for one in (2, 2.0))
    assert [column.dtype for column in whole] == [column.dtype for column in other]


def test_without_terms_all_nodes_are_alike() -> None:
    amounts = np.ones((2, 3), np.int64)
    assert scores(sum_of_scores([], 3), amounts[0], amounts, amounts, np.arange(2)).tolist() == [0.0, 0.0]
