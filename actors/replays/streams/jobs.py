"""Streams of jobs over a cluster, and the state in which all jobs are dormant.

All jobs of the replayed part are in the tables from the start and dormant until they arrive, so that rows keep their
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from actors.cluster_file.reader import read_cluster
from actors.columns.compile import compile_cluster
from actors.columns.names import Names
from pipeline.cluster.arrays import Floats, Longs, Rows, with_rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE, PENDING

GPU = "nvidia.com/gpu"
PRIORITIES = {"low": 0, "normal": 1, "high": 2}


@dataclass(frozen=True)
class Role:
    """Tasks of one kind: their number, and the request of each."""

    name: str
    count: int
    request: dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A job of a stream: all its tasks or none.

    Attributes
    ----------
    kind
        The kind of work, by which measures are grouped.
    level
        All its tasks must lie in one domain of this level; None: anywhere.
    """

    name: str
    arrival_s: float
    duration_s: float
    queue: str
    priority: str
    kind: str
    roles: tuple[Role, ...]
    level: str | None = None

    @property
    def workers(self) -> int:
        """Number of its tasks."""
        return sum(role.count for role in self.roles)

    @property
    def gpus(self) -> int:
        """Devices of all its tasks together."""
        return sum(role.count * int(role.request.get(GPU, 0)) for role in self.roles)


@dataclass(frozen=True)
class Stream:
    """A cluster in which every job is dormant; podgroup row ``i`` is ``jobs[i]``, jobs by arrival.

    Attributes
    ----------
    arrival, duration: float64[G]
        Seconds.
    gpus: int64[G]
        Devices of all tasks together.
    """

    snapshot: Snapshot
    names: Names
    jobs: tuple[Job, ...]
    arrival: Floats
    duration: Floats
    gpus: Longs


def stream_of(
    nodes: Sequence[dict[str, Any]], levels: Sequence[str], queues: Sequence[dict[str, Any]], jobs: Sequence[Job]
) -> Stream:
    """The stream of jobs on nodes that have the name of their domain of each level as a label."""
    ordered = sorted(jobs, key=lambda job: (job.arrival_s, job.name))
    cluster = read_cluster(
        {
            "version": 1,
            "nodes": list(nodes),
            "topology": {"levels": list(levels), "labels": {level: level for level in levels}},
            "queues": list(queues),
            "podgroups": [_podgroup(job) for job in ordered],
        }
    )
    snapshot, names = compile_cluster(cluster)
    return Stream(
        _dormant(snapshot),
        names,
        tuple(ordered),
        np.array([job.arrival_s for job in ordered], np.float64),
        np.array([job.duration_s for job in ordered], np.float64),
        np.array([job.gpus for job in ordered], np.int64),
    )


def arrived(snapshot: Snapshot, podgroups: Rows) -> Snapshot:
    """The state after dormant jobs (rows) have arrived."""
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


def _podgroup(job: Job) -> dict[str, Any]:
    """The document of a job: a gang that needs all tasks of each role."""
    several = len(job.roles) > 1
    podgroup = {
        "name": job.name,
        "queue": job.queue,
        "priority": PRIORITIES[job.priority],
        "min_available": job.workers,
        "created": job.arrival_s,
        "tasks": [
            {"name": f"{job.name}-{role.name}", "count": role.count, "request": role.request, "created": job.arrival_s}
            | ({"role": role.name} if several else {})
            for role in job.roles
        ],
    }
    if several:
        podgroup["roles"] = {role.name: {"min": role.count} for role in job.roles}
    return podgroup | ({"topology": {"required": job.level}} if job.level is not None else {})
