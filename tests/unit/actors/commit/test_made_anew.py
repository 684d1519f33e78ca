"""A podgroup that is removed and made anew under its name, while a decision for the one before is on its way."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import PENDING
from tests.support.assembly import Assembly, decisions, full_racks, gang, rack_cluster


def in_next_life(podgroup: dict[str, Any]) -> dict[str, Any]:
    return podgroup | {"tasks": [task | {"incarnation": 1} for task in podgroup["tasks"]]}


def make_anew(assembly: Assembly, podgroup: dict[str, Any]) -> None:
    """Remove the podgroup of this name and submit another; nobody hears of it yet."""
    fleet, name = assembly.fleet, f"default/{podgroup['name']}"
    for task in fleet._podgroups.pop(name).tasks:
        del fleet._tasks[task]
    assembly.say([fleet._say("podgroup_removed", name, {"podgroup": name})])
    assembly.say(fleet.submit(in_next_life(podgroup)))


@pytest.mark.parametrize("heard", [False, True], ids=["before it was recorded", "before it was carried out"])
def test_tasks_that_were_made_anew_are_not_started_where_those_before_them_were_bound(heard: bool) -> None:
    """The new ones ask for more: three of them do not fit the node, and nine would not fit the racks."""
    assembly = Assembly(rack_cluster())
    assembly.say(assembly.fleet.submit(gang("big", 3, 2, topology={"required": "rack"})))
    assembly.hear()
    anew = gang("big", 9, 8, topology={"required": "rack"})
    if not heard:
        make_anew(assembly, anew)
    assert assembly.dispatcher.cycle(assembly.news).answers[0].accepted
    if heard:
        make_anew(assembly, anew)
    assembly.hear()
    assembly.obey()
    assembly.hear()
    tasks = assembly.ingest.snapshot.tasks
    assert {task.status for task in assembly.fleet._tasks.values()} == {"Pending"}
    assert (tasks.status[-9:] == PENDING).all()
    assert assembly.fleet.tally.misfits == 0
    assert assembly.report().broken == []


def test_room_that_was_promised_to_tasks_before_they_were_made_anew_is_not_promised_to_them() -> None:
    assembly = Assembly(full_racks())
    assembly.say(assembly.fleet.submit(gang("big", 3, 2, priority=5)))
    assembly.hear()
    make_anew(assembly, gang("big", 3, 8, priority=5))
    assert assembly.dispatcher.cycle(assembly.news).answers[0].accepted
    assembly.hear()
    assert (assembly.ingest.snapshot.tasks.nominated == NONE).all()
    assembly.obey()
    for _ in range(5):
        assembly.turn(10.0)
    assert [type(one).__name__ for one in decisions(assembly)][:2] == ["PlanCommitted", "PlanWithdrawn"]
    assert assembly.report().broken == []


def test_a_task_that_is_bound_in_its_life_starts_and_is_named_with_it() -> None:
    assembly = Assembly(rack_cluster())
    assembly.say(assembly.fleet.submit(in_next_life(gang("big", 3, 2))))
    assembly.turns(2)
    assert assembly.status("big-0") == "Running"
    (made,) = decisions(assembly)
    assert [one.incarnation for one in made.bindings] == [1, 1, 1]
