"""Clusters of blocks and spines for gathering, as cluster files: what a case states is what its test reads."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from pipeline.solvers.gather.tree import Tree
from tests.support.simulating import simulate

#: By spine, by block: the nodes. Two spines of two blocks of two nodes, as in "Network-Topology Aware".
TWO_BY_TWO = {"s1": {"b1": ["n1", "n2"], "b2": ["n3", "n4"]}, "s2": {"b3": ["n5", "n6"], "b4": ["n7", "n8"]}}
Spines = Mapping[str, Mapping[str, Sequence[str]]]


@st.composite
def spines(
    draw: st.DrawFn, most: int = 3, cores: tuple[int, int] = (1, 4)
) -> tuple[dict[str, dict[str, list[str]]], dict[str, int]]:
    """Up to ``most`` spines of up to three blocks of up to three nodes, and how many ``cores`` each node has."""
    tree: dict[str, dict[str, list[str]]] = {}
    cpus: dict[str, int] = {}
    for spine in range(draw(st.integers(1, most))):
        tree[f"s{spine}"] = {}
        for block in range(draw(st.integers(1, 3))):
            nodes = [f"n{spine}{block}{at}" for at in range(draw(st.integers(1, 3)))]
            tree[f"s{spine}"][f"b{spine}{block}"] = nodes
            cpus |= {node: draw(st.integers(*cores)) for node in nodes}
    return tree, cpus


def cluster_file(
    spines: Spines, cpus: Mapping[str, int] | int, podgroups: Sequence[Mapping[str, Any]], **more: Any
) -> dict[str, Any]:
    """A cluster file of profile ``koordinator``; ``cpus`` are what each node has."""
    names = [node for blocks in spines.values() for nodes in blocks.values() for node in nodes]
    domains: list[dict[str, Any]] = [{"name": spine, "level": "spine"} for spine in spines]
    domains += [
        {"name": block, "level": "block", "parent": spine, "nodes": list(nodes)}
        for spine, blocks in spines.items()
        for block, nodes in blocks.items()
    ]
    return {
        "version": 1,
        "now": 1000.0,
        "policy": {"profile": "koordinator", "actions": ["allocate", "preempt", "reclaim"]},
        "nodes": [
            {"name": name, "allocatable": {"cpu": cpus if isinstance(cpus, int) else cpus[name], "pods": 110}}
            for name in names
        ],
        "topology": {"levels": ["spine", "block"], "domains": domains},
        "queues": [{"name": "default"}],
        "podgroups": list(podgroups),
        **more,
    }


def running(name: str, on: Sequence[str], cpu: int, *, priority: int = 1, **more: Any) -> dict[str, Any]:
    """A podgroup that runs one task on each of some nodes, rigid unless it says otherwise."""
    tasks = [
        {"name": f"{name}-{at}", "request": {"cpu": cpu}, "status": "Running", "node": node}
        for at, node in enumerate(on)
    ]
    said = {"queue": "default", "min_available": len(on), "phase": "Running", "started": 1.0, **more}
    return {"name": name, "priority": priority, "tasks": tasks, **said}


def waiting(name: str, cpus: Sequence[int], *, priority: int = 1000, **more: Any) -> dict[str, Any]:
    """A podgroup of which one task of each size waits, in rank order."""
    tasks = [{"name": f"{name}-{at}", "index": at, "request": {"cpu": cpu}} for at, cpu in enumerate(cpus)]
    return {"name": name, "queue": "default", "priority": priority, "min_available": len(cpus), "phase": "Inqueue",
            "tasks": tasks, **more}  # fmt: skip


class Outcome:
    """What one cycle decided."""

    def __init__(self, document: Mapping[str, Any], cycles: int = 1) -> None:
        result = simulate(document, cycles)
        assert result["error"] is None, result["error"]
        self.cycles = result["cycles"]
        self.fair_share = result["fair_share"]

    @property
    def evicted(self) -> list[str]:
        return sorted(_plain(one["task"]) for cycle in self.cycles for one in cycle["evictions"])

    @property
    def nominated(self) -> dict[str, str]:
        return {_plain(one["task"]): one["node"] for one in self.cycles[-1]["nominations"]}

    @property
    def bound(self) -> dict[str, str]:
        return {_plain(one["task"]): one["node"] for cycle in self.cycles for one in cycle["bindings"]}


def children_of(tree: Tree, vertex: int) -> list[int]:
    return tree.child[tree.child_start[vertex] : tree.child_start[vertex + 1]].tolist()


def _plain(task: str) -> str:
    return task.partition("/")[2]
