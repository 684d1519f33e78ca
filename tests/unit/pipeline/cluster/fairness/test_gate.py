"""Who may reclaim, and whether it may take given victims; upstream's weak spots are shown as what they are."""

import numpy as np
import pytest

from pipeline.cluster.fairness.gate import QueueShares, Victims, may_reclaim, may_take
from tests.support.twins import uncompiled

A1, A2, B1, A, B = range(5)
#: Two parents, of two children and of one.
PARENT = np.array([A, A, B, -1, -1], np.int32)


def queues(deserved, share, allocated, fixed=(0, 0, 0, 0, 0)):
    """Queues of one resource, each column in the order above."""
    columns = deserved, share, allocated, fixed
    deserved, share, allocated, fixed = (np.array(one, float).reshape(-1, 1) for one in columns)
    return QueueShares(PARENT, deserved, share, np.maximum(deserved, share), allocated, fixed)


def of_two(first, second):
    """The same queues of two resources."""
    columns = zip(first[1:], second[1:], strict=True)
    return QueueShares(PARENT, *(np.hstack(pair) for pair in columns))


def taken(standings, request, victims, *, preemptible=True, multiplier=1.0):
    """Whether a1 may take them: queue → what each holds."""
    request = np.atleast_1d(np.array(request, float))
    held = np.array([unit for units in victims.values() for unit in units], float).reshape(-1, len(request))
    start = np.cumsum([0, *(len(units) for units in victims.values())]).astype(np.int64)
    given = Victims(np.array(list(victims), np.int64), start, held)
    arguments = standings, A1, request, preemptible, given, multiplier
    compiled = may_take(*arguments)
    with uncompiled():
        assert may_take.py_func(*arguments) == compiled
    return compiled


def test_a_queue_may_ask_up_to_its_fair_share():
    standings = queues((0, 0, 0, 0, 0), (4, 4, 4, 8, 4), (1, 0, 0, 1, 0))
    assert may_reclaim(standings, A1, np.array([3.0]), True)
    assert not may_reclaim(standings, A1, np.array([4.0]), True)


def test_work_that_is_never_evicted_must_stay_within_what_the_queue_deserves():
    standings = queues((2, 0, 0, 0, 0), (9, 4, 4, 9, 4), (1, 0, 0, 1, 0), fixed=(1, 0, 0, 1, 0))
    assert may_reclaim(standings, A1, np.array([1.0]), False)
    assert not may_reclaim(standings, A1, np.array([2.0]), False)


def test_such_work_must_stay_within_what_every_ancestor_deserves():
    standings = queues((4, 0, 0, 2, 0), (9, 9, 2, 9, 2), (0, 5, 9, 5, 9), fixed=(0, 0, 0, 1, 0))
    assert taken(standings, 1, {B1: [1]}, preemptible=False)
    assert not taken(standings, 2, {B1: [1]}, preemptible=False)
    assert taken(standings, 2, {B1: [1]}, preemptible=True)


def test_a_queue_above_its_share_loses_what_it_has_too_much():
    standings = queues((0, 0, 0, 0, 0), (8, 4, 8, 8, 8), (0, 0, 10, 0, 10))
    assert taken(standings, 2, {B1: [1, 1]})
    assert not taken(standings, 3, {B1: [1, 1, 1]})


def test_a_queue_gets_what_it_deserves_from_a_sibling_that_holds_more_than_it_deserves():
    standings = queues((3, 0, 2, 3, 2), (3, 4, 9, 8, 9), (0, 0, 5, 0, 5))
    assert taken(standings, 3, {B1: [1, 1, 1]})
    assert not taken(standings, 4, {B1: [1, 1, 1]})


def test_victims_are_judged_where_the_ancestors_part():
    # b1 itself is far over its share, but b as a whole is not.
    standings = queues((0, 0, 0, 0, 0), (8, 4, 1, 8, 8), (0, 0, 6, 0, 6))
    assert not taken(standings, 1, {B1: [1]})


def test_a_queue_over_its_share_takes_nothing_from_a_sibling_that_is_less_full():
    standings = queues((0, 0, 0, 0, 0), (8, 4, 4, 4, 4), (2, 3, 6, 5, 6))
    assert not taken(standings, 1, {B1: [1]})


@pytest.mark.parametrize(("request_", "victim", "allowed"), [((1, 0), (1, 0), True), ((1, 0), (1, 1), False),
                                                             ((1, 1), (1, 0), False)])  # fmt: skip
def test_only_what_is_asked_for_or_lost_counts_where_a_queue_is_over_its_share(request_, victim, allowed):
    enough = queues((0, 0, 0, 0, 0), (99, 4, 4, 99, 4), (2, 3, 6, 5, 6))
    over = queues((0, 0, 0, 0, 0), (8, 4, 4, 4, 4), (2, 3, 2, 5, 2))
    assert taken(of_two(enough, over), request_, {B1: [victim]}) is allowed


def test_a_share_of_one_unit_counts():
    standings = queues((0, 0, 0, 0, 0), (9, 4, 1, 4, 1), (4, 0, 3, 4, 3))
    assert not taken(standings, 1, {B1: [3]})


def test_a_queue_without_any_share_takes_nothing_from_one_that_has_a_share():
    standings = queues((0, 0, 0, 0, 0), (9, 4, 8, 0, 8), (0, 0, 10, 0, 10))
    assert not taken(standings, 1, {B1: [1]})


def test_of_what_a_queue_neither_holds_nor_asks_for_it_needs_no_share():
    asked, lost = (queues((0, 0, 0, 0, 0), (9, 4, 8, most, 8), (0, 0, 10, 0, 10)) for most in (9, 0))
    assert taken(of_two(asked, lost), (1, 0), {B1: [(1, 1)]})


@pytest.mark.parametrize(("multiplier", "allowed"), [(1.0, True), (1.2, False)])
def test_the_multiplier_makes_the_asking_queue_count_as_fuller(multiplier, allowed):
    standings = queues((0, 0, 0, 0, 0), (20, 20, 10, 10, 10), (10, 0, 14, 10, 14))
    assert taken(standings, 1, {B1: [2]}, multiplier=multiplier) is allowed


# -- weak spots of upstream that this profile keeps --------------------------------------------------------------------


def test_the_order_of_victims_matters():
    standings = queues((0, 0, 0, 0, 0), (8, 4, 8, 8, 8), (0, 0, 10, 0, 10))
    assert taken(standings, 1, {B1: [1, 8]})
    assert not taken(standings, 1, {B1: [8, 1]})


def test_the_last_victim_may_take_a_queue_far_below_its_share():
    standings = queues((0, 0, 0, 0, 0), (8, 4, 8, 8, 8), (0, 0, 9, 0, 9))
    assert taken(standings, 1, {B1: [9]})


def test_a_sibling_without_any_share_is_taken_from_however_full_the_asking_queue_is():
    standings = queues((0, 0, 0, 0, 0), (99, 4, 0, 4, 0), (40, 0, 8, 40, 8))
    assert taken(standings, 8, {B1: [8]})


def test_exactly_one_unit_too_little_reads_as_unlimited():
    standings = queues((0, 0, 0, 0, 0), (8, 4, 8, 8, 8), (0, 0, 10, 0, 10))
    assert taken(standings, 1, {B1: [11, 1]})
    assert not taken(standings, 1, {B1: [12, 1]})
