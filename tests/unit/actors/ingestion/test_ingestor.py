"""The ingestor over a broker in memory: what it reads, what it refuses, what it leaves behind, how it starts again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgpack
import pytest

from actors.broker.bus import DEAD, DECISIONS, EVENTS, SNAPSHOTS, Entry
from actors.ingestion.group_notes import GROUP
from actors.ingestion.ingestor import Ingestor
from actors.protocol.envelopes import Outgoing
from actors.protocol.full_list import cut
from pipeline.cluster.tables import RUNNING, TERMINATING
from tests.support.told_world import CLUSTER, World, drained, state_of, task


def test_a_full_list_becomes_the_state(world: World, ingestor: Ingestor) -> None:
    assert ingestor.state.listed
    assert len(ingestor.snapshot.nodes) == 4
    assert task(ingestor, "web-0") == {"status": RUNNING, "node": "n3", "nominated": None, "life": 0}
    assert world.asked() == []


def test_a_start_reads_to_the_end_whatever_it_reads() -> None:
    world = World()
    for _ in range(5):
        world.tell("task_started", task="default/nobody", node="n1")
    world.list_fleet()
    assert world.ingestor(entries=2).state.listed
    assert world.asked() == []


def test_a_start_ends_although_the_fleet_says_more_with_each_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, said = world.bus.follow_any, list[Outgoing]()

    def said_meanwhile(after: Mapping[str, str], *, count: int = 100, block_ms: int = 0) -> Mapping[str, list[Entry]]:
        assert len(said) < 10, "expected an end of the start"
        said.append(world.tell("task_started", task=f"default/train-{len(said) % 3}", node="n1"))
        return read(after, count=count, block_ms=block_ms)

    monkeypatch.setattr(world.bus, "follow_any", said_meanwhile)
    begun = world.ingestor()
    assert begun.state.listed
    behind = begun.snapshot.revision
    begun.poll()
    assert begun.snapshot.revision > behind


def test_unknown_names_are_dead_letters_and_everything_else_is_folded(world: World, ingestor: Ingestor) -> None:
    world.say(
        world.outgoing("task_started", {"task": "default/nobody", "node": "n1"}),
        world.outgoing("task_started", {"task": "default/train-0", "node": "nowhere"}),
        world.outgoing("task_started", {"task": "default/train-1", "node": "n0"}),
        world.outgoing("task_started", {"task": "default/train-2"}),
        world.outgoing("no_such_kind", {}),
        world.outgoing("task_upserted", {"podgroup": "default/none", "task": {"name": "x"}}),
        world.outgoing("node_removed", {"node": "n9"}),
        world.outgoing("podgroup_removed", {"podgroup": "default/none"}),
    )
    drained(ingestor)
    assert task(ingestor, "train-1")["node"] == "n0"
    letters = world.letters()
    assert len(letters) == 7
    for sentence in (
        "body.task: expected the name of a task that is known, found 'default/nobody'",
        "body.node: expected the name of a node that is there, found 'nowhere'",
        "body.podgroup: expected the name of a podgroup that is there, found 'default/none'",
        "body.node: expected the name of a node that is there, found 'n9'",
    ):
        assert sentence in letters
    world.ingestor("second")
    assert len(world.letters()) == 7


def test_poison_is_a_dead_letter_with_what_it_was(world: World, ingestor: Ingestor) -> None:
    world.bus.publish(EVENTS, {"batch": b"\xc1 not msgpack"})
    world.bus.publish(EVENTS, {"other": b"field"})
    world.tell("task_started", task="default/train-0", node="n1")
    assert task(drained(ingestor), "train-0")["status"] == RUNNING
    letters = world.bus.follow(DEAD, "0-0")
    assert letters[0].fields["raw"] == b"\xc1 not msgpack"
    assert len(letters) == 2


def test_what_the_dead_letter_holds_is_the_message(world: World, ingestor: Ingestor) -> None:
    world.tell("task_started", task="default/nobody", node="n1")
    drained(ingestor)
    (letter,) = world.bus.follow(DEAD, "0-0")
    assert msgpack.unpackb(letter.fields["raw"])["body"] == {"task": "default/nobody", "node": "n1"}


HISTORY = (
    lambda w: w.tell("task_started", task="default/train-0", node="n0"),
    lambda w: w.tell("podgroup_upserted", name="late", queue="ml", tasks=[{"name": "late-0", "labels": {"app": "y"}}]),
    lambda w: w.decide("p", evictions=[{"task": "default/train-0", "incarnation": 0}],
                       nominations=[{"task": "default/late-0", "node": "n0"}]),
    lambda w: w.tell("task_ended", task="default/train-0", outcome="Evicted", replaced=True),
    lambda w: w.tell("node_upserted", name="a0", allocatable={"cpu": "4"}, labels={"rack": "r1"}),
    lambda w: w.tell("task_started", task="default/late-0", node="n0"),
    lambda w: w.decide("q", nominations=[{"task": "default/train-0", "node": "a0"}]),
    lambda w: w.tell("task_started", task="default/nobody", node="n0"),
    lambda w: w.tell("queue_upserted", name="new", created=1.0),
    lambda w: w.withdraw("q"),
    lambda w: w.list_fleet(CLUSTER, "again"),
    lambda w: w.tell("podgroup_upserted", name="train", queue="dev", min_available=1),
    lambda w: w.tell("node_removed", node="n3"),
)  # fmt: skip


@pytest.mark.parametrize("cut_at", range(len(HISTORY) + 1))
def test_recovery_from_any_checkpoint_rebuilds_the_same_bytes(world: World, ingestor: Ingestor, cut_at: int) -> None:
    for at, happen in enumerate(HISTORY):
        if at == cut_at:
            ingestor.checkpoint()
        world.now += 1
        happen(world)
        drained(ingestor)
    if cut_at == len(HISTORY):
        ingestor.checkpoint()
    ingestor.state.decisions.plans.clear()  # which of them stand is looked up when a checkpoint is written
    recovered = world.ingestor("second")
    recovered.state.decisions.plans.clear()
    assert state_of(recovered) == state_of(ingestor)
    assert len(world.letters()) == 1


def test_no_checkpoint_is_written_while_a_list_is_told(world: World, ingestor: Ingestor) -> None:
    world.revision += 1
    parts = [Outgoing("fleet_listed", "fleet", world.revision, part) for part in cut(CLUSTER, "second", 200)]
    world.say(parts[0])
    world.tell("task_started", task="default/train-0", node="n1")
    drained(ingestor).checkpoint()
    assert world.bus.bounds(SNAPSHOTS).added == 0
    for part in parts[1:]:
        world.say(part)
    drained(ingestor)
    assert state_of(world.ingestor("second")) == state_of(ingestor)


def test_entries_are_acknowledged_and_trimmed_once_a_checkpoint_covers_them(world: World, ingestor: Ingestor) -> None:
    for at in range(5):
        world.now += 1
        world.tell("task_started", task="default/train-0", node=f"n{at % 4}")
        drained(ingestor)
    assert world.bus.lags(EVENTS)[GROUP].pending == 6
    ingestor.checkpoint()
    assert world.bus.lags(EVENTS)[GROUP].pending == 0
    assert world.bus.bounds(EVENTS).length == 6  # the checkpoint may yet be harmed, and there is none before it
    world.tell("task_started", task="default/train-1", node="n0")
    drained(ingestor).checkpoint()
    assert world.bus.bounds(EVENTS).length == 2


def test_a_decision_that_still_promises_something_is_not_trimmed(world: World, ingestor: Ingestor) -> None:
    for plan, node in (("p", "n0"), ("q", "n1")):
        world.now += 1
        world.decide(plan, nominations=[{"task": f"default/train-{'pq'.index(plan)}", "node": node}])
    for _ in range(2):
        drained(ingestor).checkpoint()
    assert world.bus.bounds(DECISIONS).length == 2
    world.tell("task_started", task="default/train-0", node="n0")
    for _ in range(2):
        drained(ingestor).checkpoint()
    assert world.bus.bounds(DECISIONS).length == 1


def test_checkpoints_are_written_by_entries_and_by_time(world: World) -> None:
    ingestor = world.ingestor(checkpoint_every_entries=3, checkpoint_every_s=60.0)
    assert world.bus.bounds(SNAPSHOTS).added == 0
    for _ in range(3):
        world.tell("task_started", task="default/train-0", node="n0")
        drained(ingestor)
    assert world.bus.bounds(SNAPSHOTS).added > 0
    before = world.bus.bounds(SNAPSHOTS).added
    world.now += 61
    world.tell("task_started", task="default/train-1", node="n0")
    drained(ingestor)
    assert world.bus.bounds(SNAPSHOTS).added > before


def test_trace_contexts_of_events_are_handed_on_once(world: World, ingestor: Ingestor) -> None:
    world.say(
        world.outgoing("task_started", {"task": "default/train-0", "node": "n0"}),
        traceparent=b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    )
    drained(ingestor)
    assert [link["traceparent"][:5] for link in ingestor.folding.trace_links] == ["00-4b"]
    assert ingestor.folding.trace_links == ()


def test_the_checkpoint_before_a_harmed_one_leads_to_the_same_state(world: World, ingestor: Ingestor) -> None:
    for at, happen in enumerate(HISTORY):
        world.now += 1
        happen(world)
        drained(ingestor)
        if at in (2, 5, 8):
            ingestor.checkpoint()
    newest = world.bus.newest(SNAPSHOTS)[0]
    for harm in ({"digest": b"\0" * 16}, {"ids": ["1-0"]}):
        said = {**msgpack.unpackb(newest.fields["manifest"]), **harm}
        harmed = {"manifest": msgpack.packb(said)}
        log = world.bus._log(SNAPSHOTS)
        log.entries[-1] = replace(newest, fields=harmed)
        recovered = world.ingestor(f"after {next(iter(harm))}")
        for one in (ingestor, recovered):
            one.state.decisions.plans.clear()
        assert state_of(recovered) == state_of(ingestor)
    assert world.asked() == []


@pytest.mark.parametrize("entries", [1, 2, 3, 7])
def test_a_turn_takes_a_bounded_number_and_the_order_is_the_same(entries: int) -> None:
    outcomes = []
    for pace in ({"entries": entries}, {"entries": 1_000}):
        world = World()
        world.list_fleet()
        ingestor = world.ingestor()
        for at in range(40):
            world.now += at % 3 == 0
            world.tell("task_started", task=f"default/train-{at % 3}", node=f"n{at % 4}")
            if at % 10 == 5:
                world.decide(f"p{at}", evictions=[{"task": f"default/train-{at % 3}", "incarnation": 0}])
            if at % 10 == 7:
                world.tell("task_ended", task=f"default/train-{(at - 2) % 3}", outcome="Evicted", replaced=True)
        late = world.ingestor("late", **pace)
        for one in (late, ingestor):
            drained(one).state.decisions.plans.clear()
        assert state_of(late) == state_of(ingestor)
        outcomes.append(state_of(late))
    assert outcomes[0] == outcomes[1]


def test_events_before_the_last_decision_are_not_read_all_at_once(world: World) -> None:
    ingestor = world.ingestor(entries=5)
    for at in range(100):
        world.now += 1
        world.tell("task_started", task=f"default/train-{at % 3}", node=f"n{at % 4}")
    world.decide("p", evictions=[{"task": "default/train-0", "incarnation": 0}])
    turns = []
    while ingestor._turn():
        turns.append(ingestor._reading.at[EVENTS])
    assert len(turns) >= 10
    assert task(ingestor, "train-0")["status"] == TERMINATING


def test_fewer_entries_are_read_at_once_where_they_are_large(world: World) -> None:
    ingestor = world.ingestor(entries=50, read_bytes=4_000)
    reads: list[int] = []
    follow, follow_any = world.bus.follow, world.bus.follow_any

    def counted(stream: str, found: Sequence[Entry]) -> None:
        if stream == EVENTS and found:
            reads.append(len(found))

    def one(stream: str, after: str, **more: int) -> list[Entry]:
        found = follow(stream, after, **more)
        counted(stream, found)
        return found

    def both(after: Mapping[str, str], **more: int) -> Mapping[str, list[Entry]]:
        found = follow_any(after, **more)
        counted(EVENTS, found[EVENTS])
        return found

    world.bus.follow, world.bus.follow_any = one, both  # type: ignore[method-assign]
    for _ in range(100):
        labels = {"app": "y" * 900}
        world.tell("podgroup_upserted", name="late", queue="ml", tasks=[{"name": "late-0", "labels": labels}])
    drained(ingestor)
    assert sum(reads) == 100
    assert max(reads[1:]) <= 4


def test_an_entry_whose_writer_chose_an_id_far_ahead_is_refused(world: World, ingestor: Ingestor) -> None:
    now, world.now = world.now, world.now + 10 * 86_400
    world.tell("queue_upserted", name="ahead")
    world.now = now
    drained(ingestor)
    assert world.letters() == ["entry: expected an id that the broker has chosen, found one 864000 s ahead of its time"]
    assert "ahead" not in ingestor.state.names.queues
