"""Why these victims and not others: what podgroups of the chosen domain that lose nothing would have cost."""

from collections.abc import Callable
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Ids, Longs, Rows, is_among
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.counted.minima import Have, Minima, count_tasks, reaches, writable
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.rules.minimum import towards_all
from pipeline.cluster.tables import Tasks
from pipeline.decision.explanation import (
    DomainTried,
    Explanation,
    Reason,
    Spared,
    VictimBundle,
    decisive,
    victim_bundles,
)
from pipeline.decision.merging import weighed
from pipeline.decision.plan import Plan
from pipeline.decision.price import Price, compared, lost_work, prices_of
from pipeline.kernels import inlined, kernel, linked
from pipeline.placement.layout.packing import slots_at, sum_slots
from pipeline.placement.reasons.question import Question
from pipeline.records import replace

#: At most this many are priced for a gang, and for a single task; the others are only counted.
PRICED, PRICED_FOR_ONE = 8, 2


class _TasksByRow(NamedTuple):
    """Columns of all tasks."""

    podgroup: Ids
    role: Ids
    subgroup: Ids
    node: Ids
    shape: Ids
    priority: Ids
    order: Longs


#: These columns, as kernels are given them.
_columns_of: Callable[[Tasks], Plain] = attrgetter(*_TasksByRow._fields)


def with_victims(asked: Question, made: Plan) -> Explanation:
    """The explanation of a plan with its victims by podgroup, and with podgroups that could have been taken instead.

    The domains that were tried are weighed against that of the plan.
    """
    why, victims = made.explanation, made.statement.evictions
    if len(victims) == 0:
        return replace(why, tried=weighed(why.tried, made)) if why.tried else why
    spared, more = _Others(asked, made).spared()
    tried = weighed(why.tried, made) or (DomainTried(made.domain, Reason.CHOSEN, made.price),)
    bundles = why.bundles or _bundles(asked, made)
    return replace(why, domain=made.domain, tried=tried, bundles=bundles, spared=spared, spared_more=more)


def _slice(asked: Question, domain: int) -> tuple[int, int]:
    snapshot = asked.snapshot
    return (0, len(snapshot.nodes)) if domain == NONE else snapshot.topology.slice_of(domain)


# -- what was taken ----------------------------------------------------------------------------------------------------


def _bundles(asked: Question, made: Plan) -> tuple[VictimBundle, ...]:
    """The victims by podgroup, of the most tasks first."""
    snapshot = asked.snapshot
    groups, safe, many, elsewhere, efficiency = _by_podgroup(
        made.statement.evictions, _slice(asked, made.domain), snapshot.once(towards_all), _columns_of(snapshot.tasks)
    )
    return victim_bundles(groups, safe, many, elsewhere, snapshot.podgroups.priority[groups], efficiency)


@kernel
def _by_podgroup(
    victims: Rows, nodes: tuple[int, int], towards: tuple[Plain, Plain], columns: Plain
) -> tuple[Rows, Bools, Longs, Longs, Floats]:
    """The podgroups of the victims, int64[P], of the most victims first.

    Returns
    -------
    The podgroups; bool[P] whether each keeps its minimum; int64[P] how many victims it has, and how many of them are
    not on ``nodes``, from the first up to the last; and float64[P] which part of them is, infinite if it keeps it.
    """
    minima, have, tasks = Minima(*towards[0]), writable(Have(*towards[1])), _TasksByRow(*columns)
    podgroup = tasks.podgroup
    count_tasks(-1, victims, have, podgroup, tasks.role, tasks.subgroup)
    groups, found = np.empty(len(victims), np.int64), 0
    many, elsewhere = np.zeros(len(victims), np.int64), np.zeros(len(victims), np.int64)
    for row in victims[np.argsort(podgroup[victims], kind="mergesort")]:
        if found == 0 or groups[found - 1] != podgroup[row]:
            groups[found] = podgroup[row]
            found += 1
        many[found - 1] += 1
        elsewhere[found - 1] += tasks.node[row] < nodes[0] or tasks.node[row] >= nodes[1]
    order = np.argsort(-many[:found], kind="mergesort")
    groups, many, elsewhere = groups[order], many[order], elsewhere[order]
    safe, efficiency = np.empty(found, np.bool_), np.empty(found, np.float64)
    for at in range(found):
        safe[at] = reaches(minima, have, groups[at])
        efficiency[at] = np.inf if safe[at] else (many[at] - elsewhere[at]) / many[at]
    return groups, safe, many, elsewhere, efficiency


# -- what could have been ----------------------------------------------------------------------------------------------


class _Others:
    """The podgroups that have candidates in the domain of a plan and lose nothing by it.

    Each is priced as if it had to lose as many tasks as the plan evicts: from what it can spare if that is enough, else
    as a podgroup that breaks.
    """

    def __init__(self, asked: Question, made: Plan) -> None:
        self._asked, self._made, self._snapshot = asked, made, asked.snapshot
        self._nodes, self._placed = _slice(asked, made.domain), made.statement.placed

    def spared(self) -> tuple[tuple[Spared, ...], int]:
        """Those that are priced, the least important first; and how many more there are."""
        groups, safe, rows, start, found = self._lost_instead()
        if len(groups) == 0:
            return (), found
        sets = [rows[first:stop] for first, stop in pairwise(start.tolist())]
        prices = self._prices(sets)
        reasons = self._reasons(sets, prices, rows, start)
        priced = tuple(map(Spared, groups.tolist(), safe.tolist(), map(len, sets), reasons, prices))
        return priced, found - len(priced)

    def _lost_instead(self) -> tuple[Rows, Bools, Rows, Longs, int]:
        """See the kernel."""
        snapshot, asked, made = self._snapshot, self._asked, self._made.statement
        there, members = snapshot.occupancy, snapshot.members
        most = PRICED if len(made.nominated) > 1 else PRICED_FOR_ONE
        return _lost_instead(
            made.evictions, self._nodes, (there.start, there.task), (members.start, members.task), asked.may_go,
            asked.host.job_rank, most, asked.attempt.policy.whole_gangs_everywhere, snapshot.once(towards_all),
            _columns_of(snapshot.tasks),
        )  # fmt: skip

    def _prices(self, sets: list[Rows]) -> list[Price]:
        snapshot, asked = self._snapshot, self._asked
        mine = self._placed[is_among(snapshot.tasks.podgroup[self._placed], asked.attempt.podgroups)]
        requested = snapshot.request_of(mine).sum(axis=0)
        rank = asked.host.price_rank(asked.purpose, asked.attempt.podgroups[0])
        return prices_of(snapshot, sets, requested, lost_work(snapshot, asked.attempt.now), rank, self._made.domain)

    def _reasons(self, sets: list[Rows], prices: list[Price], rows: Rows, start: Longs) -> list[Reason]:
        """Why each of some sets of tasks, with its price, does not go; they are ``rows`` from each ``start`` on too."""
        chosen, least = self._made.price, compared(self._made.price)
        cheaper = [at for at, price in enumerate(prices) if compared(price) < least]
        refused = dict(zip(cheaper, self._refused([sets[at] for at in cheaper]), strict=True))
        whys = [
            refused[at] if at in refused else Reason.COSTLIER if decisive(chosen, price) else Reason.EQUAL
            for at, price in enumerate(prices)
        ]
        enough = self._enough(rows, start).tolist() if None in whys else [True] * len(sets)
        lesser = Reason.TOO_LITTLE, Reason.OUTRANKED
        return [why or lesser[suffices] for why, suffices in zip(whys, enough, strict=True)]

    def _refused(self, sets: list[Rows]) -> list[Reason | None]:
        """Why the tasks of each set do not go whatever room they leave; None if nothing speaks against it."""
        host, asked = self._asked.host, self._asked
        if not sets:
            return []
        if asked.by_task:
            may = [host.task_victims(asked.preemptor, rows, asked.point).all() for rows in sets]
            return [None if one else Reason.VETOED for one in may]
        spared, lawful = host.spares_each(asked.preemptor, sets), host.validate_each(asked.preemptor, sets)
        each = zip(spared.tolist(), lawful.tolist(), strict=True)
        return [Reason.VETOED if not may else None if together else Reason.ILLEGAL for may, together in each]

    def _enough(self, rows: Rows, start: Longs) -> Bools:
        """bool[M]: whether slots suffice for what the plan places once all tasks of a set have gone, for each set."""
        snapshot = self._snapshot
        shapes, kind = unique_inverse(snapshot.tasks.shape[self._placed])
        return _enough(
            rows, start, _columns_of(snapshot.tasks), snapshot.shapes.request, self._nodes, snapshot.room.future,
            snapshot.shapes.request[shapes], np.bincount(kind), self._asked.host.allowed(shapes.astype(np.int64)),
        )  # fmt: skip


@kernel
def _lost_instead(
    victims: Rows, nodes: tuple[int, int], there: Plain, members: Plain, may: Bools, rank: Longs, most: int,
    cluster_wide: bool, towards: tuple[Plain, Plain], columns: Plain,
) -> tuple[Rows, Bools, Rows, Longs, int]:  # fmt: skip
    """What podgroups with candidates on ``nodes``, and without victims, lose in their place: as many tasks, or all.

    One that breaks loses all of its candidates on the nodes, or in the cluster (``cluster_wide``). ``there`` and
    ``members`` are those of ``Occupancy``.

    Returns
    -------
    The ``most`` podgroups last in rank, int64[P], the last first; bool[P] whether each keeps its minimum; the tasks
    that they lose, int64[K], and where those of each begin, int64[P + 1]; and how many such podgroups there are.
    """
    minima, have, tasks = Minima(*towards[0]), writable(Have(*towards[1])), _TasksByRow(*columns)
    podgroup, node = tasks.podgroup, tasks.node
    (begin, end), (held, task), (first, member) = nodes, there, members
    groups, found = _last(task[held[begin] : held[end]], may, victims, podgroup, rank, most)
    safe, start = np.empty(len(groups), np.bool_), np.zeros(len(groups) + 1, np.int64)
    rows = np.empty((first[groups + 1] - first[groups]).sum(), np.int64)
    for at in range(len(groups)):
        mine = member[first[groups[at]] : first[groups[at] + 1]]
        every = mine[may[mine]]
        here = every[(node[every] >= begin) & (node[every] < end)]
        taken = here if len(here) <= len(victims) else _in_order(here, tasks)[: len(victims)]
        count_tasks(-1, taken, have, podgroup, tasks.role, tasks.subgroup)
        safe[at] = reaches(minima, have, groups[at])
        lost = taken if safe[at] else every if cluster_wide else here
        start[at + 1] = start[at] + len(lost)
        rows[start[at] : start[at + 1]] = np.sort(lost)
    return groups, safe, rows[: start[-1]], start, found


@linked
def _last(here: Rows, may: Bools, victims: Rows, podgroup: Ids, rank: Longs, most: int) -> tuple[Rows, int]:
    """The ``most`` last in rank of the podgroups with candidates here and no victims, and how many there are of all."""
    seen, groups, found = np.zeros(len(rank), np.bool_), np.empty(most, np.int64), 0
    seen[podgroup[victims]] = True
    for row in here:
        group = podgroup[row]
        if may[row] and not seen[group]:
            seen[group], at = True, min(found, most)
            found += 1
            while at > 0 and rank[groups[at - 1]] < rank[group]:
                if at < most:
                    groups[at] = groups[at - 1]
                at -= 1
            if at < most:
                groups[at] = group
    return groups[:found], found


@inlined
def _in_order(rows: Rows, tasks: _TasksByRow) -> Rows:
    """The tasks in the order in which they go: by priority, and then the last in order first."""
    by_order = rows[np.argsort(-tasks.order[rows], kind="mergesort")]
    return by_order[np.argsort(tasks.priority[by_order], kind="mergesort")]


@kernel
def _enough(
    rows: Rows, start: Longs, columns: Plain, held: Longs, nodes: tuple[int, int], room: Longs,
    request: Longs, wanted: Longs, allowed: Bools,
) -> Bools:  # fmt: skip
    """bool[M]: whether ``nodes``, from the first up to the last, have enough slots for each shape once a set has gone.

    Set ``s`` is ``rows[start[s]:start[s + 1]]``. Of the shapes are ``request`` int64[S, R], ``wanted`` int64[S] and
    ``allowed`` bool[S, N]; ``room`` is int64[N, R].
    """
    tasks, (first, stop) = _TasksByRow(*columns), nodes
    node, shape = tasks.node, tasks.shape
    there, allowed = room[first:stop], allowed[:, first:stop]
    left, slots, enough = there.copy(), np.empty(len(wanted), np.int64), np.empty(len(start) - 1, np.bool_)
    for s in range(len(wanted)):
        slots[s] = sum_slots(request, s, wanted[s], allowed, left)
    for one in range(len(enough)):
        more, mine = slots.copy(), rows[start[one] : start[one + 1]]
        mine = mine[(node[mine] >= first) & (node[mine] < stop)]
        for row in mine:
            left[node[row] - first] += held[shape[row]]
        for row in mine:
            at = node[row] - first
            for s in range(len(wanted)):
                if allowed[s, at]:
                    more[s] += slots_at(request, s, left, at, wanted[s]) - slots_at(request, s, there, at, wanted[s])
            left[at] = there[at]  # so that further tasks of the node count nothing more
        enough[one] = (more >= wanted).all()
    return enough
