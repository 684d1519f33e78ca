"""A scenario that replays the first hours of a recorded stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actors.replays.report import ReplayReport
from actors.replays.streams.jobs import Stream
from actors.replays.streams.lives import HOUR, Lives, lived
from actors.replays.streams.measures import by_class, figures
from pipeline.policy import Policy


def _no_measures(_stream: Stream, _lives: Lives, _until: float) -> Sequence[dict[str, Any]]:
    return ()


@dataclass(frozen=True, slots=True)
class StreamScenario:
    """A scenario that replays a stream.

    Attributes
    ----------
    hours
        Simulated hours that are replayed by default.
    opened
        Reads the stream in a folder up to a time in seconds.
    own
        The scenario's own measures, of a stream and its lives up to a time in seconds.
    """

    name: str
    hours: float
    opened: Callable[[Path, float], Stream]
    own: Callable[[Stream, Lives, float], Sequence[dict[str, Any]]] = _no_measures

    def replay(self, folder: Path, policy: Policy, hours: float | None = None) -> ReplayReport:
        """Replay the first ``hours`` of the stream.

        Raises
        ------
        RecordingRefused
            If the recording cannot be used.
        """
        until = (self.hours if hours is None else hours) * HOUR
        stream = self.opened(folder, until)
        begin = time.perf_counter()
        lives = lived(stream, policy, until)
        rows = [figures(stream, lives, until, time.perf_counter() - begin)]
        rows += [*self.own(stream, lives, until), *by_class(stream, lives, until)]
        part = f"the first {until / HOUR:g} simulated hours, {len(stream.jobs)} jobs that arrive in them"
        return ReplayReport(self.name, part, rows, tuple(lives.broken))
