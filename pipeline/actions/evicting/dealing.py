"""Room for podgroups of one kind or rank, which need all their tasks, is sought at once and dealt out: a plan for each.

The search is that for one gang of all of them, so that together they do not break more than one after the other. Each
plan takes what its nodes and the limits of its queue still lack when its turn comes; so it can be carried out if those
before it were.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from pipeline.actions.backoff import GangGroup
from pipeline.actions.evicting.lawful_in_turn import lawful_in_turn
from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Longs, Rows, distinct, offsets, sealed
from pipeline.cluster.orders import first_of, kinds_of
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.rules.minima_met import breaks_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import VictimBundle
from pipeline.decision.headroom import LineLimits, limits_of, takes, takes_lasting
from pipeline.decision.plan import Plan, assumptions_of
from pipeline.decision.price import Price, lost_work, prices_of
from pipeline.decision.statement import Statement
from pipeline.kernels import inlined, writing
from pipeline.plugins.host import Host
from pipeline.policy import Purpose
from pipeline.records import replace


def can_be_dealt(snapshot: Snapshot, some: Sequence[GangGroup]) -> bool:
    """Whether nothing but the resources of nodes decides where the waiting tasks of some podgroups fit."""
    tasks, _ = snapshot.waiting_of(np.array([row for one in some for row in one]))
    return not snapshot.shapes.on_card[snapshot.tasks.shape[tasks]].any() and not concerns(snapshot, tasks)


def dealt(attempt: Attempt, host: Host, whole: Plan) -> tuple[Plan, ...]:
    """A plan for each of the attempt's podgroups, in order, from the plan for all of them.

    There are none where that plan does more than evict and promise each of their tasks a node. They end before one that
    would not be lawful in its turn.

    Parameters
    ----------
    attempt
        For podgroups that need all of their tasks, which wait and can be dealt with.
    host
        The plugins on the attempt's snapshot.
    """
    snapshot, made = attempt.snapshot, whole.statement
    every, start = snapshot.waiting_of(np.array(attempt.podgroups))
    if not np.array_equal(np.sort(every), made.nominated) or (made.nominated_node == NONE).any() or len(made.bound):
        return ()
    nodes = sealed(made.nominated_node[np.searchsorted(made.nominated, every)])
    asked: Longs = snapshot.shapes.request[snapshot.tasks.shape[every[start[:-1]]]]
    limits = limits_of(host, attempt.podgroups[0])
    gone, gone_start, within = _dealt_victims(snapshot, made.evictions, nodes, start, asked, limits)
    cardless = sealed(np.full(len(every), NONE, np.int64))
    spans = zip(attempt.podgroups, pairwise(gone_start.tolist()), pairwise(start.tolist()), strict=True)
    statements = [
        Statement(
            action=attempt.asked_by,
            purpose=attempt.purpose,
            preemptor=row,
            evictions=gone[first:last],
            nominated=every[begin:end],
            nominated_node=nodes[begin:end],
            nominated_card=cardless[begin:end],
            bound=NO_ROWS,
            bound_node=NO_ROWS,
            bound_card=NO_ROWS,
            admitted=NO_ROWS,
        )
        for row, (first, last), (begin, end) in spans
    ]
    statements = statements[: within if limits.counted else len(statements)]
    statements = statements[: _lawful(attempt, host, statements, rooms=not limits.counted)]
    return _plans(attempt, host, whole, statements) if statements else ()


def _lawful(attempt: Attempt, host: Host, statements: Sequence[Statement], *, rooms: bool) -> int:
    """How many leading statements are lawful each after those before it, as all are together.

    All of them may fit a queue that none fits before the others' victims have gone (``rooms``: that was not counted);
    and an ancestor of both queues may fall below what it deserves until the last of them holds its room. It does not
    where the victims of each hold no more than it asks for.
    """
    if not statements:
        return 0
    snapshot, groups = attempt.snapshot, attempt.snapshot.podgroups
    has_parent = snapshot.queues.parent[groups.queue[attempt.podgroups[0]]] != NONE
    # Under a policy that leaves the rest to allocate, `leftovers.in_turn` asks about the sets.
    sets = bool(has_parent) and attempt.purpose is Purpose.RECLAIM and not attempt.policy.leaves_rest_to_allocate
    sets = sets and _take_more(snapshot, statements)
    every = np.concatenate([made.nominated for made in statements])
    rooms = not (takes(host, every) if rooms else takes_lasting(host, every))
    if not sets and not rooms:
        return len(statements)
    return lawful_in_turn(snapshot, host, statements, sets=sets, rooms=rooms)


def _take_more(snapshot: Snapshot, statements: Sequence[Statement]) -> bool:
    """Whether the victims of one of the statements hold more of some resource than its tasks ask for."""
    shape, request = snapshot.tasks.shape, snapshot.shapes.request
    more = np.zeros((len(statements), request.shape[1]), np.int64)
    gone, placed = [made.evictions for made in statements], [made.nominated for made in statements]
    for sets, add in ((gone, np.add), (placed, np.subtract)):
        add.at(more, np.repeat(np.arange(len(sets)), list(map(len, sets))), request[shape[np.concatenate(sets)]])
    more[:, PODS] = 0  # pods are not deserved
    return bool((more > 0).any())


def _dealt_victims(
    snapshot: Snapshot, rows: Rows, nodes: Rows, start: Longs, asked: Longs, limits: LineLimits
) -> tuple[Rows, Longs, int]:
    """The victims of the whole plan that go for each podgroup, int64[V'], ascending for each, and where those begin.

    And how many leading podgroups then keep the limits.

    Parameters
    ----------
    rows: int64[V]
        The victims of the whole plan.
    nodes, start: int64[K], int64[P + 1]
        The nodes of the podgroups' tasks, which are those at ``start[p]:start[p + 1]``.
    asked: int64[P, R]
        What a task of each podgroup asks for.
    limits
        Of the podgroups' queue.
    """
    some = (asked > 0).any(axis=0)
    tasks, request = snapshot.tasks, np.ascontiguousarray(snapshot.shapes.request[:, some])
    owner = tasks.podgroup[rows].astype(np.int64)
    breaks = _breaking(snapshot, owner, rows)
    # The tasks of a podgroup that breaks go together, all others alone.
    _, unit = kinds_of(np.where(breaks, owner, -1 - np.arange(len(rows))))
    there = distinct(nodes)
    room = np.concatenate([snapshot.room.future_of(there), limits.room])[:, some]
    at = np.searchsorted(there, tasks.node[rows])
    at[(at == len(there)) | (there[np.minimum(at, len(there) - 1)] != tasks.node[rows])] = len(room)
    by_node = np.lexsort((breaks, at))  # surplus first
    line = len(room) - limits.common[snapshot.podgroups.queue[owner]]
    taker, within = _takers(
        start, np.searchsorted(there, nodes), np.ascontiguousarray(asked[:, some]), np.ascontiguousarray(room),
        np.searchsorted(at[by_node], np.arange(len(there) + 1)), by_node,
        unit, np.argsort(unit, kind="stable"), offsets(unit, int(unit.max(initial=-1)) + 1),
        at, line, request[tasks.shape[rows]],
    )  # fmt: skip
    taker = taker[unit]
    order = np.lexsort((rows, taker))
    return sealed(rows[order]), np.searchsorted(taker[order], np.arange(len(start))), int(within)


@writing("left")
def _takers(start: Longs, node: Rows, asked: Longs, left: Longs, here_start: Longs, here: Rows, unit: Rows,
            member: Rows, member_start: Longs, at: Rows, line: Rows, held: Longs) -> tuple[Rows, int]:  # fmt: skip
    """int64[U]: for which plan each unit of victims goes, NONE for none. One plan after the other takes its nodes.

    And how many leading plans then keep the limits.

    Parameters
    ----------
    start, node: int64[P + 1], int64[K]
        The nodes of each plan's tasks, as rows of ``left``.
    asked, left: int64[P, R'], int64[M + A, R']
        What a task of each plan asks for, and the room of the nodes and then below the limits, which is changed; of the
        resources that are asked for.
    here_start, here: int64[M + 1], int64[V]
        The victims of each node, in the order in which they are taken.
    unit, member, member_start: int64[V], int64[V], int64[U + 1]
        The unit of each victim, and the victims of each unit.
    at, line, held: int64[V], int64[V], int64[V, R']
        The node of each victim (M + A: none of them), the first limit that it counts against, with all after it (M + A:
        none), and what it holds.
    """
    taker, limits, within = np.full(len(member_start) - 1, NONE, np.int64), len(here_start) - 1, len(start) - 1
    taken, untaken = np.empty(len(taker), np.int64), 0
    for plan in range(len(start) - 1):
        mine, asks, many = node[start[plan] : start[plan + 1]], asked[plan], 0
        for there in mine:
            for victim in here[here_start[there] : here_start[there + 1]]:
                if _covers(left[there], asks, 1):
                    break
                if taker[unit[victim]] == NONE:
                    taken[many], taker[unit[victim]] = unit[victim], plan
                    many += 1
                    _move(1, unit[victim], member, member_start, at, line, held, left)
            left[there] -= asks
        left[limits:] -= asks * len(mine)
        while untaken < len(taker) and taker[untaken] != NONE:
            untaken += 1
        for one in range(untaken, len(taker)):
            if _within(left[limits:], asks):
                break
            if taker[one] == NONE and _relieves(one, asks, member, member_start, line, held, left):
                taken[many], taker[one] = one, plan
                many += 1
                _move(1, one, member, member_start, at, line, held, left)
        if within > plan and not _within(left[limits:], asks):
            within = plan
        for one in taken[:many]:  # one that went early may not be needed any more
            _move(-1, one, member, member_start, at, line, held, left)
            enough = _within(left[limits:], asks)
            for there in mine:
                enough &= _covers(left[there], asks, 0)
            if enough:
                taker[one] = NONE
            else:
                _move(1, one, member, member_start, at, line, held, left)
    return taker, within


@inlined
def _covers(left: Longs, asks: Longs, many: int) -> bool:
    """Whether what is left (int64[R']) is enough for ``many`` tasks, of what they ask for."""
    enough = True
    for r in range(len(asks)):
        enough &= asks[r] <= 0 or left[r] >= many * asks[r]
    return enough


@inlined
def _within(left: Longs, asks: Longs) -> bool:
    """Whether limits that leave int64[A, R'] are not exceeded in anything that is asked for."""
    enough = True
    for limit in range(len(left)):
        enough &= _covers(left[limit], asks, 0)
    return enough


@inlined
def _relieves(one: int, asks: Longs, member: Rows, member_start: Longs, line: Rows, held: Longs, left: Longs) -> bool:
    """Whether a unit holds something of what is asked for and exceeded of a limit that it counts against."""
    for victim in member[member_start[one] : member_start[one + 1]]:
        if ((left[line[victim] :] < 0) & (held[victim] > 0) & (asks > 0)).any():
            return True
    return False


@inlined
def _move(
    sign: int, unit: int, member: Rows, member_start: Longs, at: Rows, line: Rows, held: Longs, left: Longs
) -> None:
    """Let the victims of a unit go (1) or return (-1)."""
    for victim in member[member_start[unit] : member_start[unit + 1]]:
        if at[victim] < len(left):
            left[at[victim]] += sign * held[victim]
        left[line[victim] :] += sign * held[victim]


def _breaking(snapshot: Snapshot, owner: Rows, rows: Rows) -> Bools:
    """bool[V]: victims of podgroups that break; ``owner`` int64[V] is the podgroup of each."""
    groups, at = kinds_of(owner)
    return np.asarray(breaks_without(snapshot, groups, rows)[at])


def _plans(attempt: Attempt, host: Host, whole: Plan, statements: Sequence[Statement]) -> tuple[Plan, ...]:
    """The plans of the statements, each at its own price; they share the explanation of the whole."""
    snapshot, gone = attempt.snapshot, [one.evictions for one in statements]
    prices, assumed = _prices(attempt, host, statements, whole.domain), assumptions_of(attempt, statements)
    taken = _taken(snapshot, whole.explanation.bundles, gone)
    why = replace(whole.explanation, together=len(statements))
    whys = (
        replace(why, preemptor=made.preemptor, minimum=len(made.nominated), bundles=bundles)
        for made, bundles in zip(statements, taken, strict=True)
    )
    return tuple(
        Plan(made, assumes, price, whole.expires_at, own)
        for made, assumes, price, own in zip(statements, assumed, prices, whys, strict=True)
    )


def _prices(attempt: Attempt, host: Host, statements: Sequence[Statement], domain: int) -> list[Price]:
    """The price of each statement, in units of what it places; of those that ask for the same at once."""
    snapshot, rank = attempt.snapshot, host.price_rank(attempt.purpose, attempt.podgroups[0])
    lost, gone = lost_work(snapshot, attempt.now), [made.evictions for made in statements]
    result, kinds = list[Price](), dict[tuple[int, int], list[Price]]()
    for at, made in enumerate(statements):
        kind = int(snapshot.tasks.shape[made.nominated[0]]), len(made.nominated)
        if kind not in kinds:
            requested = snapshot.shapes.request[kind[0]] * kind[1]
            kinds[kind] = prices_of(snapshot, gone, requested, lost, rank, domain)
        result.append(kinds[kind][at])
    return result


def _taken(
    snapshot: Snapshot, bundles: Sequence[VictimBundle], sets: Sequence[Rows]
) -> Iterator[tuple[VictimBundle, ...]]:
    """The bundles of the whole, as far as each plan takes from them, in the order in which it takes."""
    known, owner = {bundle.podgroup: bundle for bundle in bundles}, snapshot.tasks.podgroup[np.concatenate(sets)]
    of_set = np.repeat(np.arange(len(sets)), [len(some) for some in sets])
    pairs = of_set * len(snapshot.podgroups) + owner
    first, many = first_of(pairs)
    order = np.argsort(first)
    first = first[order]
    parts = [
        one if one is None or one.tasks == tasks else one._replace(tasks=tasks, elsewhere=0)
        for one, tasks in zip(map(known.get, owner[first].tolist()), many[order].tolist(), strict=True)
    ]
    for begin, end in pairwise(np.searchsorted(of_set[first], np.arange(len(sets) + 1)).tolist()):
        yield tuple(one for one in parts[begin:end] if one is not None)
