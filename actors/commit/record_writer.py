"""The records of one committer, written while it holds the lease; in doubt about what was written it gives it up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgpack

from actors.broker.bus import BrokerRefused, BrokerUnreachable
from actors.broker.ledger import Duplicate, Fenced, Lease, Ledger, Record, Recorded, RecordOutcome
from actors.commit.lease import LeaseKeeper
from actors.commit.newest_state import NewestState
from actors.observability.telemetry import Telemetry
from actors.protocol.envelopes import Outgoing, pack_decision

#: How often verdicts of trimmed decisions are dropped, in seconds.
_FORGET_EVERY_S = 60.0


class RecordWriter:
    """Writes to the ledger under the lease.

    Parameters
    ----------
    keeper
        The right to write; lost when it is not known what was written, or another has it.
    state
        Loses what was judged as if it were recorded, and was not.
    elapsed_s
        A clock that is never set, in seconds.

    Attributes
    ----------
    recorded
        Number of the last decision.
    """

    def __init__(
        self,
        ledger: Ledger,
        keeper: LeaseKeeper,
        state: NewestState,
        telemetry: Telemetry,
        elapsed_s: Callable[[], float],
    ) -> None:
        self._ledger, self._keeper, self._state, self._telemetry = ledger, keeper, state, telemetry
        self._elapsed_s, self._forget_at = elapsed_s, -math.inf
        self.recorded = 0

    def begin(self, lease: Lease) -> None:
        """Go on after what others recorded before this lease was taken."""
        self.recorded = lease.recorded

    def record(self, lease: Lease, records: Sequence[Record]) -> list[RecordOutcome]:
        """Record together; offers that were not recorded are taken out of the newest state again."""
        try:
            outcomes = self._ledger.commit(lease, records)
        except (BrokerUnreachable, BrokerRefused):
            # The stream has the answer; it is read with the next lease.
            self._keeper.lose(f"it is not known whether {records[0].key} was recorded")
            raise
        for outcome in outcomes:
            if not isinstance(outcome, Recorded):
                self._state.take_back(self.recorded)
                break
            self.recorded += 1
            if outcome.revision != self.recorded:
                self._keeper.lose(f"record {outcome.revision} was expected to be {self.recorded}")
        return outcomes

    def publish(self, lease: Lease, key: str, verdict: str, message: Outgoing, reason: str) -> Recorded | None:
        """Record a decision that is not a plan; None if it was not recorded, and then the lease is lost too."""
        sent = pack_decision(message, self._telemetry.carrier())
        (outcome,) = self.record(lease, [Record(key, msgpack.packb([verdict, reason]), sent)])
        if isinstance(outcome, Recorded):
            return outcome
        self.doubt(key, outcome)
        return None

    def doubt(self, key: str, outcome: Fenced | Duplicate) -> None:
        """Lose the lease: this process is not the writer, or does not know all that it wrote."""
        if isinstance(outcome, Fenced):
            self._keeper.lose(f"epoch {outcome.epoch} was given out")
        else:
            self._keeper.lose(f"{key} was recorded already")

    def forget(self) -> None:
        """Drop old verdicts at times, so that the ledger stays as bounded as its stream."""
        if self._keeper.held is not None and self._elapsed_s() >= self._forget_at:
            self._forget_at = self._elapsed_s() + _FORGET_EVERY_S
            self._ledger.forget(self._keeper.held)
