"""What the roles send each other: arrays and small values, so that one message carries a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

from pipeline.actions.claims import Closed
from pipeline.actions.progress import Unplaced
from pipeline.cluster.arrays import NO_ROWS, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt, Survey
from pipeline.decision.obstacle import Obstacle
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.statement import Statement
from pipeline.placement.conditions import Conditions
from pipeline.policy import Policy, Purpose


@dataclass(frozen=True, slots=True)
class TurnTold:
    """What others are told after a turn of the ingestor, beside the snapshot, which it may not have folded yet.

    Attributes
    ----------
    links
        Trace contexts of the events that came.
    closed
        What some podgroups may not use.
    fold_ms
        Milliseconds to read and fold the news; new rows that were sent first do not count.
    publish_ms
        Milliseconds to publish the snapshot.
    for_cycles
        Whether the dispatcher waits for it; otherwise only the committer takes it.
    """

    links: tuple[Mapping[str, str], ...] = ()
    closed: Closed = field(default_factory=Closed)
    fold_ms: float = 0.0
    publish_ms: float = 0.0
    for_cycles: bool = True


@dataclass(frozen=True, slots=True)
class SnapshotUpdate:
    """The newest snapshot, and what was told with it."""

    snapshot: Snapshot
    turn: TurnTold = TurnTold()


@dataclass(frozen=True, slots=True)
class Leadership:
    """Which service decides, as far as the committer knows.

    Attributes
    ----------
    leads_s
        Seconds for which our lease is good; 0 if we have none.
    epoch, leader
        Epoch and owner of the lease that is held; 0 and empty if unknown.
    """

    leads_s: float = 0.0
    epoch: int = 0
    leader: str = ""

    @property
    def leads(self) -> bool:
        """Whether this service leads."""
        return self.leads_s > 0

    def is_news(self, leads: bool | None) -> bool:
        """Whether it differs from what the caller knows; None stands for not known."""
        return self.epoch > 0 and self.leads != leads


@dataclass(frozen=True, slots=True)
class Intake:
    """What the ingestor says of what came in.

    Attributes
    ----------
    listed, unlisted_s
        Whether the fleet has said what it has, and for how long it has not; seconds.
    behind
        For each ``stream/group``, how many entries its reader has not finished, and the age of the oldest (seconds).
    """

    listed: bool = False
    unlisted_s: float = 0.0
    behind: Mapping[str, tuple[int, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ack:
    """The committer's answer to an update.

    Attributes
    ----------
    named, known
        Whether it knows the names of all rows, and the state that the news follows.
    leadership
        Which service leads.
    lost_behind
        Number of the ledger's last record, if a state that was heard contains later decisions: the broker lost them.
    """

    named: bool
    known: bool
    leadership: Leadership
    lost_behind: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """One preemptor in some domains, for one searcher; the snapshot is sent separately, once for many batches.

    Attributes
    ----------
    preemptor
        Position of the preemptor in the dispatcher's order.
    domains: int64[D]
        Rows of domains, in order of preference.
    cells
        Domains times tasks: a measure of the work.
    carrier
        Trace context of the cycle.
    within_podgroup, starting, among, equally_fair, survey
        See `pipeline.decision.attempt.Attempt`.
    part
        Whether these are some of the preemptor's domains only: see `pipeline.propose.searched_part`.
    """

    preemptor: int
    podgroups: tuple[int, ...]
    action: str
    purpose: Purpose
    domains: Rows
    now: float
    cells: int
    carrier: Mapping[str, str] = field(default_factory=dict)
    within_podgroup: bool = False
    starting: Rows = field(default_factory=lambda: NO_ROWS)
    among: Rows | None = None
    equally_fair: bool = False
    part: bool = False
    survey: Survey | None = None

    @classmethod
    def of(cls, preemptor: int, attempt: Attempt, domains: Rows) -> Batch:
        """An attempt in these domains, all of those that are open to it."""
        tasks = max(1, int(attempt.snapshot.counts.pending[list(attempt.podgroups)].sum()))
        return cls(
            preemptor, attempt.podgroups, attempt.action, attempt.purpose, domains, attempt.now, len(domains) * tasks,
            within_podgroup=attempt.within_podgroup, starting=attempt.starting, among=attempt.among,
            equally_fair=attempt.equally_fair,
        )  # fmt: skip

    def attempt(self, snapshot: Snapshot, policy: Policy) -> Attempt:
        """The attempt in the domains of this batch, on the snapshot that was sent for it."""
        return Attempt(
            snapshot, policy, self.purpose, self.podgroups, self.domains, self.now, self.action,
            within_podgroup=self.within_podgroup, starting=self.starting, among=self.among,
            equally_fair=self.equally_fair, survey=self.survey,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Searched:
    """The outcome of a batch; None if two searchers were lost over it."""

    preemptor: int
    outcome: Plan | NoPlan | Survey | None


class Searchers(Protocol):
    """Searches batches: in this process, or in many others."""

    def search(self, snapshot: Snapshot, batches: Sequence[Batch]) -> list[Searched]:
        """One outcome for each batch, in the order of the batches."""
        ...


@dataclass(frozen=True, slots=True)
class Began:
    """What a cycle began with beside its snapshot.

    Attributes
    ----------
    now
        Seconds since the epoch.
    paused
        The first podgroup (row) of each gang group that paused: it was too early to search for it; ascending.
    """

    now: float = 0.0
    paused: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan on its way to the committer, under an id that a retry keeps, and what its cycle began with."""

    plan_id: str
    plan: Plan
    began: Began = Began()
    carrier: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What the committer did with an offer.

    Attributes
    ----------
    verdict
        ``accepted``, ``stale`` or ``conflict``; ``unready`` if it was not judged and may be offered again.
    statement
        What was committed now; None for a refusal, and for a retry of an earlier commit.
    sequence
        Number of the decision in the ledger; 0 for a refusal.
    """

    plan_id: str
    verdict: str
    reason: str = ""
    statement: Statement | None = None
    sequence: int = 0

    @property
    def accepted(self) -> bool:
        """Whether the plan is committed, now or by an earlier try."""
        return self.verdict == "accepted"


@dataclass(frozen=True, slots=True)
class PendingReport:
    """Which podgroups starve after a cycle, which are not scheduled, and why.

    Attributes
    ----------
    epoch
        The epoch of the rows.
    starving
        Podgroups in the policy's order, including those that were not searched for in this cycle.
    unplaced
        Podgroups that were searched for and have no plan, once for each action.
    unscheduled
        The conditions of all podgroups that are not scheduled.
    held
        The obstacles of podgroups that are not searched for, as far as they were worked out.
    """

    epoch: int
    starving: tuple[int, ...]
    unplaced: tuple[Unplaced, ...]
    unscheduled: Conditions
    held: Mapping[int, tuple[Obstacle, ...]] = field(default_factory=dict)


CommitOffers = Callable[[Sequence[Offer]], list[CommitResult]]
Tell = Callable[[PendingReport], object]


def plan_id(preemptor: str, plan: Plan) -> str:
    """An id that is the same for the same plan for the same preemptor, and differs otherwise."""
    made, assumes = plan.statement, plan.assumes
    digest = blake2b(
        f"{preemptor}|{made.action}|{assumes.epoch}|{assumes.revision}|{assumes.policy}".encode(), digest_size=12
    )
    for column in (
        made.evictions,
        made.nominated,
        made.nominated_node,
        made.nominated_card,
        made.bound,
        made.bound_node,
        made.bound_card,
        assumes.incarnation,
    ):
        digest.update(len(column).to_bytes(8, "little"))
        digest.update(column.tobytes())
    return digest.hexdigest()


def dealt(batches: Sequence[Batch], searchers: int) -> list[list[int]]:
    """Positions of the batches for each searcher: the largest batch first, to the searcher with the least work."""
    shares: list[list[int]] = [[] for _ in range(searchers)]
    load = [0] * searchers
    for position in sorted(range(len(batches)), key=lambda at: (-batches[at].cells, at)):
        least = min(range(searchers), key=lambda at: (load[at], at))
        shares[least].append(position)
        load[least] += max(1, batches[position].cells)
    return shares
