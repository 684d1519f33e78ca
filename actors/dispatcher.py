"""The dispatcher: one cycle over the newest snapshot, with the searching spread over others.

It does what `pipeline.cycle` does, action by action, and differs in where and how much is searched: all who starve are
searched for at once on one snapshot, each in batches of domains, and the plans that do not conflict are taken in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from actors.backoff import Backoff, Unit
from actors.exchange import Answer, Batch, Commit, News, Offer, Outlook, Search, Tell, Vain, plan_id
from actors.selection import Draft, take
from actors.telemetry import SPAN_CYCLE, SPAN_INGEST, SPAN_SEARCH_SPACE, SPAN_STARVING, Telemetry
from pipeline.actions.allocate import allocate
from pipeline.actions.backfill import backfill
from pipeline.actions.enqueue import enqueue
from pipeline.actions.progress import Progress
from pipeline.attempt import Attempt, Purpose
from pipeline.closing import without
from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.errors import PolicyRefused
from pipeline.explanation import NO_PRIORITY, Explanation, Price, Reason
from pipeline.plan import Plan
from pipeline.plugins.votes import Votes
from pipeline.policy import Policy
from pipeline.propose import assumptions
from pipeline.search_space import domains_of
from pipeline.starving import EVICTING, in_order
from pipeline.statement import Statement

PLACING: dict[str, Callable[[Progress], Progress]] = {"enqueue": enqueue, "allocate": allocate, "backfill": backfill}
_EVICTS_NOBODY = Price(0, 0, NO_PRIORITY, 0, 0, 0.0, 0, 0, NONE)


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


@dataclass(frozen=True, slots=True)
class _Space:
    """Where a unit is to be searched for (int64[D], preferred first), and for how many tasks."""

    unit: Unit
    domains: Rows
    tasks: int


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
        unsupported = [action for action in policy.actions if action not in PLACING and action not in EVICTING]
        if unsupported:
            raise PolicyRefused(f"policy.actions: {unsupported[0]!r} is not supported yet")
        self._policy, self._here, self._elsewhere, self._commit = policy, here, elsewhere, commit
        self._telemetry, self._now_s, self._elapsed_s = telemetry, now_s, elapsed_s
        self._backoff = backoff if backoff is not None else Backoff()
        self._spread = spread if spread is not None else Spread()
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
        self._wake(news, now)
        with self._telemetry.span(SPAN_CYCLE, revision=snapshot.revision, policy=self._policy.digest) as work:
            with self._telemetry.span(SPAN_INGEST, links=news.links[-64:]) as ingest:
                ingest.set(
                    revision=snapshot.revision, decided=snapshot.decided, tasks=len(snapshot.tasks),
                    nodes=len(snapshot.nodes),
                )  # fmt: skip
            draft = Draft(Progress(snapshot, self._policy, now))
            for action in self._policy.actions:
                if action in PLACING:
                    self._place(draft, action)
                else:
                    self._make_room(draft, action, now)
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

    def _wake(self, news: News, now: float) -> None:
        """Whoever paused for nodes that nobody was to count on need not any more once that is over."""
        avoided = {(node, until) for node, until in news.closed.overdue if until > now}
        if not self._avoided <= avoided:
            self._backoff.keep(set())
        self._avoided = avoided

    # -- actions that evict nobody: in place, as they are ------------------------------------------------------

    def _place(self, draft: Draft, action: str) -> None:
        before = draft.progress
        with self._telemetry.span(action) as work:
            draft.progress = PLACING[action](before)
            made = draft.progress.statements[len(before.statements) :]
            work.set(statements=len(made))
        step = before.snapshot
        for one in made:
            # Admissions are worked out anew in every cycle, so they bind nobody and are not recorded.
            if len(one.bound) or len(one.nominated):
                draft.offer(self._as_plan(one, step, before.now))
            step = one.apply(step)

    def _as_plan(self, made: Statement, snapshot: Snapshot, now: float) -> Plan:
        """A placement as a plan: it costs nobody anything."""
        nodes = np.concatenate([made.bound_node, made.nominated_node])
        domain = snapshot.topology.lowest_common(nodes)
        tier = int(snapshot.topology.tier[domain])
        attempt = Attempt(snapshot, self._policy, Purpose.ALLOCATE, (made.preemptor,), None, now, made.action)
        minimum = int(snapshot.podgroups.min_available[made.preemptor]) if made.preemptor != NONE else 0
        why = Explanation(Purpose.ALLOCATE.value, made.preemptor, minimum, Reason.CHOSEN, domain)
        price = replace(_EVICTS_NOBODY, tier=tier, domain=domain)
        return Plan(made, assumptions(attempt, made), price, 0, domain, now + self._policy.plan_ttl_s, why)

    # -- actions that evict: scattered -------------------------------------------------------------------------

    def _make_room(self, draft: Draft, action: str, now: float) -> None:
        purpose, snapshot = EVICTING[action], draft.progress.snapshot
        with self._telemetry.span(SPAN_STARVING, action=action) as work:
            votes = draft.progress.votes()
            starving = in_order(votes, votes.starving & votes.valid)
            draft.starving.update(starving)
            units = [unit for unit in starving if not self._backoff.holds(unit, snapshot, now)]
            draft.again |= len(units) > self._spread.units
            units = units[: self._spread.units]
            work.set(starving=len(starving), searched=len(units))
        if not units:
            return
        carrier = self._telemetry.carrier()  # attempts stand beside the search space in the cycle's trace, not under it
        with self._telemetry.span(SPAN_SEARCH_SPACE, action=action) as work:
            spaces = self._spaces(units, votes, purpose)
            cells = sum(len(space.domains) * space.tasks for space in spaces)
            here = cells < self._spread.in_place_cells
            batches = self._dealt(spaces, Batch(0, (), action, purpose, spaces[0].domains, now, 0, carrier), here=here)
            work.set(batches=len(batches), domains=sum(len(space.domains) for space in spaces), cells=cells)
        self._take(draft, action, units, batches, here=here)

    def _take(self, draft: Draft, action: str, units: Sequence[Unit], batches: Sequence[Batch], *, here: bool) -> None:
        """Search, and take what holds together; who fell to the others is searched for again beside them.

        In this process one after the other, each on what those before it left; elsewhere all at once. Nobody counts on
        nodes of victims that do not end.
        """
        avoided = np.array(sorted({node for node, _ in self._avoided}), np.int64)
        somewhere, left = self._here if here else self._elsewhere, list(range(len(units)))
        for _ in range(self._spread.rounds):
            turns = [[position] for position in left] if here else [left]
            left = []
            for turn in turns:
                asked = [batch for batch in batches if batch.unit in turn]
                left += take(
                    draft, action, units, turn, somewhere.search(without(draft.progress.snapshot, avoided), asked)
                )
            if not left:
                return
        draft.again = True

    def _spaces(self, units: Sequence[Unit], votes: Votes, purpose: Purpose) -> list[_Space]:
        pending = votes.situation.snapshot.standing.pending
        return [
            _Space(unit, domains_of(votes, unit, purpose), max(1, int(pending[list(unit)].sum()))) for unit in units
        ]

    def _dealt(self, spaces: Sequence[_Space], like: Batch, *, here: bool) -> list[Batch]:
        """Each unit's domains, dealt out so that every batch has some of the preferred ones."""
        batches, apart = [], 1 if here else min(len(spaces), self._spread.alternatives)
        for position, space in enumerate(spaces):
            parts = max(1, -(-len(space.domains) // self._spread.domains), min(apart, len(space.domains)))
            for part in range(parts):
                share = space.domains[part::parts]
                cells = len(share) * space.tasks
                batches.append(replace(like, unit=position, podgroups=space.unit, domains=share, cells=cells))
        return batches

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
