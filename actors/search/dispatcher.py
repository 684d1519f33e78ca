"""The dispatcher: one cycle over the newest snapshot, with the searching spread over others.

It does what `pipeline.cycle` does, action by action, and differs in where and how much is searched: all who starve are
searched for at once on one snapshot, each in batches of domains, and the plans that do not conflict are taken in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from actors.contracts import (
    Answer,
    Batch,
    Closed,
    Commit,
    News,
    Offer,
    Outlook,
    Search,
    Tell,
    Vain,
    plan_id,
    still,
)
from actors.observability.telemetry import Telemetry
from actors.observability.traces import SPAN_CYCLE, SPAN_INGEST, SPAN_SEARCH_SPACE, SPAN_STARVING
from actors.search.backoff import Backoff
from actors.search.rounds import Rounds, Spread
from actors.search.selection import Draft
from pipeline.actions.claims import allocate_beside
from pipeline.actions.progress import Progress
from pipeline.actions.registry import Action, actions_of
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.decided import carried_out
from pipeline.decision.explanation import NO_PRIORITY, Explanation, Price, Reason
from pipeline.decision.plan import Plan, assumptions
from pipeline.decision.statement import Statement
from pipeline.placement.starving import in_order
from pipeline.policy import Policy, Purpose

_NOWHERE = frozen([], np.int64)
_EVICTS_NOBODY = Price(0, 0, NO_PRIORITY, 0, 0, 0.0, 0, 0, NONE)


@dataclass(frozen=True, slots=True)
class Cycled:
    """What a cycle came to.

    Attributes
    ----------
    starving
        Units that had to be searched for or held back.
    again
        Whether there is more to do without any news: somebody's plan fell to another's, or had no turn.
    sequence
        The last decision recorded; the next cycle needs a snapshot that contains it.
    """

    answers: tuple[Answer, ...] = ()
    starving: int = 0
    vain: int = 0
    again: bool = False
    sequence: int = 0
    took_ms: float = 0.0


class Dispatcher:
    """Orders, scatters, gathers, takes. Not for several threads at once.

    Parameters
    ----------
    here, elsewhere
        Where to search: in this process for a little, elsewhere for much.
    commit
        Hands plans to the committer together.
    tell
        Is told who starves, and why nothing was found, whenever there is something new to say.
    now_s, elapsed_s
        The clock, and a monotonic one for figures.
    """

    def __init__(
        self,
        policy: Policy,
        here: Search,
        elsewhere: Search,
        commit: Commit,
        telemetry: Telemetry,
        *,
        now_s: Callable[[], float],
        elapsed_s: Callable[[], float] = time.perf_counter,
        backoff: Backoff | None = None,
        spread: Spread | None = None,
        tell: Tell | None = None,
    ) -> None:
        self._actions = actions_of(policy.actions)
        self._policy, self._commit = policy, commit
        self._rounds = Rounds(here, elsewhere, spread if spread is not None else Spread())
        self._telemetry, self._now_s, self._elapsed_s = telemetry, now_s, elapsed_s
        self._backoff = backoff if backoff is not None else Backoff()
        self._tell = tell
        self._told: tuple[int, tuple[int, ...]] = (-1, ())
        self._avoided: set[tuple[int, float]] = set()

    def next_at(self, snapshot: Snapshot) -> float | None:
        """When to run a cycle even if nothing new is heard, in seconds."""
        times = (self._backoff.next_at(snapshot), *(until for _, until in self._avoided))
        return min((at for at in times if at is not None), default=None)

    def cycle(self, news: News) -> Cycled:
        """Decide what the news makes possible, and have it committed."""
        started_s, now = self._elapsed_s(), self._now_s()
        snapshot = news.snapshot
        with self._telemetry.span(SPAN_CYCLE, revision=snapshot.revision, policy=self._policy.digest) as work:
            with self._telemetry.span(SPAN_INGEST, links=news.links[-64:]) as ingest:
                ingest.set(
                    revision=snapshot.revision, decided=snapshot.decided, tasks=len(snapshot.tasks),
                    nodes=len(snapshot.nodes),
                )  # fmt: skip
            draft = Draft(Progress(snapshot, self._policy, now), closed=still(news.closed, now))
            self._wake(draft.closed)
            for action in self._actions:
                if action.evicts:
                    self._make_room(draft, action, now)
                else:
                    self._place(draft, action)
            answers = self._committed(draft)
            self._remember(draft, answers, snapshot, now)
            self._say(draft, snapshot)
            took_ms = (self._elapsed_s() - started_s) * 1000
            accepted = [answer for answer in answers if answer.accepted]
            work.set(starving=len(draft.starving), plans=len(draft.plans), accepted=len(accepted))
        self._figures(draft, accepted, took_ms)
        again = draft.again or len(accepted) < len(answers)
        sequence = max((answer.sequence for answer in accepted), default=0)
        return Cycled(tuple(answers), len(draft.starving), len(draft.vain), again, sequence, took_ms)

    def _wake(self, closed: Closed) -> None:
        """Whoever paused for nodes that nobody was to count on need not any more once that is over."""
        avoided = set(closed.overdue)
        if not self._avoided <= avoided:
            self._backoff.keep(set())
        self._avoided = avoided

    # -- actions that evict nobody: in place, as they are ------------------------------------------------------

    def _place(self, draft: Draft, action: Action) -> None:
        before = draft.progress
        assert action.run is not None
        with self._telemetry.span(action.name) as work:
            if action.name == "allocate":
                draft.progress = allocate_beside(before, draft.closed.claims)
            else:
                draft.progress = action.run(before)
            made = draft.progress.statements[len(before.statements) :]
            work.set(statements=len(made))
        step = before.snapshot
        for one in made:
            # Admissions are worked out anew in every cycle, so they bind nobody and are not recorded.
            if len(one.bound) or len(one.nominated):
                draft.offer(self._as_plan(one, step, before.now))
            step = replace(carried_out(one, step, before.now), revision=step.revision)

    def _as_plan(self, made: Statement, snapshot: Snapshot, now: float) -> Plan:
        """A placement as a plan: it costs nobody anything."""
        nodes = np.concatenate([made.bound_node, made.nominated_node])
        domain = snapshot.topology.lowest_common(nodes)
        tier = int(snapshot.topology.tier[domain])
        attempt = Attempt(snapshot, self._policy, Purpose.ALLOCATE, (made.preemptor,), None, now, made.action)
        minimum = int(snapshot.podgroups.min_available[made.preemptor]) if made.preemptor != NONE else 0
        why = Explanation(Purpose.ALLOCATE.value, made.preemptor, minimum, Reason.CHOSEN, domain)
        price = replace(_EVICTS_NOBODY, tier=tier, domain=domain)
        return Plan(made, assumptions(attempt, made), price, domain, now + self._policy.plan_ttl_s, why)

    # -- actions that evict: scattered -------------------------------------------------------------------------

    def _make_room(self, draft: Draft, action: Action, now: float) -> None:
        snapshot = draft.progress.snapshot
        with self._telemetry.span(SPAN_STARVING, action=action.name) as work:
            host = draft.progress.host()
            starving = in_order(host, host.starving & host.valid)
            draft.starving.update(starving)
            units = [unit for unit in starving if not self._backoff.holds(unit, snapshot, now)]
            draft.again |= len(units) > self._rounds.spread.units
            units = units[: self._rounds.spread.units]
            work.set(starving=len(starving), searched=len(units))
        if not units:
            return
        carrier = self._telemetry.carrier()  # attempts stand beside the search space in the cycle's trace, not under it
        with self._telemetry.span(SPAN_SEARCH_SPACE, action=action.name) as work:
            like = Batch(0, (), action.name, action.purpose, _NOWHERE, now, 0, carrier)
            hunt = self._rounds.hunt(units, host, draft.closed, like)
            domains = sum(len(batch.domains) for batch in hunt.batches)
            work.set(batches=len(hunt.batches), domains=domains, cells=hunt.cells)
        self._rounds.take(draft, action.name, hunt)

    # -- after the search --------------------------------------------------------------------------------------

    def _committed(self, draft: Draft) -> list[Answer]:
        if not draft.plans:
            return []
        carrier = self._telemetry.carrier()
        offers = [Offer(plan_id(str(plan.statement.preemptor), plan), plan, carrier) for plan in draft.plans]
        return self._commit(offers)

    def _remember(self, draft: Draft, answers: Sequence[Answer], snapshot: Snapshot, now: float) -> None:
        """Who was searched for in vain, or whose plan was refused, pauses."""
        self._backoff.keep(draft.starving)
        refused = draft.refused(answers)
        for unit in draft.planned - {unit for unit, _ in refused}:
            self._backoff.forget(unit)
        for unit, plan in refused:
            self._backoff.refused(unit, plan.explanation.minimum, snapshot, now)
        for unit, attempts in draft.vain.items():
            if unit not in draft.planned:
                self._backoff.vain(unit, max(why.minimum for _, why in attempts), snapshot, now)

    def _say(self, draft: Draft, snapshot: Snapshot) -> None:
        starving = tuple(sorted(row for unit in draft.starving for row in unit))
        vain = tuple(Vain(unit, tuple(why)) for unit, why in draft.vain.items() if unit not in draft.planned)
        if self._tell is not None and (vain or (snapshot.epoch, starving) != self._told):
            self._told = snapshot.epoch, starving
            self._tell(Outlook(snapshot.epoch, starving, vain))

    def _figures(self, draft: Draft, accepted: Sequence[Answer], took_ms: float) -> None:
        figures = self._telemetry.figures
        figures.cycle_ms.record(took_ms)
        figures.starving.set(len(draft.starving))
        for _ in accepted:
            figures.decision_ms.record(took_ms)
