"""The log lines of the roles, written to the log of the process that started them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from actors.observability.logs import Written
from actors.protocol.presence import RolePlace
from actors.ray_runtime.limits import CALL_LIMIT_S

log = logging.getLogger(__name__)

_EVERY_S = 0.25


class RoleLogs:
    """Asks every role for its new lines, in a thread of its own, and logs which one does not answer.

    Parameters
    ----------
    out
        The log that gets the lines.
    roles
        Handles by the role's name.
    silent_s
        Seconds after which a role that was there once, and has not answered yet, does not answer: it may be frozen.
    """

    def __init__(self, out: Written, roles: Mapping[str, Any], silent_s: float = CALL_LIMIT_S) -> None:
        self._out, self._roles, self._silent_s = out, dict(roles), silent_s
        self._heard = dict.fromkeys(self._roles, (0, 0))
        self._asked: dict[str, Any] = {}
        self._asked_at: dict[str, float] = {}
        self._lost: set[str] = set()
        self._new = SimpleQueue[tuple[str, Any]]()
        self._hosts: dict[str, str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="role-logs", daemon=True)
        self._thread.start()

    def add(self, roles: Mapping[str, Any]) -> None:
        """Follow more roles; a role that is followed already does not have its lines repeated."""
        for role in roles.items():
            self._new.put(role)  # what is known of roles belongs to the thread that asks them

    def places(self) -> dict[str, RolePlace]:
        """Where each role runs, as far as it has answered."""
        return {
            name: RolePlace(host=self._hosts.get(name, ""), process=process, answers=name not in self._lost)
            for name, (process, _) in dict(self._heard).items()
        }

    def close(self) -> None:
        """Write the last lines, and end."""
        self._stop.set()
        self._thread.join(CALL_LIMIT_S)

    def _follow(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self._turn(_EVERY_S)
        self._turn(1.0)

    def _turn(self, limit_s: float) -> None:
        """Ask all roles, and take the answers that come in time; a slow role is not asked again before it answers."""
        while not self._new.empty():
            name, actor = self._new.get()
            self._roles[name] = actor
            self._heard.setdefault(name, (0, 0))
        for name, actor in self._roles.items():
            if name not in self._asked:
                self._asked[name], self._asked_at[name] = actor.said.remote(*self._heard[name]), time.monotonic()
        waiting = {call: name for name, call in self._asked.items()}
        there, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=limit_s)
        answers = sorted((waiting[call], call) for call in there)
        lines = [line for name, call in answers for line in self._taken(name, call)]
        for line in sorted(lines, key=lambda line: line.at_s):
            self._out.write(line)
        for name in self._asked:
            waits_s = time.monotonic() - self._asked_at[name]
            if waits_s > self._silent_s and self._heard[name][0]:  # otherwise it starts
                self._lose(name, f"for {waits_s:.0f} s")

    def _taken(self, name: str, call: Any) -> list[Any]:
        del self._asked[name]
        try:
            process, number, lines = ray.get(call, timeout=_EVERY_S)
        except (RayError, GetTimeoutError) as lost:
            self._lose(name, type(lost).__name__)
            return []
        if name in self._lost:
            self._lost.discard(name)
            log.info("%s answers again, process %d", name, process)
        if process != self._heard[name][0]:
            self._hosts[name] = self._host(name)
        self._heard[name] = (process, number)
        return list(lines)

    def _lose(self, name: str, why: str) -> None:
        """Note that a role does not answer, and log it once."""
        if name not in self._lost and not self._stop.is_set():
            log.warning("%s does not answer: %s", name, why)
        self._lost.add(name)

    def _host(self, name: str) -> str:
        """The machine of a role that has just answered; empty if it is gone again."""
        try:
            found: str = ray.get(self._roles[name].host.remote(), timeout=_EVERY_S)
        except (RayError, GetTimeoutError):
            return ""
        return found
