"""Plays a stream of jobs through the pipeline by discrete events in simulated time, and records every job's life.

Synthetic in every stream: victims leave at once, and an evicted job starts over from the beginning, since the
recordings have no checkpoints.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from actors.fleets.prompt import victims_gone
from actors.replays.deciding import promises_kept
from actors.replays.rules import broken_by, broken_gangs, in_one_domain, overfull, placed_nodes, starting_freely
from actors.replays.streams.jobs import GPU, Stream, arrived
from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows, frozen, with_rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.events import Changes, Departures
from pipeline.cluster.updates.fold import fold
from pipeline.cycle import cycle
from pipeline.decision.decided import carried_out
from pipeline.decision.statement import Statement
from pipeline.policy import Policy

#: How long news is collected before a cycle, in simulated seconds.
_BATCH_S = 60.0
HOUR = 3600.0
#: An eviction within this many seconds after the last one counts as thrash.
_AGAIN_S = 600.0


@dataclass(slots=True)
class Lives:
    """The lives of all jobs, in columns over the podgroups of the stream, and the cost of the replay.

    Attributes
    ----------
    started, first
        Start in seconds of the current life, NaN while the job does not run; start of the first life, NaN if none.
    evicted, evicted_at
        How often the job was stopped, which is the number of its current life; seconds of the last time.
    again
        How often it was stopped within ten minutes after an earlier stop.
    waited_before
        How often of these for a job that had been waiting already when it started again. That one may have had no right
        to its room then; with the right, such a start would have been for nothing.
    never_refused
        How often of these for a job that was never told in the meantime that there is no plan for it: nothing proves
        that it had no right to the room.
    refused_at
        Seconds of the last cycle that searched for room for the job and found no plan.
    lost
        Device hours of the lives that were cut short.
    ends
        A heap of (when, podgroup, life).
    at_level
        For each job with a required level that ran: whether it lay in one domain of that level.
    held, deserved, short: float64[Q]
        Device seconds that each queue held; that it was entitled to (what it deserves, or its demand if that is
        less); and that it lacked of these.
    victim_gpus, requested_gpus
        Devices of all victims, and of the jobs that they made room for.
    """

    started: Floats
    first: Floats
    evicted: Longs
    evicted_at: Floats
    again: Longs
    waited_before: Longs
    never_refused: Longs
    refused_at: Floats
    lost: Floats
    ended: Bools
    held: Floats
    deserved: Floats
    short: Floats
    ends: list[tuple[float, int, int]] = field(default_factory=list)
    cycles_ms: list[float] = field(default_factory=list)
    evicting_ms: list[float] = field(default_factory=list)
    by_action: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    busy_s: float = 0.0
    victims: int = 0
    victim_gpus: float = 0.0
    requested_gpus: float = 0.0
    at_level: dict[int, bool] = field(default_factory=dict)


def lived(stream: Stream, policy: Policy, until: float) -> Lives:
    """Play the stream up to ``until`` (seconds)."""
    lives = unlived(stream)
    _play(stream, policy, lives, until)
    return lives


def unlived(stream: Stream) -> Lives:
    """The lives before any job has come."""
    many, queues = len(stream.jobs), len(stream.snapshot.queues)
    return Lives(
        started=np.full(many, np.nan),
        first=np.full(many, np.nan),
        evicted=np.zeros(many, np.int64),
        evicted_at=np.full(many, -np.inf),
        again=np.zeros(many, np.int64),
        waited_before=np.zeros(many, np.int64),
        never_refused=np.zeros(many, np.int64),
        refused_at=np.full(many, -np.inf),
        lost=np.zeros(many),
        ended=np.zeros(many, np.bool_),
        held=np.zeros(queues),
        deserved=np.zeros(queues),
        short=np.zeros(queues),
    )


# -- the loop ----------------------------------------------------------------------------------------------------------


def _play(stream: Stream, policy: Policy, lives: Lives, until: float) -> None:
    snapshot, waiting, now = stream.snapshot, 0, 0.0
    while True:
        upcoming = [float(stream.arrival[waiting])] if waiting < len(stream.jobs) else []
        upcoming += [lives.ends[0][0]] if lives.ends else []
        at = min(upcoming, default=np.inf)
        then = min(max(np.ceil(at / _BATCH_S) * _BATCH_S, now + _BATCH_S), until)
        _account(stream, lives, waiting, then - now)
        if at >= until or then >= until:
            return
        now = then
        snapshot = _ended(snapshot, lives, now)
        come = np.arange(waiting, np.searchsorted(stream.arrival, now, side="right"))
        waiting += len(come)
        snapshot = _cycled(arrived(snapshot, come), stream, policy, lives, now)


def _account(stream: Stream, lives: Lives, come: int, step_s: float) -> None:
    """Add what each queue held, was entitled to and lacked for ``step_s`` seconds; ``come`` jobs have arrived."""
    queue, gpu = stream.snapshot.podgroups.queue, stream.snapshot.vocabulary.resources.index(GPU)
    runs, there = ~np.isnan(lives.started), (np.arange(len(stream.jobs)) < come) & ~lives.ended
    held, wanted = (
        np.bincount(queue[some], weights=stream.gpus[some], minlength=len(lives.held)) for some in (runs, there)
    )
    claim = np.minimum(np.maximum(stream.snapshot.queues.deserved[:, gpu], 0), wanted)
    lives.busy_s += float(held.sum()) * step_s
    lives.held += held * step_s
    lives.deserved += claim * step_s
    lives.short += np.maximum(claim - held, 0) * step_s


def _ended(snapshot: Snapshot, lives: Lives, now: float) -> Snapshot:
    """Let jobs leave whose time is over; ends of lives that an eviction cut short do not count."""
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
        gone, frozen(snapshot.podgroups.revision[gone] + 1, np.int64), frozen(np.full(len(gone), now), np.float64)
    )
    return fold(snapshot, Changes(removed=removed))


def _cycled(snapshot: Snapshot, stream: Stream, policy: Policy, lives: Lives, now: float) -> Snapshot:
    """One cycle and the fleet's answer to it."""
    begin = time.perf_counter()
    done = cycle(snapshot, policy, now)
    spent = (time.perf_counter() - begin) * 1e3
    lives.cycles_ms.append(spent)
    before = snapshot
    for made in done.statements:
        if len(made.evictions):
            lives.broken += [f"at {now:g} s: {sentence}" for sentence in broken_by(before, made, policy.match_policy)]
            evicted(before, made, stream, lives, now)
        before = carried_out(made, before, now)
    lives.refused_at[[row for one in done.unplaced for row in one.gang_group]] = now
    after = promises_kept(victims_gone(done.snapshot, now), policy, now)
    after = _started(after, stream, lives, now)
    if any(len(made.evictions) for made in done.statements):
        lives.evicting_ms.append(spent)
    touched = np.unique([made.preemptor for made in done.statements if made.preemptor != NONE]).astype(np.int64)
    found = [*broken_gangs(after, touched, starting_freely(snapshot, policy.match_policy)), *overfull(after)]
    lives.broken += [f"at {now:g} s: {sentence}" for sentence in found]
    return after


def evicted(snapshot: Snapshot, made: Statement, stream: Stream, lives: Lives, now: float) -> None:
    """Record the jobs that a statement stops: the work of their current life is lost."""
    lives.by_action[made.action] += 1
    request, shape = snapshot.shapes.request[:, snapshot.vocabulary.resources.index(GPU)], snapshot.tasks.shape
    lives.victims += len(made.evictions)
    lives.victim_gpus += float(request[shape[made.evictions]].sum())
    lives.requested_gpus += float(request[shape[made.placed]].sum())
    taker, waits_since = made.preemptor, np.inf  # what is only cleared away makes room for none
    if taker != NONE:
        waits_since = max(float(stream.arrival[taker]), float(lives.evicted_at[taker]))
    for row in np.unique(snapshot.tasks.podgroup[made.evictions]).tolist():
        again = now - lives.evicted_at[row] < _AGAIN_S
        lives.again[row] += again
        waited_before = again and waits_since <= lives.started[row]
        lives.waited_before[row] += waited_before
        lives.never_refused[row] += waited_before and lives.refused_at[taker] < lives.started[row]
        if not np.isnan(lives.started[row]):
            lives.lost[row] += stream.gpus[row] * (now - lives.started[row]) / HOUR
            lives.started[row] = np.nan
        lives.evicted[row] += 1
        lives.evicted_at[row] = now


def _started(snapshot: Snapshot, stream: Stream, lives: Lives, now: float) -> Snapshot:
    """Record which jobs run whole, and since when; a job that was stopped no longer counts as started."""
    runs = snapshot.counts.running >= snapshot.podgroups.min_available
    fresh: Rows = np.flatnonzero(runs & snapshot.podgroups.alive & np.isnan(lives.started) & ~lives.ended)
    for row in fresh.tolist():
        lives.started[row] = now
        lives.first[row] = now if np.isnan(lives.first[row]) else lives.first[row]
        heapq.heappush(lives.ends, (now + stream.duration[row], row, int(lives.evicted[row])))
        if stream.jobs[row].level is not None:
            level = int(snapshot.podgroups.required_level[row])
            lives.at_level[row] = in_one_domain(snapshot, placed_nodes(snapshot, row), level)
    rows = np.arange(len(stream.jobs))
    return replace(
        snapshot,
        podgroups=replace(snapshot.podgroups, started=with_rows(snapshot.podgroups.started, rows, lives.started)),
    )
