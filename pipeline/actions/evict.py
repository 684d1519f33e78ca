"""Evict: every starving podgroup takes the room that it needs from others, in the policy's order.

Preempt takes from work of lower priority in the same queue, reclaim from queues that use more than they deserve
("Gang-Aware Preemption and Reclaim", sections 3.5.2 and 3.5.3). The policy says whether they take whole gangs or single
tasks.

Searching in parallel is speculation on the serial order: the next gang groups are searched for at once on the snapshot
as it is, and an outcome counts only if no plan was taken before its turn came; otherwise it is searched for again. So
the decisions are those of serving one gang group after the other, each on what those before it left.

Gang groups of one kind that follow each other share one search: for room (`evicting`), or why there is none. So do a
few of one rank in a small fleet, which ask for different things. A few in a small fleet are also served one after the
other, and that counts if less is lost in sum.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import dropwhile, islice, takewhile
from typing import TypeAlias

import numpy as np

from pipeline.actions.backoff import GangGroup
from pipeline.actions.claims import closed_to
from pipeline.actions.evicting.dealing import can_be_dealt, dealt
from pipeline.actions.evicting.in_sum import cost_less
from pipeline.actions.evicting.leftovers import in_turn, resting, waits
from pipeline.actions.evicting.one_kind import (
    MOST_RANKED,
    MOST_TASKS,
    as_one,
    of_another,
    of_one_kind,
    rigid_of_one_kind,
    rigid_of_one_rank,
)
from pipeline.actions.progress import Progress, unheard
from pipeline.actions.searching import Outcome
from pipeline.cluster.arrays import NO_ROWS, Bools, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Explanation, Reason
from pipeline.decision.plan import NoPlan, Plan
from pipeline.placement.cordoning import without
from pipeline.placement.kinds import PodgroupKind, kind_of
from pipeline.placement.starving import in_order, queue_depth, within_depth
from pipeline.plugins.host import Host
from pipeline.policy import Purpose
from pipeline.records import replace
from pipeline.solvers.registry import DEALING, solver_of

#: How many gang groups are searched for ahead at first; doubled each time that all outcomes counted.
_AHEAD = 4
#: Only in fleets of at most this many nodes are gang groups of one rank served at once, and is that compared with one
#: after the other: larger ones suffice for each.
_RANKED_NODES = 256
#: Reasons that say something of a podgroup itself, and not of all podgroups of its kind.
_OWN = (Reason.NOTHING_MISSING, Reason.DELAY)
#: What decides the answer of a search on one state: the kind that asks, and the rows (bytes of int64) of the nodes that
#: are closed to it.
_KindAndClosed: TypeAlias = tuple[PodgroupKind, bytes]
#: The leading ones of some gang groups that can be served at once.
_Leading: TypeAlias = Callable[[Snapshot, Iterable[GangGroup]], list[GangGroup]]


def evict(progress: Progress, action: str, purpose: Purpose) -> Progress:
    """Serve every starving podgroup in each of the action's passes, in order."""
    for within_podgroup in solver_of(progress.policy, action).passes(purpose):
        if not progress.lost and len(progress.retaken) == 0:
            progress = _Pass(progress, action, purpose, within_podgroup=within_podgroup).run()
    return progress


def admitted(progress: Progress, starving: list[GangGroup]) -> tuple[Progress, list[GangGroup]]:
    """The gang groups that get a turn in this cycle, in order: they do not pause, and the setup limits their number."""
    setup, searched = progress.setup, progress.searched
    awake = [one for one in starving if not setup.backoff.holds(one, progress.snapshot, progress.now)]
    fresh = [one for one in awake if one not in searched]
    turn = searched.union(fresh[: max(0, setup.gang_groups - len(searched))] if setup.gang_groups else fresh)
    seen = set(progress.starving)
    after = replace(
        progress,
        starving=(*progress.starving, *(one for one in starving if one not in seen)),
        searched=turn,
        more=progress.more or any(one not in turn for one in fresh),
    )
    return after.on_state_of(progress), [one for one in awake if one in turn]


@dataclass
class _SinceLastPlan:
    """What was found on the state as it is; the next plan makes all of it stale.

    Attributes
    ----------
    host
        What the plugins say of the state; None until it is asked, since after the last plan nothing is.
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
    found: dict[int, Outcome] = field(default_factory=dict)
    ahead: set[int] = field(default_factory=set)
    cordoned: dict[bytes, Snapshot] = field(default_factory=dict)
    unplaced: dict[_KindAndClosed | None, Explanation] = field(default_factory=dict)


class _Pass:
    """One pass of an action over the starving gang groups."""

    def __init__(self, progress: Progress, action: str, purpose: Purpose, *, within_podgroup: bool) -> None:
        self._action, self._purpose, self._within_podgroup = action, purpose, within_podgroup
        host = progress.host_for(purpose)
        with progress.setup.observer.step("starving", action=action) as notes:
            starving = in_order(host, _waiting(host, progress))
            starving = within_depth(host, starving, queue_depth(progress.policy, action))
            self._progress, self._gang_groups = admitted(progress, starving)
            notes.set(starving=len(starving), searched=len(self._gang_groups))
        #: By gang group the nodes (int64[M]) that are closed to it; mostly all have the same list.
        self._closed: list[Rows] = closed_to(host, progress.setup.closed, self._gang_groups)
        self._known = _SinceLastPlan(host)
        self._window = _AHEAD
        #: How many podgroups are served at once at most, by what they have in common.
        self._together: dict[_Leading, int] = dict.fromkeys((rigid_of_one_rank, rigid_of_one_kind), MOST_TASKS)
        #: Gang groups, and the victims that were found for all of their kind at once.
        self._victims: dict[GangGroup, Rows] = {}

    def narrow(self, some: Sequence[GangGroup], at: int, of_one: _Leading) -> None:
        """Serve only these, the first at a position, in turn though they have something in common.

        No plan is told to be settled.
        """
        self._progress = replace(self._progress, setup=replace(self._progress.setup, settled=unheard))
        self._gang_groups, self._closed = list(some), self._closed[at : at + len(some)]
        self._known = _SinceLastPlan(self._known.host)
        self._together = {**self._together, rigid_of_one_rank: 1, of_one: 1}
        self._victims = dict.fromkeys(some, NO_ROWS) if of_one is rigid_of_one_kind else {}

    def run(self) -> Progress:
        """Serve one gang group after the other; those at once that are alike and need all of their tasks."""
        at = 0
        while at < len(self._gang_groups) and not self._progress.lost and len(self._progress.retaken) == 0:
            at += self._dealt(at) or self._served(at)
        return self._progress

    @property
    def _host(self) -> Host:
        """What the plugins say of the state as it is by now."""
        if self._known.host is None:
            self._known.host = self._progress.host_for(self._purpose)
        return self._known.host

    def _served(self, at: int) -> int:
        """Serve one gang group."""
        gang_group, key = self._gang_groups[at], self._key(at)
        outcome = self._none_of_its_kind(key, gang_group[0]) or self._outcome(at)
        if outcome is None:
            return self._lost(1)
        self._progress = resting(self._progress, self._host, outcome, gang_group)
        if isinstance(outcome, Plan) and not waits(self._progress, self._host, outcome, gang_group):
            back = self._progress.retaken_by(outcome)
            if len(back):
                self._progress = replace(self._progress, retaken=back, taker=gang_group[0])
                return 1
            self._planned([outcome], [gang_group])
            self._give_another_turn(at)
        else:
            self._progress = self._progress.without_plan(gang_group, self._action, outcome.explanation)
            if key is not None and isinstance(outcome, NoPlan) and outcome.explanation.reason not in _OWN:
                self._known.unplaced[key] = outcome.explanation
        return 1

    def _dealt(self, at: int) -> int:
        """Serve the next gang groups at once if they need all tasks; how many, 0 if that is not possible.

        They are alike. In small fleets a few of one rank are enough, if the policy takes the cheapest set.
        """
        if self._is_last(at):
            return 0
        return (self._dealt_to(rigid_of_one_rank, at) if self._is_small else 0) or self._dealt_to(rigid_of_one_kind, at)

    @property
    def _is_small(self) -> bool:
        """Whether two ways of serving a few gang groups are both tried, and the cheaper one counts."""
        return self._progress.policy.cheapest_set and len(self._progress.snapshot.nodes) <= _RANKED_NODES

    def _dealt_to(self, of_one: _Leading, at: int) -> int:
        """Serve the leading ones that have something in common at once; how many.

        If there is no room for all of them, then for half of them, and so on. Where the cheapest set goes, as many are
        served as there is room for, by bisection; else the rest has a turn of its own. No more are tried from then on.
        """
        some, found = self._leading(of_one, at), list[Plan]()
        least, most, many = 1, len(some) + 1, len(some)
        while most - least > 1:
            plans = self._room_for(some[:many], at)
            if plans is None:
                return self._lost(many)
            found = max(found, plans, key=len)
            if found and not self._progress.policy.cheapest_set:
                least = many
                break
            least, most = (many, most) if len(plans) == many else (least, many)
            many = (least + most) // 2
        if self._is_small and self._may_cost_less_in_turn(found, of_one):
            cheaper = self._cheaper(found, some, at, of_one)
            if cheaper is None:
                return self._lost(len(found))
            found, least, most = (cheaper, least, most) if cheaper else (cheaper, 1, 0)
        if most <= len(some):
            self._together[of_one] = least
        if found:
            self._planned(found, some[: len(found)])
        return len(found)

    def _lost(self, many: int) -> int:
        """Leave the rest to the next cycle, since a search was lost."""
        self._progress = replace(self._progress, lost=True, more=True)
        return many

    def _may_cost_less_in_turn(self, found: Sequence[Plan], of_one: _Leading) -> bool:
        """Whether plans found at once are few and evict; of podgroups alike gangs only: a single task breaks little."""
        if not 1 < len(found) <= MOST_RANKED or (of_one is rigid_of_one_kind and len(found[0].statement.placed) == 1):
            return False
        return any(len(plan.statement.evictions) for plan in found)

    def _cheaper(self, found: list[Plan], some: list[GangGroup], at: int, of_one: _Leading) -> list[Plan] | None:
        """The plans that were found at once for the leading gang groups, or those that they get one after the other.

        These if they cost less. No plans if another gang group gets one in that way; None if a search was lost.
        """
        tried, before = copy(self), len(self._progress.plans)
        tried.narrow(some[: len(found)] if of_one is rigid_of_one_kind else some, at, of_one)
        done = tried.run()
        others, served = list(done.plans[before:]), list(done.gang_groups[before:])
        if done.lost or not set(served) <= set(some[: len(found)]):
            return None if done.lost else []
        same = len(others) == len(found)
        return others if same and cost_less(self._progress.snapshot, self._host, others, found) else found

    def _room_for(self, some: Sequence[GangGroup], at: int) -> list[Plan] | None:
        """Plans for gang groups, in turn; none without room for all, None if the search for that was lost."""
        attempt = as_one(some, self._attempt(at))
        found = self._search(attempt)
        if found is None:
            return None
        if isinstance(found, NoPlan) or len(self._progress.retaken_by(found)):
            return []
        return list(in_turn(self._progress, self._host, dealt(attempt, self._host_of(attempt), found)))

    def _leading(self, of_one: _Leading, at: int) -> list[GangGroup]:
        """The next gang groups that can be served at once: at most as many as had room together last time."""
        snapshot, policy, first = self._progress.snapshot, self._progress.policy, self._gang_groups[at][0]
        dealing, together = DEALING.get(policy.solver(self._action)), self._together[of_one]
        most = 0 if dealing is None or together == 1 else dealing.widest_dealt(policy)
        if len(snapshot.tasks_of(first)) > most or self._key(at) in self._known.unplaced:
            return []
        some = of_one(snapshot, islice(self._next(at), together))
        if self._known.unplaced:  # what has no room alone has none with others
            hopeless = (n for n in range(len(some)) if self._key(at + n) in self._known.unplaced)
            some = some[: next(hopeless, len(some))]
        return some if some and can_be_dealt(snapshot, some) else []

    def _is_last(self, at: int) -> bool:
        """Whether no gang group is left that could be served with this one."""
        return at + 1 == len(self._gang_groups)

    def _next(self, at: int) -> Iterator[GangGroup]:
        """The next gang groups, up to one to which other nodes are closed."""
        same = takewhile(lambda one: self._as_open(one, at), range(at, len(self._gang_groups)))
        return (self._gang_groups[one] for one in same)

    def _as_open(self, one: int, other: int) -> bool:
        """Whether the same nodes are closed to two gang groups; mostly they share the list."""
        return self._closed[one] is self._closed[other] or np.array_equal(self._closed[one], self._closed[other])

    def _planned(self, plans: Sequence[Plan], gang_groups: Sequence[GangGroup]) -> None:
        """Carry out plans; what was found and worked out before does not hold any more."""
        self._progress = self._progress.planned(plans, gang_groups)
        self._known, self._window = _SinceLastPlan(), 1

    def _give_another_turn(self, at: int) -> None:
        """Give the gang group that just got its plan another turn, if it asks for more, before those behind it."""
        gang_group, snapshot = self._gang_groups[at], self._progress.snapshot
        if not snapshot.counts.pending[list(gang_group)].any() or not self._host.starving[list(gang_group)].all():
            return
        wanted = np.zeros(len(snapshot.podgroups), bool)
        wanted[[row for one in self._gang_groups[at:] for row in one]] = True
        after = set(dropwhile(lambda one: one != gang_group, in_order(self._host, wanted)))
        last = len(self._gang_groups)
        place = next((n for n in range(at + 1, last) if self._gang_groups[n] in after), last)
        self._gang_groups.insert(place, gang_group)
        self._closed = closed_to(self._host, self._progress.setup.closed, self._gang_groups)

    def _none_of_its_kind(self, key: _KindAndClosed | None, podgroup: int) -> NoPlan | None:
        """Why there is no room for a podgroup, if another one of its kind found none on the same state."""
        why = self._known.unplaced.get(key)
        return None if why is None else NoPlan(of_another(why, self._progress.snapshot, podgroup))

    def _outcome(self, at: int) -> Outcome:
        """The outcome of the search for a gang group on the snapshot as it is by now."""
        shared = self._shared_victims(at)
        if shared is None:
            return None
        if len(shared):
            found = self._search(replace(self._attempt(at), among=shared))
            if found is None or isinstance(found, Plan):
                return found
        if at not in self._known.ahead:
            self._look_ahead(at)
        return self._known.found[at] if at in self._known.found else self._search(self._attempt(at))

    def _shared_victims(self, at: int) -> Rows | None:
        """int64[K]: victims that make room for this gang group and those of its kind; none if it is served alone.

        None if the search for them was lost.
        """
        gang_group = self._gang_groups[at]
        if self._is_last(at):
            self._victims.setdefault(gang_group, NO_ROWS)
        if gang_group not in self._victims:
            some = of_one_kind(self._progress.snapshot, self._next(at) if self._progress.policy.cheapest_set else ())
            victims = NO_ROWS
            if len(some) > 1:
                found = self._search(as_one(some, self._attempt(at)))
                if found is None:
                    return None
                victims = found.statement.evictions if isinstance(found, Plan) else victims
            self._victims.update(dict.fromkeys(some or [gang_group], victims))
        return self._victims[gang_group]

    def _look_ahead(self, at: int) -> None:
        """Search for the next gang groups on one snapshot at once: those with the same closed nodes, one of a kind."""
        same = (one for one in range(at, len(self._gang_groups)) if self._as_open(one, at))
        window, self._window = list(islice(same, self._window)), min(self._window * 2, len(self._gang_groups))
        first: dict[_KindAndClosed | int, int] = {}
        for one in window:
            first.setdefault(self._key(one) or one, one)
        ahead = list(first.values())
        self._known.ahead.update(window)
        if len(ahead) > 1:
            attempts = [self._attempt(one) for one in ahead]
            found = self._progress.setup.search.ahead(attempts, self._host_of(attempts[0]))
            self._known.found.update(zip(ahead, found, strict=False))

    def _key(self, at: int) -> _KindAndClosed | None:
        """What gang groups have in common that are answered alike; None for one that is of no kind, or the only one."""
        if len(self._gang_groups) == 1:
            return None
        kind = kind_of(self._progress.snapshot, self._gang_groups[at])
        return None if kind is None else (kind, self._closed[at].tobytes())

    def _attempt(self, at: int) -> Attempt:
        attempt = self._progress.attempt(
            self._purpose, self._gang_groups[at], self._action, within_podgroup=self._within_podgroup
        )
        return replace(attempt, snapshot=self._closed_to(at)) if len(self._closed[at]) else attempt

    def _closed_to(self, at: int) -> Snapshot:
        """The snapshot as it is by now without the nodes closed to a gang group; the same one for the same nodes."""
        key, known = self._closed[at].tobytes(), self._known.cordoned
        if key not in known:
            known[key] = without(self._progress.snapshot, self._closed[at])
        return known[key]

    def _host_of(self, attempt: Attempt) -> Host:
        host = self._host if attempt.snapshot is self._progress.snapshot else self._host.on(attempt.snapshot)
        return host if attempt.among is None else host.on(attempt.snapshot, among=attempt.among)

    def _search(self, attempt: Attempt) -> Outcome:
        return self._progress.setup.search.one(attempt, self._host_of(attempt))


def _waiting(host: Host, progress: Progress) -> Bools:
    """bool[G]: podgroups that starve and are not held back."""
    waiting: Bools = host.starving & host.valid
    waiting[list(progress.held)] = False
    return waiting
