"""News that comes again, late, or after it was refused."""

from typing import Any

import pytest

from actors.ingestion.ingestor import Ingestor
from pipeline.cluster.tables import GONE, PENDING, RUNNING
from tests.support.told_world import World, drained, state_of, task


def test_a_queue_that_was_refused_is_taken_when_it_is_said_again(world: World, ingestor: Ingestor) -> None:
    child = world.outgoing("queue_upserted", {"name": "child", "parent": "late"})
    world.say(child)
    assert "child" not in drained(ingestor).state.names.queues
    world.tell("queue_upserted", name="late")
    world.say(child)
    assert "child" in drained(ingestor).state.names.queues
    assert len(world.letters()) == 1


def test_a_queue_before_its_parent_is_refused_however_they_are_read(world: World) -> None:
    at_once, one_by_one = world.ingestor("at once"), world.ingestor("one by one")
    for name, parent in (("child", "late"), ("late", "ml"), ("ml", "dev"), ("dev", "late"), ("other", "late")):
        world.tell("queue_upserted", name=name, parent=parent)
        drained(one_by_one)
    assert drained(at_once).state.names.queues == one_by_one.state.names.queues == ["dev", "ml", "late", "other"]
    assert at_once.snapshot.revision == one_by_one.snapshot.revision
    assert len(world.letters()) == 2


@pytest.mark.parametrize(
    ("kind", "body"),
    [("budget_removed", {"budget": "default/b"}), ("node_removed", {"node": "n0"}), ("queue_removed", {"queue": "q"}),
     ("podgroup_removed", {"podgroup": "default/web"})],
)  # fmt: skip
def test_a_removal_that_comes_twice_is_no_dead_letter(
    world: World, ingestor: Ingestor, kind: str, body: dict[str, str]
) -> None:
    world.tell("queue_upserted", name="q")
    removal = world.outgoing(kind, body)
    for _ in range(2):
        world.say(removal)
        drained(ingestor)
    assert world.letters() == []


def test_news_of_a_task_that_comes_again_after_its_node_has_left_is_no_dead_letter(
    world: World, ingestor: Ingestor
) -> None:
    started = world.outgoing("task_started", {"task": "default/train-0", "node": "n0"})
    described = world.outgoing(
        "task_upserted", {"podgroup": "default/train", "task": {"name": "train-1", "status": "Running", "node": "n0"}}
    )
    world.say(started, described)
    drained(ingestor)
    world.tell("node_removed", node="n0")
    world.say(started, described)
    drained(ingestor)
    world.tell("podgroup_removed", podgroup="default/train")
    world.say(started, described)
    drained(ingestor)
    assert world.letters() == []
    world.tell("task_started", task="default/train-0", node="n0")
    drained(ingestor)
    assert world.letters() == ["body.node: expected the name of a node that is there, found 'n0'"]


def test_a_podgroup_is_broken_since_its_own_node_has_left_however_they_are_read(world: World) -> None:
    at_once, one_by_one = world.ingestor("at once"), world.ingestor("one by one")
    for at in range(2):
        world.tell("task_started", task=f"default/train-{at}", node=f"n{at}", at=5.0)
    for node in ("n1", "n3"):
        world.now += 7.0
        world.tell("node_removed", node=node)
        drained(one_by_one)
    row = one_by_one.state.names.row("podgroups", "default/train")
    assert one_by_one.snapshot.podgroups.stale_since[row] == world.now - 7.0
    assert drained(at_once).snapshot.podgroups.stale_since[row] == world.now - 7.0


def test_a_podgroup_is_whole_since_its_own_description_said_so_however_they_are_read(world: World) -> None:
    at_once, one_by_one = world.ingestor("at once"), world.ingestor("one by one")
    world.tell("task_started", task="default/train-0", node="n0", at=5.0)
    for name, body in (("train", {"queue": "ml", "min_available": 1}), ("other", {"queue": "ml"})):
        world.now += 7.0
        world.tell("podgroup_upserted", name=name, **body)
        drained(one_by_one)
    row = one_by_one.state.names.row("podgroups", "default/train")
    assert one_by_one.snapshot.podgroups.started[row] == world.now - 7.0
    assert drained(at_once).snapshot.podgroups.started[row] == world.now - 7.0


def test_old_news_is_no_dead_letter_in_the_turn_that_brings_the_newer(world: World, ingestor: Ingestor) -> None:
    newer = world.outgoing("task_started", {"task": "default/train-0", "node": "n0"}, 9)
    world.say(newer, world.outgoing("task_started", {"task": "default/train-0", "node": "gone"}, 8))
    drained(ingestor)
    assert world.letters() == []


@pytest.mark.parametrize("one_turn", [False, True])
@pytest.mark.parametrize(
    ("kind", "body"),
    [("podgroup_upserted", {"name": "web", "queue": "dev", "tasks": [{"name": "web-0", "request": {"cpu": 2}}]}),
     ("task_upserted", {"podgroup": "default/web", "task": {"name": "web-0", "request": {"cpu": 2}}})],
)  # fmt: skip
def test_a_task_whose_node_was_lost_waits_once_it_is_described_again(
    world: World, ingestor: Ingestor, kind: str, body: dict[str, Any], one_turn: bool
) -> None:
    world.tell("node_removed", node="n3")
    if not one_turn:
        assert task(drained(ingestor), "web-0")["status"] == GONE
    world.tell(kind, **body)
    assert task(drained(ingestor), "web-0") == {"status": PENDING, "node": None, "nominated": None, "life": 1}
    world.tell("task_started", task="default/web-0", node="n1", incarnation=1)
    assert task(drained(ingestor), "web-0") == {"status": RUNNING, "node": "n1", "nominated": None, "life": 1}
    assert world.letters() == []


def test_a_task_whose_node_was_lost_runs_once_it_is_said_to(world: World, ingestor: Ingestor) -> None:
    world.tell("node_removed", node="n3")
    drained(ingestor)
    world.tell("task_upserted", podgroup="default/web", task={"name": "web-0", "status": "Running", "node": "n1"})
    assert task(drained(ingestor), "web-0")["node"] == "n1"
    assert world.letters() == []


def test_tasks_have_the_same_rows_however_they_are_read(world: World) -> None:
    at_once, one_by_one = world.ingestor("at once"), world.ingestor("one by one")
    for name, tasks in (("a", ["a-0"]), ("b", ["b-0"])):
        world.tell(
            "podgroup_upserted", name=name, queue="ml", tasks=[{"name": one, "request": {"cpu": 1}} for one in tasks]
        )
        drained(one_by_one)
    for at, name in enumerate("aba"):
        described = {"name": f"{name}-late-{at}", "request": {"cpu": at + 2}, "labels": {"at": str(at)}}
        world.tell("task_upserted", podgroup=f"default/{name}", task=described)
        drained(one_by_one)
    assert drained(at_once).state.names.tasks == one_by_one.state.names.tasks
    assert state_of(at_once) == state_of(one_by_one)
