"""Why these victims and not others: what podgroups of the chosen domain that lose nothing would have cost."""

from functools import cached_property

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows, is_among, kinds_of
from pipeline.cluster.resources import slots
from pipeline.cluster.rules.minimum import whole_without
from pipeline.decision.explanation import DomainTried, Explanation, Reason, Spared, VictimBundle, decisive
from pipeline.decision.plan import Plan
from pipeline.decision.price import Price, lost_work, prices_of
from pipeline.placement.reasons.question import Question
from pipeline.policy import Purpose
from pipeline.records import replace

#: At most this many are priced for a gang, and for a single task; the others are only counted.
PRICED, PRICED_FOR_ONE = 8, 2


def with_victims(asked: Question, made: Plan) -> Explanation:
    """The explanation of a plan with its victims by podgroup, and with podgroups that could have been taken instead."""
    why, victims = made.explanation, made.statement.evictions
    if len(victims) == 0:
        return why
    told, more = _Others(asked, made).spared()
    tried = why.tried or (DomainTried(made.domain, Reason.CHOSEN, made.price),)
    bundles = why.bundles or _bundles(asked, made)
    return replace(why, domain=made.domain, tried=tried, bundles=bundles, spared=told, spared_more=more)


def _bundles(asked: Question, made: Plan) -> tuple[VictimBundle, ...]:
    """The victims by podgroup, of the most tasks first."""
    snapshot, victims = asked.snapshot, made.statement.evictions
    first, stop = _slice(asked, made.domain)
    node, (groups, owner) = snapshot.tasks.node[victims], kinds_of(snapshot.tasks.podgroup[victims])
    many = np.bincount(owner)
    here = np.bincount(owner, weights=(node >= first) & (node < stop)).astype(np.int64)
    safe, priority = whole_without(snapshot, groups, victims), snapshot.podgroups.priority[groups]
    efficiency, order = np.where(safe, np.inf, here / many), np.lexsort((groups, -many))
    columns = (one[order].tolist() for one in (groups, safe, many, many - here, priority, efficiency))
    return tuple(VictimBundle(*row) for row in zip(*columns, strict=True))


def _slice(asked: Question, domain: int) -> tuple[int, int]:
    topology = asked.snapshot.topology
    if domain == NONE:
        return 0, len(asked.snapshot.nodes)
    return int(topology.start[domain]), int(topology.stop[domain])


class _Others:
    """The podgroups that have candidates in the domain of a plan and lose nothing by it.

    Each is priced as if it had to lose as many tasks as the plan evicts: from what it can spare if that is enough, else
    as a podgroup that breaks.
    """

    def __init__(self, asked: Question, made: Plan) -> None:
        self._asked, self._made, self._snapshot = asked, made, asked.snapshot
        self._first, self._stop = _slice(asked, made.domain)
        self._lost: Floats = lost_work(self._snapshot, asked.attempt.now)
        tasks, placed = self._snapshot.tasks, made.statement.placed
        placed = placed[is_among(tasks.podgroup[placed], asked.attempt.podgroups)]
        self._requested: Longs = self._snapshot.shapes.request[tasks.shape[placed]].sum(axis=0)

    def spared(self) -> tuple[tuple[Spared, ...], int]:
        """Those that are priced, the least important first; and how many more there are."""
        snapshot, may = self._snapshot, self._asked.may_go
        owner, there = snapshot.tasks.podgroup, snapshot.occupancy
        loses, is_here = np.zeros((2, len(snapshot.podgroups)), bool)
        loses[owner[self._made.statement.evictions]] = True
        here = there.task[there.start[self._first] : there.start[self._stop]]
        here = here[may[here] & ~loses[owner[here]]].astype(np.int64)
        is_here[owner[here]] = True
        groups = np.flatnonzero(is_here)
        groups = groups[np.argsort(-self._asked.host.job_rank[groups], kind="stable")]
        priced = groups[: PRICED if len(self._made.statement.nominated) > 1 else PRICED_FOR_ONE]
        if len(priced) == 0:
            return (), len(groups)
        at = np.empty(len(snapshot.podgroups), np.int64)
        at[groups], at[priced] = NONE, np.arange(len(priced))
        told = self._told(priced, self._in_order(here, at[owner[here]]))
        return told, len(groups) - len(told)

    def _in_order(self, here: Rows, at: Rows) -> list[Rows]:
        """The candidates of each podgroup that is priced, the least important first; ``at`` int64[C]: NONE if not."""
        tasks, here, at = self._snapshot.tasks, here[at != NONE], at[at != NONE]
        order = np.lexsort((-tasks.order[here], tasks.priority[here], at))
        return np.split(here[order], np.flatnonzero(np.diff(at[order])) + 1)

    def _told(self, groups: Rows, here: list[Rows]) -> tuple[Spared, ...]:
        """What each of the podgroups would have lost, given its candidates in order, and why it does not.

        It would lose as many of these as the plan evicts, or all that it has.
        """
        snapshot = self._snapshot
        taken = [mine[: len(self._made.statement.evictions)] for mine in here]
        safe = whole_without(snapshot, groups, np.concatenate(taken))
        everywhere = self._asked.attempt.policy.whole_gangs_everywhere
        rows = [
            np.sort(taken[at] if safe[at] else self._all_of(group) if everywhere else here[at])
            for at, group in enumerate(groups.tolist())
        ]
        prices = prices_of(snapshot, rows, self._requested, self._lost, self._rank, self._made.domain)
        every = zip(groups.tolist(), safe.tolist(), rows, self._reasons(rows, prices), prices, strict=True)
        return tuple(Spared(group, whole, len(some), reason, price) for group, whole, some, reason, price in every)

    def _all_of(self, group: int) -> Rows:
        members = self._snapshot.tasks_of(group)
        return members[self._asked.may_go[members]]

    @cached_property
    def _rank(self) -> Longs | None:
        if self._asked.purpose is not Purpose.RECLAIM:
            return None
        return self._asked.host.victim_queue_rank(self._asked.queue)[self._snapshot.podgroups.queue]

    def _reasons(self, rows: list[Rows], prices: list[Price]) -> list[Reason]:
        """Why each of some sets of tasks, with its price, does not go."""
        refused = [self._refused(some, price) for some, price in zip(rows, prices, strict=True)]
        left = [some for some, why in zip(rows, refused, strict=True) if why is None]
        enough = iter(self._enough(left).tolist() if left else ())
        return [why or (Reason.OUTRANKED if next(enough) else Reason.TOO_LITTLE) for why in refused]

    def _refused(self, rows: Rows, price: Price) -> Reason | None:
        """Why the tasks do not go whatever room they leave; None if nothing speaks against it."""
        chosen, host, asked = self._made.price, self._asked.host, self._asked
        if price >= chosen:
            return Reason.COSTLIER if decisive(chosen, price) else Reason.EQUAL
        may: Bools | None = None
        if asked.by_task:
            may = host.task_victims(asked.preemptor, rows, asked.point)
        elif self._has_quota:
            may = host.bundle_quota_filter(asked.preemptor, rows, np.zeros(len(rows), np.int64))
        if may is not None and not may.all():
            return Reason.VETOED
        return None if asked.by_task or host.validate_set(asked.preemptor, rows) else Reason.ILLEGAL

    @cached_property
    def _has_quota(self) -> bool:
        return self._asked.host.has_quota(self._asked.preemptor)

    def _enough(self, sets: list[Rows]) -> Bools:
        """bool[M]: whether slots suffice for what the plan places once all tasks of a set have gone, for each set."""
        snapshot, rows, wide = self._snapshot, np.concatenate(sets), len(self._snapshot.nodes)
        each, on = np.repeat(np.arange(len(sets)), [len(some) for some in sets]), snapshot.tasks.node[rows]
        inside = (on >= self._first) & (on < self._stop)
        keys, at = kinds_of(each[inside] * wide + on[inside])
        of_set, node = keys // wide, keys % wide
        room, here, enough = snapshot.room.future_of(node), node - self._first, np.ones(len(sets), bool)
        snapshot.add_requests(rows[inside], room, at)
        for request, wanted, may, there in self._wanted:
            more = slots(request, room) * may[here] - there[here]
            enough &= there.sum() + np.bincount(of_set, weights=more, minlength=len(sets)) >= wanted
        return enough

    @cached_property
    def _wanted(self) -> list[tuple[Longs, int, Bools, Longs]]:
        """Of each shape that the plan places its request, how many tasks, and where in the domain they may and can go.

        bool[n] and int64[n]: nodes that they may use, and how many tasks fit there as it is.
        """
        snapshot, domain = self._snapshot, slice(self._first, self._stop)
        shapes, kind = kinds_of(snapshot.tasks.shape[self._made.statement.placed])
        allowed = self._asked.host.allowed(shapes.astype(np.int64))[:, domain]
        asked = zip(snapshot.shapes.request[shapes], np.bincount(kind).tolist(), allowed, strict=True)
        room = snapshot.room.future[domain]
        return [(request, wanted, may, slots(request, room) * may) for request, wanted, may in asked]
