"""A small cluster settles, and nothing is decided after that.

Under `kai` within two cycles: what `allocate` would start for others to take is held back. A victim that takes room
from others in its turn needs a third cycle.

On a state in which nothing has happened a second cycle evicts next to nothing, and a third one nothing (decision 88):
only for podgroups whose turn came in vain before a plan of another, or that lost tasks to one.
"""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.cli.simulate import open_case
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import Cycle, cycle
from tests.support import small_clusters
from tests.support.depth import sampled
from tests.support.small_clusters import REST, played, world
from tests.support.strategies import documents

SETTLED, QUIET = 2, 5


def small_cluster(draw: random.Random) -> dict[str, Any]:
    """Two queues on up to three nodes, filled at random with podgroups of which some are elastic; two more wait."""
    nodes = {f"n{at}": draw.choice([2, 4]) for at in range(draw.choice([1, 2, 3]))}
    whole, left, groups = sum(nodes.values()), dict(nodes), []
    for at in range(draw.choice([2, 4, 6])):
        many, each = draw.choice([1, 2, 3]), draw.choice([1, 2])
        places = []
        while len(places) < many and (fitting := [name for name in left if left[name] >= each]):
            places.append(draw.choice(fitting))
            left[places[-1]] -= each
        if places:
            groups.append(podgroup(f"low{at}", draw, len(places), each, places, draw.choice([50, 60])))
    groups += [
        podgroup(f"new{at}", draw, draw.choice([1, 2]), draw.choice([1, 2]), None, draw.choice([60, 75]))
        for at in range(2)
    ]
    share = draw.randint(0, whole)
    deserved = {"a": share, "b": whole - share}
    has = {name: {"cpu": 64, "memory": "64Gi", "gpu": many} for name, many in nodes.items()}
    queues = {name: {"parent": "root", "deserved": {**REST, "gpu": many}} for name, many in deserved.items()}
    return world(has, {"root": {"deserved": {"gpu": whole}}, **queues}, groups, now=1_700_000_000.0, profile="kai")


def podgroup(
    name: str, draw: random.Random, many: int, each: int, places: list[str] | None, priority: int
) -> dict[str, Any]:
    said = {"queue": draw.choice("ab"), "priority": priority, "min_available": draw.randint(1, many)}
    age = {"phase": "Running", "started": 1_699_990_000.0} if places else {"phase": "Inqueue"}
    created = float(draw.randint(0, 9))
    return small_clusters.podgroup(name, [{"gpu": each}] * many, places, **said, **age, created=created)


#: Here a gang was once promised room that it lost again: to a promise of lower priority, or to a victim's queue.
TAKEN_AGAIN = (197, 198, 551, 674, 839)


@pytest.mark.parametrize("seed", [*range(sampled(60)), *TAKEN_AGAIN])
def test_a_cluster_settles_and_nothing_is_taken_after_that(seed: int) -> None:
    done = played(small_cluster(random.Random(seed)), SETTLED + QUIET)
    assert not any(cycle["evictions"] or cycle["bindings"] for cycle in done[SETTLED:])
    started = {one["task"] for cycle in done for one in cycle["bindings"]}
    ended = [one["task"] for cycle in done[1:] for one in cycle["evictions"]]
    assert not started & set(ended)


#: Here a podgroup once evicted in the second cycle only since leftover room had waited for it or one before it.
WAITED = (447, 599, 747, 782, 901, 916)


def unexpected(snapshot: Snapshot, first: Cycle, second: Cycle) -> set[int]:
    """Podgroups for which a second cycle evicts, though the first neither searched for them nor evicted from them."""
    owner = snapshot.tasks.podgroup
    lost = {int(owner[row]) for made in first.statements for row in made.evictions.tolist()}
    searched = {row for gang_group in first.starving for row in gang_group}
    return {made.preemptor for made in second.statements if len(made.evictions)} - searched - lost


def check_cycles(document: dict[str, Any]) -> None:
    case = open_case(document)
    first = cycle(case.snapshot, case.policy, case.now)
    second = cycle(first.snapshot, case.policy, case.now)
    assert unexpected(case.snapshot, first, second) == set()
    third = cycle(second.snapshot, case.policy, case.now)
    assert [made for made in third.statements if len(made.evictions)] == []


@pytest.mark.parametrize("seed", [*range(1000, 1000 + sampled(60)), *WAITED])
def test_under_kai_a_second_cycle_evicts_only_where_a_turn_came_too_early_and_a_third_nothing(seed: int) -> None:
    check_cycles(small_cluster(random.Random(seed)))


@given(st.sampled_from(["default", "koordinator"]).flatmap(lambda profile: documents(profile=profile)))
@settings(max_examples=sampled(60), deadline=None)
def test_a_second_cycle_evicts_only_where_a_turn_came_too_early_and_a_third_nothing(document: dict[str, Any]) -> None:
    check_cycles(document)


@pytest.mark.parametrize("seed", WAITED)
def test_where_leftover_room_once_waited_a_second_cycle_evicts_nothing(seed: int) -> None:
    case = open_case(small_cluster(random.Random(seed)))
    first = cycle(case.snapshot, case.policy, case.now)
    second = cycle(first.snapshot, case.policy, case.now)
    assert [made for made in second.statements if len(made.evictions)] == []
