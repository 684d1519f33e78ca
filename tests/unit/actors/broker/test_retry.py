"""An unreachable broker is waited for with growing pauses, and said so each time."""

from __future__ import annotations

import threading
from itertools import islice

import pytest

from actors.broker.bus import BrokerUnreachable, Outage
from actors.broker.retry import ENDLESS, RetryPolicy, ToldToStop, persist, until_stopped


class Broker:
    """Answers after so many refusals; keeps the time by the pauses it is left alone for."""

    def __init__(self, refusals: int) -> None:
        self.refusals, self.now_s, self.said = refusals, 0.0, list[Outage]()

    def ask(self) -> str:
        if self.refusals:
            self.refusals -= 1
            raise BrokerUnreachable("connection refused")
        return "answer"

    def pause(self, seconds: float) -> None:
        self.now_s += seconds

    def persist(self, retry: RetryPolicy) -> str:
        return persist(
            self.ask, where="there:1", retry=retry, say=self.said.append, pause=self.pause,
            now_s=lambda: self.now_s,
        )  # fmt: skip


def test_pauses_double_up_to_the_longest() -> None:
    pauses = list(islice(RetryPolicy(first_s=0.1, cap_s=1.0, jitter=0.0).pauses_s(), 6))
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_no_pause_of_a_service_is_longer_than_two_seconds() -> None:
    """A standby that waits for the broker asks for the lease so much later at most."""
    assert max(islice(ENDLESS.pauses_s(), 50)) <= 2.0


def test_pauses_differ_by_seed_and_repeat_by_seed() -> None:
    one, again, other = (list(islice(RetryPolicy(seed=seed).pauses_s(), 5)) for seed in (1, 1, 2))
    assert one == again != other


def test_each_failed_try_is_said_with_the_next_one() -> None:
    broker = Broker(3)
    assert broker.persist(RetryPolicy(first_s=0.2, jitter=0.0)) == "answer"
    assert [str(outage) for outage in broker.said] == [
        f"broker unreachable at there:1 (connection refused), next try in {pause} s" for pause in (0.2, 0.4, 0.8)
    ]


def test_without_a_limit_it_is_waited_for_as_long_as_it_takes() -> None:
    broker = Broker(5_000)
    assert broker.persist(RetryPolicy()) == "answer"
    assert broker.now_s > 5_000 * 1.6 - 100


def test_with_a_limit_it_is_given_up_and_said_how_long_it_was_tried() -> None:
    broker = Broker(100)
    with pytest.raises(
        BrokerUnreachable, match=r"^broker unreachable at there:1 after 5 tries in 1\.5 s: connection refus"
    ):
        broker.persist(RetryPolicy(first_s=0.1, jitter=0.0, limit_s=2.0))


def test_what_is_no_outage_passes_through() -> None:
    def ask() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        persist(ask, where="there", retry=RetryPolicy())


def test_who_waits_for_the_broker_stops_when_told() -> None:
    stop = threading.Event()
    stop.set()

    def away() -> None:
        raise BrokerUnreachable("away")

    with pytest.raises(ToldToStop):
        persist(away, where="there", retry=ENDLESS, pause=until_stopped(stop))
