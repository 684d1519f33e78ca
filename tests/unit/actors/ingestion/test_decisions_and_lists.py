"""Decisions are folded like events, and what they promise outlasts a repeated entry and a second list."""

import pytest

from actors.broker.bus import DECISIONS
from actors.broker.ledger import Record
from actors.ingestion.by_kind.decision_events import closed
from actors.ingestion.ingestor import Ingestor
from actors.protocol.bodies import DomainReserved, Overdue, PlanWithdrawn
from actors.protocol.envelopes import Message, Outgoing, decode_decisions, pack_decision
from actors.protocol.full_list import cut
from pipeline.cluster.tables import PENDING, RUNNING, TERMINATING
from tests.support.encoded import encoded
from tests.support.told_world import CLUSTER, World, drained, state_of, task


def test_our_own_decisions_are_folded(world: World, ingestor: Ingestor) -> None:
    world.decide(
        "p", evictions=[{"task": "default/web-0", "incarnation": 0}],
        nominations=[{"task": "default/train-0", "node": "n3"}], bindings=[{"task": "default/train-1", "node": "n0"}],
    )  # fmt: skip
    assert ingestor.poll()
    assert ingestor.snapshot.decided == 1
    assert task(ingestor, "web-0")["status"] == TERMINATING
    assert task(ingestor, "train-0")["nominated"] == "n3"
    assert task(ingestor, "train-1")["node"] == "n0"
    world.withdraw("p")
    assert ingestor.poll()
    assert ingestor.snapshot.decided == 2
    assert task(ingestor, "web-0")["status"] == RUNNING
    assert task(ingestor, "train-0")["nominated"] is None


def test_a_withdrawal_takes_back_what_no_later_decision_promised(world: World, ingestor: Ingestor) -> None:
    world.decide("old", nominations=[{"task": f"default/train-{at}", "node": "n0"} for at in range(3)])
    world.tell("node_removed", node="n0")
    world.decide("new", nominations=[{"task": "default/train-1", "node": "n2"}])
    world.decide("start", bindings=[{"task": "default/train-2", "node": "n3"}])
    world.withdraw("old")
    drained(ingestor)
    assert task(ingestor, "train-0")["nominated"] is None
    assert task(ingestor, "train-1")["nominated"] == "n2"
    recovered = world.ingestor("again")
    world.withdraw("new")
    assert [task(drained(one), "train-1")["nominated"] for one in (ingestor, recovered)] == [None, None]


def test_what_was_decided_for_tasks_that_were_lost_is_promised_once_a_list_has_them(
    world: World, ingestor: Ingestor
) -> None:
    world.decide(
        "p", evictions=[{"task": "default/old-0", "incarnation": 2}],
        nominations=[{"task": "default/late-0", "node": "n0"}, {"task": "default/gone-0", "node": "n0"}],
        bindings=[{"task": "default/late-1", "node": "n1"}, {"task": "default/late-2", "node": "n1"}],
    )  # fmt: skip
    late = {
        "name": "late", "queue": "ml", "tasks": [
            {"name": "late-0"}, {"name": "late-1"}, {"name": "late-2", "status": "Running", "node": "n1"},
        ],
    }  # fmt: skip
    old = {"name": "old", "queue": "dev", "tasks": [
        {"name": "old-0", "status": "Running", "node": "n2", "incarnation": 2},
    ]}  # fmt: skip
    drained(ingestor)
    ingestor = Ingestor(world.bus, consumer="recovered", now_s=lambda: world.now)
    ingestor.start()
    world.list_fleet({**CLUSTER, "podgroups": [*CLUSTER["podgroups"], late, old]}, "again")
    drained(ingestor)
    assert [task(ingestor, f"late-{at}")["nominated"] for at in range(3)] == ["n0", "n1", None]
    assert task(ingestor, "late-2")["status"] == RUNNING
    assert task(ingestor, "old-0")["status"] == TERMINATING
    assert ingestor.snapshot.decided == 1
    world.withdraw("p")
    drained(ingestor)
    assert [task(ingestor, f"late-{at}")["nominated"] for at in range(2)] == [None, None]
    assert task(ingestor, "old-0")["status"] == RUNNING


def test_a_repeated_entry_changes_nothing(world: World, ingestor: Ingestor) -> None:
    said = [
        world.outgoing("podgroup_upserted", {"name": "late", "queue": "dev", "tasks": [{"name": "late-0"}]}),
        world.outgoing("task_started", {"task": "default/train-0", "node": "n1"}),
        world.outgoing("node_upserted", {"name": "x", "allocatable": {"cpu": 1}}),
        world.outgoing("podgroup_removed", {"podgroup": "default/late"}),
        world.outgoing("queue_upserted", {"name": "q"}),
        world.outgoing("node_removed", {"node": "x"}),
    ]
    world.say(*said)
    before = state_of(drained(ingestor))
    world.say(*said)
    world.say(*said[:3])
    drained(ingestor)
    assert state_of(ingestor) == before
    assert world.letters() == []


def test_a_second_full_list_begins_an_epoch_and_keeps_our_promises(world: World, ingestor: Ingestor) -> None:
    world.tell("task_started", task="default/train-2", node="n0")
    world.tell("task_ended", task="default/train-2", outcome="Failed", replaced=True)
    world.decide(
        "p", evictions=[{"task": "default/web-0", "incarnation": 0}],
        nominations=[{"task": "default/train-0", "node": "n3"}, {"task": "default/train-1", "node": "n0"}],
    )  # fmt: skip
    epoch = drained(ingestor).snapshot.epoch
    world.list_fleet({**CLUSTER, "nodes": CLUSTER["nodes"][1:]}, "again")
    drained(ingestor)
    assert ingestor.snapshot.epoch == epoch + 1
    assert ingestor.state.names.nodes == ["n1", "n2", "n3"]
    assert task(ingestor, "train-0")["nominated"] == "n3"
    assert task(ingestor, "train-1")["nominated"] is None
    assert task(ingestor, "train-2")["life"] == 1
    assert task(ingestor, "web-0")["status"] == TERMINATING
    world.withdraw("p")
    assert task(drained(ingestor), "web-0")["status"] == RUNNING


def test_what_is_said_while_a_list_is_told_is_newer_than_the_list(world: World, ingestor: Ingestor) -> None:
    world.revision += 1
    parts = [Outgoing("fleet_listed", "fleet", world.revision, part) for part in cut(CLUSTER, "second", 200)]
    assert len(parts) > 3
    world.say(parts[0])
    world.tell("task_started", task="default/train-0", node="n1")
    world.decide("p", nominations=[{"task": "default/train-1", "node": "n2"}])
    assert task(drained(ingestor), "train-0")["status"] == RUNNING
    revision = ingestor.snapshot.revision
    for part in parts[1:]:
        world.say(part)
    drained(ingestor)
    assert task(ingestor, "train-0") == {"status": RUNNING, "node": "n1", "nominated": None, "life": 0}
    assert task(ingestor, "train-1")["nominated"] == "n2"
    assert ingestor.snapshot.revision > revision
    assert ingestor.snapshot.decided == 1


def test_a_list_that_is_wrong_is_refused_and_the_state_stays(world: World, ingestor: Ingestor) -> None:
    before = ingestor.snapshot
    world.list_fleet({**CLUSTER, "queues": []}, "wrong")
    drained(ingestor)
    assert ingestor.snapshot is before
    assert world.letters()[0].startswith("body.cluster: podgroups[0].queue")


def test_a_decision_that_comes_again_after_it_was_withdrawn_stands_no_more(world: World, ingestor: Ingestor) -> None:
    world.decide("p", nominations=[{"task": "default/train-0", "node": "n0"}])
    world.withdraw("p")
    drained(ingestor)
    before = state_of(ingestor)
    for entry in world.bus.follow(DECISIONS, "0-0"):
        for message in decode_decisions(entry)[:1]:
            assert isinstance(message, Message)
            if message.kind == "plan_committed":
                ingestor.folding.interpreter.take(message)
    ingestor.folding.interpreter.flush()
    assert state_of(ingestor) == before


def test_a_later_decision_does_not_open_the_node_of_a_victim_that_did_not_end(world: World, ingestor: Ingestor) -> None:
    world.decide("p", evictions=[{"task": "default/web-0", "incarnation": 0}])
    until = world.now + 60.0
    late = Overdue(task="default/web-0", incarnation=0, avoided_until=until)
    body = PlanWithdrawn(plan_id="p", reason="it did not end", overdue=(late,))
    world.record("p:withdrawn", "plan_withdrawn", body)
    world.decide("q", nominations=[{"task": "default/train-0", "node": "n0"}])
    drained(ingestor)
    node = ingestor.state.names.row("nodes", "n3")
    assert closed(ingestor.state).overdue == ((node, until),)


def test_what_a_decision_does_counts_from_its_verdict_however_late_it_was_recorded() -> None:
    states = []
    for delay in (0.0, 0.5):
        world, judged_on = World(), {"epoch": 1, "revision": 1}
        world.list_fleet()
        ingestor = world.ingestor()
        for at, made in ((1010.0, "evicted"), (1020.0, "spared")):
            world.now, judged_on["at"] = at + delay, at
            if made == "evicted":
                world.decide("p", evictions=[{"task": "default/web-0", "incarnation": 0}], judged_on=judged_on)
            else:
                withdrawn = PlanWithdrawn(plan_id="p", reason="test", judged_on=judged_on)
                world.record("p:withdrawn", "plan_withdrawn", withdrawn)
            drained(ingestor)
            states.append(encoded(ingestor.snapshot))
    evicted, spared, evicted_late, spared_late = states
    assert (evicted, spared) == (evicted_late, spared_late)


def test_a_late_victim_stays_avoided_by_the_clock_of_the_committer_though_the_brokers_is_far_ahead(
    world: World, ingestor: Ingestor
) -> None:
    by_committer, minutes = world.now, 600.0
    late = Overdue(task="default/web-0", incarnation=0, avoided_until=by_committer + 60.0)
    world.record("p:withdrawn", "plan_withdrawn", PlanWithdrawn(plan_id="p", reason="it did not end", overdue=(late,)))
    world.now += minutes
    for plan_id, judged_at, avoided in (("q", by_committer + 59.0, 1), ("r", by_committer + 61.0, 0)):
        judged_on = {"epoch": 1, "revision": 1, "at": judged_at}
        world.decide(plan_id, nominations=[{"task": "default/train-0", "node": "n0"}], judged_on=judged_on)
        drained(ingestor)
        assert len(closed(ingestor.state).overdue) == avoided


def test_a_promise_to_an_unknown_task_that_was_taken_back_does_not_come_with_the_list() -> None:
    world = World()
    ingestor = world.ingestor()  # nothing is known yet
    world.decide(
        "p", nominations=[{"task": "default/train-0", "node": "n0"}, {"task": "default/train-1", "node": "n1"}]
    )
    world.decide("q", nominations=[{"task": "default/train-0", "node": None}])
    drained(ingestor)
    world.list_fleet()
    drained(ingestor)
    assert task(ingestor, "train-0")["nominated"] is None
    assert task(ingestor, "train-1")["nominated"] == "n1"


def test_a_start_of_an_unknown_task_that_was_evicted_since_promises_its_next_life_nothing() -> None:
    world = World()
    ingestor = world.ingestor()  # nothing is known yet
    world.decide("p", bindings=[{"task": f"default/train-{at}", "node": "n0"} for at in range(2)])
    world.decide("q", evictions=[{"task": "default/train-0", "incarnation": 0}])
    drained(ingestor)
    world.list_fleet()
    drained(ingestor)
    assert [task(ingestor, f"train-{at}")["nominated"] for at in range(2)] == [None, "n0"]


def test_what_was_decided_about_an_unknown_task_outlasts_a_checkpoint() -> None:
    world = World()
    ingestor = world.ingestor()
    world.list_fleet({key: value for key, value in CLUSTER.items() if key != "podgroups"})
    world.decide("p", nominations=[{"task": "default/train-0", "node": "n0"}])
    drained(ingestor)
    ingestor.checkpoint()
    world.list_fleet(list_id="later")
    drained(ingestor)
    assert task(ingestor, "train-0")["nominated"] == "n0"


@pytest.mark.parametrize(("life", "promised"), [(1, "n0"), (2, None)])
def test_a_task_that_moves_keeps_its_promise_where_only_a_list_tells_of_its_next_life(
    world: World, ingestor: Ingestor, life: int, promised: str | None
) -> None:
    web = {"task": "default/web-0"}
    world.decide("p", evictions=[{**web, "incarnation": 0}], nominations=[{**web, "node": "n0"}])
    drained(ingestor)
    world.list_fleet(waiting_web(life), list_id="later")
    drained(ingestor)
    assert task(ingestor, "web-0")["nominated"] == promised


def waiting_web(life: int) -> dict[str, object]:
    """A list in which the running task waits in another life."""
    train, running = CLUSTER["podgroups"]
    waits = {"name": "web-0", "request": {"cpu": 1}, "incarnation": life}
    return {**CLUSTER, "podgroups": [train, {**running, "tasks": [waits]}]}


def test_the_promise_of_a_task_that_moves_is_taken_back_with_its_decision_though_the_task_has_ended(
    world: World, ingestor: Ingestor
) -> None:
    web = {"task": "default/web-0"}
    world.decide("p", evictions=[{**web, "incarnation": 0}], nominations=[{**web, "node": "n0"}])
    world.tell("task_ended", task="default/web-0", outcome="Evicted", incarnation=0, replaced=True)
    assert task(drained(ingestor), "web-0")["nominated"] == "n0"
    ingestor.checkpoint()
    recovered = world.ingestor("again")
    world.withdraw("p")
    assert [task(drained(one), "web-0")["nominated"] for one in (ingestor, recovered)] == [None, None]


@pytest.mark.parametrize("told_to_end", [False, True])
def test_a_promise_to_the_next_life_of_a_task_whose_end_was_lost_comes_with_the_list(
    world: World, ingestor: Ingestor, told_to_end: bool
) -> None:
    if told_to_end:
        world.decide("first", evictions=[{"task": "default/web-0", "incarnation": 0}])
    world.decide("p", nominations=[{"task": "default/web-0", "node": "n0"}])
    drained(ingestor)
    assert task(ingestor, "web-0")["nominated"] is None
    world.list_fleet(waiting_web(life=1), list_id="later")
    assert task(drained(ingestor), "web-0")["nominated"] == "n0"
    world.withdraw("p")
    assert task(drained(ingestor), "web-0")["nominated"] is None


def test_an_eviction_in_a_life_that_was_lost_holds_once_a_list_has_it(world: World, ingestor: Ingestor) -> None:
    world.decide("p", evictions=[{"task": "default/web-0", "incarnation": 1}])
    drained(ingestor)
    assert task(ingestor, "web-0")["status"] == RUNNING
    train, running = CLUSTER["podgroups"]
    again = {**running["tasks"][0], "incarnation": 1}
    world.list_fleet({**CLUSTER, "podgroups": [train, {**running, "tasks": [again]}]}, list_id="later")
    assert task(drained(ingestor), "web-0")["status"] == TERMINATING


def evicted(ingestor: Ingestor) -> list[tuple[str | None, int, int]]:
    """What was evicted lately: queue, second and count."""
    recent, names = ingestor.snapshot.recent, ingestor.state.names.queues
    rows = zip(recent.queue.tolist(), recent.at.tolist(), recent.count.tolist(), strict=True)
    return [(None if queue < 0 else names[queue], at, count) for queue, at, count in rows]


def test_evictions_count_at_the_time_of_their_verdict_by_the_queue_that_loses(world: World, ingestor: Ingestor) -> None:
    victims = [("web-0", "web"), ("train-9", "train"), ("far-0", "far")]
    made = [{"task": f"default/{one}", "incarnation": 0, "podgroup": f"default/{of}"} for one, of in victims]
    world.decide("p", evictions=made, judged_on={"epoch": 1, "revision": 1, "at": 990.25})
    world.decide("q", evictions=made[:1])
    drained(ingestor)
    told = [(None, 991, 1), ("ml", 991, 1), ("dev", 991, 1), ("dev", 1000, 1)]
    assert sorted(evicted(ingestor), key=str) == sorted(told, key=str)
    world.withdraw("p")
    assert sorted(evicted(drained(ingestor)), key=str) == sorted(told, key=str)
    world.list_fleet(list_id="again")
    assert sorted(evicted(drained(ingestor)), key=str) == sorted(told, key=str)
    assert evicted(drained(world.ingestor("second"))) == evicted(ingestor)


def test_evictions_of_a_queue_that_goes_still_count_in_all(world: World, ingestor: Ingestor) -> None:
    made = {"task": "default/web-0", "incarnation": 0, "podgroup": "default/web"}
    world.decide("p", evictions=[made], judged_on={"epoch": 1, "revision": 1, "at": 990.0})
    world.tell("podgroup_removed", podgroup="default/web")
    world.tell("queue_upserted", name="also")
    assert evicted(drained(ingestor)) == [("dev", 990, 1)]
    world.tell("queue_removed", queue="dev")
    assert evicted(drained(ingestor)) == [(None, 990, 1)]


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"status": "Running", "node": "n3"}, TERMINATING),
        ({"status": "Terminating", "node": "n3"}, TERMINATING),
        ({"incarnation": 1}, PENDING),
    ],
)
def test_a_move_of_an_unknown_task_comes_with_the_list(told: dict[str, object], status: int) -> None:
    world = World()
    ingestor = world.ingestor()  # nothing is known yet
    web = {"task": "default/web-0"}
    world.decide("p", evictions=[{**web, "incarnation": 0}], nominations=[{**web, "node": "n0"}])
    drained(ingestor)
    train, running = CLUSTER["podgroups"]
    listed = {"name": "web-0", "request": {"cpu": 1}, "incarnation": 0, **told}
    world.list_fleet({**CLUSTER, "podgroups": [train, {**running, "tasks": [listed]}]})
    moving = task(drained(ingestor), "web-0")
    assert (moving["status"], moving["nominated"]) == (status, "n0")
    world.withdraw("p")
    assert task(drained(ingestor), "web-0")["nominated"] is None


def test_a_task_that_was_ending_already_is_promised_the_node_to_which_it_moves(
    world: World, ingestor: Ingestor
) -> None:
    web = {"task": "default/web-0"}
    world.tell("task_terminating", **web, incarnation=0)
    drained(ingestor)
    world.decide("p", evictions=[{**web, "incarnation": 0}], nominations=[{**web, "node": "n0"}])
    assert task(drained(ingestor), "web-0")["nominated"] == "n0"


@pytest.mark.parametrize("left", [CLUSTER["podgroups"][1:], []])
def test_a_domain_is_not_kept_once_a_list_leaves_its_podgroup_out(
    world: World, ingestor: Ingestor, left: list[object]
) -> None:
    kept = DomainReserved(podgroup="default/train", domain="r0", epoch=1, refusals=3, reason="test", expires_at=2000.0)
    sent = pack_decision(Outgoing("domain_reserved", kept.podgroup, 0, kept))
    world.ledger.commit(world.lease, [Record("kept", b"", sent)])
    assert [one.podgroup for one in closed(drained(ingestor).state).claims] == [0]
    world.list_fleet({**CLUSTER, "podgroups": left}, "without it")
    assert closed(drained(ingestor).state).claims == ()
