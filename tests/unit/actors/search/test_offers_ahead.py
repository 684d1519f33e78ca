"""Offers on their way to the committer while the cycle goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.contracts import CommitResult, Offer
from actors.search.offers_ahead import Call, OffersAhead

NO_PLAN: Any = None


class Calls:
    """A committer whose calls end when the test says so; the first answers of a call may be lost."""

    def __init__(self, lost: int = 0) -> None:
        self.asked: list[list[str]] = []
        self.over: set[int] = set()
        self.lost = lost

    def begin(self, offers: Sequence[Offer]) -> Call:
        self.asked.append([one.plan_id for one in offers])
        return len(self.asked) - 1

    def ended(self, call: Call) -> bool:
        return call in self.over

    def answers(self, call: Call) -> list[CommitResult] | None:
        assert isinstance(call, int)
        if self.lost:
            self.lost -= 1
            return None
        return [CommitResult(one, "accepted") for one in self.asked[call]]


class Flag:
    """Whether the service ends."""

    up = False


def offer(name: str) -> Offer:
    return Offer(name, NO_PLAN)


def answered(offers: OffersAhead, names: str) -> str:
    return "".join(one.plan_id for one in offers([offer(name) for name in names]))


def test_what_is_offered_while_a_call_is_on_its_way_goes_together_with_the_next() -> None:
    calls = Calls()
    offers = OffersAhead(calls)
    for name in "abc":
        offers.ahead(offer(name))
    assert calls.asked == [["a"]]
    calls.over.add(0)
    offers.ahead(offer("d"))
    assert calls.asked == [["a"], ["b", "c", "d"]]


def test_a_cycle_gets_the_answers_to_all_its_offers_in_order_and_each_is_made_once() -> None:
    calls = Calls()
    offers = OffersAhead(calls)
    for name in "ab":
        offers.ahead(offer(name))
    assert answered(offers, "abcd") == "abcd"
    assert calls.asked == [["a"], ["b", "c", "d"]]


def test_nothing_of_a_cycle_stays_for_the_next() -> None:
    calls = Calls()
    offers = OffersAhead(calls)
    offers.ahead(offer("a"))
    assert answered(offers, "a") == "a"
    assert answered(offers, "a") == "a"
    assert calls.asked == [["a"], ["a"]]


def test_offers_whose_answers_are_lost_are_made_again_before_all_others() -> None:
    calls = Calls(lost=2)
    offers = OffersAhead(calls)
    offers.ahead(offer("a"))
    assert answered(offers, "abc") == "abc"
    assert calls.asked == [["a"], ["a", "b", "c"], ["a", "b", "c"]]


def test_a_service_that_ends_asks_no_more_and_takes_offers_without_an_answer_as_not_judged() -> None:
    calls, ends = Calls(), Flag()
    offers = OffersAhead(calls, lambda: ends.up)
    offers.ahead(offer("a"))
    calls.over.add(0)
    offers.ahead(offer("b"))
    ends.up = True
    said = offers([offer(name) for name in "abc"])
    assert [one.verdict for one in said] == ["accepted", "unready", "unready"]
    assert [one.plan_id for one in said] == ["a", "b", "c"]
    assert calls.asked == [["a"], ["b"]]
