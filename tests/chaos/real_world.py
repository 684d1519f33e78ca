"""One run's world: a broker, a small fleet, the pipeline as Ray actors, and gangs that arrive."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from actors.broker.address import BrokerAddress
from actors.broker.bus import DECISIONS, START, Entry
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_ledger import RedisLedger
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings, TelemetrySettings
from actors.fleets.background import Background
from actors.fleets.simulated import SimulatedFleet
from actors.observability.telemetry import start as start_telemetry
from actors.protocol.bodies import PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import decisions_in
from actors.ray_runtime.cluster import RayRefused, ray_cluster
from actors.ray_runtime.process import Wiring
from actors.ray_runtime.role_actors import START_LIMIT_S, RoleActors
from pipeline.policy import Policy
from tests.chaos.real_fleet import UnreliableFleet
from tests.chaos.real_history import History
from tests.chaos.real_pair import Pair
from tests.chaos.real_ray import LIMIT_S, Raylets, Worker, until
from tests.chaos.real_schedule import Schedule, Standby
from tests.support.assembly import gang, rack_cluster
from tests.support.power_loss import Machine

RACKS, NODES_OF_A_RACK, DEVICES = 6, 4, 8
LEASE_S = 1.0
#: The longest is longer than some schedules wait for.
_GRACE_S = (0.1, 1.2)


class World:
    """A run in progress."""

    def __init__(self, schedule: Schedule, machine: Machine, raylets: Raylets, policy: Policy, folder: Path) -> None:
        self.schedule, self.raylets = schedule, raylets
        self._machine, self.broker = machine, machine.broker
        broker = machine.broker
        self.settings = Settings(
            fleet=f"chaos-{schedule.seed}", searchers=2, lease_ttl_s=LEASE_S,
            checkpoint_every_s=1.0, in_place_cells=0, eviction_deadline_s=schedule.deadline_s,
            telemetry=TelemetrySettings(spans_kept=0),
        )  # fmt: skip
        self.address = BrokerAddress(broker.url)
        patient = BrokerAddress(broker.url, wait_s=LIMIT_S)
        self.policy = policy
        self.link = patient.connect("chaos")
        self.bus = RedisBus(self.link, self.settings.fleet)
        self.ledger = RedisLedger(self.link, self.settings.fleet)
        self.history = History(RedisBus(patient.connect("history"), self.settings.fleet))
        self._broker_lives = True
        #: What was found to be wrong while it went on.
        self.objections: list[str] = []
        self._seen = START
        self.arrived: list[str] = []
        self._telemetry = start_telemetry(self.settings.telemetry, "fleet")
        self.fleet = UnreliableFleet(
            SimulatedFleet(full_cluster(random.Random(schedule.seed)), seed=schedule.seed, grace_s=_GRACE_S),
            RedisBus(patient.connect("fleet"), self.settings.fleet), self._telemetry, seed=schedule.seed,
        )  # fmt: skip
        self._background = Background(self.history.run, self.fleet.run)
        #: For each leader that was struck, how long its standby took to decide.
        self.took_over_s: list[float] = []
        self.pair = self._pair(folder) if schedule.standby is not Standby.NONE else None
        wiring = Wiring(self.settings, self.address, self.policy, f"chaos-{schedule.seed}")
        self.pipeline: RoleActors | Pair = self.pair if self.pair is not None else RoleActors(wiring)

    def _pair(self, folder: Path) -> Pair:
        """Two services with the same settings."""
        here = self.settings
        told = {
            "fleet": here.fleet, "profile": self.policy.profile, "searchers": "1", "lease_ttl_s": str(LEASE_S),
            "checkpoint_every_s": str(here.checkpoint_every_s), "in_place_cells": str(here.in_place_cells),
            "eviction_deadline_s": str(here.eviction_deadline_s), "health": "off",
        }  # fmt: skip
        same = self.schedule.standby is Standby.SAME_RAY
        return Pair(folder, self.broker.url, self.raylets if same else None, told)

    def open(self) -> None:
        """Wait until everybody is there and the fleet is known; a machine with other work may take minutes for that."""
        self.fleet.open()
        self._background.start()
        self.pipeline.await_ready(START_LIMIT_S)
        self.pipeline.await_listed(LIMIT_S)

    def close(self) -> None:
        """The pipeline has stopped; so does the fleet."""
        if self.pair is not None:
            self.pair.close()
        self._background.end()
        self._telemetry.stop()
        for bus in (self.bus, self.fleet._bus, self.history._bus):
            bus.close()
        self.raise_failures()

    def raise_failures(self) -> None:
        """What ended one of our own threads."""
        self._background.raise_failures()

    def living(self, role: str) -> list[Worker]:
        """The living workers of a role; where there are two services, those of the leader."""
        pair = self.pair
        if pair is None:
            return self.raylets.living(role)
        until(lambda: bool(pair.workers(role)), f"a living {role} of the leader")
        return pair.workers(role)

    # -- the gangs ---------------------------------------------------------------------------------------------

    def arrive(self, *, tasks: int | None = None, priority: int | None = None, lasting: bool = False) -> str:
        """A gang that must evict somebody, or at least be placed."""
        name = f"gang-{len(self.arrived)}"
        draw = random.Random(f"{self.schedule.seed}/{name}")  # the nth is always the same, whenever it comes
        document = gang(
            name, tasks if tasks is not None else draw.randint(2, 4), draw.choice((4, 8)),
            queue=draw.choice("ab"), priority=priority if priority is not None else draw.randint(2, 9),
            **({"topology": {"required": "rack"}} if draw.random() < 0.6 else {}),
        )  # fmt: skip
        self.fleet.submit(document, None if lasting or draw.random() < 0.5 else draw.uniform(0.5, 3.0))
        self.arrived.append(name)
        return name

    # -- the streams -------------------------------------------------------------------------------------------

    def watch(self, block_ms: int = 0) -> list[Entry]:
        """Decisions since this was last asked, waiting so long for the first."""
        entries = self.bus.follow(DECISIONS, self._seen, count=1_000, block_ms=block_ms)
        self._seen = entries[-1].id if entries else self._seen
        return entries

    def newest_epoch(self) -> int:
        """The epoch of the newest decision, 0 before the first."""
        bodies = [one.body for one in decisions_in(self.bus.newest(DECISIONS, count=50))]
        return max((one.epoch for one in bodies if isinstance(one, PlanCommitted | PlanWithdrawn)), default=0)

    # -- the broker --------------------------------------------------------------------------------------------

    def freeze_broker(self) -> None:
        """SIGSTOP."""
        self.raylets.freeze(self.broker.pid)

    def kill_broker(self) -> None:
        """SIGKILL."""
        self.broker.kill()
        self._broker_lives = False

    def lose_power(self) -> None:
        """The same, and what no sync has put on the disk is gone."""
        self._machine.lose_power()
        self._broker_lives = False

    def restart_broker(self) -> None:
        """A new process on the log of the one that was killed; harmless where it lives."""
        if not self._broker_lives:
            self._machine.start()
            self._broker_lives = True

    def all_living(self) -> None:
        """Wait until every actor lives and answers; Ray may not have missed yet who died just now."""

        def answers() -> bool:
            try:
                self.pipeline.await_ready(LIMIT_S)
            except RayRefused:
                return False
            return True

        until(answers, "every actor lives again")


def full_cluster(draw: random.Random) -> dict[str, Any]:
    """Racks almost full of gangs that anybody may evict; some come back when they are, some are gone."""
    cluster = rack_cluster(RACKS, NODES_OF_A_RACK, DEVICES)
    names = [node["name"] for node in cluster["nodes"]]
    at, groups = 0, []
    while at < len(names) - 1:
        wide = min(draw.choice((1, 1, 2, 3)), len(names) - at)
        nodes = names[at : at + wide]
        made = gang(f"low-{at}", wide, DEVICES, queue=draw.choice("ab"), priority=draw.randint(0, 1), nodes=nodes)
        for task in made["tasks"]:
            task["gone_when_evicted"] = draw.random() < 0.7
        groups.append(made)
        at += wide
    cluster["podgroups"] = groups
    return cluster


@contextmanager
def _broker_in(folder: Path) -> Iterator[Machine]:
    machine = Machine(folder)
    machine.start()
    with machine.broker:
        yield machine


@contextmanager
def world(schedule: Schedule, raylets: Raylets, policy: Policy | None = None) -> Iterator[World]:
    """A world of ``policy``, else of profile ``default``, to be opened; it is gone after the block in any case."""
    with tempfile.TemporaryDirectory(prefix="clearway-chaos-") as folder, _broker_in(Path(folder)) as machine:
        raylets.add(schedule.raylets)
        try:
            with ray_cluster(raylets.address, f"chaos-{schedule.seed}"):
                made = World(schedule, machine, raylets, policy or load_profile("default"), Path(folder))
                try:
                    yield made
                finally:
                    raylets.thaw()
                    made.restart_broker()
                    made.close()
        finally:
            raylets.remove_added()
