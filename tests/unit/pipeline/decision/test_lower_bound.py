"""What a lower bound says of a price."""

from dataclasses import replace

import pytest

from pipeline.decision.explanation import LowerBound
from pipeline.decision.price import NO_VICTIMS

PRICE = replace(NO_VICTIMS, broken=((3, 2.2), (1, 9.0)), victims=4)


def test_the_excess_is_measured_in_the_highest_level_that_breaks() -> None:
    assert LowerBound(0, ((3, 2.0),)).excess(PRICE) == pytest.approx(0.1)


def test_a_plan_without_victims_cannot_be_above_the_least() -> None:
    assert LowerBound(0, ()).excess(NO_VICTIMS) == 0.0


def test_a_bound_of_another_level_or_queue_is_silent() -> None:
    assert LowerBound(0, ((2, 2.0),)).excess(PRICE) is None
    assert LowerBound(1, ((3, 2.0),)).excess(PRICE) is None
    assert LowerBound(0, ()).excess(PRICE) is None


def test_bounds_are_ordered_as_prices_are() -> None:
    least = min(LowerBound(0, ((3, 2.0),)), LowerBound(0, ()), LowerBound(1, ()), LowerBound(0, ((2, 9.0),)))
    assert least == LowerBound(0, ())
