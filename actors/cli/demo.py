"""``clearway demo``: gangs arrive on a full fleet, and Clearway makes room for them; it ends by itself."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from actors.broker.address import BrokerAddress, broker_for
from actors.broker.bus import Bus
from actors.broker.redis_bus import RedisBus
from actors.cli.live_view import LiveView, Pulse
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings
from actors.fleets.background import Background
from actors.fleets.inventory import Inventory, load_inventory
from actors.fleets.process import FleetLoop, FleetPace, simulated
from actors.ingestion.watching.lag_watch import slowest
from actors.observability.span_store import gathered, tree
from actors.observability.telemetry import start as start_telemetry
from actors.observability.traces import SPAN_CYCLE, SPAN_RECORD, SpanRecord
from actors.processes.unique_name import unique_name
from actors.protocol.bodies import PlanCommitted
from actors.protocol.envelopes import Message
from actors.ray_runtime.cluster import ray_cluster
from actors.ray_runtime.process import Wiring
from actors.ray_runtime.role_actors import RoleActors
from actors.search.pending_reasons import kept_reasons, newest
from actors.verification.audit import AuditReport, audited
from actors.verification.recorder import Recorder
from actors.warming.warm import compile_missing

SETTLE_S = 12.0
LISTED_LIMIT_S = 60.0
_BROKEN_SHOWN = 10


class Stage:
    """The running demo: the fleet, its history and the view, each in a thread of this process."""

    def __init__(
        self, settings: Settings, inventory: Inventory, address: BrokerAddress, *, seed: int, plain: bool
    ) -> None:
        self.settings = settings
        self.bus: Bus = RedisBus(address.connect("demo", functions=False), settings.fleet)
        self._telemetry = start_telemetry(settings.telemetry, "fleet", fleet=settings.fleet)
        made = inventory.synthetic
        self.loop = FleetLoop(
            simulated(inventory, seed, time.time()), inventory,
            RedisBus(address.connect("fleet", functions=False), settings.fleet), self._telemetry,
            FleetPace(made.arrivals.every_s / made.speed, seed, settings.outgoing),
        )  # fmt: skip
        self._gpu = inventory.resources.gpu
        #: When each gang had its first room, in seconds since 1970.
        self.placed: dict[str, float] = {}
        self._why: dict[str, str] = {}
        self._why_at = 0.0
        self.left: dict[str, str] = {}
        self.view = LiveView(self._pulse, plain=plain)
        self.recorder = Recorder(RedisBus(address.connect("history", functions=False), settings.fleet), self._heard)
        self._from = self._until = time.monotonic()
        self._changed = threading.Event()
        self._background = Background(self.loop.run, self.recorder.run)

    def _heard(self, message: Message) -> None:
        if isinstance(message.body, PlanCommitted) and message.body.preemptor is not None:
            self.placed.setdefault(message.body.preemptor, time.time())
        self.view.show(message)
        self._changed.set()

    def waiting(self) -> list[str]:
        """Names of the gangs that have arrived and have no room yet."""
        names = [f"gang-{serial:03d}" for serial in range(self.loop.arrived)]
        return [name for name in names if f"arrivals/{name}" not in self.placed]

    def _pulse(self) -> Pulse:
        span_s = max(1e-9, self._until - self._from)
        return Pulse(
            (time.monotonic() - self._from) / span_s, self.loop.fleet.used(self._gpu), self.loop.arrived,
            self.waits(), len(self.placed), slowest(self.bus), self._held(),
        )  # fmt: skip

    def waits(self) -> dict[str, str]:
        """Gangs that have arrived and have no room yet, with the last reason; it is looked up once a second."""
        if time.monotonic() >= self._why_at:
            self._why_at = time.monotonic() + 1.0
            told = {one.podgroup: str(one.attempts[-1]["reason"]) for one in newest(self.bus) if one.attempts}
            self._why = {name.removeprefix("arrivals/"): reason for name, reason in told.items()}
        return {name: self._why.get(name, "") for name in self.waiting()}

    def refused(self) -> dict[str, str]:
        """Gangs that were told that there is no plan for them before they had room, with the last reason."""
        told: dict[str, str] = {}
        for one in kept_reasons(self.bus):
            if one.attempts and one.at < self.placed.get(one.podgroup, math.inf):
                told.setdefault(one.podgroup, str(one.attempts[-1]["reason"]))
        return told

    def _held(self) -> dict[str, float]:
        """GPUs by queue; a fleet whose GPUs are shared counts them in thousandths."""
        unit = 1000 if self._gpu.endswith("-milli") else 1
        return {name: held / unit for name, held in self.loop.fleet.held_by_queue(self._gpu).items()}

    def open(self) -> None:
        """Publish the list of the fleet and start the threads."""
        self.loop.open()
        self._background.start()

    def play(self, seconds: float, interrupted: threading.Event) -> None:
        """Let gangs arrive for some seconds, lose a node meanwhile, and wait until nothing more happens."""
        self._from, self._until = time.monotonic(), time.monotonic() + seconds + SETTLE_S
        with self.view.running():
            self.loop.admit_gangs()
            interrupted.wait(seconds / 2)
            self.loop.lose(self.loop.fleet.nodes[len(self.loop.fleet.nodes) // 3])
            interrupted.wait(seconds / 2)
            self.loop.close_gates()
            quiet_s = SETTLE_S / 2
            while not interrupted.is_set() and time.monotonic() < self._until and self.waiting():
                self._changed.clear()
                if not self._changed.wait(quiet_s):
                    break
            self.left = self.waits()

    def close(self) -> None:
        """End the threads after recording the rest of the streams; raise the error that ended one early, if any."""
        self._background.end()
        self._telemetry.stop()
        self._background.raise_failures()


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Have SIGTERM and SIGINT end the demo early and in order."""
    interrupted = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(settings: Settings, *, seconds: float, seed: int, inventory: Path | None, plain: bool) -> int:
    """Play the demo; the exit code, 1 if a decision broke a rule, a task did not fit or nothing was decided."""
    policy, loaded = load_profile(settings.policy_profile), load_inventory(inventory)
    owner = unique_name()
    # In a shared broker a fleet of this name may have a history, so the demo takes a new name.
    settings = settings.model_copy(update={"fleet": f"demo-{int(time.time())}"})
    with broker_for(settings, tcp=settings.ray_address is not None) as address:
        stage = Stage(settings, loaded, address, seed=seed, plain=plain)
        stage.view.say(
            f"A fleet of {len(stage.loop.fleet.nodes):,} nodes, {stage.loop.fleet.used(loaded.resources.gpu):.1%} of "
            "its GPUs in use; starting the broker, Ray and the actors …"
        )
        compile_missing(policy, stage.view.say)  # once here rather than in every actor at the same time
        with ray_cluster(settings.ray_address, f"clearway-{owner}"), _interruptible() as interrupted:
            pipeline = RoleActors(Wiring(settings, address, policy, owner))
            try:
                stage.open()
                pipeline.await_ready()
                pipeline.await_listed(LISTED_LIMIT_S)
                stage.view.say(f"ready after {stage.view.elapsed_s:.1f} s; gangs arrive")
                stage.play(seconds, interrupted)
                pipeline.flush()
                spans, _ = gathered(stage.bus)
                refused = stage.refused()
            finally:
                pipeline.stop()
                stage.close()
    report = audited(stage.recorder.events, stage.recorder.decisions, policy)
    _summary(stage, report, spans, refused, loaded.resources.gpu)
    return 1 if report.broken or stage.loop.fleet.tally.misfits or not report.decisions else 0


def _summary(
    stage: Stage, report: AuditReport, spans: Sequence[SpanRecord], refused: Mapping[str, str], gpu: str
) -> None:
    say = stage.view.say
    latency_ms = decision_ms(spans)
    made = ", ".join(f"{count} {action}" for action, count in sorted(report.decisions.items()))
    tally = stage.loop.fleet.tally
    say("")
    say(f"decisions             {sum(report.decisions.values())} ({made}), {sum(report.withdrawn.values())} withdrawn")
    say(f"gangs placed          {report.placed} of {stage.loop.arrived} that arrived")
    for gang, why in stage.left.items():
        say(f"  not placed          {gang}: {why or 'it arrived too late to be searched for'}")
    say(f"victims               {report.victims} tasks")
    say(f"gangs broken          {report.gangs_broken}")
    say(f"evicted to requested  {report.ratio(gpu):.2f} of GPUs, in decisions that evict")
    say(f"decision latency      p50 {quantile(latency_ms, 0.5):.0f} ms, p99 {quantile(latency_ms, 0.99):.0f} ms, "
        f"from the start of the cycle to the record in the broker")  # fmt: skip
    for line in arrival_to_room(report.waited_ms, refused):
        say(line)
    say(f"the fleet             {tally.started} tasks started, {tally.evicted} evicted, {tally.finished} gangs "
        f"finished, {tally.nodes_failed} nodes lost, {tally.misfits} misfits")  # fmt: skip
    say(f"rules broken          {len(report.broken)}")
    for sentence in report.broken[:_BROKEN_SHOWN]:
        say(f"  {sentence}")
    trace = busiest(spans)
    if trace is not None:
        say("")
        say("one cycle, across the processes:")
        for line in tree(spans, trace):
            say("  " + line)
    say("")
    say(f"took {stage.view.elapsed_s:.0f} s")
    sys.stdout.flush()


def arrival_to_room(waited_ms: Mapping[str, int], refused: Mapping[str, str]) -> Iterator[str]:
    """How long gangs waited for room: those for which there always was a plan, then each of the others.

    Parameters
    ----------
    waited_ms
        By gang: milliseconds from its arrival to the decision that gave it its room.
    refused
        Gangs for which a search found no plan at first, with the last reason.
    """
    at_once = sorted(float(ms) for gang, ms in waited_ms.items() if gang not in refused)
    yield (f"arrival to room       p50 {quantile(at_once, 0.5):.0f} ms, p99 {quantile(at_once, 0.99):.0f} ms, "
           f"of {len(at_once)} gangs for which there was a plan at once")  # fmt: skip
    for gang in sorted(waited_ms.keys() & refused.keys()):
        yield f"  waited {waited_ms[gang] / 1e3:6.1f} s       {gang.rsplit('/')[-1]}: {refused[gang]}"


def decision_ms(spans: Sequence[SpanRecord]) -> list[float]:
    """Milliseconds from the start of the cycle to the record, for each decision, ascending."""
    began = {span["trace"]: span["start_ns"] for span in spans if span["name"] == SPAN_CYCLE}
    return sorted(
        (span["end_ns"] - began[span["trace"]]) / 1e6
        for span in spans
        if span["name"] == SPAN_RECORD and span["attributes"].get("verdict") == "accepted" and span["trace"] in began
    )


def busiest(spans: Sequence[SpanRecord]) -> str | None:
    """Trace id of the cycle with the most evictions, or of any cycle with a decision; None if there is none."""
    evicts: dict[str, int] = {}
    for span in spans:
        if span["name"] == SPAN_RECORD:
            evicts[span["trace"]] = evicts.get(span["trace"], 0) + int(span["attributes"].get("victims", 0))
    whole = [span["trace"] for span in spans if span["name"] == SPAN_CYCLE and span["trace"] in evicts]
    return max(whole, key=lambda trace: (evicts[trace], trace), default=None)


def quantile(ascending: Sequence[float], share: float) -> float:
    """The quantile of ascending values by nearest rank; 0 without values."""
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))] if ascending else 0.0
