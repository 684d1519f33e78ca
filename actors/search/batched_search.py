"""Searches for a cycle in batches of domains: in this process if it is little work, elsewhere if it is much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from actors.contracts import Batch, Searched, Searchers
from actors.observability.telemetry import Telemetry
from actors.observability.traces import SPAN_SEARCH_SPACE
from actors.search.searcher import Searcher
from pipeline.actions.searching import Outcome
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt, Survey
from pipeline.decision.merging import merged
from pipeline.placement.domains import domains_of
from pipeline.plugins.host import Host
from pipeline.propose import divides

_Search = Callable[[Snapshot, Sequence[Batch]], Sequence[Searched]]


@dataclass(frozen=True, slots=True)
class Spread:
    """How much is searched at once, and where. It does not change decisions, only when they are made.

    Attributes
    ----------
    domains
        Domains of one batch.
    preemptors
        Preemptors of one cycle; the others wait for the next, as if they had begun to starve later.
    in_place_cells
        Below this many domains times tasks in all, one process is faster than several.
    """

    domains: int = 4_096
    preemptors: int = 32
    in_place_cells: int = 262_144


class BatchedSearch:
    """Implements `pipeline.actions.searching.Search`.

    Parameters
    ----------
    here, elsewhere
        The searcher in this process, which can use what is known here of the snapshot, and all of them.
    """

    def __init__(self, here: Searcher, elsewhere: Searchers, spread: Spread, telemetry: Telemetry) -> None:
        self._here, self._elsewhere, self._spread, self._telemetry = here, elsewhere, spread, telemetry

    def ahead(self, attempts: Sequence[Attempt], host: Host) -> Sequence[Outcome]:
        """Search for all attempts at once, each as a whole, unless that is little enough work for this process."""
        batches = [self._batch(preemptor, attempt, host) for preemptor, attempt in enumerate(attempts)]
        if sum(batch.cells for batch in batches) < self._spread.in_place_cells:
            return ()
        found = self._searched(attempts[0], [[batch] for batch in batches], self._elsewhere.search)
        return [one for one in found if not isinstance(one, Survey)]

    def one(self, attempt: Attempt, host: Host) -> Outcome:
        """Search for one attempt; if that is much work, first parts of its domains, then what these leave open."""
        whole, here = self._batch(0, attempt, host), partial(self._here.search, host=host)
        if whole.cells < self._spread.in_place_cells:
            found = self._searched(attempt, [[whole]], here)[0]
        else:
            parts = self._parts(whole) if divides(attempt) else [whole]
            found = self._searched(attempt, [parts], self._elsewhere.search)[0]
        if isinstance(found, Survey):
            found = self._searched(attempt, [[replace(whole, survey=found)]], here)[0]
        assert not isinstance(found, Survey), "all domains at once are never surveyed"
        return found

    def _batch(self, preemptor: int, attempt: Attempt, host: Host) -> Batch:
        """All domains of an attempt: those that it names, or that the plugins offer."""
        domains = attempt.domains
        if domains is None:
            domains = domains_of(host, attempt.podgroups, attempt.purpose)
        return Batch.of(preemptor, attempt, domains)

    def _parts(self, whole: Batch) -> list[Batch]:
        """The same in batches, each with some of the preferred domains."""
        many = max(1, -(-len(whole.domains) // self._spread.domains))
        shares = [whole.domains[part::many] for part in range(many)]
        cells = whole.cells // max(1, len(whole.domains))
        return [replace(whole, domains=share, cells=len(share) * cells, part=many > 1) for share in shares]

    def _searched(self, first: Attempt, batches: Sequence[Sequence[Batch]], search: _Search) -> list[Outcome | Survey]:
        """One outcome for each attempt, merged from its batches."""
        carrier = self._telemetry.carrier()  # spans of attempts are siblings of the search in the cycle's trace
        sent = [replace(batch, carrier=carrier) for some in batches for batch in some]
        with self._telemetry.span(SPAN_SEARCH_SPACE, action=first.action) as work:
            domains, cells = (sum(each) for each in zip(*((len(one.domains), one.cells) for one in sent), strict=True))
            work.set(batches=len(sent), domains=domains, cells=cells)
            answers = search(first.snapshot, sent)
        found: list[list[Outcome | Survey]] = [[] for _ in batches]
        for answer in answers:
            found[answer.preemptor].append(answer.outcome)
        return [merged(some) for some in found]
