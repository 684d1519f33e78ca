"""How long a gang waits for its decision in the live pipeline: real service, broker and Ray, and a simulated fleet.

The fleet is a process of its own. Its tasks start over at random, which makes a thousand events a second, and a gang
that arrives every second needs the room of others. What is measured is the time from the event of its arrival to the
record of its decision, and, by the spans of the roles, the time of each part.
"""

from __future__ import annotations

import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from actors.benchmarks.figures import Figure, NotAvailable, digits, until
from actors.broker.address import BrokerAddress
from actors.broker.bus import DECISIONS, EVENTS, START, Entry, id_order
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_bus import RedisBus
from actors.configuration.settings import TelemetrySettings
from actors.fleets.background import Background
from actors.fleets.inventory import PODS_OF_A_NODE, ArrivalKind, Arrivals, Inventory, load_inventory
from actors.fleets.process import FleetLoop, FleetPace
from actors.fleets.simulated import SimulatedFleet
from actors.ingestion.group_notes import GROUP
from actors.observability.span_store import gathered
from actors.observability.telemetry import start as start_telemetry
from actors.observability.traces import SPAN_ATTEMPT, SPAN_CYCLE, SPAN_INGEST, SPAN_JUDGE, SPAN_RECORD, SpanRecord
from actors.processes.service_process import ServiceProcess
from actors.protocol.bodies import PlanCommitted
from actors.protocol.envelopes import Outgoing, decisions_in

_FLEET = "live"
#: Nodes of eight devices in racks, ten tasks on each: eight of one device, two of none.
RACK, DEVICES, TASKS = 64, 8, 10
#: Gangs of 64 tasks of one device, each in one rack.
GANGS, WIDTH = 35, 64
#: The first gangs meet code and memory that nothing has touched yet; they do not count.
_WARM_UP = 5
#: Each restart is two events. Seconds between two rounds of restarts.
_EVENTS_PER_S, _RESTART_EVERY_S = 1_000, 0.02
_GANG_EVERY_S, _FOR_EVER_S = 1.0, 1e9
_ARRIVALS, _QUEUE, _RACKS = "arrivals/", "q", "rack"
#: Priority of the gangs; the others have lower ones. Numbers of tasks that the other podgroups have.
_PRIORITY, _WIDTHS = 4, (1, 1, 2, 4, 8, 16)
_LIMIT_S = 900.0
_POLL_MS = 200


def live(nodes: int) -> Figure:
    """Milliseconds from the event that makes a gang starve to its recorded decision, on a fleet of this many nodes.

    Raises
    ------
    NotAvailable
        If the fleet, the service or a decision does not come in time.
    """
    with EmbeddedBroker() as broker, tempfile.TemporaryDirectory(prefix="clearway-") as folder:
        address = BrokerAddress(broker.url)
        ours, theirs = multiprocessing.Pipe()
        fleet = multiprocessing.get_context("spawn").Process(target=_play, args=(address, nodes, theirs), daemon=True)
        fleet.start()
        options = ("--redis-url", broker.url, "--fleet", _FLEET)
        service = ServiceProcess(Path(folder) / "service.log", *options, settings={"searchers": "2"})
        bus = RedisBus(address.connect("bench", functions=False), _FLEET)
        try:
            _await(ours, "the fleet is listed")
            until(lambda: _leads(service), "the service leads", _LIMIT_S)
            until(lambda: not bus.lags(EVENTS)[GROUP].undelivered, "the list is folded", _LIMIT_S)
            ours.send("begin")
            recorded = _recorded(bus, service)
            waited = [recorded[name] - arrived for name, arrived in _arrivals(ours, recorded)][_WARM_UP:]
            parts = _parts(gathered(bus)[0])
        finally:
            ours.send("end")
            fleet.join(_LIMIT_S)
            service.close()
            bus.close()
    also = {"nodes": nodes, "tasks": nodes * TASKS, "events_per_s": _EVENTS_PER_S, **parts}
    return Figure(digits(np.median(waited)), digits(np.percentile(waited, 99)), len(waited), also)


LIVE_MEASUREMENTS: dict[str, Callable[[], Figure]] = {
    "live_1k5": partial(live, 1_500),
    "live_10k": partial(live, 10_000),
    "live_100k": partial(live, 100_000),
}


def _await(told: Connection, what: str) -> None:
    if not told.poll(_LIMIT_S):
        raise NotAvailable(f"{what}: not within {_LIMIT_S:.0f} s")
    told.recv()


def _leads(service: ServiceProcess) -> bool:
    _check(service)
    return service.leads is True


def _check(service: ServiceProcess) -> None:
    if service.process.poll() is not None:
        raise NotAvailable(f"the service has ended: {service.said()[-500:]}")


def _recorded(bus: RedisBus, service: ServiceProcess) -> dict[str, float]:
    """When the decision for each gang was recorded, in milliseconds, by the broker's clock."""
    found: dict[str, float] = {}
    after, deadline = START, time.monotonic() + _LIMIT_S
    while len(found) < GANGS:
        _check(service)
        if time.monotonic() > deadline:
            raise NotAvailable(f"{len(found)} of {GANGS} gangs have a decision after {_LIMIT_S:.0f} s")
        entries = bus.follow(DECISIONS, after, block_ms=_POLL_MS)
        after = entries[-1].id if entries else after
        for entry in entries:
            for name in _placed(entry):
                found.setdefault(name, float(id_order(entry.id)[0]))
    return found


def _placed(entry: Entry) -> Iterator[str]:
    """Gangs that a decision gives their room."""
    for message in decisions_in([entry]):
        body = message.body
        if isinstance(body, PlanCommitted) and body.preemptor is not None and body.preemptor.startswith(_ARRIVALS):
            yield body.preemptor


def _arrivals(told: Connection, recorded: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Gangs with a decision and when they arrived, in milliseconds, in that order."""
    while told.poll():
        name, at = told.recv()
        if name in recorded:
            yield name, at


def _parts(spans: Sequence[SpanRecord]) -> dict[str, float]:
    """Medians over the cycles that recorded a decision: what each step took, in milliseconds."""
    by_trace: dict[str, list[SpanRecord]] = {}
    for span in spans:
        by_trace.setdefault(span["trace"], []).append(span)
    rows = [_spent(some) for some in by_trace.values() if {SPAN_CYCLE, SPAN_RECORD} <= {one["name"] for one in some}]
    return {f"{part}_ms": digits(np.median([row[part] for row in rows])) for part in rows[0]} if rows else {}


def _spent(spans: Sequence[SpanRecord]) -> dict[str, float]:
    """Milliseconds of one cycle: searchers work side by side, so the longest attempt of each action counts."""
    longest: dict[str, float] = {}
    for span in spans:
        kind = span["attributes"].get("purpose") if span["name"] == SPAN_ATTEMPT else None
        if kind is not None:
            longest[kind] = max(longest.get(kind, 0.0), _ms(span))
    ingest: Mapping[str, Any] = next((span["attributes"] for span in spans if span["name"] == SPAN_INGEST), {})
    return {
        "fold": float(ingest.get("fold_ms", 0.0)),
        "publish": float(ingest.get("publish_ms", 0.0)),
        "search": sum(longest.values()),
        "judge": sum(_ms(span) for span in spans if span["name"] == SPAN_JUDGE),
        "record": sum(_ms(span) for span in spans if span["name"] == SPAN_RECORD),
        "cycle": sum(_ms(span) for span in spans if span["name"] == SPAN_CYCLE),
    }


def _ms(span: SpanRecord) -> float:
    return float(span["end_ns"] - span["start_ns"]) / 1e6


# -- the fleet's process ---------------------------------------------------------------------------------------


class _Noting(SimulatedFleet):
    """Says when each gang arrives."""

    told: Connection

    def submit(self, document: Mapping[str, Any], runs_s: float | None = None) -> list[Outgoing]:
        """See `SimulatedFleet.submit`."""
        self.told.send((f"{document['namespace']}/{document['name']}", time.time() * 1e3))
        return super().submit(document, runs_s)


def _play(address: BrokerAddress, nodes: int, told: Connection) -> None:
    """List the fleet, then let tasks start over and gangs arrive until told to end."""
    inventory, bus = _inventory(), RedisBus(address.connect("fleet", functions=False), _FLEET)
    telemetry = start_telemetry(TelemetrySettings(), "fleet", fleet=_FLEET)
    fleet = _Noting(_cluster(inventory, nodes), seed=0, grace_s=(0.0, 0.0), revision=int(time.time() * 1000))
    fleet.told = told
    loop = FleetLoop(fleet, inventory, bus, telemetry, FleetPace(every_s=_GANG_EVERY_S))
    loop.open()
    told.send("listed")
    told.recv()
    fleet.restart_often(time.time(), _RESTART_EVERY_S, int(_EVENTS_PER_S * _RESTART_EVERY_S / 2))
    loop.admit_gangs()
    running = Background(loop.run)
    running.start()
    told.recv()
    running.end()
    bus.close()
    telemetry.stop()


def _inventory() -> Inventory:
    """The shipped one, with gangs of one kind that never end."""
    shipped = load_inventory()
    kind = ArrivalKind(
        tasks=WIDTH, gpus=1, cpu_milli=1_000, memory_mib=1_024, level=_RACKS, queue=_QUEUE, priority=_PRIORITY
    )
    arrivals = Arrivals(every_s=_GANG_EVERY_S, runs_s=(_FOR_EVER_S, _FOR_EVER_S), kinds=(kind,))
    return shipped.model_copy(update={"synthetic": shipped.synthetic.model_copy(update={"arrivals": arrivals})})


def _cluster(inventory: Inventory, nodes: int) -> dict[str, Any]:
    """A full fleet: podgroups of 1 to 16 neighbouring tasks; on each node eight tasks of one device and two of none."""
    draw, owners = random.Random(0), list[dict[str, Any]]()
    room = inventory.amounts(64_000, 262_144, DEVICES * 1_000) | {"pods": PODS_OF_A_NODE}
    slots = [(node, at) for node in range(nodes) for at in range(TASKS)]
    first = 0
    while first < len(slots):
        mine = slots[first : first + draw.choice(_WIDTHS)]
        owners.append(_podgroup(inventory, len(owners), mine, draw.randrange(_PRIORITY)))
        first += len(mine)
    return {
        "version": 1,
        "nodes": [
            {"name": f"n{at}", "allocatable": room, "labels": {_RACKS: f"rack-{at // RACK}"}} for at in range(nodes)
        ],
        "topology": {"levels": [_RACKS], "labels": {_RACKS: _RACKS}},
        "queues": [{"name": _QUEUE}],
        "podgroups": owners,
    }


def _podgroup(inventory: Inventory, number: int, slots: Sequence[tuple[int, int]], priority: int) -> dict[str, Any]:
    return {
        "name": f"g{number}", "namespace": "base", "queue": _QUEUE, "priority": priority, "phase": "Running",
        "min_available": -(-len(slots) // 2), "created": float(number), "started": float(number),
        "tasks": [
            {"name": f"g{number}-{at}", "request": inventory.amounts(1_000, 1_024, 1_000 * (slot < DEVICES)),
             "status": "Running", "node": f"n{node}", "created": float(number), "gone_when_evicted": True}
            for at, (node, slot) in enumerate(slots)
        ],
    }  # fmt: skip
