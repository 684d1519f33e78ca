"""Measures of a replayed stream that all scenarios share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from actors.replays.deciding import percentiles
from actors.replays.streams.jobs import GPU, PRIORITIES, Stream
from actors.replays.streams.lives import HOUR, Lives


def figures(stream: Stream, lives: Lives, until: float, wall_s: float) -> dict[str, Any]:
    """Measures of the whole replay."""
    total = int(stream.snapshot.nodes.allocatable[:, stream.snapshot.vocabulary.resources.index(GPU)].sum())
    served = lives.held[lives.deserved > 0] / lives.deserved[lives.deserved > 0]
    fair = float(served.sum() ** 2 / (len(served) * (served**2).sum())) if served.any() else 1.0
    return {
        "hosts": len(stream.snapshot.nodes),
        "gpus": total,
        "gpus_in_use": f"{lives.busy_s / (total * until):.1%}",
        "cycles": len(lives.cycles_ms),
        "cycle_latency": percentiles(lives.cycles_ms),
        "cycle_latency_with_evictions": percentiles(lives.evicting_ms),
        "evicting_decisions": dict(lives.by_action),
        "tasks_evicted": lives.victims,
        "evicted_to_requested": round(lives.victim_gpus / lives.requested_gpus, 3) if lives.requested_gpus else 0.0,
        "gangs_evicted": int((lives.evicted > 0).sum()),
        "evicted_again_within_10_minutes": int(lives.again.sum()),
        "of_these_for_a_job_that_waited_before": int(lives.waited_before.sum()),
        "of_these_for_one_never_refused_meanwhile": int(lives.never_refused.sum()),
        "gpu_hours_lost_in_all": round(float(lives.lost.sum()), 1),
        "evictions_without_placement": sum("without a placement" in one for one in lives.broken),
        "partial_gangs": sum("partial" in one for one in lives.broken),
        "gpu_hours_below_deserved": round(float(lives.short.sum()) / HOUR, 1),
        "of_gpu_hours_claimed": round(float(lives.deserved.sum()) / HOUR, 1),
        "jains_index_of_queues": round(fair, 4),
        "wall_s": round(wall_s, 1),
    }


def by_class(stream: Stream, lives: Lives, until: float) -> Iterator[dict[str, Any]]:
    """Measures of the jobs of each priority and kind, the highest priority first."""
    kinds: dict[str, list[int]] = defaultdict(list)
    for row, job in enumerate(stream.jobs):
        kinds[f"{job.priority} {job.kind}"].append(row)
    for name in sorted(kinds, key=lambda name: (-PRIORITIES[name.split()[0]], name)):
        yield {"class": name} | _figures_of(stream, lives, kinds[name], until)


def _figures_of(stream: Stream, lives: Lives, rows: Sequence[int], until: float) -> dict[str, Any]:
    """Measures of some of the jobs (rows)."""
    some = list(rows)
    return {
        "jobs": len(some),
        "started": int((~np.isnan(lives.first[some])).sum()),
        "evictions": int(lives.evicted[some].sum()),
        "gpu_hours_lost": round(float(lives.lost[some].sum()), 1),
        "wait_s": waits(stream, lives, some, until),
    }


def waits(stream: Stream, lives: Lives, rows: Sequence[int], until: float) -> dict[str, float]:
    """Percentiles of the seconds from arrival to the first start; a job that never started waited to the end."""
    if not rows:
        return {"jobs": 0}
    first = lives.first[rows]
    waited = np.where(np.isnan(first), until, first) - stream.arrival[rows]
    p50, p99 = np.percentile(waited, (50, 99))
    return {"p50": round(float(p50), 1), "p99": round(float(p99), 1), "max": round(float(waited.max()), 1)}
