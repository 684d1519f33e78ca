"""News that is cut into turns in another way: tasks have the same rows, and the same is decided and explained."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.columns.decision_message import decision
from actors.columns.explanation_message import explained, unplaced
from actors.columns.name_directory import Additions, Directory
from actors.configuration.profiles import load_profile
from actors.ingestion.ingestor import Ingestor
from pipeline.cluster.arrays import NONE
from pipeline.cycle import cycle
from tests.support.depth import sampled
from tests.support.strategies import GPU, documents
from tests.support.told_world import World

Said = tuple[str, Mapping[str, Any]]
_BASE = ("version", "nodes", "topology", "queues", "disruption_budgets")


def news(document: Mapping[str, Any], draw: random.Random) -> list[Said]:
    """The podgroups of a file, told in turns: each is described with some of its tasks, and the others follow."""
    left = [_described(podgroup, draw) for podgroup in document["podgroups"]]
    nodes = [node["name"] for node in document["nodes"]]
    known, said = list[str](), list[Said]()
    while left:
        turn = draw.choice(left)
        kind, body = turn.pop(0)
        left = [one for one in left if one]
        tasks = [body["task"]] if kind == "task_upserted" else body["tasks"]
        namespace = body["podgroup"].split("/")[0] if kind == "task_upserted" else body["namespace"]
        known += [f"{namespace}/{task['name']}" for task in tasks]
        said.append((kind, body))
        if known and draw.random() < 0.5:
            said.append(_happens(draw.choice(known), nodes, draw))
    return said


def _described(podgroup: Mapping[str, Any], draw: random.Random) -> list[Said]:
    tasks = podgroup["tasks"]
    at_once = draw.randint(0, len(tasks))
    full_name = f"{podgroup['namespace']}/{podgroup['name']}"
    single: list[Said] = [("task_upserted", {"podgroup": full_name, "task": task}) for task in tasks[at_once:]]
    return [("podgroup_upserted", {**podgroup, "tasks": tasks[:at_once]}), *single]


def _happens(task: str, nodes: list[str], draw: random.Random) -> Said:
    """Something else: news of a task, of a node, a queue or a budget."""
    amount = draw.randint(0, 4)
    some: list[Said] = [
        ("task_started", {"task": task, "node": draw.choice(nodes), "incarnation": amount // 3}),
        ("task_terminating", {"task": task, "incarnation": 0}),
        ("task_ended", {"task": task, "outcome": "Evicted", "incarnation": 0, "replaced": amount > 1}),
        ("node_upserted", {"name": draw.choice([*nodes, "n00"]), "allocatable": {"cpu": 8, GPU: amount, "pods": 20}}),
        ("queue_upserted", {"name": draw.choice("ab"), "deserved": {GPU: amount}}),
        ("budget_upserted", {"name": "b", "match_labels": {"app": "x"}, "disruptions_allowed": amount}),
    ]
    return draw.choice(some)


def told(document: Mapping[str, Any], draw: random.Random) -> World:
    world = World()
    world.now = 10_000.0
    world.list_fleet({key: document[key] for key in _BASE})
    for kind, body in news(document, draw):
        world.now += 1.0
        world.tell(kind, **body)
    return world


def naming(ingestor: Ingestor) -> Directory:
    names, made = ingestor.state.names, Directory()
    some = (tuple(one) for one in (names.podgroups, names.nodes, names.queues, names.domains))
    podgroups, nodes, queues, domains = some
    budgets = tuple(sorted(ingestor.state.documents.names("disruption_budgets")))
    made.take(
        Additions(ingestor.snapshot.epoch, NONE, 0, tuple(names.tasks), 0, podgroups, nodes, queues, domains, budgets)
    )
    return made


def decided(ingestor: Ingestor, profile: str, now: float) -> tuple[list[Any], list[Any]]:
    """The decisions of a cycle, and what it explains, in names and in order."""
    snapshot, names = ingestor.snapshot, naming(ingestor)
    done = cycle(snapshot, load_profile(profile), now)
    plans = [decision("plan", 1, plan, plan.statement, snapshot, names, 0.0).model_dump() for plan in done.plans]
    whys = [explained(why, names) for why in done.explanations]
    return plans, [*whys, *(unplaced(one.action, one.why, names) for one in done.unplaced)]


@pytest.mark.parametrize("profile", ["default", "volcano", "kai", "koordinator"])
def test_how_news_is_cut_into_turns_decides_nothing(profile: str) -> None:
    @given(documents(profile=profile), st.integers(0, 10_000))
    @settings(max_examples=sampled(8, least=3))
    def check(document: dict[str, Any], seed: int) -> None:
        draw = random.Random(seed)
        world = told(document, draw)
        one_by_one, *others = (world.ingestor(str(size), entries=size) for size in (1, draw.randint(2, 9), 1_000))
        expected = decided(one_by_one, profile, world.now)
        for other in others:
            assert other.state.names.tasks == one_by_one.state.names.tasks
            assert repr(decided(other, profile, world.now)) == repr(expected)

    check()
