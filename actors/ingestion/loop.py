"""The ingestor's loop: one turn after the other, and the updates for other roles."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import NamedTuple

from actors.broker.bus import DECISIONS, EVENTS, Bus
from actors.columns.name_directory import Additions
from actors.configuration.settings import Settings
from actors.contracts import Intake, TurnTold
from actors.ingestion.by_kind.decision_events import closed
from actors.ingestion.checkpointing import Packs, at_once
from actors.ingestion.ingestor import Ingestor
from actors.ingestion.pace import Pace
from actors.ingestion.watching.lag_watch import Lags
from actors.ingestion.watching.state_figures import Unstarted, set_figures
from actors.observability.telemetry import Telemetry
from actors.processes.unique_name import unique_name
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot

log = logging.getLogger(__name__)

#: How long a turn waits for news. Answers of other roles, and times, are looked at between turns.
BLOCK_MS = 20
#: Seconds after which the newest state is sent again, for processes that were not there before.
REPEAT_S = 1.0
#: Seconds between updates while more waits than one turn takes, or while a cycle runs: every other role has work with
#: each update.
GATHER_S = 0.1
#: The same while news waits for the end of a cycle.
_WAITING_BLOCK_MS = 2
_LAG_EVERY_S = 2.0
#: Seconds after which it is logged again that the fleet is not listed.
_UNLISTED_AGAIN_S = 60.0


class Named(NamedTuple):
    """How far the names of a state go.

    Attributes
    ----------
    ingestor, lists
        Number of our ingestor, and of the lists that it took: in all states with the same, tasks keep their rows.
    epoch
        Of the snapshot: in one epoch all other rows keep their names too.
    tasks, podgroups
        How many have names.
    """

    ingestor: int
    lists: int
    epoch: int
    tasks: int
    podgroups: int

    def follows(self, before: Named) -> bool:
        """Whether tasks and podgroups that were there before have the same rows still."""
        return (self.ingestor, self.lists) == (before.ingestor, before.lists)


#: Of a reader that knows no names.
_NONE_NAMED = Named(NONE, NONE, NONE, 0, 0)


def _never() -> bool:
    return False


class IngestLoop:
    """Runs the ingestor. Not for several threads at once.

    Parameters
    ----------
    now_s
        The clock, in seconds since the epoch.
    elapsed_s
        A clock that is never set, in seconds, for all that is due after some time; None: ``now_s``.
    consumer
        Gives the reader a name, each time that it begins anew.
    packs
        Compresses checkpoints.
    """

    def __init__(
        self,
        settings: Settings,
        bus: Bus,
        telemetry: Telemetry,
        *,
        now_s: Callable[[], float] = time.time,
        elapsed_s: Callable[[], float] | None = None,
        consumer: Callable[[], str] = unique_name,
        packs: Packs = at_once,
    ) -> None:
        self._consumer, self._packs = consumer, packs
        self._settings, self._bus, self._telemetry, self._now_s = settings, bus, telemetry, now_s
        self._elapsed_s = elapsed_s or now_s
        self._ingestor = self._begun()
        self._started, self._states = False, 1
        self._recorded: int | None = None
        self._lost_after: int | None = None
        self._folded_ms, self._told_at, self._lag_at, self._say_unlisted_at = 0.0, -math.inf, -math.inf, -math.inf
        self._untold = self._owed = False
        self._leads_until, self._unlisted_since = math.inf, math.inf
        self._lags = Lags(bus, telemetry, settings.lag_warn_s)
        self._unstarted = Unstarted(telemetry.figures)
        # A rise from nothing is none for Prometheus: the first letter is to be seen, and the first start elsewhere.
        for stream in (EVENTS, DECISIONS):
            telemetry.figures.dead_letters.add(0, {"stream": stream})
        telemetry.figures.tasks_elsewhere.add(0)

    def _begun(self) -> Ingestor:
        settings, figures = self._settings, self._telemetry.figures
        return Ingestor(
            self._bus,
            consumer=self._consumer(),
            now_s=self._now_s,
            elapsed_s=self._elapsed_s,
            pace=Pace(entries=settings.entries_per_read, checkpoint_every_s=settings.checkpoint_every_s),
            limits=settings.limits.wire,
            most=settings.limits.state,
            buried=lambda stream, letters: figures.dead_letters.add(letters, {"stream": stream}),
            packs=self._packs,
        )

    @property
    def ingestor(self) -> Ingestor:
        """The ingestor."""
        return self._ingestor

    @property
    def snapshot(self) -> Snapshot:
        """The newest state."""
        return self._ingestor.snapshot

    @property
    def revision(self) -> int:
        """Of the newest state; -1 as long as nothing can be decided on it."""
        return self._ingestor.state.revision if self._ingestor.state.whole else -1

    @property
    def unlisted(self) -> bool:
        """Whether nothing can be decided before the fleet lists what it has, because news was lost or never came."""
        return self._started and not self._ingestor.state.whole

    @property
    def intake(self) -> Intake:
        """What came in, as of the last turn."""
        for_s = 0.0 if math.isinf(self._unlisted_since) else max(0.0, self._elapsed_s() - self._unlisted_since)
        return Intake(self._started and not self.unlisted, for_s, self._lags.seen)

    def turn(self, block_ms: int = BLOCK_MS, busy: Callable[[], bool] = _never) -> TurnTold | None:
        """Fold new entries, many for up to `GATHER_S`; an update if the state changed or was not sent lately.

        While the dispatcher is ``busy`` with a cycle, news gathers for as long: an update that came in the middle would
        be old at the end. What it lacks comes as soon as it is free; until then updates are for the committer alone
        (`TurnTold.for_cycles`).
        """
        self._begin()
        until, worked = self._elapsed_s() + GATHER_S, time.thread_time()
        changed = self._ingestor.poll(min(block_ms, _WAITING_BLOCK_MS) if self._owed or self._untold else block_ms)
        while self._ingestor.behind and self._elapsed_s() < until:
            changed |= self._ingestor.poll()
        now = self._elapsed_s()
        self._look(now)
        if changed:
            self._untold = True
            self._folded_ms += (time.thread_time() - worked) * 1e3
        return self._update(now, busy) if self.revision >= 0 else None

    def _begin(self) -> None:
        """Recover at the first turn, and where entries are gone that were not read here or that were read already."""
        self._ingestor.leads = self._elapsed_s() < self._leads_until
        if self._ingestor.overtaken:
            log.warning("entries were trimmed before they were read here, or the broker lost some; beginning anew")
            if self._ingestor.lost and self._ingestor.folding.list_revision >= 0:
                self._lost_after = self._ingestor.folding.list_revision
            self._ingestor, self._started, self._states = self._begun(), False, self._states + 1
            self._told_at = -math.inf
            self._ingestor.leads = False
        if not self._started:
            self._ingestor.start(self._recorded, self._lost_after)
            self._started, self._recorded, self._lost_after = True, None, None

    def _look(self, now: float) -> None:
        """Report figures from time to time."""
        if now < self._lag_at + _LAG_EVERY_S:
            return
        self._lag_at = now
        self._ingestor.look_for_loss()
        self._lags.look(now)
        self._telemetry.figures.writers.set(self._ingestor.folding.writers)
        if self._ingestor.state.listed:
            set_figures(self._telemetry.figures, self._ingestor.state)
            self._unstarted.look(self._ingestor.state, now)
        self._say_whether_listed(now)

    def _update(self, now: float, busy: Callable[[], bool]) -> TurnTold | None:
        """What is to be told now, if anything."""
        repeats, late = now >= self._told_at + REPEAT_S, now >= self._told_at + GATHER_S
        if not (self._untold or self._owed or repeats):
            return None
        free = not busy()
        if not (free or repeats or (self._untold and late)):
            return None
        links = self._ingestor.folding.trace_links if free else ()  # they are for the spans of a cycle
        told = TurnTold(links, closed(self._ingestor.state), fold_ms=self._folded_ms, for_cycles=free)
        self._told_at, self._untold, self._owed = now, False, not free
        self._folded_ms = 0.0 if free else self._folded_ms
        return told

    def _say_whether_listed(self, now: float) -> None:
        """Report it as a metric, and in the log from time to time."""
        self._unlisted_since = min(self._unlisted_since, now) if self.unlisted else math.inf
        for_s = max(0.0, now - self._unlisted_since)
        # Above 0 from the first moment on: 0 says that the fleet is listed.
        self._telemetry.figures.unlisted_s.set(for_s + 1e-3 if self.unlisted else 0.0)
        if self.unlisted and now >= self._say_unlisted_at:
            self._say_unlisted_at = now + _UNLISTED_AGAIN_S
            log.warning("unlisted for %.0f s: nothing is decided before the fleet lists what it has", for_s)

    def repeat(self) -> None:
        """Send the newest state again with the next turn: a reader lacks what the news follows."""
        self._told_at = -math.inf

    def lost_behind(self, recorded: int | None) -> None:
        """Begin anew if the state contains decisions behind this record, the ledger's last; None: none are known lost.

        The broker may have new entries in their place already, so the streams need not show it.
        """
        if recorded is not None and self.snapshot.decided > recorded:
            log.warning("decisions %d to %d are lost", recorded + 1, self.snapshot.decided)
            self._ingestor.overtaken, self._ingestor.lost, self._recorded = True, True, recorded

    def leads_until(self, at: float) -> None:
        """Our committer leads until ``at`` (seconds of ``elapsed_s``); until then this service writes checkpoints."""
        self._leads_until = at

    def named(self) -> Named:
        """How far the names go, for ``additions``."""
        state, snapshot = self._ingestor.state, self.snapshot
        return Named(self._states, state.lists, snapshot.epoch, len(snapshot.tasks), len(snapshot.podgroups))

    def additions(self, since: Named | None) -> Additions:
        """Names of the newest state that came after ``since``; all of them if it is None or tasks have other rows."""
        names, epoch = self._ingestor.state.names, self.snapshot.epoch
        known = since if since is not None and self.named().follows(since) else _NONE_NAMED
        fresh = known.epoch != epoch
        return Additions(
            epoch=epoch,
            follows=known.epoch,
            tasks_from=known.tasks,
            tasks=tuple(names.tasks[known.tasks :]),
            podgroups_from=known.podgroups,
            podgroups=tuple(names.podgroups[known.podgroups :]),
            nodes=tuple(names.nodes) if fresh else (),
            queues=tuple(names.queues) if fresh else (),
            domains=tuple(names.domains) if fresh else (),
            budgets=tuple(sorted(self._ingestor.state.documents.names("disruption_budgets"))),
        )

    def close(self) -> None:
        """Write a checkpoint if we lead, so that the next start has little to read."""
        if self._ingestor.state.listed and self._elapsed_s() < self._leads_until:
            self._ingestor.checkpoint()
