"""What the selection in every domain would cost, in one compiled sweep, before any gang is laid out.

Where slots decide (one shape, interchangeable tasks, no vote that counts candidates off), a price needs neither a
layout nor the law. So every domain is priced with the stages of ``victims.select``, and only the cheapest is selected
for good. Document 1 looks at a few domains because it holds simulating them all to be too dear.
"""

from typing import Any

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.compiled import kernel
from pipeline.cover import count_slots, lead, return_units
from pipeline.explanation import NO_PRIORITY, Price
from pipeline.sorting import sort_by
from pipeline.splitting import split
from pipeline.victims import Search, columns, valuable_first


@kernel
def _order(safe: Bools, podgroup: Rows, efficiency: Floats, ranks: tuple[Longs, Longs, Longs], step: float) -> Rows:
    """Order of bundles: kind, policy, efficiency in steps, policy, the podgroup's own rank, as ``bundles`` has it."""
    before, after, last = ranks
    many = len(podgroup)
    order, high, low = np.arange(many), np.empty(many, np.int64), np.empty(many, np.int64)
    for i in range(many):
        high[i], low[i] = after[podgroup[i]], last[podgroup[i]]
    sort_by(order, high, low)
    level = np.empty(many, np.float64)
    for i in range(many):
        worth = 0.0 if safe[order[i]] else efficiency[order[i]]
        level[i], low[i] = -(np.floor(worth / step + 1e-9) if step > 0 else worth), i
    sort_by(order, level, low)
    for i in range(many):
        high[i], low[i] = before[podgroup[order[i]]] + (0 if safe[order[i]] else 1 << 60), i
    sort_by(order, high, low)
    return order


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
def appraise(
    starts: Rows,
    stops: Rows,
    occupancy: Longs,
    parts: Any,
    site: Any,
    ranks: Any,
    step: float,
    weights: Any,
) -> tuple[Bools, Longs, Floats]:
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
        Ranks of podgroups before and behind efficiency, and the last.
    weights
        Priority and unfairness of podgroups, their surplus, units of shapes, lost work, shape of tasks.

    Returns
    -------
    bool[D]: whether there is a selection; int64[D, 5]: gangs broken, highest priority, unfairness, victims, important
    ones; float64[D]: lost work.
    """
    tasks, gangs, surplus, scale, flags = parts
    idle, terminating, nominated, node, shape, held, request, count, allowed = site
    found, counts, work = np.zeros(len(starts), np.bool_), np.zeros((len(starts), 5), np.int64), np.zeros(len(starts))
    for at in range(len(starts)):
        first, last = starts[at], stops[at]
        room = idle[first:last] + terminating[first:last] - nominated[first:last]
        slots, total = count_slots(request, count, allowed, first, room)
        state = (first, node, shape, held, request, count, allowed, room, slots, total)
        counts[at, 1] = NO_PRIORITY
        if total[0] >= count[0]:
            found[at] = True
            continue
        entries = np.arange(occupancy[first], occupancy[last])
        podgroup, safe, stop, task, elsewhere, efficiency, cost = split(entries, tasks, gangs, surplus, scale, flags)
        order = _order(safe, podgroup, efficiency, ranks, step)
        ends, task = _laid_out(order, stop, task)
        many = lead(ends, task, state)
        if many == NONE:
            continue
        order = order[:many]
        podgroup, safe, elsewhere = podgroup[order], safe[order], elsewhere[order]
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
    return found, counts, work


def priceable(search: Search) -> bool:
    """Whether slots decide everything in this search."""
    return len(search.need.shapes) == 1 and search.interchangeable and search.vote is None


def prices(search: Search, domains: Rows) -> list[Price | None]:
    """What the selection in each domain would cost, None where there is none; for searches in which slots decide."""
    snapshot = search.snapshot
    topology, placed, groups, room = snapshot.topology, snapshot.placed, snapshot.podgroups, snapshot.room
    tasks = (
        search.candidate[snapshot.occupancy.task], placed.status, placed.podgroup, placed.role, placed.subgroup,
        placed.shape, placed.priority, placed.order,
    )  # fmt: skip
    found, counts, work = appraise(
        topology.start[domains],
        topology.stop[domains],
        snapshot.occupancy.start,
        (tasks, *columns(search)[1:]),
        (
            room.idle, room.terminating, room.nominated, placed.node, placed.shape, snapshot.shapes.request,
            search.need.request, search.need.count, search.allowed,
        ),
        (search.before, search.after, groups.order),
        search.efficiency_step,
        (
            groups.priority, search.unfairness, search.surplus.gang, search.units, search.lost_work, placed.shape,
            groups.min_available, search.by_priority,
        ),
    )  # fmt: skip
    tier = topology.tier[domains]
    return [
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
        if found[at]
        else None
        for at, domain in enumerate(domains.tolist())
    ]
