"""The committer as a Ray actor: calls from outside, and a thread that keeps the lease and tends reservations."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

import ray
from ray.exceptions import RayActorError, RayError

from actors.broker.redis_ledger import RedisLedger
from actors.columns.name_directory import Additions, Directory
from actors.commit.committer import Committer, TimeLimits
from actors.contracts import Ack, CommitResult, Leadership, Offer, PendingReport
from actors.documents.collector import settle
from actors.ingestion.loop import REPEAT_S
from actors.protocol.outcomes import Reports
from actors.ray_runtime.limits import FETCH_LIMIT_S, STANDBY_S
from actors.ray_runtime.process import RoleProcess, Wiring
from actors.ray_runtime.transport.snapshot_feed import Mark, SnapshotReader, Told
from actors.ray_runtime.transport.snapshot_store import SnapshotStore
from actors.search.reasons_writer import ReasonsWriter
from actors.search.wakeup import WakeUp
from actors.warming.warm import load

log = logging.getLogger(__name__)

#: Groups of calls that wait for the broker, or for the lock that is held meanwhile, with their threads. However many of
#: them wait, the other threads still answer at once: which service leads, and what was logged.
WAITING: Final = {"news": 1, "plans": 1, "reasons": 1}


class CommitterActor(RoleProcess):
    """The committer; a thread of its own keeps the lease and tends reservations."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(wiring, "committer")
        load(wiring.policy)
        settle()
        settings = wiring.settings
        now_s = self.follow_clock()
        self._directory, self._wake_up, self._lock = Directory(), WakeUp(now_s), threading.Lock()
        self._reader = SnapshotReader(SnapshotStore())
        self._newest: Mark | None = None
        self._turned, self._renew_at = threading.Condition(), 0.0
        self._committer = Committer(
            RedisLedger(self.link, settings.fleet, synced=settings.commit_synced, shadow=settings.shadow),
            self.bus,
            wiring.policy,
            self._directory,
            self.telemetry,
            # A restarted actor is another owner: it must read what its predecessor recorded.
            owner=f"{wiring.owner}-{os.getpid()}-{time.time_ns()}",
            now_s=now_s,
            elapsed_s=time.monotonic,
            limits=TimeLimits(settings.lease_ttl_s, settings.eviction_deadline_s),
        )
        self._reports = Reports(self.bus)
        self._reasons = ReasonsWriter(self.bus, self._directory, now_s=now_s, elapsed_s=time.monotonic)
        self._renew_s, self._silent_s = settings.lease_ttl_s / 3, 2 * settings.lease_ttl_s + REPEAT_S
        self._heard_at = time.monotonic()
        self._served = False
        self._asked: Any = None
        self.begin("tend", self._tend)

    @ray.method(concurrency_group="news")
    def hear(self, news: tuple[Told, Additions]) -> Ack:
        """Take a newer state with its names; if earlier news or names are missing, the answer says so instead.

        One argument takes Ray less time than two.
        """
        told, more = news
        with self._lock:
            self._heard_at = time.monotonic()
            named, known = self._directory.take(more), self._reader.hear(told)
            lost_behind = self._committer.lost_behind
            if named and known:
                self._newest = told.mark
        self._wake_up.wake()
        return Ack(named, known, self._committer.leadership, lost_behind)

    @ray.method(concurrency_group="news")
    def unlisted(self) -> None:
        """Note that a list must come first. If that takes long, the lease is given back: a standby may know more."""
        with self._lock:
            self._newest = None
            self._committer.unlisted()

    def leadership(self, leads: bool | None = None, limit_s: float = 0.0) -> Leadership:
        """Which service leads; waits up to ``limit_s`` seconds for it to differ from what the caller believes."""
        with self._turned:
            self._turned.wait_for(lambda: self._committer.leadership.is_news(leads), limit_s)
        return self._committer.leadership

    @ray.method(concurrency_group="plans")
    def commit(self, offers: Sequence[Offer]) -> list[CommitResult]:
        """See `Committer.commit`."""
        with self._lock:
            self._fetch()
            led = self._committer.leads
            answers = self._committer.commit(offers)
            if led and not self._committer.leads:
                self._renew_at = 0.0
        self._wake_up.wake()
        return answers

    @ray.method(concurrency_group="reasons")
    def starving(self, report: PendingReport) -> None:
        """Write why podgroups starve, if this service leads and their names are known."""
        if self._committer.leadership.leads:
            self._reasons.take(report, self._lock)
            self.telemetry.figures.oldest_since.set(self._reasons.oldest)
        else:
            self._reasons.forget()

    def stop(self) -> None:
        """Give the lease back and end."""
        self._wake_up.close()
        with self._lock:
            self._committer.resign()
        self.telemetry.stop()

    def _fetch(self) -> None:
        if self._newest is not None:
            newest, self._newest = self._newest, None
            try:
                snapshot = self._reader.fetch(newest, FETCH_LIMIT_S)
            except RayError as lost:  # the ingestor died; its successor sends anew
                log.warning("a snapshot was lost: %s", type(lost).__name__)
            else:
                if snapshot is not None:
                    self._committer.hear(snapshot)

    def _is_served(self) -> bool:
        """Whether our dispatcher is there: it loads machine code for seconds, and nothing is decided before that."""
        if self._served:
            return True
        try:
            if self._asked is None:
                self._asked = ray.get_actor("dispatcher").ready.remote()
            if ray.wait([self._asked], timeout=0)[0]:
                asked, self._asked = self._asked, None
                ray.get(asked)
                self._served = True
        except (ValueError, RayActorError):  # it is not made yet, or has died and is started again
            pass
        return self._served

    def _lead(self) -> None:
        """Hold the lease while other actors call this one.

        If its raylet froze, this actor may live on although Ray has started another in its place. The other actors
        then talk to that one, and it must not have to wait until this one ends.
        """
        if time.monotonic() - self._heard_at < self._silent_s:
            self._committer.lead()
        elif self._committer.leads:
            log.warning("nothing was heard for %.0f s; the lease is given back", self._silent_s)
            self._committer.resign()

    def _tend(self) -> None:
        until: float | None = 0.0
        while self._wake_up.wait(until):
            with self._lock:
                if self._wake_up.closed:  # the lease was given back and must not be taken again
                    return
                if time.monotonic() >= self._renew_at:
                    if self._is_served():
                        self._lead()
                    self._renew_at = time.monotonic() + (self._renew_s if self._committer.leads else STANDBY_S)
                if not self._committer.leads:
                    self.telemetry.figures.oldest_since.drop()
                self._fetch()
                self._committer.tend()
                deadline = self._committer.next_deadline()
                done = self._committer.fulfilled()
            with self._turned:
                self._turned.notify_all()
            self._reports.write(done)
            # Waits end at a time of day; a renewal is due by a clock that is never set.
            renew_at = self._wake_up.now_s() + self._renew_at - time.monotonic()
            until = min(renew_at, deadline) if deadline is not None else renew_at
