"""The ingestor as a Ray actor: reads in a thread of its own, and sends news to the others."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError

from actors.broker.checkpoints import packed
from actors.contracts import Ack, Intake, TurnTold
from actors.documents.collector import settle
from actors.ingestion.loop import IngestLoop
from actors.processes.unique_name import unique_name
from actors.ray_runtime.limits import CALL_LIMIT_S, STOP_LIMIT_S
from actors.ray_runtime.process import RoleProcess, Wiring
from actors.ray_runtime.transport.snapshot_feed import SnapshotFeed, Told

log = logging.getLogger(__name__)


class IngestorActor(RoleProcess):
    """The ingestor: reads in a thread of its own and tells the others what it folded."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(wiring, "ingestor")
        self._stop, self._listed = threading.Event(), threading.Event()
        # Nearly all of it runs without the GIL, so news is folded meanwhile.
        packer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._loop = IngestLoop(
            wiring.settings,
            self.bus,
            self.telemetry,
            now_s=self.follow_clock(),
            elapsed_s=time.monotonic,
            packs=lambda state: packer.submit(packed, state),
        )
        self._loop.leads_until(0.0)
        self._dispatcher: Any = ray.get_actor("dispatcher")
        self._committer: Any = ray.get_actor("committer")
        self._feed = SnapshotFeed(unique_name())
        self._said: Any = None
        self._told: tuple[Told, Any] | None = None
        settle()
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
            self._busy()
            news = self._loop.turn(busy=self._busy)
            if news is not None:
                self._tell(news)
                self._listed.set()
            elif self._listed.is_set() and self._loop.unlisted:
                self._listed.clear()
                self._committer.unlisted.remote()

    def _busy(self) -> bool:
        """Whether the dispatcher has not answered the last call yet: a cycle runs on what it was told."""
        if self._told is not None and ray.wait([self._told[1]], timeout=0)[0]:
            (told, call), self._told = self._told, None
            try:
                self._heard("dispatcher", told, known=bool(ray.get(call)))
            except RayActorError as lost:
                log.warning("the dispatcher did not hear the news: %s", type(lost).__name__)
                self._feed.heard("dispatcher", told, known=False)
        return self._told is not None

    def _heard(self, reader: str, told: Told, *, known: bool) -> None:
        """Take an answer; a reader that lacks what the news follows is told all at once."""
        self._feed.heard(reader, told, known=known)
        if not known:
            self._loop.repeat()

    def _tell(self, news: TurnTold) -> None:
        begun, asked_at, newest = time.perf_counter(), time.monotonic(), self._loop.ingestor.state
        if news.for_cycles:
            told = self._feed.told("dispatcher", newest)
            timed = replace(news, publish_ms=(time.perf_counter() - begun) * 1e3)
            self._told = told, self._dispatcher.hear.remote((told, timed))
        told = self._feed.told("committer", newest)
        heard = self._committer.hear.remote((told, self._loop.additions(since=self._said)))
        try:
            answer: Ack = ray.get(heard, timeout=CALL_LIMIT_S)
        except (RayActorError, GetTimeoutError) as lost:
            log.warning("the committer did not hear the news: %s", type(lost).__name__)
            self._said = None
            self._feed.heard("committer", told, known=False)
            return
        self._said = self._loop.named() if answer.named else None
        self._heard("committer", told, known=answer.named and answer.known)
        self._loop.leads_until(asked_at + answer.leadership.leads_s)
        self._loop.lost_behind(answer.lost_behind)
