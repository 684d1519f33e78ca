"""The ports as a role sees them while things go wrong: every call is a step at which a fault may strike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from actors.broker.bus import DECISIONS, EVENTS, Bounds, BrokerUnreachable, DeadLetter, Entry, Lag
from actors.broker.ledger import Busy, Lease, Record, RecordOutcome
from actors.broker.memory_bus import MemoryBus
from actors.contracts import Batch, Searched
from actors.search.searcher import Searcher
from pipeline.cluster.snapshot import Snapshot
from pipeline.plugins.host import Host
from tests.chaos.schedule import Fault, Kind
from tests.support.assembly import Clock

#: How long a question and its answer take where the network is slow, and a part of how long a broker is away.
DELAY_S, RESTART_S = 0.5, 1.5
#: Calls of a bus that a broker answers whose disk is full.
_READS = ("follow", "newest", "bounds", "lags", "reached")


@dataclass(slots=True)
class MachineClock:
    """The clock of one machine, which may differ from all others."""

    of: Clock
    ahead_s: float = 0.0

    def __call__(self) -> float:
        return self.of.now + self.ahead_s


class Died(Exception):
    """A process died in the middle of what it did."""


class Injector:
    """Faults that wait for their step. ``meanwhile`` lets everybody else go on while a process is frozen."""

    def __init__(self, meanwhile: Callable[[Fault, str], None], clock: Clock) -> None:
        self._meanwhile, self._clock = meanwhile, clock
        self.away_until = self.full_until = self.slow_until = 0.0
        self.dropping: Counter[str] = Counter()
        self.repeating: Counter[str] = Counter()
        self._armed: list[Fault] = []
        self._unreachable: Counter[str] = Counter()
        self._serial = 0
        self.struck: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()

    def serial(self) -> int:
        """A number that no other process of this run has."""
        self._serial += 1
        return self._serial

    def arm(self, fault: Fault) -> None:
        """Let a fault wait for its step."""
        self._armed.append(fault)

    def disarm(self) -> None:
        """Nothing goes wrong from here on."""
        self._armed.clear()
        for counter in (self._unreachable, self.dropping, self.repeating):
            counter.clear()
        self.away_until = self.full_until = self.slow_until = 0.0

    def refuses(self, *, writes: bool = True) -> bool:
        """Whether the broker answers nothing, or no writes."""
        return self._clock.now < max(self.away_until, self.full_until if writes else 0.0)

    def call(self, role: str, process: str, step: str, call: Callable[[], Any], *, writes: bool = True) -> Any:
        """A call to the broker, with all that may become of it."""
        self._travel()
        self.reach(role, f"{step} before", process)
        if self.refuses(writes=writes):
            raise BrokerUnreachable(f"{role} at {step}")
        done = call()
        if self.repeating[role] > 0:
            self.repeating[role] -= 1
            done = call()
        self._travel()
        self.reach(role, f"{step} after", process)
        if self.dropping[role] > 0:
            self.dropping[role] -= 1
            raise BrokerUnreachable(f"{role} after {step}")
        return done

    def _travel(self) -> None:
        if self._clock.now < self.slow_until:
            self._clock.now += DELAY_S / 2

    def reach(self, role: str, step: str, process: str = "") -> None:
        """A process is at a step.

        Raises
        ------
        Died, BrokerUnreachable
            Where a fault waited for it.
        """
        self.reached[f"{role}: {step}"] += 1
        if self._unreachable[process or role] > 0 and step.endswith("before"):
            self._unreachable[process or role] -= 1
            raise BrokerUnreachable(f"{role} at {step}")
        for at, fault in enumerate(self._armed):
            if (fault.role, fault.step) != (role, step):
                continue
            if fault.skip:
                self._armed[at] = replace(fault, skip=fault.skip - 1)
                continue
            del self._armed[at]
            self.struck[f"{fault.kind.name} {role}: {step}"] += 1
            self._strike(fault, process or role)
            return

    def _strike(self, fault: Fault, process: str) -> None:
        if fault.kind is Kind.KILL:
            raise Died(process)
        if fault.kind is Kind.POWER_LOSS:
            self.away_until = self._clock.now + fault.lasts * RESTART_S
            raise BrokerUnreachable(f"{fault.role} at {fault.step}")
        if fault.kind is Kind.UNREACHABLE:
            self._unreachable[process] = fault.lasts - 1
            raise BrokerUnreachable(f"{fault.role} at {fault.step}")
        self._meanwhile(fault, process)


class KeptBus(MemoryBus):
    """The broker's streams, and beside them all that was ever in them."""

    def __init__(self, fleet: str, clock_s: Callable[[], float]) -> None:
        super().__init__(fleet, clock_s)
        self.history: dict[str, list[Entry]] = {}

    def publish(self, stream: str, fields: Mapping[str, bytes], *, cap: int | None = None, insist: bool = False) -> str:
        entry = super().publish(stream, fields, cap=cap, insist=insist)
        self.history.setdefault(stream, []).append(Entry(stream, entry, dict(fields)))
        return entry

    def forget(self, stream: str, count: int) -> list[Entry]:
        """Lose the oldest entries that are still there, whoever needs them; returns them."""
        log = self._log(stream)
        gone = log.entries[:count]
        log.drop(count)
        return gone


class FaultyBus:
    """Implements `actors.broker.bus.Bus` for one process of a role."""

    def __init__(self, bus: MemoryBus, injector: Injector, role: str, process: str = "") -> None:
        self._bus, self._injector, self._role, self._process = bus, injector, role, process or role

    def _call(self, step: str, call: Callable[[], Any]) -> Any:
        reads = step.startswith(_READS) or step == "recover"
        return self._injector.call(self._role, self._process, step, call, writes=not reads)

    def publish(self, stream: str, fields: Mapping[str, bytes], *, cap: int | None = None, insist: bool = False) -> str:
        return str(self._call(f"publish {stream}", lambda: self._bus.publish(stream, fields, cap=cap, insist=insist)))

    def publish_all(self, stream: str, entries: Sequence[Mapping[str, bytes]], *, cap: int | None = None) -> list[str]:
        made: list[str] = self._call(f"publish {stream}", lambda: self._bus.publish_all(stream, entries, cap=cap))
        return made

    def join(self, stream: str, group: str) -> None:
        self._call(f"join {stream}", lambda: self._bus.join(stream, group))

    def read(
        self, stream: str, group: str, consumer: str, *, count: int = 100, block_ms: int = 0, pending: bool = False
    ) -> list[Entry]:
        del block_ms  # the clock stands
        found: list[Entry] = self._call(
            f"read {stream}", lambda: self._bus.read(stream, group, consumer, count=count, pending=pending)
        )
        return found

    def acknowledge(self, stream: str, group: str, ids: Sequence[str]) -> int:
        return int(self._call(f"acknowledge {stream}", lambda: self._bus.acknowledge(stream, group, ids)))

    def cover(self, stream: str, group: str, *, upto: str) -> None:
        self._call(f"cover {stream}", lambda: self._bus.cover(stream, group, upto=upto))

    def recover(self, stream: str, group: str, consumer: str, *, idle_ms: int, count: int = 100) -> list[Entry]:
        found: list[Entry] = self._call(
            f"recover {stream}", lambda: self._bus.recover(stream, group, consumer, idle_ms=idle_ms, count=count)
        )
        return found

    def bury(self, letters: Sequence[DeadLetter]) -> int:
        return int(self._call("bury", lambda: self._bus.bury(letters)))

    def follow(self, stream: str, after: str, *, count: int = 100, block_ms: int = 0) -> list[Entry]:
        del block_ms
        # The committer follows decisions only while it recovers.
        step = "recover" if self._role == "committer" and stream == DECISIONS else f"follow {stream}"
        found: list[Entry] = self._call(step, lambda: self._bus.follow(stream, after, count=count))
        return found

    def follow_any(self, after: Mapping[str, str], *, count: int = 100, block_ms: int = 0) -> Mapping[str, list[Entry]]:
        del block_ms
        found: Mapping[str, list[Entry]] = self._call(
            f"follow {EVENTS}", lambda: self._bus.follow_any(after, count=count)
        )
        return found

    def newest(self, stream: str, *, count: int = 1, before: str | None = None) -> list[Entry]:
        found: list[Entry] = self._call(
            f"newest {stream}", lambda: self._bus.newest(stream, count=count, before=before)
        )
        return found

    def trim(self, stream: str, *, covered: str) -> int:
        return int(self._call(f"trim {stream}", lambda: self._bus.trim(stream, covered=covered)))

    def bounds(self, stream: str) -> Bounds:
        found: Bounds = self._call(f"bounds {stream}", lambda: self._bus.bounds(stream))
        return found

    def lags(self, stream: str) -> Mapping[str, Lag]:
        found: Mapping[str, Lag] = self._call(f"lags {stream}", lambda: self._bus.lags(stream))
        return found

    def reached(self, stream: str, group: str) -> str:
        return self._bus.reached(stream, group)

    def close(self) -> None:
        """Nothing to give back."""


class FaultyLedger:
    """Implements `actors.broker.ledger.Ledger` for one process of the committer."""

    def __init__(self, ledger: Any, injector: Injector, process: str) -> None:
        self._ledger, self._injector, self._process = ledger, injector, process

    def _call(self, step: str, call: Callable[[], Any]) -> Any:
        return self._injector.call("committer", self._process, step, call)

    def acquire(self, owner: str, ttl_ms: int) -> Lease | Busy:
        taken: Lease | Busy = self._call("acquire", lambda: self._ledger.acquire(owner, ttl_ms))
        return taken

    def renew(self, lease: Lease, ttl_ms: int, recorded: int = 0) -> bool:
        return bool(self._call("renew", lambda: self._ledger.renew(lease, ttl_ms, recorded)))

    def release(self, lease: Lease) -> bool:
        return bool(self._call("release", lambda: self._ledger.release(lease)))

    def commit(self, lease: Lease, records: Sequence[Record]) -> list[RecordOutcome]:
        step = "withdraw" if records[0].key.endswith(":withdrawn") else "record"
        outcomes: list[RecordOutcome] = self._call(step, lambda: self._ledger.commit(lease, records))
        return outcomes

    def forget(self, lease: Lease, *, keep: int = 10_000) -> int:
        return int(self._call("forget", lambda: self._ledger.forget(lease, keep=keep)))


class FaultySearch:
    """Searches here and elsewhere; for ``losing`` more batches the searcher is lost, and the one after it."""

    def __init__(self, search: Searcher, injector: Injector) -> None:
        self._search, self._injector = search, injector
        self.losing = 0

    def search(self, snapshot: Snapshot, batches: Sequence[Batch], host: Host | None = None) -> list[Searched]:
        self._injector.reach("dispatcher", "search before")
        found = self._search.search(snapshot, batches, host)
        lost = min(self.losing, len(found))
        self.losing -= lost
        return [replace(one, outcome=None) if at < lost else one for at, one in enumerate(found)]
