"""Which Ray cluster the actors run in: an existing one, or one of our own for as long as it is needed.

Without a token, a client that reaches a Ray cluster can run anything in it. So there is a token in either case, unless
``RAY_AUTH_MODE=disabled`` says otherwise: the cluster's own, or one that only this user can read and that goes
with our cluster. Ours listens on the loopback interface alone.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import secrets
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import ray
from ray import _raylet
from ray._private import ray_constants
from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined] # compiled, without types
from ray.exceptions import RayError

from actors.processes.scratch import make, remove

log = logging.getLogger(__name__)

#: Bytes of the object store at least and at most, and the shares of the memory and of /dev/shm that it may take. Ray
#: frees a page a second or two after its last reader; where the store is full meanwhile, a snapshot waits two seconds.
_STORE_LEAST, _STORE_MOST = 512 << 20, 4 << 30
_OF_MEMORY, _OF_SHARED = 0.3, 0.9
_LOOPBACK = "127.0.0.1"
#: ``ray::RayLog::InstallFailureSignalHandler(const char*, bool)`` in Ray's library.
_CRASH_HANDLER = "_ZN3ray6RayLog27InstallFailureSignalHandlerEPKcb"
#: Seconds for which roles and cluster are silent until the cluster counts as ended; seconds that a connection may take.
GONE_S, _CONNECT_S = 5.0, 1.0
#: What the roles tell glibc (mallopt(3)). Columns of some MB come and go with every fold: where memory goes back to the
#: system with each, fetching it again takes longer than the fold, and threads have arenas many times what is in use.
MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}


class RayRefused(Exception):
    """Ray cannot be started or joined; the message says why."""


class ClusterEnded(RayRefused):
    """The cluster in which the roles ran is gone."""


class ClusterWatch:
    """Notices that the Ray cluster has ended. Ray itself waits for it for a minute, and then aborts the process.

    Parameters
    ----------
    answers
        Whether the cluster takes connections now.
    elapsed_s
        A clock in seconds that only rises.
    """

    def __init__(
        self, answers: Callable[[], bool] | None = None, elapsed_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.answers = answers if answers is not None else _takes_connections
        self._elapsed_s, self._silent_since = elapsed_s, math.inf

    def look(self, roles_answer: bool) -> None:
        """Look once. While the roles answer they need no cluster, so one that is started anew may be away meanwhile.

        Raises
        ------
        ClusterEnded
            When neither the roles nor the cluster have answered for `GONE_S`.
        """
        now = self._elapsed_s()
        self._silent_since = math.inf if roles_answer or self.answers() else min(self._silent_since, now)
        if now >= self._silent_since + GONE_S:
            raise ClusterEnded(
                f"the Ray cluster has ended, and our roles with it: nothing answered there for {GONE_S:.0f} s. A "
                "standby that is to outlive the cluster of another service needs a Ray of its own (no ray_address)"
            )


def _takes_connections() -> bool:
    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_CONNECT_S):
            return True
    except OSError:
        return False


@contextmanager
def ray_cluster(address: str | None, namespace: str) -> Iterator[None]:
    """A Ray cluster for the length of the block.

    Parameters
    ----------
    address
        Of the cluster to join; None: one of our own is started on this machine.
    namespace
        Holds the names of the actors.

    Raises
    ------
    RayRefused
        When it cannot be started or reached, or does not let us in.
    """
    # A short path, since sockets are in it. Ray opens its folder to all users, so it lies in one that only we can open.
    scratch = None if address is not None else make("cw-", "/tmp")
    try:
        with _environment(scratch, here=address is None or is_loopback(address)):
            try:
                _begin(address, namespace, scratch)
                yield
            finally:
                ray.shutdown()
    finally:
        if scratch is not None:
            remove(scratch)


def _begin(address: str | None, namespace: str, scratch: Path | None) -> None:
    _set_crash_handler()
    try:
        if scratch is None:
            ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level=logging.ERROR)
        else:
            ray.init(
                namespace=namespace, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR,
                _node_ip_address=_LOOPBACK, _temp_dir=str(scratch / "ray"), object_store_memory=_store_bytes(),
            )  # fmt: skip
    except (RayError, ConnectionError, ValueError, RuntimeError, OSError) as refusal:
        where = f"joined at {address}" if address is not None else "started"
        raise RayRefused(f"Ray cannot be {where}: {_why(refusal)}") from refusal


def _set_crash_handler() -> None:
    """Let Ray set its handler for crashes now; it does so once in a process, otherwise while it connects.

    The handler is for SIGTERM too, and ends the process on the spot: what it started would live on for a minute.
    Signals are for the main thread alone to set, in Python and in Ray.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    ours = signal.getsignal(signal.SIGTERM)
    set_handler = getattr(ctypes.CDLL(_raylet.__file__), _CRASH_HANDLER, None)
    if set_handler is None:
        log.warning("this Ray is not known: a signal in the moment when it connects ends the process at once")
        return
    set_handler(None, False)
    signal.signal(signal.SIGTERM, ours if ours is not None else signal.SIG_DFL)


def _store_bytes() -> int:
    """How large the object store of our own cluster is on this machine now."""
    memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        shared = shutil.disk_usage("/dev/shm").free
    except OSError:
        shared = memory
    return store_bytes(memory, shared)


def store_bytes(memory: int, shared: int) -> int:
    """How large an object store is with these bytes of memory and of /dev/shm free."""
    return min(_STORE_MOST, max(_STORE_LEAST, int(min(_OF_MEMORY * memory, _OF_SHARED * shared))))


def _why(refusal: BaseException) -> str:
    """The first line of Ray's message; a message about tokens is among the causes."""
    cause: BaseException | None = refusal
    while cause is not None:
        if "AuthToken" in str(cause):
            return "our token is not the cluster's (RAY_AUTH_MODE, RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH)"
        cause = cause.__cause__ or cause.__context__
    return (str(refusal).strip().splitlines() or [type(refusal).__name__])[0]


@contextmanager
def _environment(scratch: Path | None, *, here: bool) -> Iterator[None]:
    """Set what Ray reads from the environment, here and in the processes that it starts; what is set already stays.

    ``here`` says whether the cluster listens on the loopback interface.
    """
    said = {
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token",
        # Without it Ray remembers each call of the last hundred thousand, and its memory grows for hours.
        "RAY_task_events_report_interval_ms": "0",
        # A second by default, in which old snapshots come to a gigabyte.
        "RAY_free_objects_period_milliseconds": "100",
        # By default its workers are nicer (15) than all else on the machine. They decide, and hold the lease.
        "RAY_worker_niceness": "0",
        **MEMORY,
    }  # fmt: skip
    if scratch is not None and not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        said["RAY_AUTH_TOKEN_PATH"] = _token(scratch)
    ours = {name: value for name, value in said.items() if name not in os.environ}
    clusters = ray_constants.ENABLE_RAY_CLUSTER
    os.environ.update(ours)
    if here:
        # Otherwise Ray takes the loopback address for a mistake: it listens on every address of the machine, and looks
        # for a cluster at the address by which others reach this machine.
        ray_constants.ENABLE_RAY_CLUSTER = False
    _read_again()
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = clusters
        for name in ours:
            os.environ.pop(name, None)
        _read_again()


def is_loopback(address: str) -> bool:
    """Whether a cluster's address (``host:port``) is one that only this machine reaches."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(scratch: Path) -> str:
    """The path of a new token."""
    path = scratch / "token"
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(secrets.token_hex(32))
    return str(path)


def _read_again() -> None:
    """Have Ray read the environment again: it did so when it was imported, and keeps the first token that it finds."""
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
