"""Benchmarks of state: the fold, a snapshot as bytes, a snapshot in the object store, what-ifs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle

import numpy as np

from actors.benchmarks.figures import FEW, RUNS, Figure, NotAvailable, attempt_on, digits, generated_fleet, timed
from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec
from actors.fleets.prompt import news_of
from pipeline.cluster.arrays import NONE, Rows, frozen
from pipeline.cluster.checkpoint import decode, encode
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING, SUCCEEDED
from pipeline.cluster.updates.copy_on_write import picked
from pipeline.cluster.updates.events import EVICTED, Changes, NodesRelaid, TaskNews
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.plan import Plan
from pipeline.placement.need import need_of
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import ExtensionPoint, Purpose
from pipeline.propose import propose

#: Longer than any fetch within one machine takes.
_FETCH_LIMIT_S = 30.0


def ends_of(snapshot: Snapshot, rows: Rows) -> TaskNews:
    """News that half of some tasks (rows, on nodes) ended and half were evicted."""
    nowhere, status = np.full(len(rows), NONE), np.full(len(rows), EVICTED)
    status[: len(rows) // 2] = SUCCEEDED
    return news_of(snapshot, rows, status, nowhere, nowhere, NOW)


def _fold_10k() -> Figure:
    """10,000 events on a million tasks, half of them ends and half evictions, from columns to a new snapshot."""
    snapshot = generated_fleet(100_000, GangSpec()).snapshot
    rows = np.random.default_rng(1).permutation(np.flatnonzero(snapshot.tasks.node != NONE))[:10_000]
    changes = Changes(tasks=ends_of(snapshot, rows))
    return timed(lambda: fold(snapshot, changes), RUNS, tasks=len(snapshot.tasks), events=len(rows))


def _snapshot_1m() -> Figure:
    """Encode a snapshot of a million tasks as the buffers that are written; ``decode_p50_ms``: decode it.

    ``joined_p50_ms``: encode it as bytes in one piece, in memory that is touched for the first time.
    """
    snapshot = generated_fleet(100_000, GangSpec()).snapshot
    data = b"".join(encode(snapshot))
    back = timed(lambda: decode(data))
    also = {
        "tasks": len(snapshot.tasks),
        "bytes": len(data),
        "joined_p50_ms": timed(lambda: b"".join(encode(snapshot))).p50_ms or 0.0,
        "decode_p50_ms": back.p50_ms or 0.0,
        "decode_p99_ms": back.p99_ms or 0.0,
    }
    return replace(timed(lambda: encode(snapshot)), also=also)


def _publish() -> Figure:
    """Put a snapshot of a million tasks into the object store after 1,000 events.

    ``fetched_p50_ms``: with taking it out again. ``folded_p50_ms``: from the events through the fold to the store. Two
    snapshots take turns, each 1,000 events away from the same third, so that each differs from the one before.
    """
    from actors.ray_runtime.cluster import ray_cluster
    from actors.ray_runtime.transport.snapshot_store import SnapshotStore

    base = generated_fleet(100_000, GangSpec()).snapshot
    rows = np.random.default_rng(1).permutation(np.flatnonzero(base.tasks.node != NONE))[:2_000]
    base.packed()  # computes totals and index, so that the fold carries them
    news = [Changes(tasks=ends_of(base, half)) for half in np.split(rows, 2)]
    after, events = cycle([fold(base, one) for one in news]), cycle(news)
    with ray_cluster(None, "bench"):
        here, there = SnapshotStore(), SnapshotStore()
        figure = timed(lambda: here.publish(next(after)), tasks=len(base.tasks), events=len(rows) // 2)
        both = timed(lambda: there.fetch(here.publish(next(after)), _FETCH_LIMIT_S))
        folded = timed(lambda: here.publish(fold(base, next(events))))
    more = {"fetched_p50_ms": both.p50_ms or 0.0, "folded_p50_ms": folded.p50_ms or 0.0}
    return replace(figure, also={**figure.also, **more})


def _what_if() -> Figure:
    """Take one more of 1,000 victims on a million tasks, and ask what follows.

    After each victim: the quotas, whether its gang keeps its minimum, and the votes of the plugins of profile
    ``default`` on the next victim. A run takes all victims one by one; the figure is its time for one victim.
    """
    fleet = generated_fleet(100_000, GangSpec())
    snapshot, tasks = fleet.snapshot, fleet.snapshot.tasks
    victims = np.random.default_rng(1).permutation(np.flatnonzero(np.isin(tasks.status, (BOUND, RUNNING))))[:1_000]
    ceiling = snapshot.capacity
    each = list(zip(victims[:, None], tasks.podgroup[victims].tolist(), np.roll(victims, -1)[:, None], strict=True))
    preemptor = Preemptor((fleet.gang,), need_of(snapshot, (fleet.gang,)).total, Purpose.PREEMPT)
    before = Host(Context(snapshot, load_profile("default"), NOW))

    def take() -> None:
        what_if, host = WhatIf.of(snapshot), before
        for row, podgroup, following in each:
            what_if = what_if.evicting(row)
            host = host.on(what_if, row)
            _ = ceiling - what_if.allocated_here
            has_minimum(what_if, podgroup)
            host.task_victims(preemptor, following, ExtensionPoint.PREEMPTABLE)

    whole = timed(take, FEW)
    one = {"each_us": digits((whole.p50_ms or 0.0) * 1e3 / len(each)), "victims": len(each), "tasks": len(tasks)}
    return replace(whole, also=one)


def _node_join() -> Figure:
    """One node joins 100,000 that run a million tasks: renumber the state, totals and index included."""
    snapshot = generated_fleet(100_000, GangSpec()).snapshot
    count, middle = len(snapshot.nodes), len(snapshot.nodes) // 2
    at = np.insert(np.arange(count), middle, middle)
    topology = snapshot.topology
    relaid = NodesRelaid(
        vocabulary=snapshot.vocabulary,
        nodes=picked(snapshot.nodes, at),
        topology=replace(
            topology,
            start=frozen(topology.start + (topology.start > middle), np.int64),
            stop=frozen(topology.stop + (topology.stop > middle), np.int64),
        ),
        node_of=frozen(np.arange(count) + (np.arange(count) >= middle), np.int32),
        card_of=frozen(np.zeros((count, 0)), np.int32),
        level_of=frozen(np.arange(topology.levels), np.int32),
        news=1,
    )
    snapshot.packed()  # as in a running pipeline, which has published it

    def join() -> None:
        fold(snapshot, relaid).packed()

    return timed(join, RUNS, nodes=count, tasks=len(snapshot.tasks))


def _memory() -> Figure:
    """Bytes for each of a million tasks: of a snapshot with its totals and its index.

    ``decided``: with what a decision leaves behind for the next one. ``peak``: the most that there was in between.
    """
    fleet = generated_fleet(100_000, GangSpec())
    data = b"".join(encode(fleet.snapshot))
    tracemalloc.start()  # NumPy reports what it allocates
    try:
        snapshot = decode(data)
        snapshot.packed()
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        made = propose(replace(attempt_on(fleet), snapshot=snapshot))
        decided, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if not isinstance(made, Plan):
        raise NotAvailable("the generated fleet has no plan for its gang")
    parts = {"snapshot": held, "decided": decided, "peak": peak}
    also = {f"{name}_bytes_per_task": digits((len(data) + more) / len(snapshot.tasks)) for name, more in parts.items()}
    return Figure(None, None, 1, {"tasks": len(snapshot.tasks), **also})


STATE_MEASUREMENTS: dict[str, Callable[[], Figure]] = {
    "fold_10k": _fold_10k,
    "snapshot_1m": _snapshot_1m,
    "publish": _publish,
    "what_if": _what_if,
    "node_join": _node_join,
    "memory": _memory,
}
