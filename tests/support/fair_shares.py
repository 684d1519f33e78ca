"""Cluster files of one node whose devices queues share."""

from typing import Any

GPU = "nvidia.com/gpu"


def queue(name: str, gpus: Any = 0, parent: str | None = None, **more: Any) -> dict[str, Any]:
    deserved = {"cpu": "unlimited", "memory": "unlimited", GPU: gpus}
    return {"name": name, "parent": parent, "deserved": deserved, **more}


def group(name: str, of: str, running: int = 0, waiting: int = 0, gpus: int = 1, **more: Any) -> dict[str, Any]:
    request = {"cpu": 1, "memory": "1G", GPU: gpus}
    tasks = [{"name": f"{name}-r{at}", "request": request, "status": "Running", "node": "n0"} for at in range(running)]
    tasks += [{"name": f"{name}-w{at}", "request": request} for at in range(waiting)]
    return {"name": name, "queue": of, "phase": "Inqueue", "tasks": tasks, **more}


def file(queues: list[dict[str, Any]], groups: list[dict[str, Any]], gpus: int = 8, **policy: Any) -> dict[str, Any]:
    return {
        "version": 1, "now": 100.0, "policy": {"profile": "kai", "actions": ["allocate"], **policy},
        "nodes": [{"name": "n0", "allocatable": {"cpu": 900, "memory": "900G", GPU: gpus, "pods": 900}}],
        "queues": queues, "podgroups": groups,
    }  # fmt: skip
