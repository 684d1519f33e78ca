"""Searches for a cycle in batches of domains: in this process if it is little work, elsewhere if it is much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from actors.contracts import Batch, Searchers
from actors.observability.telemetry import Telemetry
from actors.observability.traces import SPAN_SEARCH_SPACE
from pipeline.actions.searching import Outcome
from pipeline.decision.attempt import Attempt
from pipeline.decision.merging import merged
from pipeline.placement.domains import domains_of
from pipeline.plugins.host import Host
from pipeline.solvers.registry import solver_of


@dataclass(frozen=True, slots=True)
class Spread:
    """How much is searched at once, and where. It does not change decisions, only when they are made.

    Attributes
    ----------
    domains
        Domains of one batch.
    units
        Preemptors of one cycle; the others wait for the next, as if they had begun to starve later.
    in_place_cells
        Below this many domains times tasks in all, one process is faster than several.
    """

    domains: int = 64
    units: int = 32
    in_place_cells: int = 4_096


class BatchedSearch:
    """Implements `pipeline.actions.searching.Search`.

    Parameters
    ----------
    here, elsewhere
        Searchers in this process, and all of them.
    """

    def __init__(self, here: Searchers, elsewhere: Searchers, spread: Spread, telemetry: Telemetry) -> None:
        self._here, self._elsewhere, self._spread, self._telemetry = here, elsewhere, spread, telemetry

    def ahead(self, attempts: Sequence[Attempt], host: Host) -> Sequence[Outcome]:
        """Search for all attempts at once, unless that is little enough work for this process."""
        batches = [self._batches(unit, attempt, host) for unit, attempt in enumerate(attempts)]
        if sum(batch.cells for some in batches for batch in some) < self._spread.in_place_cells:
            return ()
        return self._searched(attempts[0], batches, self._elsewhere)

    def one(self, attempt: Attempt, host: Host) -> Outcome:
        """Search for one attempt."""
        batches = self._batches(0, attempt, host)
        small = sum(batch.cells for batch in batches) < self._spread.in_place_cells
        return self._searched(attempt, [batches], self._here if small else self._elsewhere)[0]

    def _batches(self, unit: int, attempt: Attempt, host: Host) -> list[Batch]:
        """Batches of an attempt's domains, each with some preferred ones; one if dividing could change the plan."""
        domains = domains_of(host, attempt.podgroups, attempt.purpose)
        tasks = max(1, int(attempt.snapshot.counts.pending[list(attempt.podgroups)].sum()))
        whole = not solver_of(attempt.policy, attempt.asked_by).divides(attempt.policy)
        parts = 1 if whole else max(1, -(-len(domains) // self._spread.domains))
        shares = [domains[part::parts] for part in range(parts)]
        return [
            Batch(
                unit, attempt.podgroups, attempt.action, attempt.purpose, share, attempt.now, len(share) * tasks,
                own=attempt.own, starting=attempt.starting,
            )
            for share in shares
        ]  # fmt: skip

    def _searched(self, first: Attempt, batches: Sequence[Sequence[Batch]], by: Searchers) -> list[Outcome]:
        """One outcome for each attempt, merged from its batches."""
        carrier = self._telemetry.carrier()  # spans of attempts are siblings of the search in the cycle's trace
        sent = [batch.carried_by(carrier) for some in batches for batch in some]
        with self._telemetry.span(SPAN_SEARCH_SPACE, action=first.action) as work:
            domains, cells = (sum(each) for each in zip(*((len(one.domains), one.cells) for one in sent), strict=True))
            work.set(batches=len(sent), domains=domains, cells=cells)
        found: list[list[Outcome]] = [[] for _ in batches]
        for answer in by.search(first.snapshot, sent):
            found[answer.unit].append(answer.outcome)
        return [merged(some) for some in found]
