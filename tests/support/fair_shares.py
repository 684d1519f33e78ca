"""Cluster files of one node whose devices queues share."""

from typing import Any

from tests.support.small_clusters import REST, task, world

GPU = "nvidia.com/gpu"


def queue(name: str, gpus: Any = 0, parent: str | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "parent": parent, "deserved": {**REST, GPU: gpus}, **more}


def group(name: str, of: str, running: int = 0, waiting: int = 0, gpus: int = 1, **more: Any) -> dict[str, Any]:
    request = {"cpu": 1, "memory": "1G", GPU: gpus}
    tasks = [task(f"{name}-r{at}", request, "n0") for at in range(running)]
    tasks += [task(f"{name}-w{at}", request) for at in range(waiting)]
    return {"name": name, "queue": of, "phase": "Inqueue", "tasks": tasks, **more}


def file(queues: list[dict[str, Any]], groups: list[dict[str, Any]], gpus: int = 8, **policy: Any) -> dict[str, Any]:
    said = {"profile": "kai", "actions": ["allocate"], **policy}
    return world({"n0": {"cpu": 900, "memory": "900G", GPU: gpus, "pods": 900}}, {}, groups, now=100.0, **said) | {
        "queues": queues
    }
