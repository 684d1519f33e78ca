"""``clearway run``: the pipeline as a service, until it is told to stop."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time

from actors.broker.address import broker_for
from actors.broker.retry import ToldToStop, until_stopped
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings
from actors.observability.logs import Written, write_log
from actors.ray_runtime.cluster import ray_cluster
from actors.ray_runtime.pipeline import Pipeline
from actors.ray_runtime.process import Wiring
from actors.ray_runtime.role_logs import RoleLogs
from actors.ray_runtime.warm import warm_up

log = logging.getLogger(__name__)

#: How long one call waits for the lease to change hands: how late we notice that we are told to stop, at most.
_LISTEN_S = 0.5
#: How often we look whether processors have joined.
_LOOK_EVERY_S = 5.0


def owner_name() -> str:
    """Our name in the ledger: no other process has it, before or after."""
    return f"{socket.gethostname()}-{os.getpid()}-{int(time.time() * 1000)}"


def profile_of(settings: Settings) -> str:
    """The policy profile that the settings name, by path where they give one."""
    return str(settings.profile_path) if settings.profile_path is not None else settings.profile


def run(settings: Settings) -> int:
    """Wait for the broker, start the actors and wait for SIGTERM or SIGINT; then stop them in order."""
    out = write_log("run", settings.fleet, settings.log_format, settings.log_level)
    stop = threading.Event()
    policy = load_profile(profile_of(settings))
    _listen(stop)
    with broker_for(settings, tcp=settings.ray_address is not None) as address:
        try:
            # Here and not in the actors only, so that an outage is told on our own log and ends with us.
            client = address.connect("run", pause=until_stopped(stop))
            if settings.commit_synced:
                client.check_synced()
            client.close()
        except ToldToStop:
            return 0
        warm_up([policy])  # where nothing is compiled yet, once here rather than in every actor at the same time
        _serve(Wiring(settings, address, policy, owner_name()), stop, out)
    return 0


def _listen(stop: threading.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())


def _serve(wiring: Wiring, stop: threading.Event, out: Written) -> None:
    settings = wiring.settings
    with ray_cluster(settings.ray_address, f"clearway-{settings.fleet}-{wiring.owner}"):
        _listen(stop)  # again: Ray sets handlers of its own when it starts
        pipeline = Pipeline(wiring)
        logs = RoleLogs(out, pipeline.roles)
        try:
            pipeline.await_ready()
            searchers, profile = len(pipeline.searchers), wiring.policy.profile
            log.info("fleet %s: ready, %d searchers, profile %s", settings.fleet, searchers, profile)
            _watch(pipeline, logs, stop)
            log.info("stopping")
        finally:
            pipeline.stop()
            logs.close()


def _watch(pipeline: Pipeline, logs: RoleLogs, stop: threading.Event) -> None:
    """Until we are told to stop: say whether we lead or stand by, and use processors that join."""
    leads, answers, look_at = None, True, time.monotonic() + _LOOK_EVERY_S
    while not stop.is_set():
        now = pipeline.leadership(leads, _LISTEN_S)
        if now is None:
            if answers:
                log.warning("our committer does not answer")
            stop.wait(_LISTEN_S)
        elif now.is_news(leads):
            leads = now.leads
            if leads:
                log.info("leads, epoch %d", now.epoch)
            else:
                log.info("stands by; %s leads, epoch %d", now.leader, now.epoch)
        answers = now is not None
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + _LOOK_EVERY_S
            added = pipeline.grow()
            if added:
                logs.add(pipeline.roles)
                log.info("%d searchers added, now %d", added, len(pipeline.searchers))
