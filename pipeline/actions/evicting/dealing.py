"""Room for podgroups alike, which need all of their tasks, is sought at once and then dealt out: to each its own plan.

The search is that for one gang of all of them, so that together they do not break more than one after the other. Each
plan takes what its nodes still lack when its turn comes; so it can be carried out if those before it were. Where a
queue's limit is what victims are needed for, each podgroup is searched for alone.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from pipeline.actions.evicting.lawful_in_turn import lawful_in_turn
from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Longs, Rows, distinct, offsets, sealed
from pipeline.cluster.orders import first_of, kinds_of
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.rules.minima_met import breaks_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import VictimBundle
from pipeline.decision.headroom import takes
from pipeline.decision.plan import Plan, assumptions_of
from pipeline.decision.price import lost_work, prices_of
from pipeline.decision.statement import Statement
from pipeline.kernels import inlined, writing
from pipeline.plugins.host import Host
from pipeline.policy import Purpose
from pipeline.records import replace


def can_be_dealt(snapshot: Snapshot, podgroup: int) -> bool:
    """Whether nothing but the resources of nodes decides where the waiting tasks of a podgroup of this kind fit."""
    tasks = snapshot.pending(podgroup)
    return not snapshot.shapes.on_card[snapshot.tasks.shape[tasks]].any() and not concerns(snapshot, tasks)


def dealt(attempt: Attempt, host: Host, whole: Plan) -> tuple[Plan, ...]:
    """A plan for each of the attempt's podgroups, in order, from the plan for all of them.

    There are none where that plan does more than evict and promise each of their tasks a node. They end before one that
    would not be lawful in its turn: victims that make no room on a node, but below a limit, are not dealt.

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
    asked: Longs = snapshot.shapes.request[snapshot.tasks.shape[every[0]]]
    gone, gone_start = _dealt_victims(snapshot, made.evictions, nodes, start, asked)
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
    statements = statements[: _lawful(attempt, host, statements)]
    return _plans(attempt, host, whole, statements) if statements else ()


def _lawful(attempt: Attempt, host: Host, statements: Sequence[Statement]) -> int:
    """How many leading statements are lawful each after those before it, as all are together.

    All of them may fit a queue that none fits before the others' victims have gone; and an ancestor of both queues may
    fall below what it deserves until the last of them holds its room.
    """
    snapshot, groups = attempt.snapshot, attempt.snapshot.podgroups
    has_parent = snapshot.queues.parent[groups.queue[attempt.podgroups[0]]] != NONE
    # Under a policy that leaves the rest to allocate, `leftovers.in_turn` asks about the sets.
    sets = bool(has_parent) and attempt.purpose is Purpose.RECLAIM and not attempt.policy.leaves_rest_to_allocate
    if not sets and takes(host, np.concatenate([made.nominated for made in statements])):
        return len(statements)
    return lawful_in_turn(snapshot, host, statements, sets=sets, rooms=True)


def _dealt_victims(snapshot: Snapshot, rows: Rows, nodes: Rows, start: Longs, asked: Longs) -> tuple[Rows, Longs]:
    """The victims of the whole plan that go for each podgroup, int64[V'], ascending for each, and where those begin.

    Parameters
    ----------
    rows: int64[V]
        The victims of the whole plan.
    nodes, start: int64[K], int64[P + 1]
        The nodes of the podgroups' tasks, which are those at ``start[p]:start[p + 1]``.
    asked: int64[R]
        What each task asks for.
    """
    tasks, request = snapshot.tasks, np.ascontiguousarray(snapshot.shapes.request[:, asked > 0])
    owner = tasks.podgroup[rows].astype(np.int64)
    breaks = _breaking(snapshot, owner, rows)
    # The tasks of a podgroup that breaks go together, all others alone.
    _, unit = kinds_of(np.where(breaks, owner, -1 - np.arange(len(rows))))
    there = distinct(nodes)
    at = np.searchsorted(there, tasks.node[rows])
    at[(at == len(there)) | (there[np.minimum(at, len(there) - 1)] != tasks.node[rows])] = len(there)
    by_node = np.lexsort((breaks, at))  # surplus first
    room = snapshot.room.future_of(there)[:, asked > 0]
    taker = _takers(
        start, np.searchsorted(there, nodes), asked[asked > 0], np.ascontiguousarray(room),
        np.searchsorted(at[by_node], np.arange(len(there) + 1)), by_node,
        unit, np.argsort(unit, kind="stable"), offsets(unit, int(unit.max(initial=-1)) + 1),
        at, request[tasks.shape[rows]],
    )[unit]  # fmt: skip
    order = np.lexsort((rows, taker))
    return sealed(rows[order]), np.searchsorted(taker[order], np.arange(len(start)))


@writing("left")
def _takers(start: Longs, node: Rows, asked: Longs, left: Longs, here_start: Longs, here: Rows, unit: Rows,
            member: Rows, member_start: Longs, at: Rows, held: Longs) -> Rows:  # fmt: skip
    """int64[U]: for which plan each unit of victims goes, NONE for none. One plan after the other takes its nodes.

    Parameters
    ----------
    start, node: int64[P + 1], int64[K]
        The nodes of each plan's tasks, as rows of ``left``.
    asked, left: int64[R'], int64[M, R']
        What each task asks for, and the room of the nodes, which is changed; of the resources that are asked for.
    here_start, here: int64[M + 1], int64[V]
        The victims of each node, in the order in which they are taken.
    unit, member, member_start: int64[V], int64[V], int64[U + 1]
        The unit of each victim, and the victims of each unit.
    at, held: int64[V], int64[V, R']
        The node of each victim (M: none of them), and what it holds.
    """
    taker = np.full(len(member_start) - 1, NONE, np.int64)
    taken = np.empty(len(taker), np.int64)
    for plan in range(len(start) - 1):
        mine, many = node[start[plan] : start[plan + 1]], 0
        for there in mine:
            for victim in here[here_start[there] : here_start[there + 1]]:
                if (left[there] >= asked).all():
                    break
                if taker[unit[victim]] == NONE:
                    taken[many], taker[unit[victim]] = unit[victim], plan
                    many += 1
                    _move(1, unit[victim], member, member_start, at, held, left)
            left[there] -= asked
        for one in taken[:many]:  # one that went early may not be needed any more
            _move(-1, one, member, member_start, at, held, left)
            enough = True
            for there in mine:
                enough &= (left[there] >= 0).all()
            if enough:
                taker[one] = NONE
            else:
                _move(1, one, member, member_start, at, held, left)
    return taker


@inlined
def _move(sign: int, unit: int, member: Rows, member_start: Longs, at: Rows, held: Longs, left: Longs) -> None:
    """Let the victims of a unit go (1) or return (-1)."""
    for victim in member[member_start[unit] : member_start[unit + 1]]:
        if at[victim] < len(left):
            left[at[victim]] += sign * held[victim]


def _breaking(snapshot: Snapshot, owner: Rows, rows: Rows) -> Bools:
    """bool[V]: victims of podgroups that break; ``owner`` int64[V] is the podgroup of each."""
    groups, at = kinds_of(owner)
    return np.asarray(breaks_without(snapshot, groups, rows)[at])


def _plans(attempt: Attempt, host: Host, whole: Plan, statements: Sequence[Statement]) -> tuple[Plan, ...]:
    """The plans of the statements, each at its own price; they share the explanation of the whole."""
    snapshot, rank = attempt.snapshot, host.price_rank(attempt.purpose, attempt.podgroups[0])
    requested = snapshot.shapes.request[snapshot.tasks.shape[statements[0].nominated]].sum(axis=0)
    lost = lost_work(snapshot, attempt.now)
    prices = prices_of(snapshot, [one.evictions for one in statements], requested, lost, rank, whole.domain)
    assumed = assumptions_of(attempt, statements)
    taken = _taken(snapshot, whole.explanation.bundles, [one.evictions for one in statements])
    why = replace(whole.explanation, together=len(statements), minimum=len(statements[0].nominated))
    return tuple(
        Plan(
            made, assumes, price, whole.domain, whole.expires_at,
            replace(why, preemptor=made.preemptor, bundles=bundles),
        )
        for made, assumes, price, bundles in zip(statements, assumed, prices, taken, strict=True)
    )  # fmt: skip


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
