"""The Lingjun hosts with a stream of jobs: the state of scenario S3.

That each host has 8 devices is an assumption of the scenario. Hosts have only devices, since the stream asks for
nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from actors.replays.recorded import RecordingRefused, document, seconds, table, whole
from actors.replays.streams.jobs import GPU, PRIORITIES, Job, Role, Stream, stream_of

HOSTS = "topology/lingjun2023.json.gz"
STREAM = "scenarios/s3_llm_stream_syn.csv.gz"
BIG_GANGS = "scenarios/s3_real_big_gangs.csv"
LEVELS = ("dsw", "psw", "asw")
#: Percentage of all devices that each queue deserves (set by the scenario).
DESERVED = {"seren": 47, "kalos": 53}
#: From this many workers on, a big gang must lie in one domain of the level.
_WIDTHS = ((8, "asw"), (128, "psw"))
_WIDEST_LEVEL = "dsw"
#: Seconds between big gangs.
_EVERY_S = 1800.0
#: Seed of the order in which big gangs arrive, since the recording sorts them by width; the same as the stream's.
_SEED = 4704
BIG = "big"


def open_stream(folder: Path, until_s: float) -> Stream:
    """Read the hosts and every job that arrives before ``until_s``.

    Raises
    ------
    RecordingRefused
        If something cannot be read or contradicts itself.
    """
    nodes = _nodes(folder)
    jobs = [job for job in (*_stream(folder), *_big_gangs(folder, until_s)) if job.arrival_s < until_s]
    total = sum(node["allocatable"][GPU] for node in nodes)
    queues = [{"name": name, "deserved": {GPU: total * part // 100}} for name, part in DESERVED.items()]
    return stream_of(nodes, LEVELS, queues, jobs)


def _nodes(folder: Path) -> list[dict[str, Any]]:
    found = document(folder, HOSTS).get("nodes")
    if not isinstance(found, list):
        raise RecordingRefused(f"{HOSTS}: nodes: expected a list of hosts, found {type(found).__name__}")
    nodes = []
    for at, host in enumerate(found):
        match host:
            case {"name": str(name), "gpus": int(gpus), "path": [str(), str(), str()] as path}:
                labels = dict(zip(LEVELS, path, strict=True))
                nodes.append({"name": name, "allocatable": {"pods": 110, GPU: gpus}, "labels": labels})
            case _:
                wanted = f"a name, gpus and a path of {len(LEVELS)} domains"
                raise RecordingRefused(f"{HOSTS}: nodes[{at}]: expected {wanted}, found {host}")
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
                _workers(whole(row, "workers", STREAM), row, STREAM),
            )
        )
    return jobs


def _big_gangs(folder: Path, until_s: float) -> list[Job]:
    """One gang every half hour. The order, the high priority and the turn of queues are assumptions of ours."""
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
                _workers(workers, row, BIG_GANGS),
                next((level for width, level in _WIDTHS if workers <= width), _WIDEST_LEVEL),
            )
        )
    return jobs


def _workers(count: int, row: Mapping[str, str], name: str) -> tuple[Role, ...]:
    return (Role("w", count, {GPU: whole(row, "gpus_per_worker", name)}),)
