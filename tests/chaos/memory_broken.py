"""Parts that are broken on purpose: whoever cannot tell them from good ones tests nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from actors.broker.bus import DECISIONS, EVENTS, DeadLetter
from actors.broker.ledger import Lease, Record, RecordOutcome
from actors.broker.memory_ledger import MemoryLedger
from tests.chaos.memory_ports import KeptBus


class UnfencedLedger(MemoryLedger):
    """Lets everybody write, whoever holds the lease."""

    def _holds(self, lease: Lease) -> bool:
        del lease
        return True


class ForgetfulLedger(MemoryLedger):
    """Does not know a plan again, so that a retry is a second decision."""

    def commit(self, lease: Lease, records: Sequence[Record]) -> list[RecordOutcome]:
        self._recorded.clear()
        return super().commit(lease, records)


class HastyLedger(MemoryLedger):
    """Answers that a decision is recorded, and loses every third."""

    def _commit(self, lease: Lease, record: Record) -> RecordOutcome:
        if record.decision and self._revision % 3 == 2:
            return super()._commit(lease, replace(record, decision={}))
        return super()._commit(lease, record)


class LeakyBus(KeptBus):
    """Loses some events without a trace: they were published, and nobody can read them."""

    def publish(self, stream: str, fields: Mapping[str, bytes], *, cap: int | None = None, insist: bool = False) -> str:
        entry = super().publish(stream, fields, cap=cap, insist=insist)
        log = self._log(stream)
        if stream == EVENTS and log.added % 7 == 5:
            del log.ids[-1], log.entries[-1]
        return entry


class SilentBus(KeptBus):
    """Buries nothing."""

    def bury(self, letters: Sequence[DeadLetter]) -> int:
        return len(letters)


class EchoingBus(KeptBus):
    """Now and then a decision stands in the stream twice."""

    def publish(self, stream: str, fields: Mapping[str, bytes], *, cap: int | None = None, insist: bool = False) -> str:
        if stream == DECISIONS and len(self.history.get(DECISIONS, ())) % 4 == 2:
            super().publish(stream, fields, cap=cap, insist=insist)
        return super().publish(stream, fields, cap=cap, insist=insist)
