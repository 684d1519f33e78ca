"""The history of podgroups that are first heard of when some of their tasks run already."""

from typing import Any

import numpy as np

from actors.ingestion.ingestor import Ingestor
from pipeline.cluster.rules.match_policy import starts_freely
from pipeline.cluster.tables import PHASE_NAMES
from tests.support.told_world import CLUSTER, World, drained


def history(ingestor: Ingestor, name: str) -> tuple[str, float | None, float | None]:
    """Phase, since when it was whole, and since when it is stale."""
    row, groups = ingestor.state.names.row("podgroups", f"default/{name}"), ingestor.snapshot.podgroups
    since = [None if np.isnan(at) else float(at) for at in (groups.started[row], groups.stale_since[row])]
    return PHASE_NAMES[groups.phase[row]], *since


def running(name: str, nodes: list[str], **more: Any) -> dict[str, Any]:
    tasks = [{"name": f"{name}-{at}", "status": "Running", "node": node} for at, node in enumerate(nodes)]
    return {"name": name, "queue": "ml", "min_available": 2, "tasks": tasks, **more}


def test_a_podgroup_that_runs_when_it_is_first_heard_of_is_whole_at_once(world: World, ingestor: Ingestor) -> None:
    world.tell("podgroup_upserted", **running("x", ["n0", "n1"]))
    world.tell("podgroup_upserted", **running("y", ["n0", "n1"], started=7.0))
    world.tell("podgroup_upserted", **running("half", ["n2"]))
    drained(ingestor)
    assert history(ingestor, "x") == ("Running", world.now, None)
    assert history(ingestor, "y") == ("Running", 7.0, None)
    assert history(ingestor, "half") == ("Inqueue", None, world.now)


def test_a_task_that_runs_when_it_is_first_heard_of_completes_its_podgroup(world: World, ingestor: Ingestor) -> None:
    world.tell("podgroup_upserted", **running("x", ["n0"]))
    world.now += 3.0
    world.tell("task_upserted", podgroup="default/x", task={"name": "x-1", "status": "Running", "node": "n1"})
    assert history(drained(ingestor), "x") == ("Running", world.now, None)


def test_what_ended_before_it_was_heard_of_counts_as_it_does_later(world: World, ingestor: Ingestor) -> None:
    tasks = [{"name": "x-0", "status": "Succeeded"}, {"name": "x-1", "status": "Failed"}]
    world.tell("podgroup_upserted", name="x", queue="ml", tasks=tasks)
    assert history(drained(ingestor), "x") == ("Running", world.now, None)


def test_a_podgroup_that_runs_in_a_list_was_whole_when_its_tasks_are_lost() -> None:
    world = World()
    wish = {"match_policy": "once-satisfied"}
    never = {"name": "never", "queue": "ml", "min_available": 2, "tasks": [{"name": "never", "count": 2}], **wish}
    world.list_fleet({**CLUSTER, "podgroups": [running("x", ["n0", "n0"], **wish), never]})
    ingestor = world.ingestor()
    assert history(ingestor, "x") == ("Running", None, None)  # it is not known since when
    world.tell("node_removed", node="n0")
    world.tell("podgroup_upserted", name="x", queue="ml", min_available=2, tasks=[{"name": "a"}, {"name": "b"}], **wish)
    drained(ingestor)
    free = starts_freely(ingestor.snapshot, "waiting-and-running")
    rows = [ingestor.state.names.row("podgroups", f"default/{name}") for name in ("x", "never")]
    assert free[rows].tolist() == [True, False]


def test_a_list_does_not_take_back_that_a_podgroup_was_whole(world: World, ingestor: Ingestor) -> None:
    for at in range(2):
        world.tell("task_started", task=f"default/train-{at}", node="n0", at=5.0)
    world.tell("node_removed", node="n0")
    assert history(drained(ingestor), "train") == ("Running", 5.0, None)
    world.list_fleet(list_id="again")
    assert history(drained(ingestor), "train") == ("Running", 5.0, None)


def test_a_podgroup_that_is_whole_with_what_we_bound_is_not_stale_after_a_list() -> None:
    world = World()
    half = running("x", ["n0"])
    half["tasks"].append({"name": "x-1", "incarnation": 0})
    world.list_fleet({**CLUSTER, "podgroups": [half]})
    ingestor = world.ingestor()
    since = world.now
    assert history(ingestor, "x") == ("Inqueue", None, since)
    world.now += 5.0
    world.decide("p", bindings=[{"task": "default/x-1", "incarnation": 0, "node": "n1"}])
    assert history(drained(ingestor), "x")[2] is None
    world.list_fleet({**CLUSTER, "podgroups": [half]}, list_id="older than the decision")
    assert history(drained(ingestor), "x")[2] is None


def test_a_podgroup_that_we_broke_is_stale_since_then_after_a_list() -> None:
    world = World()
    whole = running("x", ["n0", "n1"])
    for task in whole["tasks"]:
        task["incarnation"] = 0
    world.list_fleet({**CLUSTER, "podgroups": [whole]})
    ingestor = world.ingestor()
    world.now += 5.0
    world.decide("p", evictions=[{"task": "default/x-1", "incarnation": 0}])
    since = history(drained(ingestor), "x")[2]
    assert since is not None
    world.now += 5.0
    world.list_fleet({**CLUSTER, "podgroups": [whole]}, list_id="older than the decision")
    assert history(drained(ingestor), "x")[2] == since
