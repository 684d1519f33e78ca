"""The port to the ledger: the one place where a decision becomes true, once, and only for the holder of the lease.

Ray starts a second committer beside a frozen first one and fences neither, so the broker must: each lease has an epoch,
a number that is never given twice, and a record is refused whose writer does not hold the lease. A record's key makes
it idempotent: asking again returns the first answer and records nothing. What is answered is on the broker's disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

#: How many verdicts without a decision are kept, the newest.
REFUSALS_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to record, until it runs out or another owner has a later epoch.

    Attributes
    ----------
    recorded
        Revision of the last record before it was taken. No other owner records while it is held.
    """

    owner: str
    epoch: int
    recorded: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Busy:
    """Another owner holds the lease."""

    owner: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Record:
    """A record that the committer asks the ledger to write.

    Attributes
    ----------
    key
        Idempotency key: the id of the plan, or what a withdrawal derives from it.
    verdict
        The answer for a retry, opaque here.
    decision
        Fields of the entry of the decision (see `envelopes.pack_decision`); empty for a refusal, which writes to no
        stream.
    """

    key: str
    verdict: bytes
    decision: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The record was written.

    Attributes
    ----------
    revision
        Number of records up to this one; readers see it as the decision's revision.
    entry
        Id in the decisions stream; None for a refusal.
    verdict
        Verdict of the record.
    """

    revision: int
    entry: str | None
    verdict: bytes


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The key was recorded before; nothing was written now."""

    first: Recorded


@dataclass(frozen=True, slots=True)
class Fenced:
    """The lease is not the writer's; nothing was written. `epoch` is the latest that was given out."""

    epoch: int


RecordOutcome = Recorded | Duplicate | Fenced


class Ledger(Protocol):
    """One fleet's decisions. Every method may be asked again after `BrokerUnreachable`."""

    def acquire(self, owner: str, ttl_ms: int) -> Lease | Busy:
        """Take the lease if it is free or already this owner's; each time it has a new epoch."""
        ...

    def renew(self, lease: Lease, ttl_ms: int, recorded: int = 0) -> bool:
        """Hold it for `ttl_ms` from now; False when it is lost.

        It is lost too where the last record is before ``recorded``, the holder's own last: the broker has lost some.
        """
        ...

    def release(self, lease: Lease) -> bool:
        """Give it back; False when it was lost already."""
        ...

    def commit(self, lease: Lease, records: Sequence[Record]) -> list[RecordOutcome]:
        """Write decisions with their verdicts, in order, all with one sync of the broker's disk.

        The first that is not recorded is the last that is answered: what comes after it was judged as if it had been,
        and is not looked at. A key that is known is answered before the lease is looked at: what is recorded is
        recorded.
        """
        ...

    def forget(self, lease: Lease, *, keep: int = REFUSALS_KEPT) -> int:
        """Drop verdicts whose decision was trimmed, but none of the newest `keep`; -1 when fenced.

        So the map of verdicts stays as bounded as the stream. A plan expires long before its verdict is dropped.
        """
        ...
