"""The dispatcher as a Ray actor: takes new snapshots, and decides in a thread of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError

from actors.contracts import CommitResult, Leadership, Offer, TurnTold
from actors.documents.collector import settle
from actors.ingestion.loop import REPEAT_S
from actors.ray_runtime.limits import CALL_LIMIT_S, FETCH_LIMIT_S, STANDBY_S, STOP_LIMIT_S
from actors.ray_runtime.process import RoleProcess, Wiring
from actors.ray_runtime.searcher_pool import RaySearchers
from actors.ray_runtime.transport.snapshot_feed import Mark, SnapshotReader, Told
from actors.ray_runtime.transport.snapshot_store import SnapshotStore
from actors.search.batched_search import Spread
from actors.search.dispatcher import Dispatcher
from actors.search.loop import CycleLoop
from actors.search.offers_ahead import Call, OffersAhead
from actors.search.scatter import Scatter
from actors.search.searcher import Searcher
from actors.search.wakeup import WakeUp
from actors.warming.warm import load
from pipeline.actions.backoff import Backoff
from pipeline.cluster.snapshot import Snapshot

log = logging.getLogger(__name__)

#: Seconds that one call to the committer waits until our service gets the lease.
_LEAD_WAIT_S = 1.0


class _RayCommitter:
    """Implements `offers_ahead.CommitterCalls`: offers that are repeated get the answers that they got first."""

    def __init__(self, committer: Any) -> None:
        self._committer = committer

    def begin(self, offers: Sequence[Offer]) -> Call:
        """See the port."""
        call: Call = self._committer.commit.remote(list(offers))
        return call

    def ended(self, call: Call) -> bool:
        """See the port."""
        return bool(ray.wait([call], timeout=0, fetch_local=False)[0])

    def answers(self, call: Call) -> list[CommitResult] | None:
        """See the port."""
        try:
            answers: list[CommitResult] = ray.get(call, timeout=CALL_LIMIT_S)  # type: ignore[call-overload] # a reference
        except (RayActorError, GetTimeoutError) as lost:
            log.warning("the committer did not answer (%s); asked again", type(lost).__name__)
            return None
        return answers


class DispatcherActor(RoleProcess):
    """The dispatcher, its cycles run by a thread of its own."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(wiring, "dispatcher")
        load(wiring.policy)
        settle()
        # By name: a handle among the arguments would not outlive the process that made it.
        self._committer: Any = ray.get_actor("committer")
        store, now_s = SnapshotStore(), self.follow_clock()
        self._wake_up = WakeUp(now_s)
        self._newest = SnapshotReader(store)
        self._searchers = RaySearchers(store)
        self._scatter = Scatter(
            self._searchers, note=lambda event, searcher: self.telemetry.event(event, searcher=searcher)
        )
        self.enlist()
        offers = OffersAhead(_RayCommitter(self._committer), lambda: self._wake_up.closed)
        dispatcher = Dispatcher(
            wiring.policy,
            Searcher(wiring.policy, self.telemetry),
            self._scatter,
            offers,
            self.telemetry,
            now_s=now_s,
            backoff=Backoff(seed=len(wiring.settings.fleet)),
            spread=Spread(wiring.settings.domains_per_attempt, in_place_cells=wiring.settings.in_place_cells),
            tell=self._committer.starving.remote,
            ahead=offers.ahead,
        )
        self._leads_until = 0.0
        self._loop = CycleLoop(dispatcher, self._wake_up, self._fetch, wiring.settings.debounce_ms, self._leads)
        self._thread = self.begin("cycles", self._loop.run)

    def enlist(self) -> None:
        """Look up which searchers there are."""
        self._scatter.enlist(self._searchers.names())

    def hear(self, news: tuple[Told, TurnTold]) -> bool:
        """Take a newer state, and return once a cycle on it is over: then the ingestor tells what came meanwhile.

        False, and at once, if what it follows is not known here. One argument takes Ray less time than two.
        """
        told, turn = news
        if not self._newest.hear(told):
            return False
        self._loop.hear(told.mark, told.revision, turn)
        self._loop.await_end(REPEAT_S)
        return True

    def cycling_s(self) -> float:
        """For how long the cycle that runs now has run, in seconds; 0 if none runs."""
        return self._loop.cycling_s

    def stop(self) -> None:
        """End after the current cycle."""
        self._wake_up.close()
        self._thread.join(STOP_LIMIT_S)
        self.telemetry.stop()

    def _fetch(self, mark: Mark) -> Snapshot | None:
        """The snapshot that was heard; None if a newer one was, or if it was lost with the ingestor that had it."""
        try:
            return self._newest.fetch(mark, FETCH_LIMIT_S)
        except RayError as lost:
            log.warning("a snapshot was lost: %s", type(lost).__name__)
            return None

    def _leads(self) -> bool:
        """Whether our committer leads. It is asked once its lease would have run out, and may wait a short time."""
        now = time.monotonic()
        if now < self._leads_until:
            return True
        try:
            call = self._committer.leadership.remote(False, _LEAD_WAIT_S)
            leadership: Leadership = ray.get(call, timeout=_LEAD_WAIT_S + FETCH_LIMIT_S)
        except (RayActorError, GetTimeoutError) as lost:
            log.warning("the committer did not say which service leads: %s", type(lost).__name__)
            self._wake_up.wait(self._wake_up.now_s() + STANDBY_S)
            return False
        self._leads_until = now + leadership.leads_s
        return leadership.leads
