"""Placing the parts of a need by score: each in the region that takes most of it, or in the tightest that holds it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Longs, Rows, mask_of
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import Topology
from pipeline.placement.layout.by_score.scored import ScoredPlacement
from pipeline.placement.layout.by_score.tightest import closeness, places_in_tiers, tried_regions
from pipeline.placement.layout.parts import domain_around, lacking_in, nodes_of
from pipeline.placement.layout.regions_of_parts import AskedOfRegions, may_find_regions
from pipeline.placement.need import Need, Part
from pipeline.records import replace


@dataclass(frozen=True)
class PartPlacer:
    """Places the parts of one need, each with the parts inside it.

    Attributes
    ----------
    order: int64[K]
        The order of the tasks.
    binding
        Whether a part that misses its minimum leaves nothing on the placement.
    thrifty
        Whether podgroups get no more than their minimum before all have theirs (subgroups never do).
    most
        How many tasks in all may be placed; None: as many as fit.
    tightest
        Whether of the domains of a part's levels the tightest that holds its minimum is taken.
    closest: int64[N]
        Nodes of larger values go first, as the nearest enclosing part says; None: no preference.
    asked
        What subgroups ask of regions at least; None: not known.
    among: bool[K]
        The only tasks that may be placed; None: all of them.
    """

    snapshot: Snapshot
    placement: ScoredPlacement
    need: Need
    order: Rows
    binding: bool
    thrifty: bool
    most: int | None = None
    tightest: bool = False
    closest: Longs | None = None
    asked: AskedOfRegions | None = None
    among: Bools | None = None

    def place_needed(self, parts: list[int], start: int, stop: int) -> bool:
        """Place siblings one after the other, each up to its minimum; returns whether all have theirs.

        Where one finds no room because others were placed before it, all are placed again with that one first, at most
        once for each sibling; if that does not help, the first order's placement stays.
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
        missed = [part for part in parts if not self.place_part(part, start, stop, surplus=False)]
        return missed[0] if missed else None

    def place_part(self, part: int, start: int, stop: int, *, surplus: bool) -> bool:
        """Place one part and the parts inside it within ``start:stop``, in the region that takes most of it.

        Without ``surplus`` only needed parts are placed, each up to its minimum. Returns whether the part has its
        minimum; if not, none of it is placed. A part with a preferred level only keeps what it got in the best
        region, and the rest is placed anywhere.
        """
        wanted = self._wanted(part)
        if surplus and len(self.waiting(wanted)) == 0:
            return True  # there is none
        best, held, saved = -1, None, self.placement.save()
        placer, regions = self._regions(part, start, stop)
        regions = self._hopeful(part, regions)
        scores = self.placement.domain_scores(NO_ROWS if surplus else self._own(part), regions).tolist()
        for (first, last), score in zip(regions, scores, strict=True):
            if not surplus and self._lacks_regions(part, first, last):
                continue
            if (first, last) == (start, stop) and held is not None and not self.tightest:
                self.placement.restore(held)
                held = self.placement.save()
            else:
                self.placement.domain_score += score
            placer.place_inside(part, first, last, surplus=surplus)
            placed = int((self.placement.node[wanted] != NONE).sum())
            if self._whole(part) and placed > best:
                if placed == len(wanted) or (self.tightest and not surplus):
                    return True
                best, held = placed, self.placement.save()
            self.placement.restore(saved)
            saved = self.placement.save()
        if held is None:
            return False
        self.placement.restore(held)
        return True

    def _hopeful(self, part: int, regions: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Those of some regions that have slots for the minimum of a part, if it is a subgroup without others inside.

        Each kind is counted alone; where more tasks wait than the minimum takes, those of any kind can be spared.
        """
        row, inner = self.need.parts[part].subgroup, any(other.parent == part for other in self.need.parts)
        if not self.binding or inner or row == NONE or not regions:
            return regions
        wanted = self._wanted(part)
        rest = wanted[self.placement.node[wanted] == NONE]
        lacking = lacking_in(self.snapshot, row) - (len(wanted) - len(rest))
        enough = self.placement.enough(rest, regions, len(rest) - lacking)
        return [one for one, holds in zip(regions, enough.tolist(), strict=True) if holds]

    def _lacks_regions(self, part: int, first: int, last: int) -> bool:
        """Whether subgroups inside a podgroup find no regions among the nodes ``first:last``."""
        asked, whole = self.asked, self.need.parts[part].parent == NONE
        if asked is None or not whole or (asked.region[:, first:last] == NONE).any():
            return False
        here = np.ascontiguousarray(self.placement.open_to(self.need.shapes)[:, first:last])
        return not may_find_regions(asked, here, self.placement.future[first:last], first)

    def _regions(self, part: int, start: int, stop: int) -> tuple["PartPlacer", list[tuple[int, int]]]:
        """The placer with the preference of a part among nodes, and the slices in which to try it, in order."""
        row, topology = self.need.parts[part], self.snapshot.topology
        if row.required_level == row.preferred_level == NONE or (row.subgroup == NONE and not self.tightest):
            return self, [(start, stop)]
        held = self._held(part)
        if not self.tightest:
            found = self._in_order(_of_level(topology, row, held, start, stop), part)
            return self, [*found, (start, stop)] if row.required_level == NONE else found
        if domain_around(topology, max(row.required_level, row.preferred_level), start, stop) != NONE:
            return self, [(start, stop)]
        asked = self.need.request[self.need.shape[self._wanted(part)]].sum(axis=0)
        place = places_in_tiers(topology, self.placement.future, asked, start, stop)
        tried = tried_regions(topology, place, row.required_level, row.preferred_level, held)
        tried = self._holding(part, tried)
        if row.preferred_level == NONE:
            return self, tried
        nodes = closeness(topology, place, row.preferred_level, len(self.snapshot.nodes))
        return replace(self, closest=nodes), tried

    def _holding(self, part: int, regions: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Those of some regions that may take the minimum of a part: first those that take the tasks it begins with.

        Each kind is counted alone. In the others tasks that come later may make up the minimum.
        """
        needed, wanted = self._needed(part), self._wanted(part)
        rest = wanted[self.placement.node[wanted] == NONE]
        first = self.placement.enough(needed, regions)
        later = ~first & self.placement.enough(rest, regions, len(rest) - len(needed))
        return [regions[at] for some in (first, later) for at in np.flatnonzero(some).tolist()]

    def _held(self, part: int) -> Rows:
        """Nodes that tasks of the part and of the parts inside it hold, were promised or just got."""
        just = self.placement.node[self._wanted(part)]
        return np.append(nodes_of(self.need.parts[part], self.snapshot, NO_ROWS), just[just != NONE])

    def place_inside(self, part: int, first: int, last: int, *, surplus: bool) -> None:
        """Place the parts inside a part, then its own tasks, on the nodes ``first:last``."""
        inner = [p for p in self._concerned() if self.need.parts[p].parent == part]
        inner = sorted(inner, key=lambda p: (-self._leading(p), p))
        if surplus:
            for child in inner:
                self.place_part(child, first, last, surplus=True)
        else:
            self.place_needed([child for child in inner if self._leading(child)], first, last)
        sparing = not surplus and (self.thrifty or self.need.parts[part].subgroup != NONE)
        placed, leading = int((self.placement.node[self._wanted(part)] != NONE).sum()), self._leading(part)
        mine = self.waiting(self.order[self.need.part[self.order] == part])
        for run in self.placement.runs(mine):
            begin = 0
            while begin < len(run):
                # As many tasks as the podgroup's minimum needs of it, and at least the part's own minimum.
                if sparing and placed >= leading and self._whole(part):
                    return
                step = max(leading - placed, 1) if sparing else len(run)
                if self.most is not None:
                    step = min(step, self.most - int((self.placement.node != NONE).sum()))
                if step <= 0:
                    return
                some = run[begin : begin + step]
                found = self.placement.place(some, first, last, self.closest)
                placed, begin = placed + found, begin + len(some)
                if found < len(some):  # then others like them find no node either
                    break

    def _concerned(self) -> Sequence[int]:
        """Parts with tasks that may be placed, in order; where all of them may, simply all parts."""
        if self.among is None:
            return range(len(self.need.parts))
        some = mask_of(self.need.part[self.among], len(self.need.parts))
        for part in reversed(range(len(some))):  # parts come after those that they are in
            if some[part] and self.need.parts[part].parent != NONE:
                some[self.need.parts[part].parent] = True
        return np.flatnonzero(some).tolist()

    def waiting(self, tasks: Rows) -> Rows:
        """Those of some tasks (positions int64[K]) that are not placed, and may be."""
        waits = self.placement.node[tasks] == NONE
        return np.asarray(tasks[waits if self.among is None else waits & self.among[tasks]])

    def _whole(self, part: int) -> bool:
        row, placed = self.need.parts[part], self.need.tasks[self.placement.node != NONE]
        return not self.binding or has_minimum(self.snapshot, row.podgroup, row.subgroup, placed)

    def _wanted(self, part: int) -> Rows:
        """Positions of the tasks of a part and of the parts inside it."""
        return self.need.inside[part]

    def _needed(self, part: int) -> Rows:
        """Positions of the tasks of the minimum that are not placed, in a part and the parts inside it."""
        wanted = self._wanted(part)
        return np.asarray(wanted[(wanted < self.need.minimum) & (self.placement.node[wanted] == NONE)])

    def _leading(self, part: int) -> int:
        """How many tasks of the minimum lie in a part and the parts inside it."""
        return int(np.searchsorted(self._wanted(part), self.need.minimum))

    def _own(self, part: int) -> Rows:
        """Positions of the tasks of a part that are in none of the parts inside it."""
        return np.flatnonzero(self.need.part == part)

    def _in_order(self, domains: Rows, part: int) -> list[tuple[int, int]]:
        """The slices of domains in the order in which they are tried for a part, those with too little room last.

        Where plugins score domains the narrowest and then the best go first; else the tightest, so that wide ones stay
        for podgroups that need them.
        """
        topology, wanted = self.snapshot.topology, self._wanted(part)
        regions = topology.slices_of(domains)
        if len(regions) < 2 or len(wanted) == 0:  # noqa: PLR2004 - one region leaves no choice
            return regions
        room = self.placement.slots(int(wanted[0]), regions)
        score = self.placement.domain_scores(self._own(part), regions)
        tier = topology.tier[domains] if score.any() else np.zeros(len(domains), np.int64)
        ranks = np.lexsort((room, -score, tier, room < self._leading(part)))
        return [regions[at] for at in ranks.tolist()]


def _of_level(topology: Topology, row: Part, held: Rows, start: int, stop: int) -> Rows:
    """int64[D]: domains of the part's level and narrower ones in the slice that contain ``held``, narrowest first."""
    level = row.required_level if row.required_level != NONE else row.preferred_level
    fits = topology.tier <= topology.levels - level
    fits &= (topology.start >= start) & (topology.stop <= stop)
    chosen = topology.holding(np.flatnonzero(fits), held)
    return chosen[np.lexsort((chosen, topology.tier[chosen]))]
