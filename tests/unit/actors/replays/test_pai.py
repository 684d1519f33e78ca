"""The reader of scenario S2, on one machine: what it makes of a recording, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.replays.pai import NODES, QUEUES, STREAM, open_gangs
from actors.replays.recorded import RecordingRefused
from actors.replays.streams.jobs import GPU, Role
from tests.support.recordings import write

MACHINE = {"machine": 7, "cpus": 96, "mem_gib": 512, "gpus": 2, "leaf_syn": "l", "spine_syn": "s"}
ROLE = {
    "job": "a", "queue_syn": "q", "priority_syn": "high", "arrival_s_compressed": 60.0, "duration_s": 900,
    "role": "Worker", "inst_num": 2, "gpus_per_inst": 1, "cpus_per_inst_syn": 6, "mem_gib_per_inst_syn": 30,
}  # fmt: skip


def recording(folder: Path, *roles: dict[str, Any]) -> Path:
    """A machine, a queue, and rows of the stream that differ from one role in these columns."""
    write(folder, NODES, [MACHINE])
    write(folder, QUEUES, [{"queue": "q", "deserved_gpus": 2}])
    write(folder, STREAM, [ROLE | one for one in roles])
    return folder


def test_rows_of_one_job_are_the_roles_of_a_gang(tmp_path: Path) -> None:
    server = {"role": "PS", "inst_num": 1, "gpus_per_inst": 0, "arrival_s_compressed": 50.0, "duration_s": 1000}
    (job,) = open_gangs(recording(tmp_path, {}, server), 3600.0).jobs
    assert (job.name, job.queue, job.priority, job.kind) == ("a", "q", "high", "gang")
    assert (job.arrival_s, job.duration_s, job.workers, job.gpus) == (50.0, 1000.0, 3, 2)
    assert job.roles == (
        Role("0-worker", 2, {"cpu": 6, "memory": "30Gi", GPU: 1}), Role("1-ps", 1, {"cpu": 6, "memory": "30Gi"}),
    )  # fmt: skip


def test_a_job_of_one_instance_is_no_gang_and_lasts_a_second_at_least(tmp_path: Path) -> None:
    (job,) = open_gangs(recording(tmp_path, {"inst_num": 1, "duration_s": -5}), 3600.0).jobs
    assert (job.kind, job.duration_s) == ("single", 1.0)


def test_what_arrives_later_is_left_out_and_the_others_are_in_the_order_of_arrival(tmp_path: Path) -> None:
    times = {"c": 3600.0, "b": 30.0, "a": 40.0}
    stream = open_gangs(
        recording(tmp_path, *({"job": job, "arrival_s_compressed": at} for job, at in times.items())), 3600.0
    )
    assert [job.name for job in stream.jobs] == ["b", "a"]
    assert (stream.arrival.tolist(), stream.gpus.tolist()) == ([30.0, 40.0], [2, 2])


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        (
            {"queue_syn": "r"},
            f"a: expected a queue of {QUEUES} and priority low or normal or high, found 'r' and 'high'",
        ),
        (
            {"priority_syn": "top"},
            f"a: expected a queue of {QUEUES} and priority low or normal or high, found 'q' and 'top'",
        ),
        ({"duration_s": "long"}, "duration_s: expected a number, found 'long'"),
        ({"duration_s": "nan"}, "duration_s: expected a number, found 'nan'"),
        ({"inst_num": "1.5"}, "inst_num: expected a whole number, at least 0, found '1.5'"),
    ],
)
def test_a_row_that_cannot_be_a_role_is_refused(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    with pytest.raises(RecordingRefused) as refusal:
        open_gangs(recording(tmp_path, changed), 3600.0)
    assert str(refusal.value) == f"{STREAM}: {found}"
