"""The openb cluster as the recording places it, with gangs that wait: the state of scenario S1.

Pods share devices, so devices are counted in thousandths. A pod with eight whole devices needs all of a node with
eight. That a share must lie on one device is not modelled; it does not matter to gangs that take whole nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from actors.cluster_file.reader import read_cluster
from actors.columns.compile import compile_cluster
from actors.columns.names import Names
from actors.replays.recorded import RecordingRefused, seconds, table, whole
from pipeline.cluster.arrays import Floats, Longs
from pipeline.cluster.snapshot import Snapshot

NODES = "openb/nodes.csv.gz"
PODS = "scenarios/s1_openb_placed_pods.csv.gz"
TOPOLOGY = "scenarios/s1_openb_topology_lingjun_shape.csv.gz"
RECORDED_TIMES = "openb/pods_default.csv.gz"
LEVELS = ("dsw", "psw", "asw")
MILLI_GPU = "nvidia.com/gpu-milli"
QUEUE = "openb"
#: The default of Kubernetes; the recording does not say how many pods a node takes.
_PODS_A_NODE = 110
#: Priority of each quality of service; the column of the recording must agree.
PRIORITIES = {"BE": 0, "Burstable": 1, "LS": 2, "Guaranteed": 3}


@dataclass(frozen=True)
class WaitingGang:
    """A gang that arrives: ``workers`` of ``gpus`` whole devices on nodes of ``model``, within one ``level``."""

    name: str
    workers: int
    level: str
    priority: int
    gpus: int = 8
    model: str = "G2"


@dataclass(frozen=True)
class PlacedCluster:
    """A snapshot with waiting gangs, and what else is known about its rows.

    Attributes
    ----------
    gangs
        Podgroup rows of the gangs, in the order in which they were given.
    qos
        Quality of service of each task; empty for the gangs'.
    gpus: float64[T]
        Devices that each task holds or asks for.
    hours: float64[T]
        How long each task ran in the recording, in hours; NaN if it is not recorded.
    """

    snapshot: Snapshot
    names: Names
    gangs: tuple[int, ...]
    qos: tuple[str, ...]
    gpus: Floats
    hours: Floats


def open_placed(folder: Path, gangs: Sequence[WaitingGang]) -> PlacedCluster:
    """Read the recording and let ``gangs`` wait in it.

    Raises
    ------
    RecordingRefused
        If it cannot be read or contradicts itself.
    """
    pods = table(folder, PODS, ("pod", "node", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos", "priority"))
    cluster = read_cluster(
        {
            "version": 1,
            "nodes": _nodes(folder),
            "topology": {"levels": list(LEVELS), "labels": {level: level for level in LEVELS}},
            "queues": [{"name": QUEUE}],
            "podgroups": [*(_podgroup(pod) for pod in pods), *(_gang(gang) for gang in gangs)],
        }
    )
    snapshot, names = compile_cluster(cluster)
    _check_room(snapshot, names)
    waiting = len(snapshot.tasks) - len(pods)
    device: Longs = snapshot.request[:, snapshot.vocabulary.resources.index(MILLI_GPU)]
    recorded = _recorded_hours(folder)
    return PlacedCluster(
        snapshot,
        names,
        tuple(range(len(pods), len(pods) + len(gangs))),
        (*(pod["qos"] for pod in pods), *([""] * waiting)),
        device / 1000.0,
        np.array([*(recorded.get(pod["pod"], np.nan) for pod in pods), *([np.nan] * waiting)]),
    )


def _nodes(folder: Path) -> list[dict[str, Any]]:
    place = {row["node"]: row for row in table(folder, TOPOLOGY, ("node", *LEVELS))}
    nodes = []
    for row in table(folder, NODES, ("sn", "cpu_milli", "memory_mib", "gpu", "model")):
        if row["sn"] not in place:
            raise RecordingRefused(f"{TOPOLOGY}: expected a place for every node, found none for {row['sn']}")
        labels = {level: place[row["sn"]][level] for level in LEVELS}
        allocatable = {
            "cpu": f"{whole(row, 'cpu_milli', NODES)}m",
            "memory": f"{whole(row, 'memory_mib', NODES)}Mi",
            "pods": _PODS_A_NODE,
            MILLI_GPU: 1000 * whole(row, "gpu", NODES),
        }
        nodes.append({"name": row["sn"], "allocatable": allocatable, "labels": labels | {"model": row["model"]}})
    return nodes


def _podgroup(pod: Mapping[str, str]) -> dict[str, Any]:
    """A running pod as a podgroup with one task."""
    priority = whole(pod, "priority", PODS)
    if PRIORITIES.get(pod["qos"]) != priority:
        raise RecordingRefused(f"{PODS}: {pod['pod']}: expected the priority of qos {pod['qos']!r}, found {priority}")
    request = {
        "cpu": f"{whole(pod, 'cpu_milli', PODS)}m",
        "memory": f"{whole(pod, 'memory_mib', PODS)}Mi",
        MILLI_GPU: whole(pod, "num_gpu", PODS) * whole(pod, "gpu_milli", PODS),
    }
    task = {"name": pod["pod"], "request": request, "status": "Running", "node": pod["node"], "gone_when_evicted": True}
    return {"name": pod["pod"], "queue": QUEUE, "priority": priority, "phase": "Running", "tasks": [task]}


def _gang(gang: WaitingGang) -> dict[str, Any]:
    """The document of a gang. Workers ask for devices only, as the figures of the recording for this event do."""
    task = {
        "name": f"{gang.name}-worker",
        "count": gang.workers,
        "request": {MILLI_GPU: 1000 * gang.gpus},
        "node_selector": {"model": gang.model},
    }
    return {
        "name": gang.name,
        "queue": QUEUE,
        "priority": gang.priority,
        "min_available": gang.workers,
        "topology": {"required": gang.level},
        "tasks": [task],
    }


def _check_room(snapshot: Snapshot, names: Names) -> None:
    over = np.argwhere(snapshot.room.idle < 0)
    if len(over):
        node, resource = over[0].tolist()
        what = snapshot.vocabulary.resources[resource]
        raise RecordingRefused(f"{PODS}: expected pods that fit, found too much {what} on {names.nodes[node]}")


def _recorded_hours(folder: Path) -> dict[str, float]:
    """Hours from start to end of each pod of the recording that has both."""
    if not (folder / RECORDED_TIMES).exists():
        return {}
    begin, end = "scheduled_time", "deletion_time"
    return {
        row["name"]: (seconds(row, end, RECORDED_TIMES) - seconds(row, begin, RECORDED_TIMES)) / 3600.0
        for row in table(folder, RECORDED_TIMES, ("name", end, begin))
        if row[begin] and row[end]
    }
