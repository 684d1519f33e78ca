"""Invariants 3, 8 and 9 for cards, on small random clusters, against every way there is to lay tasks on cards."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, TERMINATING
from pipeline.placement.feasibility import feasible
from tests.support.carded import POLICIES, carded, holder, node
from tests.support.deciding import run, steps
from tests.support.depth import sampled

some = settings(max_examples=sampled(60))
_CAPACITY = 8


@st.composite
def clusters(draw: st.DrawFn, *, sizes: int = 2) -> dict[str, Any]:
    """Up to three nodes of up to three cards, holders who may or may not go, and a gang of up to three.

    ``sizes``: of how many sizes the gang's parts may be.
    """
    parts = st.integers(1, _CAPACITY)
    nodes = [
        node(f"n{at}", tuple(f"g{card}" for card in range(draw(st.integers(1, 3)))), str(_CAPACITY))
        for at in range(draw(st.integers(1, 3)))
    ]
    holders = []
    for one in nodes:
        for card in one["cards"]:
            left = _CAPACITY
            while left and len(holders) < 12 and draw(st.integers(0, 4)):
                part = draw(st.integers(1, left))
                left -= part
                priority = draw(st.sampled_from([0, 1, 2, 100]))
                holders.append(holder(f"h{len(holders)}", str(part), card["name"], priority, one["name"]))
    offered = draw(st.lists(parts, min_size=1, max_size=sizes))
    asked = [draw(st.sampled_from(offered)) for _ in range(draw(st.integers(1, 3)))]
    tasks = [{"name": f"c-{at}", "request": {"cpu": 1}, "card_request": part} for at, part in enumerate(asked)]
    gang = {"name": "c", "queue": "q", "priority": 50, "min_available": len(tasks), "tasks": tasks}
    policy = draw(st.sampled_from(list(POLICIES)))
    said = carded(holders, gang, policy=policy, nodes=nodes)
    return said | {"id": policy}


def free_cards(snapshot: Snapshot, gone: set[int]) -> dict[tuple[int, int], int]:
    """What each card has once ``gone`` have left, task by task."""
    tasks, cards = snapshot.tasks, snapshot.nodes.cards
    free = {(n, c): int(cards[n, c]) for n in range(len(cards)) for c in range(cards.shape[1]) if cards[n, c]}
    for row in range(len(tasks)):
        if tasks.status[row] in {BOUND, RUNNING} and tasks.card[row] != NONE and row not in gone:
            free[int(tasks.node[row]), int(tasks.card[row])] -= int(snapshot.shapes.on_card[tasks.shape[row]])
    return free


def lies(snapshot: Snapshot, rows: list[int], gone: set[int]) -> bool:
    """Whether some layout gives every one of ``rows`` a card: all are tried."""
    free, parts = free_cards(snapshot, gone), [int(snapshot.shapes.on_card[snapshot.tasks.shape[row]]) for row in rows]
    for chosen in product(free, repeat=len(rows)):
        used = dict.fromkeys(chosen, 0)
        for card, part in zip(chosen, parts, strict=True):
            used[card] += part
        if all(amount <= free[card] for card, amount in used.items()):
            return True
    return False


def overfull_cards(snapshot: Snapshot) -> list[tuple[int, int]]:
    """Cards of which tasks hold, or were promised, more than there is."""
    tasks, cards, found = snapshot.tasks, snapshot.nodes.cards, []
    for n in range(len(cards)):
        for c in range(cards.shape[1]):
            on = np.flatnonzero((tasks.card == c) & (tasks.node == n)).tolist()
            holds = [row for row in on if tasks.status[row] in {BOUND, RUNNING, TERMINATING}]
            stays = [row for row in holds if tasks.status[row] != TERMINATING]
            comes = np.flatnonzero((tasks.nominated_card == c) & (tasks.nominated == n)).tolist()
            amounts = [snapshot.shapes.on_card[tasks.shape[rows]].sum() for rows in (holds, stays + comes)]
            if max(amounts) > cards[n, c]:
                found.append((n, c))
    return found


@some
@given(clusters())
def test_no_card_is_promised_more_than_it_will_have(document: dict[str, Any]) -> None:
    """Invariants 3 and 9."""
    for step in steps(document, cycles=2):
        assert feasible(step.before, step.made)
        assert overfull_cards(step.after) == []
        tasks = step.after.tasks
        asks = step.after.shapes.on_card[tasks.shape] > 0
        assert ((tasks.card != NONE) == ((tasks.node != NONE) & asks)).all()
        assert ((tasks.nominated_card != NONE) == ((tasks.nominated != NONE) & asks)).all()


@some
@given(clusters(sizes=1))
def test_each_task_that_goes_is_needed_and_each_that_could_be_placed_is(document: dict[str, Any]) -> None:
    """Invariant 8: nobody of equal parts waits in vain, and no victim could have stayed."""
    before = next(iter(run(document)))[1]
    tasks = before.tasks
    gang = np.flatnonzero(tasks.status == PENDING).tolist()
    evictable = set(np.flatnonzero((tasks.status == RUNNING) & tasks.preemptible).tolist())
    made = list(steps(document))
    assert bool(made) == lies(before, gang, evictable)
    for step in made:
        victims = set(step.made.evictions.tolist())
        assert lies(before, gang, victims)
        if document["id"] in ("default", "volcano"):
            assert not any(lies(before, gang, victims - {row}) for row in victims)


@pytest.mark.parametrize("spread", ["binpack", "spread"])
@settings(max_examples=sampled(20))
@given(clusters())
def test_the_choice_of_a_card_places_no_fewer(spread: str, document: dict[str, Any]) -> None:
    document["policy"] = {"plugins": {"deviceshare": {"arguments": {"cards": spread}}}}
    for step in steps(document, cycles=2):
        assert feasible(step.before, step.made)
        assert overfull_cards(step.after) == []


@some
@given(clusters())
def test_a_consolidation_gives_each_task_that_it_evicts_another_card(document: dict[str, Any]) -> None:
    document["policy"] = {"profile": "kai", "actions": ["allocate", "consolidation"]}
    for step in steps(document, cycles=3):
        assert feasible(step.before, step.made)
        assert overfull_cards(step.after) == []
        tasks = step.after.tasks
        ends = np.flatnonzero(tasks.status == TERMINATING)
        assert (tasks.nominated_card[ends] != NONE).all()
        assert ((tasks.nominated[ends] != tasks.node[ends]) | (tasks.nominated_card[ends] != tasks.card[ends])).all()
