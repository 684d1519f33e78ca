"""An attempt: one preemptor, one purpose, some domains, on one snapshot. What a searcher is sent."""

from dataclasses import dataclass, field

from pipeline.cluster.arrays import NO_ROWS, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.policy import Policy, Purpose


@dataclass(frozen=True)
class Attempt:
    """One preemptor in some domains.

    Attributes
    ----------
    purpose
        ALLOCATE evicts nothing; PREEMPT takes from work of strictly lower priority in the same queue; RECLAIM from
        other queues.
    podgroups
        Rows that start together: one, or a gang group.
    domains: int64[D]
        Domain rows to try, in order of preference; None for all domains that the plugins offer.
    now
        Seconds.
    action
        Name of the action that asks; the purpose's own name if empty.
    own
        Whether tasks that find no other victims may take tasks of lower priority of their own podgroup.
    starting: int64[K]
        Tasks that the same cycle binds; they are not evicted.
    """

    snapshot: Snapshot
    policy: Policy
    purpose: Purpose
    podgroups: tuple[int, ...]
    domains: Rows | None
    now: float
    action: str = ""
    own: bool = False
    starting: Rows = field(default_factory=lambda: NO_ROWS)

    @property
    def asked_by(self) -> str:
        """Name of the action that asks."""
        return self.action or self.purpose.value
