"""Cards on the wire: events name them, decisions promise them, a fleet obeys; and what outlives a list."""

from typing import Any

import numpy as np
import pytest

from actors.broker.bus import DECISIONS, START
from actors.cluster_file.reader import read_cluster
from actors.columns.card_names import card_names
from actors.columns.compile import compile_cluster
from actors.configuration.profiles import load_profile
from actors.ingestion.exported import cluster_document
from actors.ingestion.ingestor import Ingestor
from actors.protocol.bodies import FleetListed, Nomination, PlanCommitted
from actors.protocol.envelopes import Message, decode_decisions
from actors.verification.audit import Audit
from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import RUNNING, TERMINATING
from tests.support.assembly import Assembly
from tests.support.carded import carded, node, waiting
from tests.support.encoded import encoded
from tests.support.told_world import World, drained

APART = carded([("a", "4Gi", "gpu-0", 0), ("b", "4Gi", "gpu-1", 1)], waiting("c", "8Gi"))


def listed(cluster: dict[str, Any]) -> dict[str, Any]:
    """What a fleet says: no policy."""
    return {key: value for key, value in cluster.items() if key != "policy"}


@pytest.fixture
def world() -> World:
    made = World()
    made.list_fleet(listed(APART))
    return made


def card(ingestor: Any, name: str) -> str | None:
    """The card that a task was promised, else the one that it holds."""
    tasks = ingestor.snapshot.tasks
    row = ingestor.state.names.row("tasks", f"default/{name}")
    for place, on in ((tasks.nominated[row], tasks.nominated_card[row]), (tasks.node[row], tasks.card[row])):
        if on != NONE:
            return card_names(ingestor.snapshot, int(place))[on]
    return None


def decisions(assembly: Assembly) -> list[PlanCommitted]:
    entries = assembly.bus.follow(DECISIONS, START)
    messages = [message for entry in entries for message in decode_decisions(entry)]
    return [one.body for one in messages if isinstance(one, Message) and isinstance(one.body, PlanCommitted)]


def test_a_decision_names_the_card_and_the_fleet_starts_the_task_on_it() -> None:
    assembly = Assembly(listed(APART))
    for _ in range(4):
        assembly.turn(10.0)
    evicting, *starting = decisions(assembly)
    assert [one.task for one in evicting.evictions] == ["default/a"]
    assert evicting.nominations == (Nomination(task="default/c-0", node="n0", card="gpu-0", incarnation=0),)
    bound = {one.task: one.card for made in starting for one in made.bindings}
    assert bound == {"default/c-0": "gpu-0", "default/a": "gpu-1"}
    assert assembly.status("c-0") == "Running"
    assert (assembly.fleet.tally.misfits, assembly.report().broken) == (0, [])
    known = assembly.ingest.ingestor.snapshot
    assembly.restart_ingestor()
    assembly.hear()
    assert encoded(assembly.ingest.ingestor.snapshot) == encoded(known)  # invariant 13
    assembly.say(assembly.fleet.listing("again"))
    assembly.hear()
    assert card(assembly.ingest.ingestor, "c-0") == "gpu-0"


def test_a_decision_without_cards_says_nothing_of_them() -> None:
    assembly = Assembly({**listed(carded([])), "podgroups": [{**waiting("c", "0"), "min_available": 1}]})
    assembly.turn()
    (binding,) = decisions(assembly)[0].bindings
    assert binding.model_dump(exclude_defaults=True) == {"task": "default/c-0", "node": "n0", "incarnation": 0}


@pytest.mark.parametrize(
    ("task", "said", "letter"),
    [
        ("c-0", {}, "body.card: expected the name of a card of n0 (gpu-0, gpu-1), found nothing"),
        ("c-0", {"card": "x"}, 'body.card: expected the name of a card of n0 (gpu-0, gpu-1), found "x"'),
        ("plain", {"card": "gpu-0"}, 'body.card: expected none without card_request, found "gpu-0"'),
    ],
)
def test_a_start_on_a_card_that_cannot_be_meant_goes_to_the_dead_letters(
    task: str, said: dict[str, str], letter: str
) -> None:
    world, cluster = World(), listed(APART)
    plain = {"name": "p", "queue": "q", "tasks": [{"name": "plain", "request": {"cpu": 1}}]}
    world.list_fleet({**cluster, "podgroups": [*cluster["podgroups"], plain]})
    ingestor = world.ingestor()
    world.tell("task_started", task=f"default/{task}", node="n0", **said)
    drained(ingestor)
    assert world.letters() == [letter]


def test_a_task_that_starts_on_a_card_holds_it_until_it_ends(world: World, ingestor: Ingestor) -> None:
    world.tell("task_ended", task="default/a", outcome="Evicted", replaced=True)
    world.tell("task_started", task="default/c-0", node="n0", card="gpu-0")
    drained(ingestor)
    assert (card(ingestor, "a"), card(ingestor, "c-0")) == (None, "gpu-0")
    world.tell("task_terminating", task="default/c-0")
    drained(ingestor)
    assert ingestor.snapshot.card_room.terminating.tolist() == [[8 << 30, 0]]
    world.tell("task_ended", task="default/c-0", outcome="Succeeded")
    drained(ingestor)
    assert ingestor.snapshot.card_room.idle.tolist() == [[8 << 30, 4 << 30]]


def test_podgroups_and_tasks_that_come_later_name_their_cards(world: World, ingestor: Ingestor) -> None:
    task = {"request": {"cpu": 1}, "card_request": "2Gi", "status": "Running", "node": "n0"}
    world.tell("podgroup_upserted", name="late", queue="q", tasks=[{**task, "name": "l", "card": "gpu-1"}])
    world.tell("task_upserted", podgroup="default/late", task={**task, "name": "m", "card": "gpu-0"})
    world.tell("task_upserted", podgroup="default/late", task={**task, "name": "l", "card": "gpu-0"})
    world.tell("task_upserted", podgroup="default/late", task={**task, "name": "x", "card": "gpu-9"})
    drained(ingestor)
    assert [card(ingestor, name) for name in "lm"] == ["gpu-0", "gpu-0"]
    assert world.letters() == ["body: expected the name of a card of n0, found 'gpu-9'"]
    assert ingestor.snapshot.card_room.idle.tolist() == [[0, 4 << 30]]


def test_cards_among_which_there_is_another_are_held_by_the_same_tasks_as_before(
    world: World, ingestor: Ingestor
) -> None:
    world.decide("p", nominations=(Nomination(task="default/c-0", node="n0", card="gpu-1"),))
    drained(ingestor)
    world.tell("node_upserted", **node(cards=("gpu-1", "another", "gpu-0")))
    drained(ingestor)
    assert world.letters() == []
    assert [card(ingestor, name) for name in ("a", "b", "c-0")] == ["gpu-0", "gpu-1", "gpu-1"]
    assert ingestor.snapshot.card_room.future.tolist() == [[8 << 30, 4 << 30, -(4 << 30)]]


def test_a_card_that_is_held_is_not_taken_away_and_a_promise_of_one_ends(world: World, ingestor: Ingestor) -> None:
    world.tell("node_upserted", **node(cards=("gpu-1",)))
    drained(ingestor)
    (letter,) = world.letters()
    assert letter == (
        "body: nodes.n0.cards: expected 'gpu-0', which default/a holds (with a capacity of 0 it takes no other task), "
        "found none"
    )
    world.tell("task_ended", task="default/a", outcome="Succeeded")
    world.decide("p", nominations=(Nomination(task="default/c-0", node="n0", card="gpu-0", incarnation=0),))
    world.tell("node_upserted", **node(cards=("gpu-1",)))
    drained(ingestor)
    row = ingestor.state.names.row("tasks", "default/c-0")
    assert ingestor.snapshot.tasks.promised(np.array([row])) == ([NONE], [NONE])
    assert card(ingestor, "b") == "gpu-1"


def test_a_promised_card_outlives_a_full_list_and_a_checkpoint(world: World, ingestor: Ingestor) -> None:
    world.decide("p", nominations=(Nomination(task="default/c-0", node="n0", card="gpu-1"),))
    drained(ingestor)
    world.list_fleet({**listed(APART), "nodes": [node(cards=("gpu-1", "gpu-0"))]}, "another")
    drained(ingestor)
    assert [card(ingestor, name) for name in ("a", "b", "c-0")] == ["gpu-0", "gpu-1", "gpu-1"]
    world.withdraw("p")
    drained(ingestor)
    assert card(ingestor, "c-0") is None


def test_a_promise_of_a_card_that_a_list_leaves_out_ends(world: World, ingestor: Ingestor) -> None:
    world.decide("p", nominations=(Nomination(task="default/c-0", node="n0", card="gpu-1"),))
    drained(ingestor)
    cluster = listed(carded([("a", "4Gi", "gpu-0", 0)], waiting("c", "8Gi"), nodes=[node(cards=("gpu-0",))]))
    world.list_fleet(cluster, "another")
    drained(ingestor)
    row = ingestor.state.names.row("tasks", "default/c-0")
    assert ingestor.snapshot.tasks.promised(np.array([row])) == ([NONE], [NONE])


def test_a_binding_by_decision_is_on_its_card_at_once(world: World, ingestor: Ingestor) -> None:
    world.decide("p", bindings=({"task": "default/c-0", "node": "n0", "card": "gpu-1"},))
    world.decide("q", bindings=({"task": "default/c-0", "node": "n0", "card": "gpu-9"},))
    drained(ingestor)
    row = ingestor.state.names.row("tasks", "default/c-0")
    assert card(ingestor, "c-0") == "gpu-1"
    world.tell("task_started", task="default/c-0", node="n0", card="gpu-1")
    drained(ingestor)
    assert ingestor.snapshot.tasks.status[row] == RUNNING
    assert card(ingestor, "c-0") == "gpu-1"


def test_the_audit_finds_a_card_that_was_promised_twice() -> None:
    audit = Audit()
    whole = FleetListed(list_id="l", part=0, parts=1, cluster=listed(APART))
    promise = Nomination(task="default/c-0", node="n0", card="gpu-0")
    made = PlanCommitted(plan_id="p", epoch=1, action="allocate", nominations=(promise,))
    for at, body in enumerate([whole, made]):
        audit.hear(Message("event", "p", at, body, f"{at}-0", 0), at)
    over = f"{12 << 30} card gpu-0 of {8 << 30}"
    assert audit.report.broken == [f"plan p: node n0 will have {over}"]


MOVING = carded([("a", "4Gi", "gpu-0", 0)], nodes=[node("n0"), node("n1")])


def moving(world: World) -> Any:
    """The ingestor once task a is to move to a card of the other node."""
    world.list_fleet(listed(MOVING))
    ingestor = world.ingestor()
    a = {"task": "default/a", "incarnation": 0}
    world.decide("p", evictions=[a], nominations=[{"task": "default/a", "node": "n1", "card": "gpu-1"}])
    return drained(ingestor)


def test_a_task_that_moves_holds_one_card_until_it_ends_and_is_promised_another() -> None:
    world = World()
    ingestor = moving(world)
    room = ingestor.snapshot.card_room
    assert (room.idle.tolist(), room.future.tolist()) == (
        [[4 << 30, 8 << 30], [8 << 30, 8 << 30]], [[8 << 30, 8 << 30], [8 << 30, 4 << 30]]
    )  # fmt: skip
    world.tell("task_ended", task="default/a", outcome="Evicted", replaced=True)
    drained(ingestor)
    assert card(ingestor, "a") == "gpu-1"
    assert ingestor.snapshot.card_room.idle.tolist() == [[8 << 30, 8 << 30]] * 2
    assert ingestor.snapshot.card_room.future.tolist() == [[8 << 30, 8 << 30], [8 << 30, 4 << 30]]


def test_the_card_that_a_moving_task_is_promised_outlives_an_export_and_a_list() -> None:
    world = World()
    ingestor = moving(world)
    exported = cluster_document(ingestor.state, world.now)
    snapshot, names = compile_cluster(read_cluster(exported))
    row = names.tasks.index("default/a")
    on = card_names(snapshot, names.nodes.index("n1"))[snapshot.tasks.nominated_card[row]]
    assert (snapshot.tasks.status[row], on) == (TERMINATING, "gpu-1")
    ends = {**listed(MOVING), "nodes": [node("n1", ("gpu-1", "gpu-0")), node("n0")]}
    world.list_fleet(ends, "another")
    drained(ingestor)
    assert card(ingestor, "a") == "gpu-1"
    assert ingestor.snapshot.tasks.status[ingestor.state.names.row("tasks", "default/a")] == TERMINATING


def test_a_move_ends_when_the_card_that_was_promised_is_gone() -> None:
    world = World()
    ingestor = moving(world)
    world.tell("node_upserted", **node("n1", cards=("gpu-0",)))
    drained(ingestor)
    row = ingestor.state.names.row("tasks", "default/a")
    assert ingestor.snapshot.tasks.promised(np.array([row])) == ([NONE], [NONE])
    assert card(ingestor, "a") == "gpu-0"


def test_a_fleet_carries_out_a_move_to_another_card() -> None:
    halves = [("a", "4Gi", "gpu-0", 50), ("b", "4Gi", "gpu-1", 50)]
    assembly = Assembly(listed(carded(halves, waiting("c", "8Gi"))), policy=load_profile("kai"))
    for _ in range(6):
        assembly.turn(10.0)
    assert {assembly.status(name) for name in ("a", "b", "c-0")} == {"Running"}
    assert (assembly.fleet.tally.misfits, assembly.report().broken) == (0, [])
    assert card(assembly.ingest.ingestor, "a") == card(assembly.ingest.ingestor, "b")
