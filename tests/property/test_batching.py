"""Messages folded together mean what they mean one by one, whatever comes between what."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from actors.broker.bus import DEAD, START
from pipeline.cluster.tables import GONE
from tests.support.told_world import World, drained

GROUPS, TASKS = ("train", "web", "x", "y"), 3

SAID = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "podgroup_upserted",
                "podgroup_removed",
                "task_upserted",
                "running",
                "running",
                "started",
                "started",
                "ending",
                "over",
                "again",
            ]
        ),
        st.sampled_from(GROUPS),
        st.integers(0, TASKS - 1),
        st.integers(0, 3),
    ),
    max_size=40,
)


def tell(world: World, kind: str, group: str, at: int, number: int) -> None:
    task = f"default/{group}-{at}"
    if kind == "podgroup_upserted":
        tasks = [{"name": f"{group}-{at}", "request": {"cpu": number + 1}}] if number else []
        tasks += [{"name": f"{group}-r", "status": "Running", "node": "n1"}] if at else []
        world.tell(kind, name=group, queue="ml", min_available=number, tasks=tasks)
    elif kind == "podgroup_removed":
        world.tell(kind, podgroup=f"default/{group}")
    elif kind == "task_upserted":
        world.tell(kind, podgroup=f"default/{group}", task={"name": f"{group}-{at}", "request": {"cpu": number}})
    elif kind == "running":
        status = ("Running", "Bound", "Terminating", "Running")[number]
        role = {"role": "worker"} if at == number else {}
        described = {"name": f"{group}-{at}", "status": status, "node": f"n{number}", **role}
        world.tell("task_upserted", podgroup=f"default/{group}", task=described)
    elif kind == "started":
        world.tell("task_started", task=task, node=f"n{number}", incarnation=number // 2)
    elif kind == "ending":
        world.tell("task_terminating", task=task, incarnation=number // 2)
    else:
        world.tell("task_ended", task=task, outcome="Evicted", incarnation=number // 2, replaced=kind == "again")


def meaning(world: World, ingestor: Any) -> tuple[Any, ...]:
    """Everything by name: which podgroups there are, what became of their tasks, what was refused."""
    snapshot, names = ingestor.snapshot, ingestor.state.names
    groups, tasks, counts = snapshot.podgroups, snapshot.tasks, snapshot.counts
    known = {
        names.podgroups[row]: (
            int(groups.min_available[row]), int(groups.phase[row]),
            int(counts.ready[row]), int(counts.running[row]),
            *np.nan_to_num([groups.started[row], groups.stale_since[row]], nan=-1.0).tolist(),
        )
        for row in range(len(groups)) if groups.alive[row]
    }  # fmt: skip
    became = sorted(
        (
            names.tasks[row], names.podgroups[tasks.podgroup[row]], int(tasks.status[row]), int(tasks.node[row]),
            int(tasks.incarnation[row]), int(tasks.revision[row]),
            snapshot.shapes.request[tasks.shape[row]].tolist(),
        )
        for row in range(len(tasks)) if tasks.status[row] != GONE and groups.alive[tasks.podgroup[row]]
    )  # fmt: skip
    letters = sorted((one.fields["reason"], one.fields["raw"]) for one in world.bus.follow(DEAD, START, count=1_000))
    return known, became, letters, snapshot.revision


@given(SAID)
def test_together_or_one_by_one_the_state_is_the_same(said: list[tuple[str, str, int, int]]) -> None:
    world = World()
    world.list_fleet()
    stepwise = world.ingestor("stepwise")
    for one in said:
        world.now += 1
        tell(world, *one)
        drained(stepwise)
    one_by_one = meaning(world, stepwise)
    together = world.ingestor("together", entries=1_000)
    assert meaning(world, together) == one_by_one
