"""What `clearway bench` measures of state: the fold, and a snapshot as bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from actors.benchmarks.figures import RUNS, Figure, generated_fleet, timed
from actors.fleets.generated import NOW, GangSpec
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.checkpoint import decode, encode
from pipeline.cluster.tables import SUCCEEDED
from pipeline.cluster.updates.events import CURRENT, EVICTED, Changes, TaskNews
from pipeline.cluster.updates.fold import fold


def _fold_10k() -> Figure:
    """10,000 events on a million tasks, half of them ends and half evictions, from columns to a new snapshot."""
    snapshot = generated_fleet(100_000, GangSpec()).snapshot
    rows = np.random.default_rng(1).permutation(np.flatnonzero(snapshot.tasks.node != NONE))[:10_000]
    half = len(rows) // 2
    news = TaskNews(
        row=frozen(rows, np.int64),
        status=frozen([SUCCEEDED] * half + [EVICTED] * (len(rows) - half), np.uint8),
        node=frozen(np.full(len(rows), NONE), np.int32),
        card=frozen(np.full(len(rows), NONE), np.int32),
        incarnation=frozen(np.full(len(rows), CURRENT), np.int64),
        revision=frozen(snapshot.tasks.revision[rows] + 1, np.int64),
        at=frozen(np.full(len(rows), NOW), np.float64),
    )
    return timed(lambda: fold(snapshot, Changes(tasks=news)), RUNS, tasks=len(snapshot.tasks), events=len(rows))


def _snapshot_1m() -> Figure:
    """A snapshot of a million tasks to bytes; ``decode_p50_ms`` is the way back."""
    snapshot = generated_fleet(100_000, GangSpec()).snapshot
    data = encode(snapshot)
    back = timed(lambda: decode(data))
    also = {
        "tasks": len(snapshot.tasks),
        "bytes": len(data),
        "decode_p50_ms": back.p50_ms or 0.0,
        "decode_p99_ms": back.p99_ms or 0.0,
    }
    return replace(timed(lambda: encode(snapshot)), also=also)


STATE_MEASUREMENTS: dict[str, Callable[[], Figure]] = {"fold_10k": _fold_10k, "snapshot_1m": _snapshot_1m}
