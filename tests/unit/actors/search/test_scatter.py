"""Batches over searchers that stall, die and join: what it costs, and whom."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np
import pytest

from actors.contracts import Batch, Searched
from actors.search.scatter import Call, Limits, Scatter
from pipeline.policy import Purpose

LIMITS = Limits(least_s=1.0, most_s=20.0, slack=8.0, replace_s=60.0)
SNAPSHOT: Any = object()
ANSWER: Any = object()


def batches(*cells: int) -> list[Batch]:
    nowhere = np.zeros(0, np.int64)
    return [Batch(at, (at,), "preempt", Purpose.PREEMPT, nowhere, 0.0, count) for at, count in enumerate(cells)]


@dataclass
class Hand:
    """A searcher: seconds it takes for a cell, and from when on it answers nothing, or dies of what it is asked."""

    cell_s: float = 0.01
    stalled: bool = False
    dies: bool = False
    asked: list[tuple[int, ...]] = field(default_factory=list)
    probes: int = 0
    replaced: int = 0


@dataclass
class Begun:
    """A call: when it ends, and with what."""

    hand: str
    ends: float
    answer: Sequence[Searched] | None


class FakePool:
    """Implements `scatter.SearcherPool` on a clock that moves when somebody waits."""

    def __init__(self, **hands: Hand) -> None:
        self.hands, self.now, self.calls = hands, 100.0, list[Begun]()
        self.noted = list[tuple[str, str]]()

    def ask(self, hand: str, snapshot: object, batches: Sequence[Batch]) -> Call:
        assert snapshot is SNAPSHOT
        one = self.hands[hand]
        one.asked.append(tuple(batch.preemptor for batch in batches))
        takes = one.cell_s * sum(batch.cells for batch in batches)
        found = None if one.dies else [Searched(batch.preemptor, ANSWER) for batch in batches]
        return self.begin(hand, takes, found)

    def probe(self, hand: str) -> Call:
        self.hands[hand].probes += 1
        return self.begin(hand, 0.001, None if self.hands[hand].dies else [])

    def begin(self, hand: str, takes: float, answer: Sequence[Searched] | None) -> Call:
        self.calls.append(Begun(hand, inf if self.hands[hand].stalled else self.now + takes, answer))
        return len(self.calls) - 1

    def ended(self, calls: Sequence[Any], limit_s: float) -> Collection[Call]:
        first = min(self.calls[call].ends for call in calls)
        self.now = max(self.now, min(first, self.now + limit_s))
        return [call for call in calls if self.calls[call].ends <= self.now]

    def answer(self, call: Any) -> Sequence[Searched] | None:
        return self.calls[call].answer

    def replace(self, hand: str) -> None:
        self.hands[hand].replaced += 1
        self.thaw(hand)

    def thaw(self, hand: str) -> None:
        """What it was asked it answers now."""
        self.hands[hand].stalled = False
        self.calls = [
            replace(call, ends=self.now) if call.hand == hand and call.ends == inf else call for call in self.calls
        ]


def scattered(hands: FakePool) -> Scatter:
    scatter = Scatter(
        hands, LIMITS, now_s=lambda: hands.now, note=lambda event, hand: hands.noted.append((event, hand))
    )
    scatter.enlist(hands.hands)
    hands.now += 1.0
    return scatter


def answered(found: Sequence[Searched]) -> list[bool]:
    return [one.outcome is ANSWER for one in found]


def test_every_batch_gets_its_own_answer_in_order() -> None:
    hands = FakePool(a=Hand(), b=Hand())
    found = scattered(hands).search(SNAPSHOT, batches(3, 9, 1, 5))
    assert [one.preemptor for one in found] == [0, 1, 2, 3]
    assert all(answered(found))
    assert sorted(unit for hand in hands.hands.values() for share in hand.asked for unit in share) == [0, 1, 2, 3]
    assert all(len(hand.asked) == 1 for hand in hands.hands.values())


def test_the_share_of_one_that_dies_goes_to_another_and_it_is_left_out_until_it_answers() -> None:
    hands = FakePool(a=Hand(), b=Hand())
    scatter = scattered(hands)
    scatter.search(SNAPSHOT, batches(1, 1))
    hands.hands["a"].dies = True
    assert all(answered(scatter.search(SNAPSHOT, batches(10, 10))))
    assert (scatter._present, sorted(scatter._out)) == (["b"], ["a"])
    assert hands.noted == [("searcher lost", "a")]
    hands.hands["a"].dies = False
    scatter.search(SNAPSHOT, batches(10, 10))  # the probe of before still says no; it is asked again
    hands.now += 1.0
    scatter.search(SNAPSHOT, batches(10, 10))
    assert sorted(scatter._out) == []


def test_a_stalled_one_is_waited_for_as_long_as_its_work_should_take_and_by_one_search_only() -> None:
    hands = FakePool(a=Hand(), b=Hand())
    scatter = scattered(hands)
    scatter.search(SNAPSHOT, batches(100, 100))  # a second each: the pace is known
    hands.hands["a"].stalled = True
    began = hands.now
    assert all(answered(scatter.search(SNAPSHOT, batches(100, 100))))
    assert hands.now - began == pytest.approx(8.0 + 1.0)
    for _ in range(3):
        began = hands.now
        assert all(answered(scatter.search(SNAPSHOT, batches(100, 100))))
        assert hands.now - began == pytest.approx(2.0)
    assert len(hands.hands["a"].asked) == 2
    assert hands.noted == [("searcher late", "a")]
    hands.thaw("a")
    assert all(answered(scatter.search(SNAPSHOT, batches(100, 100))))
    assert scatter._present == ["a", "b"]


def test_the_others_of_the_first_search_already_tell_how_long_to_wait() -> None:
    hands = FakePool(a=Hand(stalled=False), b=Hand())
    scatter = scattered(hands)
    scatter.search(SNAPSHOT, [])
    hands.hands["a"].stalled = True
    began = hands.now
    assert all(answered(scatter.search(SNAPSHOT, batches(20, 20))))
    assert hands.now - began == pytest.approx(8 * 0.2 + 0.2)


def test_one_that_is_only_slow_may_still_be_the_first_to_answer() -> None:
    hands = FakePool(a=Hand(), b=Hand())
    scatter = scattered(hands)
    scatter.search(SNAPSHOT, batches(100, 100))
    hands.hands["a"].cell_s = 0.085  # late after 8 s, there after 8.5; another would need until 9
    began = hands.now
    assert all(answered(scatter.search(SNAPSHOT, batches(100, 100))))
    assert hands.now - began == pytest.approx(8.5)
    hands.now += 1.0
    scatter.search(SNAPSHOT, batches(1, 1))
    assert sorted(scatter._out) == []


def test_what_two_of_them_die_of_is_given_to_no_third() -> None:
    hands = FakePool(a=Hand(), b=Hand(), c=Hand())
    scatter = scattered(hands)
    scatter.search(SNAPSHOT, [])
    for hand in hands.hands.values():
        hand.dies = True
    found = scatter.search(SNAPSHOT, batches(5))
    assert answered(found) == [False]
    assert sum(len(hand.asked) for hand in hands.hands.values()) == 2


def test_where_no_searcher_answers_the_batches_wait_and_the_search_does_not() -> None:
    hands = FakePool(a=Hand(stalled=True), b=Hand(stalled=True))
    scatter = scattered(hands)
    began = hands.now
    assert answered(scatter.search(SNAPSHOT, batches(100, 100))) == [False, False]
    assert hands.now - began == pytest.approx(LIMITS.least_s)
    hands.thaw("b")
    assert all(answered(scatter.search(SNAPSHOT, batches(1, 1))))


def test_one_that_stays_away_is_replaced() -> None:
    hands = FakePool(a=Hand(), b=Hand())
    scatter = scattered(hands)
    scatter.search(SNAPSHOT, [])
    hands.hands["a"].stalled = True
    scatter.search(SNAPSHOT, batches(10, 10))
    hands.now += LIMITS.replace_s / 2
    scatter.search(SNAPSHOT, batches(10, 10))
    assert hands.hands["a"].replaced == 0
    hands.now += LIMITS.replace_s
    scatter.search(SNAPSHOT, batches(10, 10))
    assert hands.hands["a"].replaced == 1
    hands.now += 1.0
    scatter.search(SNAPSHOT, batches(10, 10))
    assert scatter._present == ["a", "b"]


def test_one_that_joins_is_dealt_to_once_it_answers_and_one_that_leaves_no_longer() -> None:
    hands = FakePool(a=Hand(), b=Hand(stalled=True))
    scatter = scattered(hands)
    scatter.search(SNAPSHOT, batches(1, 1))
    assert (hands.hands["b"].asked, sorted(scatter._out)) == ([], ["b"])
    hands.thaw("b")
    scatter.search(SNAPSHOT, batches(1, 1))
    assert len(hands.hands["b"].asked) == 1
    scatter.enlist(["b"])
    scatter.search(SNAPSHOT, batches(1, 1))
    assert (scatter._present, len(hands.hands["b"].asked)) == (["b"], 2)
    assert hands.hands["b"].probes == 1
