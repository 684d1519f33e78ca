"""Cards: room on two of them does not add up to room on one, and no task that stays changes its card."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from actors.cli.simulate import open_case
from pipeline.actions.substitution import substitute
from pipeline.cluster import checkpoint
from pipeline.cluster.arrays import NONE
from pipeline.cluster.cards import best_card, cards_for, packed_on_cards, slots_on_cards
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.attempt import Attempt
from pipeline.decision.decided import carried_out
from pipeline.decision.explanation import Reason
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.verdict import Accepted, Conflict
from pipeline.judge import judge
from pipeline.policy import Purpose
from pipeline.propose import host_of, propose
from pipeline.solvers.tasks.sweeping.one_node import cards_without, stands, still_needed
from tests.support.carded import POLICIES, Holder, carded, holder, node, waiting
from tests.support.encoded import encoded
from tests.support.simulating import simulate
from tests.support.small_clusters import named, played
from tests.support.task_centric import on_node

NO_ROWS = np.zeros(0, np.int64)
APART: list[Holder] = [("a", "4Gi", "gpu-0", 1), ("b", "4Gi", "gpu-1", 2)]
every_policy = pytest.mark.parametrize("policy", list(POLICIES))


def first_cycle(document: dict[str, Any]) -> tuple[set[str], dict[str, str | None]]:
    """Who goes, and the card of everybody who was placed."""
    (done,) = played(document)
    placed = [*done["nominations"], *done["bindings"]]
    cards = [one.get("card") for one in placed]
    return set(named(done["evictions"])), dict(zip(named(placed), cards, strict=True))


def on_card(snapshot: Snapshot) -> list[int]:
    return snapshot.tasks.card.tolist()


# -- the third story of "Preempt Action Support Topology" --------------------------------------------------------------


@every_policy
def test_one_of_two_on_different_cards_goes_and_its_card_is_the_one_that_is_promised(policy: str) -> None:
    gone, placed = first_cycle(carded(APART, waiting("c", "8Gi"), policy=policy))
    assert len(gone) == 1
    assert placed == {"c-0": {"a": "gpu-0", "b": "gpu-1"}[gone.pop()]}


@every_policy
def test_two_on_one_card_leave_the_other_to_who_needs_a_whole_one(policy: str) -> None:
    both = [("a", "4Gi", "gpu-0", 1), ("b", "4Gi", "gpu-0", 2)]
    assert first_cycle(carded(both, waiting("c", "8Gi"), policy=policy)) == (set(), {"c-0": "gpu-1"})


@every_policy
def test_two_on_one_card_go_together_where_the_other_card_is_not_to_be_had(policy: str) -> None:
    fixed = [("a", "4Gi", "gpu-0", 1), ("b", "4Gi", "gpu-0", 2), ("d", "8Gi", "gpu-1", 100)]
    assert first_cycle(carded(fixed, waiting("c", "8Gi"), policy=policy)) == ({"a", "b"}, {"c-0": "gpu-0"})


@every_policy
def test_half_of_each_card_is_no_whole_card_so_no_task_goes(policy: str) -> None:
    halves = [*APART, ("x", "4Gi", "gpu-0", 100), ("y", "4Gi", "gpu-1", 100)]
    assert first_cycle(carded(halves, waiting("c", "8Gi"), policy=policy)) == (set(), {})


@every_policy
def test_a_task_that_shares_a_card_with_protected_work_does_not_go_for_nothing(policy: str) -> None:
    mixed = [*APART, ("x", "4Gi", "gpu-0", 100), ("y", "4Gi", "gpu-1", 3)]
    assert first_cycle(carded(mixed, waiting("c", "8Gi"), policy=policy)) == ({"b", "y"}, {"c-0": "gpu-1"})


def test_a_task_that_is_added_again_returns_to_its_own_card() -> None:
    """The other way of the story: on the other card it would leave its own free, and nobody would have to go."""
    case = open_case(carded(APART, waiting("c", "8Gi")))
    names = {name: row for row, name in enumerate(case.names.tasks)}
    row, waits = names["default/a"], names["default/c-0"]

    here = on_node(case.snapshot, case.policy, waits)
    gone = np.flatnonzero(here.rows == row)
    for asked in (here, here.case):
        assert not stands(asked, NO_ROWS)
        assert stands(asked, gone)
    assert cards_without(here.case, gone).tolist() == [8 << 30, 4 << 30]
    assert still_needed(here, gone, gone).tolist() == gone.tolist()
    moved = open_case(carded([("a", "4Gi", "gpu-1", 1), APART[1]], waiting("c", "8Gi"))).snapshot
    assert stands(on_node(moved, case.policy, waits), NO_ROWS)


# -- gangs -------------------------------------------------------------------------------------------------------------


def quarter_full() -> list[dict[str, Any]]:
    """Two nodes, each card with 4 of 8: the first of each node to go makes a whole card."""
    spots = [(n, card) for n in ("n0", "n1") for card in ("gpu-0", "gpu-1")]
    return [holder(f"{n}-{card}", "4Gi", card, at, n) for at, (n, card) in enumerate(spots)]


@pytest.mark.parametrize(("tasks", "victims"), [(1, 1), (3, 3), (4, 4)])
@every_policy
def test_a_gang_takes_as_many_cards_as_it_has_tasks(tasks: int, victims: int, policy: str) -> None:
    document = carded(quarter_full(), waiting("c", "8Gi", tasks), policy=policy, nodes=[node("n0"), node("n1")])
    gone, placed = first_cycle(document)
    assert (len(gone), len(placed)) == (victims, tasks)
    assert None not in placed.values()


@every_policy
def test_a_gang_that_needs_more_cards_than_can_be_cleared_evicts_nothing(policy: str) -> None:
    document = carded(quarter_full(), waiting("c", "8Gi", 5), policy=policy, nodes=[node("n0"), node("n1")])
    assert first_cycle(document) == (set(), {})


def test_parts_of_several_sizes_are_packed_onto_the_cards_of_a_node() -> None:
    gang = waiting("c", "5Gi", 2)
    small = [{"name": f"s-{at}", "request": {"cpu": 1}, "card_request": "3Gi"} for at in range(2)]
    plain = [{"name": "driver", "request": {"cpu": 1}}]
    gang |= {"min_available": 5, "tasks": [*plain, *small, *gang["tasks"]]}
    gone, placed = first_cycle(carded(APART, gang))
    assert gone == {"a", "b"}
    assert placed.pop("driver") is None
    assert sorted(placed.items()) == [("c-0", "gpu-0"), ("c-1", "gpu-1"), ("s-0", "gpu-0"), ("s-1", "gpu-1")]


def test_the_plan_says_that_no_card_can_be_cleared() -> None:
    halves = [*APART, ("x", "4Gi", "gpu-0", 100), ("y", "4Gi", "gpu-1", 100)]
    case = open_case(carded(halves, waiting("c", "8Gi")))
    outcome = propose(Attempt(case.snapshot, case.policy, Purpose.PREEMPT, (4,), None, 0.0, "preempt"))
    assert isinstance(outcome, NoPlan)
    assert outcome.explanation.reason is Reason.CARDS


def test_a_card_that_is_too_small_makes_the_node_useless() -> None:
    document = carded(APART, waiting("c", "9Gi"))
    case = open_case(document)
    host = host_of(Attempt(case.snapshot, case.policy, Purpose.PREEMPT, (2,), None, 0.0, "preempt"))
    shape = case.snapshot.tasks.shape[case.names.tasks.index("default/c-0")]
    assert not host.allowed(np.array([shape])).any()
    assert first_cycle(document) == (set(), {})


def test_shapes_that_fit_the_same_cards_have_the_same_nodes() -> None:
    sizes = ("1Gi", "3Gi", "8Gi", "9Gi", "10Gi", None)
    gang = waiting("c", "8Gi", len(sizes))
    for one, size in zip(gang["tasks"], sizes, strict=True):
        one["card_request"] = size
        if size is None:
            del one["card_request"]
    case = open_case(carded(APART, gang))
    host = host_of(Attempt(case.snapshot, case.policy, Purpose.PREEMPT, (2,), None, 0.0, "preempt"))
    rows = [case.names.tasks.index(f"default/{one['name']}") for one in gang["tasks"]]
    shapes = case.snapshot.tasks.shape[rows].astype(np.int64)
    allowed, access = host.accesses(shapes)
    assert (len(set(shapes.tolist())), len(allowed)) == (6, 3)
    assert allowed[access].tolist() == host.allowed(shapes).tolist()


@pytest.mark.parametrize("policy", ["default", "volcano", "by task"])
def test_a_gang_with_a_required_rack_takes_the_cards_of_one(policy: str) -> None:
    document = carded(quarter_full(), waiting("c", "8Gi", 2, topology={"required": "rack"}), policy=policy)
    racks = [{"name": f"r{at}", "level": "rack", "nodes": [f"n{at}"]} for at in range(2)]
    document |= {"nodes": [node("n0"), node("n1")], "topology": {"levels": ["rack"], "domains": racks}}
    gone, placed = first_cycle(document)
    assert gone == {"n0-gpu-0", "n0-gpu-1"}
    assert sorted(placed.values()) == ["gpu-0", "gpu-1"]


@every_policy
def test_tasks_that_repel_each_other_take_cards_of_different_nodes(policy: str) -> None:
    gang = waiting("c", "8Gi", 2)
    for task in gang["tasks"]:
        apart = [{"topology_key": "kubernetes.io/hostname", "match_labels": {"app": "x"}}]
        task |= {"labels": {"app": "x"}, "pod_anti_affinity": apart}
    result = simulate(carded(quarter_full(), gang, policy=policy, nodes=[node("n0"), node("n1")]))
    (done,) = result["cycles"]
    assert len(done["evictions"]) == 2
    assert sorted(one["node"] for one in done["nominations"]) == ["n0", "n1"]


@pytest.mark.parametrize("policy", ["default", "volcano", {"profile": "volcano", "actions": ["allocate", "reclaim"]}])
def test_a_queue_that_deserves_more_reclaims_a_whole_card(policy: Any) -> None:
    elastic = [holder(*one) | {"min_available": 0} for one in APART]  # task by task, no gang is broken
    document = carded(elastic, waiting("c", "8Gi", queue="r"))
    document["policy"] = policy if isinstance(policy, dict) else {"profile": policy}
    document["queues"] = [{"name": "q", "deserved": {"cpu": 0}}, {"name": "r", "deserved": {"cpu": 8}}]
    gone, placed = first_cycle(document)
    assert len(gone) == 1
    assert placed == {"c-0": {"a": "gpu-0", "b": "gpu-1"}[gone.pop()]}


# -- which card --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cards", "expected"), [(None, "gpu-0"), ("binpack", "gpu-0"), ("spread", "gpu-1")])
def test_the_policy_chooses_between_the_fullest_and_the_emptiest_card(cards: str | None, expected: str) -> None:
    document = carded(APART[:1], waiting("c", "2Gi"))
    if cards is not None:
        document["policy"] = {"plugins": {"deviceshare": {"arguments": {"cards": cards}}}}
    assert first_cycle(document) == (set(), {"c-0": expected})


def on_one_node(amounts: list[int], free: Any, *, spread: bool) -> list[int]:
    return [
        int(card) for card in packed_on_cards(np.array(amounts), np.zeros(len(amounts), np.int64), free[None], spread)
    ]


def test_a_card_fills_up_and_equals_go_by_the_order_of_the_node() -> None:
    gib = np.array([8, 8, 2])
    assert [best_card(3, gib, spread) for spread in (False, True)] == [0, 0]
    assert best_card(9, gib, False) == NONE
    assert best_card(0, gib, False) == NONE
    assert on_one_node([3, 0, 5, 5, 3], gib, spread=False) == [0, NONE, 0, 1, 1]
    assert on_one_node([4, 4, 8], gib, spread=True) == [1, 1, 0]
    assert on_one_node([5, 0, 5, 5], gib, spread=False) == [NONE, NONE, NONE, NONE]
    assert on_one_node([1, 0], gib[:0], spread=True) == [NONE, NONE]
    assert slots_on_cards(3, np.array([[8, 8, 2], [-1, 3, 0]])).tolist() == [4, 1]


def test_spreading_gives_way_where_only_packing_fits() -> None:
    assert on_one_node([4, 3, 1], np.array([5, 3]), spread=True) == [0, 1, 0]
    assert on_one_node([5, 4, 4], np.array([8, 5]), spread=True) == [1, 0, 0]


def test_each_node_has_its_tasks_packed_by_themselves() -> None:
    free, at = np.array([[8, 8], [5, 3], [8, 5]]), np.array([2, 1, 0, 1, 2, 0, 2, 1, 0])
    amounts = np.array([5, 4, 9, 3, 4, 1, 4, 1, 0])
    assert packed_on_cards(amounts, at, free, True).tolist() == [1, 0, NONE, 1, 0, NONE, 0, 0, NONE]


def test_a_task_that_asks_for_a_card_alone_is_not_best_effort() -> None:
    """Backfill places what asks for nothing, wherever a pod is to spare."""
    alone = waiting("c", "8Gi")
    del alone["tasks"][0]["request"]
    assert first_cycle(carded([("d", "8Gi", "gpu-0", 100), ("e", "8Gi", "gpu-1", 100)], alone)) == (set(), {})
    assert first_cycle(carded([("d", "8Gi", "gpu-0", 100)], alone)) == (set(), {"c-0": "gpu-1"})


def test_a_node_without_cards_takes_no_task_that_asks_for_one() -> None:
    bare = {"name": "bare", "allocatable": {"cpu": 64, "pods": 9}}
    assert first_cycle(carded([], waiting("c", "1Gi", 17), nodes=[bare, node()])) == (set(), {})
    _, placed = first_cycle(carded([], waiting("c", "1Gi", 16), nodes=[bare, node()]))
    assert sorted(card or "" for card in placed.values()) == ["gpu-0"] * 8 + ["gpu-1"] * 8


# -- from promise to start, and judging --------------------------------------------------------------------------------


def test_a_promised_card_is_the_one_on_which_the_task_starts() -> None:
    result = simulate(carded(APART, waiting("c", "8Gi")), cycles=3)
    started = {one["task"]: one["card"] for one in result["cycles"][1]["bindings"]}
    # Its victim finds room beside the other one.
    assert started == {"default/c-0": "gpu-0", "default/a": "gpu-1"}
    held = {"status": "Running", "node": "n0", "nominated_node": None, "card": "gpu-0"}
    assert result["final"]["default/c-0"] == held
    assert result["cycles"][2] == {"evictions": [], "nominations": [], "bindings": []}


def proposed(document: dict[str, Any]) -> tuple[Any, Plan]:
    case = open_case(document)
    gang = case.names.podgroups.index("default/c")
    outcome = propose(Attempt(case.snapshot, case.policy, Purpose.PREEMPT, (gang,), None, 0.0, "preempt"))
    assert isinstance(outcome, Plan)
    return case, outcome


def test_a_plan_for_a_card_that_another_was_promised_meanwhile_conflicts() -> None:
    case, plan = proposed(carded(APART, waiting("c", "8Gi"), waiting("other", "2Gi", priority=60)))
    other = np.array([case.names.tasks.index("default/other-0")])
    card = plan.statement.nominated_card
    assert isinstance(judge(plan, case.snapshot, case.policy, 0.0), Accepted)
    elsewhere, there = (WhatIf.of(case.snapshot).nominating(other, np.array([0]), on).whole for on in (1 - card, card))
    assert isinstance(judge(plan, elsewhere, case.policy, 0.0), Accepted)
    assert isinstance(judge(plan, there, case.policy, 0.0), Conflict)


def test_a_victim_on_another_card_is_given_back_and_one_on_the_card_is_not() -> None:
    case, plan = proposed(carded(APART, waiting("c", "8Gi")))
    both = np.array([0, 1])
    verdict = judge(widened(plan, case.snapshot, both), case.snapshot, case.policy, 0.0)
    assert isinstance(verdict, Accepted)
    assert verdict.statement.evictions.tolist() == plan.statement.evictions.tolist()


def widened(plan: Plan, snapshot: Snapshot, victims: Any) -> Plan:
    """The plan with other victims."""
    return replace(
        plan,
        statement=replace(plan.statement, evictions=victims),
        assumes=replace(plan.assumes, incarnation=snapshot.tasks.incarnation[victims]),
    )


def test_a_substitute_for_a_victim_that_does_not_end_is_on_another_node_s_card() -> None:
    case, plan = proposed(carded(quarter_full(), waiting("c", "8Gi"), nodes=[node("n0"), node("n1")]))
    after = carried_out(plan.statement, case.snapshot, 0.0)
    waits, (victim,) = plan.statement.nominated, plan.statement.evictions.tolist()
    again = Attempt(after, case.policy, Purpose.PREEMPT, (plan.statement.preemptor,), None, 0.0, "preempt")
    made = substitute(again, waits, np.array([victim]), np.array([], int))
    assert made is not None
    assert made.statement.nominated_node.tolist() == [1 - after.tasks.node[victim]]
    (other,) = made.statement.evictions.tolist()
    assert made.statement.nominated_card.tolist() == [after.tasks.card[other]]
    assert isinstance(judge(made, after, case.policy, 0.0), Accepted)
    moving = replace(again, purpose=Purpose.CONSOLIDATE)
    assert substitute(moving, waits, np.array([victim]), np.array([], int)) is None


def test_cards_survive_a_checkpoint() -> None:
    snapshot = open_case(carded(APART, waiting("c", "8Gi"))).snapshot
    read = checkpoint.decode(encoded(snapshot))
    assert on_card(read) == [0, 1, NONE]
    assert read.vocabulary.card_sets[read.nodes.card_set[0]] == ("gpu-0", "gpu-1")
    assert read.card_room.idle.tolist() == [[4 << 30, 4 << 30]]
    assert encoded(read) == encoded(snapshot)


def test_who_is_placed_by_hand_gets_cards_that_victims_leave() -> None:
    snapshot = open_case(carded(APART, waiting("c", "8Gi"))).snapshot
    placed = np.array([2]), np.array([0])
    columns = snapshot.tasks, snapshot.shapes, snapshot.card_room, placed
    assert cards_for(*columns, np.array([1]), False).tolist() == [1]
    assert cards_for(*columns, NO_ROWS, False).tolist() == [NONE]
