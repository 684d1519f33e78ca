"""The pipeline as Ray actors over a real broker: from a full fleet to a gang that runs."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import ray

from actors.broker.address import BrokerAddress, broker_for
from actors.broker.bus import DECISIONS, EVENTS, START
from actors.broker.redis_bus import RedisBus
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings
from actors.fleets.inventory import Inventory, load_inventory
from actors.fleets.process import FleetLoop, FleetPace
from actors.fleets.simulated import SimulatedFleet
from actors.observability.span_store import gathered
from actors.observability.telemetry import start as start_telemetry
from actors.ray_runtime.cluster import ray_cluster
from actors.ray_runtime.pipeline import Pipeline
from actors.ray_runtime.process import Wiring
from actors.search.pending_reasons import newest
from actors.verification.audit import audited
from actors.verification.recorder import Recorder
from pipeline.decision.explanation import Reason
from tests.support.assembly import gang, rack_cluster

LIMIT_S = 60.0


class Live:
    """A small fleet, its history, and the pipeline in a Ray cluster of this machine."""

    def __init__(self, settings: Settings, address: BrokerAddress, pipeline: Pipeline) -> None:
        self.settings, self.pipeline = settings, pipeline
        cluster = rack_cluster(racks=4)
        cluster["podgroups"] = [gang(f"low{at}", 1, 8, nodes=[f"n{at}"]) for at in range(16)]
        self.bus = RedisBus(address.connect("test"), settings.fleet)
        telemetry = start_telemetry(settings.telemetry, "fleet")
        inventory: Inventory = load_inventory()
        fleet = SimulatedFleet(cluster, seed=1, grace_s=(0.2, 0.2))
        self.loop = FleetLoop(
            fleet, inventory, RedisBus(address.connect("fleet"), settings.fleet), telemetry, FleetPace(every_s=0.0)
        )
        self.recorder = Recorder(RedisBus(address.connect("history"), settings.fleet), lambda _: None)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.recorder.run, args=(self.stop,), daemon=True)

    def until(self, holds: Any) -> None:
        """Let the fleet turn until something holds."""
        deadline = time.monotonic() + LIMIT_S
        while not holds():
            assert time.monotonic() < deadline, "it did not come to pass in time"
            self.loop.turn(block_ms=50)

    def running(self, name: str, tasks: int) -> bool:
        known = self.loop.fleet._tasks
        return all(known[f"default/{name}-{at}"].status == "Running" for at in range(tasks))

    def submit(self, document: dict[str, Any]) -> None:
        self.loop._publish(self.loop.fleet.submit(document))


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    settings = Settings(fleet="ray-test", searchers=2, lease_ttl_s=1.0)
    with broker_for(settings) as address, ray_cluster(None, "ray-test"):
        pipeline = Pipeline(Wiring(settings, address, load_profile("default"), "test"))
        made = Live(settings, address, pipeline)
        made.loop.open()
        made.thread.start()
        pipeline.await_ready()
        pipeline.await_listed(LIMIT_S)
        try:
            yield made
        finally:
            pipeline.stop()
            made.stop.set()
            made.thread.join()


def test_a_gang_that_arrives_on_a_full_fleet_comes_to_run(live: Live) -> None:
    live.submit(gang("big", 3, 8, priority=5, topology={"required": "rack"}))
    live.until(lambda: live.running("big", 3))
    assert live.loop.fleet.tally.misfits == 0


def test_one_trace_goes_through_every_process(live: Live) -> None:
    live.submit(gang("traced", 2, 8, priority=6, topology={"required": "rack"}))
    live.until(lambda: live.running("traced", 2))
    live.pipeline.flush()
    spans, _ = gathered(live.bus, START)
    recorded = [span for span in spans if span["name"] == "record" and span["attributes"].get("victims", 0) > 0]
    mine = [span for span in spans if span["trace"] == recorded[-1]["trace"]]
    assert {"cycle", "ingest", "starving", "search_space", "attempt", "judge", "record"} <= {
        one["name"] for one in mine
    }
    assert {"dispatcher", "committer"} <= {one["role"] for one in mine}


def test_a_gang_that_finds_no_room_is_told_why(live: Live) -> None:
    live.submit(gang("wide", 5, 8, priority=5, topology={"required": "rack"}))
    live.until(lambda: any(waits.podgroup == "default/wide" for waits in newest(live.bus)))
    (waits,) = (waits for waits in newest(live.bus) if waits.podgroup == "default/wide")
    assert dict(waits.reasons)["preempt"] == Reason.BOUND.value


def test_a_searcher_that_dies_costs_nothing_but_time(live: Live) -> None:
    ray.kill(live.pipeline.searchers[0], no_restart=False)
    live.submit(gang("after", 2, 8, priority=7, topology={"required": "rack"}))
    live.until(lambda: live.running("after", 2))


def test_a_committer_that_dies_doubles_no_decision(live: Live) -> None:
    ray.kill(live.pipeline.committer, no_restart=False)
    live.submit(gang("later", 2, 8, priority=8, topology={"required": "rack"}))
    live.until(lambda: live.running("later", 2))


def test_the_history_breaks_no_rule(live: Live) -> None:
    events, decisions = (live.bus.follow(stream, START, count=10_000) for stream in (EVENTS, DECISIONS))
    report = audited(events, decisions)
    assert report.broken == []
    assert report.placed == 4
