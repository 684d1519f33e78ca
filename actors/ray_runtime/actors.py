"""The roles as Ray actors, and how they are wired. Only this file and `ray_*` know Ray.

Control actors reserve no processor, searchers share them. An actor that dies comes back by itself and recovers as at
any start; its peers hold handles, which stay good. News travels by reference: a role that is behind fetches the newest
snapshot only.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import ActorDiedError, GetTimeoutError, RayActorError, RayError, RayTaskError

from actors.broker.redis_ledger import RedisLedger
from actors.columns.name_directory import Additions, Directory
from actors.commit.committer import Committer, Terms
from actors.contracts import Answer, Batch, Closed, Heard, News, Offer, Outlook, Searched, Standing
from actors.ingestion.loop import REPEAT_S, IngestLoop, settled
from actors.ray_runtime.cluster import RayRefused
from actors.ray_runtime.process import Station, Wiring
from actors.ray_runtime.searcher_pool import RaySearchers, searcher_name
from actors.ray_runtime.warm import warm_up
from actors.search.backoff import Backoff
from actors.search.dispatcher import Dispatcher
from actors.search.hedged_pool import Scatter
from actors.search.loop import CycleLoop
from actors.search.pending_reasons import StarvingReasons
from actors.search.rounds import Spread
from actors.search.searcher import Searcher
from actors.search.wakeup import Bell
from pipeline.cluster.snapshot import Snapshot

log = logging.getLogger(__name__)

COMMIT_LIMIT_S = 30.0
_HEARD_S = 0.05
START_LIMIT_S = 120.0
FETCH_LIMIT_S = 5.0
#: A standby asks for the lease so often. It runs out by itself, so this is what a clean end costs.
STANDBY_S = 0.25
#: So long an actor waits at another for the lease to change hands, before it looks up again.
STANDING_S = 1.0
STOP_LIMIT_S = 10.0
#: What a searcher reserves, so that a standby's find room beside the leader's, and one whose machine died elsewhere.
_SEARCHER_CPUS = 0.5


class SearcherActor(Station):
    """A searcher in a process of its own."""

    def __init__(self, wiring: Wiring, number: int) -> None:
        super().__init__(wiring, searcher_name(number))
        warm_up()
        self._searcher = Searcher(wiring.policy, self.telemetry)

    def search(self, snapshot: Snapshot, batches: Sequence[Batch]) -> list[Searched]:
        """See `searcher.Searcher`."""
        return self._searcher.search(snapshot, batches)

    def probed(self) -> tuple[Searched, ...]:
        """Answers once there is nothing else to do."""
        return ()


class CommitterActor(Station):
    """The committer, its lease kept and its reservations tended by a thread of its own."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(wiring, "committer")
        warm_up()
        settings = wiring.settings
        self._directory, self._bell, self._lock = Directory(), Bell(), threading.Lock()
        self._newest: Any = None
        self._turned, self._renew_at = threading.Condition(), 0.0
        self._committer = Committer(
            RedisLedger(self.link, settings.fleet, sync_ms=settings.commit_sync_ms),
            self.bus,
            wiring.policy,
            self._directory,
            self.telemetry,
            # A restarted actor is somebody else: what its predecessor recorded, it must read.
            owner=f"{wiring.owner}-{os.getpid()}-{time.time_ns()}",
            now_s=time.time,
            terms=Terms(settings.lease_ttl_s, settings.eviction_deadline_s),
        )
        self._reasons = StarvingReasons(self.bus, self._directory, now_s=time.time)
        self._renew_s, self._silent_s = settings.lease_ttl_s / 3, 2 * settings.lease_ttl_s + REPEAT_S
        self._heard_at = time.time()
        self.begin("tend", self._tend)

    def hear(self, reference: list[Any], more: Additions) -> Heard:
        """Take newer news, unless names are missing."""
        with self._lock:
            self._heard_at = time.time()
            known = self._directory.take(more)
            if known:
                self._newest = reference[0]
        self._bell.ring()
        return Heard(known, self._committer.standing)

    def standing(self, leads: bool | None = None, limit_s: float = 0.0) -> Standing:
        """Who decides; waits so long for it to be otherwise than the caller believes."""
        with self._turned:
            self._turned.wait_for(lambda: self._committer.standing.is_news(leads), limit_s)
        return self._committer.standing

    def commit(self, offers: Sequence[Offer]) -> list[Answer]:
        """See `committer.Committer`."""
        with self._lock:
            self._fetch()
            led = self._committer.leads
            answers = self._committer.commit(offers)
            if led and not self._committer.leads:
                self._renew_at = 0.0
        self._bell.ring()
        return answers

    def starving(self, outlook: Outlook) -> None:
        """Write down why podgroups starve, where it is ours to write and their names are known."""
        with self._lock:
            if not self._committer.standing.leads:
                self._reasons.forget()
            elif self._directory.knows(outlook.epoch, outlook.starving):
                self._reasons.take(outlook)

    def stop(self) -> None:
        """Give the lease back and end."""
        self._bell.close()
        with self._lock:
            self._committer.resign()
        self.telemetry.stop()

    def _fetch(self) -> None:
        if self._newest is not None:
            newest, self._newest = self._newest, None
            try:
                self._committer.hear(ray.get(newest, timeout=FETCH_LIMIT_S))
            except RayError as lost:  # the ingestor died; its successor sends anew
                log.warning("a snapshot was lost: %s", type(lost).__name__)

    def _lead(self) -> None:
        """Hold the lease while somebody talks to us.

        Behind a raylet that froze we live on, but Ray has started another for us and everybody talks to that one. It
        must not wait for our end.
        """
        if time.time() - self._heard_at < self._silent_s:
            self._committer.lead()
        elif self._committer.leads:
            log.warning("nothing was heard for %.0f s; the lease is given back", self._silent_s)
            self._committer.resign()

    def _tend(self) -> None:
        until: float | None = 0.0
        while self._bell.wait(until):
            with self._lock:
                if self._bell.closed:  # the lease was given back, and must not be taken again
                    return
                if time.time() >= self._renew_at:
                    self._lead()
                    self._renew_at = time.time() + (self._renew_s if self._committer.leads else STANDBY_S)
                self._fetch()
                self._committer.tend()
                deadline = self._committer.next_deadline()
            with self._turned:
                self._turned.notify_all()
            until = min(self._renew_at, deadline) if deadline is not None else self._renew_at


class DispatcherActor(Station):
    """The dispatcher, its cycles run by a thread of its own."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(wiring, "dispatcher")
        warm_up()
        # By name: a handle among the arguments would not outlive the process that made it.
        self._committer: Any = ray.get_actor("committer")
        self._searchers, self._bell = RaySearchers(), Bell()
        self._scatter = Scatter(self._searchers)
        self.muster()
        dispatcher = Dispatcher(
            wiring.policy,
            Searcher(wiring.policy, self.telemetry),
            self._scatter,
            self._commit,
            self.telemetry,
            now_s=time.time,
            backoff=Backoff(seed=len(wiring.settings.fleet)),
            spread=Spread(wiring.settings.domains_per_attempt, in_place_cells=wiring.settings.in_place_cells),
            tell=self._committer.starving.remote,
        )
        self._leads_until = 0.0
        self._loop = CycleLoop(dispatcher, self._bell, self._fetch, wiring.settings.debounce_ms, self._leads)
        self._thread = self.begin("cycles", self._loop.run)

    def muster(self) -> None:
        """Look who the searchers are."""
        self._scatter.enlist(self._searchers.names())

    def hear(self, reference: list[Any], links: tuple[Mapping[str, str], ...], revision: int, closed: Closed) -> None:
        """Take newer news and wake up."""
        self._loop.hear(reference[0], links, revision, closed)

    def stop(self) -> None:
        """No further cycle; the one at hand is finished."""
        self._bell.close()
        self._thread.join(STOP_LIMIT_S)
        self.telemetry.stop()

    def _fetch(self, reference: Any) -> Snapshot | None:
        """The snapshot of a reference; None if it was lost with the ingestor that owned it."""
        try:
            snapshot: Snapshot = ray.get(reference, timeout=FETCH_LIMIT_S)
        except RayError as lost:
            log.warning("a snapshot was lost: %s", type(lost).__name__)
            return None
        self._searchers.hold(snapshot, reference)
        return snapshot

    def _leads(self) -> bool:
        """Whether our committer leads, asked again when its lease would have run out; waits a while for it."""
        now = time.monotonic()
        if now < self._leads_until:
            return True
        try:
            call = self._committer.standing.remote(False, STANDING_S)
            standing: Standing = ray.get(call, timeout=STANDING_S + FETCH_LIMIT_S)
        except (RayActorError, GetTimeoutError) as lost:
            log.warning("the committer did not say who leads: %s", type(lost).__name__)
            self._bell.wait(time.time() + STANDBY_S)
            return False
        self._leads_until = now + standing.leads_s
        return standing.leads

    def _commit(self, offers: Sequence[Offer]) -> list[Answer]:
        """Ask until there is an answer: the same offer, asked again, gets the answer it had."""
        while not self._bell.closed:
            try:
                answers: list[Answer] = ray.get(self._committer.commit.remote(list(offers)), timeout=COMMIT_LIMIT_S)
            except (RayActorError, GetTimeoutError) as lost:
                log.warning("the committer did not answer (%s); asked again", type(lost).__name__)
                continue
            return answers
        return []


class IngestorActor(Station):
    """The ingestor: reads in a thread of its own and tells the others by reference."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(wiring, "ingestor")
        self._stop, self._listed = threading.Event(), threading.Event()
        self._loop = IngestLoop(wiring.settings, self.bus, self.telemetry, settle=settled)
        self._loop.leads_until(0.0)
        self._dispatcher: Any = ray.get_actor("dispatcher")
        self._committer: Any = ray.get_actor("committer")
        self._said: Any = None
        self._told: Any = None
        self._thread = self.begin("ingest", self._run)

    def stop(self) -> None:
        """Write a checkpoint and end."""
        self._stop.set()
        self._thread.join(STOP_LIMIT_S)
        self._loop.close()
        self.telemetry.stop()

    def listed(self, limit_s: float) -> bool:
        """Whether the fleet is known, at the latest after so long."""
        return self._listed.wait(limit_s)

    def _run(self) -> None:
        while not self._stop.is_set():
            news = self._loop.turn()
            if news is not None:
                self._tell(news)
                self._listed.set()

    def _tell(self, news: News) -> None:
        reference, asked_at = ray.put(news.snapshot), time.time()
        # Each call that waits holds a snapshot: one at a time. Who misses news hears it again within a second.
        if self._told is None or ray.wait([self._told], timeout=_HEARD_S)[0]:
            self._told = self._dispatcher.hear.remote([reference], news.links, news.snapshot.revision, news.closed)
        heard = self._committer.hear.remote([reference], self._loop.additions(since=self._said))
        try:
            answer: Heard = ray.get(heard, timeout=COMMIT_LIMIT_S)
        except (RayActorError, GetTimeoutError) as lost:
            log.warning("the committer did not hear the news: %s", type(lost).__name__)
            self._said = None
            return
        self._said = self._loop.counted() if answer.known else None
        self._loop.leads_until(asked_at + answer.standing.leads_s)


class Pipeline:
    """The actors of one fleet, as who started them sees them."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self.searchers: list[Any] = []
        self._add_searchers()
        control: dict[str, Any] = {"num_cpus": 0, "max_restarts": -1, "max_concurrency": 16}
        self.committer: Any = ray.remote(CommitterActor).options(name="committer", **control).remote(wiring)
        self.dispatcher: Any = ray.remote(DispatcherActor).options(name="dispatcher", **control).remote(wiring)
        self.ingestor: Any = ray.remote(IngestorActor).options(name="ingestor", **control).remote(wiring)

    def _add_searchers(self) -> int:
        """Begin those that are missing; how many. They share the processors with those of a standby."""
        processors = float(ray.cluster_resources().get("CPU", 1.0))  # type: ignore[no-untyped-call] # Ray's
        wanted = self._wiring.settings.searchers or max(1, int(processors))
        share = min(_SEARCHER_CPUS, int(100 * _SEARCHER_CPUS * processors / wanted) / 100)
        missing = range(len(self.searchers), wanted)
        self.searchers += [
            ray.remote(SearcherActor)
            .options(
                num_cpus=share, max_restarts=-1, max_task_retries=0, name=searcher_name(number),
                scheduling_strategy="SPREAD",
            )
            .remote(self._wiring, number)
            for number in missing
        ]  # fmt: skip
        return len(missing)

    def grow(self) -> int:
        """Add searchers for processors that have joined the cluster, where the settings leave it to us; how many."""
        added = self._add_searchers()
        if added:
            self.dispatcher.muster.remote()
        return added

    def standing(self, leads: bool | None, limit_s: float) -> Standing | None:
        """Who decides, as the committer says; None if it does not answer. See `CommitterActor.standing`.

        Raises
        ------
        RayRefused
            When it never will again.
        """
        try:
            found: Standing = ray.get(self.committer.standing.remote(leads, limit_s), timeout=limit_s + FETCH_LIMIT_S)
        except ActorDiedError as dead:  # it would be begun anew for as long as we are known to live
            raise RayRefused(
                "the actors are gone, and Ray begins no others for us: has this machine's Ray node died?"
            ) from dead
        except (RayActorError, GetTimeoutError):
            return None
        return found

    @property
    def actors(self) -> list[Any]:
        """All of them, in the order in which they stop."""
        return [self.ingestor, self.dispatcher, *self.searchers, self.committer]

    def await_ready(self, limit_s: float = START_LIMIT_S) -> None:
        """Wait until every actor is there.

        Raises
        ------
        RayRefused
            When one did not start in time, or failed.
        """
        try:
            ray.get([actor.ready.remote() for actor in self.actors], timeout=limit_s)
        except GetTimeoutError as late:
            raise RayRefused(
                f"the actors did not start within {limit_s:.0f} s: is there a processor for them?"
            ) from late
        except (RayActorError, RayTaskError) as failed:
            raise RayRefused(f"an actor failed to start: {str(failed).strip().splitlines()[-1]}") from failed

    def await_listed(self, limit_s: float) -> None:
        """Wait until the fleet is known.

        Raises
        ------
        RayRefused
            When it is not in time.
        """
        if not ray.get(self.ingestor.listed.remote(limit_s), timeout=limit_s + COMMIT_LIMIT_S):
            raise RayRefused(f"the fleet was not listed within {limit_s:.0f} s")

    def flush(self) -> None:
        """Have every actor send the spans it holds."""
        ray.wait([actor.flush.remote() for actor in self.actors], num_returns=len(self.actors), timeout=5.0)

    def stop(self, limit_s: float = 15.0) -> None:
        """End in order: no more news, no more cycles, then the lease is given back."""
        for actor in (self.ingestor, self.dispatcher, self.committer):
            try:
                ray.get(actor.stop.remote(), timeout=limit_s)
            except RayError as lost:
                log.warning("an actor did not stop cleanly: %s", type(lost).__name__)
