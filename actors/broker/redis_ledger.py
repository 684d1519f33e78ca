"""The ledger in a Redis or Valkey server: each operation one atomic function there."""

from __future__ import annotations

import logging
from typing import Any

from actors.broker.bus import DECISIONS, BrokerRefused, stream_key
from actors.broker.ledger import REFUSALS_KEPT, Busy, Duplicate, Fenced, Lease, Outcome, Record, Recorded
from actors.broker.redis_client import RedisClient

log = logging.getLogger(__name__)


class RedisLedger:
    """Implements `actors.broker.ledger.Ledger`.

    Parameters
    ----------
    sync_ms
        How long to wait for the broker's disk to have a record; 0 trusts the broker's write every second, which a crash
        of the whole machine can cost.
    """

    def __init__(self, link: RedisClient, fleet: str, *, sync_ms: int = 0) -> None:
        self._link, self._sync_ms = link, sync_ms
        self._decisions = stream_key(fleet, DECISIONS)
        root = self._decisions.removesuffix(DECISIONS) + "ledger:"
        self._lease, self._epoch, self._revision = f"{root}lease", f"{root}epoch", f"{root}revision"
        self._verdicts, self._accepted, self._refused = f"{root}verdicts", f"{root}accepted", f"{root}refused"

    def acquire(self, owner: str, ttl_ms: int) -> Lease | Busy:
        """Take the lease; see the port."""
        reply = self._link.call("acquire", [self._lease, self._epoch], [owner, ttl_ms])
        if reply[0] == b"HELD":
            return Lease(owner, int(reply[1]))
        return Busy(reply[2].decode(), int(reply[1]), int(reply[3]))

    def renew(self, lease: Lease, ttl_ms: int) -> bool:
        """Hold the lease; see the port."""
        if ttl_ms <= 0:
            raise ValueError(f"ttl_ms must be positive, found {ttl_ms}")
        return bool(self._link.call("renew", [self._lease], [str(lease.epoch), ttl_ms]))

    def release(self, lease: Lease) -> bool:
        """Give the lease back; see the port."""
        return bool(self._link.call("renew", [self._lease], [str(lease.epoch), 0]))

    def commit(self, record: Record) -> Outcome:
        """Write or refuse; see the port."""
        arguments: list[str | bytes | int] = [str(record.epoch), record.key, record.verdict, REFUSALS_KEPT]
        for name, value in record.decision.items():
            arguments += [name, value]
        keys = [
            self._lease, self._epoch, self._verdicts, self._accepted, self._refused, self._decisions, self._revision,
        ]  # fmt: skip
        reply = self._link.call("commit", keys, arguments)
        if reply[0] == b"FENCED":
            return Fenced(int(reply[1]))
        entry = None if reply[2] == b"-" else reply[2].decode()
        recorded = Recorded(int(reply[1]), entry, reply[3])
        self._sync()
        return Duplicate(recorded) if reply[0] == b"DUPLICATE" else recorded

    def forget(self, lease: Lease, *, keep: int = REFUSALS_KEPT) -> int:
        """Drop what is no longer needed; see the port."""
        keys = [self._lease, self._verdicts, self._accepted, self._decisions, self._revision]
        return int(self._link.call("forget", keys, [str(lease.epoch), keep]))

    def _sync(self) -> None:
        """Wait for the disk. A broker that keeps no log on disk is used as it is, and said so once."""
        sync_ms = self._sync_ms
        if sync_ms <= 0:
            return

        def wait(client: Any) -> Any:
            return client.execute_command("WAITAOF", 1, 0, sync_ms)

        try:
            on_disk, _replicas = self._link.ask(wait)
        except BrokerRefused as refusal:
            self._sync_ms = 0
            log.warning("commits do not wait for the disk: %s", refusal)
            return
        if not on_disk:
            log.warning("the broker's disk did not have a commit within %d ms", sync_ms)
