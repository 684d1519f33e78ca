"""Clusters whose nodes have cards: two of 8 GB each, as in the third story of "Preempt Action Support Topology"."""

from typing import Any

from tests.support.small_clusters import podgroup, task, world

CARDS = ("gpu-0", "gpu-1")
#: Who runs where: name, part of a card, card, priority. From 100 on nobody is evicted.
Holder = tuple[str, str, str, int]
#: Every way to make room for one task: whole gangs, task by task, and task by task with simulation.
POLICIES: dict[str, dict[str, Any]] = {
    "default": {},
    "volcano": {"profile": "volcano"},
    "by task": {"profile": "volcano", "actions": ["allocate", "preempt"]},
    "simulated": {
        "profile": "volcano", "actions": ["allocate", "preempt"],
        "action_arguments": {"preempt": {"topology_aware": True}},
    },
}  # fmt: skip


def node(name: str = "n0", cards: tuple[str, ...] = CARDS, capacity: str = "8Gi") -> dict[str, Any]:
    return {
        "name": name,
        "allocatable": {"cpu": 32, "pods": 110},
        "cards": [{"name": card, "capacity": capacity} for card in cards],
    }


def holder(name: str, part: str, card: str, priority: int = 0, on: str = "n0") -> dict[str, Any]:
    """A podgroup of one task that runs on a card."""
    held = task(name, {"cpu": 1}, on, card_request=part, card=card)
    return {"name": name, "queue": "q", "priority": priority, "preemptible": priority < 100, "tasks": [held]}


def waiting(name: str, part: str, tasks: int = 1, priority: int = 50, **more: Any) -> dict[str, Any]:
    """A gang that waits, each of its tasks for a part of a card."""
    said = {"priority": priority, "min_available": tasks, **more}
    return podgroup(name, [{"cpu": 1}] * tasks, of_each={"card_request": part}, **said)


def carded(
    holders: list[Holder] | list[dict[str, Any]], *others: dict[str, Any], policy: str = "default", nodes: Any = None
) -> dict[str, Any]:
    """A cluster file: who holds cards, and further podgroups."""
    groups = [*(one if isinstance(one, dict) else holder(*one) for one in holders), *others]
    return world({}, {"q": {}}, groups, now=0.0, **POLICIES[policy]) | {"nodes": nodes or [node()]}
