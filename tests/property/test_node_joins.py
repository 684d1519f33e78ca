"""Nodes put in one by one, moved and taken out, stand where a list of all of them would put them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from actors.ingestion.ingestor import Ingestor
from pipeline.cluster.arrays import NONE
from tests.support.clusters import compiled
from tests.support.told_world import World, drained

LEVELS = ["pod", "block", "rack"]
#: Few names and values, so that nodes move, leave and come again, and domains are emptied and share their values.
NODES = st.tuples(
    st.sampled_from([f"n{at}" for at in range(8)]),
    st.tuples(*(st.none() | st.sampled_from("abc") for _ in LEVELS)),
    st.sampled_from(["cpu", "gpu", "fpga"]),
    st.sampled_from(["", "x", "y"]),
    st.integers(0, 2),
)
STEPS = st.lists(st.tuples(st.booleans(), NODES), min_size=1, max_size=20)


def node(name: str, home: tuple[str | None, ...], resource: str, taint: str, cards: int) -> dict[str, Any]:
    """A node's document."""
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    labels = {level: value for level, value in zip(LEVELS, home, strict=True) if value is not None}
    return {
        "name": name, "allocatable": {resource: 4, "pods": 3}, "labels": labels, "taints": taints,
        "cards": [{"name": f"card-{at}", "capacity": at + 1} for at in range(cards)],
    }  # fmt: skip


def meaning(snapshot: Any, names: Any) -> dict[str, Any]:
    """Everything about nodes and domains, words instead of codes."""
    words, nodes, topology = snapshot.vocabulary, snapshot.nodes, snapshot.topology
    return {
        "nodes": list(names.nodes),
        "domains": list(names.domains),
        "topology": [getattr(topology, column).tolist() for column in ("level", "parent", "start", "stop")],
        "offers": [
            {name: int(amount) for name, amount in zip(words.resources, row, strict=True) if amount}
            for row in nodes.allocatable
        ],
        "labels": [
            {words.label_keys[at]: words.label_values[at][code] for at, code in enumerate(row) if code != NONE}
            for row in nodes.labels
        ],
        "taints": [words.taint_sets[row] for row in nodes.taint_set],
        "cards": [
            list(zip(words.card_sets[row], amounts.tolist(), strict=False))
            for row, amounts in zip(nodes.card_set, nodes.cards, strict=True)
        ],
    }


def begun(topology: Mapping[str, Any], nodes: list[dict[str, Any]]) -> tuple[World, Ingestor, dict[str, Any]]:
    """A fleet that was listed."""
    world = World()
    cluster = {"nodes": nodes, "topology": topology, "queues": [{"name": "q"}]}
    world.list_fleet(cluster)
    return world, world.ingestor(), {one["name"]: one for one in nodes}


def told(world: World, known: dict[str, Any], leaves: bool, document: dict[str, Any]) -> None:
    """A node comes or is another one; or leaves, if it is there."""
    if leaves and document["name"] in known:
        world.tell("node_removed", node=document["name"])
        del known[document["name"]]
    elif not leaves:
        world.tell("node_upserted", **document)
        known[document["name"]] = document


@given(st.booleans(), st.lists(NODES, max_size=6, unique_by=lambda one: one[0]), STEPS)
def test_nodes_stand_where_a_list_of_all_would_put_them(
    together: bool, first: list[Any], steps: list[tuple[bool, Any]]
) -> None:
    topology = {"levels": LEVELS, "labels": {level: level for level in LEVELS}}
    world, ingestor, known = begun(topology, [node(*one) for one in first])
    for leaves, said in steps:
        told(world, known, leaves, node(*said))
        if not together:
            drained(ingestor)
    told(world, known, False, node("last", ("a", "b", "c"), "cpu", "", 0))  # what left is forgotten when one comes
    drained(ingestor)
    cluster = {"version": 1, "nodes": list(known.values()), "topology": topology}
    assert world.letters() == []
    assert meaning(ingestor.snapshot, ingestor.state.names) == meaning(*compiled(cluster))
    rows = [ingestor.state.names.row("nodes", name) for name in ingestor.state.names.nodes]
    assert rows == list(range(len(known)))


@given(STEPS)
def test_together_or_one_by_one_the_columns_are_the_same(steps: list[tuple[bool, Any]]) -> None:
    topology = {"levels": LEVELS, "labels": {level: level for level in LEVELS}}
    world, stepwise, known = begun(topology, [])
    for leaves, said in steps:
        told(world, known, leaves, node(*said))
        drained(stepwise)
    together = world.ingestor("together", entries=1_000)
    one, other = stepwise.snapshot, together.snapshot
    assert (one.revision, one.epoch, one.vocabulary) == (other.revision, other.epoch, other.vocabulary)
    for column in ("allocatable", "schedulable", "labels", "taint_set", "cards", "card_set", "revision"):
        assert np.array_equal(getattr(one.nodes, column), getattr(other.nodes, column)), column
    assert stepwise.state.pack_register() == together.state.pack_register()


@given(STEPS)
def test_where_domains_are_written_out_nodes_come_to_the_one_that_names_them(steps: list[tuple[bool, Any]]) -> None:
    names = [f"n{at}" for at in range(8)]
    topology = {
        "levels": LEVELS[:2],
        "domains": [
            {"name": "b0", "level": "block", "parent": "p", "nodes": names[:2]},
            {"name": "b1", "level": "block", "parent": "p", "nodes": [names[2]]},
            {"name": "p", "level": "pod", "nodes": [names[3]]},
            {"name": "bare", "level": "block", "nodes": []},
        ],
    }
    begin = [node(name, (None, None, None), "cpu", "", 0) for name in names]
    world, ingestor, known = begun(topology, begin)
    for leaves, said in steps:
        told(world, known, leaves, node(*said))
        drained(ingestor)
    told(world, known, False, node("last", (None, None, None), "cpu", "", 0))
    there = [{**domain, "nodes": [name for name in domain["nodes"] if name in known]} for domain in topology["domains"]]  # type: ignore[union-attr]
    cluster = {"version": 1, "nodes": list(known.values()), "topology": {**topology, "domains": there}}
    assert meaning(drained(ingestor).snapshot, ingestor.state.names) == meaning(*compiled(cluster))
