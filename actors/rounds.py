"""The search for a cycle's preemptors: cut into batches, scattered, and repeated for those who fell to others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from actors.backoff import Unit
from actors.exchange import Batch, Closed, Search, Searched
from actors.selection import Draft, take
from pipeline.actions.claims import closed_to
from pipeline.attempt import Purpose
from pipeline.closing import without
from pipeline.cluster.arrays import Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.plugins.votes import Votes
from pipeline.search_space import domains_of


@dataclass(frozen=True, slots=True)
class Spread:
    """How much is searched at once, and where.

    Attributes
    ----------
    domains
        Domains of one batch.
    alternatives
        Batches of each preemptor at least, where so many are searched for at once: each batch brings its own best plan,
        so who wanted the same domain as another has somewhere else to go.
    rounds
        So often who fell to the others is searched for again in one cycle, beside those who were taken.
    units
        Preemptors of one cycle; the others wait for the next.
    in_place_cells
        Below so many domains times tasks in all, one process is faster than the scatter.
    """

    domains: int = 64
    alternatives: int = 4
    rounds: int = 8
    units: int = 32
    in_place_cells: int = 4_096


@dataclass(frozen=True, slots=True)
class _Space:
    """Where a unit is to be searched for (int64[D], preferred first), and for how many tasks."""

    unit: Unit
    domains: Rows
    tasks: int


@dataclass(frozen=True, slots=True)
class Hunt:
    """What is to be searched for units in order, and whether it is little enough for this process.

    ``closed`` has for each unit the nodes (int64[M]) on which it is not to make room.
    """

    units: tuple[Unit, ...]
    batches: tuple[Batch, ...]
    closed: tuple[Rows, ...]
    here: bool

    @property
    def cells(self) -> int:
        """Domains times tasks in all."""
        return sum(batch.cells for batch in self.batches)


class Rounds:
    """Searches here for a little, elsewhere for much."""

    def __init__(self, here: Search, elsewhere: Search, spread: Spread) -> None:
        self._here, self._elsewhere, self.spread = here, elsewhere, spread

    def hunt(self, units: Sequence[Unit], votes: Votes, closed: Closed, like: Batch) -> Hunt:
        """Cut each unit's domains into batches ``like`` one, so that every batch has some of the preferred ones."""
        pending = votes.situation.snapshot.standing.pending
        spaces = [_space(unit, votes, like.purpose, int(pending[list(unit)].sum())) for unit in units]
        here = sum(len(space.domains) * space.tasks for space in spaces) < self.spread.in_place_cells
        batches, apart = [], 1 if here else min(len(spaces), self.spread.alternatives)
        for position, space in enumerate(spaces):
            parts = max(1, -(-len(space.domains) // self.spread.domains), min(apart, len(space.domains)))
            for part in range(parts):
                share = space.domains[part::parts]
                cells = len(share) * space.tasks
                batches.append(replace(like, unit=position, podgroups=space.unit, domains=share, cells=cells))
        return Hunt(tuple(units), tuple(batches), _closed(units, votes, closed), here)

    def take(self, draft: Draft, action: str, hunt: Hunt) -> None:
        """Search, and take what holds together; who fell to the others is searched for again beside them.

        In this process one after the other, each on what those before it left; elsewhere all at once.
        """
        left = list(range(len(hunt.units)))
        for _ in range(self.spread.rounds):
            turns = [[position] for position in left] if hunt.here else [left]
            left = []
            for turn in turns:
                left += take(draft, action, hunt.units, turn, self._search(draft.progress.snapshot, hunt, turn))
            if not left:
                return
        draft.again = True

    def _search(self, snapshot: Snapshot, hunt: Hunt, wanted: Sequence[int]) -> list[Searched]:
        """Search for the units at the ``wanted`` positions, together for whom the same is closed."""
        somewhere, found = self._here if hunt.here else self._elsewhere, []
        for shut in {hunt.closed[position].tobytes(): hunt.closed[position] for position in wanted}.values():
            same = {position for position in wanted if np.array_equal(hunt.closed[position], shut)}
            found += somewhere.search(without(snapshot, shut), [one for one in hunt.batches if one.unit in same])
        return found


def _space(unit: Unit, votes: Votes, purpose: Purpose, pending: int) -> _Space:
    return _Space(unit, domains_of(votes, unit, purpose), max(1, pending))


def _closed(units: Sequence[Unit], votes: Votes, closed: Closed) -> tuple[Rows, ...]:
    """Nodes of victims that do not end are closed to everybody, claimed domains to those served after the owner."""
    overdue = np.array([node for node, _ in closed.overdue], np.int64)
    return tuple(np.union1d(overdue, nodes) for nodes in closed_to(votes, closed.claims, units))
