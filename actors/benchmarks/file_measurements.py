"""Benchmarks of commands on files: a cluster file becomes columns, a simulation, what a command imports."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from actors.benchmarks.figures import FEW, Figure, timed
from actors.cluster_file.plain_data import read_mapping
from actors.cluster_file.reader import read_cluster
from actors.columns.compile import compile_cluster
from actors.documents.collector import collector_paused
from actors.fleets.generated import NOW

#: Nodes of a rack and racks of a block; sizes of gangs, one after the other; devices of each of their tasks.
_RACK, _BLOCK = 32, 16
_SIZES, _DEVICES = (1, 16, 2, 64, 4, 8, 1, 32, 2, 4), (8, 4, 8)
_WANTED = 64


def fleet_file(nodes: int) -> dict[str, Any]:
    """A cluster file: nodes of 8 devices that running gangs hold, and a gang of 64 whole nodes that may preempt."""
    racks = range(-(-nodes // _RACK))
    domains: list[dict[str, Any]] = [
        {"name": f"block-{block}", "level": "block"} for block in range(-(-len(racks) // _BLOCK))
    ]
    domains += [
        {"name": f"rack-{rack}", "level": "rack", "parent": f"block-{rack // _BLOCK}",
         "nodes": [_node(at) for at in range(rack * _RACK, min((rack + 1) * _RACK, nodes))]}
        for rack in racks
    ]  # fmt: skip
    return {
        "version": 1, "now": NOW, "policy": {"profile": "default", "actions": ["preempt"]},
        "nodes": [
            {"name": _node(at), "allocatable": {"cpu": 128, "memory": "1024Gi", "nvidia.com/gpu": 8, "pods": 110}}
            for at in range(nodes)
        ],
        "topology": {"levels": ["block", "rack"], "domains": domains},
        "queues": [{"name": "q", "deserved": {"nvidia.com/gpu": 8 * nodes}}],
        "podgroups": [*_running(nodes), _gang("wanted", 100, [{"count": _WANTED, **_asks(8, NOW - 60.0)}], NOW - 60.0)],
    }  # fmt: skip


def _running(nodes: int) -> list[dict[str, Any]]:
    """Gangs whose tasks fill the nodes one after the other."""
    gangs: list[dict[str, Any]] = []
    free, sizes, devices = [_node(at) for at in range(nodes - 1, -1, -1)], cycle(_SIZES), cycle(_DEVICES)
    while free:
        size, each, began = next(sizes), next(devices), NOW - 3600.0 - len(gangs) % 977
        places = [node for node in reversed(free[-size:]) for _ in range(8 // each)]
        del free[-size:]
        tasks = [{"status": "Running", "node": node, **_asks(each, began)} for node in places]
        gangs.append({**_gang(f"gang-{len(gangs)}", 10 * (1 + len(gangs) % 3), tasks, began), "started": began})
    return gangs


def _node(at: int) -> str:
    return f"node-{at:06d}"


def _asks(devices: int, created: float) -> dict[str, Any]:
    request = {"cpu": 8 * devices, "memory": f"{64 * devices}Gi", "nvidia.com/gpu": devices}
    return {"request": request, "created": created}


def _gang(name: str, priority: int, tasks: list[dict[str, Any]], created: float) -> dict[str, Any]:
    named = [{"name": f"{name}-{at}", **task} for at, task in enumerate(tasks)]
    least = sum(task.get("count", 1) for task in tasks)
    return {
        "name": name, "queue": "q", "priority": priority, "min_available": least, "created": created, "tasks": named,
    }  # fmt: skip


def _load_100k() -> Figure:
    """From the text of a cluster file of 100,000 nodes to columns: read, checked, compiled, in a process that runs."""
    text = msgspec.json.encode(fleet_file(100_000)).decode()
    rows: dict[str, int] = {}

    def load() -> None:
        with collector_paused():
            snapshot, _ = compile_cluster(read_cluster(read_mapping(text, "fleet")))
        rows.update(nodes=len(snapshot.nodes), tasks=len(snapshot.tasks))

    return replace(timed(load, FEW), also={**rows, "bytes": len(text)})


def _simulate_10k() -> Figure:
    """``clearway simulate`` of one cycle on 10,000 nodes as a command, from start to exit, compiled code cached."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "fleet.json"
        file.write_bytes(msgspec.json.encode(fleet_file(10_000)))
        return timed(lambda: _python("-m", "actors", "simulate", str(file)), FEW, nodes=10_000)


def _import() -> Figure:
    """The program from start to exit with nothing to do (``--help``); ``simulate_ms``: the imports of a simulation."""
    figure = timed(lambda: _python("-m", "actors", "--help"), FEW)
    whole = timed(lambda: _python("-c", "import gc; gc.disable(); import actors.cli.simulate; gc.freeze()"), FEW)
    return replace(figure, also={"simulate_ms": whole.p50_ms or 0.0})


def _python(*arguments: str) -> None:
    folder = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL)


FILE_MEASUREMENTS: dict[str, Callable[[], Figure]] = {
    "load_100k": _load_100k,
    "simulate_10k": _simulate_10k,
    "import": _import,
}
