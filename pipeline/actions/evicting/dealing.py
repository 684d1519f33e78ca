"""Room for the minima of podgroups of one kind or rank is sought at once and dealt out: a plan for each.

The search is that for one gang of all of them, so that together they do not break more than one after the other. Each
plan takes what its nodes and the limits of its queue still lack when its turn comes; so it can be carried out if those
before it were.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from pipeline.actions.evicting.lawful_in_turn import lawful_in_turn
from pipeline.actions.evicting.victims_of_each import victims_of_each
from pipeline.cluster.arrays import NONE, Longs, Rows, sealed
from pipeline.cluster.orders import first_of
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import VictimBundle
from pipeline.decision.headroom import line_limits, queues_take, queues_take_lasting
from pipeline.decision.plan import Plan, assumptions_of
from pipeline.decision.price import Price, lost_work, prices_of
from pipeline.decision.statement import Statement
from pipeline.placement.need import need_of
from pipeline.plugins.host import Host
from pipeline.policy import Purpose
from pipeline.records import replace
from pipeline.solvers.registry import BY_PARTS


def can_be_dealt(snapshot: Snapshot, some: Sequence[GangGroup]) -> bool:
    """Whether nothing but the resources of nodes decides where the waiting tasks of some podgroups fit."""
    tasks, _ = snapshot.waiting_of(np.array([row for one in some for row in one]))
    return not snapshot.shapes.on_card[snapshot.tasks.shape[tasks]].any() and not concerns(snapshot, tasks)


def dealt_plans(attempt: Attempt, host: Host, whole: Plan) -> tuple[Plan, ...]:
    """A plan for each of the attempt's podgroups, in order, from the plan for all of them.

    There are none where that plan does more than evict and promise each of their tasks a node. They end before one that
    would not be lawful in its turn.

    Parameters
    ----------
    attempt
        For podgroups all of whose tasks wait; they can be dealt with.
    host
        The plugins on the attempt's snapshot.
    """
    snapshot, made = attempt.snapshot, whole.statement
    every, start = _asking(snapshot, attempt.podgroups)
    if not np.array_equal(np.sort(every), made.nominated) or (made.nominated_node == NONE).any() or len(made.bound):
        return ()
    nodes = sealed(made.nominated_node[np.searchsorted(made.nominated, every)])
    asked: Longs = snapshot.request_of(every)
    limits = line_limits(host, attempt.podgroups[0])
    gone, gone_start, within = victims_of_each(snapshot, made.evictions, nodes, start, asked, limits)
    cardless = sealed(np.full(len(every), NONE, np.int64))
    spans = zip(attempt.podgroups, pairwise(gone_start.tolist()), pairwise(start.tolist()), strict=True)
    statements = [
        Statement(
            action=attempt.action,
            purpose=attempt.purpose,
            preemptor=row,
            evictions=gone[first:last],
            nominated=every[begin:end],
            nominated_node=nodes[begin:end],
            nominated_card=cardless[begin:end],
        )
        for row, (first, last), (begin, end) in spans
    ]
    statements = statements[: within if limits.counted else len(statements)]
    statements = statements[: _lawful(attempt, host, statements, rooms=not limits.counted)]
    return _plans(attempt, host, whole, statements) if statements else ()


def _asking(snapshot: Snapshot, podgroups: Sequence[int]) -> tuple[Rows, Longs]:
    """The tasks of the minima of some podgroups, int64[K], ascending for each, and where those of each begin."""
    tasks = need_of(snapshot, podgroups, surplus=False).tasks
    owner = snapshot.tasks.podgroup[tasks]  # each has some, one podgroup after the other
    start = np.concatenate([[0], 1 + np.flatnonzero(owner[1:] != owner[:-1]), [len(tasks)]])
    turn = np.arange(len(start) - 1).repeat(np.diff(start))
    return sealed(tasks[np.lexsort((tasks, turn))]), start


def _lawful(attempt: Attempt, host: Host, statements: Sequence[Statement], *, rooms: bool) -> int:
    """How many leading statements are lawful each after those before it, as all are together.

    All of them may fit a queue that none fits before the others' victims have gone (``rooms``: that was not counted);
    the victims of one may be too many for what it asks for; and an ancestor of both queues may fall below what it
    deserves until the last of them holds its room. It does not where the victims of each hold no more than it asks for.
    """
    if not statements:
        return 0
    snapshot, groups = attempt.snapshot, attempt.snapshot.podgroups
    has_parent = snapshot.queues.parent[groups.queue[attempt.podgroups[0]]] != NONE
    # Where victims return one after the other, `leading_plans` asks about the sets.
    by_parts = attempt.policy.solver(attempt.action) in BY_PARTS
    sets = bool(has_parent) and attempt.purpose is Purpose.RECLAIM and not by_parts
    sets = host.bounds_each or (sets and _take_more(snapshot, statements))
    every = np.concatenate([made.nominated for made in statements])
    rooms = not (queues_take(host, every) if rooms else queues_take_lasting(host, every))
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
    result, kinds = list[Price](), dict[bytes, list[Price]]()
    for at, made in enumerate(statements):
        shapes = snapshot.tasks.shape[made.nominated]
        kind = shapes.tobytes()
        if kind not in kinds:
            requested = snapshot.shapes.request[shapes].sum(axis=0)
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
