"""A Ray cluster of our own: nobody beyond this machine reaches it, and nobody without its token is answered.

Its processes are started with what we say of memory and of the processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import ray

from actors.processes.tree import descendants
from actors.ray_runtime.cluster import MEMORY, ray_cluster
from tests.support.processes import listeners

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0
#: A call to each kind of server in a cluster; an empty request is one that each of them reads.
CALLS = (
    "ray.rpc.NodeInfoGcsService/GetClusterId", "ray.rpc.InternalKVGcsService/InternalKVKeys",
    "ray.rpc.NodeManagerService/GetNodeStats", "ray.rpc.CoreWorkerService/NumPendingTasks",
    "ray.rpc.ObjectManagerService/Pull",
)  # fmt: skip


@dataclass(frozen=True)
class Cluster:
    address: str
    token: str
    file: Path
    memory: dict[str, str]
    nice: int


def said() -> dict[str, str]:
    """What the environment tells Ray, and of memory."""
    return {name: value for name, value in os.environ.items() if name.startswith(("RAY_", "MALLOC_"))}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    before = said()
    with ray_cluster(None, "doors"):

        @ray.remote(num_cpus=0)
        class Actor:
            def memory(self) -> dict[str, str]:
                return {name: value for name, value in os.environ.items() if name.startswith("MALLOC_")}

            def nice(self) -> int:
                return os.nice(0)

        actor = Actor.remote()
        memory, nice = ray.get([actor.memory.remote(), actor.nice.remote()], timeout=LIMIT_S)
        file = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
        yield Cluster(ray.get_runtime_context().gcs_address, file.read_text(), file, memory, nice)
    assert not file.exists()
    assert said() == before


def answer(port: int, call: str, *metadata: tuple[str, str]) -> str:
    """The name of what a server answers to an empty request."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            channel.unary_unary(f"/{call}")(b"", metadata=metadata, timeout=10.0)
        except grpc.RpcError as refusal:
            return str(refusal.code().name)
    return "OK"


def test_an_actor_keeps_its_memory_in_one_arena(cluster: Cluster) -> None:
    assert cluster.memory == MEMORY


def test_an_actor_gets_as_much_of_the_processor_as_the_service(cluster: Cluster) -> None:
    assert cluster.nice == os.nice(0)


def test_it_listens_on_the_loopback_interface_alone(cluster: Cluster) -> None:
    found = listeners([os.getpid(), *descendants(os.getpid())])
    assert len(found) >= 4
    assert [one for one in found if not one.host.endswith("0100007F")] == []
    assert cluster.address.startswith("127.0.0.1:")


@pytest.mark.usefixtures("cluster")
def test_no_port_of_it_answers_without_the_token_or_with_another() -> None:
    pids = list(descendants(os.getpid()))
    ports = {one.port for one in listeners(pids) if one.program.startswith("ray::A") or "/ray/" in one.program}
    got = {call: {answer(port, call) for port in ports} for call in CALLS}
    other = {call: {answer(port, call, ("authorization", "Bearer " + "0" * 64)) for port in ports} for call in CALLS}
    for call in CALLS:
        assert got[call] == other[call] == {"UNAUTHENTICATED", "UNIMPLEMENTED"}, call


def test_who_has_the_token_is_answered(cluster: Cluster) -> None:
    port = int(cluster.address.rpartition(":")[2])
    assert answer(port, CALLS[0], ("authorization", f"Bearer {cluster.token}")) == "OK"


def test_the_token_is_on_no_command_line_and_in_a_file_of_ours_alone(cluster: Cluster) -> None:
    assert len(cluster.token) == 64
    for pid in [os.getpid(), *descendants(os.getpid())]:
        assert cluster.token not in Path(f"/proc/{pid}/cmdline").read_text()
    assert (cluster.file.stat().st_mode & 0o777, cluster.file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.usefixtures("cluster")
def test_there_is_no_dashboard() -> None:
    shown = [Path(f"/proc/{pid}/cmdline").read_text() for pid in descendants(os.getpid())]
    served = [one for one in shown if "dashboard/dashboard.py" in one]
    assert all("--modules-to-load=UsageStatsHead" in one or "--minimal" in one for one in served), served


def joining(cluster: Cluster, **environment: str) -> subprocess.CompletedProcess[str]:
    """Another process that joins, with what it knows in its environment."""
    program = (
        "import sys, ray\n"
        "from actors.ray_runtime.cluster import RayRefused, ray_cluster\n"
        "try:\n"
        "    with ray_cluster(sys.argv[1], 'other'):\n"
        "        print('joined')\n"
        "except RayRefused as refusal:\n"
        "    print('refused:', refusal)\n"
    )
    known = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    known["RAY_NUM_REDIS_GET_RETRIES"] = "1"  # else a refusal is retried for 20 s
    known["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # else it looks for the loopback address on the network
    return subprocess.run(
        [sys.executable, "-c", program, cluster.address], env={**known, **environment}, cwd=ROOT, text=True,
        capture_output=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip


def test_a_driver_with_the_token_joins_though_it_says_nothing_of_the_mode(cluster: Cluster) -> None:
    assert joining(cluster, RAY_AUTH_TOKEN_PATH=str(cluster.file)).stdout == "joined\n"


@pytest.mark.parametrize(
    "environment", [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN": "0" * 64}, {"HOME": "/nowhere"}], ids=str
)
def test_a_driver_without_the_token_is_refused_in_a_sentence(cluster: Cluster, environment: dict[str, str]) -> None:
    tried = joining(cluster, **environment)
    assert tried.stdout.startswith(f"refused: Ray cannot be joined at {cluster.address}: "), tried
    assert tried.stdout.count("\n") == 1
    assert "token" in tried.stdout
    assert cluster.token not in tried.stdout + tried.stderr
