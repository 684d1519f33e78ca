"""Benchmarks of cycles in which hundreds of small podgroups starve: of one kind, of many, or with a launcher each."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from actors.benchmarks.figures import FEW, Figure, digits
from actors.benchmarks.peers import Opened, decided, opened

#: Nodes of eight devices, all of them in use by a task each; one podgroup waits for each.
_NODES, _DEVICES = 100, 8
#: In how many ways the memory differs that podgroups of many kinds ask for.
_KINDS = 20


def _podgroup(name: str, queue: str, tasks: list[dict[str, Any]], **said: Any) -> dict[str, Any]:
    return {"name": name, "queue": queue, "min_available": len(tasks), "tasks": tasks, **said}


def _request(device: bool, kind: int) -> dict[str, Any]:
    return {"cpu": 1, "memory": f"{1 + kind}Gi"} | ({"nvidia.com/gpu": 1} if device else {})


def starving(profile: str, *, kinds: int, launcher: bool = False) -> Opened:
    """A full fleet of one queue, from which another one reclaims; what waits differs in memory in so many ways."""
    nodes = [
        {"name": f"n{at}", "allocatable": {"pods": 64, "cpu": 64, "memory": "512Gi", "nvidia.com/gpu": _DEVICES}}
        for at in range(_NODES)
    ]
    every = range(_NODES * _DEVICES)
    runs = [
        _podgroup(f"low{at}", "a", [{"name": f"low{at}-0", "node": f"n{at % _NODES}", "status": "Running"}])
        for at in every
    ]
    for one in runs:
        one["phase"], one["tasks"][0]["request"] = "Running", _request(True, 0)
    waits = [
        _podgroup(
            f"high{at}",
            "b",
            [{"name": f"high{at}-{n}", "request": _request(n == 0, at * 7 % kinds)} for n in range(1 + launcher)],
            phase="Inqueue",
        )
        for at in every
    ]
    queues = [{"name": name, "deserved": {"nvidia.com/gpu": part * len(every)}} for name, part in (("a", 0), ("b", 1))]
    said = {"version": 1, "now": 1_000_000.0, "nodes": nodes, "queues": queues, "podgroups": [*runs, *waits]}
    return opened(said, {"profile": profile, "actions": ["reclaim"]})


def _waiting(profile: str) -> Figure:
    """A cycle over 800 podgroups of many kinds, with its events; microseconds for each, and for each of the others."""
    cases = {
        "one_kind": starving(profile, kinds=1),
        "kinds": starving(profile, kinds=_KINDS),
        "launcher": starving(profile, kinds=1, launcher=True),
    }
    spent, plans = dict[str, list[float]](), dict[str, int]()
    for name, case in cases.items():
        done, spent[name] = decided(case, time.perf_counter, FEW)
        plans[f"{name}_plans"] = len(done.plans)
    each = {f"{name}_each_us": digits(np.median(some) * 1e3 / (_NODES * _DEVICES)) for name, some in spent.items()}
    mine = spent["kinds"]
    return Figure(digits(np.median(mine)), digits(np.percentile(mine, 99)), len(mine), {**each, **plans})


WAITING_MEASUREMENTS: dict[str, Callable[[], Figure]] = {
    f"waiting_{profile}_800": partial(_waiting, profile) for profile in ("default", "kai")
}
