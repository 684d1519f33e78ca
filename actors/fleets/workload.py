"""The work of a simulated fleet: its initial load, and the gangs that arrive."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from actors.fleets.inventory import PODS_OF_A_NODE, Inventory, PodShape
from pipeline.cluster.arrays import Longs

#: The fleet counts as full after this many draws in a row that fit no node.
_ENOUGH_FAILURES = 3_000
#: What most recorded pods with one GPU also ask for, in millicores and MiB.
_CPU_OF_A_GPU, _MIB_OF_A_GPU = 11_300, 45_000


class LoadLayout:
    """Free room of each node while the load is laid out: best fit that leaves no GPUs beside full processors.

    Attributes
    ----------
    free: int64[N, 4]
        Thousandths of GPUs, millicores, MiB, and pods.
    gpus
        All GPUs of the fleet, in thousandths.
    """

    def __init__(self, inventory: Inventory) -> None:
        nodes = inventory.ordered
        self.free: Longs = np.array(
            [[one.gpus * 1000, one.cpu_milli, one.memory_mib, PODS_OF_A_NODE] for one in nodes], np.int64
        )
        self.gpus = int(self.free[:, 0].sum())

    @property
    def load(self) -> float:
        """Fraction of all GPUs that is taken."""
        return 1.0 - float(self.free[:, 0].sum()) / self.gpus

    def _worse(self, left: Longs) -> tuple[Longs, Longs]:
        """Sort keys of what a node has left, last key first: GPUs beside too few processors or bytes, then GPUs."""
        wanted = np.maximum(
            left[:, 0] - left[:, 1] * 1000 // _CPU_OF_A_GPU, left[:, 0] - left[:, 2] * 1000 // _MIB_OF_A_GPU
        )
        return left[:, 0], np.maximum(wanted, 0)

    def place(self, shape: PodShape, tasks: int) -> list[int] | None:
        """A node for each of some tasks of a shape; None, and nothing is taken, if they do not all fit."""
        request = np.array([shape.gpu_milli, shape.cpu_milli, shape.memory_mib, 1], np.int64)
        taken: list[int] = []
        for _ in range(tasks):
            fits = (self.free >= request).all(axis=1)
            if shape.gpu_milli == 0:  # otherwise processors would run out on nodes with idle GPUs
                fits &= self.free[:, 0] == 0
            fitting = np.flatnonzero(fits)
            if len(fitting) == 0:
                for node in taken:
                    self.free[node] += request
                return None
            best = int(fitting[np.lexsort((fitting, *self._worse(self.free[fitting] - request)))[0]])
            self.free[best] -= request
            taken.append(best)
        return taken


def initial_load(inventory: Inventory, seed: int, now: float) -> list[dict[str, Any]]:
    """Running podgroups, as documents, that load the fleet as its inventory states.

    Shapes are drawn by their recorded frequency; how pods form podgroups is made up.
    """
    draw, said = random.Random(seed), inventory.synthetic.load
    shapes, weights = inventory.pod_shapes, [shape.pods for shape in inventory.pod_shapes]
    widths, often = list(said.widths), list(said.widths.values())
    queues, homes = [queue.name for queue in inventory.synthetic.queues], at_home(inventory)
    floor, failures = LoadLayout(inventory), 0
    groups: list[dict[str, Any]] = []
    while floor.load < said.gpus and failures < _ENOUGH_FAILURES:
        (shape,), (width,) = draw.choices(shapes, weights), draw.choices(widths, often)
        # The fuller the fleet, the more often only a single task still fits.
        nodes = floor.place(shape, width) or floor.place(shape, 1)
        if nodes is None:
            failures += 1
            continue
        failures = 0
        queue = homes[nodes[0]] if draw.random() < said.at_home else draw.choice(queues)
        name = f"base-{len(groups):05d}"
        groups.append(_running_podgroup(inventory, name, shape, nodes, queue, now - draw.uniform(60.0, 36_000.0), draw))
    return groups


def at_home(inventory: Inventory) -> list[str]:
    """The home queue of each node: each spine in turn goes to the queue that lacks most of its load."""
    wired, nodes = inventory.synthetic.topology, inventory.ordered
    size, total = wired.nodes_per_leaf * wired.leaves_per_spine, sum(one.gpus for one in nodes)
    lacks = {queue.name: queue.load * total for queue in inventory.synthetic.queues}
    homes: list[str] = []
    for first in range(0, len(nodes), size):
        spine = nodes[first : first + size]
        queue = max(lacks, key=lambda name: lacks[name])
        lacks[queue] -= sum(one.gpus for one in spine)
        homes += [queue] * len(spine)
    return homes


def _running_podgroup(
    inventory: Inventory, name: str, shape: PodShape, nodes: list[int], queue: str, created: float, draw: random.Random
) -> dict[str, Any]:
    said = inventory.synthetic.load
    elastic, protected = draw.random() < said.elastic, draw.random() < said.protected
    request = inventory.amounts(shape.cpu_milli, shape.memory_mib, shape.gpu_milli)
    return {
        "name": name, "namespace": "openb", "queue": queue, "phase": "Running",
        "priority": said.priority[shape.qos], "preemptible": not protected,
        "min_available": -(-len(nodes) // 2) if elastic else len(nodes), "created": created, "started": created + 1.0,
        "tasks": [
            {"name": f"{name}-{at}", "request": request, "status": "Running", "node": f"node-{node:04d}", "index": at,
             "created": created, "gone_when_evicted": True}
            for at, node in enumerate(nodes)
        ],
    }  # fmt: skip


def arriving(inventory: Inventory, now: float, serial: int) -> dict[str, Any]:
    """The document of the gang that arrives as number ``serial``; kinds take turns."""
    kinds = inventory.synthetic.arrivals.kinds
    kind = kinds[serial % len(kinds)]
    name = f"gang-{serial:03d}"
    request = inventory.amounts(kind.cpu_milli, kind.memory_mib, kind.gpus * 1000)
    podgroup = {
        "name": name, "namespace": "arrivals", "queue": kind.queue, "priority": kind.priority,
        "min_available": kind.tasks, "created": now,
        "tasks": [
            {"name": f"{name}-{at}", "request": request, "status": "Pending", "index": at, "created": now}
            for at in range(kind.tasks)
        ],
    }  # fmt: skip
    if kind.level is not None:
        podgroup["topology"] = {"required": kind.level}
    return podgroup


def runtimes_s(inventory: Inventory, seed: int) -> Iterator[float]:
    """Running times of the arriving gangs, in seconds of the fleet; endless."""
    draw = random.Random(seed)
    while True:
        yield draw.uniform(*inventory.synthetic.arrivals.runs_s)
