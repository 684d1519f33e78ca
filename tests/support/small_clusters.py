"""Cluster files in few words, and what cycles decide on them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.support.simulating import simulate

Document = dict[str, Any]
#: What a queue of profile `kai` deserves beside devices, where nothing else is to bind.
REST: Document = {"cpu": "unlimited", "memory": "unlimited"}


def world(
    nodes: Mapping[str, Document],
    queues: Mapping[str, Document],
    podgroups: Iterable[Document],
    *,
    now: float = 1e6,
    **policy: Any,
) -> Document:
    """What each node has, what is said of each queue, and the podgroups; ``policy`` as a cluster file has it."""
    return {
        "version": 1, "now": now, "policy": policy,
        "nodes": [{"name": name, "allocatable": {"pods": 99, **has}} for name, has in nodes.items()],
        "queues": [{"name": name, **said} for name, said in queues.items()],
        "podgroups": list(podgroups),
    }  # fmt: skip


def racks(nodes: Iterable[str], each: int = 1) -> Document:
    """A topology of racks of ``each`` nodes, which lie in their order."""
    names = list(nodes)
    domains = [
        {"name": f"rack-{names[at]}", "level": "rack", "nodes": names[at : at + each]}
        for at in range(0, len(names), each)
    ]
    return {"levels": ["rack"], "domains": domains}


def task(name: str, request: Document, on: str | None = None, **more: Any) -> Document:
    """A task that runs ``on`` a node, or waits."""
    return {"name": name, "request": request, **({"status": "Running", "node": on} if on else {}), **more}


def podgroup(
    name: str,
    requests: Sequence[Document],
    on: str | Sequence[str | None] | None = None,
    of_each: Document | None = None,
    **said: Any,
) -> Document:
    """A podgroup of queue ``q`` with a task for each request; they run ``on`` one node or on one each, or wait."""
    places = [on] * len(requests) if on is None or isinstance(on, str) else on
    asked = enumerate(zip(requests, places, strict=True))
    tasks = [task(f"{name}-{at}", request, place, **(of_each or {})) for at, (request, place) in asked]
    return {"name": name, "queue": "q", "tasks": tasks, **said}


def job(name: str, gpus: Sequence[int], priority: int, on: str | Sequence[str] | None = None, **said: Any) -> Document:
    """A podgroup whose tasks ask for devices; it has run since the first second, or is admitted."""
    age = {"phase": "Running", "started": 1.0} if on else {"phase": "Inqueue"}
    return podgroup(name, [{"gpu": each} for each in gpus], on, **age, priority=priority, **said)


def played(document: Mapping[str, Any], cycles: int = 1) -> list[Document]:
    """What each cycle decides."""
    result = simulate(document, cycles)
    assert result["error"] is None, result["error"]
    decided: list[Document] = result["cycles"]
    return decided


def named(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """The tasks of evictions, nominations or bindings, without the usual namespace."""
    return [one["task"].removeprefix("default/") for one in entries]


def told(cycle: Mapping[str, Any]) -> dict[str, list[str]]:
    """By kind the tasks of which a cycle decides."""
    return {kind: sorted(named(cycle[kind])) for kind in ("evictions", "nominations", "bindings")}
