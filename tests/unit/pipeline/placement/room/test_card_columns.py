"""Cards as resources: slots are what the cards of each node take one by one, and victims are those that lose least."""

from typing import Any

import numpy as np
import pytest

from pipeline.cluster.cards import freed_on_cards, slots_on_cards
from pipeline.cluster.resources import slots
from pipeline.decision.plan import Plan
from pipeline.placement.need import need_of
from pipeline.policy import Purpose
from pipeline.propose import host_of, propose
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.solver import search_of
from tests.support.brute_force import attempt_of
from tests.support.carded import CARDS, carded, holder, node, waiting
from tests.support.small_clusters import played

NODES = 24


def fleet(seed: int, part: str, tasks: int, shapes: int = 1) -> dict[str, Any]:
    """Nodes with two cards each, which tasks of several sizes hold in parts; and a gang that waits for other parts."""
    draw, holders = np.random.default_rng(seed), []
    for at in range(NODES):
        for card in CARDS:
            for size in ((8,), (4, 4), (3, 3, 2), (6,), (5, 2))[draw.integers(5)]:
                name, on = f"h{len(holders)}", f"n{at}"
                holders.append(holder(name, f"{size}Gi", card, priority=int(draw.integers(3)), on=on))
    gang = waiting("waits", part, tasks)
    gang["tasks"][:: shapes + 1] = [one | {"card_request": "5Gi"} for one in gang["tasks"][:: shapes + 1]]
    return carded(holders, gang, nodes=[node(f"n{at}") for at in range(NODES)])


@pytest.mark.parametrize("part", ["2Gi", "3Gi", "6Gi", "8Gi"])
@pytest.mark.parametrize("seed", range(3))
def test_slots_are_those_of_cards_one_by_one(seed: int, part: str) -> None:
    attempt = attempt_of(fleet(seed, part, 12, shapes=99), Purpose.PREEMPT)
    snapshot, draw = attempt.snapshot, np.random.default_rng(seed)
    need = need_of(snapshot, attempt.podgroups, surplus=False)
    search = search_of(attempt, host_of(attempt), need)
    free = FreeRoom(search, 0)
    assert free.exact is (len(need.shapes) == 1)
    candidates = np.flatnonzero(search.candidate[snapshot.occupancy.task])
    leaving = draw.choice(candidates, len(candidates) // 2, replace=False).astype(np.int64)
    free.leave(leaving)
    on_cards, room = snapshot.card_room.future.copy(), snapshot.room.future.copy()
    rows = snapshot.occupancy.task[leaving]
    freed_on_cards(snapshot.tasks, snapshot.shapes, rows, 0, on_cards)
    np.add.at(room, snapshot.tasks.node[rows], snapshot.request[rows])
    for at, asked in enumerate(snapshot.shapes.on_card[need.shapes].tolist()):
        apart = np.minimum(slots(need.request[at], room), slots_on_cards(asked, on_cards))
        assert free.ground.slots[at].tolist() == np.minimum(apart, need.count[at]).tolist()


@pytest.mark.parametrize(("part", "cpu", "scarce"), [("4Gi", 1, "cards"), ("4Gi", 9, "cpu"), ("6Gi", 9, "cards")])
def test_the_scarcest_resource_is_cards_where_these_run_out_first(part: str, cpu: int, scarce: str) -> None:
    """Of each node 6 GB of cards and 8 CPU are free; no part of 6 GB fits."""
    holders = [holder(f"h{at}", size, CARDS[at], on="n0") for at, size in enumerate(("6Gi", "4Gi"))]
    fill = {"name": "fill", "request": {"cpu": 22}, "status": "Running", "node": "n0"}
    filled = {"name": "fill", "queue": "q", "priority": 0, "min_available": 1, "tasks": [fill]}
    gang = waiting("waits", part, 4)
    gang["tasks"] = [one | {"request": {"cpu": cpu}} for one in gang["tasks"]]
    attempt = attempt_of(carded(holders, filled, gang), Purpose.PREEMPT)
    search = search_of(attempt, host_of(attempt), need_of(attempt.snapshot, attempt.podgroups, surplus=False))
    names = [*attempt.snapshot.vocabulary.resources, "cards"]
    assert names[search.site.scarce] == scarce


def test_a_task_that_has_a_card_for_itself_goes_rather_than_two_that_share_one() -> None:
    shared = [holder(f"s{at}-{half}", "4Gi", CARDS[at % 2], on=f"n{at // 2}") for at in range(46) for half in (0, 1)]
    alone = [holder(f"alone-{at}", "8Gi", CARDS[at], on="n23") for at in (0, 1)]
    nodes = [node(f"n{at}") for at in range(NODES)]
    attempt = attempt_of(carded([*shared, *alone], waiting("waits", "8Gi", 2), nodes=nodes), Purpose.PREEMPT)
    made = propose(attempt)
    assert isinstance(made, Plan)
    assert made.statement.evictions.tolist() == [92, 93]


@pytest.mark.parametrize("seed", range(3))
def test_tasks_that_ask_for_parts_of_several_sizes_get_cards(seed: int) -> None:
    made = propose(attempt_of(fleet(seed, "8Gi", 10), Purpose.PREEMPT))
    assert isinstance(made, Plan)
    assert (made.statement.nominated_card >= 0).all()


@pytest.mark.parametrize("policy", ["default", "volcano"])
@pytest.mark.parametrize("nodes", [[], [{"name": "n", "allocatable": {"cpu": 4, "pods": 9}}]])
def test_a_gang_that_asks_for_a_card_waits_where_no_node_has_any(policy: str, nodes: list[dict[str, Any]]) -> None:
    """One task asks for no card, so the gang may begin with it. The search once failed, and the cycle with it."""
    tasks = [{"name": "w-0", "request": {"cpu": 8}}, {"name": "w-1", "request": {"cpu": 1}, "card_request": "2Gi"}]
    gang = {"name": "w", "queue": "q", "priority": 9, "tasks": tasks}
    case = carded([], gang, policy=policy) | {"nodes": nodes}
    case["policy"] = {**case["policy"], "actions": ["allocate", "gangreclaim", "gangpreempt"]}
    assert not any(cycle[kind] for cycle in played(case, 2) for kind in cycle)
