"""The Lingjun hosts with a stream of jobs: scenario S3's state.

All jobs of the replayed part are in the tables from the start, dormant until they arrive, so that rows stay what they
are. Devices a host are an assumption of the scenario (8); hosts have nothing but devices, the stream asks for no more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from actors.cluster_file.reader import read_cluster
from actors.columns.compile import compile_cluster
from actors.columns.names import Names
from actors.replays.recorded import RecordingRefused, document, seconds, table, whole
from pipeline.cluster.arrays import Floats, Longs, Rows, with_rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE, PENDING

HOSTS = "topology/lingjun2023.json.gz"
STREAM = "scenarios/s3_llm_stream_syn.csv.gz"
BIG_GANGS = "scenarios/s3_real_big_gangs.csv"
LEVELS = ("dsw", "psw", "asw")
GPU = "nvidia.com/gpu"
#: Parts of all devices that each queue deserves, in percent (the scenario's).
DESERVED = {"seren": 47, "kalos": 53}
PRIORITIES = {"low": 0, "normal": 1, "high": 2}
#: From this many workers on, a big gang must lie in one domain of the level.
_WIDTHS = ((8, "asw"), (128, "psw"))
_WIDEST_LEVEL = "dsw"
#: Seconds between big gangs.
_EVERY_S = 1800.0
#: Of the order in which big gangs arrive: the recording sorts them by width. It is the seed of the stream's own draw.
_SEED = 4704
BIG = "big"


@dataclass(frozen=True)
class Job:
    """A job of the stream, or a big gang, whose ``kind`` is BIG."""

    name: str
    arrival_s: float
    duration_s: float
    queue: str
    priority: str
    kind: str
    workers: int
    gpus: int
    level: str | None = None


@dataclass(frozen=True)
class Stream:
    """A cluster in which every job is dormant; podgroup row ``i`` is ``jobs[i]``, jobs by arrival.

    Attributes
    ----------
    arrival, duration: float64[G]
        Seconds.
    gpus: int64[G]
        Devices of all workers together.
    """

    snapshot: Snapshot
    names: Names
    jobs: tuple[Job, ...]
    arrival: Floats
    duration: Floats
    gpus: Longs


def open_stream(folder: Path, until_s: float) -> Stream:
    """Read the hosts and every job that arrives before ``until_s``.

    Raises
    ------
    RecordingRefused
        If something cannot be read or contradicts itself.
    """
    nodes = _nodes(folder)
    jobs = sorted([*_stream(folder), *_big_gangs(folder, until_s)], key=lambda job: (job.arrival_s, job.name))
    jobs = [job for job in jobs if job.arrival_s < until_s]
    total = sum(node["allocatable"][GPU] for node in nodes)
    queues = [{"name": name, "deserved": {GPU: total * part // 100}} for name, part in DESERVED.items()]
    cluster = read_cluster(
        {
            "version": 1,
            "nodes": nodes,
            "topology": {"levels": list(LEVELS), "labels": {level: level for level in LEVELS}},
            "queues": queues,
            "podgroups": [_podgroup(job) for job in jobs],
        }
    )
    snapshot, names = compile_cluster(cluster)
    return Stream(
        _dormant(snapshot),
        names,
        tuple(jobs),
        np.array([job.arrival_s for job in jobs], np.float64),
        np.array([job.duration_s for job in jobs], np.float64),
        np.array([job.workers * job.gpus for job in jobs], np.int64),
    )


def arrived(snapshot: Snapshot, podgroups: Rows) -> Snapshot:
    """The state once dormant jobs wait."""
    rows = np.concatenate([np.zeros(0, np.int64), *(snapshot.tasks_of(row) for row in podgroups.tolist())])
    return replace(
        snapshot,
        revision=snapshot.revision + len(podgroups),
        podgroups=replace(snapshot.podgroups, alive=with_rows(snapshot.podgroups.alive, podgroups, True)),
        tasks=replace(snapshot.tasks, status=with_rows(snapshot.tasks.status, rows, PENDING)),
    )


def _dormant(snapshot: Snapshot) -> Snapshot:
    tasks, groups = snapshot.tasks, snapshot.podgroups
    return replace(
        snapshot,
        podgroups=replace(groups, alive=with_rows(groups.alive, np.arange(len(groups)), False)),
        tasks=replace(tasks, status=with_rows(tasks.status, np.arange(len(tasks)), GONE)),
    )


def _nodes(folder: Path) -> list[dict[str, Any]]:
    found = document(folder, HOSTS).get("nodes", ())
    nodes = []
    for at, host in enumerate(found):
        path = host.get("path", ())
        if len(path) != len(LEVELS) or not isinstance(host.get("gpus"), int):
            raise RecordingRefused(
                f"{HOSTS}: nodes[{at}]: expected gpus and a path of {len(LEVELS)} domains, found {host}"
            )
        labels = dict(zip(LEVELS, path, strict=True))
        nodes.append({"name": host["name"], "allocatable": {"pods": 110, GPU: host["gpus"]}, "labels": labels})
    return nodes


def _stream(folder: Path) -> list[Job]:
    columns = ("job", "arrival_s", "queue", "priority", "job_type", "workers", "gpus_per_worker", "duration_s")
    jobs = []
    for row in table(folder, STREAM, columns):
        if row["queue"] not in DESERVED or row["priority"] not in PRIORITIES:
            known = f"queue {' or '.join(DESERVED)} and priority {' or '.join(PRIORITIES)}"
            raise RecordingRefused(
                f"{STREAM}: {row['job']}: expected {known}, found {row['queue']!r} and {row['priority']!r}"
            )
        jobs.append(
            Job(
                row["job"],
                seconds(row, "arrival_s", STREAM),
                seconds(row, "duration_s", STREAM),
                row["queue"],
                row["priority"],
                row["job_type"],
                whole(row, "workers", STREAM),
                whole(row, "gpus_per_worker", STREAM),
            )
        )
    return jobs


def _big_gangs(folder: Path, until_s: float) -> list[Job]:
    """One every half hour, the first after half an hour; order, high priority and queues in turn are ours."""
    rows = table(folder, BIG_GANGS, ("job", "workers", "gpus_per_worker", "duration_s"))
    rows.sort(key=lambda row: (-whole(row, "workers", BIG_GANGS), row["job"]))
    order = np.random.default_rng(_SEED).permutation(len(rows))
    jobs = []
    for number in range(int(until_s / _EVERY_S) if rows else 0):
        row = rows[order[number % len(rows)]]
        workers = whole(row, "workers", BIG_GANGS)
        jobs.append(
            Job(
                f"big-{number:03}-{row['job']}",
                (number + 1) * _EVERY_S,
                seconds(row, "duration_s", BIG_GANGS),
                tuple(DESERVED)[number % len(DESERVED)],
                "high",
                BIG,
                workers,
                whole(row, "gpus_per_worker", BIG_GANGS),
                next((level for width, level in _WIDTHS if workers <= width), _WIDEST_LEVEL),
            )
        )
    return jobs


def _podgroup(job: Job) -> dict[str, Any]:
    """All workers or none."""
    podgroup = {
        "name": job.name,
        "queue": job.queue,
        "priority": PRIORITIES[job.priority],
        "min_available": job.workers,
        "created": job.arrival_s,
        "tasks": [
            {"name": f"{job.name}-w", "count": job.workers, "request": {GPU: job.gpus}, "created": job.arrival_s}
        ],
    }
    return podgroup | ({"topology": {"required": job.level}} if job.level is not None else {})
