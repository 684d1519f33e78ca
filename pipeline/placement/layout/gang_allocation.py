"""Placing a podgroup without evictions: the best domain by score, part by part, all or nothing.

Tasks are tried one after the other on the node that scores best, as Volcano's allocate does; a task that finds no node
does not stop the others, for a podgroup may reach its minimum with those. A subgroup that misses its own minimum leaves
nothing behind.
"""

from dataclasses import dataclass, replace

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.cluster.rules.minimum import has_minimum, starts_with
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.statement import Statement, statement
from pipeline.placement.compositions import compositions
from pipeline.placement.domains import domains_of
from pipeline.placement.layout.parts import place_of, tasks_of_part
from pipeline.placement.layout.scored import Laid, ScoredPlacement
from pipeline.placement.need import Need, Part, need_of
from pipeline.plugins.host import Host
from pipeline.policy import Purpose


@dataclass(frozen=True)
class _Layout:
    """One way to place a unit: where its tasks went, and how good the nodes are together."""

    laid: Laid
    score: float


def allocate(
    host: Host, podgroups: tuple[int, ...], action: str, *, surplus_limit: int | None = None
) -> Statement | None:
    """Place the waiting tasks of podgroups that start together.

    Parameters
    ----------
    surplus_limit
        How many tasks beyond the minimum at most, for others wait as well; None: all that fit. Subgroups are not cut.

    Domains are tried tier by tier, narrowest first; within a tier the best-scored one is taken. Room that others were
    promised is not free; room that is coming free may be promised.

    Returns
    -------
    A statement that binds what can start now and nominates the rest, or None if the minimum is out of reach. Binding
    starts only when everything that the minimum needs is there now; until then all of it is promised.
    """
    snapshot = host.context.snapshot
    need = need_of(snapshot, podgroups, surplus=host.context.policy.surplus)
    if "backfill" in host.context.policy.actions:
        need = _without_best_effort(snapshot, need)
    if len(need.tasks) == 0:
        return None
    # Without subgroups the first way is enough: tasks that find no node let others reach the minimum.
    choices = compositions(snapshot, need) if len(need.parts) > len(podgroups) else iter((need,))
    return next((made for one in choices if (made := _placed(host, one, action, surplus_limit)) is not None), None)


def _placed(host: Host, need: Need, action: str, surplus_limit: int | None) -> Statement | None:
    """Place one way to make up the minimum, and what else there is."""
    snapshot, podgroups = host.context.snapshot, need.podgroups
    order = np.lexsort((host.task_rank[need.tasks], ~_for_roles(snapshot, need)))
    domains = domains_of(host, podgroups, Purpose.ALLOCATE)
    tiers = _gradient(snapshot, domains)
    placement, least = ScoredPlacement(host, need.tasks), _fewest(snapshot, podgroups) if host.binding else 0
    for tier in tiers:
        # Each kind counted alone: a domain that has too few slots even so is not worth laying out.
        slots = placement.most(snapshot.topology.start[tier], snapshot.topology.stop[tier])
        hopeful = np.array(tier)[slots >= least].tolist()
        layouts = [
            found
            for domain in hopeful
            if (found := _layout(host, placement, need, order, domain, surplus_limit)) is not None
        ]
        if layouts:
            best = max(range(len(layouts)), key=lambda at: (layouts[at].score, -at))
            return _commit(host, podgroups, need, layouts[best].laid, action)
    return None


def _fewest(snapshot: Snapshot, podgroups: tuple[int, ...]) -> int:
    """How many tasks must be placed at the very least; roles and subgroups may ask for more."""
    standing, rows = snapshot.standing, list(podgroups)
    have = standing.ready[rows] + standing.waiting[rows] + standing.pending_best_effort[rows]
    return int(np.maximum(snapshot.podgroups.min_available[rows] - have, 0).sum())


def _gradient(snapshot: Snapshot, domains: Rows) -> list[list[int]]:
    """Domains grouped by tier, in the order in which the tiers first occur."""
    tier = snapshot.topology.tier[domains]
    firsts = sorted(set(tier.tolist()), key=lambda t: int(np.argmax(tier == t)))
    return [domains[tier == t].tolist() for t in firsts]


def _without_best_effort(snapshot: Snapshot, need: Need) -> Need:
    """The need less tasks that ask for nothing: those are backfilled."""
    if not snapshot.tasks.best_effort[need.tasks].any():
        return need
    most = np.full(len(snapshot.shapes), len(need.tasks), np.int64)
    most[snapshot.tasks.shape[need.tasks[snapshot.tasks.best_effort[need.tasks]]]] = 0
    return need_of(snapshot, need.podgroups, most=most)


def _for_roles(snapshot: Snapshot, need: Need) -> Bools:
    """bool[K]: tasks of the minimum of podgroups with roles, placed first lest others take the room of a role.

    Upstream goes by the order of the tasks alone, and a gang with room for all its roles may not start.
    """
    owner = snapshot.tasks.podgroup[need.tasks]
    bound = (np.diff(snapshot.role_start) > 0) & snapshot.roles_bind
    return np.asarray((np.arange(len(need.tasks)) < need.minimum) & bound[owner])


def _layout(
    host: Host, placement: ScoredPlacement, need: Need, order: Rows, domain: int, surplus_limit: int | None
) -> _Layout | None:
    """Place what fits into one domain; None if the minimum is not reached. What was placed before is left as it was.

    Parts that the minimum needs are served first, up to their own minima; only then the surplus of all. Where no plugin
    says when a podgroup may start there is no minimum.
    """
    snapshot = host.context.snapshot
    saved, score = placement.save(), placement.score
    start, stop = int(snapshot.topology.start[domain]), int(snapshot.topology.stop[domain])
    tops = [part for part, row in enumerate(need.parts) if row.parent == NONE]
    floor = _Floor(snapshot, placement, need, order, host.binding, surplus_limit is not None)
    reached = not host.binding or floor.settle_needed(tops, start, stop)
    if reached and surplus_limit != 0:
        whole = surplus_limit is None or len(tops) < len(need.parts)
        floor = replace(floor, most=None if whole else int((placement.node != NONE).sum()) + (surplus_limit or 0))
        for part in tops:
            floor.settle(part, start, stop, surplus=True)
    found = _Layout(placement.laid(), placement.score - score) if reached and (placement.node != NONE).any() else None
    placement.restore(saved)
    return found


@dataclass(frozen=True)
class _Floor:
    """What settling the parts of one need  goes by.

    Attributes
    ----------
    order: int64[K]
        The order of the tasks.
    binding
        Whether a part that misses its minimum leaves nothing on the placement.
    thrifty
        Whether podgroups, like subgroups always, get no more than their minimum before all have theirs.
    most
        How many tasks in all may be placed; None: as many as fit.
    """

    snapshot: Snapshot
    placement: ScoredPlacement
    need: Need
    order: Rows
    binding: bool
    thrifty: bool
    most: int | None = None

    def settle_needed(self, parts: list[int], start: int, stop: int) -> bool:
        """Place siblings one after the other, each up to its minimum; whether all have theirs.

        Where one finds no room because others were placed before it, all begin again with that one ahead, as often as
        there are siblings at most; where that does not help either, what the first order placed stays.
        """
        if len(parts) <= 1:
            return self._in_turn(parts, start, stop) is None
        saved, ahead, held = self.placement.save(), list[int](), None
        failed = self._in_turn(parts, start, stop)
        while failed is not None and failed not in ahead:
            ahead.insert(0, failed)
            held = self.placement.save() if held is None else held
            self.placement.restore(saved)
            saved = self.placement.save()
            failed = self._in_turn([*ahead, *(part for part in parts if part not in ahead)], start, stop)
        if failed is not None and held is not None:
            self.placement.restore(held)
        return failed is None

    def _in_turn(self, parts: list[int], start: int, stop: int) -> int | None:
        """Place parts in this order; the first that misses its minimum."""
        missed = [part for part in parts if not self.settle(part, start, stop, surplus=False)]
        return missed[0] if missed else None

    def settle(self, part: int, start: int, stop: int, *, surplus: bool) -> bool:
        """Place one part and the parts inside it within ``start:stop``, in the region that takes most of it.

        Without ``surplus`` only needed parts are placed, each up to its minimum. A part that misses its minimum
        leaves nothing placed; whether it has it is returned. A part that only prefers to be close keeps what it
        got in the best region and has the rest placed anywhere.
        """
        row, best, held = self.need.parts[part], -1, None
        saved = self.placement.save()
        wanted = self._wanted(part)
        regions = self._by_room(_regions(self.snapshot, row, start, stop), part)
        if NONE not in (row.preferred_level, row.subgroup) and row.required_level == NONE:
            regions.append((start, stop))
        for first, last in regions:
            if (first, last) == (start, stop) and held is not None:
                self.placement.restore(held)
                held = self.placement.save()
            self._fill(part, first, last, surplus=surplus)
            placed = int((self.placement.node[wanted] != NONE).sum())
            if self._whole(part) and placed > best:
                best, held = placed, self.placement.save()
            self.placement.restore(saved)
            saved = self.placement.save()
            if best == len(wanted):
                break
        if held is None:
            return False
        self.placement.restore(held)
        return True

    def _fill(self, part: int, first: int, last: int, *, surplus: bool) -> None:
        inner = [p for p, other in enumerate(self.need.parts) if other.parent == part]
        inner = sorted(inner, key=lambda p: (-self._leading(p), p))
        if surplus:
            for child in inner:
                self.settle(child, first, last, surplus=True)
        else:
            self.settle_needed([child for child in inner if self._leading(child)], first, last)
        sparing = not surplus and (self.thrifty or self.need.parts[part].subgroup != NONE)
        placed, leading = int((self.placement.node[self._wanted(part)] != NONE).sum()), self._leading(part)
        for task in self.order[self.need.part[self.order] == part].tolist():
            # As many as the podgroup's minimum counts on, and the part's own minimum.
            if sparing and placed >= leading and self._whole(part):
                return
            if self.most is not None and int((self.placement.node != NONE).sum()) >= self.most:
                return
            if self.placement.node[task] == NONE:
                placed += self.placement.place(task, first, last)

    def _whole(self, part: int) -> bool:
        row, placed = self.need.parts[part], self.need.tasks[self.placement.node != NONE]
        return not self.binding or has_minimum(self.snapshot, row.podgroup, row.subgroup, placed)

    def _wanted(self, part: int) -> Rows:
        """Positions of the tasks of a part and of the parts inside it."""
        return np.flatnonzero(np.isin(self.need.part, sorted(_inside(self.need, part))))

    def _leading(self, part: int) -> int:
        """How many tasks of the minimum lie in a part and the parts inside it."""
        return int((self._wanted(part) < self.need.minimum).sum())

    def _by_room(self, regions: list[tuple[int, int]], part: int) -> list[tuple[int, int]]:
        """Regions of one width are tried tightest first, so that wide ones stay for those who need them."""
        wanted = self._wanted(part)
        if len(regions) < 2 or len(wanted) == 0:  # noqa: PLR2004 - one region leaves no choice
            return regions
        room = [self.placement.slots(int(wanted[0]), first, last) for first, last in regions]
        ranks = sorted(range(len(regions)), key=lambda at: (room[at] < self._leading(part), room[at], at))
        return [regions[at] for at in ranks]


def _inside(need: Need, part: int) -> set[int]:
    """The part and all parts inside it; parents come before children."""
    found = {part}
    for other, row in enumerate(need.parts):
        if row.parent in found:
            found.add(other)
    return found


def _regions(snapshot: Snapshot, part: Part, start: int, stop: int) -> list[tuple[int, int]]:
    """Slices within which the part may or should lie: the slice itself, or domains of its level, narrowest first."""
    level = part.required_level if part.required_level != NONE else part.preferred_level
    if NONE in (level, part.subgroup):
        return [(start, stop)]
    topology = snapshot.topology
    fits = topology.tier <= topology.levels - level
    fits &= (topology.start >= start) & (topology.stop <= stop)
    held = place_of(snapshot, tasks_of_part(snapshot, part.podgroup, part.subgroup))
    held = held[held != NONE]
    if len(held):
        fits &= (topology.start <= held.min()) & (topology.stop > held.max())
    chosen = np.flatnonzero(fits)
    chosen = chosen[np.lexsort((chosen, topology.tier[chosen]))]
    return [(int(topology.start[d]), int(topology.stop[d])) for d in chosen]


def _commit(host: Host, podgroups: tuple[int, ...], need: Need, laid: Laid, action: str) -> Statement:
    """Bind what can start now if the gang can start with it; else promise everything."""
    snapshot = host.context.snapshot
    placed = laid.node != NONE
    now = placed & laid.now
    starts = not host.binding or all(starts_with(snapshot, podgroup, need.tasks[now]) for podgroup in podgroups)
    bound = now if starts else np.zeros_like(now)
    promised = placed & ~bound
    return statement(
        action,
        podgroups[0],
        nominated=need.tasks[promised],
        nominated_node=laid.node[promised],
        nominated_card=laid.card[promised],
        bound=need.tasks[bound],
        bound_node=laid.node[bound],
        bound_card=laid.card[bound],
    )
