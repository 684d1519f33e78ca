"""Waiting for a broker that does not answer: bounded exponential backoff that reports each try."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from actors.broker.bus import BrokerUnreachable, Outage

log = logging.getLogger(__name__)
T = TypeVar("T")


def report_outage(outage: Outage) -> None:
    """Log an outage; the default listener."""
    log.warning("%s", outage)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long and how often to try again.

    Attributes
    ----------
    first_s, cap_s
        First pause and the longest one; each pause doubles the one before. After an outage a standby asks for the lease
        at most the longest pause later than it could.
    limit_s
        Give up after this many seconds; None waits without limit.
    jitter
        Part of a pause that is random, so that many processes do not come back at the same time.
    """

    first_s: float = 0.1
    cap_s: float = 2.0
    limit_s: float | None = None
    jitter: float = 0.2
    seed: int = 0

    def pauses_s(self) -> Iterator[float]:
        """The endless sequence of pauses, the same for the same seed."""
        draw = random.Random(self.seed)
        pause_s = self.first_s
        while True:
            yield pause_s * (1.0 - self.jitter * draw.random())
            pause_s = min(pause_s * 2.0, self.cap_s)


#: Without a limit, for services.
ENDLESS = RetryPolicy()


def persist(
    ask: Callable[[], T],
    *,
    where: str,
    retry: RetryPolicy,
    say: Callable[[Outage], None] = report_outage,
    pause: Callable[[float], object] = time.sleep,
    now_s: Callable[[], float] = time.monotonic,
) -> T:
    """Call `ask` until the broker answers.

    Only for calls that may be repeated: a read, a ping, a write with a key of its own.

    Parameters
    ----------
    ask
        Raises `BrokerUnreachable` while the broker is away; anything else passes through.
    pause
        How to wait; a role gives one that ends, by raising, when the role is stopped.

    Raises
    ------
    BrokerUnreachable
        When `retry.limit_s` is spent, saying how long it was tried.
    """
    started_s = now_s()
    pauses = retry.pauses_s()
    attempt = 0
    while True:
        attempt += 1
        try:
            return ask()
        except BrokerUnreachable as refusal:
            retry_in_s = next(pauses)
            spent_s = now_s() - started_s
            if retry.limit_s is not None and spent_s + retry_in_s > retry.limit_s:
                raise BrokerUnreachable(
                    f"broker unreachable at {where} after {attempt} tries in {spent_s:.1f} s: {refusal}"
                ) from refusal
            say(Outage(where, str(refusal), retry_in_s, attempt))
            pause(retry_in_s)


class ToldToStop(Exception):
    """The process was told to stop while it waited for the broker."""


def until_stopped(stop: threading.Event) -> Callable[[float], None]:
    """A ``pause`` that ends at once, by raising `ToldToStop`, when ``stop`` is set."""

    def pause(seconds: float) -> None:
        if stop.wait(seconds):
            raise ToldToStop

    return pause
