"""An attempt: one preemptor, one purpose, some domains, on one snapshot; the input of a search.

Its domains may have been surveyed before: estimated, in parts, so that the cheapest are known from the start.
"""

from dataclasses import dataclass, field

from pipeline.cluster.arrays import NO_ROWS, Bools, Floats, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.price import Price
from pipeline.policy import Policy, Purpose


@dataclass(frozen=True)
class Survey:
    """The domains of one search that can be estimated.

    A row says something of its domain alone, so the surveys of parts of the domains make up the survey of all of them,
    however they were cut. Only ``priced`` depends on the part: a domain that cannot be the cheapest of its part is not
    priced, and those that cannot be the cheapest of all are the same ones in every cut.

    Attributes
    ----------
    domain: int64[D]
        Domain rows, ascending.
    least_head, least_priority: int64[D]
    least_work: float64[D]
        Lower bounds of the price, in the solver's terms; work may be 0 until all domains are known.
    priced: bool[D]
        Whether the estimate was made.
    head: int64[D]
    work: float64[D]
        The leading level of the estimate and its work, in the terms of ``least_head`` and ``least_work``.
    price
        The estimate; None if there is none.
    """

    domain: Rows
    least_head: Longs
    least_priority: Longs
    least_work: Floats
    priced: Bools
    head: Longs
    work: Floats
    price: tuple[Price | None, ...]


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
        Name of the action that asks.
    within_podgroup
        Whether tasks that find no other victims may take tasks of lower priority of their own podgroup.
    starting: int64[K]
        Tasks that the same cycle binds; they are not evicted.
    among: int64[K]
        The only tasks that may be evicted; None: all that the policy lets go.
    equally_fair
        Whether it is as fair to take from one queue as from another.
    survey
        The survey of all domains, if they were surveyed before; None if they were not.
    """

    snapshot: Snapshot
    policy: Policy
    purpose: Purpose
    podgroups: tuple[int, ...]
    domains: Rows | None
    now: float
    action: str
    within_podgroup: bool = False
    starting: Rows = field(default_factory=lambda: NO_ROWS)
    among: Rows | None = None
    equally_fair: bool = False
    survey: Survey | None = None
