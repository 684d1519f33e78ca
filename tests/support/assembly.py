"""The whole pipeline in one process and one thread, on streams in memory and a clock that stands until it is moved."""

from __future__ import annotations

from typing import Any

from actors.broker.bus import DECISIONS, EVENTS, START
from actors.broker.memory_bus import MemoryBus
from actors.broker.memory_ledger import MemoryLedger
from actors.columns.name_directory import Directory
from actors.commit.committer import Committer, TimeLimits
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings, TelemetrySettings
from actors.contracts import CommitResult, Offer, SnapshotUpdate
from actors.fleets.simulated import SimulatedFleet
from actors.ingestion.loop import IngestLoop
from actors.observability.telemetry import Telemetry
from actors.observability.telemetry import start as start_telemetry
from actors.protocol.envelopes import Message, Outgoing, decode_decisions, pack
from actors.protocol.outcomes import Reports
from actors.search.batched_search import Spread
from actors.search.dispatcher import Cycled, Dispatcher
from actors.search.reasons_writer import ReasonsWriter
from actors.search.searcher import Searcher
from actors.verification.audit import AuditReport, audited
from pipeline.actions.backoff import Backoff
from pipeline.policy import Policy


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def rack_cluster(racks: int = 2, nodes: int = 4, devices: int = 8) -> dict[str, Any]:
    """Racks of nodes with so many devices each, and the queues ``a`` and ``b`` that deserve half each."""
    names = [f"n{at}" for at in range(racks * nodes)]
    half = racks * nodes * devices // 2
    return {
        "version": 1,
        "nodes": [{"name": name, "allocatable": {"cpu": 64, "gpu": devices, "pods": 64}} for name in names],
        "topology": {
            "levels": ["rack"],
            "domains": [
                {"name": f"r{at}", "level": "rack", "nodes": names[at * nodes : (at + 1) * nodes]}
                for at in range(racks)
            ],
        },
        "queues": [{"name": queue, "deserved": {"gpu": half}} for queue in ("a", "b")],
        "podgroups": [],
    }


def gang(name: str, tasks: int, gpu: int, *, queue: str = "a", priority: int = 0, **more: Any) -> dict[str, Any]:
    """A podgroup that needs all its tasks; ``nodes`` says where they run, without it they wait."""
    nodes = more.pop("nodes", None)
    said = []
    for at in range(tasks):
        task = {"name": f"{name}-{at}", "request": {"cpu": 1, "gpu": gpu}, "index": at, "gone_when_evicted": True}
        said.append(task | ({"status": "Running", "node": nodes[at]} if nodes else {"status": "Pending"}))
    return {"name": name, "queue": queue, "priority": priority, "min_available": tasks, "tasks": said, **more}


def restarting(podgroup: dict[str, Any]) -> dict[str, Any]:
    """The podgroup with tasks that start over when they are evicted."""
    tasks = [task | {"gone_when_evicted": False} for task in podgroup["tasks"]]
    return podgroup | {"tasks": tasks}


def full_racks(racks: int = 2) -> dict[str, Any]:
    """Racks of four nodes, each node full with one task of low priority."""
    cluster = rack_cluster(racks=racks)
    cluster["podgroups"] = [gang(f"low{at}", 1, 8, nodes=[f"n{at}"]) for at in range(racks * 4)]
    return cluster


class Assembly:
    """Every role, wired as in a cluster but called in turn."""

    def __init__(
        self,
        cluster: dict[str, Any],
        *,
        speed: float = 1.0,
        spread: Spread | None = None,
        telemetry: Telemetry | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.clock = Clock()
        self.bus = MemoryBus("test", self.clock)
        self.ledger = MemoryLedger(self.bus, self.clock)
        self.settings = Settings(fleet="test", checkpoint_every_s=1e6)
        self.telemetry = telemetry if telemetry is not None else start_telemetry(TelemetrySettings(), "test")
        self.policy = policy if policy is not None else load_profile("default")
        self.fleet = SimulatedFleet(cluster, seed=1, grace_s=(5.0, 5.0), speed=speed)
        self.restart_ingestor()
        self.directory = Directory()
        self.committer = self.new_committer("first")
        self.reports = Reports(self.bus)
        self.reasons = ReasonsWriter(self.bus, self.directory, now_s=self.clock)
        here = Searcher(self.policy, self.telemetry)
        self.dispatcher = Dispatcher(
            self.policy, here, here, self.commit, self.telemetry,
            now_s=self.clock, backoff=Backoff(seed=1), spread=spread, tell=self.reasons.take,
        )  # fmt: skip
        self._obeyed = START
        self.say(self.fleet.listing("first"))
        self.committer.lead()

    def restart_ingestor(self) -> None:
        """An ingestor as after a start."""
        self.ingest = IngestLoop(self.settings, self.bus, self.telemetry, now_s=self.clock)

    def new_committer(self, owner: str, limits: TimeLimits | None = None) -> Committer:
        """A committer as after a start."""
        return Committer(
            self.ledger, self.bus, self.policy, self.directory, self.telemetry,
            owner=owner, now_s=self.clock, limits=limits if limits is not None else TimeLimits(),
        )  # fmt: skip

    def commit(self, offers: list[Offer]) -> list[CommitResult]:
        return self.committer.commit(offers)

    def say(self, events: list[Outgoing]) -> None:
        for entry in pack(events):
            self.bus.publish(EVENTS, entry)

    def submit(self, podgroup: dict[str, Any]) -> None:
        """A podgroup arrives in the fleet."""
        self.say(self.fleet.submit(podgroup))

    def give_up(self, podgroup: str = "default/big") -> None:
        """All tasks of a podgroup end, and it is removed."""
        tasks = [self.fleet._tasks[name] for name in self.fleet._podgroups[podgroup].tasks]
        self.say([self.fleet._end(task, "Failed", replaced=False) for task in tasks])
        self.say(list(self.fleet._gone(podgroup)))

    def hear(self) -> bool:
        """Fold what has come and tell everybody; whether the fleet is known."""
        told = self.ingest.turn(block_ms=0)
        while told is not None:
            self.news = SnapshotUpdate(self.ingest.snapshot, told)
            self.directory.take(self.ingest.additions(None))
            self.committer.hear(self.news.snapshot)
            self.committer.tend()
            self.reports.write(self.committer.fulfilled())
            told = self.ingest.turn(block_ms=0)
        return self.ingest.revision >= 0

    def cycle(self) -> Cycled:
        """What the news makes possible."""
        self.hear()
        return self.dispatcher.cycle(self.news)

    def obey(self) -> None:
        """The fleet carries out what was decided since."""
        for entry in self.bus.follow(DECISIONS, self._obeyed):
            self._obeyed = entry.id
            for message in decode_decisions(entry):
                assert isinstance(message, Message)
                self.say(self.fleet.obey(message, self.clock.now))

    def pass_time(self, seconds: float) -> None:
        """Time passes, and what is due in the fleet happens."""
        self.clock.now += seconds
        self.say(self.fleet.step(self.clock.now))

    def turn(self, seconds: float = 1.0) -> Cycled:
        """One round of everybody."""
        self.committer.lead()
        done = self.cycle()
        self.obey()
        self.pass_time(seconds)
        return done

    def turns(self, count: int) -> None:
        """Some rounds of everybody."""
        for _ in range(count):
            self.turn()

    def status(self, task: str) -> str:
        """Status of a task in the fleet."""
        return self.fleet._tasks[f"default/{task}"].status

    def report(self) -> AuditReport:
        """What the history says."""
        return audited(self.bus.follow(EVENTS, START, count=10_000), self.bus.follow(DECISIONS, START, count=10_000))


def full(racks: int = 2, **more: Any) -> Assembly:
    """An assembly on racks that are full, once it has heard of them."""
    assembly = Assembly(full_racks(racks), **more)
    assembly.hear()
    return assembly


def decisions(assembly: Assembly) -> list[Any]:
    """The bodies of everything that was decided."""
    messages = [one for entry in assembly.bus.follow(DECISIONS, START, count=10_000) for one in decode_decisions(entry)]
    assert all(isinstance(one, Message) for one in messages)
    return [one.body for one in messages if isinstance(one, Message)]


class HeldBack(Assembly):
    """An assembly that keeps what the dispatcher offers, so that a test decides when it is judged."""

    def __init__(self, cluster: dict[str, Any]) -> None:
        self.offers: list[Offer] = []
        super().__init__(cluster)

    def commit(self, offers: list[Offer]) -> list[CommitResult]:
        self.offers += offers
        return [CommitResult(offer.plan_id, "unready") for offer in offers]


def offered_room() -> HeldBack:
    """Eight nodes full of small work, a gang of three that needs whole nodes, and the offer that makes room for it."""
    assembly = HeldBack(full_racks())
    assembly.hear()
    assembly.submit(gang("big", 3, 8, priority=5, topology={"required": "rack"}))
    assembly.cycle()
    assert len(assembly.offers) == 1
    return assembly
