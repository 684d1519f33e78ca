"""``clearway run``: the pipeline as a service, until it is told to stop."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace

from actors.broker.address import ALONE, broker_for
from actors.broker.bus import DECISIONS, SHADOWS
from actors.broker.redis_bus import RedisBus
from actors.broker.retry import ToldToStop, until_stopped
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings
from actors.documents.collector import settle
from actors.health.rights import check_rights
from actors.health.watch import LISTEN_S, Beats, Watch
from actors.observability.health_server import HealthServer, Pages
from actors.observability.logs import Written, write_log
from actors.observability.telemetry import start as start_telemetry
from actors.processes.ending import EndSignals
from actors.processes.unique_name import unique_name
from actors.ray_runtime.cluster import ClusterEnded, ClusterWatch, ray_cluster
from actors.ray_runtime.process import Wiring
from actors.ray_runtime.role_actors import RoleActors
from actors.ray_runtime.role_logs import RoleLogs
from actors.warming.warm import compile_missing

log = logging.getLogger(__name__)

#: Seconds that a message to the other services waits for the broker.
_BROKER_S = 5.0
#: Seconds that ingestor and dispatcher may take to end. After that the lease is given back without them: the broker
#: takes nothing more from us, and all is killed soon (`actors.processes.ending.LIMIT_S`).
_STEP_S = 1.8
#: Seconds between two looks whether processors have joined.
_LOOK_EVERY_S = 5.0


def run(settings: Settings) -> int:
    """Wait for the broker, start the actors and wait for SIGTERM or SIGINT; then stop them in order.

    Returns
    -------
    The exit code, 0. If roles do not end in time, `EndSignals` kills them and ends the process with 1.

    Raises
    ------
    RayRefused
        When Ray or an actor cannot be started.
    BrokerRefused
        When the broker does not let us in, or does not keep what it acknowledged.
    """
    out = write_log("run", settings.fleet, settings.log_format, settings.log_level)
    policy = load_profile(settings.policy_profile)
    if settings.redis_url is None:
        log.warning(ALONE)
    with EndSignals() as ending, broker_for(settings, tcp=settings.ray_address is not None) as address:
        try:
            # Connect here too, not only in the actors: an outage is then in our own log, and a signal ends the wait.
            client = address.connect("run", pause=until_stopped(ending.told))
            check_rights(client, settings.fleet, shadow=settings.shadow)
            if settings.commit_synced:
                client.check_synced()
            client.close()
            _serve(Wiring(settings, address, policy, unique_name()), ending, out)
        except ToldToStop:
            log.info("told to stop before all roles were there")
    return 0


def _serve(wiring: Wiring, ending: EndSignals, out: Written) -> None:
    settings, policy = wiring.settings, wiring.policy
    telemetry = start_telemetry(settings.telemetry, "run", fleet=settings.fleet)
    watch = Watch(settings, wiring.owner, policy.digest, telemetry, profile=policy.profile)
    health = HealthServer(settings.health, Pages(watch.live, watch.ready, watch.metrics))
    watch.health = health.url
    try:
        compile_missing(policy)  # once here rather than in every actor at the same time
        if ending.told.is_set():
            raise ToldToStop
        with ray_cluster(settings.ray_address, f"clearway-{settings.fleet}-{wiring.owner}"):
            ending.listen()  # again: Ray sets handlers of its own when it starts
            _run_roles(wiring, watch, ending, out)
    finally:
        health.close()
        telemetry.stop()


def _run_roles(wiring: Wiring, watch: Watch, ending: EndSignals, out: Written) -> None:
    """From the start of the roles to their end."""
    settings = wiring.settings
    ending.settle(False)
    roles = RoleActors(wiring)
    logs = RoleLogs(out, roles.by_name)
    link = replace(wiring.broker, wait_s=_BROKER_S).client("watch")
    beats = Beats(RedisBus(link, settings.fleet), watch, wiring.owner)
    lost = False
    try:
        roles.await_ready(stop=ending.told)
        settle()
        searchers, profile = len(roles.searchers), wiring.policy.profile
        log.info("fleet %s: %d searchers, profile %s", settings.fleet, searchers, profile)
        if settings.shadow:
            log.warning("runs as a shadow: decisions go to stream %s, and no connector reads it", SHADOWS[DECISIONS])
        watch.begin(Seen(roles, logs))
        beats.begin()
        _watch(roles, watch, logs, ending.told)
        log.info("stopping")
    except ClusterEnded:
        lost = True
        raise
    finally:
        watch.end()
        if not lost:  # there is nothing left to stop, and Ray would wait for it
            roles.stop(_STEP_S)
        beats.end()
        logs.close()
        ending.settle()
        link.close()


class Seen:
    """The roles as the watch sees them."""

    def __init__(self, roles: RoleActors, logs: RoleLogs) -> None:
        self.leadership, self.intake, self.figures = roles.leadership, roles.intake, roles.figures
        self.cycling_s, self.places = roles.cycling_s, logs.places


def _watch(roles: RoleActors, watch: Watch, logs: RoleLogs, stop: threading.Event) -> None:
    """Until we are told to stop: see how the roles are, and use processors that join."""
    look_at, cluster = time.monotonic() + _LOOK_EVERY_S, ClusterWatch()
    while not stop.is_set():
        answers = watch.look()
        cluster.look(answers)
        if not answers:
            stop.wait(LISTEN_S)
        elif time.monotonic() >= look_at and cluster.answers():  # otherwise Ray would wait for it
            look_at = time.monotonic() + _LOOK_EVERY_S
            added = roles.grow()
            if added:
                logs.add(roles.by_name)
                log.info("%d searchers added, now %d", added, len(roles.searchers))
