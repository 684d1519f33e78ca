"""A simulated fleet whose connector cannot be relied upon: what it says may come twice, late or in another order.

Never across a full list: what was said before a list is older than it, and a connector that sent it afterwards would
break the protocol.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from actors.broker.bus import EVENTS, START, Bus
from actors.fleets.inventory import load_inventory
from actors.fleets.process import FleetLoop, FleetPace
from actors.fleets.simulated import SimulatedFleet
from actors.observability.telemetry import Telemetry
from actors.protocol.envelopes import Outgoing, pack
from tests.chaos.real_schedule import Kind

#: Between two turns.
TURN_S = 0.002
#: Each is refused for another reason: no msgpack, no batch at all, no such kind, names nothing known.
POISON: tuple[dict[str, bytes], ...] = (
    {"batch": b"\xc1"},
    {"else": b"?"},
    *pack([Outgoing("task_exploded", "nobody", 1, {})]),
    *pack([Outgoing("task_started", "nobody", 1, {"task": "default/nobody", "node": "n0", "incarnation": 0})]),
)


class UnreliableFleet(FleetLoop):
    """The fleet's loop with a connector that misbehaves while it is told to.

    Its methods may be called from any thread; they take effect in the loop's own.
    """

    def __init__(self, fleet: SimulatedFleet, bus: Bus, telemetry: Telemetry, *, seed: int) -> None:
        super().__init__(fleet, load_inventory(), bus, telemetry, FleetPace(every_s=0.0))
        self._draw = random.Random(seed)
        self._arriving: deque[tuple[Mapping[str, Any], float | None]] = deque()
        self._misbehaves: tuple[Kind, float] | None = None
        self._late: list[dict[str, bytes]] = []
        self._lock = threading.Lock()

    def submit(self, document: Mapping[str, Any], runs_s: float | None) -> None:
        """A gang arrives at the next turn; ``runs_s`` after all of it has started it ends."""
        self._arriving.append((document, runs_s))

    def misbehave(self, kind: Kind, for_s: float) -> None:
        """Duplicate, reorder, delay or poison what is published, for so long."""
        self._misbehaves = kind, time.monotonic() + for_s

    def run(self, stop: threading.Event) -> None:
        """Turn until told to stop."""
        while not stop.wait(TURN_S):  # in which the lock is somebody else's to take
            self.turn(block_ms=50)

    def turn(self, block_ms: int = 50) -> None:
        """One round; see the loop."""
        with self._lock:
            while self._arriving:
                document, runs_s = self._arriving.popleft()
                self._publish(self.fleet.submit(document, runs_s))
            if self._late and self._kind() not in (Kind.REORDER, Kind.DELAY):
                self._release()
            super().turn(block_ms)

    @property
    def quiet(self) -> bool:
        """Whether nothing is due, on its way or held back."""
        with self._lock:
            return not (self._arriving or self._losing or self._late or self.fleet.next_at() is not None)

    def truth(self) -> dict[str, tuple[str, str | None, int]]:
        """Status, node and incarnation of every task that is not over."""
        with self._lock:
            tasks = self.fleet._tasks.items()
            return {name: (one.status, one.node, one.incarnation) for name, one in tasks if one.status != "Over"}

    def _list(self) -> None:
        self._release()
        behaves, self._misbehaves = self._misbehaves, None
        super()._list()
        self._misbehaves = behaves

    def _publish(self, events: Sequence[Outgoing]) -> str:
        last = START
        for entry in pack(events, self._telemetry.carrier(), self._limits):
            self._sent += 1
            last = self._send({**entry, "sequence": str(self._sent).encode()})
        return last

    def _kind(self) -> Kind | None:
        if self._misbehaves is not None and time.monotonic() > self._misbehaves[1]:
            self._misbehaves = None
        return self._misbehaves[0] if self._misbehaves is not None else None

    def _send(self, entry: dict[str, bytes]) -> str:
        kind = self._kind()
        if kind is Kind.DELAY or (kind is Kind.REORDER and self._draw.random() < 0.5):
            self._late.append(entry)
            return START
        if kind is Kind.POISON:
            self._bus.publish(EVENTS, self._draw.choice(POISON), insist=True)
        last = self._bus.publish(EVENTS, entry, insist=True)
        if kind is Kind.DUPLICATE:
            last = self._bus.publish(EVENTS, entry, insist=True)
        if kind is Kind.REORDER:
            self._release()
        return last

    def _release(self) -> None:
        late, self._late = self._late, []
        for entry in late:
            self._bus.publish(EVENTS, entry, insist=True)
