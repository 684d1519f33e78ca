"""Fair division and the reclaim gate of profile `kai`, against what they promise and against plain Python."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cluster.fairness.division import Siblings, divided
from pipeline.cluster.fairness.gate import QueueShares, Victims, may_take
from tests.support.depth import sampled

many = settings(max_examples=sampled(300))
AMOUNT = st.integers(0, 30)
BOUND = st.one_of(st.just(math.inf), AMOUNT)


@st.composite
def siblings(draw: st.DrawFn, most: int = 6) -> Siblings:
    count = draw(st.integers(1, most))

    def column(of: st.SearchStrategy[Any]) -> np.ndarray:
        return np.array(draw(st.lists(of, min_size=count, max_size=count)), np.float64)

    return Siblings(
        priority=column(st.integers(0, 2)).astype(np.int32),
        seniority=np.array(draw(st.permutations(range(count)))),
        deserved=column(BOUND),
        requestable=column(AMOUNT),
        weight=column(st.integers(0, 4)),
        usage=column(st.integers(0, 10)) / 10,
    )


@many
@given(siblings(), AMOUNT, st.sampled_from([0.0, 0.5, 1.0, 4.0]))
def test_no_queue_gets_less_than_it_deserves_or_more_than_it_asks_for(queues: Siblings, total: int, k: float) -> None:
    share = divided(float(total), k, queues)
    entitled = np.minimum(np.where(np.isinf(queues.deserved), total, queues.deserved), queues.requestable)
    assert (share >= entitled).all()
    assert (share <= queues.requestable).all()
    assert share.sum() <= max(total, entitled.sum()) + 1e-9


@many
@given(siblings(), AMOUNT)
def test_nothing_is_left_while_any_queue_with_a_weight_wants_more(queues: Siblings, total: int) -> None:
    share = divided(float(total), 0.0, queues)
    wants = (share < queues.requestable) & (queues.weight > 0)
    assert share.sum() >= total - 1e-9 or not wants.any()


@many
@given(siblings(), AMOUNT)
def test_a_lower_priority_gets_surplus_only_once_a_higher_one_is_cut_by_no_more_than_a_unit(
    queues: Siblings, total: int
) -> None:
    share = divided(float(total), 0.0, queues)
    entitled = np.minimum(np.where(np.isinf(queues.deserved), total, queues.deserved), queues.requestable)
    surplus = share - entitled
    for queue in np.flatnonzero((share < queues.requestable) & (queues.weight > 0)):
        lower = queues.priority < queues.priority[queue]
        # What rounding leaves over, less than a unit for each queue of the higher priorities, goes down.
        assert surplus[lower].sum() <= len(share)


@many
@given(siblings(), AMOUNT)
def test_within_a_priority_shares_are_those_of_exact_water_filling_up_to_rounding(queues: Siblings, total: int) -> None:
    alike = queues._replace(priority=np.zeros(len(queues.weight), np.int32))
    share = divided(float(total), 0.0, alike)
    exact = filled(Fraction(total), alike)
    assert all(abs(Fraction(mine) - wanted) <= len(share) for mine, wanted in zip(share.tolist(), exact, strict=True))


def filled(total: Fraction, queues: Siblings) -> list[Fraction]:
    """Weighted water-filling above what is deserved, with fractions of a unit."""
    entitled = [total if math.isinf(one) else Fraction(one) for one in queues.deserved.tolist()]
    share = [min(one, Fraction(most)) for one, most in zip(entitled, queues.requestable.tolist(), strict=True)]
    left = total - sum(share)
    while left > 0:
        wanting = [at for at in range(len(share)) if share[at] < queues.requestable[at] and queues.weight[at] > 0]
        weights = sum(Fraction(queues.weight[at]) for at in wanting)
        if not wanting:
            break
        rise = min((Fraction(queues.requestable[at]) - share[at]) / Fraction(queues.weight[at]) for at in wanting)
        rise = min(rise, left / weights)
        for at in wanting:
            share[at] += rise * Fraction(queues.weight[at])
        left -= rise * weights
    return share


# -- the gate ----------------------------------------------------------------------------------------------------------

#: Two parents above two leaves each; a leaf of the first asks.
PARENT = (4, 4, 5, 5, -1, -1)


@st.composite
def asked(draw: st.DrawFn) -> tuple[Any, ...]:
    def column(of: st.SearchStrategy[Any]) -> list[list[float]]:
        return draw(st.lists(st.lists(of, min_size=2, max_size=2), min_size=6, max_size=6))

    small = st.integers(0, 8)
    bound = st.one_of(st.just(math.inf), small)
    victims = draw(
        st.dictionaries(st.integers(1, 3), st.lists(st.lists(small, min_size=2, max_size=2), max_size=3), max_size=3)
    )
    request = draw(st.lists(st.integers(0, 4), min_size=2, max_size=2))
    multiplier = draw(st.sampled_from([1.0, 1.2]))
    return column(bound), column(bound), column(small), column(small), request, draw(st.booleans()), victims, multiplier


@many
@given(asked())
def test_the_gate_decides_as_plain_python_does(question: tuple[Any, ...]) -> None:
    deserved, fair, allocated, lasting, request, preemptible, victims, multiplier = question
    columns = [np.array(column, np.float64) for column in (deserved, fair, allocated, lasting)]
    queues = QueueShares(
        np.array(PARENT, np.int32), columns[0], columns[1], np.maximum(columns[0], columns[1]), columns[2], columns[3]
    )
    units = np.array([unit for held in victims.values() for unit in held], np.float64).reshape(-1, 2)
    start = np.cumsum([0, *(len(held) for held in victims.values())]).astype(np.int64)
    given_up = Victims(np.array(list(victims), np.int64), start, units)
    found = may_take(queues, 0, np.array(request, np.float64), preemptible, given_up, multiplier)
    assert bool(found) is plainly(*question)


def plainly(
    deserved: Any,
    fair: Any,
    allocated: Any,
    lasting: Any,
    request: Any,
    preemptible: bool,
    victims: Any,
    multiplier: float,
) -> bool:
    """The rule of the notes, by dictionaries of paths."""
    paths = {row: ([PARENT[row]] if PARENT[row] >= 0 else []) + [row] for row in range(6)}
    kinds, left = range(2), [list(row) for row in allocated]

    def fits(held: Any, limit: Any) -> bool:
        return all(held[r] + request[r] <= limit[r] for r in kinds)

    def exceeds(held: Any, limit: Any) -> bool:
        return any(held[r] > limit[r] or (held[r] == -1 and limit[r] != math.inf) for r in kinds)

    if not preemptible and not all(fits(lasting[row], deserved[row]) for row in paths[0]):
        return False
    touched: dict[tuple[int, int], set[int]] = {}
    for owner, units in victims.items():
        mine, other = next(pair for pair in zip(paths[0], paths[owner], strict=True) if pair[0] != pair[1])
        involved = touched.setdefault((mine, other), {r for r in kinds if request[r] > 0})
        for unit in units:
            allowed = [max(pair) for pair in zip(deserved[other], fair[other], strict=True)]
            quota = fits(allocated[mine], deserved[mine]) and exceeds(left[other], deserved[other])
            if not exceeds(left[other], allowed) and not quota:
                return False
            involved |= {r for r in kinds if unit[r] > 0}
            for row in paths[owner]:
                left[row] = [left[row][r] - unit[r] for r in kinds]
    return not any(
        0 < fair[other][r] < math.inf
        and fullness(left[mine][r] + request[r], fair[mine][r]) > 1
        and fullness(left[mine][r] + request[r], fair[mine][r]) * multiplier >= left[other][r] / fair[other][r]
        for (mine, other), involved in touched.items()
        for r in involved
    )


def fullness(held: float, share: float) -> float:
    if share == math.inf:
        return 0.0
    if share == 0:
        return math.inf if held > 0 else 0.0
    return held / share
