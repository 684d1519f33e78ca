"""Who has a turn: gang groups that do not pause, and those of their kind that come before them."""

import math
from dataclasses import replace

import pytest

from actors.cli.simulate import open_case
from pipeline.actions.backoff import Backoff, Pause
from pipeline.actions.setup import Setup
from pipeline.cycle import Cycle, cycle
from tests.support.small_clusters import REST, job, world

Devices = dict[str, int]


def decided(
    profile: str, paused: set[str], waiting: Devices, nodes: int = 1, limit: int = 0
) -> tuple[Cycle, dict[int, str]]:
    """A cycle, and names of podgroups: nodes of four devices are full, and gangs wait for some, the oldest first."""
    low = [job(f"low{at}", [4], 1, f"n{at}", queue="q") for at in range(nodes)]
    wait = [
        job(name, [devices], 5, None, queue="q", created=float(at))
        for at, (name, devices) in enumerate(waiting.items())
    ]
    has, queues = {f"n{at}": {"gpu": 4} for at in range(nodes)}, {"q": {"deserved": {"gpu": 99, **REST}}}
    case = open_case(world(has, queues, [*low, *wait], profile=profile))
    rows = {name.split("/")[1]: row for row, name in enumerate(case.names.podgroups)}
    pauses = {(rows[name],): Pause(case.snapshot.revision, math.inf, 1) for name in paused}
    setup = replace(Setup(), backoff=Backoff(epoch=case.snapshot.epoch, pauses=pauses), gang_groups=limit)
    return cycle(case.snapshot, case.policy, case.now, setup), {row: name for name, row in rows.items()}


@pytest.mark.parametrize("profile", ["default", "kai", "koordinator", "volcano"])
@pytest.mark.parametrize(
    ("paused", "waiting", "nodes", "expected"),
    [
        ({"first"}, {"first": 4, "second": 4}, 1, ["first"]),
        ({"first", "second"}, {"first": 4, "second": 4, "third": 4}, 2, ["first", "second"]),
        ({"second"}, {"first": 4, "second": 4}, 2, ["first"]),  # what comes behind goes on pausing
        ({"first"}, {"first": 3, "second": 4}, 1, ["second"]),  # what it asks for is another search
        ({"first", "second"}, {"first": 4, "second": 4}, 1, []),
    ],
)
def test_who_pauses_is_not_passed_by_a_younger_one_of_its_kind(
    profile: str, paused: set[str], waiting: Devices, nodes: int, expected: list[str]
) -> None:
    done, names = decided(profile, paused, waiting, nodes)
    assert [names[made.preemptor] for made in done.statements if len(made.evictions)] == expected


@pytest.mark.parametrize("profile", ["default", "kai", "koordinator", "volcano"])
def test_those_that_pause_take_no_turn_from_those_that_do_not(profile: str) -> None:
    """Else a cycle that lets few be searched for would search for the same ones again and again."""
    done, names = decided(profile, {"a", "b", "c"}, dict.fromkeys("abcde", 5), limit=1)
    assert {names[one.gang_group[0]] for one in done.unplaced} == {"a", "d"}
    assert done.more
