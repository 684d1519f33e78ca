"""S2: gangs of PAI over eleven queues, of which each takes back what it deserves and borrows what is idle."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from actors.replays.pai import open_gangs
from actors.replays.report import ReplayReport
from actors.replays.streaming import HOUR, Lives, figures, figures_of, lived
from actors.replays.streams import PRIORITIES, Stream
from pipeline.policy import Policy

#: All of the stream.
HOURS = 48.0


def replay(folder: Path, policy: Policy, hours: float | None) -> ReplayReport:
    """Replay the first ``hours`` of the stream.

    Raises
    ------
    RecordingRefused
        If the recording cannot be used.
    """
    until = (HOURS if hours is None else hours) * HOUR
    stream = open_gangs(folder, until)
    begin = time.perf_counter()
    lives = lived(stream, policy, until)
    rows = _measures(stream, lives, until, time.perf_counter() - begin)
    part = f"the first {until / HOUR:g} simulated hours, {len(stream.jobs)} gangs that arrive in them"
    return ReplayReport("s2", part, rows, tuple(lives.broken))


def _measures(stream: Stream, lives: Lives, until: float, wall_s: float) -> list[dict[str, Any]]:
    kinds: dict[str, list[int]] = defaultdict(list)
    for row, job in enumerate(stream.jobs):
        kinds[f"{job.priority} {job.kind}"].append(row)
    order = sorted(kinds, key=lambda name: (-PRIORITIES[name.split()[0]], name))
    classes = [{"class": name} | figures_of(stream, lives, kinds[name], until) for name in order]
    return [figures(stream, lives, until, wall_s), *classes]
