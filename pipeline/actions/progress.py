"""How far a cycle has come: a value that each action takes and returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipeline.actions.setup import Setup
from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Rows, is_among, joined, mask_of
from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.decided import carried_out
from pipeline.decision.explanation import Explanation
from pipeline.decision.plan import NoPlan, Plan, plan_without_search
from pipeline.decision.statement import Statement, merged_statement, withdrawal
from pipeline.keeping import cached_property
from pipeline.placement.undone import may_be_undone, undone
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.policy import Policy, Purpose
from pipeline.records import replace

#: States on which a search found nothing are kept to explain that later, up to this number of tasks in all of them.
_MOST_KEPT = 1 << 22


@dataclass(frozen=True)
class Unplaced:
    """A gang group for which an action found no plan, and why."""

    gang_group: GangGroup
    action: str
    why: Explanation


class NotPlanned(NamedTuple):
    """A gang group for which an action found no plan; `found` says why, or finds it."""

    gang_group: GangGroup
    action: str
    found: NoPlan


class Planned(NamedTuple):
    """A statement that is to be committed.

    Attributes
    ----------
    gang_group
        The gang group for which others are evicted; None for a placement.
    """

    plan: Plan
    gang_group: GangGroup | None


@dataclass(frozen=True)
class HoldingBack:
    """What does not start in a run of the actions, since runs before it showed who would take it (`holding_back`).

    Attributes
    ----------
    podgroups
        Rows of podgroups that have no turn before all others had theirs.
    whole_cycle
        Rows of those among them that have no turn at all.
    promises
        Rows of podgroups that do not start on promised room that is there: they give it up.
    takes_starts, takes_redeemed
        Whether preempt and reclaim may take tasks that the cycle starts; and those among them that start on promised
        room. The actions stop as soon as a plan does.
    """

    podgroups: frozenset[int] = frozenset()
    whole_cycle: frozenset[int] = frozenset()
    promises: frozenset[int] = frozenset()
    takes_starts: bool = False
    takes_redeemed: bool = False


class StateSoFar:
    """The snapshot as it is by now, worked out when it is first asked for: mostly not after the last plan of a cycle.

    ``host`` is what the plugins say of it; None until they are asked.
    """

    host: Host | None = None

    def __init__(self, snapshot: Snapshot | Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot:
        """Worked out once."""
        if not isinstance(self._snapshot, Snapshot):
            self._snapshot = self._snapshot()
        return self._snapshot


@dataclass(frozen=True)
class Progress:
    """How far a cycle has come: the state with everything decided so far, and what that is.

    Attributes
    ----------
    state
        With ``statements`` carried out.
    statements, explanations
        In the order in which they were decided.
    planned
        The statements that are to be committed, in order. Admissions are worked out anew in every cycle, so they are
        not committed.
    starving
        Gang groups that starved when an evicting action began, in the order in which they were first seen.
    searched
        Gang groups that had their turn in this cycle.
    unplaced
        Gang groups without a plan, once for each action.
    more
        Whether gang groups are left without a turn.
    lost
        Whether a search was lost: the gang groups after it in order wait for the next cycle.
    held_back
        What does not start in this run of the actions.
    late
        Rows of the only podgroups that have a turn after all others; None before that.
    redeemed: int64[K]
        Tasks that start where they had been promised room, and keep it whatever else is decided.
    retaken, taker
        Tasks (int64[K]) that the cycle started or made room for, and a plan would evict or leave without that room, and
        the row of the podgroup that the plan serves (NONE: no such plan). The actions stop there.
    places_first
        Whether no action that places tasks comes after one that evicts.
    certain
        How many of ``planned`` were reported to ``Setup.when_certain``.
    origin
        A host of an earlier state, and how many statements there were then; None if none is known.
    """

    state: StateSoFar
    policy: Policy
    now: float
    setup: Setup = field(default_factory=Setup)
    statements: tuple[Statement, ...] = ()
    explanations: tuple[Explanation | NoPlan, ...] = ()
    planned: tuple[Planned, ...] = ()
    starving: tuple[GangGroup, ...] = ()
    searched: frozenset[GangGroup] = frozenset()
    unplaced: tuple[NotPlanned, ...] = ()
    more: bool = False
    lost: bool = False
    held_back: HoldingBack = field(default_factory=HoldingBack)
    late: frozenset[int] | None = None
    redeemed: Rows = field(default_factory=lambda: NO_ROWS)
    retaken: Rows = field(default_factory=lambda: NO_ROWS)
    taker: int = NONE
    places_first: bool = False
    certain: int = 0
    origin: tuple[Host, int] | None = None

    @property
    def snapshot(self) -> Snapshot:
        """With ``statements`` carried out."""
        return self.state.snapshot

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """What is to be committed, in order."""
        return tuple(one.plan for one in self.planned)

    @property
    def served(self) -> frozenset[GangGroup]:
        """Gang groups for which others are evicted."""
        return frozenset(one.gang_group for one in self.planned if one.gang_group is not None)

    @cached_property
    def starting(self) -> Rows:
        """int64[K]: task rows that this cycle binds."""
        return joined(made.bound for made in self.statements)

    def shielded(self, purpose: Purpose) -> Rows:
        """int64[K]: task rows that this cycle binds and that no action of this purpose takes."""
        return self.redeemed if self._may_take_starts(purpose) else self.starting

    def retaken_by(self, plan: Plan) -> Rows:
        """int64[K]: tasks that the cycle started or made room for, and that a plan would take that from.

        Once a plan was reported as certain the cycle cannot begin anew, and room that was made may be taken.
        """
        evicted = plan.statement.evictions
        started = evicted[is_among(evicted, self.starting)]
        if not self.held_back.takes_starts or self.certain or not self.planned:
            return started
        return np.concatenate([started, undone(self.snapshot, self.plans, plan)])

    @property
    def turns(self) -> Bools:
        """bool[G]: podgroups that have a turn now: all but some, and then only these."""
        rows = self.held_back.podgroups if self.late is None else self.late
        some = mask_of(list(rows), len(self.snapshot.podgroups))
        return some if self.late is not None else ~some

    @property
    def stopped(self) -> bool:
        """Whether actions serve no more podgroups: a search was lost, or a plan would take what the cycle started."""
        return self.lost or len(self.retaken) > 0

    def without_turn(self) -> frozenset[int]:
        """Rows of podgroups that may starve and were not asked: they were held back, or lost a promise to a plan."""
        plans = [plan.statement for plan in self.plans if plan.statement.purpose is not Purpose.ALLOCATE]
        withdrawn = joined(made.withdrawn for made in plans)
        losing = self.snapshot.tasks.podgroup[withdrawn].tolist() if len(withdrawn) else []
        return self.held_back.podgroups.union(losing) - self.held_back.whole_cycle

    def _may_take_starts(self, purpose: Purpose) -> bool:
        return self.held_back.takes_starts and purpose in (Purpose.PREEMPT, Purpose.RECLAIM)

    @property
    def host(self) -> Host:
        """What the plugins say of the snapshot as it is by now."""
        if self.state.host is None:
            if self.origin is None:
                self.state.host = Host(Context(self.snapshot, self.policy, self.now, self.starting))
            else:
                host, known = self.origin
                evicted = joined(made.evictions for made in self.statements[known:])
                self.state.host = host.on(self.snapshot, evicted, self.starting)
        return self.state.host

    def host_for(self, purpose: Purpose) -> Host:
        """What they say to an action that evicts for this purpose; see ``shielded``."""
        # Redeemed tasks are starting tasks, so equal numbers mean that the same tasks are shielded.
        if not self._may_take_starts(purpose) or len(self.redeemed) == len(self.starting):
            return self.host
        return self.host.on(self.snapshot, starting=self.redeemed)

    def without_promises(self, rows: Rows) -> Host:
        """What the plugins would say if the tasks ``rows`` were promised nothing."""
        return self.host.on(carried_out(withdrawal(rows), self.snapshot, self.now))

    def attempt(
        self, purpose: Purpose, gang_group: GangGroup, action: str, *, within_podgroup: bool = False
    ) -> Attempt:
        """An attempt for a gang group on the snapshot as it is by now, in all domains."""
        return Attempt(
            snapshot=self.snapshot,
            policy=self.policy,
            purpose=purpose,
            podgroups=gang_group,
            domains=None,
            now=self.now,
            action=action,
            within_podgroup=within_podgroup,
            starting=self.shielded(purpose),
        )

    def decided(self, made: Statement, why: Explanation | None = None) -> "Progress":
        """Progress with one more statement carried out: a placement, or evictions that make room for no podgroup."""
        done = self._carried_out([made], *(() if why is None else (why,)))
        if not any(map(len, (made.bound, made.nominated, made.evictions))):
            return done
        attempt = self.attempt(made.purpose, (made.preemptor,) if made.preemptor != NONE else (), made.action)
        return replace(done, planned=(*self.planned, Planned(plan_without_search(attempt, made), None)))

    def with_plans(self, found: Sequence[Planned]) -> "Progress":
        """Progress with plans for gang groups carried out; no two of them concern the same task.

        Plans that are certain are reported: they are on their way before the state after them is worked out.
        """
        every, plans = (*self.planned, *found), [one.plan for one in found]
        done = self._carried_out([plan.statement for plan in plans], *(plan.explanation for plan in plans))
        return replace(done, planned=every, certain=self._reported(every))

    def _reported(self, planned: Sequence[Planned]) -> int:
        """Report the plans that are certain; returns how many are.

        They all are, unless the cycle may yet begin anew without some start or plan.
        """
        held, anew = self.held_back.podgroups, self.held_back.takes_starts
        if anew and (held or not self.places_first or len(self.starting) > len(self.redeemed)):
            return self.certain  # what is held back starts after all, if no other podgroup gains by it
        for at, (plan, _) in enumerate(planned[self.certain :], self.certain):
            if anew and may_be_undone(self.snapshot, plan, (one.gang_group for one in self.unplaced)):
                return at
            self.setup.when_certain(plan)
        return len(planned)

    def without_plan(self, gang_group: GangGroup, action: str, found: NoPlan) -> "Progress":
        """Progress with one more reason why nothing was done.

        It is explained at once if the actions do not begin anew, and if very much would have to be kept until they end.
        """
        anew = self.held_back.takes_starts and not self.certain
        if not anew or len(self.unplaced) * len(self.snapshot.tasks) > _MOST_KEPT:
            found = NoPlan(found.in_full)
        return replace(
            self,
            explanations=(*self.explanations, found),
            unplaced=(*self.unplaced, NotPlanned(gang_group, action, found)),
        )

    def _carried_out(self, made: Sequence[Statement], *whys: Explanation) -> "Progress":
        """The snapshot keeps its revision: plans name the revision of the news that they were made on."""
        before, all_made, now = self.snapshot, merged_statement(made), self.now
        return replace(
            self,
            state=StateSoFar(lambda: carried_out(all_made, before, now).at_revision(before.revision)),
            origin=self.origin if self.state.host is None else (self.state.host, len(self.statements)),
            statements=(*self.statements, *made),
            explanations=(*self.explanations, *whys),
        )
