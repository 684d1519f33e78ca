"""The searcher: asks the core for a plan, batch by batch. It keeps nothing between calls but the policy."""

from __future__ import annotations

import time
from collections.abc import Sequence

from actors.contracts import Batch, Searched, plan_id
from actors.observability.telemetry import Telemetry
from actors.observability.traces import SPAN_ATTEMPT
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt, Survey
from pipeline.decision.plan import NoPlan, Plan
from pipeline.plugins.host import Host
from pipeline.policy import Policy
from pipeline.propose import host_of, propose, searched_part


class Searcher:
    """Implements `contracts.Searchers` in this process."""

    def __init__(self, policy: Policy, telemetry: Telemetry) -> None:
        self._policy, self._telemetry = policy, telemetry

    def search(self, snapshot: Snapshot, batches: Sequence[Batch], host: Host | None = None) -> list[Searched]:
        """Propose for each batch; the plugins are made once for all batches on a snapshot.

        Parameters
        ----------
        host
            The plugins on the snapshot, at the time of the batches and with what they say starts, if they are made.
        """
        found = []
        for batch in batches:
            attempt = batch.attempt(snapshot, self._policy)
            host = host if host is not None and host.context.now == batch.now else host_of(attempt)
            found.append(self._attempt(attempt, host, batch))
        return found

    def _attempt(self, attempt: Attempt, host: Host, batch: Batch) -> Searched:
        started_s = time.perf_counter()
        with self._telemetry.span(
            SPAN_ATTEMPT,
            batch.carrier,
            purpose=batch.purpose.value,
            podgroup=batch.podgroups[0],
            domains=len(batch.domains),
        ) as work:
            outcome = searched_part(attempt, host) if batch.part else propose(attempt, host)
            if isinstance(outcome, Survey):
                work.set(verdict="survey", tried=int(outcome.priced.sum()))
            else:
                work.set(reason=outcome.explanation.reason.value, tried=len(outcome.explanation.tried))
            if isinstance(outcome, Plan):
                work.set(
                    verdict="plan", plan=plan_id(str(outcome.statement.preemptor), outcome), domain=outcome.domain,
                    bundles=len(outcome.explanation.bundles),
                    victims=len(outcome.statement.evictions), gangs_broken=outcome.price.gangs_broken,
                    lost_work=outcome.price.lost_work,
                )  # fmt: skip
            elif isinstance(outcome, NoPlan):
                work.set(verdict="no plan")
        self._telemetry.figures.attempt_s.record(time.perf_counter() - started_s)
        return Searched(batch.preemptor, outcome)
