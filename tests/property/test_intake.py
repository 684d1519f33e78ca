"""The intake over any cluster: order does not matter where it says so, domains are slices, names round-trip."""

import random
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from tests.support.clusters import compiled

LEVELS = ["spine", "block", "rack"]
KEYS = {level: f"net/{level}" for level in LEVELS}


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    """Clusters with up to three levels, by labels or written out, queues in a tree and tasks on some nodes."""
    levels = LEVELS[: draw(st.integers(0, 3))]
    nodes = [f"n{at}" for at in range(draw(st.integers(1, 12)))]
    homes = {node: draw(st.tuples(*(st.none() | st.sampled_from("abc") for _ in levels))) for node in nodes}
    queues = [f"q{at}" for at in range(draw(st.integers(1, 6)))]
    tasks = [
        {"name": f"t{at}", "status": "Running", "node": draw(st.sampled_from(nodes)), "request": {"cpu": at % 3}}
        for at in range(draw(st.integers(0, 6)))
    ]
    by_label = draw(st.booleans())
    labels = {
        node: {KEYS[level]: value for level, value in zip(levels, home, strict=True) if value is not None}
        for node, home in homes.items()
    }
    return {
        "version": 1,
        "nodes": [
            {"name": node, "allocatable": {"cpu": 8}, "labels": labels[node] if by_label else {"zone": node}}
            for node in nodes
        ],
        "topology": {
            "levels": levels,
            **(
                {"labels": {level: KEYS[level] for level in levels}}
                if by_label
                else {"domains": _domains(levels, homes)}
            ),
        },
        "queues": [
            {"name": queue, "created": draw(st.sampled_from([0.0, 1.0])), **_parent(draw, queues[:at])}
            for at, queue in enumerate(queues)
        ],
        "podgroups": [{"name": "g", "queue": draw(st.sampled_from(queues)), "tasks": tasks}],
    }


def _parent(draw: st.DrawFn, earlier: list[str]) -> dict[str, str]:
    parent = draw(st.none() | st.sampled_from(earlier)) if earlier else None
    return {} if parent is None else {"parent": parent}


def _domains(levels: list[str], homes: Mapping[str, tuple[str | None, ...]]) -> list[dict[str, Any]]:
    """The domains that the homes imply, and an empty one a level."""
    made: dict[str, dict[str, Any]] = {
        f"empty-{level}": {"name": f"empty-{level}", "level": level, "nodes": []} for level in levels
    }
    for node, home in homes.items():
        inner, path = None, ""
        for level, value in zip(levels, home, strict=True):
            path += f"/{value or ''}"
            if value is not None:
                parent = {"parent": inner["name"]} if inner else {}
                inner = made.setdefault(path, {"name": path, "level": level, "nodes": [], **parent})
        if inner:
            inner["nodes"].append(node)
    return list(made.values())


def shuffled(document: dict[str, Any], seed: int) -> dict[str, Any]:
    """The same cluster with nodes, domains and queues in another order."""
    generator = random.Random(seed)

    def mixed(items: list[Any]) -> list[Any]:
        return generator.sample(items, len(items))

    topology = dict(document["topology"])
    if "domains" in topology:
        topology["domains"] = mixed([{**domain, "nodes": mixed(domain["nodes"])} for domain in topology["domains"]])
    return {**document, "nodes": mixed(document["nodes"]), "queues": mixed(document["queues"]), "topology": topology}


def same(one: Any, other: Any) -> bool:
    """Whether two tables are equal, column by column."""
    pairs = ((getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    return all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f") if isinstance(a, np.ndarray) else a == b for a, b in pairs
    )


@given(files(), st.integers(0, 2**16))
def test_the_order_of_nodes_domains_and_queues_is_of_no_consequence(document: dict[str, Any], seed: int) -> None:
    (snapshot, names), (again, names_again) = compiled(document), compiled(shuffled(document, seed))
    assert names == names_again
    for table in ("vocabulary", "nodes", "topology", "shapes", "queues", "podgroups", "tasks", "budgets"):
        assert same(getattr(snapshot, table), getattr(again, table)), table


@given(files())
def test_every_domain_is_a_slice_within_its_parent_s_and_siblings_do_not_overlap(document: dict[str, Any]) -> None:
    topology = compiled(document)[0].topology
    assert (topology.start[0], topology.stop[0]) == (0, len(document["nodes"]))
    for row in range(1, len(topology)):
        parent = topology.parent[row]
        assert parent < row
        assert topology.start[parent] <= topology.start[row] <= topology.stop[row] <= topology.stop[parent]
        assert topology.level[parent] < topology.level[row]
    for parent in range(len(topology)):
        children = np.flatnonzero(topology.parent == parent)
        for level in range(topology.levels):
            peers = [row for row in children if topology.level[row] == level]
            peopled = [row for row in peers if topology.start[row] < topology.stop[row]]
            assert peers[: len(peopled)] == peopled, "empty ones come last"
            assert all(topology.stop[one] <= topology.start[after] for one, after in pairwise(peopled))


@given(files())
def test_a_node_lies_in_the_domains_that_were_said_to_hold_it(document: dict[str, Any]) -> None:
    snapshot, names = compiled(document)
    said = _said(document)
    topology = snapshot.topology
    for row, node in enumerate(names.nodes):
        around = [at for at in range(1, len(topology)) if topology.start[at] <= row < topology.stop[at]]
        around.sort(key=lambda at: int(topology.level[at]))
        assert [names.domains[at].rpartition("/")[2] for at in around] == said[node]


def _said(document: dict[str, Any]) -> dict[str, list[str]]:
    """Per node the values of its domains, widest first."""
    topology = document["topology"]
    if "labels" in topology:
        keys = [topology["labels"][level] for level in topology["levels"]]
        return {
            node["name"]: [node["labels"][key] for key in keys if key in node["labels"]] for node in document["nodes"]
        }
    result: dict[str, list[str]] = {node["name"]: [] for node in document["nodes"]}
    for domain in topology["domains"]:
        for node in domain["nodes"]:
            result[node] = [value for value in domain["name"].split("/") if value]
    return result


@given(files())
def test_names_and_rows_lead_to_each_other(document: dict[str, Any]) -> None:
    snapshot, names = compiled(document)
    for table in ("nodes", "queues", "podgroups", "tasks"):
        known = getattr(names, table)
        assert len(set(known)) == len(known) == len(getattr(snapshot, table))
    for known, rows in ((names.nodes, names.node_row), (names.queues, names.queue_row)):
        assert [rows[name] for name in known] == list(range(len(known)))
    assert len(set(names.domains)) == len(names.domains) == len(snapshot.topology)
    _tasks_stand_where_they_were_put(document, snapshot, names)


def _tasks_stand_where_they_were_put(document: dict[str, Any], snapshot: Snapshot, names: Any) -> None:
    for task in document["podgroups"][0]["tasks"]:
        row = names.tasks.index(f"default/{task['name']}")
        assert names.nodes[snapshot.tasks.node[row]] == task["node"]
        assert snapshot.request[row, 0] == task["request"]["cpu"] * 1000


@given(files())
def test_queues_come_after_their_parents(document: dict[str, Any]) -> None:
    snapshot, names = compiled(document)
    parents = {queue["name"]: queue.get("parent") for queue in document["queues"]}
    for row, parent in enumerate(snapshot.queues.parent.tolist()):
        assert parent < row
        assert (names.queues[parent] if parent != NONE else None) == parents[names.queues[row]]
