"""``clearway run``: the pipeline as a service, until it is told to stop."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time

from actors.broker import broker_for
from actors.profiles import load_profile
from actors.runtime import Pipeline, ray_cluster
from actors.settings import Settings
from actors.station import Wiring
from actors.warm import warm_up

log = logging.getLogger(__name__)


def owner_name() -> str:
    """Who we are to the ledger: this process and no other, before or after."""
    return f"{socket.gethostname()}-{os.getpid()}-{int(time.time() * 1000)}"


def profile_of(settings: Settings) -> str:
    """The policy profile that the settings name, by path where they give one."""
    return str(settings.profile_path) if settings.profile_path is not None else settings.profile


def run(settings: Settings) -> int:
    """Start the actors and wait for SIGTERM or SIGINT; then stop them in order."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s run %(levelname)s %(message)s")
    stop = threading.Event()
    policy = load_profile(profile_of(settings))
    elsewhere = settings.ray_address is not None
    warm_up()  # where nothing is compiled yet, once here rather than in every actor at the same time
    owner = owner_name()
    with (
        broker_for(settings, tcp=elsewhere) as address,
        ray_cluster(settings.ray_address, f"clearway-{settings.fleet}-{owner}"),
    ):
        # Ray sets handlers of its own when it starts.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        pipeline = Pipeline(Wiring(settings, address, policy, owner))
        try:
            pipeline.await_ready()
            log.info("fleet %s: ready, %d searchers, profile %s", settings.fleet, settings.searchers, policy.profile)
            stop.wait()
            log.info("stopping")
        finally:
            pipeline.stop()
    return 0
