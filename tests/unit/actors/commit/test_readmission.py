"""Victims that start over: not in the room that they made, and not before whom they made it for."""

from dataclasses import replace
from typing import Any

import numpy as np

from actors.protocol.bodies import PlanWithdrawn
from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import PENDING
from tests.support.assembly import Assembly, decisions, gang, rack_cluster, restarting


def crowded(nodes: int = 4, **more: Any) -> Assembly:
    """One rack, each node full with one task of low priority that starts over when it is evicted."""
    cluster = rack_cluster(racks=1, nodes=nodes)
    cluster["podgroups"] = [restarting(gang(f"low{at}", 1, 8, nodes=[f"n{at}"])) for at in range(nodes)]
    assembly = Assembly(cluster, **more)
    assembly.hear()
    return assembly


def gpus(assembly: Assembly, name: str) -> list[str | None]:
    return [task.node for task in assembly.fleet._tasks.values() if task.name.startswith(f"default/{name}")]


def test_a_victim_that_starts_over_does_not_get_the_room_that_it_made() -> None:
    """Two of four victims have ended when the others still run: their room is promised, and nobody else's."""
    assembly = crowded()
    assembly.fleet._grace_s = (4.0, 30.0)
    assembly.submit(gang("big", 4, 8, priority=5))
    waited = 0
    while assembly.status("big-0") != "Running":
        assembly.turn()
        waited += sum(assembly.status(f"low{at}-0") == "Pending" for at in range(4))
        assert not any(node for node in gpus(assembly, "low") if node in gpus(assembly, "big"))
    assert waited, "some victims started over while the gang still waited"
    assert {assembly.status(f"low{at}-0") for at in range(4)} == {"Pending"}
    assert (assembly.report().broken, assembly.report().victims) == ([], 4)


def test_what_the_gang_leaves_of_the_room_is_open_to_all() -> None:
    assembly = crowded(nodes=1)
    assembly.submit(gang("big", 1, 6, priority=5))
    assembly.submit(gang("small", 1, 2))
    assembly.turns(10)
    assert [assembly.status(name) for name in ("big-0", "small-0", "low0-0")] == ["Running", "Running", "Pending"]


def test_when_the_reservation_lapses_the_gang_still_comes_before_its_victims() -> None:
    """The victims end after the reservation has; by then nothing is promised, and order alone decides."""
    assembly = crowded()
    assembly.policy = replace(assembly.policy, reservation_ttl_s=3.0)
    assembly.committer.resign()
    assembly.committer = assembly.new_committer("hasty")
    assembly.committer.lead()
    assembly.hear()
    assembly.fleet._grace_s = (6.0, 6.0)
    assembly.submit(gang("big", 4, 8, priority=5))
    assembly.turn()
    assembly.clock.now += 3.0
    assembly.committer.lead()
    assembly.hear()
    assert isinstance(decisions(assembly)[-1], PlanWithdrawn)
    assembly.hear()
    assert not (assembly.ingest.snapshot.tasks.nominated != NONE).any()
    assembly.pass_time(4.0)
    assert [assembly.status(f"low{at}-0") for at in range(4)] == ["Pending"] * 4
    assembly.turns(3)
    assert {assembly.status(f"big-{at}") for at in range(4)} == {"Running"}
    assert [assembly.status(f"low{at}-0") for at in range(4)] == ["Pending"] * 4


def test_no_nomination_outlives_its_decision() -> None:
    """Whatever becomes of a gang: once nothing is reserved for it, none of its tasks is promised anything."""
    assembly = crowded()
    for name in ("x", "y"):
        assembly.submit(gang(name, 2, 8, priority=5))
    assembly.turn()
    group = assembly.fleet._podgroups["default/x"]
    gone = [assembly.fleet._end(assembly.fleet._tasks[name], "Failed", replaced=False) for name in group.tasks[:1]]
    assembly.say(gone)
    for _ in range(15):
        assembly.turn()
        assembly.hear()
        tasks = assembly.ingest.snapshot.tasks
        promised = assembly.directory.tasks(np.flatnonzero((tasks.status == PENDING) & (tasks.nominated != NONE)))
        held = {name for one in assembly.committer.reservations for name in one.tasks}
        assert set(promised) <= held
    assert {assembly.status(f"y-{at}") for at in range(2)} == {"Running"}
    assert assembly.committer.reservations == ()
