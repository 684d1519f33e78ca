"""The place of a gang group whose members are of several priorities."""

from typing import Any

import numpy as np
import pytest

from actors.cli.simulate import open_case
from pipeline.decision.attempt import Attempt
from pipeline.placement.serving_order import in_serving_order
from pipeline.policy import Purpose
from pipeline.propose import host_of
from tests.support.small_clusters import REST, played, podgroup, told, world


def waiting(name: str, priority: int, created: float, *starts_with: str, gpu: int = 8) -> dict[str, Any]:
    listed = [f"default/{one}" for one in starts_with]
    said = {"gang_group": listed} if listed else {}
    return podgroup(name, [{"gpu": gpu}], priority=priority, created=created, phase="Inqueue", min_available=1, **said)


def crowded(profile: str, *asking: dict[str, Any]) -> dict[str, Any]:
    """Two nodes that work of priority 0 fills, and podgroups that wait for one each."""
    of_each = {"gone_when_evicted": True}
    fills = [
        podgroup(f"low{at}", [{"gpu": 8}], f"n{at}", of_each, phase="Running", started=1.0, min_available=1)
        for at in range(2)
    ]
    queues = {"q": {"deserved": {"gpu": 16, **(REST if profile == "kai" else {})}}}
    return world({f"n{at}": {"gpu": 8} for at in range(2)}, queues, [*fills, *asking], profile=profile)


def places(*asking: dict[str, Any], evicting: bool = True) -> list[list[str]]:
    """The gang groups in the order in which they are served."""
    case, names = open_case(crowded("default", *asking)), ["low0", "low1", *(one["name"] for one in asking)]
    host = host_of(Attempt(case.snapshot, case.policy, Purpose.PREEMPT, (), None, case.now, "preempt"))
    wanted = np.array([name in {one["name"] for one in asking} for name in names])
    return [[names[row] for row in one] for one in in_serving_order(host, wanted, evicting=evicting)]


@pytest.mark.parametrize("profile", ["default", "kai", "koordinator", "volcano"])
def test_no_room_is_made_for_a_gang_group_of_which_another_podgroup_takes_a_part_at_once(profile: str) -> None:
    """Both nodes were cleared for the pair, and the third podgroup took one of them in the same cycle."""
    pair = [waiting("first", 9, 1.0, "first", "last"), waiting("last", 2, 2.0, "first", "last")]
    (taken,) = played(crowded(profile, *pair, waiting("third", 5, 3.0)))
    assert (len(taken["evictions"]), told(taken)["nominations"]) == (1, ["third-0"])
    (given,) = played(crowded(profile, *pair, waiting("third", 1, 3.0)))
    assert (len(given["evictions"]), told(given)["nominations"]) == (2, ["first-0", "last-0"])


def test_it_is_served_where_its_members_of_the_lowest_priority_are_and_first_among_these() -> None:
    pair, third = ("first", "last"), waiting("third", 5, 3.0)
    assert places(waiting("first", 9, 1.0, *pair), waiting("last", 2, 2.0, *pair), third) == [["third"], [*pair]]
    assert places(waiting("first", 9, 1.0, *pair), waiting("last", 5, 4.0, *pair), third) == [["third"], [*pair]]
    assert places(waiting("first", 5, 1.0, *pair), waiting("last", 5, 4.0, *pair), third) == [[*pair], ["third"]]


def test_it_has_the_place_of_its_first_member_where_nothing_is_evicted() -> None:
    pair = ("first", "last")
    asking = waiting("first", 9, 1.0, *pair), waiting("last", 2, 2.0, *pair), waiting("third", 5, 3.0)
    assert places(*asking, evicting=False) == [[*pair], ["third"]]


def test_where_one_waits_for_another_and_is_not_waited_for_both_have_the_place_of_that_one() -> None:
    waits, other = waiting("waits", 9, 1.0, "waits", "other"), waiting("other", 2, 2.0)
    third = waiting("third", 5, 3.0)
    assert places(waits, other, third) == [["third"], ["waits", "other"], ["other"]]
    assert places(waits, {**other, "priority": 10}, third) == [["other"], ["waits", "other"], ["third"]]
