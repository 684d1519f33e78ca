"""Why: which domains were tried and why each fell, which victims and why, what else it would have cost.

Rows and numbers, no text about names: the edge renders them, so that an explanation is as small as the decision.
"""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.decision.price import Price


class Reason(StrEnum):
    """Why a domain, a candidate or a whole attempt fell."""

    CHOSEN = "chosen"
    NO_DOMAIN = "no domain satisfies the topology"
    BOUND = "even all legal evictions would free too little"
    PRUNED = "cannot beat the best plan found"
    NO_CANDIDATES = "nobody here may be evicted"
    VETOED = "policy refused too many candidates"
    UNPLACEABLE = "the gang does not fit after every permitted eviction"
    ILLEGAL = "the victims are not legal as a whole"
    CONSTRAINTS = "no node satisfies the tasks' own constraints"
    QUOTA = "the queue may not take more"
    NEVER = "the podgroup may not preempt"
    TOO_FEW_TASKS = "the podgroup lacks tasks for its minimum"
    NOTHING_MISSING = "the podgroup has its minimum"
    COSTLIER = "another plan costs less"
    BUDGET = "the search budget was spent"
    DELAY = "the podgroup must wait before it may evict"
    ENDING = "victims of an earlier decision are still ending"


#: Reasons of domains that were looked at, the one that came closest to a plan first.
CLOSEST = (Reason.ILLEGAL, Reason.UNPLACEABLE, Reason.VETOED, Reason.BUDGET, Reason.NO_CANDIDATES)


@dataclass(frozen=True)
class DomainTried:
    """One domain's fate: its row, what became of it, its price if it could be had, else what it was short of.

    ``room`` and ``reachable`` are slots for the leading shape: without evictions, and after all legal ones.
    """

    domain: int
    reason: Reason
    price: Price | None = None
    room: int = 0
    reachable: int = 0


@dataclass(frozen=True)
class Ruled:
    """Domains ruled out by their bounds, in columns because there may be thousands.

    Attributes
    ----------
    domain: int64[F]
    room, reachable: int64[F]
        Slots for the shape that is shortest: without evictions, and after all legal ones.
    pruned: bool[F]
        Ruled out because it cannot beat the best plan found, not because it is hopeless.
    """

    domain: Rows
    room: Longs
    reachable: Longs
    pruned: Bools


@dataclass(frozen=True)
class VictimBundle:
    """Victims of one podgroup: whether they were surplus, and what the bundle was chosen on."""

    podgroup: int
    safe: bool
    tasks: int
    elsewhere: int
    priority: int
    efficiency: float


@dataclass(frozen=True)
class Explanation:
    """Why a plan is as it is, or why there is none."""

    purpose: str
    preemptor: int
    minimum: int
    reason: Reason
    domain: int = NONE
    tried: tuple[DomainTried, ...] = ()
    bundles: tuple[VictimBundle, ...] = ()
    given_back: int = 0
    ruled: Ruled | None = None
