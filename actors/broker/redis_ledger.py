"""The ledger in a Redis or Valkey server: each operation one atomic function there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.broker.bus import DECISIONS, EVENTS, SHADOWS, stream_key
from actors.broker.ledger import REFUSALS_KEPT, Busy, Duplicate, Fenced, Lease, Record, Recorded, RecordOutcome
from actors.broker.redis_client import RedisClient


class RedisLedger:
    """Implements `actors.broker.ledger.Ledger`.

    Parameters
    ----------
    synced
        Whether the lease is taken, and held, only from a broker that answers once its disk has what was written. Any
        other may lose decisions with the power of its machine.
    """

    def __init__(self, link: RedisClient, fleet: str, *, synced: bool = True, shadow: bool = False) -> None:
        self._link, self._synced = link, synced
        self._decisions = stream_key(fleet, SHADOWS[DECISIONS] if shadow else DECISIONS)
        self._events = stream_key(fleet, EVENTS)
        root = self._events.removesuffix(EVENTS) + "ledger:"
        self._lease, self._epoch, self._revision = f"{root}lease", f"{root}epoch", f"{root}revision"
        self._verdicts, self._accepted, self._refused = f"{root}verdicts", f"{root}accepted", f"{root}refused"

    def acquire(self, owner: str, ttl_ms: int) -> Lease | Busy:
        """Take the lease; see the port.

        Raises
        ------
        BrokerRefused
            For a broker that answers before its disk has what was written, where that is asked for.
        """
        self._check_synced()
        reply = self._link.call("acquire", [self._lease, self._epoch, self._revision], [owner, ttl_ms])
        if reply[0] == b"HELD":
            return Lease(owner, int(reply[1]), int(reply[2]))
        return Busy(reply[2].decode(), int(reply[1]))

    def renew(self, lease: Lease, ttl_ms: int, recorded: int = 0) -> bool:
        """Hold the lease; see the port.

        Raises
        ------
        BrokerRefused
            As `acquire`.
        """
        if ttl_ms <= 0:
            raise ValueError(f"ttl_ms must be positive, found {ttl_ms}")
        self._check_synced()
        return bool(self._link.call("renew", [self._lease, self._revision], [*_named(lease), ttl_ms, recorded]))

    def release(self, lease: Lease) -> bool:
        """Give the lease back; see the port."""
        return bool(self._link.call("renew", [self._lease, self._revision], [*_named(lease), 0, 0]))

    def commit(self, lease: Lease, records: Sequence[Record]) -> list[RecordOutcome]:
        """Write or refuse; see the port. One call, so that the broker's disk is waited for once."""
        if not records:
            return []
        arguments: list[str | bytes | int] = [*_named(lease), REFUSALS_KEPT]
        for record in records:
            fields = [part for pair in record.decision.items() for part in pair]
            arguments += [record.key, record.verdict, len(fields), *fields]
        keys = [
            self._lease, self._epoch, self._verdicts, self._accepted, self._refused, self._decisions, self._revision,
            self._events,
        ]  # fmt: skip
        return [_outcome(reply) for reply in self._link.call("commit", keys, arguments)]

    def _check_synced(self) -> None:
        """The settings of the broker may be changed while we hold the lease, too."""
        if self._synced:
            self._link.check_synced()

    def forget(self, lease: Lease, *, keep: int = REFUSALS_KEPT) -> int:
        """Drop what is no longer needed; see the port."""
        keys = [self._lease, self._verdicts, self._accepted, self._decisions, self._revision]
        return int(self._link.call("forget", keys, [*_named(lease), keep]))


def _named(lease: Lease) -> tuple[str, str]:
    return lease.owner, str(lease.epoch)


def _outcome(reply: Any) -> RecordOutcome:
    if reply[0] == b"FENCED":
        return Fenced(int(reply[1]))
    recorded = Recorded(int(reply[1]), None if reply[2] == b"-" else reply[2].decode(), reply[3])
    return Duplicate(recorded) if reply[0] == b"DUPLICATE" else recorded
