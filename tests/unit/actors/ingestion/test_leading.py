"""Who leads writes checkpoints and trims; who stands by folds along."""

import pytest

from actors.broker.bus import DECISIONS, EVENTS, SNAPSHOTS, START, Bounds
from actors.ingestion.group_notes import GROUP, NOTE_EVERY_S
from actors.ingestion.loop import REPEAT_S, IngestLoop
from pipeline.cluster.tables import RUNNING
from tests.support.told_world import CLUSTER, World, drained, state_of, task


def test_who_does_not_lead_folds_along_and_leaves_nothing_behind(world: World) -> None:
    leader, standby = world.ingestor(checkpoint_every_s=1.0), world.ingestor("second", checkpoint_every_s=1.0)
    standby.leads = False
    for _ in range(3):
        world.now += 2.0
        world.tell("task_started", task="default/train-0", node="n0")
        drained(standby)
    assert task(standby, "train-0")["status"] == RUNNING
    assert world.bus.bounds(SNAPSHOTS).added == 0
    assert world.bus.lags(EVENTS)[GROUP].undelivered == 3  # what the leader has not read yet
    assert state_of(drained(leader)) == state_of(standby)


def test_who_comes_to_lead_settles_what_the_one_before_left(world: World) -> None:
    leader, standby = world.ingestor(), world.ingestor("second")
    standby.leads = False
    for at in range(3):
        world.now += 1
        world.tell("task_started", task="default/train-0", node=f"n{at}")
        drained(leader)
        drained(standby)
    assert world.bus.lags(EVENTS)[GROUP].pending > 0
    world.now += 1
    world.tell("task_started", task="default/train-1", node="n0")
    drained(standby)
    standby.leads = True
    standby.checkpoint()
    assert (world.bus.lags(EVENTS)[GROUP].pending, world.bus.lags(EVENTS)[GROUP].undelivered) == (0, 0)


def test_entries_that_were_read_before_one_led_are_noted_once_it_leads_without_any_news(world: World) -> None:
    leader, standby = world.ingestor(), world.ingestor("second")
    standby.leads = False
    for at in range(3):
        world.now += 1
        world.tell("task_started", task="default/train-0", node=f"n{at}")
        drained(standby)
        if at == 0:
            drained(leader)
    assert world.bus.lags(EVENTS)[GROUP].undelivered == 2
    world.now += 1
    world.tell("task_started", task="default/train-1", node="n0")  # not read yet, so it must not be noted
    standby.leads = True
    standby._note()
    assert world.bus.lags(EVENTS)[GROUP].undelivered == 1
    drained(standby)
    assert world.bus.lags(EVENTS)[GROUP].undelivered == 1  # it was read, and is noted a moment later
    world.now += NOTE_EVERY_S
    standby.poll()
    assert world.bus.lags(EVENTS)[GROUP].undelivered == 0


def test_all_that_was_read_before_one_led_is_noted_if_more_than_is_remembered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.ingestion.group_notes._UNNOTED", 2)
    one = world.ingestor()
    one.leads = False
    for at in range(5):
        world.now += 1
        world.tell("task_started", task="default/train-0", node=f"n{at % 4}")
    drained(one)
    world.now += 1
    world.tell("task_started", task="default/train-1", node="n0")  # not read yet
    one.leads = True
    one._note()
    assert world.bus.lags(EVENTS)[GROUP].undelivered == 1


def test_a_fleet_that_waits_to_be_read_goes_on_once_the_one_that_read_its_list_leads(world: World) -> None:
    one = world.loop()
    one.leads_until(0.0)  # as an actor begins: the lease comes later
    assert one.turn(block_ms=0) is not None
    assert world.bus.reached(EVENTS, GROUP) == START
    one.leads_until(world.now + 10)
    one.turn(block_ms=0)
    assert world.bus.reached(EVENTS, GROUP) == world.bus.bounds(EVENTS).last


def test_a_leader_whose_clock_is_put_back_leads_no_longer_for_that_and_tells_its_state_as_before(world: World) -> None:
    elapsed = [0.0]
    one = world.loop(elapsed_s=lambda: elapsed[0])
    one.leads_until(10.0)
    assert one.turn(block_ms=0) is not None
    assert one.ingestor.leads
    world.now -= 3_600
    elapsed[0] += REPEAT_S
    assert one.turn(block_ms=0) is not None  # a reader may lack the state: it is told again
    elapsed[0] = 10.0
    one.turn(block_ms=0)
    assert not one.ingestor.leads


def test_who_is_overtaken_by_the_leaders_trimming_folds_nothing_behind_the_hole(world: World) -> None:
    leader, standby = world.ingestor(), world.ingestor("second")
    standby.leads = False
    drained(standby)
    for at in range(4):
        world.now += 1
        world.tell("task_started", task="default/train-0", node=f"n{at % 4}")
        drained(leader).checkpoint()
    before = standby.snapshot
    assert not standby.poll()
    assert (standby.overtaken, standby.snapshot is before) == (True, True)
    assert world.asked() == []


def test_who_stands_by_does_not_ask_for_the_first_entry_of_a_stream_while_the_one_it_read_last_is_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    standby = world.ingestor("second")
    standby.leads = False
    drained(standby)
    asked, bounds = list[str](), world.bus.bounds

    def noted(stream: str) -> Bounds:
        asked.append(stream)
        return bounds(stream)

    monkeypatch.setattr(world.bus, "bounds", noted)
    world.tell("task_started", task="default/train-0", node="n0")
    drained(standby)
    assert (task(standby, "train-0")["status"], asked) == (RUNNING, [])


def test_one_that_is_overtaken_begins_anew_with_the_leaders_checkpoint(world: World) -> None:
    standby = world.loop()
    standby.leads_until(0.0)
    leader = world.ingestor()
    assert standby.turn(block_ms=0) is not None
    told = standby.named()
    for at in range(4):
        world.now += 1
        world.tell("task_started", task="default/train-0", node=f"n{at % 4}")
        drained(leader).checkpoint()
    standby.turn(block_ms=0)
    assert standby.turn(block_ms=0) is not None
    assert state_of(standby.ingestor) == state_of(leader)
    assert standby.additions(since=told).tasks_from == 0  # rows may be others: every name is told again
    assert world.asked() == []
    standby.close()
    assert world.bus.lags(EVENTS)[GROUP].pending == 0


def test_a_list_is_asked_for_once_when_rows_of_what_is_gone_outnumber_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.ingestion.entry_fold.SPARE_ROWS", 10)
    ingestor = world.ingestor()
    for at in range(12):
        world.tell("podgroup_upserted", name=f"x{at}", queue="ml", tasks=[{"name": f"x{at}-0"}])
        world.tell("podgroup_removed", podgroup=f"default/x{at}")
        drained(ingestor).checkpoint()
    assert world.asked() == ["of 18 rows 12 are of what is gone"]
    world.list_fleet(CLUSTER, "again")
    assert len(drained(ingestor).snapshot.tasks) == 4
    ingestor.checkpoint()
    assert len(world.asked()) == 1


def test_a_leader_whose_broker_begins_with_an_empty_memory_asks_for_a_list(world: World) -> None:
    leader = world.loop()
    leader.leads_until(world.now + 1_000)
    for at in range(2):
        world.decide(f"p{at}", nominations=[{"task": f"default/train-{at}", "node": f"n{at}"}])
    assert leader.turn(block_ms=0) is not None
    assert leader.snapshot.decided == 2
    world.now += 60.0
    lost = World()
    world.bus._logs, world.ledger = lost.bus._logs, lost.ledger
    world.ledger._bus = world.bus
    for _ in range(2):
        leader.turn(block_ms=0)
    assert leader.unlisted
    assert world.asked() == ["the broker has lost what was read of events or decisions"]
    world.list_fleet(list_id="again")
    world.lease = lost.lease
    world.decide("p3", nominations=[{"task": "default/train-2", "node": "n2"}])
    leader.turn(block_ms=0)
    leader.turn(block_ms=0)
    assert (leader.unlisted, leader.snapshot.decided) == (False, 1)
    assert task(leader.ingestor, "train-2")["nominated"] == "n2"


def leading(world: World) -> IngestLoop:
    """The loop of a service that leads, which has read everything and looked at the streams."""
    made = world.loop()
    made.leads_until(world.now + 1_000)
    while made.turn(block_ms=0) is not None:
        pass
    return made


def looked(loop: IngestLoop, world: World) -> IngestLoop:
    """The loop a while later."""
    for _ in range(4):
        world.now += 3.0
        loop.turn(block_ms=0)
    return loop


@pytest.mark.parametrize("stream", [EVENTS, DECISIONS])
@pytest.mark.parametrize("gone", [slice(0, -1), slice(-2, -1), slice(-1, None)], ids=["trimmed", "deleted", "the last"])
def test_a_leader_notices_what_came_and_was_removed_by_hand_before_it_was_read(
    world: World, stream: str, gone: slice
) -> None:
    leader = leading(world)
    log = world.bus._log(stream)
    for at in range(3):
        world.tell("queue_upserted", name=f"q{at}")
        world.decide(f"p{at}", nominations=[{"task": f"default/train-{at}", "node": f"n{at}"}])
    del log.ids[gone], log.entries[gone]
    assert looked(leader, world).unlisted
    assert world.asked() == ["the broker has lost what was read of events or decisions"]
    world.list_fleet(list_id="again")
    assert not looked(leader, world).unlisted
    assert len(world.asked()) == 1


def test_a_leader_notices_a_stream_that_was_removed_by_hand_and_is_written_again_at_once(world: World) -> None:
    leader = leading(world)
    world.tell("queue_upserted", name="lost")
    world.now += 1.0
    log = world.bus._log(EVENTS)
    log.ids, log.entries, log.added, log.last = [], [], 0, (0, 0)
    world.tell("queue_upserted", name="next")
    assert looked(leader, world).unlisted


def test_a_leader_that_trims_what_it_has_read_while_news_comes_misses_nothing(world: World) -> None:
    leader = leading(world)
    for at in range(30):
        world.tell("queue_upserted", name=f"q{at}")
        world.decide(f"p{at}", nominations=[{"task": "default/train-1", "node": f"n{at % 4}"}])
        leader.ingestor.checkpoint()
        world.now += 0.7
        leader.turn(block_ms=0)
    assert world.bus.bounds(EVENTS).length < 30
    assert not leader.unlisted
    assert world.asked() == []
