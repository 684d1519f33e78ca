"""Every tenth machine of PAI with a stream of its gangs over queues: the state of scenario S2.

A gang needs all its instances of each role. Parameter servers and evaluators hold no device, but losing one of them
breaks the gang too.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from actors.replays.recorded import RecordingRefused, seconds, table, whole
from actors.replays.streams.jobs import GPU, PRIORITIES, Job, Role, Stream, stream_of

NODES = "scenarios/s2_nodes.csv.gz"
QUEUES = "scenarios/s2_queues.csv"
STREAM = "scenarios/s2_pai_queue_stream.csv.gz"
LEVELS = ("spine", "leaf")
_PODS_A_NODE = 110
#: Duration in seconds of the few gangs whose recorded end is not after their start.
_LEAST_S = 1.0


def open_gangs(folder: Path, until_s: float) -> Stream:
    """Read the machines, the queues and every gang that arrives before ``until_s``.

    Raises
    ------
    RecordingRefused
        If something cannot be read or contradicts itself.
    """
    queues = [
        {"name": row["queue"], "deserved": {GPU: whole(row, "deserved_gpus", QUEUES)}}
        for row in table(folder, QUEUES, ("queue", "deserved_gpus"))
    ]
    jobs = [job for job in _gangs(folder, {str(queue["name"]) for queue in queues}) if job.arrival_s < until_s]
    return stream_of(_nodes(folder), LEVELS, queues, jobs)


def _nodes(folder: Path) -> list[dict[str, Any]]:
    columns = ("machine", "cpus", "mem_gib", "gpus", "leaf_syn", "spine_syn")
    return [
        {
            "name": f"m{row['machine']}",
            "allocatable": {
                "cpu": whole(row, "cpus", NODES), "memory": f"{whole(row, 'mem_gib', NODES)}Gi",
                GPU: whole(row, "gpus", NODES), "pods": _PODS_A_NODE,
            },
            "labels": {"leaf": row["leaf_syn"], "spine": row["spine_syn"]},
        }
        for row in table(folder, NODES, columns)
    ]  # fmt: skip


def _gangs(folder: Path, queues: set[str]) -> list[Job]:
    """The gangs; rows with the same job are its roles."""
    columns = (
        "job", "queue_syn", "priority_syn", "arrival_s_compressed", "duration_s", "role", "inst_num", "gpus_per_inst",
        "cpus_per_inst_syn", "mem_gib_per_inst_syn",
    )  # fmt: skip
    rows: dict[str, list[dict[str, str]]] = {}
    for row in table(folder, STREAM, columns):
        if row["queue_syn"] not in queues or row["priority_syn"] not in PRIORITIES:
            raise RecordingRefused(
                f"{STREAM}: {row['job']}: expected a queue of {QUEUES} and priority {' or '.join(PRIORITIES)}, found "
                f"{row['queue_syn']!r} and {row['priority_syn']!r}"
            )
        rows.setdefault(row["job"], []).append(row)
    return [
        Job(
            name,
            min(seconds(row, "arrival_s_compressed", STREAM) for row in some),
            max(_LEAST_S, *(_duration(row["duration_s"]) for row in some)),
            some[0]["queue_syn"],
            some[0]["priority_syn"],
            "gang" if sum(whole(row, "inst_num", STREAM) for row in some) > 1 else "single",
            tuple(_role(row, at) for at, row in enumerate(some)),
        )
        for name, some in rows.items()
    ]


def _duration(text: str) -> float:
    """The recorded seconds; negative if the end lies before the start."""
    try:
        lasts = float(text)
    except ValueError:
        lasts = math.nan
    if not math.isfinite(lasts):
        raise RecordingRefused(f"{STREAM}: duration_s: expected a number, found {text!r}")
    return lasts


def _role(row: dict[str, str], at: int) -> Role:
    name = f"{at}-{row['role'].lower()}"
    request = {
        "cpu": whole(row, "cpus_per_inst_syn", STREAM),
        "memory": f"{whole(row, 'mem_gib_per_inst_syn', STREAM)}Gi",
        GPU: whole(row, "gpus_per_inst", STREAM),
    }
    return Role(name, whole(row, "inst_num", STREAM), {key: value for key, value in request.items() if value})
