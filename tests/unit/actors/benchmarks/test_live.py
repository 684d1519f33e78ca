"""The benchmark of the live pipeline measures what it says: the real roles in memory, on its fleet."""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.benchmarks.live import DEVICES, RACK, TASKS, WIDTH, _cluster, _inventory, _parts, _placed
from actors.broker.bus import DECISIONS, START
from actors.fleets.workload import arriving
from actors.observability.span_store import SpanRecord
from pipeline.cluster.tables import RUNNING
from tests.support.assembly import Assembly

NODES = 2 * RACK
INVENTORY = _inventory()


def span(name: str, trace: str, took_ms: float, **attributes: Any) -> SpanRecord:
    return SpanRecord(
        name=name, role="dispatcher", trace=trace, span="", parent=None, start_ns=10**9,
        end_ns=10**9 + int(took_ms * 1e6), ok=True, reason=None, attributes=attributes, links=[],
    )  # fmt: skip


def test_the_fleet_is_full_and_a_gang_that_arrives_gets_its_room_from_others() -> None:
    assembly = Assembly(_cluster(INVENTORY, NODES))
    assembly.hear()
    snapshot = assembly.ingest.snapshot
    assert len(snapshot.tasks) == NODES * TASKS
    assert (snapshot.tasks.status == RUNNING).all()
    devices = snapshot.vocabulary.resources.index(INVENTORY.resources.gpu)
    assert (
        snapshot.nodes.allocatable[:, devices].tolist()
        == snapshot.shapes.request[snapshot.tasks.shape][:, devices].reshape(NODES, TASKS).sum(axis=1).tolist()
    )
    assert not snapshot.room.idle[:, devices].any()
    document = arriving(INVENTORY, assembly.clock.now, 0)
    assembly.submit(document)
    (answer,) = assembly.cycle().answers
    assert answer.statement is not None
    assert len(answer.statement.nominated) == WIDTH
    assert len(answer.statement.evictions) >= WIDTH
    assert len(np.unique(answer.statement.nominated_node // RACK)) == 1
    assert WIDTH < RACK * DEVICES
    named = [name for entry in assembly.bus.follow(DECISIONS, START) for name in _placed(entry)]
    assert named == [f"{document['namespace']}/{document['name']}"]


def test_parts_are_medians_over_cycles_that_recorded_and_the_longest_of_attempts_side_by_side_counts() -> None:
    spans = [
        span("cycle", "idle", 3.0),
        *(span("cycle", one, 30.0) for one in "ab"),
        *(span("ingest", one, 0.1, fold_ms=4.0, publish_ms=5.0) for one in "ab"),
        *(span("attempt", one, took, purpose="preempt") for one, took in (("a", 8.0), ("a", 6.0), ("b", 10.0))),
        *(span("attempt", one, 1.0, purpose="reclaim") for one in "ab"),
        *(span("judge", one, 2.0) for one in "ab"),
        *(span("record", one, took) for one, took in (("a", 3.0), ("a", 4.0), ("b", 5.0))),
    ]
    assert _parts(spans) == {
        "fold_ms": 4.0, "publish_ms": 5.0, "search_ms": 10.0, "judge_ms": 2.0, "record_ms": 6.0, "cycle_ms": 30.0,
    }  # fmt: skip
    assert _parts([span("cycle", "idle", 3.0)]) == {}
