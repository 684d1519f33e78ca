"""What stands in the way: which plugin, queue or task, and by how much."""

import pytest

from actors.cli.simulated_words import in_words
from pipeline.decision.explanation import Reason
from tests.support.simulating import simulate

NODES = [{"name": f"n{at}", "allocatable": {"cpu": 8, "gpu": 8, "pods": 10}} for at in range(2)]


def job(name: str, gpu: int, node: str | None = None, **more: object) -> dict[str, object]:
    placed = {"status": "Running", "node": node} if node else {}
    return {"name": name, "queue": "a", "tasks": [{"name": name, "request": {"gpu": gpu}, **placed}]} | more


def told(*podgroups: dict[str, object], **more: object) -> dict[str, list[dict[str, object]]]:
    """The obstacles of each action of podgroup ``want``, and that all of them can be said."""
    queues = [{"name": name, "deserved": {"gpu": 8}} for name in ("a", "b")]
    document = {"version": 1, "now": 1000, "nodes": NODES, "queues": queues, "podgroups": podgroups, **more}
    result = simulate(document, explain=True)
    assert result["error"] is None
    assert "default/want is Unschedulable" in in_words(result)
    return {one["action"]: one["obstacles"] for one in result["explain"]["podgroups"]["default/want"]["attempts"]}


def test_a_queue_that_has_its_share_is_named_with_plugin_and_amounts() -> None:
    found = told(job("mine", 8, "n0"), job("want", 4, priority=0), job("other", 8, "n1", queue="b"))
    (why,) = found["reclaim"]
    assert why == {
        "cause": "the queue may not take more", "queue": "a", "plugin": "capacity", "what": "gpu", "wanted": 12.0,
        "found": 8.0, "passes": True,
    }  # fmt: skip


def test_where_no_queue_states_a_share_a_reclaim_is_told_that_its_queue_deserves_nothing() -> None:
    queues = [{"name": "a"}, {"name": "b"}]
    theirs = [job(f"theirs{at}", 8, f"n{at}", queue="b") for at in range(2)]
    found = told(*theirs, job("want", 8), queues=queues)
    assert found["reclaim"] == [{"cause": "the queue may not take more", "queue": "a"}]


def test_a_queue_without_any_quota_of_what_is_asked_for_is_told_to_state_one() -> None:
    queues = [{"name": "a"}, {"name": "b", "deserved": {"gpu": 8}}]
    theirs = [job(f"theirs{at}", 4, f"n{at}", queue="b") for at in range(2)]
    found = told(*theirs, job("want", 8), queues=queues, policy={"profile": "koordinator"})["reclaim"]
    assert {"cause": "the queue may not take more", "queue": "a", "plugin": "elasticquota"} in found


def test_the_size_of_the_cluster_is_not_laid_to_the_shares_of_others_where_an_ancestor_has_all_of_it() -> None:
    queues = [
        {"name": "top", "deserved": {"gpu": 16}},
        *({"name": name, "deserved": {"gpu": 16}, "parent": "top"} for name in ("a", "b")),
    ]
    theirs = [job(f"theirs{at}", 8, f"n{at}", queue="b") for at in range(2)]
    found = told(*theirs, job("want", 8), queues=queues, policy={"profile": "koordinator"})["preempt"]
    assert [one["cause"] for one in found] == ["in other queues"]


def test_a_share_of_nothing_that_is_stated_is_told_beside_others() -> None:
    queues = [{"name": "a", "deserved": {"gpu": 0, "cpu": 1}}, {"name": "b", "deserved": {"gpu": 8}}]
    want = job("want", 8)
    want["tasks"] = [{"name": "want", "request": {"gpu": 8, "cpu": 2}}]
    found = told(*(job(f"theirs{at}", 8, f"n{at}", queue="b") for at in range(2)), want, queues=queues)
    amounts = [(one["what"], one["wanted"], one["found"]) for one in found["reclaim"]]
    assert amounts == [("cpu", 2.0, 1.0), ("gpu", 8.0, 0.0)]


@pytest.mark.parametrize(
    ("profile", "stated"), [("kai", {"deserved": {"gpu": 4}}), ("kai", {}), ("koordinator", {"deserved": {"gpu": 4}})]
)
def test_a_queue_that_deserves_too_little_for_work_that_stays_is_not_said_to_deserve_nothing(
    profile: str, stated: dict[str, object]
) -> None:
    queues = [{"name": "a", **stated}, {"name": "b", "deserved": {"gpu": 4}}]
    theirs = [job(f"theirs{at}", 8, f"n{at}", queue="b") for at in range(2)]
    found = told(*theirs, job("want", 6, preemptible=False), queues=queues, policy={"profile": profile})
    assert all("what" in one for one in found["reclaim"])
    assert found["reclaim"][0] | {"plugin": ""} == {
        "cause": "the queue may not hold more that can never be evicted", "queue": "a", "plugin": "", "what": "gpu",
        "wanted": 6.0, "found": 4.0 if stated else 0.0,
    }  # fmt: skip


@pytest.mark.parametrize("profile", ["default", "kai", "koordinator"])
def test_the_queue_whose_ceiling_binds_is_named_and_not_one_below_it(profile: str) -> None:
    queues = [
        {"name": "top", "capability": {"gpu": 8}, "deserved": {"gpu": 16}},
        {"name": "a", "deserved": {"gpu": 16}, "parent": "top"},
    ]
    low = [job(f"low{at}", 2, f"n{at}") for at in range(2)]
    want = job("want", 6, priority=5, min_available=2)
    want["tasks"] = [{"name": f"want{at}", "request": {"gpu": 6}} for at in range(2)]
    (why, *_) = told(*low, want, queues=queues, policy={"profile": profile})["preempt"]
    assert (why["cause"], why["queue"]) == ("the queue may not hold more", "top")
    assert (why["what"], why["wanted"], why["found"]) == ("gpu", 12.0, 8.0)


def test_every_limit_that_leaves_too_little_is_told_though_one_is_exceeded() -> None:
    queues = [{"name": "top", "capability": {"gpu": 2}}, {"name": "a", "capability": {"gpu": 7}, "parent": "top"}]
    found = told(job("mine", 4, "n0", priority=9), job("want", 6, priority=5), queues=queues)["preempt"]
    limits = [one for one in found if one["cause"] == "the queue may not hold more"]
    assert [(one["queue"], one["wanted"], one["found"]) for one in limits] == [("a", 6.0, 3.0), ("top", 6.0, -2.0)]


def test_a_queue_that_is_kept_from_what_others_are_guaranteed_is_not_told_of_a_ceiling_of_its_own() -> None:
    queues = [{"name": "a"}, {"name": "b", "guarantee": {"gpu": 12}}]
    (why, *_) = told(job("low", 4, "n0"), job("want", 8, priority=5), queues=queues)["preempt"]
    assert (why["cause"], why["queue"]) == ("the shares of other queues leave no more", "a")
    assert (why["what"], why["wanted"], why["found"]) == ("gpu", 8.0, 4.0)


def test_work_that_stays_is_told_of_the_ancestor_that_deserves_too_little() -> None:
    queues = [{"name": "top", "deserved": {"gpu": 4}}, {"name": "a", "deserved": {"gpu": 16}, "parent": "top"}]
    want = job("want", 8, priority=5, preemptible=False)
    (why, *_) = told(job("low", 4, "n0"), want, queues=queues, policy={"profile": "kai"})["preempt"]
    assert (why["cause"], why["queue"]) == ("the queue may not hold more that can never be evicted", "top")


def test_a_queue_that_states_more_than_there_is_is_not_told_to_state_still_more() -> None:
    queues = [{"name": "a", "deserved": {"gpu": 99}}, {"name": "b", "deserved": {"gpu": 1}}]
    mine, theirs = job("mine", 8, "n0"), job("theirs", 8, "n1", queue="b")
    found = told(mine, theirs, job("want", 16), queues=queues, policy={"profile": "volcano"})["gangreclaim"]
    assert found[-1] == {
        "cause": "the queue cannot deserve more", "queue": "a", "plugin": "capacity", "what": "gpu", "wanted": 24.0,
        "found": 16.0, "passes": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "cause"), [({"priority": 9}, "not of lower priority"), ({"preemptible": False}, "not preemptible")]
)
def test_running_tasks_that_stay_are_counted_by_the_first_cause(more: dict[str, object], cause: str) -> None:
    found = told(*(job(f"low{at}", 8, f"n{at}", **more) for at in range(2)), job("want", 8, priority=5))
    assert {"cause": cause, "found": 2.0} in found["preempt"]


def test_a_podgroup_that_drf_keeps_as_rich_is_not_told_of_what_queues_deserve() -> None:
    tier = [
        {"name": "drf", "enabled": {"*": True, "hierarchy": False}},
        {"name": "gang", "enabled": {"*": True, "preemptable": False}},
    ]
    found = told(
        *(job(f"equal{at}", 4, f"n{at}") for at in range(2)), job("want", 8),
        policy={"profile": "volcano", "actions": ["preempt"], "tiers": [tier]},
    )["preempt"]  # fmt: skip
    poorer = "their holders would have the smaller share"
    assert {"cause": poorer, "plugin": "drf", "found": 2.0} in found
    assert not any("queue" in one for one in found)


def test_each_task_that_stays_counts_once_and_not_for_its_priority_if_it_would_stay_with_a_lower_one() -> None:
    mixed = job("mixed", 1, "n0")
    mixed["tasks"] = [
        {"name": f"mixed{at}", "request": {"gpu": 1}, "status": "Running", "node": "n0", "preemptible": at > 0}
        for at in range(3)
    ]
    found = told(
        mixed, job("firm", 1, "n0", preemptible=False), job("high", 3, "n0", priority=9, preemptible=False),
        job("higher", 1, "n0", priority=9),
        job("other", 8, "n1", queue="b", priority=9, preemptible=False), job("want", 8, priority=5),
    )["preempt"]  # fmt: skip
    causes = ("in other queues", "not of lower priority", "not preemptible")
    assert [(one["cause"], one["found"]) for one in found if one["cause"] in causes] == [
        ("in other queues", 1.0), ("not preemptible", 3.0), ("not of lower priority", 1.0),
    ]  # fmt: skip


def test_a_task_that_no_node_can_hold_is_named() -> None:
    found = told(job("low", 8, "n0"), job("want", 16, priority=5))
    assert {
        "cause": "no node is large enough for the task", "task": "default/want", "what": "gpu", "wanted": 16.0,
        "found": 8.0,
    } in found["preempt"]  # fmt: skip


def test_a_task_that_no_node_admits_is_named() -> None:
    want = job("want", 8, priority=5)
    want["tasks"][0]["node_selector"] = {"zone": "x"}  # type: ignore[index]
    assert {"cause": "no node admits the task", "task": "default/want", "wanted": 1.0, "found": 0.0} in told(want)[
        "preempt"
    ]


APART = {
    "labels": {"app": "want"},
    "pod_anti_affinity": [{"topology_key": "kubernetes.io/hostname", "match_labels": {"app": "want"}}],
}


@pytest.mark.parametrize("more", [{}, APART])
def test_a_subgroup_that_no_rack_has_room_for_is_named_whatever_else_binds_it(more: dict[str, object]) -> None:
    racks = [{"name": f"r{at}", "level": "rack", "nodes": [f"n{at}"]} for at in range(2)]
    want = job("want", 3, priority=5, min_available=2)
    want["subgroups"] = [{"name": "part", "min_available": 2, "topology": {"required": "rack"}}]
    want["tasks"] = [{"name": f"want{at}", "request": {"gpu": 3}, "subgroup": "part", **more} for at in range(2)]
    firm = [job(f"firm{at}", 5, f"n{at}", preemptible=False) for at in range(2)]
    found = told(*firm, want, topology={"levels": ["rack"], "domains": racks})
    torn = found["preempt"][0]
    assert (torn["cause"], torn["podgroup"]) == ("a required level of a part cannot be kept", "default/want")
    assert (torn["what"], torn["wanted"]) == ("rack", 2.0)


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_the_queue_that_would_hold_too_little_is_named_with_what_it_deserves_and_not_one_below_it(profile: str) -> None:
    queues = [
        {"name": "a", "deserved": {"gpu": 8}},
        {"name": "side", "deserved": {"gpu": 16}},
        {"name": "b", "deserved": {"gpu": 4}, "parent": "side"},
    ]
    theirs = [job(f"theirs{at}", 8, f"n{at}", queue="b") for at in range(2)]
    found = told(*theirs, job("want", 8), queues=queues, policy={"profile": profile})["reclaim"]
    plugin = "capacity" if profile == "default" else "fairshare"
    assert {
        "cause": "their queues may not spare them", "plugin": plugin, "queue": "side", "what": "gpu", "wanted": 16.0,
        "found": 2.0,
    } in found  # fmt: skip


def test_an_ancestor_that_a_gang_would_take_too_much_from_as_a_whole_is_named() -> None:
    queues = [
        {"name": "top", "deserved": {"gpu": 12}},
        {"name": "a", "deserved": {"gpu": 4}, "parent": "top"},
        {"name": "c", "parent": "top"},
    ]
    gang = job("gang", 8, queue="c", min_available=2)
    gang["tasks"] = [
        {"name": f"gang{at}", "request": {"gpu": 8}, "status": "Running", "node": f"n{at}"} for at in range(2)
    ]
    found = told(gang, job("want", 4), queues=queues)["reclaim"]
    assert {
        "cause": "their queues may not spare them", "plugin": "capacity", "queue": "top", "what": "gpu",
        "wanted": 12.0, "found": 1.0,
    } in found  # fmt: skip


def test_tasks_that_a_share_of_cores_keeps_are_counted_as_tasks() -> None:
    queues = [{"name": "a", "deserved": {"cpu": 8}}, {"name": "b", "deserved": {"cpu": 16}}]
    asks = {"name": "one", "request": {"cpu": 8}}
    runs = [asks | {"name": name, "status": "Running", "node": name} for name in ("n0", "n1")]
    theirs, mine = job("theirs", 0, queue="b", min_available=0, tasks=runs), job("want", 0, tasks=[asks])
    (kept,) = (one for one in told(theirs, mine, queues=queues)["reclaim"] if one["queue"] == "b")
    assert (kept["what"], kept["wanted"], kept["found"]) == ("cpu", 16.0, 2.0)


def test_minima_that_a_minimum_runtime_keeps_are_told_with_what_changes_that() -> None:
    queues = [{"name": "a", "preempt_min_runtime": 600}]
    young = job("young", 8, min_available=1, started=990)
    young["tasks"] = [
        {"name": f"young{at}", "request": {"gpu": 8}, "status": "Running", "node": f"n{at}"} for at in range(2)
    ]
    want = job("want", 8, priority=5, min_available=2)
    want["tasks"] = [{"name": f"want{at}", "request": {"gpu": 8}} for at in range(2)]
    found = told(young, want, queues=queues, policy={"profile": "kai"})["preempt"]
    assert {"cause": "minima within their minimum runtime", "plugin": "minruntime", "found": 2.0} in found


def test_all_candidates_that_a_budget_covers_are_counted_against_what_it_lets_go() -> None:
    mixed = job("low", 8)
    mixed["tasks"] = [
        {"name": f"low{at}", "request": {"gpu": 4}, "labels": {"app": "x"}, "status": "Running", "node": f"n{at // 2}"}
        for at in range(4)
    ]
    budget = {"name": "keep", "namespace": "default", "match_labels": {"app": "x"}, "disruptions_allowed": 1}
    found = told(mixed, job("want", 8, priority=5), disruption_budgets=[budget], policy={"profile": "koordinator"})
    assert {
        "cause": "a disruption budget protects them", "plugin": "pdb", "budget": "default/keep", "wanted": 4.0,
        "found": 1.0,
    } in found["preempt"]  # fmt: skip


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_tasks_of_several_shapes_that_leave_each_other_too_few_places_are_not_laid_to_what_does_not_bind_them(
    profile: str,
) -> None:
    want = job("want", 8, priority=5, min_available=2)
    want["tasks"] = [{"name": f"want{at}", "request": {"gpu": 8 - at}} for at in range(2)]
    document = {
        "version": 1, "now": 1000, "nodes": NODES, "queues": [{"name": "a", "deserved": {"gpu": 99}}],
        "podgroups": [job("firm", 3, "n0", preemptible=False), job("low", 3, "n1"), want],
        "policy": {"profile": profile},
    }  # fmt: skip
    result = simulate(document, explain=True)
    attempts = result["explain"]["podgroups"]["default/want"]["attempts"]
    (preempt,) = (one for one in attempts if one["action"] == "preempt")
    assert preempt["reason"] == Reason.SHAPES
    assert preempt["obstacles"][0]["cause"] == "tasks of several shapes want the same room"


@pytest.mark.parametrize("profile", ["kai", "koordinator"])
@pytest.mark.parametrize("bound", ["level", "anti-affinity"])
def test_what_binds_tasks_is_not_named_where_they_have_places_and_only_the_law_refuses(
    profile: str, bound: str
) -> None:
    racks = [{"name": f"r{at}", "level": "rack", "nodes": [f"n{at}"]} for at in range(2)]
    want = job("want", 8)
    want["tasks"] = [{"name": "want", "request": {"gpu": 8}, "subgroup": "part", **(APART if bound != "level" else {})}]
    level = {"topology": {"required": "rack"}} if bound == "level" else {}
    want["subgroups"] = [{"name": "part", "min_available": 1, **level}]
    queues = [{"name": "a", "deserved": {"gpu": 8}}, {"name": "b", "deserved": {"gpu": 16}}]
    theirs = [job(f"theirs{at}", 8, f"n{at}", queue="b") for at in range(2)]
    found = told(
        *theirs, want, queues=queues, policy={"profile": profile}, topology={"levels": ["rack"], "domains": racks}
    )
    causes = [one["cause"] for one in found["reclaim"]]
    assert "their queues may not spare them" in causes
    assert not {"a required level of a part cannot be kept", "anti-affinity keeps tasks apart"} & {*causes}


def test_who_may_not_preempt_and_who_must_wait_are_told() -> None:
    low = [job(f"low{at}", 8, f"n{at}") for at in range(2)]
    (never,) = told(*low, job("want", 8, priority=5, preemption_policy="Never"))["preempt"]
    assert (never["cause"], never["task"]) == ("the task may not preempt", "default/want")
    (delay,) = told(*low, job("want", 8, priority=5, created=990, preemption_delay=60))["preempt"]
    assert (delay["cause"], delay["wanted"], delay["found"]) == ("the delay is not over", 1050.0, 1000.0)


def test_a_queue_that_may_lose_a_task_and_not_all_of_them_is_named_under_kai() -> None:
    queues = [{"name": name, "deserved": {"gpu": gpu}} for name, gpu in (("a", 5), ("b", 7), ("c", 4))]
    queues[2]["reclaimable"] = False
    nodes = [{"name": f"n{at}", "allocatable": {"cpu": 8, "gpu": gpu, "pods": 10}} for at, gpu in enumerate((9, 7))]
    theirs = [*(job(f"b{at}", 3, "n0", queue="b") for at in range(3)), job("c", 7, "n1", queue="c")]
    found = told(*theirs, job("want", 5), queues=queues, nodes=nodes, policy={"profile": "kai"})["reclaim"]
    assert {
        "cause": "not lawful together", "plugin": "fairshare", "queue": "b", "what": "gpu", "wanted": 7.0, "found": 3.0,
    } in found  # fmt: skip
