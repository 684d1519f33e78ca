"""What the selection in every domain would cost, in one compiled sweep, before any gang is laid out.

Where slots decide (one shape, interchangeable tasks, no vote that counts candidates off), a price needs neither a
layout nor the law. So every domain is priced with the stages of ``victims.select``, and only the cheapest is selected
for good. Document 1 looks at a few domains because it holds simulating them all to be too dear.
"""

from typing import Any

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows, dense_rank
from pipeline.decision.explanation import NO_PRIORITY, Price
from pipeline.kernels import kernel
from pipeline.solvers.bundles.cover import count_slots, lead, return_units
from pipeline.solvers.bundles.selection import Search, columns, valuable_first
from pipeline.solvers.bundles.sorting import sort_by
from pipeline.solvers.bundles.splitting import split


@kernel
def _order(safe: Bools, podgroup: Rows, efficiency: Floats, ranks: tuple[Longs, Longs], step: float) -> Rows:
    """Order of bundles, as ``bundles`` has it: kind, policy, efficiency in steps, policy; packed into one key.

    ``ranks`` are those ahead of and behind efficiency, int64[G], from 0 and below 2**20 and 2**21; the latter differ.
    """
    before, after = ranks
    key = np.empty(len(podgroup), np.int64)
    most = (1 << 21) - 1
    for i in range(len(podgroup)):
        level = 0
        if not safe[i]:
            level = int(min(efficiency[i] / step + 1e-9 if step > 0 else efficiency[i] * (1 << 20), most))
        group = podgroup[i]
        key[i] = (((0 if safe[i] else 1) << 20 | before[group]) << 21 | (most - level)) << 21 | after[group]
    return np.argsort(key)


@kernel
def _laid_out(order: Rows, stop: Longs, task: Rows) -> tuple[Longs, Rows]:
    """Ends and tasks of bundles in another order."""
    ends, moved, end = np.empty(len(order), np.int64), np.empty(len(task), np.int64), 0
    for i in range(len(order)):
        bundle = order[i]
        for at in range(stop[bundle - 1] if bundle > 0 else 0, stop[bundle]):
            moved[end] = task[at]
            end += 1
        ends[i] = end
    return ends, moved


@kernel
def _units(
    safe: Bools, podgroup: Rows, ends: Longs, task: Rows, loss: Floats, before: Longs, task_ranks: Any, everywhere: bool
) -> tuple[Longs, Rows, Rows, Rows]:
    """What can be given back, the most valuable first, as ``victims`` has it.

    Returns
    -------
    Where each unit ends, its tasks, the unit that must have returned before, and the bundle it belongs to.
    """
    priority, order = task_ranks
    many = len(ends)
    whole = np.flatnonzero(~safe)
    sort_by(whole, -loss[whole], -whole)
    sort_by(whole, -before[podgroup[whole]], np.arange(len(whole)))
    single, owner, singles, begin = np.empty(len(task), np.int64), np.empty(len(task), np.int64), 0, 0
    for bundle in range(many):
        if safe[bundle]:
            for at in range(begin, ends[bundle]):
                single[singles], owner[singles] = at, bundle
                singles += 1
        begin = ends[bundle]
    rows = task[single[:singles]]
    single = valuable_first(single[:singles], owner[:singles], many, priority[rows], order[rows])
    units = len(whole) + singles
    stop, moved, of = np.empty(units, np.int64), np.empty(len(task), np.int64), np.empty(units, np.int64)
    after, end = np.full(units, NONE, np.int64), 0
    for unit in range(len(whole)):
        bundle = whole[unit]
        for at in range(ends[bundle - 1] if bundle > 0 else 0, ends[bundle]):
            moved[end] = task[at]
            end += 1
        stop[unit], of[unit] = end, bundle
    gang_unit = np.full(many, NONE, np.int64)
    for unit in range(len(whole)):
        for bundle in range(many):
            if podgroup[bundle] == podgroup[whole[unit]]:
                gang_unit[bundle] = unit
    bundle_of, begin = np.empty(len(task), np.int64), 0
    for bundle in range(many):
        bundle_of[begin : ends[bundle]] = bundle
        begin = ends[bundle]
    for i in range(singles):
        unit = len(whole) + i
        bundle = bundle_of[single[i]]
        moved[end] = task[single[i]]
        end += 1
        stop[unit], of[unit] = end, bundle
        if everywhere:
            after[unit] = gang_unit[bundle]
    return stop, moved, after, of


@kernel
def _price(
    returned: Bools, of: Rows, unit_ends: Longs, unit_task: Rows, bundles: Any, loss: Floats, weights: Any
) -> tuple[int, int, int, int, int, float]:
    """Gangs broken, highest priority, unfairness, important, victims and lost work of what does not return."""
    safe, podgroup, elsewhere = bundles
    group_priority, group_unfairness, gang, unit, lost_work, shape, minimum, by_priority = weights
    lost = np.zeros(len(safe), np.bool_)  # bundles of gangs that break: their surplus is paid for with the gang
    for at in range(len(of)):
        if not returned[at] and not safe[of[at]]:
            lost |= podgroup == podgroup[of[at]]
    gangs, highest, unfair, important, victims, work, begin = 0, NO_PRIORITY, 0, 0, 0, 0.0, 0
    for at in range(len(of)):
        bundle = of[at]
        group = podgroup[bundle]
        if not returned[at]:
            going = unit_ends[at] - begin + (0 if safe[bundle] else elsewhere[bundle])
            if group_priority[group] > highest:
                highest, important = group_priority[group], 0
            important += going if by_priority and group_priority[group] == highest else 0
            unfair = max(unfair, group_unfairness[group])
            victims += going
            if not safe[bundle]:
                gangs += minimum[group] > 1  # a podgroup content with one task is no gang
                work += loss[bundle]
            elif gang[group] >= 0 and not lost[bundle]:
                work += unit[shape[unit_task[begin]]] * lost_work[group]
        begin = unit_ends[at]
    return gangs, highest, unfair, important, victims, work


@kernel
def _fewest_gangs(missing: int, chosen: Any, shape: Any, slots: Longs) -> int:
    """At least so many gangs must stay broken, whatever is given back.

    In one resource alone the slots of the need are at most what is free plus what each victim holds of it, rounded up:
    ``slots`` by shape. What is surplus, and podgroups that are no gangs, are counted as gone; of the gangs the largest
    go first.
    """
    safe, lone, ends, task = chosen
    size, gangs, begin = np.zeros(len(ends), np.int64), 0, 0
    for bundle in range(len(ends)):
        amount = 0
        for at in range(begin, ends[bundle]):
            amount += slots[shape[task[at]]]
        begin = ends[bundle]
        if safe[bundle] or lone[bundle]:
            missing -= amount
        else:
            size[gangs] = -amount
            gangs += 1
    size[:gangs].sort()
    for fewest in range(gangs):
        if missing <= 0:
            return fewest
        missing += size[fewest]
    return gangs


@kernel
def _idle_slots(allowed: Bools, first: int, room: Longs, scarce: int, asked: int) -> int:
    """Slots that one resource alone would give."""
    slots = 0
    for n in range(len(room)):
        if room[n, scarce] >= asked and allowed[0, first + n]:
            slots += room[n, scarce] // asked
    return slots


@kernel
def appraise(
    starts: Rows,
    stops: Rows,
    occupancy: Longs,
    parts: Any,
    site: Any,
    ranks: Any,
    step: float,
    weights: Any,
    scarce: int,
) -> tuple[Bools, Bools, Longs, Floats]:
    """Price the selection on each slice of nodes ``starts[i]:stops[i]``.

    Parameters
    ----------
    occupancy: int64[N + 1]
        Where the tasks of each node begin; tasks are counted in this order here, so that a domain's lie together.
    parts
        Arguments of ``split`` behind the tasks; see ``victims.columns``.
    site
        Idle, terminating and nominated room; node and shape of tasks; request of shapes; request, count and allowed of
        the need.
    ranks
        Ranks of podgroups ahead of and behind efficiency, see ``_order``.
    weights
        Priority and unfairness of podgroups, their surplus, units of shapes, lost work, shape of tasks.

    Returns
    -------
    bool[D]: whether there is a selection; bool[D]: whether it was left unpriced, because it must break more gangs than
    one before it; int64[D, 5]: gangs broken, highest priority, unfairness, victims, important ones; float64[D]: lost
    work.
    """
    tasks, gangs, surplus, scale, flags, seats = parts
    idle, terminating, nominated, node, shape, held, request, count, allowed = site
    found, counts, work = np.zeros(len(starts), np.bool_), np.zeros((len(starts), 5), np.int64), np.zeros(len(starts))
    fewest = len(surplus[0])
    upper = -(-held[:, scarce] // request[0, scarce])
    unpriced = np.zeros(len(starts), np.bool_)
    for at in range(len(starts)):
        first, last = starts[at], stops[at]
        room = idle[first:last] + terminating[first:last] - nominated[first:last]
        slots, total = count_slots(request, count, allowed, first, room)
        state = (first, node, shape, held, request, count, allowed, room, slots, total)
        counts[at, 1] = NO_PRIORITY
        if total[0] >= count[0]:
            found[at] = True
            continue
        missing = count[0] - _idle_slots(allowed, first, room, scarce, request[0, scarce])
        entries = np.arange(occupancy[first], occupancy[last])
        podgroup, safe, stop, task, elsewhere, efficiency, cost = split(
            entries, tasks, gangs, surplus, scale, flags, seats
        )
        order = _order(safe, podgroup, efficiency, ranks, step)
        ends, task = _laid_out(order, stop, task)
        many = lead(ends, task, state)
        if many == NONE:
            continue
        order = order[:many]
        podgroup, safe, elsewhere = podgroup[order], safe[order], elsewhere[order]
        lone = weights[6][podgroup] <= 1
        least = _fewest_gangs(missing, (safe, lone, ends[:many], task), shape, upper)
        if least > fewest:
            found[at] = unpriced[at] = True
            continue
        loss = cost[order] * weights[4][podgroup]
        task = task[: ends[many - 1]]
        unit_ends, unit_task, after, of = _units(
            safe, podgroup, ends[:many], task, loss, ranks[0], (tasks[6], tasks[7]), flags[1]
        )
        returned = np.zeros(len(of), np.bool_)
        return_units(0, (unit_ends, unit_task, after), returned, True, room[:0], state)
        broken, highest, unfair, important, victims, lost = _price(
            returned, of, unit_ends, unit_task, (safe, podgroup, elsewhere), loss, weights
        )
        found[at], work[at] = True, lost
        counts[at, 0], counts[at, 1], counts[at, 2], counts[at, 3] = broken, highest, unfair, victims
        counts[at, 4] = important
        fewest = min(fewest, broken)
    return found, unpriced, counts, work


def _from_zero(ranks: Longs) -> Longs:
    """The same order in small numbers; ranks that lie far apart are closed up."""
    low = int(ranks.min(initial=0))
    return ranks - low if int(ranks.max(initial=0)) - low < 1 << 20 else dense_rank(ranks)


def priceable(search: Search) -> bool:
    """Whether slots decide everything in this search, and its podgroups can be told apart by one key."""
    decided = len(search.need.shapes) == 1 and search.interchangeable and search.quota_filter is None
    return decided and len(search.snapshot.podgroups) < 1 << 20


def prices(search: Search, domains: Rows) -> tuple[list[Price | None], Bools]:
    """What the selection in each domain would cost; for searches in which slots decide.

    Returns
    -------
    Per domain the price, None where there is no selection or it was not priced; bool[D]: it was not priced, because it
    must break more gangs than another that was.
    """
    snapshot = search.snapshot
    topology, placed, groups, room = snapshot.topology, snapshot.placed, snapshot.podgroups, snapshot.room
    tasks = (
        search.candidate[snapshot.occupancy.task], placed.status, placed.podgroup, placed.role, placed.subgroup,
        placed.shape, placed.priority, placed.order,
    )  # fmt: skip
    total = np.maximum(room.future, 0).sum(axis=0)
    scarce = int(np.argmax(search.need.total / (total + 1.0)))
    found, unpriced, counts, work = appraise(
        topology.start[domains],
        topology.stop[domains],
        snapshot.occupancy.start,
        (tasks, *columns(search)[1:]),
        (
            room.idle, room.terminating, room.nominated, placed.node, placed.shape, snapshot.shapes.request,
            search.need.request, search.need.count, search.allowed,
        ),
        (_from_zero(search.before), _from_zero(search.after)),
        search.efficiency_step,
        (
            groups.priority, search.unfairness, search.surplus.gang, search.units, search.lost_work, placed.shape,
            groups.min_available, search.by_priority,
        ),
        scarce,
    )  # fmt: skip
    tier = topology.tier[domains]
    priced = [
        Price(
            budgets_violated=0,
            gangs_broken=int(counts[at, 0]),
            highest_priority=int(counts[at, 1]),
            unfairness=int(counts[at, 2]),
            important=int(counts[at, 4]),
            lost_work=round(float(work[at]), 6),
            victims=int(counts[at, 3]),
            tier=int(tier[at]),
            domain=int(domain),
        )
        if found[at] and not unpriced[at]
        else None
        for at, domain in enumerate(domains.tolist())
    ]
    return priced, unpriced
