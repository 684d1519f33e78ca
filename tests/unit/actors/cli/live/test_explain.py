"""What `clearway explain` has to say: why a podgroup still waits, and what became of every domain."""

from contextlib import nullcontext

import numpy as np
import pytest

from actors.broker.bus import START, STARVING
from actors.cli.live import explain
from actors.cli.live.explain import concerning, still
from actors.cli.sentences import decision_lines, plain_decision
from actors.columns.explanation_message import explained as in_names
from actors.configuration.settings import Settings
from actors.contracts import PendingReport
from actors.documents.safe_msgpack import unpacked
from actors.protocol.envelopes import Outgoing
from actors.search.pending_reasons import newest, waiting
from actors.search.reasons_writer import AGAIN_S, ReasonsWriter
from pipeline.decision.explanation import Explanation, Reason, Ruled
from pipeline.decision.merging import merged
from pipeline.decision.plan import NoPlan
from pipeline.placement.conditions import Conditions, unscheduled_in
from tests.support.assembly import Assembly, Clock, full, gang, rack_cluster, restarting


def starved() -> Assembly:
    """Racks of four nodes that are full, and a gang that needs five in one."""
    assembly = full()
    assembly.submit(gang("wide", 5, 8, priority=5, topology={"required": "rack"}))
    assembly.cycle()
    return assembly


def pending(assembly: Assembly, podgroup: str | None = None) -> list[str]:
    waits = [one for one in waiting(assembly.bus).values() if podgroup in (None, one.podgroup)]
    return [line for one in waits for line in still(one)]


def left(assembly: Assembly) -> Conditions:
    """What is not scheduled."""
    return unscheduled_in(assembly.news.snapshot)


def none(assembly: Assembly) -> Conditions:
    """As if all were scheduled."""
    return left(assembly).only(np.zeros(0, np.int64))


def written(assembly: Assembly) -> int:
    return assembly.bus.bounds(STARVING).added


def test_a_gang_that_waits_is_told_why_action_by_action() -> None:
    assembly = starved()
    wider = "require a wider level, or lower the minimum"
    few = "even all legal evictions would leave too few places"
    now = "2023-11-14 22:13:20+00:00"
    over = "queue a would hold more than it deserves: gpu 104 against 32: raise what it deserves, or ask for less"
    assert pending(assembly, "default/wide") == [
        f"default/wide starves since {now}, 1 of 1 in order; nothing was found for it at {now}",
        "  Unschedulable (NotEnoughResources): 0 of 5 tasks ready; its minimum of 5 lacks 5",
        "  reclaim: the queue may not take more; its minimum needs places for 5 tasks",
        f"    {over} (plugin capacity)",
        f"  preempt: {few}; its minimum needs places for 5 tasks",
        f"  domains: {few} (2)",
        f"    r0: {few} (5 wanted, room for 0 now, for 4 after every legal eviction)",
        f"    r1: {few} (5 wanted, room for 0 now, for 4 after every legal eviction)",
        f"    no rack has room for more than 4 tasks like default/wide-0, and 5 are needed together: {wider}",
    ]
    assert pending(assembly) == pending(assembly, "default/wide")
    assert pending(assembly, "default/low0") == []


def test_a_name_without_its_namespace_is_answered_with_what_a_name_should_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(explain, "reading", lambda *_: nullcontext((full().bus, Clock())))
    for name, more in (("wide", "; expected namespace/name"), ("default/nobody", "")):
        assert explain.run(Settings(fleet="test"), name, count=5) == 1
        said = capsys.readouterr().out
        assert said == f"no decision and no reason to wait that concerns {name} in fleet test{more}\n"


def test_the_same_reason_is_written_once_in_a_while() -> None:
    assembly = starved()
    for at in range(3):
        assembly.clock.now += 30.0
        assembly.submit(gang(f"small{at}", 1, 1))
        assembly.cycle()
    assert [waits.podgroup for waits in newest(assembly.bus) if waits.podgroup == "default/wide"] == ["default/wide"]
    before = [entry for entry in assembly.bus.follow(STARVING, START) if entry.fields["podgroup"] == b"default/wide"]
    assert len(before) == 1
    assembly.clock.now += AGAIN_S
    assembly.submit(gang("news", 1, 1))
    assembly.cycle()
    after = [entry for entry in assembly.bus.follow(STARVING, START) if entry.fields["podgroup"] == b"default/wide"]
    assert len(after) == 2


def test_who_got_room_waits_no_more() -> None:
    assembly = full()
    assembly.submit(gang("peer", 1, 8))
    assembly.cycle()
    assert pending(assembly, "default/peer")
    assembly.say([assembly.fleet._end(assembly.fleet._tasks["default/low1-0"], "Succeeded", replaced=False)])
    assembly.turn()
    assembly.turn()
    assert assembly.status("peer-0") == "Running"
    assert pending(assembly, "default/peer") == []


def test_a_successor_goes_on_where_the_one_before_stopped() -> None:
    assembly = starved()
    epoch, row = assembly.news.snapshot.epoch, len(assembly.news.snapshot.podgroups) - 1
    count = written(assembly)
    successor = ReasonsWriter(assembly.bus, assembly.directory, now_s=assembly.clock)
    successor.take(PendingReport(epoch, (row,), (), left(assembly)))
    assert written(assembly) == count
    successor.take(PendingReport(epoch, (), (), none(assembly)))
    assert pending(assembly) == []


def test_a_writer_reads_first_where_another_has_written_since() -> None:
    assembly = starved()
    other = ReasonsWriter(assembly.bus, assembly.directory, now_s=assembly.clock)
    other.take(PendingReport(assembly.news.snapshot.epoch, (), (), none(assembly)))
    assembly.reasons.forget()
    count = written(assembly)
    assembly.reasons.take(PendingReport(assembly.news.snapshot.epoch, (), (), none(assembly)))
    assert written(assembly) == count


def test_a_decision_counts_the_domains_that_were_ruled_out_by_their_bounds() -> None:
    assembly = full(4)
    for at in range(4):  # nothing may be evicted in the last rack
        assembly.fleet._podgroups[f"default/low{12 + at}"].document["preemptible"] = False
    assembly.say(assembly.fleet.listing("again"))
    assembly.submit(gang("big", 3, 8, priority=5, topology={"required": "rack"}))
    assembly.turn()
    (made,) = concerning(assembly.bus, "default/big", 5)
    assert made.end is None
    told = "\n".join(decision_lines(plain_decision(made.body), made.number))
    assert "even all legal evictions would leave too few places (1)" in told
    few = "even all legal evictions would leave too few places"
    assert f"r3: {few} (3 wanted, room for 0 now, for 0 after every legal eviction)" in told


def test_of_many_ruled_out_the_closest_are_named_and_the_rest_counted() -> None:
    assembly = full(4)
    rows = np.arange(1, 5)
    ruled = Ruled(
        rows, np.zeros(4, np.int64), np.array([1, 3, 2, 3]), np.full(4, 4), np.array([False, False, True, False])
    )
    why = Explanation("preempt", 0, 3, Reason.BOUND, ruled=ruled)
    told = in_names(why, assembly.directory, 2)
    assert told["domains"] == {Reason.BOUND.value: 3, Reason.PRUNED.value: 1}
    assert [(one["domain"], one["reachable"]) for one in told["tried"]] == [("r1", 3), ("r3", 3)]
    assert told["not_shown"]["domains"] == 2


def test_where_batches_may_not_evict_one_of_them_says_why() -> None:
    never = NoPlan(Explanation("preempt", 0, 3, Reason.NEVER))
    assert merged([never, never]) == never


def test_where_a_batch_was_lost_nothing_is_known() -> None:
    assert merged([NoPlan(Explanation("preempt", 0, 3, Reason.BOUND)), None]) is None


def test_a_gang_that_is_never_searched_for_is_told_why() -> None:
    assembly = full()
    few = gang("few", 1, 1)
    assembly.submit(few | {"min_available": 2})
    closed = gang("closed", 1, 1)
    closed["tasks"][0]["scheduling_gated"] = True
    assembly.submit(closed)
    assembly.cycle()
    few_line, why = pending(assembly, "default/few")
    assert why == "    default/few has 1 task that counts and needs 2: create more, or lower its minimum"
    assert few_line.startswith("default/few is Unschedulable (NotEnoughTasks): 0 of 1 tasks ready; its minimum of 2")
    assert few_line.endswith("lacks 2 since 2023-11-14 22:13:20+00:00")
    told = "\n".join(pending(assembly, "default/closed"))
    assert "Unschedulable (SchedulingGated): 0 of 1 tasks ready, 1 gated" in told
    assert "1 task of default/closed is gated (default/closed-0 is one): lift the scheduling gates of 1" in told


def test_an_entry_of_a_condition_reads_for_older_readers_as_one_that_does_not_starve() -> None:
    assembly = full()
    assembly.submit(gang("few", 1, 1) | {"min_available": 2})
    assembly.cycle()
    entry = next(one for one in assembly.bus.follow(STARVING, START) if one.fields["podgroup"] == b"default/few")
    _, attempts = unpacked(entry.fields["why"])
    assert list(attempts) == []


def test_a_condition_is_written_once_while_its_reason_holds() -> None:
    assembly = full()
    assembly.submit(gang("few", 1, 1) | {"min_available": 2})
    for at in range(3):
        assembly.submit(gang(f"small{at}", 1, 1))
        assembly.cycle()
    written_of = [one for one in assembly.bus.follow(STARVING, START) if one.fields["podgroup"] == b"default/few"]
    assert len(written_of) == 1


def evicting_many(victims: int = 40) -> Assembly:
    """One node more than there are victims, and a gang that takes all of them from as many podgroups."""
    cluster = rack_cluster(racks=1, nodes=victims)
    cluster["queues"] = [{"name": "a", "deserved": {"gpu": victims * 8}}]
    cluster["podgroups"] = [gang(f"low{at}", 1, 8, nodes=[f"n{at}"]) for at in range(victims)]
    assembly = Assembly(cluster)
    assembly.submit(gang("big", victims, 8, priority=5))
    assembly.cycle()
    return assembly


def test_every_victim_of_a_large_decision_is_answered_for_by_podgroup_and_by_task() -> None:
    assembly = evicting_many()
    for at in range(40):
        for name in (f"default/low{at}", f"default/low{at}-0"):
            (made,) = concerning(assembly.bus, name, 5)
            lines = list(made.lines(name))
            told = next(line for line in lines if line.startswith("  evicts default/"))
            assert f"default/low{at}-0 on n" in told
        (made,) = concerning(assembly.bus, f"default/low{at}", 5)
        victims = [line for line in made.lines(f"default/low{at}") if line.startswith("  victim")]
        assert victims[0] == f"  victim default/low{at}: 1 task broken whole, priority 0"
    assert not list(concerning(assembly.bus, "default/low40", 5))


def test_what_is_not_named_is_counted() -> None:
    (made,) = concerning(evicting_many().bus, None, 5)
    assert "  and 32 more podgroups with victims" in list(made.lines(None))


def test_a_decision_says_when_it_was_made_and_by_which_plan_and_trace() -> None:
    assembly = evicting_many(2)
    (made,) = concerning(assembly.bus, "default/big", 5)
    second = list(made.lines("default/big"))[1]
    assert second == f"  at 2023-11-14 22:13:20+00:00, plan {made.body.plan_id}, trace {made.trace_id}"
    assert len(made.trace_id) == 32


def test_an_eviction_names_its_podgroup_and_its_node() -> None:
    (made,) = concerning(evicting_many(2).bus, "default/low1", 5)
    (said,) = made.said("default/low1")["evictions"]
    assert (said["task"], said["podgroup"], said["node"]) == ("default/low1-0", "default/low1", "n1")
    assert len(made.said(None)["evictions"]) == 2


def test_a_task_that_was_placed_is_told_where() -> None:
    assembly = evicting_many(2)
    (made,) = concerning(assembly.bus, "default/big-1", 5)
    assert any(line.startswith("  promises default/big-1 on n") for line in made.lines("default/big-1"))


def test_a_podgroup_that_waits_is_told_since_when_and_in_which_place() -> None:
    assembly = full()
    assembly.submit(gang("second", 5, 8, priority=3, topology={"required": "rack"}))
    assembly.cycle()
    began = assembly.clock.now
    assembly.clock.now += 40.0
    assembly.submit(gang("first", 5, 8, priority=5, topology={"required": "rack"}))
    assembly.cycle()
    waits = {one.podgroup: one for one in newest(assembly.bus) if one.attempts}
    assert {name: one.place for name, one in waits.items()} == {"default/first": (1, 2), "default/second": (2, 2)}
    assert {name: one.since for name, one in waits.items()} == {
        "default/first": assembly.clock.now,
        "default/second": began,
    }
    head = next(still(waits["default/second"]))
    assert head.startswith("default/second starves since 2023-11-14 22:13:20+00:00, 2 of 2 in order; nothing was found")


def test_since_when_a_podgroup_waits_outlasts_a_change_of_reasons_and_of_the_writer() -> None:
    assembly = full()
    gated = gang("gated", 1, 1)
    gated["tasks"][0]["scheduling_gated"] = True
    assembly.submit(gated)
    assembly.cycle()
    began = assembly.clock.now
    assembly.clock.now += AGAIN_S
    successor = ReasonsWriter(assembly.bus, assembly.directory, now_s=assembly.clock)
    epoch = assembly.news.snapshot.epoch
    successor.take(PendingReport(epoch, (), (), left(assembly)))
    (waits,) = [one for one in newest(assembly.bus) if one.podgroup == "default/gated"]
    assert (waits.since, waits.place) == (began, None)


def test_a_decision_whose_tasks_have_started_is_fulfilled() -> None:
    assembly = evicting_many(2)
    (made,) = concerning(assembly.bus, "default/big", 5)
    assert made.end is None
    assembly.turns(12)
    ends = {one.body.action: one.end for one in concerning(assembly.bus, "default/big", 5)}
    assert str(ends["preempt"]).startswith("fulfilled at 2023-11-14 22:13:")
    assert ends["allocate"] is None  # it promised nothing


def displaced() -> Assembly:
    """Room is promised to a gang, then to a more important one, and the first makes other room."""
    assembly = full()
    for name, priority in (("first", 5), ("urgent", 9)):
        assembly.submit(gang(name, 2, 8, priority=priority, topology={"required": "rack"}))
        assembly.turn()
    return assembly


def test_a_promise_that_a_decision_takes_back_is_no_promise() -> None:
    (made,) = concerning(displaced().bus, "default/urgent", 5)
    assert len(made.body.nominations) == 4
    assert "  evicts 0, promises 2, takes back 2 promises, starts 0; its minimum needed 2" in made.lines(None)
    told = list(made.lines("default/first-0"))
    assert "  takes back the promise to default/first-0" in told
    assert not any(line.startswith("  promises") for line in told)


def test_a_decision_whose_promises_others_took_says_which_one_did() -> None:
    assembly = displaced()
    ends = [one.end for one in concerning(assembly.bus, "default/first", 5)]
    assert ends == [None, "given up: decision 2 for default/urgent took back its promises"]
    assembly.turns(12)
    ends = [one.end for one in concerning(assembly.bus, "default/first", 5) if one.body.action == "preempt"]
    assert str(ends[0]).startswith("fulfilled at")
    assert str(ends[1]).startswith("given up")


def test_how_many_tasks_are_ready_is_told_as_it_is_now() -> None:
    cluster = rack_cluster(racks=1)
    cluster["podgroups"] = [restarting(gang("job", 4, 8, nodes=["n0", "n1", "n2", "n3"]))]
    assembly = Assembly(cluster)
    for node, ready in (("n3", 3), ("n2", 2)):
        assembly.say(assembly.fleet.fail_node(node))
        assembly.pass_time(60.0)
        assembly.cycle()
        said = f"  Unschedulable (NotEnoughResources): {ready} of 4 tasks ready; its minimum of 4 lacks {4 - ready}"
        assert said in pending(assembly, "default/job")


def test_a_decision_that_only_gives_up_promises_says_why_that_can_be() -> None:
    assembly = full()
    assembly.submit(gang("big", 3, 8, priority=5, topology={"required": "rack"}))
    assembly.turn()
    closed = {"name": "a", "deserved": {"gpu": 32}, "state": "Closed"}
    assembly.say([Outgoing("queue_upserted", "a", assembly.fleet._next(), closed)])
    assembly.turn()
    gives_up, makes_room = concerning(assembly.bus, "default/big", 5)
    lines = list(gives_up.lines("default/big"))
    assert "  evicts 0, promises 0, takes back 3 promises, starts 0; its minimum needed 3" in lines
    assert sum(line.startswith("  they cannot be kept: nodes or the queue do not take") for line in lines) == 1
    assert makes_room.end == "given up: decision 2 for default/big took back its promises"
