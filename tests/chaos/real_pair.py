"""Two services for one fleet, each `clearway run` in processes of its own: one leads, the other stands by."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from actors.processes.service_process import END_LIMIT_S, ServiceProcess
from actors.processes.tree import descendants, runs
from tests.chaos.real_ray import Raylets, TookTooLong, Worker, until

_AT_ONCE = 2
#: A service starts within some seconds on a machine that does nothing else, and within a minute beside others.
_START_LIMIT_S = 240.0


class Pair:
    """The services of one run, with the interface of a `RoleActors` as far as a world needs it.

    Parameters
    ----------
    folder
        For their logs.
    raylets
        The cluster that both join; None: each has a Ray of its own.
    settings
        Of both, by name.

    Attributes
    ----------
    objections
        What was wrong with a service itself.
    """

    def __init__(self, folder: Path, url: str, raylets: Raylets | None, settings: Mapping[str, str]) -> None:
        self._folder, self._raylets, self._settings = folder, raylets, settings
        self._options = ["--redis-url", url]
        if raylets is not None:
            self._options += ["--ray-address", raylets.address]
        self._started: list[ServiceProcess] = []
        self._frozen: set[int] = set()
        self.objections: list[str] = []
        self._start()
        self._start()

    def _start(self) -> None:
        log = self._folder / f"service{len(self._started)}.log"
        self._started.append(ServiceProcess(log, *self._options, settings=self._settings))

    @property
    def living(self) -> list[ServiceProcess]:
        """Those that have not ended."""
        return [one for one in self._started if one.process.poll() is None]

    @property
    def leader(self) -> ServiceProcess | None:
        """The service that leads by its own log, of two the one that started last; None while none does."""
        return next((one for one in reversed(self.living) if one.leads), None)

    # -- as a pipeline -----------------------------------------------------------------------------------------

    def await_ready(self, limit_s: float) -> None:
        """Wait until one leads and one stands by, for as long as starts take; one is started where one is missing."""
        try:
            while len(self.living) < _AT_ONCE:
                self._start()
            limit_s = max(limit_s, _START_LIMIT_S)
            until(lambda: {one.leads for one in self.living} == {True, False}, "one leads, the other waits", limit_s)
        except TookTooLong as late:
            raise TookTooLong(f"{late}\n{self._logs()}") from late

    def await_listed(self, limit_s: float) -> None:
        """Nothing to wait for: a service that leads has read the fleet's list, which was there before it."""

    def stop(self) -> None:
        """End the standby, then the leader, each in order."""
        for one in sorted(self.living, key=lambda service: service is self.leader):
            self._ended(one)
        self._complain()

    def close(self) -> None:
        """End what is left, in whatever state."""
        self.thaw()
        for one in self._started:
            one.close()

    # -- faults ------------------------------------------------------------------------------------------------

    def kill_leader(self) -> None:
        """SIGKILL to the leader, and to all that it started; its roles on a Ray that both share end by Ray's doing."""
        self._leading().kill()

    def freeze_leader(self) -> None:
        """SIGSTOP to the leader and its roles; `thaw` takes it back."""
        leader = self._leading()
        self._frozen = {leader.process.pid, *descendants(leader.process.pid), *(one.pid for one in self._roles(leader))}
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the frozen service go on."""
        self._signal(signal.SIGCONT)
        self._frozen = set()

    def stop_leader(self) -> None:
        """SIGTERM to the leader; it must end in order."""
        self._ended(self._leading())

    def workers(self, role: str) -> list[Worker]:
        """The living roles of this kind of the service that leads."""
        leader = self.leader
        return [] if leader is None else [one for one in self._roles(leader) if one.role == role]

    def _leading(self) -> ServiceProcess:
        until(lambda: self.leader is not None, "a service leads")
        leader = self.leader
        assert leader is not None
        return leader

    def _signal(self, number: int) -> None:
        for pid in self._frozen:
            if runs(pid):
                os.kill(pid, number)

    def _roles(self, service: ServiceProcess) -> list[Worker]:
        """Its roles: below it where it has a Ray of its own, else those of its job."""
        if self._raylets is not None:
            return [one for one in self._raylets.of_driver(service.process.pid) if one.alive]
        named = [(pid, _role(pid)) for pid in descendants(service.process.pid)]
        return [Worker(role, f"{role} {pid}", pid, "", "ALIVE", 0) for pid, role in named if role]

    # -- how they ended ----------------------------------------------------------------------------------------

    def _ended(self, service: ServiceProcess) -> None:
        try:
            code = service.end()
        except subprocess.TimeoutExpired:
            self.objections.append(f"a service did not end within {END_LIMIT_S:.0f} s of SIGTERM")
            return
        if code:
            self.objections.append(f"a service that was told to stop ended with {code}: {service.said()[-500:]}")

    def _complain(self) -> None:
        """Nobody ends unless it was killed or told to, and no loop fails."""
        for number, one in enumerate(self._started):
            if "Traceback" in one.said():
                self.objections.append(f"service {number} failed: {one.said()[-2_000:]}")

    def _logs(self) -> str:
        return "\n".join(f"service {number}: {one.said()[-800:]}" for number, one in enumerate(self._started))


def _role(pid: int) -> str:
    """The role of a worker of Ray's; empty where it is none of ours."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:  # it ended meanwhile
        return ""
    found = re.match(r"ray::(\w+)Actor\b", line)
    return found[1].lower() if found is not None else ""
