"""S3: an LLM cluster on a real Clos, its stream of jobs and real big gangs.

What is synthetic, besides the scenario's own columns and what every stream supposes: big gangs are of high priority and
go to the queues in turn.
"""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from actors.replays.lingjun import BIG, open_stream
from actors.replays.report import ReplayReport
from actors.replays.streaming import HOUR, Lives, figures, figures_of, lived, waits
from actors.replays.streams import PRIORITIES, Stream
from pipeline.policy import Policy

#: Hours that are replayed without the option: the cluster is full from about the tenth on.
HOURS = 18.0
_WIDE = 120


def replay(folder: Path, policy: Policy, hours: float | None) -> ReplayReport:
    """Replay the first ``hours`` of the stream.

    Raises
    ------
    RecordingRefused
        If the recording cannot be used.
    """
    until = (HOURS if hours is None else hours) * HOUR
    stream = open_stream(folder, until)
    begin = time.perf_counter()
    lives = lived(stream, policy, until)
    rows = _measures(stream, lives, until, time.perf_counter() - begin)
    part = f"the first {until / HOUR:g} simulated hours, {len(stream.jobs)} jobs that arrive in them"
    return ReplayReport("s3", part, rows, tuple(lives.broken))


def _measures(stream: Stream, lives: Lives, until: float, wall_s: float) -> list[dict[str, Any]]:
    big = [row for row, job in enumerate(stream.jobs) if job.kind == BIG]
    kinds: dict[str, list[int]] = defaultdict(list)
    for row, job in enumerate(stream.jobs):
        kinds[f"{job.priority} {job.kind}"].append(row)
    pretrain = [row for row, job in enumerate(stream.jobs) if job.kind == "Pretrain"]
    wide = [row for row in big if stream.jobs[row].workers >= _WIDE]
    low = [row for row, job in enumerate(stream.jobs) if job.priority == "low"]
    aims = {
        "big_gangs": len(big),
        "placed": len(lives.at_level),
        "at_their_level": sum(lives.at_level.values()),
        "gpu_hours_lost_by_pretrain": round(float(lives.lost[pretrain].sum()), 1),
        f"wait_of_{_WIDE}_workers_and_more_s": waits(stream, lives, wide, until),
        "low_never_started": f"{int(np.isnan(lives.first[low]).sum())} of {len(low)}",
        "low_evicted_more_than_once": int((lives.evicted[low] > 1).sum()),
    }
    order = sorted(kinds, key=lambda name: (-PRIORITIES[name.split()[0]], name))
    classes = [{"class": name} | figures_of(stream, lives, kinds[name], until) for name in order]
    return [figures(stream, lives, until, wall_s), aims, *classes]
