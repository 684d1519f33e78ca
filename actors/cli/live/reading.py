"""The broker of a fleet, for commands that only read what stands in it."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from actors.broker.address import broker_for
from actors.broker.bus import BrokerRefused, Bus
from actors.broker.redis_bus import RedisBus
from actors.configuration.settings import Settings, SettingsRefused
from actors.health.broker_clock import EVERY_S, Ask, BrokerClock, time_of

log = logging.getLogger(__name__)

#: Seconds that a command waits for a broker that does not answer, unless the settings state them.
_WAIT_S = 10.0


class Looked(NamedTuple):
    """What a command looks at: the streams of a fleet, and the time of day in seconds since the epoch."""

    bus: Bus
    now_s: Callable[[], float]


class BrokersTime:
    """The time of day that the services of a fleet decide by; our machine's where our user may not ask for it."""

    def __init__(self, ask: Ask, wall_s: Ask = time.time) -> None:
        self._ask, self._wall_s, self._look_at = ask, wall_s, -math.inf
        self._clock = BrokerClock(wall_s=wall_s)

    def __call__(self) -> float:
        """The time; the broker is asked for it at the first call, and again after a while."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + EVERY_S
            try:
                self._clock.look(self._ask)
            except BrokerRefused as refusal:
                log.warning("%s: the time is that of this machine", refusal)
                self._ask = self._wall_s
                self._clock.look(self._ask)
        return self._clock.now_s()


@contextmanager
def reading(settings: Settings, command: str) -> Iterator[Looked]:
    """The streams of the settings' fleet, and the time by its broker.

    Raises
    ------
    SettingsRefused
        Where no broker is named: one of our own would hold nothing.
    """
    if settings.redis_url is None:
        raise SettingsRefused("redis_url: expected the broker of the fleet (--redis-url), found none")
    with broker_for(settings) as address:
        link = replace(address, wait_s=address.wait_s or _WAIT_S).connect(command, functions=False)
        bus = RedisBus(link, settings.fleet, shadow=settings.shadow)
        try:
            yield Looked(bus, BrokersTime(lambda: link.ask(time_of)))
        finally:
            bus.close()


def at(seconds: float) -> str:
    """A moment, in seconds since the epoch, as it is shown: in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="seconds")
