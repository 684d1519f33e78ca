"""How often each gang's plans were refused, and the domains that are claimed for gangs that were refused too often."""

from __future__ import annotations

from actors.columns.name_directory import Directory
from actors.protocol.bodies import DomainReleased, DomainReserved
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.claim import claimable, overlaps, why_over
from pipeline.decision.plan import Plan
from pipeline.policy import Policy


class ClaimBook:
    """The committer's book: refusals in a row, by podgroup, and the active claims. Rebuilt from the decisions."""

    def __init__(self) -> None:
        self._refusals: dict[str, int] = {}
        self._active: dict[str, DomainReserved] = {}

    @property
    def active(self) -> tuple[DomainReserved, ...]:
        """The claims that have not ended, the oldest first."""
        return tuple(self._active.values())

    def refused(
        self, plan: Plan, reason: str, snapshot: Snapshot, policy: Policy, naming: Directory, *, epoch: int, now: float
    ) -> DomainReserved | None:
        """Count a refused plan; returns the claim to record if its gang was refused too often in a row.

        Claims never overlap, and no podgroup has two.
        """
        domain = claimable(plan, snapshot, policy)
        if domain == NONE:
            return None
        (podgroup,), (name,) = naming.podgroups([plan.statement.preemptor]), naming.domains([domain])
        refusals = self._refusals[podgroup] = self._refusals.get(podgroup, 0) + 1
        others = naming.domain_rows([one.domain or "" for one in self.active])
        if refusals < policy.claim_after_refusals or podgroup in self._active or overlaps(snapshot, domain, others):
            return None
        return DomainReserved(
            podgroup=podgroup, domain=name or None, epoch=epoch, refusals=refusals, reason=reason,
            expires_at=now + policy.claim_ttl_s,
        )  # fmt: skip

    def accepted(self, podgroup: str) -> None:
        """A plan for the podgroup was accepted."""
        self._refusals.pop(podgroup, None)

    def remember(self, body: DomainReserved | DomainReleased) -> None:
        """Note that a claim was made or ended."""
        self._refusals.pop(body.podgroup, None)
        if isinstance(body, DomainReserved):
            self._active[body.podgroup] = body
        else:
            self._active.pop(body.podgroup, None)

    def over(self, snapshot: Snapshot, naming: Directory, now: float) -> list[tuple[DomainReserved, str]]:
        """Claims that are to end now, and why."""
        self._forget_podgroups_that_are_gone(snapshot, naming)
        rows = naming.podgroup_rows([one.podgroup for one in self.active]).tolist()
        ends = ((one, why_over(row, one.expires_at, snapshot, now)) for one, row in zip(self.active, rows, strict=True))
        return [(one, why) for one, why in ends if why is not None]

    def _forget_podgroups_that_are_gone(self, snapshot: Snapshot, naming: Directory) -> None:
        names = list(self._refusals)
        for name, row in zip(names, naming.podgroup_rows(names).tolist(), strict=True):
            if row == NONE or not snapshot.podgroups.alive[row]:
                del self._refusals[name]
