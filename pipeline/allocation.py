"""Placing a podgroup without evicting anybody: the best domain by score, part by part, all or nothing.

Tasks are tried one after the other on the node that scores best, as Volcano's allocate does; a task that finds no node
does not stop the others, for a podgroup may reach its minimum with those. A subgroup that misses its own minimum leaves
nothing behind.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.attempt import Purpose
from pipeline.board import Board, Laid
from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.minimum import has_minimum, starts_with
from pipeline.need import Need, Part, need_of
from pipeline.plugins.votes import Votes
from pipeline.search_space import domains_of
from pipeline.statement import Statement, statement


@dataclass(frozen=True)
class _Layout:
    """One way to place a unit: where its tasks went, and how good the nodes are together."""

    laid: Laid
    score: float


def allocate(votes: Votes, podgroups: tuple[int, ...], action: str) -> Statement | None:
    """Place the waiting tasks of podgroups that start together.

    Domains are tried tier by tier, narrowest first; within a tier the best-scored one is taken. Room that others were
    promised is not free; room that is coming free may be promised.

    Returns
    -------
    A statement that binds what can start now and nominates the rest, or None if the minimum is out of reach. Binding
    starts only when everything that the minimum needs is there now; until then all of it is promised.
    """
    snapshot = votes.situation.snapshot
    need = need_of(snapshot, podgroups, surplus=votes.situation.policy.surplus)
    need = _without_best_effort(snapshot, need)
    if len(need.tasks) == 0:
        return None
    order = np.argsort(votes.task_rank[need.tasks], kind="stable")
    domains = domains_of(votes, podgroups, Purpose.ALLOCATE)
    tiers = _gradient(snapshot, podgroups, domains)
    board = Board(votes, need.tasks)
    for tier in tiers:
        layouts = [found for domain in tier if (found := _layout(votes, board, need, order, domain)) is not None]
        if layouts:
            best = max(range(len(layouts)), key=lambda at: (layouts[at].score, -at))
            return _commit(votes, podgroups, need, layouts[best].laid, action)
    return None


def _gradient(snapshot: Snapshot, podgroups: tuple[int, ...], domains: Rows) -> list[list[int]]:
    """Domains grouped by tier, in the order in which the tiers first occur.

    Where topology is only preferred and tasks run already, domains that hold those come ahead within their tier.
    """
    tier = snapshot.topology.tier[domains]
    firsts = sorted(set(tier.tolist()), key=lambda t: int(np.argmax(tier == t)))
    return [domains[tier == t].tolist() for t in firsts]


def _without_best_effort(snapshot: Snapshot, need: Need) -> Need:
    """The need less tasks that ask for nothing: those are backfilled."""
    if not snapshot.tasks.best_effort[need.tasks].any():
        return need
    placeable = np.ones(len(snapshot.shapes), bool)
    placeable[snapshot.tasks.shape[need.tasks[snapshot.tasks.best_effort[need.tasks]]]] = False
    return need_of(snapshot, need.podgroups, placeable=placeable)


def _layout(votes: Votes, board: Board, need: Need, order: Rows, domain: int) -> _Layout | None:
    """Place what fits into one domain; None if the minimum is not reached. The board is left as it was."""
    topology = votes.situation.snapshot.topology
    saved = board.save()
    start, stop = int(topology.start[domain]), int(topology.stop[domain])
    tops = [part for part, row in enumerate(need.parts) if row.parent == NONE]
    reached = all(_settle(votes, board, need, order, part, start, stop) for part in tops)
    found = _Layout(board.laid(), board.score - float(saved[3])) if reached and (board.node != NONE).any() else None  # type: ignore[arg-type]
    board.restore(saved)
    return found


def _settle(votes: Votes, board: Board, need: Need, order: Rows, part: int, start: int, stop: int) -> bool:
    """Place the tasks of one part and of the parts inside it within ``start:stop``; nothing remains if it falls short."""
    row = need.parts[part]
    for first, last in _regions(votes.situation.snapshot, row, start, stop):
        saved = board.save()
        inner = [p for p, other in enumerate(need.parts) if other.parent == part]
        # Parts that are short of their minimum come first; the others are surplus.
        for child in sorted(inner, key=lambda p: (not bool((need.part[: need.minimum] == p).any()), p)):
            _settle(votes, board, need, order, child, first, last)
        for task in order[need.part[order] == part].tolist():
            board.place(task, first, last)
        if has_minimum(votes.situation.snapshot, row.podgroup, row.subgroup, need.tasks[board.node != NONE]):
            return True
        board.restore(saved)
    return False


def _regions(snapshot: Snapshot, part: Part, start: int, stop: int) -> list[tuple[int, int]]:
    """Slices within which the part may lie: the slice itself, or domains of its level inside it, tightest tier first."""
    if part.required_level == NONE or part.subgroup == NONE:
        return [(start, stop)]
    topology = snapshot.topology
    fits = (topology.tier <= topology.levels - part.required_level) & (topology.start >= start) & (topology.stop <= stop)
    held = _held(snapshot, part)
    if len(held):
        fits &= (topology.start <= held.min()) & (topology.stop > held.max())
    chosen = np.flatnonzero(fits)
    chosen = chosen[np.lexsort((chosen, topology.tier[chosen]))]
    return [(int(topology.start[d]), int(topology.stop[d])) for d in chosen]


def _held(snapshot: Snapshot, part: Part) -> Rows:
    """Nodes on which tasks of the part's subgroup (or those below it) run or are promised."""
    tasks, table = snapshot.tasks, snapshot.subgroups
    inside = {part.subgroup}
    for row in range(part.subgroup + 1, int(snapshot.subgroup_start[part.podgroup + 1])):
        if int(table.parent[row]) in inside:
            inside.add(row)
    rows = snapshot.tasks_of(part.podgroup)
    rows = rows[np.isin(tasks.subgroup[rows], sorted(inside))]
    running = (tasks.status[rows] == BOUND) | (tasks.status[rows] == RUNNING)
    nodes = np.where(running, tasks.node[rows], tasks.nominated[rows])
    return np.unique(nodes[nodes != NONE]).astype(np.int64)


def _commit(votes: Votes, podgroups: tuple[int, ...], need: Need, laid: Laid, action: str) -> Statement:
    """Bind what can start now if the gang can start with it; else promise everything."""
    snapshot = votes.situation.snapshot
    placed = laid.node != NONE
    now = placed & laid.now
    starts = all(starts_with(snapshot, podgroup, need.tasks[now]) for podgroup in podgroups)
    bound = now if starts else np.zeros_like(now)
    promised = placed & ~bound
    return statement(
        action,
        podgroups[0],
        nominated=need.tasks[promised],
        nominated_node=laid.node[promised],
        bound=need.tasks[bound],
        bound_node=laid.node[bound],
    )
