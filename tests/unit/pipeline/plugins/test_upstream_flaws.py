"""One test for each flaw that Volcano is known for and that is not copied: the combination of votes is a true one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.cluster.arrays import frozen
from pipeline.cluster.tables import BOUND
from pipeline.cluster.what_if import WhatIf
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import ExtensionPoint, Purpose
from tests.support.builders import cluster, gang
from tests.support.editing import with_budget, with_tasks
from tests.support.simulating import simulate
from tests.support.small_clusters import played, racks, world
from tests.support.task_centric import policy

GPU = "nvidia.com/gpu"
#: Profile and action of each path: whole gangs and task by task, in the queue and across queues.
PATHS = [
    ("default", "preempt"), ("default", "reclaim"), ("volcano", "gangpreempt"), ("volcano", "gangreclaim"),
    ("volcano", "preempt"), ("volcano", "reclaim"),
]  # fmt: skip
every_path = pytest.mark.parametrize("path", PATHS, ids=" ".join)


def tasks(name: str, count: int, gpu: int = 1, **said: Any) -> list[dict[str, Any]]:
    return [{"name": f"{name}-{at}", "request": {GPU: gpu}, **said} for at in range(count)]


def running(name: str, count: int, node: str = "n0", **said: Any) -> list[dict[str, Any]]:
    return tasks(name, count, status="Running", node=node, **said)


def document(path: tuple[str, str], victim: dict[str, Any], preemptor: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Two nodes of four devices. The victim's queue deserves nothing, the preemptor's all there is."""
    profile, action = path
    policy = {"profile": profile, "actions": [action], **more.pop("policy", {})}
    nodes, due = {"n0": {GPU: 4}, "n1": {GPU: 4}}, {"rich": 0, "poor": 8}
    groups = [
        {"name": "victim", "queue": "rich", "min_available": 0, "phase": "Running", **victim},
        {"name": "preemptor", "queue": "poor" if "reclaim" in action else "rich", "priority": 9, "phase": "Inqueue",
         **preemptor},
    ]  # fmt: skip
    return world(nodes, {name: {"deserved": {GPU: gpus}} for name, gpus in due.items()}, groups, **policy) | more


def cycle_of(cluster_file: dict[str, Any]) -> dict[str, Any]:
    return played(cluster_file)[0]


def evicted(cluster_file: dict[str, Any]) -> int:
    return len(cycle_of(cluster_file)["evictions"])


# -- the combination of votes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("action", ["gangreclaim", "reclaim"])
def test_a_veto_of_a_later_tier_counts_although_an_earlier_tier_has_answered(action: str, later: bool) -> None:
    """Upstream's tier 1 (gang, conformance) permits, and so capacity in tier 2 is never asked (#5896)."""
    on = {"*": True}
    capacity = [{"name": "capacity", "enabled": on}]
    tiers = [[{"name": "gang", "enabled": on}, {"name": "conformance", "enabled": on}], capacity]
    file = document(
        ("volcano", action),
        {"tasks": running("v", 4) + running("w", 4, "n1")},
        {"min_available": 2, "tasks": tasks("p", 2)},
        policy={"tiers": tiers if later else tiers[::-1]},
    )
    assert evicted(file) == 2
    file["queues"][0] |= {"guarantee": {GPU: 8}, "deserved": {GPU: 8}}
    file["queues"][1] |= {"deserved": {GPU: 8}}
    assert evicted(file) == 0


def test_disjoint_votes_give_no_victim() -> None:
    """Upstream's empty intersection is filled again by the next plugin of the tier (#5963)."""
    state = cluster([{"cpu": 9}], [gang(1, 0, cpu=1, minimum=0), gang(1, 0, cpu=1, minimum=0), gang(1, cpu=1)])
    # Conformance spares the first, priority the second; gang comes last and would permit both.
    state = with_tasks(state, [0], critical=True)
    state = replace(state, podgroups=replace(state.podgroups, priority=frozen([0, 5, 1], np.int32)))
    plugins = ["conformance", "priority", "gang"]
    host, request = Host(Context(state, policy(plugins), 0.0)), state.shapes.request[0]
    assert not host.candidates(Preemptor((2,), request, Purpose.PREEMPT)).any()
    others, task = np.array([True, True, False]), Preemptor((2,), request, Purpose.PREEMPT, 2)
    assert not host.task_candidates(task, others, ExtensionPoint.PREEMPTABLE).any()


@pytest.mark.parametrize("listed", [["predicates"], ["priority"], ["proportion"], []])
def test_where_no_plugin_has_an_opinion_on_victims_no_task_goes(listed: list[str]) -> None:
    """In reclaim priority says nothing, in preempt proportion says nothing."""
    state = cluster(
        [{"cpu": 9}], [gang(1, 0, cpu=1, minimum=0), gang(1, cpu=1, priority=1, queue="priority" in listed)]
    )
    purpose = Purpose.RECLAIM if "priority" in listed else Purpose.PREEMPT
    host = Host(Context(state, policy(listed), 0.0))
    assert not host.candidates(Preemptor((1,), state.shapes.request[0], purpose)).any()
    entitled = ["capacity"] if purpose is Purpose.RECLAIM else []
    permitted = Host(Context(state, policy([*listed, "gang", *entitled]), 0.0))
    assert permitted.candidates(Preemptor((1,), state.shapes.request[0], purpose)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("plugin", "switch", "taken"),
    [
        ("drf", False, {}),
        ("drf", True, {"reclaim": 1}),
        ("capacity", False, {"reclaim": 1, "gangreclaim": 1}),
        ("proportion", False, {"reclaim": 1, "gangreclaim": 1}),
        ("fairshare", False, {"gangreclaim": 1}),
    ],
)
@pytest.mark.parametrize("action", ["gangreclaim", "reclaim"])
def test_no_queue_takes_from_another_where_no_plugin_says_what_queues_are_entitled_to(
    plugin: str, switch: bool, taken: dict[str, int], action: str
) -> None:
    """Else two queues would take the same node from each other in turn, without end."""
    asked: dict[str, Any] = {"*": True, **({} if plugin == "proportion" else {"hierarchy": switch})}
    tier = [{"name": name, "enabled": {"*": True}} for name in ("priority", "conformance", "predicates")]
    groups = [
        {"name": "a", "queue": "a", "min_available": 0, "phase": "Running", "tasks": running("a", 3)},
        {"name": "b", "queue": "b", "phase": "Inqueue", "tasks": tasks("b", 1)},
    ]
    queues = {"a": {"deserved": {GPU: 2}}, "b": {"deserved": {GPU: 1}}}
    policy = {"actions": ["allocate", action], "tiers": [[*tier, {"name": plugin, "enabled": asked}]]}
    done = played(world({"n0": {GPU: 3}}, queues, groups, profile="volcano", **policy), 4)
    assert sum(len(cycle["evictions"]) for cycle in done) == taken.get(action, 0)


@every_path
def test_a_task_without_labels_is_not_lost_to_a_disruption_budget(path: tuple[str, str]) -> None:
    """Upstream drops it from the victims, for it asks labels of it before it looks at any budget."""
    budget = {"name": "b", "match_labels": {"app": "x"}, "disruptions_allowed": 0}
    covered = running("x", 4, "n1", labels={"app": "x"})
    file = document(
        path,
        {"tasks": running("v", 4) + covered},
        {"min_available": 2, "tasks": tasks("p", 2)},
        policy={"plugins": {"pdb": {}}},
        disruption_budgets=[budget],
    )
    assert {eviction["task"][:9] for eviction in cycle_of(file)["evictions"]} == {"default/v"}


def test_a_budget_is_not_charged_for_who_it_refuses() -> None:
    """Two budgets cover the first candidate and one of them is used up: the other one is not charged in vain."""
    state = with_budget(cluster([{"cpu": 9}], [gang(3, 0, cpu=1, minimum=0), gang(1, cpu=1)]), [0, 1, 2], 1)
    host = Host(Context(state, policy(["pdb"]), 0.0))
    asked = Preemptor((1,), state.shapes.request[0], Purpose.PREEMPT)
    assert host.bundle_quota_filter(asked, np.array([2, 0, 1])).tolist() == [True, False, False]


# -- who may evict, and where ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "said_by"),
    [
        *((path, said_by) for path in PATHS for said_by in ("podgroup", "task")),
        # Task by task each task speaks for itself, and one that says nothing may preempt whatever its podgroup's class.
        *((path, "class") for path in PATHS[:4]),
    ],
)
def test_who_may_never_preempt_does_not_in_any_path(path: tuple[str, str], said_by: str) -> None:
    """Upstream's gang-aware actions do not look at the preemption policy (notes, 1.8)."""
    never = {"preemption_policy": "Never"}
    victim = {"tasks": running("v", 4) + running("w", 4, "n1")}
    file = document(path, victim, {"tasks": tasks("p", 1)})
    assert evicted(file) == 1
    waits = file["podgroups"][1]
    if said_by == "podgroup":
        waits |= never
    elif said_by == "task":
        waits["tasks"] = tasks("p", 1, **never)
    else:
        file["priority_classes"] = [{"name": "polite", "value": 9, **never}]
        waits["priority_class"] = "polite"
        del waits["priority"]
    assert evicted(file) == 0


@pytest.mark.parametrize("where", ["podgroup", "subgroup"])
def test_an_unknown_level_is_refused_instead_of_dropping_a_hard_constraint(where: str) -> None:
    """Upstream takes an unknown tier name for no constraint at all, and has a test that says so."""
    wanted = {"topology": {"required": "rak"}}
    gang_ = {"min_available": 2, "tasks": tasks("p", 2)} | (wanted if where == "podgroup" else {})
    if where == "subgroup":
        gang_ |= {"subgroups": [{"name": "s", "min_available": 1, **wanted}]}
    file = document(PATHS[0], {"tasks": []}, gang_)
    file["topology"] = racks(["n0", "n1"], each=2)
    error = simulate(file)["error"]
    assert error is not None
    assert "topology.required: expected the name of a level (rack)" in error
    assert '"rak"' in error


# -- how many go -------------------------------------------------------------------------------------------------------


@every_path
def test_no_more_go_than_are_needed(path: tuple[str, str]) -> None:
    """Upstream evicts a safe bundle of ten where one would do (#5984, #5994)."""
    victim = {"min_available": 0, "tasks": running("v", 4) + running("w", 4, "n1")}
    assert evicted(document(path, victim, {"tasks": tasks("p", 1)})) == 1


@every_path
def test_no_task_goes_where_idle_room_suffices(path: tuple[str, str]) -> None:
    """Upstream's gang-aware actions never try without victims (#5953)."""
    told = cycle_of(document(path, {"tasks": running("v", 4)}, {"min_available": 2, "tasks": tasks("p", 2)}))
    assert told["evictions"] == []
    assert {nomination["node"] for nomination in told["nominations"]} == {"n1"}


@every_path
def test_no_task_goes_where_room_is_coming_free(path: tuple[str, str]) -> None:
    leaving = tasks("w", 4, status="Terminating", node="n1")
    told = cycle_of(document(path, {"tasks": running("v", 4) + leaving}, {"min_available": 2, "tasks": tasks("p", 2)}))
    assert told["evictions"] == []
    assert {nomination["node"] for nomination in told["nominations"]} == {"n1"}


@every_path
def test_a_victim_on_a_node_that_does_not_help_stays(path: tuple[str, str]) -> None:
    """Upstream adds up what victims free all over the domain: fragments count as if they were one node (#5958)."""
    victim = {"tasks": running("v", 4) + running("w", 4, "n1")}
    evictions = cycle_of(document(path, victim, {"tasks": tasks("p", 1, 4)}))["evictions"]
    assert len(evictions) == 4
    assert len({eviction["task"][: len("default/v")] for eviction in evictions}) == 1


@pytest.mark.parametrize("action", ["gangpreempt", "preempt"])
def test_the_surplus_of_an_elastic_gang_evicts_nothing(action: str) -> None:
    """Upstream asks for all that waits, however little the minimum is."""
    victim = {"tasks": running("v", 4) + running("w", 4, "n1")}
    assert evicted(document(("volcano", action), victim, {"min_available": 2, "tasks": tasks("p", 6)})) == 2


# -- what is taken back ------------------------------------------------------------------------------------------------


def test_an_eviction_that_is_taken_back_leaves_the_status_as_it_was() -> None:
    """Upstream's unevict makes a Bound victim Running; here the what-if is a value, and the state never changed."""
    state = with_tasks(cluster([{"cpu": 9}], [gang(2, 0, cpu=1)]), [1], status=BOUND)
    before = state.tasks.status.tolist()
    gone = WhatIf.of(state).evicting(np.array([0, 1])).whole
    assert gone.tasks.status.tolist() != before
    assert state.tasks.status.tolist() == before
    assert state.counts.ready.tolist() == [2]


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_an_attempt_that_fails_leaves_no_eviction_and_no_nomination(path: tuple[str, str]) -> None:
    """Upstream writes nominations of simulations that failed (#5131), and keeps half of a plan that went wrong."""
    victim = {"tasks": running("v", 4) + running("w", 4, "n1", preemptible=False)}
    told = cycle_of(document(path, victim, {"min_available": 5, "tasks": tasks("p", 5)}))
    assert told == {"evictions": [], "nominations": [], "bindings": []}
