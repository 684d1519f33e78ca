"""Room for gangs whose parts need a domain each: how few sets of victims are tried, and in which domains."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from actors.cli.simulate import open_case
from actors.configuration.profiles import load_profile
from actors.fleets.generated import GangSpec, generate
from actors.fleets.mixed import MIXED
from pipeline.cluster.arrays import NO_ROWS, Rows
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Reason
from pipeline.decision.plan import NoPlan, Plan
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import need_of
from pipeline.policy import Purpose
from pipeline.propose import propose
from pipeline.solvers.gather import gathering, victims
from pipeline.solvers.gather.gathering import counted_of
from tests.support.gathering import cluster_file, running

#: Two spines of two blocks of two nodes with four cores each.
TREE = {"s1": {"b1": ["n1", "n2"], "b2": ["n3", "n4"]}, "s2": {"b3": ["n5", "n6"], "b4": ["n7", "n8"]}}

QUEUES = [{"name": "default"}, {"name": "full", "deserved": {"cpu": 0}}, {"name": "other", "deserved": {"cpu": 32}}]


def gang(*sizes: int) -> dict[str, Any]:
    """A gang in one spine with parts of so many tasks of four cores, each part in one block."""
    tasks = [
        {"name": f"{part}-{at}", "subgroup": f"part{part}", "request": {"cpu": 4}}
        for part, many in enumerate(sizes)
        for at in range(many)
    ]
    subgroups = [
        {"name": f"part{part}", "min_available": many, "topology": {"required": "block"}}
        for part, many in enumerate(sizes)
    ]
    return {"name": "gang", "queue": "default", "priority": 9, "phase": "Inqueue", "min_available": sum(sizes),
            "subgroups": subgroups, "tasks": tasks, "topology": {"required": "spine"}}  # fmt: skip


def proposed(
    *podgroups: dict[str, Any], purpose: Purpose = Purpose.PREEMPT
) -> tuple[Plan | NoPlan, list[str], list[int]]:
    """What is proposed for the last podgroup, names of domains, and how many had left whenever it was laid out."""
    case, leaving = open_case(cluster_file(TREE, 4, podgroups, queues=QUEUES)), list[int]()
    packed = gathering._packed

    def counted(site: gathering.GatherSite, *where: Any) -> Rows:
        leaving.append(len(site.leaving))
        return packed(site, *where)

    with patch.object(gathering, "_packed", counted):
        last = len(case.snapshot.podgroups) - 1
        found = propose(Attempt(case.snapshot, case.policy, purpose, (last,), None, case.now, purpose.value))
    return found, [str(name) for name in case.names.domains], leaving


def test_a_domain_where_parts_need_more_important_victims_than_slots_say_is_not_searched() -> None:
    """One node of each block of s1 is held by what is more important, so no block there takes two tasks without it."""
    found, names, _ = proposed(
        *(running(f"low{at}", [f"n{at}"], 4) for at in (1, 3)),
        *(running(f"high{at}", [f"n{at}"], 4, priority=2) for at in (2, 4)),
        *(running(f"more{at}", [f"n{at}"], 4) for at in (5, 6, 7, 8)),
        gang(2),
    )
    assert isinstance(found, Plan)
    assert (found.price.highest_priority, found.price.victims) == (1, 2)
    tried = {names[one.domain]: (one.reason, one.price) for one in found.explanation.tried}
    assert tried["s1"] == (Reason.COSTLIER, None)
    assert tried["s2"][0] == Reason.CHOSEN


def test_no_smaller_set_of_victims_is_tried_where_all_together_are_not_enough() -> None:
    """Three tasks never fit into a block of two nodes, though slots suffice in a spine.

    In the first one from priority 1 on, in the other one from 2 on. What blocks have is counted before anything is
    placed, so nothing is tried while only priorities 0 and 1 leave.
    """
    found, _, leaving = proposed(*(running(f"low{at}", [f"n{at}"], 4, priority=at % 3) for at in range(1, 9)), gang(3))
    assert isinstance(found, NoPlan)
    assert leaving == [4, 4]


def test_it_is_so_in_reclaim_too_where_all_may_leave_at_once() -> None:
    low = [running(f"low{at}", [f"n{at}"], 4, priority=at % 3, queue="full") for at in range(1, 9)]
    found, _, leaving = proposed(*low, {**gang(3), "queue": "other"}, purpose=Purpose.RECLAIM)
    assert isinstance(found, NoPlan)
    assert set(leaving) == {4}


@pytest.mark.parametrize("kinds", ["subgroups", "subgroups cards", "subgroups affinity", "shapes cards"])
def test_places_are_those_of_a_packing_that_knows_nothing_yet(kinds: str) -> None:
    fleet = generate(60, GangSpec(64, 1), seed=1, queues=0)
    for kind in kinds.split():
        fleet = MIXED[kind](fleet, gang=True)
    snapshot, need = fleet.snapshot, need_of(fleet.snapshot, (fleet.gang,), surplus=False)
    allowed, placed = np.ones((len(need.shapes), len(snapshot.nodes)), bool), np.flatnonzero(snapshot.tasks.node >= 0)
    counted, outcomes = counted_of(snapshot, need, allowed, need.tasks, placed), set()
    for leaving in (NO_ROWS, placed[::2], placed):
        room = snapshot.room.future.copy()
        snapshot.add_requests(leaving, room, snapshot.tasks.node[leaving])
        for domain in range(len(snapshot.topology)):
            start, stop = snapshot.topology.slice_of(domain)
            once = Packings(need, allowed, snapshot).on(start, stop).places(room[start:stop], leaving)
            wide = counted.wide(room[start:stop], start, leaving)
            kept = counted.packings.on(start, stop).places(wide, leaving)
            outcomes.add(once is None)
            assert (once is None) == (kept is None)
            assert once is None or kept is None or once.tolist() == kept.tolist()
    assert outcomes == {True, False}


def test_fewer_gangs_break_where_places_are_kept_as_victims_return() -> None:
    """Tasks of several shapes on cards: slots are enough for the gang before there are places."""
    fleet = generate(150, GangSpec(64, 1), seed=1, queues=0)
    for kind in ("shapes", "cards"):
        fleet = MIXED[kind](fleet, gang=True)
    asked = Attempt(fleet.snapshot, load_profile("koordinator"), Purpose.PREEMPT, (fleet.gang,), None, 0.0, "preempt")
    kept = propose(asked)
    with patch.object(victims, "leaving_places", lambda *_: None):
        one_by_one = propose(asked)
    assert isinstance(kept, Plan)
    assert isinstance(one_by_one, Plan)
    assert (kept.price.gangs_broken, one_by_one.price.gangs_broken) == (1, 6)
