"""The reader of scenario S1, on two nodes: what it makes of a recording, and which contradictions it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.replays.openb import NODES, PODS, RECORDED_TIMES, TOPOLOGY, WaitingGang, open_placed
from actors.replays.recorded import RecordingRefused
from pipeline.cluster.tables import PENDING, RUNNING
from tests.support.recordings import write

NODE = {"sn": "n0", "cpu_milli": 8000, "memory_mib": 4096, "gpu": 2, "model": "G2"}
PLACE = {"node": "n0", "dsw": "D", "psw": "P", "asw": "P/S"}
POD = {
    "pod": "p", "node": "n0", "cpu_milli": 1000, "memory_mib": 1024, "num_gpu": 1, "gpu_milli": 500, "qos": "LS",
    "priority": 2,
}  # fmt: skip
TIME = {"name": "p", "scheduled_time": "3600", "deletion_time": "9000"}


def recording(folder: Path, **changed: dict[str, Any]) -> Path:
    """A pod on the first of two nodes; ``changed`` has other values of its columns."""
    write(folder, NODES, [NODE | changed.get("node", {}), NODE | {"sn": "n1"}])
    write(folder, TOPOLOGY, [PLACE | changed.get("place", {}), PLACE | {"node": "n1"}])
    write(folder, PODS, [POD | changed.get("pod", {})])
    write(folder, RECORDED_TIMES, [TIME | changed.get("time", {})])
    return folder


def test_pods_run_where_they_were_placed_and_gangs_wait(tmp_path: Path) -> None:
    placed = open_placed(recording(tmp_path), [WaitingGang("gang", 2, "asw", 3, gpus=1)])
    assert placed.names.tasks == ("default/p", "default/gang-worker-0", "default/gang-worker-1")
    assert placed.snapshot.tasks.status.tolist() == [RUNNING, PENDING, PENDING]
    assert (placed.gangs, placed.qos) == ((1,), ("LS", "", ""))
    assert placed.gpus.tolist() == [0.5, 1.0, 1.0]
    assert np.array_equal(placed.hours, [1.5, np.nan, np.nan], equal_nan=True)


@pytest.mark.parametrize("lacking", [{"deletion_time": ""}, {"scheduled_time": ""}, {"name": "other"}])
def test_hours_that_are_not_recorded_are_not_known(tmp_path: Path, lacking: dict[str, str]) -> None:
    placed = open_placed(recording(tmp_path, time=lacking), [])
    assert np.isnan(placed.hours).all()


def test_a_recording_without_times_is_read_too(tmp_path: Path) -> None:
    (recording(tmp_path) / RECORDED_TIMES).unlink()
    assert np.isnan(open_placed(tmp_path, []).hours).all()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"place": {"node": "else"}}, f"{TOPOLOGY}: expected a place for every node, found none for n0"),
        ({"pod": {"qos": "BE"}}, f"{PODS}: p: expected the priority of qos 'BE', found 2"),
        ({"pod": {"num_gpu": 5}}, f"{PODS}: expected pods that fit, found too much nvidia.com/gpu-milli on n0"),
        ({"node": {"gpu": "two"}}, f"{NODES}: gpu: expected a whole number, at least 0, found 'two'"),
        (
            {"time": {"deletion_time": "late"}},
            f"{RECORDED_TIMES}: deletion_time: expected a number, at least 0, found 'late'",
        ),
    ],
)
def test_a_recording_that_contradicts_itself_is_refused_with_the_place(
    tmp_path: Path, changed: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(RecordingRefused) as refusal:
        open_placed(recording(tmp_path, **changed), [])
    assert str(refusal.value) == sentence
