"""The audit finds what must never happen; each rule is broken once here."""

from dataclasses import replace
from typing import Any

import pytest

from actors.broker.bus import DECISIONS, EVENTS, Entry
from actors.cluster_file.documents import PodgroupDocument, TaskDocument
from actors.configuration.profiles import load_profile
from actors.protocol.bodies import (
    Binding,
    Eviction,
    FleetListed,
    NodeRemoved,
    Nomination,
    PlanCommitted,
    PlanWithdrawn,
    TaskEnded,
    TaskStarted,
    TaskUpserted,
)
from actors.protocol.envelopes import Message, Outgoing, pack, pack_decision
from actors.verification.audit import Audit, audited
from tests.support.assembly import Assembly, gang, rack_cluster, restarting


def heard(*said: Any) -> Audit:
    """An audit of a list, then bodies: low tasks on nodes 0 to 3, a pair that waits, and podgroups given here."""
    bodies = [one for one in said if not isinstance(one, dict)]
    whole = rack_cluster()
    whole["podgroups"] = [
        *(one for one in said if isinstance(one, dict)),
        *(gang(f"low{at}", 1, 8, nodes=[f"n{at}"], preemptible=at != 3) for at in range(4)),
        gang("other", 1, 8, nodes=["n4"], queue="b"),
        gang("pair", 2, 8, priority=5, topology={"required": "rack"}),
    ]
    audit = Audit()
    listed = FleetListed(list_id="l", part=0, parts=1, cluster=whole)
    for at, body in enumerate([listed, *bodies]):
        kind = {PlanCommitted: "plan_committed", PlanWithdrawn: "plan_withdrawn"}.get(type(body), "event")
        uid = body.plan_id if isinstance(body, PlanCommitted | PlanWithdrawn) else "x"
        audit.hear(Message(kind, uid, at, body, f"{at}-0", 0), at)
    return audit


def plan(evicts: tuple[str, ...] = (), places: tuple[str, ...] = (), name: str = "p", **more: Any) -> PlanCommitted:
    """A preemption for the pair: ``places`` are the nodes of its tasks, in order."""
    said: dict[str, Any] = {"plan_id": name, "epoch": 1, "action": "preempt", "purpose": "preempt"}
    said["preemptor"] = "default/pair"
    said["evictions"] = tuple(Eviction(task=f"default/{one}-0", incarnation=0) for one in evicts)
    said["nominations"] = tuple(Nomination(task=f"default/pair-{at}", node=node) for at, node in enumerate(places))
    return PlanCommitted(**said | more)


GOOD = plan(("low0", "low1"), ("n0", "n1"))


def test_a_decision_that_keeps_every_rule_is_counted() -> None:
    report = heard(GOOD).report
    assert (report.broken, report.victims, report.gangs_broken) == ([], 2, 0)
    assert report.ratio("gpu") == 1.0


def test_a_node_that_was_lost_while_a_plan_was_judged_is_no_other_domain() -> None:
    assert heard(NodeRemoved(node="n1"), GOOD).report.broken == []


def test_a_decision_that_cannot_be_read_breaks_a_rule() -> None:
    report = audited([], [Entry(DECISIONS, "7-0", {"batch": b"of a later version"})])
    assert len(report.broken) == 1
    assert report.broken[0].startswith("decision 7-0: cannot be read: batch")


@pytest.mark.parametrize(
    ("bodies", "complaint"),
    [
        ((plan(("low0",)),), "evicts and places nothing"),
        ((plan(("low0",), ("n0",)),), "gets 1 of its minimum of 2"),
        ((plan(("low0",), ("n0", "n1")),), "node n1 will have"),
        ((plan(("low0", "low3"), ("n0", "n3")),), "low3-0, which is protected"),
        ((plan(("low0", "other"), ("n0", "n4")),), "of queue b"),
        ((plan(("low0", "low1"), ("n0", "n1"), purpose="reclaim"),), "from the queue that reclaims"),
        ((plan((), ("n5", "n0")),), "lies in 2 domains of level rack"),
        ((GOOD, GOOD), "was recorded twice"),
        ((GOOD, plan(("low0", "low2"), ("n0", "n2"), name="q")), "as plan p did"),
        ((GOOD, plan((), ("n5", "n6"), name="q", epoch=0)), "was recorded under lease 0 after lease 1"),
        ((PlanWithdrawn(plan_id="q", epoch=1, reason="x"),), "was never recorded"),
        (
            (plan((), (), bindings=tuple(Binding(task=f"default/pair-{at}", node=f"n{at}") for at in range(2))),),
            "node n0 has",
        ),
    ],
)
def test_a_broken_rule_is_named(bodies: tuple[Any, ...], complaint: str) -> None:
    assert any(complaint in sentence for sentence in heard(*bodies).report.broken)


WIDE = gang("wide", 3, 8, nodes=["n5", "n6", "n7"])
OF_WIDE = (Eviction(task="default/wide-0", incarnation=0),)
ROLES = gang("roles", 3, 8, roles={"worker": {"min": 1}, "chief": {"min": 1}}) | {"min_available": 2}
for task, role in zip(ROLES["tasks"], ("worker", "worker", "chief"), strict=True):
    task["role"] = role


@pytest.mark.parametrize(
    ("podgroup", "made", "complaint"),
    [
        (WIDE, plan(evictions=OF_WIDE, preemptor=None, purpose="clear"), "clears default/wide, which has its minimum"),
        (
            WIDE,
            plan((), ("n5", "n6"), nominations=(Nomination(task="default/wide-0", node="n4"),)),
            "places default/wide-0, which is running",
        ),
        (
            WIDE | {"priority": 5},
            plan((), ("n5", "n6"), evictions=OF_WIDE),
            "preempts default/wide-0 of queue a and priority 5 for default/pair of queue a and priority 5",
        ),
        (
            ROLES,
            plan(
                preemptor="default/roles",
                nominations=tuple(Nomination(task=f"default/roles-{at}", node=f"n{5 + at}") for at in range(2)),
            ),
            "role chief of default/roles gets 0 of 1",
        ),
        (WIDE, plan(evictions=OF_WIDE, replaces="q"), "plan q: is replaced and was never recorded"),
    ],
)
def test_a_rule_that_is_broken_for_a_podgroup_is_named(
    podgroup: dict[str, Any], made: PlanCommitted, complaint: str
) -> None:
    assert any(complaint in sentence for sentence in heard(podgroup, made).report.broken)


def test_a_gang_that_falls_below_its_minimum_is_counted_once() -> None:
    victims = tuple(Eviction(task=f"default/wide-{at}", incarnation=0) for at in range(2))
    assert heard(plan((), ("n5", "n6"), evictions=victims), WIDE).report.gangs_broken == 1


def test_how_long_a_gang_waits_is_known_although_a_full_list_came_meanwhile() -> None:
    late = gang("late", 2, 8, priority=5)
    whole = rack_cluster() | {"podgroups": [late]}
    listed = FleetListed(list_id="m", part=0, parts=1, cluster=whole)
    nominations = tuple(Nomination(task=f"default/late-{at}", node=f"n{at}") for at in range(2))
    placed = plan(name="late", preemptor="default/late", nominations=nominations, action="allocate", purpose="allocate")
    report = heard(PodgroupDocument.model_validate(late), listed, placed).report
    assert (report.broken, report.waited_ms) == ([], {"default/late": 2})


def test_a_list_that_is_no_newer_than_the_last_changes_nothing() -> None:
    audit = heard()
    listed = FleetListed(list_id="old", part=0, parts=1, cluster={"version": 1, "queues": [{"name": "q"}]})
    audit.hear(Message("event", "x", 0, listed, "1-0", 0), 1)
    audit.hear(Message("plan_committed", "p", 2, GOOD, "2-0", 0), 2)
    assert (audit.report.broken, audit.report.victims) == ([], 2)


def test_a_number_that_comes_again_is_noticed() -> None:
    audit = heard(GOOD)
    audit.hear(Message("plan_committed", "q", 1, plan((), ("n5", "n6"), name="q"), "9-0", 0), 9)
    assert any("has number 1 after 1" in sentence for sentence in audit.report.broken)


def test_a_victim_that_ended_by_itself_is_no_victim() -> None:
    ended = TaskEnded(task="default/low0-0", outcome="Succeeded")
    assert heard(ended, GOOD).report.victims == 1


def test_room_of_a_withdrawn_plan_is_free_again() -> None:
    withdrawn = PlanWithdrawn(plan_id="p", epoch=1, reason="not started in time: x")
    audit = heard(plan((), ("n5", "n6")), withdrawn, plan((), ("n5", "n6"), name="q"))
    assert (audit.report.broken, audit.report.withdrawn["not started in time"]) == ([], 1)


def halves() -> Assembly:
    """Two nodes, each half full of a task that may move, and a task that waits for a whole node, under `kai`."""
    cluster = rack_cluster(racks=1, nodes=2)
    cluster["podgroups"] = [restarting(gang(f"low{at}", 1, 4, nodes=[f"n{at}"], preemptible=True)) for at in range(2)]
    for queue in cluster["queues"]:
        queue["deserved"] |= {"cpu": "unlimited", "memory": "unlimited"}
    assembly = Assembly(cluster, policy=load_profile("kai"))
    assembly.hear()
    assembly.submit(gang("whole", 1, 8, preemptible=True))
    return assembly


def test_a_move_is_decided_carried_out_and_breaks_no_rule() -> None:
    assembly = halves()
    assembly.turns(20)
    report = assembly.report()
    assert report.broken == []
    assert (report.decisions["consolidation"], report.victims, report.gangs_broken) == (1, 1, 0)
    nodes = [assembly.fleet._tasks[f"default/{name}-0"].node for name in ("low0", "low1", "whole")]
    assert nodes[0] == nodes[1] != nodes[2] is not None


def test_a_move_to_a_node_that_is_full_is_found() -> None:
    """The second victim is to start again on the node of the first task of the pair."""
    moves = tuple(Nomination(task=f"default/{name}", node="n0") for name in ("pair-0", "low1-0"))
    more = Nomination(task="default/pair-1", node="n1")
    found = heard(plan(("low0", "low1"), nominations=(*moves, more))).report.broken
    assert any("node n0 will have" in sentence for sentence in found)
    fits = (moves[0], Nomination(task="default/low1-0", node="n7"), more)
    assert heard(plan(("low0", "low1"), nominations=fits)).report.broken == []


def test_a_victim_that_was_to_move_and_is_spared_runs_on_though_its_promise_is_taken_back() -> None:
    moved = Nomination(task="default/low0-0", node="n7")
    first = plan(("low0", "low1"), nominations=(*GOOD.nominations, moved))
    back = Nomination(task="default/low0-0", node=None)
    other = plan(("low2",), name="q", replaces="p", nominations=(back,))
    audit = heard(first, other)
    assert not any("low0-0" in one for one in audit.report.broken), audit.report.broken
    assert audit.facts.tasks["default/low0-0"].status == "running"


@pytest.mark.parametrize("told", [{"status": "Terminating"}, {"status": "Pending", "node": None, "incarnation": 1}])
def test_a_task_that_moves_keeps_its_promise_over_a_list(told: dict[str, Any]) -> None:
    moved = Nomination(task="default/low0-0", node="n7")
    again = rack_cluster()
    low = gang("low0", 1, 8, nodes=["n0"])
    low["tasks"][0] |= told
    again["podgroups"] = [low, gang("pair", 2, 8, priority=5, topology={"required": "rack"})]
    listed = FleetListed(list_id="later", part=0, parts=1, cluster=again)
    audit = heard(plan(("low0", "low1"), nominations=(*GOOD.nominations, moved)), listed)
    assert audit.facts.tasks["default/low0-0"].nominated == "n7"


def test_only_a_gang_that_has_run_may_be_placed_in_part_once_it_was_satisfied() -> None:
    over = [TaskEnded(task=f"default/once-{at}", outcome="Failed", replaced=True) for at in range(2)]
    part = PlanCommitted(
        plan_id="p", epoch=1, action="allocate", purpose="allocate", preemptor="default/once",
        nominations=(Nomination(task="default/once-0", node="n7"),),
    )  # fmt: skip
    ran = restarting(gang("once", 2, 8, nodes=["n5", "n6"], match_policy="once-satisfied"))
    assert heard(ran, *over, part).report.broken == []
    waits = gang("once", 2, 8, match_policy="once-satisfied")
    (said,) = heard(waits, part).report.broken
    assert "gets 1 of its minimum of 2" in said


def test_a_podgroup_may_take_less_important_tasks_of_its_own() -> None:
    mixed = gang("mixed", 1, 8, priority=5, nodes=["n5"])
    mixed["tasks"] += [{"name": "urgent", "request": {"cpu": 1, "gpu": 8}, "priority": 9}]
    made = plan(
        preemptor="default/mixed", evictions=(Eviction(task="default/mixed-0", incarnation=0),),
        nominations=(Nomination(task="default/urgent", node="n5"),),
    )  # fmt: skip
    assert heard(mixed, made).report.broken == []
    mixed["tasks"][1]["priority"] = 5
    (said,) = heard(mixed, made).report.broken
    assert "for tasks of its podgroup that are not more important" in said


def test_where_shares_alone_say_who_goes_work_of_higher_priority_may_go() -> None:
    volcano = load_profile("volcano")
    shares = replace(
        volcano, plugins=tuple(replace(one, name="drf") if one.name == "priority" else one for one in volcano.plugins)
    )
    events, decisions = (
        [Entry(stream, f"{at}-0", fields) for at, fields in enumerate(entries, 1)]
        for stream, entries in ((EVENTS, pack([listing_of(gang("top", 1, 8, nodes=["n5"], priority=9))])),
                                (DECISIONS, [{**pack_decision(decided_for("low")), "revision": b"1", "after": b"1-0"}]))
    )  # fmt: skip
    (said,) = audited(events, decisions, volcano).broken
    assert "preempts default/top-0 of queue a and priority 9" in said
    assert audited(events, decisions, shares).broken == []


def listing_of(podgroup: dict[str, Any]) -> Outgoing:
    whole = rack_cluster() | {"podgroups": [podgroup, gang("low", 1, 8)]}
    return Outgoing("fleet_listed", "fleet", 1, {"list_id": "l", "part": 0, "parts": 1, "cluster": whole})


def decided_for(podgroup: str) -> Outgoing:
    made = PlanCommitted(
        plan_id="p", epoch=1, action="preempt", purpose="preempt", preemptor=f"default/{podgroup}",
        evictions=(Eviction(task="default/top-0", incarnation=0),),
        nominations=(Nomination(task=f"default/{podgroup}-0", node="n5"),),
    )  # fmt: skip
    return Outgoing("plan_committed", "p", 1, made)


def test_what_has_succeeded_counts_towards_the_minimum() -> None:
    ended = TaskEnded(task="default/done-0", outcome="Succeeded")
    done = gang("done", 2, 8, nodes=["n5", "n6"])
    done["tasks"].append({"name": "more", "request": {"cpu": 1, "gpu": 8}})
    place = PlanCommitted(
        plan_id="p", epoch=1, action="allocate", purpose="allocate", preemptor="default/done",
        nominations=(Nomination(task="default/more", node="n5"),),
    )  # fmt: skip
    assert heard(done, ended, place).report.broken == []
    listed = gang("done", 2, 8)
    listed["tasks"][0]["status"] = "Succeeded"
    rest = place.model_copy(update={"nominations": (Nomination(task="default/done-1", node="n5"),)})
    assert heard(listed, rest).report.broken == []


def test_tasks_that_come_one_by_one_are_known_and_a_podgroup_described_anew_keeps_its_tasks() -> None:
    late = gang("late", 2, 8)
    second = late["tasks"].pop()
    one_by_one = (
        PodgroupDocument.model_validate(late),
        TaskUpserted(podgroup="default/late", task=TaskDocument.model_validate(second)),
        PodgroupDocument.model_validate({**late, "tasks": []}),
    )
    nominations = tuple(Nomination(task=f"default/late-{at}", node=f"n{at + 5}") for at in range(2))
    placed = plan(preemptor="default/late", action="allocate", purpose="allocate", nominations=nominations)
    assert heard(*one_by_one, placed).report.broken == []
    assert len(heard(*one_by_one[:1], placed).report.broken) == 1


def test_a_task_that_runs_when_its_podgroup_is_described_anew_holds_its_node() -> None:
    anew = PodgroupDocument.model_validate(gang("low0", 1, 8))
    onto = plan((), ("n0", "n5"))
    assert any("node n0 will have" in said for said in heard(anew, onto).report.broken)


@pytest.mark.parametrize("described", ["podgroup", "task"])
def test_a_task_whose_node_was_lost_waits_in_its_next_life(described: str) -> None:
    low = gang("low0", 1, 8)
    again = {
        "podgroup": PodgroupDocument.model_validate(low),
        "task": TaskUpserted(podgroup="default/low0", task=TaskDocument.model_validate(low["tasks"][0])),
    }[described]
    started = TaskStarted(task="default/low0-0", node="n1", incarnation=1)
    victims = (Eviction(task="default/low0-0", incarnation=1), Eviction(task="default/low2-0", incarnation=0))
    ended = TaskEnded(task="default/low1-0", outcome="Evicted")
    audit = heard(NodeRemoved(node="n0"), again, ended, started, plan((), ("n1", "n2"), evictions=victims))
    assert (audit.report.broken, audit.report.victims) == ([], 2)


def test_a_promise_on_a_node_that_is_lost_ends_and_its_task_waits() -> None:
    audit = heard(plan((), ("n5", "n6")), NodeRemoved(node="n5"))
    assert [audit.facts.tasks[f"default/pair-{at}"].status for at in range(2)] == ["pending", "pending"]
    assert [audit.facts.tasks[f"default/pair-{at}"].nominated for at in range(2)] == [None, "n6"]
