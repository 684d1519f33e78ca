"""A plan: a statement, what it assumes of the world, what it costs, and why. ``propose`` answers Plan or NoPlan."""

from dataclasses import dataclass

from pipeline.cluster.arrays import Longs, Rows
from pipeline.decision.explanation import Explanation, Price
from pipeline.decision.statement import Statement


@dataclass(frozen=True)
class Assumptions:
    """What must still hold when the plan is judged.

    Attributes
    ----------
    epoch, revision
        Of the snapshot it was made on; rows mean something only within the epoch.
    incarnation: int64[V]
        Of the statement's evictions, in their order.
    nodes: int64[M]
        Node rows that the plan touches, ascending.
    node_revision: int64[M]
    policy
        Digest of the policy.
    """

    epoch: int
    revision: int
    incarnation: Longs
    nodes: Rows
    node_revision: Longs
    policy: str


@dataclass(frozen=True)
class Plan:
    """A way to make room for one preemptor.

    Attributes
    ----------
    statement, assumes, explanation
        See there.
    price
        What it costs.
    bound
        Lower bound of what any plan could cost in this domain, in broken gangs.
    domain
        Row of the domain it lies in.
    expires_at
        Seconds on the caller's clock, after which it must not be committed.
    """

    statement: Statement
    assumes: Assumptions
    price: Price
    bound: int
    domain: int
    expires_at: float
    explanation: Explanation


@dataclass(frozen=True)
class NoPlan:
    """There is no plan; the explanation says why."""

    explanation: Explanation
