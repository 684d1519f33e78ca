"""Of the victims of one plan for several podgroups: which go for which of them.

One podgroup after the other takes what its nodes and the limits of its queue still lack.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, distinct, offsets, sealed
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.rules.minima_met import breaks_without
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.headroom import LineLimits
from pipeline.kernels import inlined, writing


def victims_of_each(
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
    asked: int64[K, R]
        What each task asks for.
    limits
        Of the podgroups' queue.
    """
    some = (asked > 0).any(axis=0)
    tasks, request = snapshot.tasks, np.ascontiguousarray(snapshot.shapes.request[:, some])
    there = distinct(nodes)
    room = np.concatenate([snapshot.room.future_of(there), limits.room])[:, some]
    owner = tasks.podgroup[rows].astype(np.int64)
    at = np.searchsorted(there, tasks.node[rows])
    at[(at == len(there)) | (there[np.minimum(at, len(there) - 1)] != tasks.node[rows])] = len(room)
    line = len(room) - limits.common[snapshot.podgroups.queue[owner]]
    breaks = _breaking(snapshot, owner, rows)
    victims = _columns(len(there), at, breaks, owner, line, request[tasks.shape[rows]])
    asked, room = np.ascontiguousarray(asked[:, some]), np.ascontiguousarray(room)
    taker, within = _takers(start, np.searchsorted(there, nodes), asked, room, victims)
    taker = taker[victims.unit]
    order = np.lexsort((rows, taker))
    return sealed(rows[order]), np.searchsorted(taker[order], np.arange(len(start))), int(within)


class _Victims(NamedTuple):
    """The victims of the whole plan as columns, on M nodes and below A limits.

    Attributes
    ----------
    here_start, here: int64[M + 1], int64[V]
        Those of each node, in the order in which they are taken.
    unit: int64[V]
        The unit of each.
    member_start, member: int64[U + 1], int64[V]
        Those of each unit.
    at: int64[V]
        The node of each, M + A: none of them.
    line: int64[V]
        The first limit that each counts against, with all after it; M + A: none.
    held: int64[V, R']
        What each holds of what is asked for.
    """

    here_start: Longs
    here: Rows
    unit: Rows
    member_start: Longs
    member: Rows
    at: Rows
    line: Rows
    held: Longs


def _columns(nodes: int, at: Rows, breaks: Bools, owner: Rows, line: Rows, held: Longs) -> _Victims:
    """The victims as columns, from what is said of each of them (V entries)."""
    # The tasks of a podgroup that breaks go together, all others alone.
    _, unit = unique_inverse(np.where(breaks, owner, -1 - np.arange(len(at))))
    by_node = np.lexsort((breaks, at))  # surplus first
    return _Victims(
        here_start=np.searchsorted(at[by_node], np.arange(nodes + 1)),
        here=by_node,
        unit=unit,
        member_start=offsets(unit, int(unit.max(initial=-1)) + 1),
        member=np.argsort(unit, kind="stable"),
        at=at,
        line=line,
        held=held,
    )


@writing("left")
def _takers(start: Longs, node: Rows, asked: Longs, left: Longs, victims: _Victims) -> tuple[Rows, int]:
    """int64[U]: for which plan each unit of victims goes, NONE for none. One plan after the other takes its nodes.

    And how many leading plans then keep the limits.

    Parameters
    ----------
    start, node: int64[P + 1], int64[K]
        The nodes of each plan's tasks, as rows of ``left``.
    asked, left: int64[K, R'], int64[M + A, R']
        What each task asks for, and the room of the nodes and then below the limits, which is changed; of the
        resources that are asked for.
    """
    limits, within = len(victims.here_start) - 1, len(start) - 1
    taker = np.full(len(victims.member_start) - 1, NONE, np.int64)
    taken, untaken = np.empty(len(taker), np.int64), 0
    for plan in range(len(start) - 1):
        asks, many = np.zeros(asked.shape[1], np.int64), 0
        for task in range(start[plan], start[plan + 1]):
            there = node[task]
            for victim in victims.here[victims.here_start[there] : victims.here_start[there + 1]]:
                if _covers(left[there], asked[task], 1):
                    break
                one = victims.unit[victim]
                if taker[one] == NONE:
                    taken[many], taker[one] = one, plan
                    many += 1
                    _move(1, one, victims, left)
            left[there] -= asked[task]
            asks += asked[task]
        left[limits:] -= asks
        while untaken < len(taker) and taker[untaken] != NONE:
            untaken += 1
        for one in range(untaken, len(taker)):
            if _within(left[limits:], asks):
                break
            if taker[one] == NONE and _relieves(one, asks, victims, left):
                taken[many], taker[one] = one, plan
                many += 1
                _move(1, one, victims, left)
        if within > plan and not _within(left[limits:], asks):
            within = plan
        for one in taken[:many]:  # one that went early may not be needed any more
            _move(-1, one, victims, left)
            enough = _within(left[limits:], asks)
            for task in range(start[plan], start[plan + 1]):
                enough &= _covers(left[node[task]], asked[task], 0)
            if enough:
                taker[one] = NONE
            else:
                _move(1, one, victims, left)
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
def _relieves(unit: int, asks: Longs, victims: _Victims, left: Longs) -> bool:
    """Whether a unit holds something of what is asked for and exceeded of a limit that it counts against."""
    for victim in victims.member[victims.member_start[unit] : victims.member_start[unit + 1]]:
        if ((left[victims.line[victim] :] < 0) & (victims.held[victim] > 0) & (asks > 0)).any():
            return True
    return False


@inlined
def _move(sign: int, unit: int, victims: _Victims, left: Longs) -> None:
    """Let the victims of a unit go (1) or return (-1)."""
    for victim in victims.member[victims.member_start[unit] : victims.member_start[unit + 1]]:
        if victims.at[victim] < len(left):
            left[victims.at[victim]] += sign * victims.held[victim]
        left[victims.line[victim] :] += sign * victims.held[victim]


def _breaking(snapshot: Snapshot, owner: Rows, rows: Rows) -> Bools:
    """bool[V]: victims of podgroups that break; ``owner`` int64[V] is the podgroup of each."""
    groups, at = unique_inverse(owner)
    return np.asarray(breaks_without(snapshot, groups, rows)[at])
