"""A full fleet beside which hundreds of small podgroups starve.

They are of one kind or of many, have a launcher each, can do without some tasks, or are all refused.
"""

from typing import Any

#: Devices of a node, each in use by a task of its own; a podgroup waits for each.
DEVICES = 8


def _podgroup(name: str, queue: str, tasks: list[dict[str, Any]], phase: str, spare: int = 0) -> dict[str, Any]:
    return {"name": name, "queue": queue, "min_available": len(tasks) - spare, "phase": phase, "tasks": tasks}


def _request(device: bool, kind: int) -> dict[str, Any]:
    return {"cpu": 1, "memory": f"{1 + kind}Gi"} | ({"nvidia.com/gpu": 1} if device else {})


def starving(
    nodes: int, *, kinds: int, launcher: bool = False, spare: int = 0, refused: bool = False
) -> dict[str, Any]:
    """A cluster file: one queue holds all devices, and another one deserves them.

    What waits asks for one of ``kinds`` amounts of memory, in turns; with a ``launcher``, for a task more, without a
    device; it can do without ``spare`` tasks more. If all are ``refused``, what runs is gangs of as many tasks as a
    node has devices, and their queue can lose half of one.
    """
    has = {"pods": 64, "cpu": 64, "memory": "512Gi", "nvidia.com/gpu": DEVICES}
    every = range(nodes * DEVICES)
    low = [
        {"name": f"low{at}-0", "request": _request(True, 0), "node": f"n{at % nodes}", "status": "Running"}
        for at in every
    ]
    together = DEVICES if refused else 1
    runs = [_podgroup(f"low{at}", "a", low[at : at + together], "Running") for at in every[::together]]
    waits = list[dict[str, Any]]()
    for at in every:
        asks = [_request(device, at * 7 % kinds) for device in [*[True] * (1 + spare), *[False] * launcher]]
        tasks = [{"name": f"high{at}-{n}", "request": one} for n, one in enumerate(asks)]
        waits.append(_podgroup(f"high{at}", "b", tasks, "Inqueue", spare))
    shares = {"a": len(every) - DEVICES // 2 if refused else 0, "b": len(every)}
    return {
        "version": 1,
        "now": 1_000_000.0,
        "nodes": [{"name": f"n{at}", "allocatable": has} for at in range(nodes)],
        "queues": [{"name": one, "deserved": {"nvidia.com/gpu": part}} for one, part in shares.items()],
        "podgroups": [*runs, *waits],
    }
