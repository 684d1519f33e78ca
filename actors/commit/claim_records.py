"""Records that a domain is kept for a gang whose plans were refused too often, and that it is released."""

from __future__ import annotations

import logging

from actors.broker.ledger import Lease
from actors.columns.name_directory import Directory
from actors.commit.decision_book import DecisionBook
from actors.commit.judged import Judged
from actors.commit.record_writer import RecordWriter
from actors.protocol.bodies import DomainReleased, DomainReserved
from actors.protocol.envelopes import Outgoing
from pipeline.policy import Policy

log = logging.getLogger(__name__)


class ClaimRecords:
    """Begins and ends claims under the committer's lease.

    Parameters
    ----------
    book
        Its claims are begun and ended here.
    """

    def __init__(self, book: DecisionBook, writer: RecordWriter, policy: Policy, naming: Directory) -> None:
        self._book, self._writer, self._policy, self._naming = book, writer, policy, naming

    def refused(self, judged: Judged, lease: Lease, now: float) -> None:
        """Count a plan that was refused; its gang gets its domain for a while if that was too often in a row."""
        assert judged.refused_on is not None
        claim = self._book.claims.refused(
            judged.offer.plan, judged.reason, judged.refused_on, self._policy, self._naming, epoch=lease.epoch, now=now
        )
        if claim is not None:
            self._write(lease, f"{judged.offer.plan_id}:claim", "domain_reserved", claim)

    def release(self, lease: Lease, claim: DomainReserved, why: str) -> None:
        """End a claim that is over."""
        body = DomainReleased(podgroup=claim.podgroup, epoch=lease.epoch, reason=why)
        self._write(lease, f"{claim.podgroup}:{claim.expires_at}:released", "domain_released", body)

    def _write(self, lease: Lease, key: str, kind: str, body: DomainReserved | DomainReleased) -> None:
        """Record that a domain is kept for a podgroup, or is released."""
        message = Outgoing(kind, body.podgroup, 0, body)
        if self._writer.publish(lease, key, kind, message, body.reason) is None:
            return
        log.warning("%s for %s: %s", kind.replace("_", " "), body.podgroup, body.reason)
        self._book.claims.remember(body)
