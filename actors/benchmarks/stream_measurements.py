"""Benchmarks of the streams: how fast events become state, and how soon a restarted ingestor is ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.benchmarks.figures import Figure, digits, timed
from actors.broker.bus import EVENTS, Bus
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from actors.documents.safe_msgpack import WIRE_LIMITS
from actors.ingestion.ingestor import Ingestor
from actors.ingestion.pace import Pace
from actors.protocol.envelopes import Outgoing, pack
from actors.protocol.full_list import cut

NODES, TASKS_A_GROUP = 10_000, 10
MANY_NODES = 100_000
EVENTS_AT_ONCE, EVENTS_AFTER = 100_000, 10_000
_A_BATCH = replace(WIRE_LIMITS, messages=500)
_RUNS = 3
_JOINS = 51

#: Kind, uid and body.
Said = tuple[str, str, Mapping[str, Any]]


class _Told:
    """A fleet with one podgroup of ten tasks for each node, published through a real broker."""

    def __init__(self, bus: Bus, nodes: int) -> None:
        self._bus, self._revisions = bus, count(2)
        cluster = {
            "version": 1,
            "nodes": [_node(at) for at in range(nodes)],
            "topology": {"levels": ["block"], "labels": {"block": "block"}},
            "queues": [{"name": "q"}],
            "podgroups": [_gang(f"g{at}") for at in range(nodes)],
        }  # fmt: skip
        for entry in pack(Outgoing("fleet_listed", "fleet", 1, part) for part in cut(cluster, "list")):
            bus.publish(EVENTS, entry)

    def ingestor(self) -> Ingestor:
        """An ingestor that has just started. It writes checkpoints only when asked, so never while measured."""
        pace = Pace(checkpoint_every_s=1e9, checkpoint_every_entries=1 << 60, checkpoint_every_bytes=1 << 60)
        made = Ingestor(self._bus, consumer="bench", now_s=time.time, pace=pace)
        made.start()
        return made

    def say(self, messages: Sequence[Said]) -> None:
        """Publish messages, 500 in each entry."""
        outgoing = (Outgoing(kind, uid, next(self._revisions), body) for kind, uid, body in messages)
        for entry in pack(outgoing, None, _A_BATCH):
            self._bus.publish(EVENTS, entry)

    def lives(self, life: int, events: int) -> list[Said]:
        """Messages of tasks that start, end and wait again."""
        said: list[Said] = []
        for at in range(events // 2):
            task = f"default/g{at // TASKS_A_GROUP}-{at % TASKS_A_GROUP}"
            said.append(
                ("task_started", task, {"task": task, "node": f"n{at // 10}", "incarnation": life, "at": 1.7e9})
            )
            said.append(
                ("task_ended", task, {"task": task, "outcome": "Evicted", "incarnation": life, "replaced": True})
            )
        return said

    def gangs(self, first: int, events: int) -> list[Said]:
        """Messages of gangs of ten tasks that arrive, start, end and leave, one after the other."""
        said: list[Said] = []
        for at in range(events // (2 + 2 * TASKS_A_GROUP)):
            gang = f"x{first + at}"
            tasks = [f"default/{gang}-{one}" for one in range(TASKS_A_GROUP)]
            said.append(("podgroup_upserted", gang, _gang(gang)))
            said += [("task_started", task, {"task": task, "node": f"n{at}", "at": 1.7e9}) for task in tasks]
            said += [("task_ended", task, {"task": task, "outcome": "Succeeded"}) for task in tasks]
            said.append(("podgroup_removed", gang, {"podgroup": f"default/{gang}"}))
        return said


def _node(at: int) -> dict[str, Any]:
    return {
        "name": f"n{at}", "allocatable": {"cpu": 64, "gpu": 8, "pods": 110}, "labels": {"block": f"b{at // 100}"},
    }  # fmt: skip


def _gang(name: str) -> dict[str, Any]:
    task = {"name": name, "count": TASKS_A_GROUP, "request": {"cpu": 4, "gpu": 1}}
    return {"name": name, "queue": "q", "min_available": TASKS_A_GROUP, "tasks": [task]}


@contextmanager
def _told(nodes: int = NODES) -> Iterator[_Told]:
    with EmbeddedBroker() as broker:
        link = RedisClient(broker.url)
        yield _Told(RedisBus(link, "bench"), nodes)
        link.close()


def ingestion() -> Figure:
    """Read, check and fold 100,000 events that are already in the broker.

    ``mixed_per_s``: with gangs that arrive, start, end and leave instead of tasks that start and end.
    """
    with _told() as told:
        ingestor = told.ingestor()
        lives = [_folded(told, ingestor, told.lives(at, EVENTS_AT_ONCE)) for at in range(_RUNS)]
        gangs = [_folded(told, ingestor, told.gangs(at * EVENTS_AT_ONCE, EVENTS_AT_ONCE)) for at in range(_RUNS)]
    wall_ms, cpu_ms = (np.array(column) for column in zip(*lives, strict=True))
    mixed_ms, mixed_cpu_ms = (np.array(column) for column in zip(*gangs, strict=True))
    also = {
        "tasks": NODES * TASKS_A_GROUP,
        "events": EVENTS_AT_ONCE,
        "per_s": _rate(wall_ms),
        "per_cpu_s": _rate(cpu_ms),
        "mixed_per_s": _rate(mixed_ms),
        "mixed_per_cpu_s": _rate(mixed_cpu_ms),
    }
    return Figure(digits(np.median(wall_ms)), digits(wall_ms.max()), _RUNS, also)


def _rate(spent_ms: NDArray[np.float64]) -> int:
    return int(EVENTS_AT_ONCE / np.median(spent_ms) * 1e3)


def _folded(told: _Told, ingestor: Ingestor, messages: Sequence[Said]) -> tuple[float, float]:
    """Wall and processor time of folding messages, in milliseconds; a checkpoint afterwards empties the streams."""
    spent = _spent(told, ingestor, messages)
    ingestor.checkpoint()
    return spent


def _spent(told: _Told, ingestor: Ingestor, messages: Sequence[Said]) -> tuple[float, float]:
    told.say(messages)
    before, begin, worked = ingestor.snapshot.revision, time.perf_counter(), time.thread_time()
    while ingestor.poll() or ingestor.behind:
        pass
    spent = (time.perf_counter() - begin) * 1e3, (time.thread_time() - worked) * 1e3
    folded = ingestor.snapshot.revision - before
    if folded != len(messages):
        raise AssertionError(f"expected {len(messages)} events to be folded, found {folded}")
    return spent


def node_join_live() -> Figure:
    """One node joins 100,000 that hold 1,000,000 tasks: from the broker to a state that contains it."""
    with _told(MANY_NODES) as told:
        ingestor = told.ingestor()
        joins = [
            ("node_upserted", f"n{at}x", {**_node(at), "name": f"n{at}x"})
            for at in range(0, MANY_NODES, MANY_NODES // _JOINS)
        ]
        spent = [_spent(told, ingestor, [said]) for said in joins]
    wall_ms, cpu_ms = (np.array(column[1:]) for column in zip(*spent, strict=True))
    also = {"nodes": MANY_NODES, "tasks": MANY_NODES * TASKS_A_GROUP, "cpu_ms": digits(np.median(cpu_ms))}
    return Figure(digits(np.median(wall_ms)), digits(wall_ms.max()), len(wall_ms), also)


def recovery() -> Figure:
    """Rebuild the state after a restart from a checkpoint of 100,000 tasks and 10,000 events after it."""
    with _told() as told:
        first = told.ingestor()
        first.checkpoint()
        told.say(told.lives(0, EVENTS_AFTER))
        figure = timed(told.ingestor, 10, nodes=NODES, tasks=NODES * TASKS_A_GROUP, events=EVENTS_AFTER)
        while first.poll() or first.behind:
            pass
        if told.ingestor().snapshot.revision != first.snapshot.revision:
            raise AssertionError("the state that was recovered is another one")
    return figure


STREAM_MEASUREMENTS: dict[str, Callable[[], Figure]] = {
    "ingestion": ingestion,
    "node_join_live": node_join_live,
    "recovery": recovery,
}
