"""Explanations: the domains tried and why each fell, the victims and why, what other podgroups would have cost.

Rows and numbers only: the edge turns rows into names, so that an explanation is as small as the decision.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.decision.obstacle import Obstacle
from pipeline.decision.price import COMPARED, Price


class Reason(StrEnum):
    """Why a domain, a candidate or a whole attempt fell."""

    CHOSEN = "chosen"
    NO_DOMAIN = "no domain satisfies the topology"
    BOUND = "even all legal evictions would leave too few places"
    PRUNED = "cannot beat the best plan found"
    NO_CANDIDATES = "no task here may be evicted"
    VETOED = "policy refused too many candidates"
    UNPLACEABLE = "the gang does not fit after every permitted eviction"
    NO_PACKING = "anti-affinity, cards and levels of parts together leave too few places"
    REPELLED = "anti-affinity leaves too few places, even after every permitted eviction"
    CARDS = "no single card would have enough, even after every permitted eviction"
    TORN = "a part cannot keep its required level, even after every permitted eviction"
    SHAPES = "tasks of several shapes leave each other too few places, even after every permitted eviction"
    NO_MOVES = "no lawful moves of running tasks would make the room"
    ILLEGAL = "the victims are not legal as a whole"
    CONSTRAINTS = "no node satisfies the tasks' own constraints"
    QUOTA = "the queue may not take more"
    TAKEN_AGAIN = "another queue would reclaim the room at once"
    NEVER = "the podgroup may not preempt"
    LASTS = "nothing is moved for a podgroup that is not preemptible"
    SEVERAL_QUEUES = "its gang group is in several queues, and only one queue can make room"
    TOO_FEW_TASKS = "the podgroup lacks tasks for its minimum"
    NOTHING_MISSING = "the podgroup has its minimum"
    COSTLIER = "another plan costs less"
    EQUAL = "another plan costs the same and comes first in order"
    BREAKS_MORE = "another plan costs nearly the same and breaks fewer podgroups"
    OUTRANKED = "the policy ranks another plan first"
    TOO_LITTLE = "alone they would free too little"
    BUDGET = "the search budget was spent"
    DELAY = "the podgroup must wait before it may evict"
    ENDING = "victims of an earlier decision are still ending"


#: Reasons of domains that were looked at, those that came closest to a plan first.
_CLOSEST = (
    Reason.QUOTA, Reason.ILLEGAL, Reason.REPELLED, Reason.CARDS, Reason.TORN, Reason.SHAPES, Reason.NO_PACKING,
    Reason.UNPLACEABLE, Reason.VETOED, Reason.BUDGET, Reason.NO_CANDIDATES,
)  # fmt: skip


def closest(reasons: Iterable[Reason], otherwise: Reason) -> Reason:
    """The one of some reasons that came closest to a plan; ``otherwise`` if none of them says so."""
    some = set(reasons)
    return next((one for one in _CLOSEST if one in some), otherwise)


@dataclass(frozen=True)
class DomainTried:
    """The outcome for one domain: its row, the reason, its price if it has a plan, else what it lacks.

    ``wanted``, ``room`` and ``reachable`` are slots for the shape that lacks most: needed, there without evictions,
    and there after all permitted evictions; NONE where that was not counted.
    """

    domain: int
    reason: Reason
    price: Price | None = None
    room: int = NONE
    reachable: int = NONE
    wanted: int = NONE


@dataclass(frozen=True)
class Ruled:
    """Domains ruled out by their bounds, in columns because there may be thousands.

    Attributes
    ----------
    domain: int64[F]
    room, reachable, wanted: int64[F]
        Slots for the shape that lacks most: without evictions, after all legal ones, and needed.
    pruned: bool[F]
        Ruled out because it cannot beat the best plan found; else because it cannot hold the gang.
    """

    domain: Rows
    room: Longs
    reachable: Longs
    wanted: Longs
    pruned: Bools


def lacking_most(wanted: Longs, room: Longs, reachable: Longs) -> tuple[Longs, Longs, Longs]:
    """For each domain room, reachable and wanted slots of the shape that lacks most after evictions.

    Parameters
    ----------
    wanted: int64[S]
        Of at least one shape.
    room, reachable: int64[D, S]

    Returns
    -------
    int64[D] each; the first of shapes that lack the same.
    """
    shape = np.argmax(wanted - reachable, axis=1)
    at = np.arange(len(room))
    return room[at, shape], reachable[at, shape], wanted[shape]


class VictimBundle(NamedTuple):
    """Victims of one podgroup: whether they were surplus, and the figures by which the bundle was chosen."""

    podgroup: int
    safe: bool
    tasks: int
    elsewhere: int
    priority: int
    efficiency: float


def victim_bundles(*columns: NDArray[Any]) -> tuple[VictimBundle, ...]:
    """Bundles of columns [B], one for each of a bundle's figures in their order.

    What a podgroup loses is one bundle: where it breaks, nothing that it loses was surplus.
    """
    made = dict[int, VictimBundle]()
    for one in starmap(VictimBundle, zip(*[column.tolist() for column in columns], strict=True)):
        before = made.setdefault(one.podgroup, one)
        if before is not one:
            tasks, elsewhere = one.tasks + before.tasks, one.elsewhere + before.elsewhere
            made[one.podgroup] = (before if one.safe else one)._replace(tasks=tasks, elsewhere=elsewhere)
    return tuple(made.values())


class Spared(NamedTuple):
    """A podgroup that had candidates in the chosen domain and was not taken, and what it would have cost there.

    Attributes
    ----------
    safe
        Whether the victims would have been surplus; else the podgroup would have broken.
    tasks
        How many tasks would have been evicted.
    reason
        ``COSTLIER`` or ``EQUAL``; or why they were not taken although they cost less: quotas or plugins refuse them
        (``VETOED``, ``ILLEGAL``), alone they are ``TOO_LITTLE``, or the policy ranks others first (``OUTRANKED``).
    """

    podgroup: int
    safe: bool
    tasks: int
    reason: Reason
    price: Price


@dataclass(frozen=True)
class Decisive:
    """The first field in which two prices differ, with both values, and the level for work by level.

    ``level`` is a priority (preempt) or 0 (reclaim); None for a field without levels.
    """

    field: str
    lower: float
    higher: float
    level: int | None = None


_DECIDING = tuple(name for name in COMPARED if name != "domain")


def decisive(lower: Price, higher: Price) -> Decisive | None:
    """The field that makes one price lower than the other; None if they differ in the row of the domain only.

    Also None if they differ only in whether victims that lose nothing count at some level, which no amount expresses.
    """
    for name in _DECIDING:
        mine, other = getattr(lower, name), getattr(higher, name)
        if not isinstance(mine, tuple):
            if mine < other:
                return Decisive(name, mine, other)
            continue
        work, others = dict(mine), dict(other)
        levels = [level for level in work.keys() | others.keys() if work.get(level) != others.get(level)]
        level = max(levels, default=0)
        if work.get(level, 0.0) < others.get(level, 0.0):
            return Decisive(name, work.get(level, 0.0), others.get(level, 0.0), level)
    return None


@dataclass(frozen=True, order=True)
class LowerBound:
    """What every lawful plan costs at least: the leading fields of a price, and no more than its first line of work.

    Attributes
    ----------
    queue_rank
        As in ``Price``.
    broken
        The highest level at which podgroups must break, with the least work lost there; empty if none must.
    """

    queue_rank: int
    broken: tuple[tuple[int, float], ...]

    def excess(self, price: Price) -> float | None:
        """By what fraction a price exceeds this in its first line of broken work; None where that is not known."""
        if price.victims == 0:
            return 0.0
        if self.queue_rank != price.queue_rank or not price.broken or not self.broken:
            return None
        (level, work), (at_least, least) = price.broken[0], self.broken[0]
        return max(work / least - 1.0, 0.0) if level == at_least and least > 0 else None


@dataclass(frozen=True)
class Explanation:
    """Why a plan is as it is, or why there is none.

    ``spared`` has a few of the podgroups that could have been taken in the chosen domain, ``spared_more`` counts the
    others. ``obstacles`` say what stands in the way where there is no plan. ``lower_bound`` is what every lawful plan
    costs at least; None where the search did not work one out. ``together`` counts the podgroups alike for which room
    was sought at once: if it is more than one, domains, spared podgroups and lower bound are those of all of them. Or
    it counts podgroups that need a domain each and lose least in sum; then domains are those where room was sought
    last.
    """

    purpose: str
    preemptor: int
    minimum: int
    reason: Reason
    domain: int = NONE
    tried: tuple[DomainTried, ...] = ()
    bundles: tuple[VictimBundle, ...] = ()
    given_back: int = 0
    ruled: Ruled | None = None
    spared: tuple[Spared, ...] = ()
    spared_more: int = 0
    obstacles: tuple[Obstacle, ...] = ()
    lower_bound: LowerBound | None = None
    together: int = 1
