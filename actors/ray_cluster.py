"""Which Ray cluster the actors live in: one that is there, or one of our own for as long as we need it."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray.exceptions import RayError

_OBJECT_STORE_BYTES = 512 << 20


class RayRefused(Exception):
    """Ray cannot be started or joined; the message says why."""


@contextmanager
def ray_cluster(address: str | None, namespace: str) -> Iterator[None]:
    """A Ray cluster for the length of the block: the one at ``address``, or one of our own in this machine.

    Raises
    ------
    RayRefused
        When it cannot be started or reached.
    """
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    scratch = None
    try:
        if address is None:
            # Nobody but this process needs to reach it: no token, and no listener beyond this machine.
            os.environ.setdefault("RAY_AUTH_MODE", "disabled")
            scratch = tempfile.mkdtemp(prefix="cw-", dir="/tmp")  # short: it holds sockets
            ray.init(
                namespace=namespace, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR,
                _node_ip_address="127.0.0.1", _temp_dir=scratch, object_store_memory=_OBJECT_STORE_BYTES,
            )  # fmt: skip
        else:
            os.environ.setdefault("RAY_AUTH_MODE", "token")
            ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level=logging.ERROR)
    except (RayError, ConnectionError, ValueError, RuntimeError, OSError) as refusal:
        where = f"joined at {address}" if address is not None else "started"
        raise RayRefused(f"Ray cannot be {where}: {str(refusal).strip().splitlines()[0]}") from refusal
    try:
        yield
    finally:
        ray.shutdown()
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
