"""A broker in memory, a fleet that says what a test tells it to, a ledger, and an ingestor that hears them."""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from opentelemetry.sdk.metrics.export import MetricReader

from actors.broker.bus import DEAD, DECISIONS, EVENTS
from actors.broker.ledger import Lease, Record
from actors.broker.memory_bus import MemoryBus
from actors.broker.memory_ledger import MemoryLedger
from actors.configuration.settings import Settings, TelemetrySettings
from actors.documents.state_limits import STATE_LIMITS, StateLimits
from actors.ingestion.checkpointing import Packs, at_once
from actors.ingestion.ingestor import Ingestor
from actors.ingestion.loop import IngestLoop
from actors.ingestion.pace import Pace
from actors.observability.telemetry import start as start_telemetry
from actors.protocol.bodies import PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import Message, Outgoing, decode_decisions, pack, pack_decision
from actors.protocol.full_list import cut
from pipeline.cluster.arrays import NONE
from tests.support.encoded import encoded
from tests.support.following import Follower

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

#: The same with its domains written out.
WRITTEN_OUT: dict[str, Any] = {
    **CLUSTER,
    "topology": {
        "levels": ["rack"],
        "domains": [
            {"name": "r0", "level": "rack", "nodes": ["n0", "n1"]},
            {"name": "r1", "level": "rack", "nodes": ["n2", "n3"]},
        ],
    },
}


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
        self.ledger.commit(self.lease, [Record(key, b"", sent)])

    def ingestor(
        self, name: str = "first", most: StateLimits = STATE_LIMITS, packs: Packs = at_once, **pace: Any
    ) -> Ingestor:
        made = Ingestor(self.bus, consumer=name, now_s=lambda: self.now, pace=Pace(**pace), most=most, packs=packs)
        made.start()
        return made

    def loop(self, reader: MetricReader | None = None, **more: Any) -> IngestLoop:
        telemetry = start_telemetry(TelemetrySettings(spans_kept=0), "test", reader=reader)
        return IngestLoop(Settings(fleet="memory"), self.bus, telemetry, now_s=lambda: self.now, **more)

    def letters(self) -> list[str]:
        return [entry.fields["reason"].decode() for entry in self.bus.follow(DEAD, "0-0")]

    def asked(self) -> list[str]:
        entries = self.bus.follow(DECISIONS, "0-0")
        found = [one for entry in entries for one in decode_decisions(entry) if isinstance(one, Message)]
        return [one.body.reason for one in found if one.kind == "resync_requested"]


#: Whatever a test tells an ingestor, a reader that only hears the news of it has the same state.
_FOLLOWERS: WeakKeyDictionary[Ingestor, Follower] = WeakKeyDictionary()


def drained(ingestor: Ingestor) -> Ingestor:
    follower = _FOLLOWERS.setdefault(ingestor, Follower())
    follower.take(ingestor.state)
    while ingestor._turn():
        follower.take(ingestor.state)
    return ingestor


def task(ingestor: Ingestor, name: str) -> dict[str, Any]:
    row = ingestor.state.names.row("tasks", f"default/{name}")
    tasks, nodes = ingestor.snapshot.tasks, ingestor.state.names.nodes
    return {
        "status": int(tasks.status[row]),
        "node": nodes[tasks.node[row]] if tasks.node[row] != NONE else None,
        "nominated": nodes[tasks.nominated[row]] if tasks.nominated[row] != NONE else None,
        "life": int(tasks.incarnation[row]),
    }


def state_of(ingestor: Ingestor) -> tuple[bytes, bytes]:
    return encoded(ingestor.snapshot), ingestor.state.pack_register()
