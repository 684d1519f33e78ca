"""The process that started the roles watches them, and says how the service is: in the log, by HTTP, in the broker."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from importlib.metadata import version
from typing import Any, Protocol

from actors.broker.bus import BrokerRefused, BrokerUnreachable, Bus
from actors.configuration.settings import Settings
from actors.contracts import Intake, Leadership
from actors.health.facts import Facts
from actors.observability.exposition import page
from actors.observability.telemetry import Telemetry
from actors.protocol.presence import EVERY_S, STATES, Presence, RolePlace, announce, present

log = logging.getLogger(__name__)

#: Seconds that one call waits for the lease to change hands; a signal to stop is noticed this late at most.
LISTEN_S = 0.5
#: Seconds between questions to the ingestor; seconds without a look after which the process counts as dead.
_ASK_S, _STILL_S = 1.0, 60.0
#: Seconds after which a cycle that still runs is logged: nothing else is decided before it ends.
LONG_CYCLE_S = 60.0
#: Seconds that the lease may be between two owners before it is logged that we lead no longer.
_BETWEEN_S = 1.5


class WatchedRoles(Protocol):
    """The roles as the watch sees them."""

    def leadership(self, leads: bool | None, limit_s: float) -> Leadership | None:
        """Which service leads, waiting up to ``limit_s`` for a change; None if the committer does not answer."""
        ...

    def intake(self) -> Intake | None:
        """What came in; None if the ingestor does not answer."""
        ...

    def cycling_s(self, limit_s: float) -> float | None:
        """For how long a cycle has run, 0 if none runs; None if the dispatcher does not answer within ``limit_s``."""
        ...

    def places(self) -> Mapping[str, RolePlace]:
        """Where each role runs."""
        ...

    def figures(self) -> Mapping[str, Sequence[Any]]:
        """The figures of each role that answers."""
        ...


class Watch:
    """Looks at the roles again and again. `look` is for one thread; others may ask what was seen.

    Parameters
    ----------
    owner, profile, policy
        Our name, the profile's, and the digest of what it says.
    elapsed_s
        A clock in seconds that only rises.
    """

    def __init__(
        self,
        settings: Settings,
        owner: str,
        policy: str,
        telemetry: Telemetry,
        *,
        profile: str = "",
        elapsed_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._owner, self._policy, self._profile, self._telemetry = owner, policy, profile, telemetry
        self._digest = blake2b(settings.model_dump_json().encode(), digest_size=8).hexdigest()
        self._fleet, self._shadow, self._elapsed_s = settings.fleet, settings.shadow, elapsed_s
        self.every_s = min(EVERY_S, settings.lease_ttl_s)
        self._looked_at, self._ask_at = elapsed_s(), 0.0
        self._leads: bool | None = None
        self._led_at = 0.0
        self._told, self._long_cycle = "", False
        self._roles: WatchedRoles | None = None
        self._facts = Facts()
        self._others: Mapping[str, Presence] = {}
        self.health = ""
        self._set_figures()

    @property
    def facts(self) -> Facts:
        """What was seen last."""
        return replace(self._facts, others=self._others)

    def begin(self, roles: WatchedRoles) -> None:
        """Begin to watch: all roles are there."""
        self._roles, self._told = roles, self.facts.hindrance
        self._facts = replace(self._facts, started=True, intake=roles.intake(), roles=roles.places())

    def end(self) -> None:
        """Note that the roles are about to be ended."""
        self._facts = replace(self._facts, stopping=True)
        self._set_figures()

    def look(self) -> bool:
        """Look once, for `LISTEN_S` or until the lease changes hands; returns whether the committer answers."""
        assert self._roles is not None
        now = self._roles.leadership(self._leads, LISTEN_S)
        at = self._looked_at = self._elapsed_s()
        self._say_leadership(now, at)
        between = now is not None and not now.epoch and at <= self._led_at + _BETWEEN_S
        facts = self._facts if between else replace(self._facts, leadership=now)
        if at >= self._ask_at:
            self._ask_at = at + _ASK_S
            facts = replace(facts, intake=self._roles.intake(), roles=self._roles.places())
            cycling_s = self._roles.cycling_s(LISTEN_S)
            if cycling_s is not None:
                facts = replace(facts, cycling_s=cycling_s)
                self._say_long_cycle(cycling_s)
        self._facts = facts
        self._say_hindrance()
        self._set_figures()
        return now is not None

    def live(self) -> tuple[bool, dict[str, Any]]:
        """Whether the process still looks at its roles, with details. A start may take any time."""
        still_s = self._elapsed_s() - self._looked_at if self.facts.started else 0.0
        return still_s < _STILL_S, {
            "live": still_s < _STILL_S,
            "state": self.facts.state,
            "looked_s": round(still_s, 3),
        }

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Whether it does its work, with details."""
        return self.facts.ready, {**self.facts.said(), "shadow": self._shadow}

    def metrics(self) -> bytes:
        """The figures of all roles that answer, and our own."""
        self._set_figures()
        theirs = self._roles.figures() if self._roles is not None else {}
        return page({**theirs, self._telemetry.role: self._telemetry.exposed.families()}, self._fleet)

    def _set_figures(self) -> None:
        """Say how the service is in our own figures, which also go where no page is asked for."""
        facts, figures = self.facts, self._telemetry.figures
        figures.leads.set(int(facts.state == "leads"))
        figures.ready.set(int(facts.ready))
        figures.roles_silent.set(len(facts.silent))
        states = [facts.state, *(one.state for one in facts.others.values())]
        for state in STATES:
            figures.services.set(states.count(state), {"state": state})

    def _say_leadership(self, now: Leadership | None, at: float) -> None:
        if now is None:
            if self.facts.leadership is not None:
                log.warning("our committer does not answer")
        elif now.is_news(self._leads):
            self._leads = now.leads
            if now.leads:
                log.info("leads, epoch %d", now.epoch)
            else:
                log.info("stands by; %s leads, epoch %d", now.leader, now.epoch)
        if now is not None and now.epoch:
            self._led_at = at
        elif now is not None and self._leads is not None and at > self._led_at + _BETWEEN_S:
            log.warning("%s; no service is known to lead", "leads no longer" if self._leads else "stands by no longer")
            self._leads = None

    def _say_hindrance(self) -> None:
        """Log what keeps us from our work when it changes; that it lasts longer is no change."""
        told = self.facts.hindrance.split(" for ")[0]
        if told != self._told:
            self._told = told
            if told:
                log.warning("not ready: %s", self.facts.hindrance)
            else:
                log.info("ready: %s", self.facts.state)

    def _say_long_cycle(self, cycling_s: float) -> None:
        """Log once of each cycle that it runs for long, and that it has ended."""
        is_long = cycling_s > LONG_CYCLE_S
        if is_long and not self._long_cycle:
            log.warning("one cycle has run for %.0f s; nothing else is decided before it ends", cycling_s)
        elif self._long_cycle and not is_long:
            log.info("the long cycle has ended")
        self._long_cycle = is_long

    def presence(self) -> Presence:
        """How the service is, for the others."""
        facts, leadership = self.facts, self.facts.leadership or Leadership()
        return Presence(
            owner=self._owner, host=socket.gethostname(), process=os.getpid(), version=version("clearway"),
            state=facts.state, ready=facts.ready, why=facts.hindrance, leader=leadership.leader, epoch=leadership.epoch,
            profile=self._profile, policy=self._policy, settings=self._digest, health=self.health,
            shadow=self._shadow, every_s=self.every_s, roles=dict(facts.roles), lag=facts.lag,
        )  # fmt: skip

    def meet(self, others: Mapping[str, Presence]) -> None:
        """Take which other services were there lately, and log which ones came and went."""
        for owner in sorted(self._others.keys() - others.keys()):
            log.warning("service %s is gone; its last word was that it %s", owner, self._others[owner].state)
        for owner in sorted(others.keys() - self._others.keys()):
            log.info("service %s is there and %s", owner, others[owner].state)
            unlike = self._unlike(others[owner])
            if unlike:
                log.warning("service %s would decide otherwise where it leads: %s", owner, unlike)
        self._others = others

    def _unlike(self, other: Presence) -> str:
        """In what another service's decisions would differ from ours; a shadow is there to try something else."""
        ours = self.presence()
        if other.shadow or ours.shadow:
            return ""
        said = [
            f"its {word} is {theirs or 'not said'}, ours {own}"
            for word, theirs, own in (
                ("version", other.version, ours.version),
                ("profile", other.profile, ours.profile),
            )
            if theirs != own
        ]
        if other.policy != ours.policy and other.profile == ours.profile:
            said.append(f"its profile {ours.profile} has another content")
        return "; ".join(said)


class Beats:
    """Tells the broker every few seconds how the service is, in a thread of its own: it may have to wait."""

    def __init__(self, bus: Bus, watch: Watch, owner: str) -> None:
        self._bus, self._watch, self._owner = bus, watch, owner
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="beats", daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> None:
        """Say that the service stops, and end."""
        self._stop.set()
        if self._thread.is_alive():  # not where we are told to stop before it began
            self._thread.join(EVERY_S)

    def beat(self) -> None:
        """Say that we are there, and see which other services are."""
        try:
            at = announce(self._bus, self._watch.presence())
            seen = present(self._bus, at)
        except (BrokerUnreachable, BrokerRefused) as lost:
            log.warning("the broker was not told that we are there: %s", lost)
            return
        self._watch.meet({owner: one for owner, (_, one) in seen.items() if owner != self._owner})

    def _run(self) -> None:
        self.beat()
        while not self._stop.wait(self._watch.every_s):
            self.beat()
        self.beat()
