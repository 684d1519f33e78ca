"""The right to write, as far as one committer knows: its lease and until when it is valid, or the lease's owner."""

from __future__ import annotations

import logging
from collections.abc import Callable

from actors.broker.ledger import Busy, Lease, Ledger
from actors.contracts import Leadership

log = logging.getLogger(__name__)


class LeaseKeeper:
    """Asks the ledger for the lease, and knows which service leads.

    Parameters
    ----------
    owner
        Name of the lease's owner; different for every process, and different after a restart.
    ttl_s
        How long a lease is good without being renewed.
    elapsed_s
        A clock that is never set, in seconds: a lease must not seem good for longer because the time was put back.
    """

    def __init__(self, ledger: Ledger, owner: str, ttl_s: float, elapsed_s: Callable[[], float]) -> None:
        self._ledger, self._owner, self._ttl_s, self._elapsed_s = ledger, owner, ttl_s, elapsed_s
        self._leader: Lease | Busy | None = None
        self._good_until = 0.0
        self.held: Lease | None = None

    @property
    def leadership(self) -> Leadership:
        """Which service leads. Our lease counts from the time of asking, so it ends no earlier in the broker."""
        left_s = max(0.0, self._good_until - self._elapsed_s()) if self.held is not None else 0.0
        if self._leader is None or (self.held is not None and not left_s):  # the last answer is too old
            return Leadership()
        return Leadership(left_s, self._leader.epoch, self._leader.owner)

    def keep(self, recorded: int) -> bool:
        """Renew the lease; False if there is none, or it is lost, as where the broker has lost what we recorded.

        ``recorded``: number of our last record.
        """
        if self.held is None:
            return False
        asked_at = self._elapsed_s()
        if self._ledger.renew(self.held, self._ttl_ms, recorded):
            self._good_until = asked_at + self._ttl_s
            return True
        self.lose("it ran out, or the broker has lost records")
        return False

    def take(self, begin: Callable[[Lease], None]) -> bool:
        """Ask for the lease; returns whether it is ours. It counts as ours once ``begin`` has run without an error."""
        asked_at = self._elapsed_s()
        taken = self._ledger.acquire(self._owner, self._ttl_ms)
        if isinstance(taken, Busy):
            self._leader = taken
            return False
        begin(taken)
        self._leader, self.held, self._good_until = taken, taken, asked_at + self._ttl_s
        log.info("lease taken, epoch %d", taken.epoch)
        return True

    def resign(self) -> None:
        """Give the lease back, so that the next one need not wait for it to run out."""
        if self.held is not None:
            self._ledger.release(self.held)
            self.held = self._leader = None

    def lose(self, why: str) -> None:
        """The lease is lost, or may be."""
        log.warning("lease lost: %s", why)
        self.held = self._leader = None

    @property
    def _ttl_ms(self) -> int:
        return int(self._ttl_s * 1000)
