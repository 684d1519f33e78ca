"""The ledger in this process's memory, beside a `MemoryBus`: for tests, seeded fault schedules and replays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from actors.broker.bus import DECISIONS, EVENTS, Bus, id_order
from actors.broker.ledger import REFUSALS_KEPT, Busy, Duplicate, Fenced, Lease, Record, Recorded, RecordOutcome
from actors.broker.stream_order import AFTER


@dataclass(frozen=True, slots=True)
class _HeldLease:
    lease: Lease
    until_s: float
    ttl_s: float


class MemoryLedger:
    """Implements `actors.broker.ledger.Ledger`; several threads may use it.

    Parameters
    ----------
    bus
        The bus that takes the decisions.
    clock_s
        The clock by which leases run out, in seconds.
    """

    def __init__(self, bus: Bus, clock_s: Callable[[], float] = time.time) -> None:
        self._bus, self._clock_s = bus, clock_s
        self._held: _HeldLease | None = None
        self._epoch = self._revision = 0
        self._recorded: dict[str, Recorded] = {}
        self._lock = threading.Lock()

    def acquire(self, owner: str, ttl_ms: int) -> Lease | Busy:
        """Take the lease; see the port."""
        with self._lock:
            now_s, held = self._clock_s(), self._current()
            if held is not None and held.lease.owner != owner:
                if held.until_s - now_s > held.ttl_s:  # the clock went back
                    held = self._held = replace(held, until_s=now_s + held.ttl_s)
                return Busy(held.lease.owner, held.lease.epoch)
            self._epoch = max(self._epoch + 1, int(now_s * 1000))
            lease = Lease(owner, self._epoch, self._revision)
            self._held = _HeldLease(lease, now_s + ttl_ms / 1000, ttl_ms / 1000)
            return lease

    def renew(self, lease: Lease, ttl_ms: int, recorded: int = 0) -> bool:
        """Hold the lease; see the port."""
        if ttl_ms <= 0:
            raise ValueError(f"ttl_ms must be positive, found {ttl_ms}")
        with self._lock:
            if not self._holds(lease) or self._revision < recorded:
                return False
            self._held = _HeldLease(lease, self._clock_s() + ttl_ms / 1000, ttl_ms / 1000)
            return True

    def release(self, lease: Lease) -> bool:
        """Give the lease back; see the port."""
        with self._lock:
            if not self._holds(lease):
                return False
            self._held = None
            return True

    def commit(self, lease: Lease, records: Sequence[Record]) -> list[RecordOutcome]:
        """Write or refuse; see the port."""
        with self._lock:
            outcomes: list[RecordOutcome] = []
            for record in records:
                outcomes.append(self._commit(lease, record))
                if not isinstance(outcomes[-1], Recorded):
                    break
            return outcomes

    def _commit(self, lease: Lease, record: Record) -> RecordOutcome:
        first = self._recorded.get(record.key)
        if first is not None:
            return Duplicate(first)
        if not self._holds(lease):
            return Fenced(self._epoch)
        revision = self._revision + 1
        entry = None
        if record.decision:
            stands = {"revision": str(revision).encode(), AFTER: self._bus.bounds(EVENTS).last.encode()}
            entry = self._bus.publish(DECISIONS, {**stands, **record.decision})
        self._revision = revision
        recorded = self._recorded[record.key] = Recorded(revision, entry, record.verdict)
        if entry is None:
            refused = [key for key, one in self._recorded.items() if one.entry is None]
            for key in refused[: max(0, len(refused) - REFUSALS_KEPT)]:
                del self._recorded[key]
        return recorded

    def forget(self, lease: Lease, *, keep: int = REFUSALS_KEPT) -> int:
        """Drop what is no longer needed; see the port."""
        with self._lock:
            if not self._holds(lease):
                return -1
            bounds = self._bus.bounds(DECISIONS)
            newest = self._revision - keep
            gone = [
                key
                for key, one in self._recorded.items()
                if one.entry is not None
                and one.revision <= newest
                and (bounds.length == 0 or id_order(one.entry) < id_order(bounds.first))
            ]
            for key in gone:
                del self._recorded[key]
            return len(gone)

    def _current(self) -> _HeldLease | None:
        if self._held is not None and self._held.until_s <= self._clock_s():
            self._held = None
        return self._held

    def _holds(self, lease: Lease) -> bool:
        held = self._current()
        return held is not None and held.lease == lease
