"""How one resource is divided among sibling queues."""

import math

import numpy as np
import pytest

from pipeline.cluster.fairness.division import Siblings, divided
from tests.support.twins import uncompiled

ANY = math.inf


def siblings(*rows):
    """Each row: priority, deserved, requestable, weight, usage; the first is the eldest."""
    columns = [np.array(column, float) for column in zip(*rows, strict=True)]
    return Siblings(columns[0].astype(np.int32), np.arange(len(rows)), *columns[1:])


def shares(total, *rows, k=1.0):
    queues = siblings(*rows)
    compiled = divided(float(total), k, queues)
    with uncompiled():
        assert divided.py_func(float(total), k, queues).tolist() == compiled.tolist()
    return compiled.tolist()


def test_a_queue_gets_what_it_deserves_and_no_more_than_it_asks_for():
    assert shares(10, (1, 4, 9, 0, 0), (1, 4, 2, 0, 0)) == [4, 2]


def test_a_queue_entitled_to_everything_gets_all_that_it_asks_for():
    assert shares(10, (1, ANY, 30, 1, 0), (1, ANY, 3, 1, 0)) == [10, 3]


def test_what_queues_deserve_is_not_scaled_down_where_it_exceeds_the_total():
    assert shares(10, (1, 8, 9, 1, 0), (1, 8, 9, 1, 0)) == [8, 8]


def test_the_surplus_is_divided_by_weight():
    assert shares(12, (1, 0, 99, 1, 0), (1, 0, 99, 3, 0)) == [3, 9]


def test_what_one_queue_does_not_want_goes_to_the_others():
    assert shares(12, (1, 0, 2, 1, 0), (1, 0, 99, 1, 0)) == [2, 10]


def test_a_queue_without_weight_gets_nothing_of_the_surplus():
    assert shares(12, (1, 1, 99, 0, 0), (1, 1, 5, 1, 0)) == [1, 5]


def test_a_higher_priority_is_satisfied_before_a_lower_one_gets_any():
    assert shares(10, (1, 0, 8, 5, 0), (2, 0, 8, 1, 0)) == [2, 8]


@pytest.mark.parametrize(("total", "wanted"), [(4, [2, 1, 1]), (5, [2, 2, 1])])
def test_units_that_rounding_leaves_go_to_the_eldest(total, wanted):
    assert shares(total, (1, 0, 9, 1, 0), (1, 0, 9, 1, 0), (1, 0, 9, 1, 0)) == wanted


def test_units_that_rounding_leaves_go_to_the_largest_remainder():
    assert shares(5, (1, 0, 9, 2, 0), (1, 0, 9, 1, 0)) == [3, 2]


def test_units_that_rounding_leaves_are_handed_out_once_all_priorities_had_their_rounds():
    # A lower priority takes the unit that the higher one was cut by, as its own rounds come first.
    assert shares(3, (2, 0, 9, 1, 0), (2, 0, 9, 1, 0), (1, 0, 9, 1, 0)) == [1, 1, 1]


def test_of_queues_that_were_cut_those_of_a_higher_priority_get_such_units_first():
    low, high = (1, 0, 9, 1, 0), (2, 0, 9, 1, 0)
    # The high ones are cut by two thirds of a unit, as are the low ones, to whom their two units go down.
    assert shares(5, low, low, low, high, high, high) == [0, 0, 0, 2, 2, 1]
    assert shares(3, low, low, low, low, high, high) == [0, 0, 0, 0, 2, 1]


def test_past_usage_counts_against_a_queue():
    assert shares(12, (1, 0, 99, 1, 0.5), (1, 0, 99, 1, 0)) == [4, 8]


def test_past_usage_does_not_count_where_it_has_no_weight():
    assert shares(12, (1, 0, 99, 1, 0.9), (1, 0, 99, 1, 0), k=0.0) == [6, 6]


def test_a_queue_that_used_far_more_than_its_part_gets_nothing_of_the_surplus():
    assert shares(12, (1, 2, 99, 1, 1.0), (1, 0, 99, 1, 0)) == [2, 10]


def test_a_part_of_a_unit_that_was_asked_for_is_given():
    assert shares(2, (1, 0, 0.5, 1, 0), (1, 0, 9, 1, 0)) == [0.5, 1.5]
