"""The search for a cycle's preemptors: cut into batches, scattered, and repeated for those who fell to others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from actors.contracts import Batch, Closed, Search
from actors.search.backoff import Unit
from actors.search.selection import Draft, assigned, take
from pipeline.actions.claims import closed_to
from pipeline.cluster.arrays import Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.plan import NoPlan, Plan
from pipeline.placement.cordoning import without
from pipeline.placement.domains import domains_of
from pipeline.plugins.host import Host


@dataclass(frozen=True, slots=True)
class Spread:
    """How much is searched at once, and where.

    Attributes
    ----------
    domains
        Domains of one batch.
    rounds
        So often who fell to the others is searched for again in one cycle, beside those who were taken.
    units
        Preemptors of one cycle; the others wait for the next.
    in_place_cells
        Below so many domains times tasks in all, one process is faster than the scatter.
    """

    domains: int = 64
    rounds: int = 8
    units: int = 32
    in_place_cells: int = 4_096


@dataclass(frozen=True, slots=True)
class Hunt:
    """What is to be searched for units in order, and whether it is little enough for this process.

    ``closed`` has for each unit the nodes (int64[M]) on which it is not to make room.
    """

    units: tuple[Unit, ...]
    batches: tuple[Batch, ...]
    closed: tuple[Rows, ...]
    here: bool

    def of(self, position: int) -> list[Batch]:
        """The batches of one unit."""
        return [batch for batch in self.batches if batch.unit == position]

    def like(self, position: int) -> Batch:
        """A batch of one unit for one domain."""
        first = self.of(position)[0]
        return replace(first, cells=first.cells // max(1, len(first.domains)))

    @property
    def cells(self) -> int:
        """Domains times tasks in all."""
        return sum(batch.cells for batch in self.batches)


class Rounds:
    """Searches here for a little, elsewhere for much."""

    def __init__(self, here: Search, elsewhere: Search, spread: Spread) -> None:
        self._here, self._elsewhere, self.spread = here, elsewhere, spread

    def hunt(self, units: Sequence[Unit], host: Host, closed: Closed, like: Batch) -> Hunt:
        """Cut each unit's domains into batches ``like`` one, so that every batch has some of the preferred ones."""
        pending = host.context.snapshot.standing.pending
        batches = []
        for position, unit in enumerate(units):
            domains, tasks = domains_of(host, unit, like.purpose), max(1, int(pending[list(unit)].sum()))
            parts = max(1, -(-len(domains) // self.spread.domains))
            for part in range(parts):
                share = domains[part::parts]
                cells = len(share) * tasks
                batches.append(replace(like, unit=position, podgroups=unit, domains=share, cells=cells))
        here = sum(batch.cells for batch in batches) < self.spread.in_place_cells
        return Hunt(tuple(units), tuple(batches), _closed(units, host, closed), here)

    def take(self, draft: Draft, action: str, hunt: Hunt) -> None:
        """Search, and take what holds together; who fell to the others is searched for again beside them.

        In this process one after the other, each on what those before it left. Elsewhere all at once; who fell to
        another is then searched for in one domain of its own, as far as the prices of the first search go round.
        """
        if hunt.here:
            for position in range(len(hunt.units)):
                take(draft, action, hunt.units, self._search(draft.progress.snapshot, hunt, [position]), {})
            return
        everywhere = self._search(draft.progress.snapshot, hunt, range(len(hunt.units)))
        left = take(draft, action, hunt.units, everywhere, {})
        tried: dict[int, set[int]] = {position: set() for position in left}
        for _ in range(self.spread.rounds):
            if not left:
                return
            own = assigned(left, everywhere, tried, draft)
            for position, domain in own.items():
                tried[position].add(domain)
            found = self._search(draft.progress.snapshot, hunt, left, own)
            everywhere = {**everywhere, **{at: one for at, one in found.items() if at not in own}}
            left = take(draft, action, hunt.units, found, {at: everywhere[at] for at in own})
        draft.again |= bool(left)

    def _search(
        self, snapshot: Snapshot, hunt: Hunt, wanted: Iterable[int], own: Mapping[int, int] | None = None
    ) -> dict[int, list[Plan | NoPlan | None]]:
        """Search for the units at the ``wanted`` positions, in their ``own`` domain if they have one."""
        somewhere, own = self._here if hunt.here else self._elsewhere, own or {}
        batches = [replace(hunt.like(at), domains=np.array([row], np.int64)) for at, row in own.items()]
        batches += [one for at in wanted if at not in own for one in hunt.of(at)]
        found: dict[int, list[Plan | NoPlan | None]] = {}
        for shut in {hunt.closed[one.unit].tobytes(): hunt.closed[one.unit] for one in batches}.values():
            same = [one for one in batches if np.array_equal(hunt.closed[one.unit], shut)]
            for answer in somewhere.search(without(snapshot, shut), same):
                found.setdefault(answer.unit, []).append(answer.outcome)
        return found


def _closed(units: Sequence[Unit], host: Host, closed: Closed) -> tuple[Rows, ...]:
    """Nodes of victims that do not end are closed to everybody, claimed domains to those served after the owner."""
    overdue = np.array([node for node, _ in closed.overdue], np.int64)
    return tuple(np.union1d(overdue, nodes) for nodes in closed_to(host, closed.claims, units))
