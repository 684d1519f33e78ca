"""Of selections that cost nearly the same, the one that breaks the fewest podgroups is preferred."""

from itertools import permutations

import numpy as np
import pytest

from pipeline.cluster.arrays import NO_ROWS
from pipeline.decision.price import Price
from pipeline.solvers.bundles.covering.chosen import NO_VICTIMS, Selection
from pipeline.solvers.bundles.finalists import Finalists


def selection(domain: int, work: float, gangs: int, level: int = 0, rank: int = 0) -> Selection:
    price = Price(0, rank, ((level, work),), (), level, gangs, 0, domain, gangs)
    return Selection(NO_ROWS, NO_ROWS, NO_ROWS, np.zeros(0, np.int64), price, NO_VICTIMS, 0, None)


def preferred(*found: Selection, margin: float | None = 0.01) -> int:
    (domain,) = {_preferred(order, margin) for order in permutations(found)}
    return domain


def _preferred(found: tuple[Selection, ...], margin: float | None) -> int:
    best = Finalists(margin, found).preferred
    assert best is not None
    return best.price.domain


def test_nothing_is_preferred_among_none():
    assert Finalists(0.01).preferred is None
    assert Finalists(0.01).beaten_by is None


def test_fewer_break_for_nearly_the_same_work_in_whatever_order_they_are_found():
    assert preferred(selection(1, 100.0, 9), selection(2, 100.9, 3), selection(3, 100.5, 5)) == 2


def test_what_is_nearly_the_same_is_measured_from_the_cheapest_of_all():
    # The third is near the second, but not near the first.
    assert preferred(selection(1, 100.0, 9), selection(2, 100.9, 5), selection(3, 101.8, 1)) == 2


def test_of_those_that_break_as_few_the_cheapest_is_preferred():
    assert preferred(selection(1, 100.0, 9), selection(2, 100.9, 3), selection(3, 100.5, 3)) == 3
    assert preferred(selection(1, 100.0, 3), selection(2, 100.0, 3)) == 1


def test_a_policy_that_keeps_its_order_takes_the_cheapest():
    assert preferred(selection(1, 100.0, 9), selection(2, 100.5, 3), margin=None) == 1


def test_neither_priority_nor_fairness_is_traded_for_fewer_podgroups():
    assert preferred(selection(1, 100.0, 9), selection(2, 100.0, 1, level=5)) == 1
    assert preferred(selection(1, 100.0, 9), selection(2, 100.0, 1, rank=1)) == 1


@pytest.mark.parametrize("gangs", [1, 4, 9])
@pytest.mark.parametrize("work", [99.0, 100.0, 100.9, 101.1])
def test_a_price_that_would_be_preferred_is_never_above_what_beats_the_others(work: float, gangs: int):
    others = Finalists(0.01, (selection(1, 100.0, 9), selection(2, 100.5, 4)))
    one = selection(3, work, gangs)
    wins = others.and_also(one).preferred is one
    assert others.loses_to(one.price) == (wins or work < 100.0)
    assert others.beaten_by is not None
    assert not wins or one.price.broken <= others.beaten_by.broken
