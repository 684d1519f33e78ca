"""A Ray cluster of several raylets on this machine, each a process, and its workers, to be killed and frozen."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: A raylet that is silent for so long (ms, times three) is taken for dead.
_HEALTH = {
    "health_check_initial_delay_ms": 1000, "health_check_period_ms": 500, "health_check_timeout_ms": 500,
    "health_check_failure_threshold": 3,
}  # fmt: skip
_STORE_BYTES = 150 << 20
_PROCESSORS = 2
_POLL_S = 0.02
LIMIT_S = 60.0


class TookTooLong(Exception):
    """Something that must come to pass did not in time; the message says what."""


def until(holds: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
    """Wait for what has no event of its own.

    Raises
    ------
    TookTooLong
    """
    deadline = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > deadline:
            raise TookTooLong(f"{what}: not within {limit_s:.0f} s")
        time.sleep(_POLL_S)


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that is one of our actors."""

    role: str
    actor: str
    pid: int
    node: str
    state: str
    restarts: int

    @property
    def alive(self) -> bool:
        """Whether Ray says so."""
        return self.state == "ALIVE"


class Raylets:
    """The cluster. Only what it started is ever stopped."""

    def __init__(self, cluster: Any, scratch: Path) -> None:
        self._cluster, self._scratch = cluster, scratch
        #: Per actor how often it was killed or frozen.
        self.struck: Counter[str] = Counter()
        self._extra: list[Any] = []
        self._frozen: set[int] = set()
        self._seen: set[int] = set()

    @property
    def address(self) -> str:
        """Where a driver joins."""
        return str(self._cluster.address)

    @property
    def head(self) -> str:
        """Id of the raylet that drivers join."""
        return str(self._cluster.head_node.node_id)

    def add(self, raylets: int, processors: int = _PROCESSORS) -> None:
        """More raylets."""
        for _ in range(raylets):
            self._extra.append(self._cluster.add_node(num_cpus=processors))

    def remove_added(self) -> None:
        """Back to the head alone; orphans of frozen raylets end too."""
        self.thaw()
        for node in self._extra:
            if node in self._cluster.worker_nodes:
                self._cluster.remove_node(node, allow_graceful=False)
        if self._extra:
            self._cluster.wait_for_nodes()  # until Ray has missed them, or the next run's actors are sent there
        self._extra = []
        for pid in self._seen:
            if _is_worker(pid):
                os.kill(pid, signal.SIGKILL)
        self._seen = set()

    def workers(self) -> list[Worker]:
        """Every actor of this driver as Ray's own table has it, without asking the actors."""
        import ray

        return self._of_job(ray.get_runtime_context().get_job_id())

    def of_driver(self, pid: int) -> list[Worker]:
        """The same of the driver with this process id."""
        from ray._private import state

        jobs = [one["JobID"] for one in state.jobs() if one["DriverPid"] == pid]
        return [worker for job in jobs for worker in self._of_job(job)]

    def _of_job(self, job: str) -> list[Worker]:
        from ray._private import state

        found = []
        for one in state.actors().values():
            if one["JobID"] == job and one["ActorClassName"].endswith("Actor"):
                role = one["ActorClassName"].removesuffix("Actor").lower()
                node, restarts = one["Address"]["NodeID"], int(one["NumRestarts"])
                found.append(Worker(role, one["ActorID"], one["Pid"], node, one["State"], restarts))
                if one["Pid"]:
                    self._seen.add(one["Pid"])
        return sorted(found, key=lambda worker: (worker.role, worker.actor))

    def living(self, role: str) -> list[Worker]:
        """Those of a role that live, waiting until one does."""
        until(lambda: any(one.alive and one.role == role for one in self.workers()), f"a living {role}")
        return [one for one in self.workers() if one.alive and one.role == role]

    def kill(self, worker: Worker) -> None:
        """SIGKILL."""
        self.struck[worker.actor] += 1
        if _is_worker(worker.pid):
            os.kill(worker.pid, signal.SIGKILL)

    def freeze_worker(self, worker: Worker) -> None:
        """SIGSTOP; see `freeze`."""
        self.struck[worker.actor] += 1
        self.freeze(worker.pid)

    def complaints(self) -> list[str]:
        """What the workers of this driver wrote to their logs, by process."""
        import ray

        job = ray.get_runtime_context().get_job_id()
        logs = sorted(self._scratch.glob(f"**/logs/worker-*-{job}-*.err"))
        return [f"{log.stem}: {line}" for log in logs for line in log.read_text(errors="replace").splitlines()]

    def freeze(self, pid: int) -> None:
        """SIGSTOP; `thaw` takes it back, and so does the end."""
        self._frozen.add(pid)
        os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Whatever is frozen goes on."""
        for pid in self._frozen:
            if Path(f"/proc/{pid}").exists():
                os.kill(pid, signal.SIGCONT)
        self._frozen = set()

    def raylet(self, node: str) -> int:
        """Process id of an added raylet."""
        (found,) = (one for one in self._extra if one.node_id == node)
        return int(found.all_processes["raylet"][0].process.pid)

    def lose(self, node: str) -> None:
        """An added raylet and its workers are gone at once."""
        (found,) = (one for one in self._extra if one.node_id == node)
        theirs = [one.pid for one in self.workers() if one.node == node and one.pid]
        self._cluster.remove_node(found, allow_graceful=False)
        for pid in theirs:
            if _is_worker(pid):
                os.kill(pid, signal.SIGKILL)


def _is_worker(pid: int) -> bool:
    """Whether a process id still is a worker of Ray's: ids are used again."""
    try:
        return b"ray::" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@contextmanager
def raylets(processors: int = _PROCESSORS) -> Iterator[Raylets]:
    """A cluster for the length of the block: a head with so many processors, to which raylets can be added."""
    scratch = tempfile.mkdtemp(prefix="cw-", dir="/tmp")  # short: it holds sockets
    said = {
        "RAY_TMPDIR": scratch, "RAY_AUTH_MODE": "disabled", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }  # fmt: skip
    before = {name: os.environ.get(name) for name in said}
    os.environ.update(said)
    (Path(scratch) / "ray").mkdir()
    from ray._private import worker
    from ray.cluster_utils import Cluster

    worker._worker_logs_enabled = False  # else Ray prints a page for everybody who is killed
    logging.getLogger("ray").setLevel(logging.ERROR)
    cluster = Cluster()
    made = Raylets(cluster, Path(scratch))
    try:
        cluster.add_node(
            num_cpus=processors, object_store_memory=_STORE_BYTES, include_dashboard=False, _system_config=_HEALTH
        )
        yield made
    finally:
        made.remove_added()
        cluster.shutdown()
        worker._worker_logs_enabled = True
        shutil.rmtree(scratch, ignore_errors=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
