"""The reader of scenario S3, on four hosts: what it makes of a recording, and what it refuses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from actors.replays.lingjun import BIG, BIG_GANGS, HOSTS, STREAM, open_stream
from actors.replays.recorded import RecordingRefused
from pipeline.cluster.tables import GONE
from tests.support.recordings import write

HOST = {"path": ["D", "P", "P/S"], "gpus": 8}
JOB = {
    "job": "j", "arrival_s": 10.0, "queue": "seren", "priority": "low", "job_type": "Debug", "workers": 2,
    "gpus_per_worker": 4, "duration_s": 600,
}  # fmt: skip
GANG = {"job": "g", "workers": 2, "gpus_per_worker": 8, "duration_s": 300.0}
UNTIL = 2 * 3600.0


def recording(folder: Path, hosts: Any = None, **job: Any) -> Path:
    """Four hosts, a job of the stream that differs in these columns, and two big gangs."""
    path = folder / HOSTS
    path.parent.mkdir(parents=True)
    hosts = [{"name": f"h{at}", **HOST} for at in range(4)] if hosts is None else hosts
    path.write_bytes(gzip.compress(json.dumps({"nodes": hosts}).encode()))
    write(folder, STREAM, [JOB | job])
    write(folder, BIG_GANGS, [GANG, GANG | {"job": "wide", "workers": 20}])
    return folder


def test_a_big_gang_comes_every_half_hour_to_the_queues_in_turn(tmp_path: Path) -> None:
    stream = open_stream(recording(tmp_path), UNTIL)
    big = [job for job in stream.jobs if job.kind == BIG]
    assert [(job.arrival_s, job.queue, job.priority) for job in big] == [
        (1800.0, "seren", "high"), (3600.0, "kalos", "high"), (5400.0, "seren", "high"),
    ]  # fmt: skip
    assert {(job.workers, job.level) for job in big} == {(2, "asw"), (20, "psw")}
    assert (stream.snapshot.tasks.status == GONE).all()
    deserved = stream.snapshot.queues.deserved.max(axis=1).tolist()  # 53 and 47 in a hundred of 32 devices
    assert dict(zip(stream.names.queues, deserved, strict=True)) == {"kalos": 16, "seren": 15}


def test_a_job_of_the_stream_asks_for_devices_alone(tmp_path: Path) -> None:
    (job,) = (one for one in open_stream(recording(tmp_path), UNTIL).jobs if one.kind != BIG)
    assert (job.name, job.kind, job.workers, job.gpus, job.level) == ("j", "Debug", 2, 8, None)
    assert [role.request for role in job.roles] == [{"nvidia.com/gpu": 4}]


@pytest.mark.parametrize(
    "host",
    [
        "h0",
        {"name": "h0", "gpus": 8, "path": ["D", "P"]},
        {"name": "h0", "gpus": "8", "path": ["D", "P", "S"]},
        {"gpus": 8, "path": ["D", "P", "S"]},
    ],
    ids=["text", "path", "gpus", "name"],
)
def test_a_host_that_lacks_something_is_refused_by_its_number(tmp_path: Path, host: Any) -> None:
    with pytest.raises(RecordingRefused) as refusal:
        open_stream(recording(tmp_path, [host]), UNTIL)
    assert str(refusal.value) == f"{HOSTS}: nodes[0]: expected a name, gpus and a path of 3 domains, found {host}"


def test_hosts_that_are_no_list_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingRefused, match=r"nodes: expected a list of hosts, found dict"):
        open_stream(recording(tmp_path, {"h0": HOST}), UNTIL)


def test_a_job_of_an_unknown_queue_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RecordingRefused, match=r"j: expected queue seren or kalos and priority .*, found 'x' and 'low'"
    ):
        open_stream(recording(tmp_path, queue="x"), UNTIL)
