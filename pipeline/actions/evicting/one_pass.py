"""One pass of an action over the starving gang groups: who has a turn, on which state, and what is known of that."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from typing import TypeAlias

import numpy as np

from pipeline.actions.claims import closed_to
from pipeline.actions.evicting.one_kind import (
    MOST_TASKS,
    growing_kind,
    rigid_apart,
    rigid_of_one_rank,
    waiting_of_few_kinds,
    waiting_of_one_kind,
)
from pipeline.actions.progress import Planned, Progress
from pipeline.actions.searching import Outcome
from pipeline.actions.setup import unreported
from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Longs, Rows, distinct, joined, mask_of
from pipeline.cluster.rules.gang_groups import GangGroup, gang_group_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.price import Price, lost_work, price_of
from pipeline.placement.kinds import PodgroupKind, kinds_in_turn, podgroup_kind
from pipeline.placement.serving_order import in_serving_order, queue_depth, within_depth
from pipeline.plugins.host import Host
from pipeline.policy import Purpose
from pipeline.records import replace

#: How many gang groups are searched for ahead at first; doubled each time that all outcomes counted.
_AHEAD = 4
#: What decides the answer of a search on one state: the kind that asks, and the rows (bytes of int64) of the nodes that
#: are closed to it.
KindAndClosed: TypeAlias = tuple[PodgroupKind, bytes]
#: The leading ones of some gang groups that can be served at once.
Leading: TypeAlias = Callable[[Snapshot, Iterable[GangGroup]], list[GangGroup]]


@dataclass
class SinceLastPlan:
    """What was found on the state as it is; the next plan makes all of it stale.

    Attributes
    ----------
    host
        What the plugins say of the state; None until it is asked, since after the last plan nothing is.
    window
        How many gang groups are searched for ahead next.
    found
        Outcomes that were searched for ahead, by position.
    ahead
        Positions that were searched for ahead, or would have been if it paid; and others of their kind among them.
    cordoned
        The snapshot without some closed nodes, by their rows.
    unplaced
        Why no room was found, by what was asked.
    """

    host: Host | None = None
    window: int = 1
    found: dict[int, Outcome] = field(default_factory=dict)
    ahead: set[int] = field(default_factory=set)
    cordoned: dict[bytes, Snapshot] = field(default_factory=dict)
    unplaced: dict[KindAndClosed | None, NoPlan] = field(default_factory=dict)


class Pass:
    """The gang groups that have a turn, in order, and the state as it is by now.

    Attributes
    ----------
    progress
        With everything decided so far.
    gang_groups
        In order; a position is a turn.
    known
        What was found on the state as it is.
    together
        How many podgroups are served at once at most, by what they have in common.
    kinds_asked
        At which position it is asked next whether there are few kinds.
    victims
        Gang groups, and the victims (int64[K]) that were found for all of their kind at once.
    """

    def __init__(self, progress: Progress, action: str, purpose: Purpose, *, within_podgroup: bool) -> None:
        self.action, self._purpose, self._within_podgroup = action, purpose, within_podgroup
        host = progress.host_for(purpose)
        with progress.setup.observer.step("starving", action=action) as notes:
            starving = list(in_serving_order(host, _waiting(host, progress), evicting=True))
            starving = within_depth(host, starving, queue_depth(progress.policy, action))
            self.progress, self.gang_groups = _admitted(progress, starving)
            notes.set(starving=len(starving), searched=len(self.gang_groups))
        #: By gang group the nodes (int64[M]) that are closed to it; mostly all have the same list.
        self._closed: list[Rows] = closed_to(host, progress.setup.closed, self.gang_groups)
        self.known = SinceLastPlan(host, _AHEAD)
        self.together: dict[Leading, int] = dict.fromkeys(
            (rigid_of_one_rank, waiting_of_one_kind, waiting_of_few_kinds, rigid_apart), MOST_TASKS
        )
        self.kinds_asked = 0
        self.victims: dict[GangGroup, Rows] = {}

    def narrow(self, some: Sequence[GangGroup], at: int, of_one: Leading) -> None:
        """Serve only these, the first at a position, in turn though they have something in common.

        No plan is reported as certain.
        """
        self.progress = replace(self.progress, setup=replace(self.progress.setup, when_certain=unreported))
        self.gang_groups, self._closed = list(some), self._closed[at : at + len(some)]
        self.known = SinceLastPlan(self.known.host, self.known.window)
        self.together = {**self.together, rigid_of_one_rank: 1, of_one: 1}
        self.victims = dict.fromkeys(some, NO_ROWS) if of_one is waiting_of_one_kind else {}

    @property
    def host(self) -> Host:
        """What the plugins say of the state as it is by now."""
        if self.known.host is None:
            self.known.host = self.progress.host_for(self._purpose)
        return self.known.host

    def is_last(self, at: int) -> bool:
        """Whether no gang group is left that could be served with this one."""
        return at + 1 == len(self.gang_groups)

    def following(self, at: int) -> Iterator[GangGroup]:
        """The gang groups from a position on, up to one to which other nodes are closed."""
        same = takewhile(lambda one: self._alike_open(one, at), range(at, len(self.gang_groups)))
        return (self.gang_groups[one] for one in same)

    def as_open(self, at: int) -> Iterator[int]:
        """All positions from one on to which the same nodes are closed."""
        return (one for one in range(at, len(self.gang_groups)) if self._alike_open(one, at))

    def _alike_open(self, one: int, other: int) -> bool:
        """Whether the same nodes are closed to two gang groups; mostly they share the list."""
        return self._closed[one] is self._closed[other] or np.array_equal(self._closed[one], self._closed[other])

    def key(self, at: int) -> KindAndClosed | None:
        """What gang groups have in common that are answered alike; None for one that is of no kind, or the only one."""
        if len(self.gang_groups) == 1:
            return None
        snapshot, gang_group = self.progress.snapshot, self.gang_groups[at]
        kind = podgroup_kind(snapshot, gang_group) or growing_kind(snapshot, gang_group)
        return None if kind is None else (kind, self._closed[at].tobytes())

    def attempt(self, at: int) -> Attempt:
        """An attempt for a gang group on the snapshot as it is by now, without the nodes that are closed to it."""
        attempt = self.progress.attempt(
            self._purpose, self.gang_groups[at], self.action, within_podgroup=self._within_podgroup
        )
        if len(self._closed[at]) == 0:
            return attempt
        key, known = self._closed[at].tobytes(), self.known.cordoned
        if key not in known:
            known[key] = self.progress.snapshot.closing(self._closed[at])
        return replace(attempt, snapshot=known[key])

    def host_of(self, attempt: Attempt) -> Host:
        """What the plugins say of the attempt's snapshot."""
        host = self.host if attempt.snapshot is self.progress.snapshot else self.host.on(attempt.snapshot)
        if attempt.among is None:
            return host
        return host.on(attempt.snapshot, among=attempt.among, equally_fair=attempt.equally_fair)

    def search(self, attempt: Attempt) -> Outcome:
        """Search where the setup says."""
        return self.progress.setup.search.one(attempt, self.host_of(attempt))

    def alone(self, at: int) -> Outcome:
        """The outcome for the gang group at a position, for which no room is made before; it is searched for once."""
        if at not in self.known.found:
            self.known.ahead.add(at)
            self.known.found[at] = self.search(self.attempt(at))
        return self.known.found[at]

    def in_sum(self, plans: Sequence[Plan], requested: Longs) -> Price:
        """The price of all victims of some plans on the state as it is, in units of ``requested`` (int64[R]).

        The plans may lie in any domain.
        """
        snapshot, host = self.progress.snapshot, self.host
        gone = np.sort(joined(plan.statement.evictions for plan in plans))
        rank = host.price_rank(plans[0].statement.purpose, plans[0].statement.preemptor) if plans else None
        return price_of(snapshot, gone, requested, lost_work(snapshot, host.context.now), rank, 0)

    def lost(self) -> int:
        """Leave the rest to the next cycle, since a search was lost; returns 1, for no other gang group has a turn."""
        self.progress = replace(self.progress, lost=True, more=True)
        return 1

    def take(self, found: Sequence[Planned]) -> None:
        """Carry out plans; what was found and worked out before does not hold any more."""
        self.progress, self.known = self.progress.with_plans(found), SinceLastPlan()

    def take_together(self, found: Sequence[Planned], at: int) -> None:
        """Carry out plans for the gang groups from a position on; those that ask for more have turns, in order."""
        pending = self.progress.snapshot.counts.pending
        more = [one for plan, one in found if one and len(plan.statement.placed) < pending[list(one)].sum()]
        self.take(found)
        if more:
            starving = self.host.starving
            self._insert([one for one in more if starving[list(one)].all()], at + len(found) - 1)

    def take_in_turn(self, plan: Plan, at: int) -> None:
        """Carry out the plan of a gang group; one that asks for more has another turn, before those behind it.

        The state after it is only worked out where some of its tasks may still ask.
        """
        snapshot, gang_group, made = self.progress.snapshot, self.gang_groups[at], plan.statement
        rows, placed = list(gang_group), made.placed
        fresh = np.count_nonzero(snapshot.tasks.nominated[placed] == NONE)
        may_ask = len(placed) < len(made.nominated) or fresh < sum(snapshot.counts.pending[rows].tolist())
        self.take([Planned(plan, gang_group)])
        if may_ask and self.progress.snapshot.counts.pending[rows].any() and self.host.starving[rows].all():
            self._insert([gang_group], at)

    def give_turns_to_losers(self, at: int, plan: Plan) -> None:
        """Give gang groups from which the plan at a position took a promise a turn, before those behind them.

        Else what these evict for may go to them later, since they may take promises as well. Where the setup limits how
        many are searched for, they wait.
        """
        given_up, limit = plan.statement.withdrawn, self.progress.setup.gang_groups
        if len(given_up) == 0:  # as it mostly is
            return
        snapshot, left = self.progress.snapshot, set(self.gang_groups[at + 1 :])
        for podgroup in distinct(snapshot.tasks.podgroup[given_up]).tolist():
            gang_group = gang_group_of(snapshot, podgroup)
            full = 0 < limit <= len(self.progress.searched)
            if not full and gang_group not in left and (self.host.starving & self.host.valid)[list(gang_group)].all():
                self._insert([gang_group], at)
                left.add(gang_group)
                searched = self.progress.searched | {gang_group}
                self.progress = replace(self.progress, searched=searched)

    def _insert(self, some: Sequence[GangGroup], at: int) -> None:
        """Put gang groups behind a position, each before the first that comes after it in the policy's order."""
        left = self.gang_groups[at + 1 :]
        wanted = mask_of([row for one in (*some, *left) for row in one], len(self.progress.snapshot.podgroups))
        turn = {one: place for place, one in enumerate(in_serving_order(self.host, wanted, evicting=True))}
        latest = list(accumulate((turn.get(one, NONE) for one in left), max))
        before: dict[int, list[GangGroup]] = {}
        for one in sorted(some, key=turn.__getitem__):
            before.setdefault(bisect_right(latest, turn[one]), []).append(one)
        merged = [one for place, each in enumerate(left) for one in (*before.get(place, ()), each)]
        self.gang_groups[at + 1 :] = [*merged, *before.get(len(left), ())]
        self._closed = closed_to(self.host, self.progress.setup.closed, self.gang_groups)


def _waiting(host: Host, progress: Progress) -> Bools:
    """bool[G]: podgroups that starve and have a turn now."""
    waiting: Bools = host.starving & host.valid & progress.turns
    return waiting


def _admitted(progress: Progress, starving: list[GangGroup]) -> tuple[Progress, list[GangGroup]]:
    """The gang groups that get a turn in this cycle, in order: they do not pause, and the setup limits their number.

    Those of their kind that come before them get one as well, though they pause: what is found for one of a kind is the
    first's, and where nothing is found one search has answered them all.
    """
    setup, searched = progress.setup, progress.searched
    awake = [one for one in starving if not setup.backoff.is_paused(one, progress.snapshot, progress.now)]
    fresh = [one for one in awake if one not in searched]
    turn = searched.union(fresh[: max(0, setup.gang_groups - len(searched))] if setup.gang_groups else fresh)
    seen = set(progress.starving)
    after = replace(
        progress,
        starving=(*progress.starving, *(one for one in starving if one not in seen)),
        searched=turn,
        more=progress.more or any(one not in turn for one in fresh),
    )
    having = turn.intersection(awake)
    paused = frozenset(starving).difference(awake)
    having = having.union(_before_their_kind(progress.snapshot, starving, having, paused, setup.gang_groups))
    return after, [one for one in starving if one in having]


def _before_their_kind(
    snapshot: Snapshot,
    starving: list[GangGroup],
    having: frozenset[GangGroup],
    paused: frozenset[GangGroup],
    limit: int,
) -> list[GangGroup]:
    """The first of those that pause before one of their kind that has a turn, at most ``limit`` (0: all)."""
    if not having or not paused:
        return []
    behind, found = set[PodgroupKind | None](), list[GangGroup]()
    for one, kind in reversed(list(kinds_in_turn(snapshot, starving))):
        if one in having:
            behind.add(kind)
        elif one in paused and kind is not None and kind in behind:
            found.append(one)
    found.reverse()
    return found[:limit] if limit else found
