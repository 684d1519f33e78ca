"""A broker as deploy/ sets it up, on this machine, and certificates for it."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trustme

from actors.broker.embedded_broker import find_binary

ROOT = Path(__file__).parents[2]
START_LIMIT_S = 20.0


def rules(user: str, fleet: str) -> list[str]:
    """What deploy/redis.conf says a user may, as ACL SETUSER takes it; the password is left out."""
    lines = (ROOT / "deploy/redis.conf").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"user {user} "))
    words = line.replace("<fleet>", fleet).split()[2:]
    return [word for word in words if not (word[0] == "<" and word[-1] == ">")]


class Deployed:
    """The server behind deploy/start-broker, with passwords of its own."""

    def __init__(self, folder: Path, fleet: str) -> None:
        self.folder, self.passwords = folder, {"clearway": "pipeline's %/secret", "fleet": "connector's secret"}
        self.passwords |= {"reader": "reader's secret", "letters": "undertaker's secret"}
        self.socket = folder / "s"
        instead = {"dir": folder, "port": 0, "bind": "127.0.0.1"}
        lines = [line.split(maxsplit=1) for line in (ROOT / "deploy/redis.conf").read_text().splitlines()]
        said = "".join(f"{line[0]} {instead.get(line[0], line[-1])}\n" for line in lines if line and line[0][0] != "#")
        (folder / "redis.conf").write_text(said + f"unixsocket {self.socket}\nlogfile {folder}/log\n")
        (folder / "valkey-server").symlink_to(find_binary())
        for user, password in self.passwords.items():
            (folder / user).write_text(password + "\n")
        environment = {
            **os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "CLEARWAY_FLEET": fleet,
            "CLEARWAY_PASSWORD_FILE": str(folder / "clearway"), "CONNECTOR_PASSWORD_FILE": str(folder / "fleet"),
            "READER_PASSWORD_FILE": str(folder / "reader"), "LETTERS_PASSWORD_FILE": str(folder / "letters"),
        }  # fmt: skip
        command = [str(ROOT / "deploy/start-broker"), str(folder / "redis.conf")]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        self._await_socket()

    def _await_socket(self) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            with socket.socket(socket.AF_UNIX) as line:
                if not line.connect_ex(str(self.socket)):
                    return
            assert self.process.poll() is None, f"the broker ended: {(self.folder / 'log').read_text()}"
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(START_LIMIT_S)


@contextmanager
def deployed(fleet: str) -> Iterator[Deployed]:
    """The broker for as long as the block; its folder is short, for it holds a socket."""
    folder = Path(tempfile.mkdtemp(prefix="cw-", dir="/tmp"))
    try:
        broker = Deployed(folder, fleet)
        try:
            yield broker
        finally:
            broker.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Papers:
    """An authority and what it vouches for: the broker by the name ``localhost``, and a client."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.ca, self.own, self.key = folder / "ca.pem", folder / "client.pem", folder / "client.key"
        self.authority.cert_pem.write_to_path(str(self.ca))
        client = self.authority.issue_cert("clearway@localhost")
        client.cert_chain_pems[0].write_to_path(str(self.own))
        client.private_key_pem.write_to_path(str(self.key))

    def server(self, *, asks: bool) -> ssl.SSLContext:
        """What the broker shows, and whether it asks for the client's."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.authority.issue_cert("localhost").configure_cert(context)
        if asks:
            self.authority.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context
