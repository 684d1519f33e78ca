"""The ports as a role sees them while things go wrong: every call is a step at which a fault may strike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from actors.broker.bus import DECISIONS, Bounds, BrokerUnreachable, DeadLetter, Entry, Lag, Recovered
from actors.broker.ledger import Busy, Lease, Record, RecordOutcome
from actors.broker.memory_bus import MemoryBus
from actors.contracts import Batch, Searched, Searchers
from pipeline.cluster.snapshot import Snapshot
from tests.chaos.schedule import Fault, Kind


class Died(Exception):
    """A process died in the middle of what it did."""


class Injector:
    """Faults that wait for their step. ``meanwhile`` lets everybody else go on while a process is frozen."""

    def __init__(self, meanwhile: Callable[[Fault, str], None]) -> None:
        self._meanwhile = meanwhile
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
        self._unreachable.clear()

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
        self._injector.reach(self._role, f"{step} before", self._process)
        done = call()
        self._injector.reach(self._role, f"{step} after", self._process)
        return done

    def publish(self, stream: str, fields: Mapping[str, bytes], *, cap: int | None = None, insist: bool = False) -> str:
        return str(self._call(f"publish {stream}", lambda: self._bus.publish(stream, fields, cap=cap, insist=insist)))

    def join(self, stream: str, group: str, *, after: str = "0-0") -> None:
        self._call(f"join {stream}", lambda: self._bus.join(stream, group, after=after))

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

    def recover(self, stream: str, group: str, consumer: str, *, idle_ms: int, count: int = 100) -> Recovered:
        found: Recovered = self._call(
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

    def newest(self, stream: str, *, count: int = 1, before: str | None = None) -> list[Entry]:
        found: list[Entry] = self._call(
            f"newest {stream}", lambda: self._bus.newest(stream, count=count, before=before)
        )
        return found

    def trim(self, stream: str, *, covered: str) -> int:
        return int(self._call(f"trim {stream}", lambda: self._bus.trim(stream, covered=covered)))

    def bounds(self, stream: str) -> Bounds:
        return self._bus.bounds(stream)

    def lags(self, stream: str) -> Mapping[str, Lag]:
        return self._bus.lags(stream)

    def reached(self, stream: str, group: str) -> str:
        return self._bus.reached(stream, group)

    def lag(self, stream: str, group: str) -> Lag:
        return self._bus.lag(stream, group)

    def close(self) -> None:
        """Nothing to give back."""


class FaultyLedger:
    """Implements `actors.broker.ledger.Ledger` for one process of the committer."""

    def __init__(self, ledger: Any, injector: Injector, process: str) -> None:
        self._ledger, self._injector, self._process = ledger, injector, process

    def _call(self, step: str, call: Callable[[], Any]) -> Any:
        self._injector.reach("committer", f"{step} before", self._process)
        done = call()
        self._injector.reach("committer", f"{step} after", self._process)
        return done

    def acquire(self, owner: str, ttl_ms: int) -> Lease | Busy:
        taken: Lease | Busy = self._call("acquire", lambda: self._ledger.acquire(owner, ttl_ms))
        return taken

    def renew(self, lease: Lease, ttl_ms: int) -> bool:
        return bool(self._call("renew", lambda: self._ledger.renew(lease, ttl_ms)))

    def release(self, lease: Lease) -> bool:
        return bool(self._call("release", lambda: self._ledger.release(lease)))

    def commit(self, lease: Lease, records: Sequence[Record]) -> list[RecordOutcome]:
        step = "withdraw" if records[0].key.endswith(":withdrawn") else "record"
        outcomes: list[RecordOutcome] = self._call(step, lambda: self._ledger.commit(lease, records))
        return outcomes

    def forget(self, lease: Lease, *, keep: int = 10_000) -> int:
        return int(self._call("forget", lambda: self._ledger.forget(lease, keep=keep)))


class FaultySearch:
    """Implements `contracts.Searchers`; for ``losing`` more batches the searcher is lost, and the one after it."""

    def __init__(self, search: Searchers, injector: Injector) -> None:
        self._search, self._injector = search, injector
        self.losing = 0

    def search(self, snapshot: Snapshot, batches: Sequence[Batch]) -> list[Searched]:
        self._injector.reach("dispatcher", "search before")
        found = self._search.search(snapshot, batches)
        lost = min(self.losing, len(found))
        self.losing -= lost
        return [replace(one, outcome=None) if at < lost else one for at, one in enumerate(found)]
