"""Readers that are behind on the streams: entries and time as metrics, and in the log if they are far behind."""

from __future__ import annotations

import logging
import math

from actors.broker.bus import DECISIONS, EVENTS, Bus, Lag
from actors.ingestion.group_notes import GROUP
from actors.observability.telemetry import Telemetry

log = logging.getLogger(__name__)

#: Seconds after which a group that stays behind is named again.
_AGAIN_S = 60.0


def slowest(bus: Bus) -> dict[str, tuple[int, float]]:
    """For each stream, how many entries its slowest reader has not finished, and the age of the oldest (seconds)."""
    found = {}
    for stream in (EVENTS, DECISIONS):
        left = [_left(stream, group, lag) for group, lag in bus.lags(stream).items()]
        found[stream] = max(left, default=(0, 0.0))
    return found


def _left(stream: str, group: str, lag: Lag) -> tuple[int, float]:
    """Entries that a group has not finished, and the age of the oldest.

    The ingestor has folded what it was handed, and acknowledges it only with the next checkpoint.
    """
    if (stream, group) == (EVENTS, GROUP):
        return lag.undelivered, lag.behind_ms / 1000
    return lag.undelivered + lag.pending, lag.held_ms / 1000


class Lags:
    """Looks at every group that reads events or decisions.

    Parameters
    ----------
    warn_s
        Seconds; a group that is further behind is named in the log.

    Attributes
    ----------
    seen
        By ``stream/group``, as `slowest` has it by stream; empty before the first look.
    """

    def __init__(self, bus: Bus, telemetry: Telemetry, warn_s: float) -> None:
        self._bus, self._figures, self._warn_s = bus, telemetry.figures, warn_s
        self._named: dict[tuple[str, str], float] = {}
        self.seen: dict[str, tuple[int, float]] = {}

    def look(self, now: float) -> None:
        """Report how far behind each group is, at ``now`` (seconds)."""
        lags = [(stream, *one) for stream in (EVENTS, DECISIONS) for one in self._bus.lags(stream).items()]
        self.seen = {f"{stream}/{group}": _left(stream, group, lag) for stream, group, lag in lags}
        figures, where = self._figures, [{"stream": stream, "group": group} for stream, group, _ in lags]
        left = list(self.seen.values())
        unread = [lag.undelivered for _, _, lag in lags]
        figures.stream_lag.only(zip(unread, where, strict=True))
        figures.stream_lag_s.only(zip((age_s for _, age_s in left), where, strict=True))
        held = (entries - new for (entries, _), new in zip(left, unread, strict=True))
        figures.stream_unacknowledged.only(zip(held, where, strict=True))
        self._named = {group: again for group, again in self._named.items() if f"{group[0]}/{group[1]}" in self.seen}
        for stream, group, lag in lags:
            self._warn(stream, group, lag, now)

    def _warn(self, stream: str, group: str, lag: Lag, now: float) -> None:
        left, age_s = _left(stream, group, lag)
        if age_s <= self._warn_s:
            if self._named.pop((stream, group), None) is not None:
                log.info("group %s of %s has caught up", group, stream)
        elif now >= self._named.get((stream, group), -math.inf):
            self._named[stream, group] = now + _AGAIN_S
            log.warning(
                "group %s of %s is %.0f s behind: %d entries not read, %d not acknowledged",
                group, stream, age_s, lag.undelivered, left - lag.undelivered,
            )  # fmt: skip
