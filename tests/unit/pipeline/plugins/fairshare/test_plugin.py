"""Fair shares down a tree of queues: what each gets, who is served first, and who may take from whom."""

from typing import Any

import numpy as np
import pytest

from actors.cli.simulate import open_case
from pipeline.cluster.arrays import UNLIMITED
from pipeline.cluster.what_if import WhatIf
from pipeline.placement.serving_order import in_serving_order
from pipeline.plugins.fairshare import shares
from pipeline.plugins.fairshare.plugin import FairShare
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import Purpose
from tests.support.fair_shares import GPU, file, group, queue
from tests.support.simulating import simulate
from tests.support.small_clusters import named, played


def host(*arguments: Any, **policy: Any) -> Host:
    case = open_case(file(*arguments, **policy))
    return Host(Context(case.snapshot, case.policy, case.now))


def gpu_shares(document: dict[str, Any]) -> dict[str, Any]:
    return {name: share[GPU] for name, share in simulate(document)["fair_share"].items()}


def bound(document: dict[str, Any]) -> list[str]:
    return named(played(document)[0]["bindings"])


def test_children_divide_what_their_parent_got():
    queues = [queue("a", 6), queue("b", 2), *(queue(name, 0, "a") for name in ("a1", "a2")), queue("b1", 0, "b")]
    groups = [group("one", "a1", waiting=9), group("two", "a2", waiting=9), group("three", "b1", waiting=9)]
    assert gpu_shares(file(queues, groups)) == {"a": 6, "b": 2, "a1": 3, "a2": 3, "b1": 2}


def test_cordoned_nodes_are_not_shared():
    """What runs on them counts as held all the same, so with nothing else nothing can be reclaimed."""
    queues = [queue("a", over_quota_weight=1), queue("b", over_quota_weight=1)]
    document = file(queues, [group("one", "a", running=4, waiting=9), group("two", "b", waiting=9)])
    assert gpu_shares(document) == {"a": 4, "b": 4}
    whole = document["nodes"][0]
    document["nodes"].append({**whole, "name": "n1"})
    assert gpu_shares(document) == {"a": 8, "b": 8}
    document["nodes"][1]["unschedulable"] = True
    assert gpu_shares(document) == {"a": 4, "b": 4}
    whole["unschedulable"] = True
    assert gpu_shares(document) == {"a": 0, "b": 0}


def test_nodes_that_are_closed_to_one_preemptor_are_shared():
    case = open_case(file([queue("a"), queue("b")], [group("one", "a", waiting=9), group("two", "b", waiting=9)]))
    shut = case.snapshot.closing(np.array([0]))
    assert not shut.nodes.schedulable.any()
    told = [Host(Context(state, case.policy, case.now)).fair_share() for state in (case.snapshot, shut)]
    assert told[0] is not None
    assert np.array_equal(*told)


def test_a_limit_bounds_the_share_and_the_rest_goes_to_others():
    queues = [queue("a", capability={GPU: 2}), queue("b")]
    assert gpu_shares(file(queues, [group("one", "a", waiting=9), group("two", "b", waiting=9)])) == {"a": 2, "b": 6}


def test_what_is_gated_does_not_ask_for_a_share():
    gated = group("one", "a", running=1, waiting=9)
    for task in gated["tasks"][1:]:
        task["scheduling_gated"] = True
    assert gpu_shares(file([queue("a"), queue("b")], [gated, group("two", "b", waiting=9)])) == {"a": 1, "b": 7}


def test_past_use_counts_against_a_queue_as_much_as_the_policy_says():
    queues = [queue("a", usage=0.5), queue("b")]
    document = file(queues, [group("one", "a", waiting=9), group("two", "b", waiting=9)], 12)
    assert gpu_shares(document) == {"a": 4, "b": 8}
    compiled = list(shares._divided_down.signatures)
    document["policy"]["plugins"] = {"fairshare": {"arguments": {"k": 0}}}
    assert gpu_shares(document) == {"a": 6, "b": 6}
    assert shares._divided_down.signatures == compiled, "a whole number had to wait for machine code of its own"


def test_an_eviction_changes_no_share():
    queues, groups = [queue("a"), queue("b")], [group("one", "a", running=6), group("two", "b", waiting=6)]
    before = host(queues, groups)
    snapshot = before.context.snapshot
    after = before.on(WhatIf.of(snapshot).evicting(np.flatnonzero(snapshot.tasks.node >= 0)[:3]).whole)
    assert before.fair_share() is not None
    assert np.array_equal(before.fair_share(), after.fair_share())


def test_no_queue_takes_more_than_the_limit_of_any_ancestor():
    queues = [queue("a", 8, capability={GPU: 3}), queue("a1", 8, "a")]
    assert len(bound(file(queues, [group("one", "a1", waiting=9)]))) == 3


def test_work_that_is_never_evicted_stays_within_what_every_ancestor_deserves():
    queues = [queue("a", 2), queue("a1", 4, "a")]
    assert len(bound(file(queues, [group("one", "a1", waiting=9, preemptible=False)]))) == 2
    assert len(bound(file(queues, [group("one", "a1", waiting=9)]))) == 8


def test_work_that_can_be_evicted_does_not_count_against_that_bound():
    queues, groups = [queue("a", 2)], [group("soft", "a", running=2), group("hard", "a", waiting=9, preemptible=False)]
    assert bound(file(queues, groups)) == ["hard-w0", "hard-w1"]
    assert host(queues, groups).lasting_headroom[0].tolist() == [UNLIMITED, UNLIMITED, UNLIMITED, 2]


def test_a_queue_within_what_it_deserves_is_served_before_one_that_is_not():
    queues = [queue("a", 1, created=1), queue("b", 2, created=2)]
    groups = [group("one", "a", running=1, waiting=1), group("two", "b", running=1, waiting=1)]
    assert bound(file(queues, groups, 3)) == ["two-w0"]


def test_whether_it_stays_within_depends_on_what_it_has_next():
    queues = [queue("a", 2, created=1), queue("b", 2, created=2)]
    groups = [group("big", "a", waiting=1, gpus=3), group("small", "b", waiting=1)]
    assert bound(file(queues, groups, 3)) == ["small-w0"]


def test_what_a_podgroup_asks_for_next_is_its_most_important_task():
    """It is within what its queue deserves; the other task, which comes first in the file, would not be."""
    queues = [queue("a", 2, created=2), queue("b", 2, created=1)]
    mixed = group("mixed", "a", waiting=2, min_available=1)
    for task, (gpus, priority) in zip(mixed["tasks"], ((3, 0), (1, 5)), strict=True):
        task["request"], task["priority"] = {**task["request"], GPU: gpus}, priority
    assert bound(file(queues, [mixed, group("other", "b", waiting=1, gpus=3)], 3)) == ["mixed-w1"]


@pytest.mark.parametrize(("deserved", "first"), [(1, "other-w0"), (2, "has-w0")])
def test_a_podgroup_that_has_its_minimum_asks_for_one_task_more(deserved: int, first: str):
    """With it the queue holds two, which is what it deserves or not; the other queue deserves what it asks for."""
    queues = [queue("a", deserved, priority=1), queue("b", 2)]
    groups = [group("has", "a", running=1, waiting=2), group("other", "b", running=1, waiting=1)]
    assert bound(file(queues, groups, 3)) == [first]


@pytest.mark.parametrize(("deserved", "first"), [(3, True), (2, False)])
def test_a_podgroup_does_not_ask_again_for_what_it_runs_and_was_promised(deserved: int, first: bool):
    """Of its minimum of three one runs, and one waits for another task to end."""
    ends = group("ends", "c", running=1)
    ends["tasks"][0] |= {"status": "Terminating", "gone_when_evicted": True}
    mine = group("mine", "a", running=1, waiting=4, min_available=3)
    mine["tasks"][1]["nominated_node"] = "n0"
    queues = [queue("a", deserved), queue("b", priority=1), queue("c")]
    cycle = played(file(queues, [mine, group("other", "b", waiting=1), ends], 3))[0]
    assert named(cycle["nominations"]) == (["mine-w0", "mine-w1"] if first else [])
    assert named(cycle["bindings"]) == ([] if first else ["other-w0"])


def test_queues_are_ranked_anew_once_their_first_podgroup_is_out_of_the_way():
    queues = [queue("a", 2, created=1), queue("b", 2, created=2)]
    groups = [
        group("a-first", "a", waiting=1, priority=2), group("a-big", "a", waiting=1, gpus=6),
        group("b-first", "b", waiting=1),
    ]  # fmt: skip
    asked = host(queues, groups)
    order = in_serving_order(asked, np.ones(3, bool))
    names = [groups[row]["name"] for (row,) in order]
    assert names == ["a-first", "b-first", "a-big"]


def test_each_turn_asks_about_the_next_podgroup_of_the_queue_alone_that_had_the_last_one(monkeypatch):
    names = [f"q{at}" for at in range(30)]
    groups = [group(f"{name}-{turn}", name, waiting=1, gpus=1 + turn) for name in names for turn in range(2)]
    told, plain = list[int](), FairShare._asked
    asked = host([queue(name, 2, created=at) for at, name in enumerate(names)], groups)
    anew = [*in_serving_order(asked, np.ones(len(groups), bool))]

    def spied(plugin: FairShare, podgroup: int) -> Any:
        told.append(podgroup)
        return plain(plugin, podgroup)

    monkeypatch.setattr(FairShare, "_asked", spied)
    other = Host(Context(asked.context.snapshot, asked.context.policy, asked.context.now))
    assert [*in_serving_order(other, np.ones(len(groups), bool))] == anew
    assert len(anew) == len(groups)
    assert sorted(told) == list(range(len(groups)))


def test_the_smaller_dominant_share_goes_first():
    queues = [queue("a", 4, created=1), queue("b", 4, created=2)]
    groups = [group("one", "a", running=2, waiting=1), group("two", "b", running=1, waiting=1)]
    assert bound(file(queues, groups, 4)) == ["two-w0"]


def test_a_podgroup_gets_its_minimum_before_another_gets_more_than_its_own():
    groups = [group("one", "a", waiting=4, created=1), group("two", "a", waiting=4, created=2)]
    assert bound(file([queue("a", 8)], groups, 5)) == ["one-w0", "two-w0", "one-w1", "two-w1", "one-w2"]


@pytest.mark.parametrize(("strategy", "node"), [("binpack", "n1"), ("spread", "n0")])
def test_devices_are_filled_or_spread_over(strategy, node):
    document = file([queue("a", 8)], [group("one", "a", waiting=1)], placement=strategy)
    document["nodes"].append({"name": "n1", "allocatable": {"cpu": 900, "memory": "900G", GPU: 2, "pods": 900}})
    document["podgroups"].append(group("held", "a", running=1))
    document["podgroups"][1]["tasks"][0]["node"] = "n1"
    assert played(document)[0]["bindings"][0]["node"] == node


def test_what_asks_for_no_device_prefers_a_node_without_any():
    document = file([queue("a", 8)], [group("one", "a", waiting=1, gpus=0)])
    document["nodes"].append({"name": "n1", "allocatable": {"cpu": 900, "memory": "900G", "pods": 900}})
    assert played(document)[0]["bindings"][0]["node"] == "n1"


def asking(asked: Host, gpus: int) -> Preemptor:
    snapshot = asked.context.snapshot
    waiting = int(snapshot.tasks.podgroup[np.flatnonzero(snapshot.tasks.node < 0)[0]])
    return Preemptor((waiting,), np.array([1000, 0, 1, gpus]), Purpose.RECLAIM)


def test_a_queue_may_reclaim_up_to_its_fair_share():
    asked = host([queue("a", 2), queue("b", 2)], [group("one", "a", running=4), group("two", "b", waiting=9)], 4)
    assert asked.preemptive(asking(asked, 2))
    assert not asked.preemptive(asking(asked, 3))


def test_victims_are_lawful_while_their_queue_holds_more_than_its_share_whatever_their_order():
    asked = host([queue("a", 2), queue("b", 2)], [group("one", "a", running=4), group("two", "b", waiting=9)], 4)
    rows = np.flatnonzero(asked.context.snapshot.tasks.node >= 0)
    assert asked.validate_set(asking(asked, 2), rows[:2])
    assert asked.validate_set(asking(asked, 2), rows[[1, 0]])
    assert not asked.validate_set(asking(asked, 2), rows[:3])


@pytest.mark.parametrize(("small", "large", "lawful"), [(2, 1, True), (1, 2, False)])
def test_the_youngest_of_several_podgroups_is_the_first_victim(small: int, large: int, lawful: bool):
    """The queue is above its share by two: it may lose the large one after the small one, and nothing after it."""
    held = [group("s", "a", running=1, created=small), group("l", "a", running=1, gpus=2, created=large)]
    rest = group("rest", "a", running=2, created=0)
    asked = host([queue("a", 3), queue("b", 2)], [*held, rest, group("two", "b", waiting=9)], 5)
    assert asked.validate_set(asking(asked, 1), np.array([0, 1])) is lawful


def test_the_minimum_of_a_gang_is_one_victim_and_its_surplus_goes_first():
    """Above its share by one: a whole gang may go at once, as upstream has it, and so may what is above its minimum."""
    queues, waits = [queue("a", 3), queue("b", 2)], group("two", "b", waiting=9)
    whole = host(queues, [group("one", "a", running=4, min_available=4), waits], 5)
    rows = np.flatnonzero(whole.context.snapshot.tasks.node >= 0)
    assert whole.validate_set(asking(whole, 2), rows)
    singles = host(queues, [group("one", "a", running=4, min_available=1), waits], 5)
    assert singles.validate_set(asking(singles, 2), rows[:1])
    assert not singles.validate_set(asking(singles, 2), rows)


def test_the_minima_of_subgroups_are_one_victim_together_and_their_surplus_goes_first():
    """Above its share by one: all that the subgroups need may go at once, also if the podgroup states no minimum."""
    queues, waits = [queue("a", 3), queue("b", 2)], group("two", "b", waiting=9)
    parts = [{"name": "s0", "min_available": 2}, {"name": "s1", "min_available": 2}]
    whole = group("one", "a", running=4, min_available=0, subgroups=parts)
    for at, task in enumerate(whole["tasks"]):
        task["subgroup"] = f"s{at % 2}"
    asked = host(queues, [whole, waits], 5)
    rows = np.flatnonzero(asked.context.snapshot.tasks.node >= 0)
    assert asked.validate_set(asking(asked, 2), rows)
    parts[1]["min_available"] = 1
    asked = host(queues, [whole, waits], 5)
    assert asked.validate_set(asking(asked, 2), rows[[1]])
    assert not asked.validate_set(asking(asked, 2), rows)


def test_a_podgroup_that_needs_some_of_its_subgroups_asks_for_no_more_of_them_in_its_turn():
    """One of two replicas is enough, and within what its queue deserves; so it is served before the other queue."""
    replicas = [{"name": f"s{at}", "min_available": 2} for at in range(2)]
    one = group("one", "a", waiting=4, min_available=0, subgroups=replicas, min_subgroups=1)
    for at, task in enumerate(one["tasks"]):
        task["subgroup"] = f"s{at // 2}"
    other = group("two", "b", waiting=1, gpus=2)
    document = file([queue("a", 2), queue("b", 0, priority=1)], [one, other], 2)
    assert bound(document) == ["one-w0", "one-w1"]


def test_a_podgroup_asks_in_its_turn_for_all_that_its_subgroups_lack():
    """One task would be within what its queue deserves, but it needs two; so the other queue is served."""
    two = group("two", "b", waiting=2, min_available=0, subgroups=[{"name": "s0"}, {"name": "s1"}])
    for at, task in enumerate(two["tasks"]):
        task["subgroup"] = f"s{at}"
    queues = [queue("a", 0, priority=1), queue("b", 1)]
    assert bound(file(queues, [group("one", "a", waiting=1), two], 2)) == ["one-w0"]


def test_a_limit_on_pods_makes_nothing_reclaimable():
    """Pods are not shared: who holds more of them than its limit, which was lowered, still keeps what it deserves."""
    queues = [queue("a", 1), queue("b", 2, capability={"pods": 1})]
    groups = [group("waits", "a", waiting=1), group("runs", "b", running=2, min_available=1)]
    assert played(file(queues, groups, 2, actions=["reclaim"]))[0]["evictions"] == []
    queues[1]["deserved"][GPU] = 1
    assert named(played(file(queues, groups, 2, actions=["reclaim"]))[0]["evictions"]) == ["runs-r1"]


def test_a_queue_with_a_limit_on_pods_loses_no_more_than_another():
    queues = [queue("a", 2), queue("b", 3, capability={"pods": 9})]
    asked = host(queues, [group("one", "a", waiting=2), group("two", "b", running=4)], 4)
    rows = np.flatnonzero(asked.context.snapshot.tasks.node >= 0)
    assert asked.validate_set(asking(asked, 1), rows[:1])
    assert not asked.validate_set(asking(asked, 1), rows[:2])
