"""Which gangs were refused how often, and the domains that are claimed for those who were refused too often."""

from __future__ import annotations

from actors.columns.decision_message import Naming
from actors.protocol.bodies import DomainReleased, DomainReserved
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.plan import Plan
from pipeline.policy import Policy, Purpose


class Claims:
    """The committer's book: refusals in a row, by podgroup, and the claims that stand. Rebuilt from the decisions."""

    def __init__(self) -> None:
        self._refused: dict[str, int] = {}
        self._standing: dict[str, DomainReserved] = {}

    @property
    def standing(self) -> tuple[DomainReserved, ...]:
        """The claims that stand, the oldest first."""
        return tuple(self._standing.values())

    def refused(
        self, plan: Plan, reason: str, snapshot: Snapshot, policy: Policy, naming: Naming, *, epoch: int, now: float
    ) -> DomainReserved | None:
        """A plan was refused; the claim to record now, if its gang was refused too often in a row.

        Claims never overlap, and nobody has two. A lone task has none: it fits in anywhere.
        """
        enough, made = policy.claim_after_refusals, plan.statement
        row, placed = made.preemptor, made.nominated_node[made.nominated_node != NONE]
        evicts = plan.explanation.purpose != Purpose.ALLOCATE and plan.explanation.minimum > 1
        if not enough or not evicts or row == NONE or not len(placed) or plan.assumes.epoch != snapshot.epoch:
            return None
        # No wider than what the plan needs: the gang may have been free to lie anywhere.
        where = snapshot.topology.lowest_common(placed)
        (podgroup,), (domain,) = naming.podgroups([row]), naming.domains([where])
        self._refused[podgroup] = self._refused.get(podgroup, 0) + 1
        if self._refused[podgroup] < enough or podgroup in self._standing:
            return None
        if not self._free(where, snapshot, naming):
            return None
        return DomainReserved(
            podgroup=podgroup, domain=domain or None, epoch=epoch, refusals=self._refused[podgroup], reason=reason,
            expires_at=now + policy.claim_ttl_s,
        )  # fmt: skip

    def accepted(self, podgroup: str) -> None:
        """A plan for the podgroup was accepted."""
        self._refused.pop(podgroup, None)

    def remember(self, body: DomainReserved | DomainReleased) -> None:
        """A claim was made, or ended."""
        self._refused.pop(body.podgroup, None)
        if isinstance(body, DomainReserved):
            self._standing[body.podgroup] = body
        else:
            self._standing.pop(body.podgroup, None)

    def _free(self, domain: int, snapshot: Snapshot, naming: Naming) -> bool:
        """Whether no claim that stands shares a node with a domain (row)."""
        topology = snapshot.topology
        rows = naming.domain_rows([one.domain or "" for one in self.standing])
        return not any(
            topology.start[row] < topology.stop[domain] and topology.start[domain] < topology.stop[row]
            for row in rows[rows != NONE].tolist()
        )

    def over(self, snapshot: Snapshot, naming: Naming, now: float) -> list[tuple[DomainReserved, str]]:
        """Claims that are to end, and why."""
        self._forget_the_gone(snapshot, naming)
        rows = naming.podgroup_rows([one.podgroup for one in self.standing]).tolist()
        ends = ((one, _why_over(one, row, snapshot, now)) for one, row in zip(self.standing, rows, strict=True))
        return [(one, why) for one, why in ends if why is not None]

    def _forget_the_gone(self, snapshot: Snapshot, naming: Naming) -> None:
        names = list(self._refused)
        for name, row in zip(names, naming.podgroup_rows(names).tolist(), strict=True):
            if row == NONE or not snapshot.podgroups.alive[row]:
                del self._refused[name]


def _why_over(claim: DomainReserved, row: int, snapshot: Snapshot, now: float) -> str | None:
    if row == NONE or not snapshot.podgroups.alive[row]:
        return "its podgroup is gone"
    standing = snapshot.standing
    if standing.ready[row] + standing.waiting[row] >= snapshot.podgroups.min_available[row]:
        return "its podgroup has its room"
    return "its time is over" if now >= claim.expires_at else None
