"""``clearway top``: a live fleet on one screen: services, queues, what waits and reservations, redrawn now and then."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from actors.broker.bus import Bus
from actors.cli.live.reading import at, reading
from actors.cli.live.tables import OF_STATE, OF_STREAMS, Row, table
from actors.configuration.settings import Settings
from actors.documents.messages import on_one_line
from actors.documents.results import say
from actors.ingestion.known.state import LiveState
from actors.ingestion.spectating import Onlooker
from actors.search.pending_reasons import waiting

#: Terminal codes: go to the upper left corner, and clear what is below.
_AGAIN = "\x1b[H\x1b[J"
#: Lines that each of the four tables has at least.
_LEAST = 3
#: What each table shows, so that 80 columns are enough for what matters most; ``waits`` and ``left`` are how long.
_COLUMNS: Mapping[str, Sequence[str]] = {
    "services": ("owner", "state", "shadow", "profile", "host", "epoch", "why"),
    "queues": ("name", "state", "held/deserved", "waiting", "waits"),
    "gangs": ("name", "ready/minimum", "reason", "waits", "priority", "queue", "gang_phase"),
    "reservations": ("podgroup", "domain", "tasks", "victims", "waits", "left", "number"),
}
_MINUTE_S, _HOUR_S = 60, 3600


def run(settings: Settings, *, every_s: float, once: bool) -> int:
    """Show the fleet every ``every_s`` seconds until it is interrupted, or once.

    Raises
    ------
    NotListed, SettingsRefused
        As `get.run`.
    """
    with reading(settings, "top") as (bus, now_s):
        onlooker = Onlooker(settings, bus, now_s=now_s)
        while True:
            state, (width, height) = onlooker.state(), shutil.get_terminal_size()
            room = height if not once else 1 << 20
            lines = [on_one_line(line)[:width] for line in screen(settings.fleet, bus, state, room, now_s())]
            say((_AGAIN if not once and sys.stdout.isatty() else "") + "\n".join(lines) + "\n")
            if once:
                return 0
            try:
                time.sleep(every_s)
            except KeyboardInterrupt:
                return 0


def screen(fleet: str, bus: Bus, state: LiveState, height: int, now: float) -> Iterator[str]:
    """The lines of one screen at a time in seconds since the epoch, as many as fit."""
    waits = waiting(bus)
    gangs = [one for one in OF_STATE["gangs"](state, waits) if one["reason"] is not None]
    gangs.sort(key=lambda one: (one["place"] is None, one["place"] or 0, one["since"] or 0.0, one["name"]))
    yield f"fleet {fleet}   {at(now)}   {len(state.documents.names('nodes'))} nodes"
    services = list(OF_STREAMS["services"](bus))
    yield f"lag: {'; '.join(_lag(services)) or 'not known'}"
    parts: list[tuple[str, Sequence[Row]]] = [
        ("services", services),
        ("queues", list(OF_STATE["queues"](state, waits))),
        ("gangs", gangs),
        ("reservations", list(OF_STREAMS["reservations"](bus))),
    ]
    room = max(_LEAST, (height - 3) // len(parts) - 2)
    for kind, rows in parts:
        yield ""
        aged = [{**row, **_ages(row, now)} for row in rows]
        yield from _cut([*table(_COLUMNS[kind], aged)] if rows else [f"no {kind}"], room)


def _ages(row: Row, now: float) -> Row:
    """How long a row has waited, and how long its promise still stands."""
    since, expires = row.get("since", row.get("oldest_wait")), row.get("expires")
    return {
        "waits": None if since is None else lasting(now - since),
        "left": None if expires is None else lasting(expires - now),
    }


def lasting(seconds: float) -> str:
    """A duration in the unit that fits it: ``42 s``, ``12 min``, ``3.5 h``."""
    if seconds < _MINUTE_S:
        return f"{max(seconds, 0.0):.0f} s"
    return f"{seconds / _MINUTE_S:.0f} min" if seconds < _HOUR_S else f"{seconds / _HOUR_S:.1f} h"


def _lag(services: Sequence[Row]) -> Iterator[str]:
    """How far the readers of each stream are behind, as the leader sees it."""
    for one in services:
        if one["state"] == "leads":
            for where, left in one["lag"].items():
                yield f"{where} {left['entries']} entries, {left['seconds']:.1f} s"


def _cut(lines: Sequence[str], room: int) -> Iterator[str]:
    """A table's head, as many rows as fit, and how many more there are."""
    yield from lines[: room + 1]
    if len(lines) > room + 1:
        yield f"  and {len(lines) - room - 1} more"
