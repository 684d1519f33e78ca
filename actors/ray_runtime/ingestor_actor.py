"""The ingestor as a Ray actor: reads in a thread of its own, and sends news to the others."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError

from actors.contracts import Ack, Intake, SnapshotUpdate
from actors.ingestion.loop import IngestLoop
from actors.ray_runtime.limits import CALL_LIMIT_S, STOP_LIMIT_S
from actors.ray_runtime.process import RoleProcess, Wiring
from actors.ray_runtime.snapshot_store import SnapshotStore

log = logging.getLogger(__name__)


class IngestorActor(RoleProcess):
    """The ingestor: reads in a thread of its own and tells the others by reference."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(wiring, "ingestor")
        self._stop, self._listed = threading.Event(), threading.Event()
        self._loop = IngestLoop(wiring.settings, self.bus, self.telemetry)
        self._loop.leads_until(0.0)
        self._dispatcher: Any = ray.get_actor("dispatcher")
        self._committer: Any = ray.get_actor("committer")
        self._store = SnapshotStore()
        self._said: Any = None
        self._told: Any = None
        self.settle()
        self._thread = self.begin("ingest", self._run)

    def stop(self) -> None:
        """Write a checkpoint and end."""
        self._stop.set()
        self._thread.join(STOP_LIMIT_S)
        self._loop.close()
        self.telemetry.stop()

    def intake(self) -> Intake:
        """What came in, as the loop saw it last."""
        return self._loop.intake

    def listed(self, limit_s: float) -> bool:
        """Whether the fleet was listed; waits for it up to ``limit_s`` seconds."""
        return self._listed.wait(limit_s)

    def _run(self) -> None:
        self._committer.unlisted.remote()  # what our predecessor sent may be older than a gap that we find
        while not self._stop.is_set():
            news = self._loop.turn(busy=self._busy)
            if news is not None:
                self._tell(news)
                self._listed.set()
            elif self._listed.is_set() and self._loop.unlisted:
                self._listed.clear()
                self._committer.unlisted.remote()

    def _busy(self) -> bool:
        """Whether the dispatcher has not answered the last call yet: a cycle runs on what it was told."""
        return self._told is not None and not ray.wait([self._told], timeout=0)[0]

    def _tell(self, news: SnapshotUpdate) -> None:
        begun = time.perf_counter()
        reference, asked_at = self._store.publish(news.snapshot), time.time()
        took = replace(news.preparation, publish_ms=(time.perf_counter() - begun) * 1e3)
        if news.for_cycles:
            revision = news.snapshot.revision
            self._told = self._dispatcher.hear.remote([reference], news.links, revision, news.closed, took)
        heard = self._committer.hear.remote([reference], self._loop.additions(since=self._said))
        try:
            answer: Ack = ray.get(heard, timeout=CALL_LIMIT_S)
        except (RayActorError, GetTimeoutError) as lost:
            log.warning("the committer did not hear the news: %s", type(lost).__name__)
            self._said = None
            return
        self._said = self._loop.counted() if answer.known else None
        self._loop.leads_until(asked_at + answer.leadership.leads_s)
