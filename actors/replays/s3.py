"""S3: an LLM cluster on a real Clos, its stream of jobs and real big gangs, by discrete events in simulated time.

What is synthetic, besides the scenario's own columns: victims leave at once, an evicted job starts over from nothing
(the recordings know no checkpoints), big gangs are of high priority and go to the queues in turn.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from actors.fleets.prompt import victims_gone
from actors.replays.deciding import percentiles, promises_kept
from actors.replays.lingjun import BIG, GPU, PRIORITIES, Stream, arrived, open_stream
from actors.replays.report import Report
from actors.replays.rules import broken_by, broken_gangs, in_one_domain, overfull, placed_nodes
from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows, frozen, with_rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.events import Changes, Departures
from pipeline.cluster.updates.fold import fold
from pipeline.cycle import cycle
from pipeline.decision.decided import carried_out
from pipeline.decision.statement import Statement
from pipeline.policy import Policy

#: Hours that are replayed without the option: the cluster is full from about the tenth on.
HOURS = 18.0
#: How long news is collected before a cycle, in simulated seconds.
_BATCH_S = 60.0
_HOUR = 3600.0
_WIDE = 120


@dataclass(slots=True)
class _Lives:
    """What became of every job, in columns over the stream's podgroups, and what the replay took.

    Attributes
    ----------
    started, first
        Seconds: of the current life, NaN while it does not run; of the first one, NaN if there was none.
    evicted
        How often it was stopped: the number of its current life.
    lost
        Device hours of the lives that were cut short.
    ends
        A heap of (when, podgroup, life).
    at_level
        Per big gang that ran, whether it lay in one domain of its level.
    """

    started: Floats
    first: Floats
    evicted: Longs
    lost: Floats
    ended: Bools
    ends: list[tuple[float, int, int]] = field(default_factory=list)
    cycles_ms: list[float] = field(default_factory=list)
    deciding_big_ms: list[float] = field(default_factory=list)
    by_action: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    busy_s: float = 0.0
    victims: int = 0
    at_level: dict[int, bool] = field(default_factory=dict)


def replay(folder: Path, policy: Policy, hours: float | None) -> Report:
    """Replay the first ``hours`` of the stream.

    Raises
    ------
    RecordingRefused
        If the recording cannot be used.
    """
    until = (HOURS if hours is None else hours) * _HOUR
    stream = open_stream(folder, until)
    many = len(stream.jobs)
    lives = _Lives(
        started=np.full(many, np.nan),
        first=np.full(many, np.nan),
        evicted=np.zeros(many, np.int64),
        lost=np.zeros(many),
        ended=np.zeros(many, np.bool_),
    )
    begin = time.perf_counter()
    _play(stream, policy, lives, until)
    rows = _measures(stream, lives, until, time.perf_counter() - begin)
    part = f"the first {until / _HOUR:g} simulated hours, {len(stream.jobs)} jobs that arrive in them"
    return Report("s3", part, rows, tuple(lives.broken))


# -- the loop ----------------------------------------------------------------------------------------------------------


def _play(stream: Stream, policy: Policy, lives: _Lives, until: float) -> None:
    snapshot, waiting, now = stream.snapshot, 0, 0.0
    while True:
        upcoming = [float(stream.arrival[waiting])] if waiting < len(stream.jobs) else []
        upcoming += [lives.ends[0][0]] if lives.ends else []
        at = min(upcoming, default=np.inf)
        held = int(stream.gpus[~np.isnan(lives.started)].sum())
        then = min(max(np.ceil(at / _BATCH_S) * _BATCH_S, now + _BATCH_S), until)
        lives.busy_s += held * (then - now)
        if at >= until or then >= until:
            return
        now = then
        snapshot = _ended(snapshot, lives, now)
        come = np.arange(waiting, np.searchsorted(stream.arrival, now, side="right"))
        waiting += len(come)
        snapshot = _cycled(arrived(snapshot, come), stream, policy, lives, now)


def _ended(snapshot: Snapshot, lives: _Lives, now: float) -> Snapshot:
    """Jobs whose time is over leave; the end of a life that an eviction cut short is no end."""
    rows = []
    while lives.ends and lives.ends[0][0] <= now:
        _, row, life = heapq.heappop(lives.ends)
        if life == lives.evicted[row]:
            rows.append(row)
            lives.started[row], lives.ended[row] = np.nan, True
    if not rows:
        return snapshot
    gone = np.array(sorted(rows), np.int64)
    removed = Departures(
        gone,
        frozen(snapshot.podgroups.revision[gone] + 1, np.int64),
        frozen(np.full(len(gone), now), np.float64),
    )
    return fold(snapshot, Changes(removed=removed))


def _cycled(snapshot: Snapshot, stream: Stream, policy: Policy, lives: _Lives, now: float) -> Snapshot:
    """One cycle and the fleet's answer to it."""
    begin = time.perf_counter()
    done = cycle(snapshot, policy, now)
    spent = (time.perf_counter() - begin) * 1e3
    lives.cycles_ms.append(spent)
    before = snapshot
    for made in done.statements:
        if len(made.evictions):
            lives.broken += [f"at {now:g} s: {sentence}" for sentence in broken_by(before, made)]
            _evicted(before, made, stream, lives, now)
        before = carried_out(made, before, now)
    after = promises_kept(victims_gone(done.snapshot, now), policy, now)
    after = _started(after, stream, lives, now)
    if any(made.preemptor != NONE and stream.jobs[made.preemptor].kind == BIG for made in done.statements):
        lives.deciding_big_ms.append(spent)
    touched = np.unique([made.preemptor for made in done.statements if made.preemptor != NONE]).astype(np.int64)
    found = [*broken_gangs(after, touched), *overfull(after)]
    lives.broken += [f"at {now:g} s: {sentence}" for sentence in found]
    return after


def _evicted(snapshot: Snapshot, made: Statement, stream: Stream, lives: _Lives, now: float) -> None:
    """Account for the jobs that a statement stops: what they computed so far is lost."""
    lives.by_action[made.action] += 1
    lives.victims += len(made.evictions)
    for row in np.unique(snapshot.tasks.podgroup[made.evictions]).tolist():
        if not np.isnan(lives.started[row]):
            lives.lost[row] += stream.gpus[row] * (now - lives.started[row]) / _HOUR
            lives.started[row] = np.nan
        lives.evicted[row] += 1


def _started(snapshot: Snapshot, stream: Stream, lives: _Lives, now: float) -> Snapshot:
    """Note which jobs run whole by now, and since when; a job that was stopped has not started any more."""
    runs = snapshot.counts.running >= snapshot.podgroups.min_available
    fresh: Rows = np.flatnonzero(runs & snapshot.podgroups.alive & np.isnan(lives.started) & ~lives.ended)
    for row in fresh.tolist():
        lives.started[row] = now
        lives.first[row] = now if np.isnan(lives.first[row]) else lives.first[row]
        heapq.heappush(lives.ends, (now + stream.duration[row], row, int(lives.evicted[row])))
        if stream.jobs[row].kind == BIG:
            level = int(snapshot.podgroups.required_level[row])
            lives.at_level[row] = in_one_domain(snapshot, placed_nodes(snapshot, row), level)
    rows = np.arange(len(stream.jobs))
    return replace(
        snapshot,
        podgroups=replace(snapshot.podgroups, started=with_rows(snapshot.podgroups.started, rows, lives.started)),
    )


# -- the measures ------------------------------------------------------------------------------------------------------


def _measures(stream: Stream, lives: _Lives, until: float, wall_s: float) -> list[dict[str, Any]]:
    total = int(stream.snapshot.nodes.allocatable[:, stream.snapshot.vocabulary.resources.index(GPU)].sum())
    big = [row for row, job in enumerate(stream.jobs) if job.kind == BIG]
    kinds: dict[str, list[int]] = defaultdict(list)
    for row, job in enumerate(stream.jobs):
        kinds[f"{job.priority} {job.kind}"].append(row)
    pretrain = [row for row, job in enumerate(stream.jobs) if job.kind == "Pretrain"]
    wide = [row for row in big if stream.jobs[row].workers >= _WIDE]
    low = [row for row, job in enumerate(stream.jobs) if job.priority == "low"]
    head = {
        "hosts": len(stream.snapshot.nodes),
        "gpus": total,
        "gpus_in_use": f"{lives.busy_s / (total * until):.1%}",
        "cycles": len(lives.cycles_ms),
        "cycle_latency": percentiles(lives.cycles_ms),
        "cycle_latency_with_a_big_gang": percentiles(lives.deciding_big_ms),
        "evicting_decisions": dict(lives.by_action),
        "tasks_evicted": lives.victims,
        "wall_s": round(wall_s, 1),
    }
    aims = {
        "big_gangs": len(big),
        "placed": len(lives.at_level),
        "at_their_level": sum(lives.at_level.values()),
        "gpu_hours_lost_by_pretrain": round(float(lives.lost[pretrain].sum()), 1),
        "gpu_hours_lost_in_all": round(float(lives.lost.sum()), 1),
        f"wait_of_{_WIDE}_workers_and_more_s": _waits(stream, lives, wide, until),
        "low_never_started": f"{int(np.isnan(lives.first[low]).sum())} of {len(low)}",
        "low_evicted_more_than_once": int((lives.evicted[low] > 1).sum()),
    }
    order = sorted(kinds, key=lambda name: (-PRIORITIES[name.split()[0]], name))
    classes = [{"class": name} | _class(stream, lives, kinds[name], until) for name in order]
    return [head, aims, *classes]


def _class(stream: Stream, lives: _Lives, rows: Sequence[int], until: float) -> dict[str, Any]:
    return {
        "jobs": len(rows),
        "started": int((~np.isnan(lives.first[rows])).sum()),
        "evictions": int(lives.evicted[rows].sum()),
        "gpu_hours_lost": round(float(lives.lost[rows].sum()), 1),
        "wait_s": _waits(stream, lives, rows, until),
    }


def _waits(stream: Stream, lives: _Lives, rows: Sequence[int], until: float) -> dict[str, float]:
    """From arrival to the first start, in seconds; a job that never started has waited to the end."""
    if not rows:
        return {"jobs": 0}
    first = lives.first[rows]
    waits = np.where(np.isnan(first), until, first) - stream.arrival[rows]
    p50, p99 = np.percentile(waits, (50, 99))
    return {"p50": round(float(p50), 1), "p99": round(float(p99), 1), "max": round(float(waits.max()), 1)}
