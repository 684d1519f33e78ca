"""The broker of a fleet, for commands that only read what stands in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from actors.broker.address import broker_for
from actors.broker.bus import Bus
from actors.broker.redis_bus import RedisBus
from actors.configuration.settings import Settings, SettingsRefused

#: Seconds that a command waits for a broker that does not answer, unless the settings state them.
_WAIT_S = 10.0


@contextmanager
def reading(settings: Settings, command: str) -> Iterator[Bus]:
    """The streams of the settings' fleet.

    Raises
    ------
    SettingsRefused
        Where no broker is named: one of our own would hold nothing.
    """
    if settings.redis_url is None:
        raise SettingsRefused("redis_url: expected the broker of the fleet (--redis-url), found none")
    with broker_for(settings) as address:
        bus = RedisBus(
            replace(address, wait_s=address.wait_s or _WAIT_S).connect(command, functions=False), settings.fleet,
            shadow=settings.shadow,
        )  # fmt: skip
        try:
            yield bus
        finally:
            bus.close()


def at(seconds: float) -> str:
    """A moment, in seconds since the epoch, as it is shown: in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="seconds")
