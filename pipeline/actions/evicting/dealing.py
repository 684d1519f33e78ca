"""Room for podgroups alike, which need all of their tasks, is sought at once and then dealt out: to each its own plan.

The search is that for one gang of all of them, so that together they do not break more than one after the other. Each
plan takes what its nodes still lack when its turn comes; so it can be carried out if those before it were.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.rules.minimum import breaks_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import VictimBundle
from pipeline.decision.plan import Plan, assumptions
from pipeline.decision.price import lost_work, prices_of
from pipeline.decision.statement import Statement, statement
from pipeline.plugins.host import Host
from pipeline.policy import Purpose


def can_be_dealt(snapshot: Snapshot, podgroup: int) -> bool:
    """Whether nothing but the resources of nodes decides where the waiting tasks of a podgroup of this kind fit."""
    tasks = snapshot.pending(podgroup)
    return not snapshot.shapes.on_card[snapshot.tasks.shape[tasks]].any() and not concerns(snapshot, tasks)


def dealt(attempt: Attempt, host: Host, whole: Plan) -> tuple[Plan, ...]:
    """A plan for each of the attempt's podgroups, in order, from the plan for all of them.

    There are none where that plan does more than evict and promise each of their tasks a node.

    Parameters
    ----------
    attempt
        For podgroups that need all of their tasks, which wait and can be dealt with.
    host
        The plugins on the attempt's snapshot.
    """
    snapshot, made = attempt.snapshot, whole.statement
    tasks = [snapshot.pending(row) for row in attempt.podgroups]
    places = dict(zip(made.nominated.tolist(), made.nominated_node.tolist(), strict=True))
    if places.keys() != set(np.concatenate(tasks).tolist()) or NONE in places.values() or len(made.bound):
        return ()
    asked: Longs = snapshot.shapes.request[snapshot.tasks.shape[tasks[0][0]]]
    victims = _Victims(snapshot, made.evictions, np.unique(made.nominated_node), asked)
    statements = []
    for row, mine in zip(attempt.podgroups, tasks, strict=True):
        nodes = [places[task] for task in mine.tolist()]
        gone = victims.making_room(nodes)
        statements.append(
            statement(
                attempt.asked_by, row, purpose=attempt.purpose, evictions=gone, nominated=mine,
                nominated_node=np.array(nodes),
            )
        )  # fmt: skip
    return _plans(attempt, host, whole, statements)


class _Victims:
    """The victims of the whole plan that did not go yet, and the room that each of its nodes has by then.

    Amounts are plain numbers, of the resources that tasks ask for: there are few, and one task after the other is
    looked at.
    """

    def __init__(self, snapshot: Snapshot, rows: Rows, nodes: Rows, asked: Longs) -> None:
        tasks, request = snapshot.tasks, snapshot.shapes.request[:, asked > 0]
        self._asked: list[int] = asked[asked > 0].tolist()
        owner = tasks.podgroup[rows].astype(np.int64)
        breaks = _breaking(snapshot, owner, rows)
        room = snapshot.room.future_of(nodes)[:, asked > 0]
        self._left = dict(zip(nodes.tolist(), room.tolist(), strict=True))
        self._held = dict(zip(rows.tolist(), request[tasks.shape[rows]].tolist(), strict=True))
        self._node = dict(zip(rows.tolist(), tasks.node[rows].tolist(), strict=True))
        #: The tasks of a podgroup that breaks go together, all others alone.
        whole: dict[int, list[int]] = {}
        self._unit: dict[int, list[int]] = {}
        for row, group, broken in zip(rows.tolist(), owner.tolist(), breaks.tolist(), strict=True):
            self._unit[row] = whole.setdefault(group, []) if broken else []
            self._unit[row].append(row)
        #: Victims by node, surplus first.
        self._here: dict[int, list[int]] = {}
        for row in rows[np.argsort(breaks, kind="stable")].tolist():
            self._here.setdefault(self._node[row], []).append(row)
        self._gone = set[int]()

    def making_room(self, nodes: list[int]) -> Rows:
        """int64[V]: the victims that have to go for tasks on some nodes, once all earlier ones have their room."""
        units = list[list[int]]()
        for node in nodes:
            left = self._left[node]
            for row in self._here.get(node, []):
                if _fits(self._asked, left):
                    break
                if row not in self._gone:
                    units.append(self._unit[row])
                    self._move(units[-1], 1)
            self._add(node, self._asked, -1)
        for unit in list(units):  # one that went early may not be needed any more
            self._move(unit, -1)
            if all(min(self._left[node], default=0) >= 0 for node in nodes):
                units.remove(unit)
            else:
                self._move(unit, 1)
        return np.array([row for unit in units for row in unit], np.int64)

    def _move(self, unit: list[int], sign: int) -> None:
        """Let victims go (1) or return (-1)."""
        for row in unit:
            self._add(self._node[row], self._held[row], sign)
        (self._gone.update if sign > 0 else self._gone.difference_update)(unit)

    def _add(self, node: int, amounts: list[int], sign: int) -> None:
        left = self._left.get(node)
        if left is not None:
            left[:] = [has + sign * more for has, more in zip(left, amounts, strict=True)]


def _fits(asked: list[int], left: list[int]) -> bool:
    """Whether a task fits into what a node has left."""
    return all(amount <= has for amount, has in zip(asked, left, strict=True))


def _breaking(snapshot: Snapshot, owner: Rows, rows: Rows) -> Bools:
    """bool[V]: victims of podgroups that break; ``owner`` int64[V] is the podgroup of each."""
    groups, at = np.unique(owner, return_inverse=True)
    return np.asarray(breaks_without(snapshot, groups, rows)[at])


def _plans(attempt: Attempt, host: Host, whole: Plan, statements: Sequence[Statement]) -> tuple[Plan, ...]:
    """The plans of the statements, each at its own price; they share the explanation of the whole."""
    snapshot, queue = attempt.snapshot, int(attempt.snapshot.podgroups.queue[attempt.podgroups[0]])
    rank: Longs | None = None
    if attempt.purpose is Purpose.RECLAIM:
        rank = host.victim_queue_rank(queue)[snapshot.podgroups.queue]
    requested = snapshot.shapes.request[snapshot.tasks.shape[statements[0].nominated]].sum(axis=0)
    lost = lost_work(snapshot, attempt.now)
    prices = prices_of(snapshot, [one.evictions for one in statements], requested, lost, rank, whole.domain)
    bundles = {bundle.podgroup: bundle for bundle in whole.explanation.bundles}
    return tuple(
        replace(
            whole, statement=made, assumes=assumptions(attempt, made), price=price,
            explanation=replace(
                whole.explanation, preemptor=made.preemptor, minimum=len(made.nominated), together=len(statements),
                bundles=_taken(snapshot, bundles, made.evictions),
            ),
        )
        for made, price in zip(statements, prices, strict=True)
    )  # fmt: skip


def _taken(snapshot: Snapshot, bundles: Mapping[int, VictimBundle], rows: Rows) -> tuple[VictimBundle, ...]:
    """The bundles of the whole, as far as one plan takes from them."""
    taken: dict[int, int] = {}
    for group in snapshot.tasks.podgroup[rows].tolist():
        taken[group] = taken.get(group, 0) + 1
    return tuple(
        replace(bundle, tasks=many, elsewhere=bundle.elsewhere if many == bundle.tasks else 0)
        for bundle, many in ((bundles[group], many) for group, many in taken.items() if group in bundles)
    )
