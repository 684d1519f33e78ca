"""The ingestor over a broker in memory: news in, state out, whatever is repeated, wrong or interrupted."""

from collections.abc import Mapping
from typing import Any

import msgpack
import numpy as np
import pytest

from actors.bus import DEAD, DECISIONS, EVENTS, SNAPSHOTS
from actors.ingestor import GROUP, Ingestor, Pace
from actors.kinds import PlanCommitted, PlanWithdrawn
from actors.ledger import Lease, Record
from actors.listing import cut
from actors.memory_bus import MemoryBus
from actors.memory_ledger import MemoryLedger
from actors.messages import Message, Outgoing, decode_decisions, pack, pack_decision
from pipeline.cluster import checkpoint
from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import GONE, PENDING, RUNNING, TERMINATING

CLUSTER: dict[str, Any] = {
    "version": 1,
    "nodes": [
        {"name": f"n{i}", "allocatable": {"cpu": "8", "memory": "16Gi", "pods": 10}, "labels": {"rack": f"r{i // 2}"}}
        for i in range(4)
    ],
    "topology": {"levels": ["rack"], "labels": {"rack": "rack"}},
    "queues": [{"name": "ml", "deserved": {"cpu": 8}}, {"name": "dev"}],
    "priority_classes": [{"name": "high", "value": 100}],
    "disruption_budgets": [{"name": "b", "match_labels": {"app": "x"}, "disruptions_allowed": 1}],
    "podgroups": [
        {
            "name": "train", "queue": "ml", "min_available": 2, "roles": {"worker": {"min": 2}}, "created": 5.0,
            "tasks": [{"name": "train", "count": 3, "role": "worker", "request": {"cpu": 2}, "labels": {"app": "x"}}],
        },
        {
            "name": "web", "queue": "dev", "tasks": [
                {"name": "web-0", "request": {"cpu": 1}, "status": "Running", "node": "n3"},
            ],
        },
    ],
}  # fmt: skip


class World:
    """A broker, a fleet that speaks, a ledger that records, and a clock that only moves when told."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.bus = MemoryBus(clock_s=lambda: self.now)
        self.ledger = MemoryLedger(self.bus, clock_s=lambda: self.now)
        lease = self.ledger.acquire("test", 1_000_000)
        assert isinstance(lease, Lease)
        self.lease = lease
        self.revision = 0
        self.sequence = 0

    def outgoing(self, kind: str, body: Mapping[str, Any], revision: int | None = None) -> Outgoing:
        self.revision += 1
        return Outgoing(kind, f"{kind}-uid", self.revision if revision is None else revision, body)

    def say(self, *messages: Outgoing, **fields: bytes) -> None:
        for entry in pack(messages):
            self.bus.publish(EVENTS, {**entry, **fields})

    def tell(self, kind: str, **body: Any) -> Outgoing:
        message = self.outgoing(kind, body)
        self.say(message)
        return message

    def list_fleet(
        self, cluster: Mapping[str, Any] = CLUSTER, list_id: str = "list", part_bytes: int = 1 << 19
    ) -> None:
        self.revision += 1
        for part in cut(cluster, list_id, part_bytes):
            self.say(Outgoing("fleet_listed", "fleet", self.revision, part))

    def decide(self, plan_id: str, **made: Any) -> None:
        body = PlanCommitted(plan_id=plan_id, epoch=1, action="preempt", **made)
        self.record(plan_id, "plan_committed", body)

    def withdraw(self, plan_id: str) -> None:
        self.record(f"{plan_id}:withdrawn", "plan_withdrawn", PlanWithdrawn(plan_id=plan_id, reason="test"))

    def record(self, key: str, kind: str, body: Any) -> None:
        sent = pack_decision(Outgoing(kind, body.plan_id, 0, body))
        self.ledger.commit(Record(key, self.lease.epoch, b"", sent))

    def ingestor(self, name: str = "first", **pace: Any) -> Ingestor:
        made = Ingestor(self.bus, consumer=name, now_s=lambda: self.now, pace=Pace(**pace))
        made.start()
        return made

    def letters(self) -> list[str]:
        return [entry.fields["reason"].decode() for entry in self.bus.follow(DEAD, "0-0")]

    def asked(self) -> list[str]:
        entries = self.bus.follow(DECISIONS, "0-0")
        found = [one for entry in entries for one in decode_decisions(entry) if isinstance(one, Message)]
        return [one.body.reason for one in found if one.kind == "resync_requested"]


@pytest.fixture
def world() -> World:
    made = World()
    made.list_fleet()
    return made


def drained(ingestor: Ingestor) -> Ingestor:
    while ingestor.poll():
        pass
    return ingestor


def task(ingestor: Ingestor, name: str) -> dict[str, Any]:
    row = ingestor.names.row("tasks", f"default/{name}")
    tasks, nodes = ingestor.snapshot.tasks, ingestor.names.nodes
    return {
        "status": int(tasks.status[row]),
        "node": nodes[tasks.node[row]] if tasks.node[row] != NONE else None,
        "nominated": nodes[tasks.nominated[row]] if tasks.nominated[row] != NONE else None,
        "life": int(tasks.incarnation[row]),
    }


def state_of(ingestor: Ingestor) -> tuple[bytes, bytes]:
    return checkpoint.encode(ingestor.snapshot), ingestor.names.pack()


def test_a_full_list_becomes_the_state(world: World) -> None:
    ingestor = world.ingestor()
    assert ingestor.names.listed
    assert len(ingestor.snapshot.nodes) == 4
    assert task(ingestor, "web-0") == {"status": RUNNING, "node": "n3", "nominated": None, "life": 0}
    assert world.asked() == []


def test_a_start_without_anything_asks_for_a_full_list() -> None:
    world = World()
    ingestor = world.ingestor()
    assert world.asked() == ["nothing is known yet"]
    world.list_fleet()
    assert drained(ingestor).names.listed
    assert len(world.asked()) == 1


def test_news_of_tasks_is_folded(world: World) -> None:
    ingestor = world.ingestor()
    world.tell("task_started", task="default/train-0", node="n1", at=7.0)
    world.tell("task_started", task="default/train-1", node="n1", at=8.0)
    assert ingestor.poll()
    assert not ingestor.poll()
    row = ingestor.names.row("podgroups", "default/train")
    assert ingestor.snapshot.podgroups.started[row] == 8.0
    world.tell("task_terminating", task="default/train-0")
    world.tell("task_ended", task="default/train-0", outcome="Evicted", replaced=True)
    assert task(drained(ingestor), "train-0") == {"status": PENDING, "node": None, "nominated": None, "life": 1}


def test_unknown_names_are_dead_letters_and_everything_else_is_folded(world: World) -> None:
    ingestor = world.ingestor()
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


def test_poison_is_a_dead_letter_with_what_it_was(world: World) -> None:
    ingestor = world.ingestor()
    world.bus.publish(EVENTS, {"batch": b"\xc1 not msgpack"})
    world.bus.publish(EVENTS, {"other": b"field"})
    world.tell("task_started", task="default/train-0", node="n1")
    assert task(drained(ingestor), "train-0")["status"] == RUNNING
    letters = world.bus.follow(DEAD, "0-0")
    assert letters[0].fields["raw"] == b"\xc1 not msgpack"
    assert len(letters) == 2


def test_what_the_dead_letter_holds_is_the_message(world: World) -> None:
    ingestor = world.ingestor()
    world.tell("task_started", task="default/nobody", node="n1")
    drained(ingestor)
    (letter,) = world.bus.follow(DEAD, "0-0")
    assert msgpack.unpackb(letter.fields["raw"])["body"] == {"task": "default/nobody", "node": "n1"}


def test_a_new_podgroup_is_appended_and_keeps_the_epoch(world: World) -> None:
    ingestor = world.ingestor()
    before = ingestor.snapshot
    world.tell(
        "podgroup_upserted",
        name="late", namespace="other", queue="ml", priority_class="high", min_available=2, created=1.0,
        topology={"required": "rack"}, subgroups=[{"name": "s", "min_available": 2}],
        tasks=[{"name": "l", "count": 2, "role": "r", "subgroup": "s", "request": {"nvidia.com/gpu": 1},
                "labels": {"app": "x"}, "tolerations": [{"operator": "Exists"}]}],
    )  # fmt: skip
    world.tell("task_started", task="other/l-1", node="n2")
    snapshot = drained(ingestor).snapshot
    assert world.letters() == []
    assert snapshot.epoch == before.epoch
    row = ingestor.names.row("podgroups", "other/late")
    assert snapshot.tasks_of(row).tolist() == [4, 5]
    assert snapshot.podgroups.priority[row] == 100
    assert snapshot.vocabulary.resources[-1] == "nvidia.com/gpu"
    assert snapshot.shapes.request[snapshot.tasks.shape[5]].tolist() == [0, 0, 1, 1]
    assert snapshot.tasks.status[5] == RUNNING
    assert snapshot.standing.running[row] == 1
    assert sorted(snapshot.podgroups.order) == [0, 1, 2]
    # web (created 0), late (1), train (5).
    assert snapshot.podgroups.order.tolist() == [2, 0, 1]
    assert snapshot.vocabulary.namespaces == ("default", "other")
    assert not snapshot.budgets.covering(np.array([1]), snapshot.tasks.label_set[5:]).any()
    assert snapshot.budgets.covering(np.array([0]), snapshot.tasks.label_set[5:]).all()


def test_what_came_bit_by_bit_is_what_a_list_would_have_said(world: World) -> None:
    ingestor = world.ingestor()
    extra = {"name": "late", "queue": "dev", "min_available": 1, "created": 9.0,
             "tasks": [{"name": "late-0", "request": {"cpu": 3}}]}  # fmt: skip
    world.tell("podgroup_upserted", **extra)
    world.tell("queue_upserted", name="sub", parent="ml", created=3.0)
    world.tell("node_upserted", name="n9", allocatable={"cpu": "4", "pods": 5}, labels={"rack": "r0"})
    bit_by_bit = drained(ingestor).snapshot
    whole = World()
    whole.list_fleet({
        **CLUSTER, "podgroups": [*CLUSTER["podgroups"], extra],
        "queues": [*CLUSTER["queues"], {"name": "sub", "parent": "ml", "created": 3.0}],
        "nodes": [*CLUSTER["nodes"], {"name": "n9", "allocatable": {"cpu": "4", "pods": 5}, "labels": {"rack": "r0"}}],
    })  # fmt: skip
    at_once = whole.ingestor()
    assert at_once.names.nodes == ingestor.names.nodes
    assert at_once.names.domains == ingestor.names.domains
    assert at_once.names.queues == ingestor.names.queues
    for table in ("nodes", "topology", "shapes", "queues", "podgroups", "roles", "subgroups", "tasks", "budgets"):
        for name, column in vars(getattr(at_once.snapshot, table)).items():
            if name != "revision" and isinstance(column, np.ndarray):
                np.testing.assert_array_equal(getattr(getattr(bit_by_bit, table), name), column, f"{table}.{name}")
    assert at_once.snapshot.vocabulary == bit_by_bit.vocabulary


def test_a_podgroup_described_anew_keeps_its_tasks_and_their_roles(world: World) -> None:
    ingestor = world.ingestor()
    world.tell("task_started", task="default/train-0", node="n1")
    world.tell(
        "podgroup_upserted", name="train", queue="dev", min_available=3, created=5.0,
        roles={"driver": {"min": 1}, "worker": {"min": 2}},
        tasks=[{"name": "driver", "role": "driver", "request": {"cpu": 1}}],
    )  # fmt: skip
    snapshot = drained(ingestor).snapshot
    assert world.letters() == []
    row = ingestor.names.row("podgroups", "default/train")
    assert snapshot.podgroups.min_available[row] == 3
    assert snapshot.tasks_of(row).tolist() == [0, 1, 2, 4]
    first = int(snapshot.role_start[row])
    assert snapshot.tasks.role[[0, 1, 2, 4]].tolist() == [first + 1, first + 1, first + 1, first]
    assert task(ingestor, "train-0")["status"] == RUNNING
    world.tell("task_ended", task="default/train-0", outcome="Failed", replaced=True)
    assert task(drained(ingestor), "train-0")["life"] == 1


def test_a_task_described_anew_keeps_its_row(world: World) -> None:
    ingestor = world.ingestor()
    world.tell(
        "task_upserted",
        podgroup="default/train",
        task={"name": "train-1", "role": "worker", "request": {"cpu": 5}, "status": "Running", "node": "n2"},
    )
    world.tell("task_upserted", podgroup="default/train", task={"name": "train-9", "role": "worker", "priority": 3})
    snapshot = drained(ingestor).snapshot
    assert task(ingestor, "train-1") == {"status": RUNNING, "node": "n2", "nominated": None, "life": 0}
    assert snapshot.request[1, 0] == 5000
    assert ingestor.names.row("tasks", "default/train-9") == 4
    assert snapshot.tasks.podgroup.tolist() == [0, 0, 0, 1, 0]
    assert len(snapshot.podgroups) == 2


def test_of_what_is_described_together_only_what_is_wrong_is_refused(world: World) -> None:
    ingestor = world.ingestor()
    world.say(
        world.outgoing("podgroup_upserted", {"name": "a", "queue": "ml"}),
        world.outgoing("podgroup_upserted", {"name": "b", "queue": "nowhere"}),
        world.outgoing("podgroup_upserted", {"name": "c", "queue": "dev", "topology": {"required": "galaxy"}}),
        world.outgoing("podgroup_upserted", {"name": "d", "queue": "dev", "tasks": [{"name": "d-0"}]}),
    )
    drained(ingestor)
    assert ingestor.names.podgroups == ["default/train", "default/web", "default/a", "default/d"]
    assert len(world.letters()) == 2
    assert "queue" in world.letters()[0]
    assert "galaxy" in world.letters()[1]


def test_a_node_with_other_figures_stays_where_it_is(world: World) -> None:
    ingestor = world.ingestor()
    epoch = ingestor.snapshot.epoch
    world.tell(
        "node_upserted",
        name="n1",
        allocatable={"cpu": "2", "memory": "16Gi", "pods": 10},
        labels={"rack": "r0"},
        unschedulable=True,
    )
    snapshot = drained(ingestor).snapshot
    row = ingestor.names.row("nodes", "n1")
    assert (snapshot.epoch, snapshot.nodes.allocatable[row, 0], bool(snapshot.nodes.schedulable[row])) == (
        epoch, 2000, False,
    )  # fmt: skip


def test_a_node_that_comes_or_moves_numbers_the_nodes_anew(world: World) -> None:
    ingestor = world.ingestor()
    epoch, old = ingestor.snapshot.epoch, ingestor.names
    world.tell("node_upserted", name="n00", allocatable={"cpu": "2", "pods": 1}, labels={"rack": "r0"})
    drained(ingestor)
    assert ingestor.snapshot.epoch == epoch + 1
    assert ingestor.names.nodes == ["n0", "n00", "n1", "n2", "n3"]
    assert old.nodes == ["n0", "n1", "n2", "n3"]
    assert task(ingestor, "web-0")["node"] == "n3"
    world.tell("node_upserted", name="n3", allocatable={"cpu": "8", "pods": 10}, labels={"rack": "r0"})
    drained(ingestor)
    assert ingestor.snapshot.epoch == epoch + 2
    assert task(ingestor, "web-0")["node"] == "n3"


def test_a_task_may_select_a_node_by_its_name(world: World) -> None:
    ingestor = world.ingestor()
    chosen = {"name": "pin-0", "node_selector": {"kubernetes.io/hostname": "n2"}}
    world.tell("podgroup_upserted", name="pin", queue="ml", tasks=[chosen])
    snapshot = drained(ingestor).snapshot
    column = snapshot.vocabulary.label_keys.index("kubernetes.io/hostname")
    values = snapshot.vocabulary.label_values[column]
    assert [values[code] for code in snapshot.nodes.labels[:, column]] == ingestor.names.nodes
    world.tell("node_upserted", name="n00", allocatable={"cpu": 1})
    assert "kubernetes.io/hostname" in drained(ingestor).snapshot.vocabulary.label_keys


def test_a_node_that_leaves_takes_its_tasks_with_it(world: World) -> None:
    ingestor = world.ingestor()
    world.tell("node_removed", node="n3")
    world.tell("task_ended", task="default/web-0", outcome="Failed", replaced=True)
    assert task(drained(ingestor), "web-0") == {"status": PENDING, "node": None, "nominated": None, "life": 1}
    world.tell("task_started", task="default/web-0", node="n3", incarnation=1)
    drained(ingestor)
    assert "expected the name of a node that is there" in world.letters()[0]


def test_a_topology_that_drops_a_wanted_level_is_refused(world: World) -> None:
    ingestor = world.ingestor()
    world.tell("podgroup_upserted", name="near", queue="ml", topology={"required": "rack"})
    world.tell("topology_changed", topology=None)
    drained(ingestor)
    assert world.letters() == ["body.topology.levels: expected 'rack', which podgroups want, found none"]
    assert ingestor.snapshot.vocabulary.levels == ("rack",)


def test_queues_and_budgets_are_described_anew(world: World) -> None:
    ingestor = world.ingestor()
    world.tell("queue_upserted", name="dev", priority=7, parent="ml")
    world.tell("budget_upserted", name="a", disruptions_allowed=5)
    world.tell("queue_upserted", name="ml", parent="dev")
    snapshot = drained(ingestor).snapshot
    assert ingestor.names.queues == ["ml", "dev"]
    assert snapshot.queues.priority.tolist() == [0, 7]
    assert snapshot.queues.parent.tolist() == [NONE, 0]
    assert [ingestor.names.queues[queue] for queue in snapshot.podgroups.queue] == ["ml", "dev"]
    assert snapshot.budgets.allowed.tolist() == [5, 1]
    assert snapshot.budgets.covers.shape == (2, 1, 2)
    assert len(world.letters()) == 1


def test_a_podgroup_that_was_removed_takes_its_tasks_with_it_and_may_come_again(world: World) -> None:
    ingestor = world.ingestor()
    world.tell("podgroup_removed", podgroup="default/web")
    assert task(drained(ingestor), "web-0")["status"] == GONE
    world.tell("podgroup_upserted", name="web", queue="dev", tasks=[{"name": "web-0"}])
    assert task(drained(ingestor), "web-0")["status"] == PENDING
    assert len(ingestor.snapshot.tasks) == 5
    assert world.letters() == []


def test_our_own_decisions_are_folded(world: World) -> None:
    ingestor = world.ingestor()
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


def test_an_event_that_overtook_a_decision_is_folded_before_it(world: World) -> None:
    ingestor = world.ingestor()
    world.now += 1
    world.tell("task_started", task="default/train-0", node="n0")
    world.now += 1
    world.decide("p", evictions=[{"task": "default/train-0", "incarnation": 0}])
    drained(ingestor)
    assert task(ingestor, "train-0")["status"] == TERMINATING


def test_a_repeated_entry_changes_nothing(world: World) -> None:
    ingestor = world.ingestor()
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


def test_a_second_full_list_begins_an_epoch_and_keeps_our_promises(world: World) -> None:
    ingestor = world.ingestor()
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
    assert ingestor.names.nodes == ["n1", "n2", "n3"]
    assert task(ingestor, "train-0")["nominated"] == "n3"
    assert task(ingestor, "train-1")["nominated"] is None
    assert task(ingestor, "train-2")["life"] == 1
    assert task(ingestor, "web-0")["status"] == TERMINATING
    world.withdraw("p")
    assert task(drained(ingestor), "web-0")["status"] == RUNNING


def test_what_is_said_while_a_list_is_told_is_newer_than_the_list(world: World) -> None:
    ingestor = world.ingestor()
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


def test_a_list_that_is_wrong_is_refused_and_the_state_stays(world: World) -> None:
    ingestor = world.ingestor()
    before = ingestor.snapshot
    world.list_fleet({**CLUSTER, "queues": []}, "wrong")
    drained(ingestor)
    assert ingestor.snapshot is before
    assert world.letters()[0].startswith("body.cluster: podgroups[0].queue")


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
def test_recovery_from_any_checkpoint_rebuilds_the_same_bytes(world: World, cut_at: int) -> None:
    ingestor = world.ingestor()
    for at, happen in enumerate(HISTORY):
        if at == cut_at:
            ingestor.checkpoint()
        world.now += 1
        happen(world)
        drained(ingestor)
    if cut_at == len(HISTORY):
        ingestor.checkpoint()
    ingestor.names.plans.clear()  # which of them stand is looked up when a checkpoint is written
    recovered = world.ingestor("second")
    recovered.names.plans.clear()
    assert state_of(recovered) == state_of(ingestor)
    assert len(world.letters()) == 1


def test_no_checkpoint_is_written_while_a_list_is_told(world: World) -> None:
    ingestor = world.ingestor()
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


def test_entries_are_acknowledged_and_trimmed_once_a_checkpoint_covers_them(world: World) -> None:
    ingestor = world.ingestor()
    for at in range(5):
        world.now += 1
        world.tell("task_started", task="default/train-0", node=f"n{at % 4}")
        drained(ingestor)
    assert world.bus.lag(EVENTS, GROUP).pending == 6
    ingestor.checkpoint()
    assert world.bus.lag(EVENTS, GROUP).pending == 0
    assert world.bus.bounds(EVENTS).length == 1


def test_a_decision_that_still_promises_something_is_not_trimmed(world: World) -> None:
    ingestor = world.ingestor()
    for plan, node in (("p", "n0"), ("q", "n1")):
        world.now += 1
        world.decide(plan, nominations=[{"task": f"default/train-{'pq'.index(plan)}", "node": node}])
    drained(ingestor).checkpoint()
    assert world.bus.bounds(DECISIONS).length == 2
    world.tell("task_started", task="default/train-0", node="n0")
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


def test_a_hole_in_the_fleets_own_count_asks_for_a_list_once(world: World) -> None:
    ingestor = world.ingestor()
    for sequence in (b"1", b"2", b"2", b"5", b"9"):
        world.say(world.outgoing("task_started", {"task": "default/train-0", "node": "n0"}), sequence=sequence)
    drained(ingestor)
    assert world.asked() == ["entries 3 to 4 of the fleet never came"]


def test_a_stream_that_begins_behind_a_checkpoint_asks_for_a_list(world: World) -> None:
    ingestor = world.ingestor()
    ingestor.checkpoint()
    lost = World()
    for entry in world.bus.follow(SNAPSHOTS, "0-0"):
        lost.bus.publish(SNAPSHOTS, entry.fields)
    recovered = Ingestor(lost.bus, consumer="second", now_s=lambda: lost.now)
    recovered.start()
    assert recovered.names.listed
    assert lost.asked() == ["entries are missing from events"]


def test_trace_contexts_of_events_are_handed_on_once(world: World) -> None:
    ingestor = world.ingestor()
    world.say(
        world.outgoing("task_started", {"task": "default/train-0", "node": "n0"}),
        traceparent=b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    )
    drained(ingestor)
    assert [link["traceparent"][:5] for link in ingestor.trace_links] == ["00-4b"]
    assert ingestor.trace_links == ()
